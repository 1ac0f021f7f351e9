"""Random graphs with branches: sums, concatenations, windows and ReLUs in any order, small enough for exact oracles."""

from math import prod

import numpy as np

from steadygaze.network.graph import Graph, Node
from steadygaze.network.joins import Concat, Sum, Winner
from steadygaze.network.operators import MatMul, Relu, Reshape, ScaleShift


class Builder:
    """Appends nodes to a graph; every method returns the number of the new value."""

    def __init__(self, input_shape=(1, 2, 2)):
        self.input_shape, self.nodes = input_shape, []

    def shape(self, value):
        return self.nodes[value - 1].shape if value else self.input_shape

    def add(self, operator, *inputs):
        shape = operator.output_shape(*map(self.shape, inputs))
        self.nodes.append(Node(operator, inputs, shape, f"n{len(self.nodes)}"))
        return len(self.nodes)

    def graph(self):
        return Graph(self.input_shape, tuple(self.nodes))


def dense(rng, builder, value, width):
    """A dense layer on the flattened value."""
    size = prod(builder.shape(value))
    flat = builder.add(Reshape((1, size)), value)
    weight, bias = rng.integers(-3, 4, (size, width)) / 2.0, rng.integers(-3, 4, width) / 4.0
    return builder.add(MatMul(weight, bias), flat)


def random_graph(seed, *, width=3, blocks=4, classes=2):
    """A graph whose blocks read any earlier value; every block except the last has a bend."""
    rng = np.random.default_rng(seed)
    builder = Builder()
    values = [builder.add(Reshape((1, 4)), 0)]
    values.append(builder.add(Relu(), dense(rng, builder, values[0], width)))
    for _ in range(blocks):
        kind = rng.choice(["relu", "residual", "winner", "concat", "leaky", "difference"])
        source = int(rng.choice(values))
        fresh = dense(rng, builder, source, width)
        if kind == "relu":
            values.append(builder.add(Relu(), fresh))
        elif kind == "residual":
            inner = dense(rng, builder, builder.add(Relu(), fresh), width)
            values.append(builder.add(Relu(), builder.add(Sum((1, 1)), inner, fresh)))
        elif kind == "winner":
            other = dense(rng, builder, int(rng.choice(values)), width)
            joined = builder.add(Concat(1), fresh, other)
            count = int(rng.integers(1, 4))
            index = np.stack([rng.permutation(2 * width)[:3] for _ in range(count)])
            index[-1, 1:] = [-1, -1] if rng.random() < 0.3 else index[-1, 1:]
            values.append(builder.add(Winner(index, (1, count)), joined))
        elif kind == "concat":
            values.append(builder.add(Concat(1), builder.add(Relu(), fresh), source))
        elif kind == "leaky":
            positive = builder.add(ScaleShift(gain=0.75), builder.add(Relu(), fresh))
            values.append(builder.add(Sum((1, 1)), positive, builder.add(ScaleShift(gain=0.25), fresh)))
        else:
            values.append(builder.add(Relu(), builder.add(Sum((1, -1)), fresh, fresh)))
    joined = builder.add(Concat(1), *{values[-1], int(rng.choice(values))})
    dense(rng, builder, joined, classes)
    return builder.graph()
