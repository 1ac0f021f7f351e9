"""Passes through the linear steps of a graph: values and their magnitudes upwards, gradients downwards.

For networks whose matrices would be too large, and for single images. Nothing is bounded here, and nothing is kept.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from .graph import Graph
from .operators import Array
from .steps import Step


def upwards(segment: Sequence[Step], values: Array) -> Array:
    """What the steps before one ReLU, or before the logits, make of values (B, n_in): (B, n_out)."""
    for step in segment:
        values = step.forward(values) + step.bias
    return values


def magnitude(segment: Sequence[Step], sizes: Array) -> Array:
    """The largest sums Σ|weight · value| + |bias| (B, n_out) for values up to `sizes` (B, n_in), all signs aside.

    A bias that is itself a sum counts by its terms: what rounding is relative to.
    """
    for step in segment:
        sizes = step.forward_abs(sizes) + step.bias_size
    return sizes


def downwards(segment: Sequence[Step], rows: Array) -> Array:
    """Gradients (B, n_in) with respect to the input of the steps, given those with respect to their result."""
    for step in reversed(segment):
        rows = step.backward(rows)
    return rows


def preactivations(graph: Graph, pixels: Array) -> list[Array]:
    """The input of every ReLU, then the logits, each (B, n), for flattened images (B, C·H·W).

    Within rounding of the graph's own: the sums are the same, in another order.
    """
    values, results = pixels, []
    for segment in graph.steps:
        results.append(upwards(segment, values))
        values = np.maximum(results[-1], 0.0)
    return results


def gradients(graph: Graph, bits: Sequence[Array], classes: Array | None = None) -> Iterator[Array]:
    """Gradients (K, n) of the logits (of all or the given classes) under one pattern, the last layer first.

    bits: one boolean array (n,) per ReLU layer. First with respect to the output of the last ReLU layer, …, then to
    that of the first one, at last to the pixels.
    """
    rows = np.eye(graph.classes)
    rows = downwards(graph.steps[-1], rows if classes is None else rows[classes])
    yield rows
    for segment, layer in zip(reversed(graph.steps[:-1]), reversed(bits), strict=True):
        rows = downwards(segment, rows * layer)
        yield rows
