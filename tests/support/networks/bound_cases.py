"""Random small questions for the bounds: networks, images, perturbations, boxes.

The networks are hard for bounds: neurons that coincide, are dead, or are zero on a set with volume; whole numbers
without biases; weights of a million beside weights of a millionth; means and strides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from math import prod

import numpy as np

from steadygaze.attention.distances import Distance
from steadygaze.attention.filters import Filter
from steadygaze.attention.options import AttentionOptions
from steadygaze.bounds.bounder import Bounder
from steadygaze.network.graph import Graph
from steadygaze.network.operators import MatMul, Mean, Operator, Relu, Reshape, ScaleShift
from steadygaze.network.windows import AveragePool, Conv, Window
from steadygaze.perturbation import Perturbed, compose, parse_spec
from support.networks.layered_networks import FloatLayer, crossing_layers, dyadic_layers, graph_of, make_graph
from support.oracles.attention_by_definition import Question
from support.oracles.exact_graph import ExactNetwork

SPECS: dict[int, tuple[tuple[str, ...], ...]] = {
    1: (
        ("brightness:-0.5..0.5",),
        ("brightness:0.1..0.3",),
        ("patch:x=0,y=0,w=2,h=1",),
        ("translate:dx=1:-0.3..0.7",),
        ("translate:dy=-2:-1.9..2",),
        ("darkness",),
    ),
    2: (
        ("brightness", "patch:x=0,y=0,w=1,h=1"),
        ("translate:dx=1", "brightness:-0.5..0.5"),
        ("patch:x=1,y=0,w=1,h=2:-0.7..0.1", "translate:dx=-2:-0.6..1.1"),
        ("darkness:-0.3..0.8", "patch:x=0,y=1,w=2,h=1,tone=-1"),
        ("brightness:-0.1..0.2", "darkness:-0.1..0.2"),
    ),
    3: (
        ("translate:dx=2", "patch:x=0,y=0,w=1,h=1", "brightness"),
        ("brightness:-0.3..0.6", "translate:dy=1:-0.7..0.1", "patch:x=1,y=0,w=1,h=2:-0.5..0.5"),
    ),
    4: (
        ("translate:dx=1", "patch:x=0,y=0,w=1,h=1", "brightness", "patch:x=0,y=1,w=2,h=1,tone=-1"),
        ("brightness:-0.1..0.1", "darkness:0..0.3", "patch:x=0,y=0,w=2,h=2", "patch:x=1,y=0,w=1,h=1:-1..1"),
    ),
}
FILTERS = ("identity", "abs", "mean", "abs+mean", "mean+abs")
GREY = (0.0, 0.0, 0.25, 0.5, 0.75, 1.0)
KINDS = ("dyadic", "crossing", "normal", "scales", "whole", "dead", "sparse", "convolution", "pooled")


@dataclass(frozen=True, eq=False)
class Case:
    """One question and some boxes: low and high (B, d) in t, of one knot cell."""

    name: str
    graph: Graph
    perturbed: Perturbed
    label: int
    question: Question
    cell: int
    low: np.ndarray
    high: np.ndarray
    room: int

    @property
    def options(self) -> AttentionOptions:
        """The question for the package."""
        filters, distance = Filter.parse(self.question.filter), Distance.parse(self.question.dist)
        return AttentionOptions(filters, distance, self.question.classes)

    def bounder(self) -> Bounder:
        """The code under test."""
        return Bounder(self.graph, self.perturbed, self.label, self.options, room=self.room)

    @cached_property
    def network(self) -> ExactNetwork:
        """The graph in exact numbers."""
        return ExactNetwork.of(self.graph)


def random_case(
    seed: int, *, dimension: int | None = None, kind: str | None = None, specs: tuple[str, ...] | None = None
) -> Case:
    """A question that depends on the seed and the arguments; all filters, distances and rooms occur."""
    rng = np.random.default_rng([4, seed])
    kind = kind or KINDS[seed % len(KINDS)]
    dimension = dimension or int(rng.choice([1, 2, 2, 2, 3, 4]))
    shape = (int(rng.choice([1, 1, 2])), int(rng.integers(2, 4)), int(rng.integers(2, 4)))
    graph = random_graph(rng, kind, shape)
    image = (
        rng.choice(GREY, size=shape),
        rng.random(shape),
        rng.integers(0, 256, size=shape) / 255,
        np.full(shape, float(rng.integers(2))),
    )[int(rng.choice([0, 0, 1, 2, 3]))]
    drawn = int(rng.integers(len(SPECS[dimension])))
    specs = specs or SPECS[dimension][drawn]
    perturbed = compose([parse_spec(spec) for spec in specs], image)
    classes = None if rng.random() < 0.7 else (int(rng.integers(graph.classes)),)
    question = Question(FILTERS[int(rng.integers(5))], ("l1", "l2")[int(rng.integers(2))], classes)
    cell = int(rng.integers(len(perturbed.cells)))
    low, high = random_boxes(rng, perturbed, cell, 4)
    room = int(rng.choice([0, 0, 1, 3, 100]))
    name = f"seed {seed}: {kind}, {'+'.join(specs)}, {question}, room {room}"
    return Case(name, graph, perturbed, int(rng.integers(graph.classes)), question, cell, low, high, room)


def random_boxes(rng: np.random.Generator, perturbed: Perturbed, cell: int, count: int) -> tuple[np.ndarray, ...]:
    """Boxes of a knot cell: the whole cell, halves of halves, thin and tiny boxes, points, boxes at corners."""
    domain, piece = perturbed.domain, perturbed.cells[cell]
    first, last = ((end - domain.low) / domain.widths for end in (piece.low, piece.high))
    lows, highs = [], []
    for _ in range(count):
        low, high = first.copy(), last.copy()
        choice = rng.random()
        if choice < 0.5:
            for _ in range(int(rng.integers(1, 10))):
                axis, upper = int(rng.integers(len(low))), bool(rng.integers(2))
                middle = 0.5 * (low[axis] + high[axis])
                low[axis], high[axis] = (middle, high[axis]) if upper else (low[axis], middle)
        elif choice < 0.9:
            ends = np.sort(rng.random((2, len(low))) if choice < 0.7 else rng.integers(0, 9, (2, len(low))) / 8, axis=0)
            low, high = first + ends[0] * (last - first), first + ends[1] * (last - first)
            width = (high - low) * float(rng.choice([1.0, 1e-3, 1e-12, 0.0], p=[0.4, 0.3, 0.2, 0.1]))
            high = np.where(rng.random(len(low)) < 0.8, low + width, high)
        lows.append(np.clip(low, first, last))
        highs.append(np.clip(np.maximum(low, high), first, last))
    return np.array(lows), np.array(highs)


def random_graph(rng: np.random.Generator, kind: str, shape: tuple[int, int, int]) -> Graph:
    """A network of one of the kinds, with two to four classes."""
    classes = int(rng.integers(2, 5))
    if kind in ("convolution", "pooled"):
        return _convolutional(rng, shape, classes, pooled=kind == "pooled")
    sizes = [prod(shape), *rng.integers(2, 6, size=int(rng.integers(1, 5))).tolist(), classes]
    return make_graph(_layers(rng, kind, sizes), shape)


def _layers(rng: np.random.Generator, kind: str, sizes: Sequence[int]) -> list[FloatLayer]:
    if kind == "crossing":
        layers = crossing_layers(rng, sizes, rng.integers(0, 5, size=(3, sizes[0])) / 4)
        for weight, bias in layers[:-1]:
            if len(bias) > 2:
                weight[1], bias[1] = -2.0 * weight[0], -2.0 * bias[0]
        return layers
    if kind == "dyadic":
        return dyadic_layers(rng, sizes)
    if kind == "whole":
        return [(rng.integers(-3, 4, size=(b, a)).astype(float), np.zeros(b)) for a, b in pairwise(sizes)]
    layers = [(rng.normal(size=(b, a)), 0.3 * rng.normal(size=b)) for a, b in pairwise(sizes)]
    if kind == "dead":
        for weight, bias in layers[:-1]:
            weight[0], bias[0] = 0.0, 0.0
            bias[-1] = -100.0
    if kind == "sparse":
        # Values that are exactly zero, layer after layer, beside others that are nearly so.
        for weight, bias in layers:
            weight[:] *= (rng.random(weight.shape) < 0.3) * 10.0 ** rng.integers(-130, 2, weight.shape)
            bias[:] *= (rng.random(bias.shape) < 0.3) * 10.0 ** rng.integers(-300, 2, bias.shape)
    if kind == "scales":
        layers = [
            (w * 10.0 ** rng.integers(-6, 7, w.shape), b * 10.0 ** rng.integers(-6, 7, b.shape)) for w, b in layers
        ]
    return layers


def _convolutional(rng: np.random.Generator, shape: tuple[int, int, int], classes: int, *, pooled: bool) -> Graph:
    few = (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)

    def weights(*sizes: int) -> np.ndarray:
        return rng.normal(size=sizes) if rng.random() < 0.5 else rng.choice(few, size=sizes)

    groups = 2 if shape[0] == 2 and rng.random() < 0.3 else 1
    before, after = (tuple(rng.integers(0, 2, size=2).tolist()) for _ in range(2))
    window = Window((2, 2), tuple(rng.integers(1, 3, size=2).tolist()), (1, 1), before, after)
    operators: list[Operator] = [Reshape((1, *shape))]
    if rng.random() < 0.5:
        operators.append(
            ScaleShift(gain=1.0 / rng.choice([0.3, 0.5, 2.0], size=(shape[0], 1, 1)), offset=weights(shape[0], 1, 1))
        )
    operators += [Conv(weights(2, shape[0] // groups, 2, 2), weights(2), window, groups), Relu()]
    if pooled:
        pool = Window((2, 2), (1, 1), (1, 1), (1, 0), (0, 1))
        operators += [
            AveragePool(pool, bool(rng.integers(2))),
            Conv(weights(3, 2, 1, 1), weights(3), _single()),
            Relu(),
        ]
    current: tuple[int, ...] = shape
    for operator in operators:
        current = operator.output_shape(current)
    if pooled:
        operators.append(Mean((2, 3)))
        current = (1, 3, 1, 1)
    operators += [Reshape((1, prod(current))), MatMul(weights(prod(current), classes), weights(classes))]
    return graph_of(operators, shape)


def _single() -> Window:
    return Window((1, 1), (1, 1), (1, 1), (0, 0), (0, 0))


def corners(low: Sequence, high: Sequence) -> list[tuple]:
    """The corners of a box."""
    return list(product(*zip(low, high, strict=True)))
