"""Rewrites a graph to make a chosen value the output of one layer: gradients can then be taken with respect to it."""

from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np

from .graph import Graph, Node
from .joins import Winner
from .layers import Frame
from .operators import Relu


class Anchor(NamedTuple):
    """A graph with the same logits, in which the outputs of `neurons` of a layer are the chosen value."""

    graph: Graph
    layer: int
    neurons: slice


def anchored(graph: Graph, value: int) -> Anchor:
    """Anchor a value of a graph: unless ReLUs produce it, it is passed through maxima over windows of one entry.

    Later layers read only the output of this layer, so gradients with respect to these neurons cover every path from
    the value to the logits, including paths around a layer.
    """
    if not isinstance(graph.nodes[value - 1].operator, Relu):
        graph = _with_windows(graph, value)
        value += 1
    # Every value that an output needs is in some layer.
    layer = next(number for number, frame in enumerate(graph.frames) if value in frame.nodes)
    start = sum(_neurons(graph, number) for number in _before(graph.frames[layer], value))
    return Anchor(graph, layer, slice(start, start + prod(graph.shape_of(value))))


def _with_windows(graph: Graph, value: int) -> Graph:
    """Insert windows of one entry after a value; every node that read the value reads the windows instead."""
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
    """The number of neurons that a value takes in its layer."""
    operator = graph.nodes[number - 1].operator
    return len(operator.entries) if isinstance(operator, Winner) else prod(graph.shape_of(number))
