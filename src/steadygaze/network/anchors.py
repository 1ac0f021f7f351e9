"""A value of a graph as the output of neurons of one layer, to take gradients with respect to it."""

from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np

from .graph import Graph, Node
from .joins import Winner
from .layers import Frame
from .operators import Relu


class Anchor(NamedTuple):
    """A graph with the same logits in which `neurons` of a layer have a value of interest as their output."""

    graph: Graph
    layer: int
    neurons: slice


def anchored(graph: Graph, value: int) -> Anchor:
    """Anchor a value of a graph; one that is no output of ReLUs passes through maxima over windows of one entry.

    All that a layer hands on is read from its output, so gradients with respect to these neurons are complete, whatever
    other ways lead around them.
    """
    if not isinstance(graph.nodes[value - 1].operator, Relu):
        graph = _with_windows(graph, value)
        value += 1
    # Values that no output needs belong to no layer; their gradients are zero, and any layer would do.
    layer = next(number for number, frame in enumerate(graph.frames) if value in frame.nodes)
    start = sum(_neurons(graph, number) for number in _before(graph.frames[layer], value))
    return Anchor(graph, layer, slice(start, start + prod(graph.shape_of(value))))


def _with_windows(graph: Graph, value: int) -> Graph:
    """The graph with windows of one entry behind a value, which all that read the value read instead."""
    shape = graph.shape_of(value)
    windows = Winner(np.arange(prod(shape))[:, None], shape)

    def moved(number: int) -> int:
        return number + 1 if number >= value else number

    below, above = graph.nodes[:value], graph.nodes[value:]
    nodes = [*below, Node(windows, (value,), shape, f"{graph.nodes[value - 1].name} (anchor)")]
    nodes += [replace(node, inputs=tuple(map(moved, node.inputs))) for node in above]
    return replace(graph, nodes=tuple(nodes), aims=None if graph.aims is None else moved(graph.aims))


def _before(frame: Frame, value: int) -> tuple[int, ...]:
    return frame.nodes[: frame.nodes.index(value)]


def _neurons(graph: Graph, number: int) -> int:
    """How many neurons of its layer decide a value."""
    operator = graph.nodes[number - 1].operator
    return len(operator.entries) if isinstance(operator, Winner) else prod(graph.shape_of(number))
