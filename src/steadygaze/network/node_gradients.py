"""Gradients node by node, from the logits back to any value of a graph: the plain definition, one image at a time.

`graph.gradients` goes layer by layer and is faster. It reads a pattern; this module reads the values of a forward pass.
"""

from functools import lru_cache

import numpy as np

from .graph import Graph, Node
from .joins import Concat, Sum, Winner
from .operators import Array, Linear, Relu, Shape
from .steps import Step, step_of


def values_of(graph: Graph, image: Array) -> list[Array]:
    """All values of a graph for one image (C, H, W): the image itself first, the logits last."""
    return [value[0] for value in graph.values(np.asarray(image, dtype=np.float64)[None])]


def gradients_at(graph: Graph, values: list[Array], rows: Array, at: int = 0) -> Array:
    """Gradients (R, *shape) of rows (R, K) times the logits with respect to value `at`, given all values of an image.

    A ReLU at zero counts as inactive; the first of the largest entries of a window counts as its winner.
    """
    found: dict[int, Array] = {len(graph.nodes): rows.reshape(len(rows), *graph.shape_of(len(graph.nodes)))}
    for number in range(len(graph.nodes), at, -1):
        if number in found:
            node, above = graph.nodes[number - 1], found.pop(number)
            shapes = [graph.shape_of(value) for value in node.inputs]
            for value, part in zip(
                node.inputs, _pull(node, above, [values[i] for i in node.inputs], shapes), strict=True
            ):
                found[value] = found[value] + part if value in found else part
    return found.get(at, np.zeros((len(rows), *graph.shape_of(at))))


def _pull(node: Node, above: Array, inputs: list[Array], shapes: list[Shape]) -> list[Array]:
    """The gradients with respect to a node's inputs, given those (R, *shape) with respect to its result."""
    operator, count = node.operator, len(above)
    if isinstance(operator, Linear):
        return [_step(operator, shapes[0]).backward(above.reshape(count, -1)).reshape(count, *shapes[0])]
    if isinstance(operator, Relu):
        return [above * (inputs[0] > 0.0)]
    if isinstance(operator, Sum):
        return [sign * _unbroadcast(above, shape) for sign, shape in zip(operator.signs, shapes, strict=True)]
    if isinstance(operator, Concat):
        ends = np.cumsum([shape[operator.axis] for shape in shapes])[:-1]
        return np.split(above, ends, axis=operator.axis + 1)
    assert isinstance(operator, Winner)
    flat = inputs[0].ravel()
    entries = np.where(operator.index < 0, -np.inf, flat[operator.index])
    winners = operator.index[np.arange(len(entries)), entries.argmax(axis=1)]
    found = np.zeros((flat.size, count))
    np.add.at(found, winners, above.reshape(count, -1).T)
    return [found.T.reshape(count, *shapes[0])]


def _unbroadcast(rows: Array, shape: Shape) -> Array:
    """Gradients (R, *broadcast shape) with respect to a value of a smaller shape."""
    extra = rows.ndim - 1 - len(shape)
    rows = rows.sum(axis=tuple(range(1, 1 + extra)))
    repeated = tuple(axis + 1 for axis, size in enumerate(shape) if size != rows.shape[axis + 1])
    return rows.sum(axis=repeated, keepdims=True)


@lru_cache(maxsize=64)
def _step(operator: Linear, shape: Shape) -> Step:
    return step_of(operator, shape)
