"""A classifier as a graph of operators: canonical pixels (C, H, W) in, logits out, in float64.

The graph is directed and acyclic; a node may feed several others, an operator may take several inputs. A forward pass
goes node by node; `preactivations` and `gradients` go through the linear steps instead, for single images and for
networks whose matrices would be too large.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from ..errors import ModelError
from .operators import Array, Linear, Operator, Relu, Reshape, Shape
from .steps import Step, downwards, step_of, upwards

# Images that pass through the graph at once, and most numbers of all their values: keeps the memory of a forward pass
# independent of the batch, and below a GiB where a convolution copies its input for every place of its window.
CHUNK = 128
CHUNK_NUMBERS = 2**24


@dataclass(frozen=True)
class Node:
    """One operator, the numbers of the nodes that feed it, the shape of its result and its name in the model file."""

    operator: Operator
    inputs: tuple[int, ...]
    shape: Shape
    name: str


@dataclass(frozen=True)
class Graph:
    """Nodes in topological order; value 0 is the image (C, H, W), value i the result of nodes[i - 1].

    The last node gives the logits; without any node the pixels themselves are the logits.
    """

    input_shape: tuple[int, int, int]
    nodes: tuple[Node, ...]
    notes: tuple[str, ...] = ()

    @property
    def classes(self) -> int:
        """Number of logits."""
        return prod(self.shape_of(len(self.nodes)))

    @property
    def hidden(self) -> tuple[int, ...]:
        """Number of neurons of every Relu node, in topological order."""
        return tuple(prod(node.shape) for node in self.nodes if isinstance(node.operator, Relu))

    @cached_property
    def steps(self) -> tuple[tuple[Step, ...], ...]:
        """For every ReLU, and for the logits, the linear steps that lead to it; only without branches."""
        segments: list[list[Step]] = [[]]
        for number, node in enumerate(self.nodes):
            if node.inputs != (number,):
                raise ModelError(f"node '{node.name}' joins or leaves a branch; networks with branches come later")
            if isinstance(node.operator, Relu):
                segments.append([])
            elif isinstance(node.operator, Linear) and not isinstance(node.operator, Reshape):
                segments[-1].append(step_of(node.operator, self.shape_of(number)))
        return tuple(tuple(segment) for segment in segments)

    def shape_of(self, value: int) -> Shape:
        """Shape of value number `value` for one image."""
        return self.nodes[value - 1].shape if value else self.input_shape

    def logits(self, images: Array) -> Array:
        """Logits (B, K) of images (B, C, H, W), by plain float64 arithmetic node by node."""
        rows = [self._run(chunk)[-1].reshape(len(chunk), -1) for chunk in self._chunks(images)]
        return np.concatenate(rows) if rows else np.zeros((0, self.classes))

    def preactivations(self, images: Array) -> list[Array]:
        """Input of every Relu node in topological order, flattened to (B, n), for images (B, C, H, W)."""
        return self.trace(images)[0]

    def trace(self, images: Array) -> tuple[list[Array], Array]:
        """Preactivations and logits from one pass."""
        sources = [node.inputs[0] for node in self.nodes if isinstance(node.operator, Relu)]
        sources.append(len(self.nodes))
        parts: list[list[Array]] = [[np.zeros((0, prod(self.shape_of(source))))] for source in sources]
        for chunk in self._chunks(images):
            values = self._run(chunk)
            for part, source in zip(parts, sources, strict=True):
                part.append(values[source].reshape(len(chunk), -1))
        *preactivations, logits = [np.concatenate(part) for part in parts]
        return preactivations, logits

    @property
    def _numbers(self) -> int:
        """Numbers of all values of one image."""
        return prod(self.input_shape) + sum(prod(node.shape) for node in self.nodes)

    def _chunks(self, images: Array) -> Iterator[Array]:
        images = np.asarray(images, dtype=np.float64)
        if images.shape[1:] != self.input_shape:
            raise ValueError(f"images of shape {images.shape}, expected (B, {', '.join(map(str, self.input_shape))})")
        size = max(1, min(CHUNK, CHUNK_NUMBERS // self._numbers))
        return (images[start : start + size] for start in range(0, len(images), size))

    def _run(self, images: Array) -> list[Array]:
        values = [images]
        for node in self.nodes:
            values.append(node.operator.apply(*(values[i] for i in node.inputs)))
        return values


def preactivations(graph: Graph, pixels: Array) -> list[Array]:
    """The input of every ReLU, then the logits, each (B, n), for flattened images (B, C·H·W), by linear steps."""
    values, results = pixels, []
    for segment in graph.steps:
        results.append(upwards(segment, values))
        values = np.maximum(results[-1], 0.0)
    return results


def gradients(graph: Graph, bits: Sequence[Array], targets: Array | None = None) -> Iterator[Array]:
    """Gradients (K', n) of targets (K', K) times the logits, or of all logits, under one pattern, the last layer first.

    bits: one boolean array (n,) per ReLU layer. First with respect to the output of the last ReLU layer, …, then to
    that of the first one, at last to the pixels.
    """
    rows = downwards(graph.steps[-1], np.eye(graph.classes) if targets is None else targets)
    yield rows
    for segment, layer in zip(reversed(graph.steps[:-1]), reversed(bits), strict=True):
        rows = downwards(segment, rows * layer)
        yield rows
