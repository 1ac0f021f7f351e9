"""Rewrites graphs, with the same logits, for gradients with respect to inner values, and of several copies at once.

`anchored` makes a chosen value the output of one layer, so gradients can be taken with respect to it. `with_copies`
adds copies of the classifier, each of which reads the image scaled and shifted in its own way. The logits of the
copies, one copy after another, are then the aims, whose gradients are attention maps; one walk through this network
overlays the subdivisions of all copies.
"""

from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np

from .graph import Graph, Node
from .joins import Concat, Winner
from .layers import Frame
from .operators import Array, Relu, Reshape, ScaleShift


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


class Copies(NamedTuple):
    """The inputs of m copies: scale · image + shift, both (m, …) and broadcast to (m, C, H, W)."""

    scale: Array
    shift: Array

    def images(self, image: Array) -> Array:
        """The inputs (m, C, H, W) of the copies for an image (C, H, W)."""
        return self.scale * image + self.shift


def with_copies(graph: Graph, copies: Copies) -> Graph:
    """A graph with the same logits whose aims (m · K) are the logits of the copies."""
    nodes: list[Node] = []
    outputs: list[int] = []
    row = (1, graph.classes)
    for number, (scale, shift) in enumerate(zip(*copies, strict=True), start=1):
        nodes.append(Node(ScaleShift(multiplier=scale, offset=shift), (0,), graph.input_shape, f"copy {number}"))
        logits = _append(nodes, graph, len(nodes), f" of copy {number}")
        nodes.append(Node(Reshape(row), (logits,), row, f"logits of copy {number}"))
        outputs.append(len(nodes))
    nodes.append(Node(Concat(1), tuple(outputs), (1, len(outputs) * graph.classes), "logits of all copies"))
    aims = len(nodes)
    if not graph.nodes:
        nodes.append(Node(Reshape(graph.input_shape), (0,), graph.input_shape, "image"))
    _append(nodes, graph, 0, "")
    return Graph(graph.input_shape, tuple(nodes), graph.notes, aims)


def _append(nodes: list[Node], graph: Graph, image: int, suffix: str) -> int:
    """Append the nodes of a graph that reads the value `image`; return the value of its logits."""
    before = len(nodes)
    for node in graph.nodes:
        inputs = tuple(before + value if value else image for value in node.inputs)
        nodes.append(Node(node.operator, inputs, node.shape, node.name + suffix))
    return len(nodes) if graph.nodes else image
