"""Turns layers of numbers, or operators, into inputs of the engines: plain programs, graphs and compound networks."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from steadygaze.compound import Compound, plain_program
from steadygaze.network.graph import Graph, Node, lower
from steadygaze.network.operators import MatMul, Operator, Relu, Reshape, ScaleShift
from steadygaze.perturbation import Perturbation, compose, parse_spec
from steadygaze.regions.region import RegionSet
from steadygaze.regions.subdivide import subdivide_cells

FloatLayer = tuple[np.ndarray, np.ndarray]

WEIGHTS = (-2.0, -1.0, -1.0, -0.5, 0.0, 0.0, 0.5, 1.0, 1.0, 2.0)
BIASES = (-1.0, -0.5, -0.25, 0.0, 0.0, 0.25, 0.5, 1.0)


def dyadic_layers(rng: np.random.Generator, sizes: Sequence[int]) -> list[FloatLayer]:
    """Layers sizes[0] → sizes[1] → … of few distinct dyadic numbers: coincident lines, ties and dead neurons abound."""
    return [
        (rng.choice(WEIGHTS, size=(after, before)), rng.choice(BIASES, size=after)) for before, after in pairwise(sizes)
    ]


def crossing_layers(rng: np.random.Generator, sizes: Sequence[int], points: np.ndarray) -> list[FloatLayer]:
    """As `dyadic_layers`, with biases that make every neuron vanish at one of the given inputs (P, sizes[0]).

    The inputs are quarters, so nothing is rounded; several neurons of all layers vanish at each of them.
    """
    values, layers = points, []
    for before, after in pairwise(sizes):
        weight = rng.choice(WEIGHTS, size=(after, before))
        bias = -(weight * values[rng.integers(len(points), size=after)]).sum(axis=1)
        layers.append((weight, bias))
        values = np.maximum(values @ weight.T + bias, 0.0)
    return layers


def on_unit_square(layers: Sequence[FloatLayer], low: np.ndarray, high: np.ndarray) -> list[FloatLayer]:
    """The same network as a function of t with theta = low + t·(high − low)."""
    weight, bias = layers[0]
    return [(weight * (high - low), bias + weight @ low), *layers[1:]]


def plain_map(layers: Sequence[FloatLayer], **options: object) -> RegionSet:
    """The map of a network that takes t itself."""
    return subdivide_cells([plain_program(list(layers))], **options)


def make_graph(layers: Sequence[FloatLayer], shape: tuple[int, int, int]) -> Graph:
    """Flatten, then the layers with a ReLU after all but the last."""
    operators: list[Operator] = [Reshape((1, int(np.prod(shape))))]
    for weight, bias in layers:
        operators += [MatMul(np.ascontiguousarray(weight.T), bias), Relu()]
    return graph_of(operators[:-1], shape)


def graph_of(operators: Sequence[Operator], shape: tuple[int, int, int]) -> Graph:
    """Operators one after another."""
    nodes: list[Node] = []
    current: tuple[int, ...] = shape
    for number, operator in enumerate(operators):
        current = operator.output_shape(current)
        nodes.append(Node(operator, (number,), current, f"node {number}"))
    return Graph(shape, tuple(nodes))


def make_compound(layers: Sequence[FloatLayer], perturbations: Sequence[Perturbation], image: np.ndarray) -> Compound:
    """The layers after the perturbations of an image (C, H, W)."""
    graph = make_graph(layers, image.shape)
    return Compound(graph, lower(graph), compose(perturbations, image))


def compound_of(operators: Sequence[Operator], image: np.ndarray, specs: Sequence[str]) -> Compound:
    """The operators on a value (1, C, H, W), after the perturbations of an image (C, H, W)."""
    graph = graph_of([Reshape((1, *image.shape)), *operators], image.shape)
    return Compound(graph, lower(graph), compose([parse_spec(spec) for spec in specs], image))


def batch_norm(mean, gain, variance, offset, epsilon: float = 0.0) -> ScaleShift:
    """A batch normalisation of a value (1, C, H, W), its rounded numbers beside the true ones."""
    names = ("mean", "gain", "variance", "offset")
    arrays = [np.array(numbers, dtype=float)[:, None, None] for numbers in (mean, gain, variance, offset)]
    return ScaleShift(**dict(zip(names, arrays, strict=True)), epsilon=epsilon)
