"""Compound networks of any operators on a small image, and batch normalisations that know what they are made of."""

from collections.abc import Sequence

import numpy as np

from steadygaze.compound import Compound
from steadygaze.network.graph import Graph, Node, lower
from steadygaze.network.operators import Operator, Reshape, Scale, Shape
from steadygaze.perturbation import compose, parse_spec


def batch_norm(mean, gain, variance, offset, epsilon: float = 0.0) -> Scale:
    """A batch normalisation of a value (1, C, H, W), its rounded numbers beside the true ones."""
    names = ("mean", "gain", "variance", "offset")
    arrays = [np.array(numbers, dtype=float)[:, None, None] for numbers in (mean, gain, variance, offset)]
    return Scale(**dict(zip(names, arrays, strict=True)), epsilon=epsilon)


def compound_of(operators: Sequence[Operator], image: np.ndarray, specs: Sequence[str]) -> Compound:
    """The operators on a value (1, C, H, W), after the perturbations of an image (C, H, W)."""
    shape: Shape = (1, *image.shape)
    nodes = [Node(Reshape(shape), (0,), shape, "batch")]
    for number, operator in enumerate(operators, start=1):
        shape = operator.output_shape(shape)
        nodes.append(Node(operator, (number,), shape, f"node {number}"))
    graph = Graph(image.shape, tuple(nodes))
    return Compound(graph, lower(graph), compose([parse_spec(spec) for spec in specs], image))
