"""Several copies of a classifier as one network: each reads the image scaled and shifted in its own way.

The logits stay those of the image itself. The logits of the copies, one copy after another, are the aims, whose
gradients are attention maps. One walk through this network overlays the subdivisions of all copies.
"""

from typing import NamedTuple

from .graph import Graph, Node
from .joins import Concat
from .operators import Array, Reshape, ScaleShift


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
