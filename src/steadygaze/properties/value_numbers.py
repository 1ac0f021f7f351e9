"""Numbers the values of a graph under a pattern: the same number means the same real value, by construction.

Two sums are the same if they add the same numbers with the same weights and the same bias, in any order. So copies,
equal channels, a constant background and dead neurons get equal numbers without any arithmetic, and whatever the
constants are (the root in a batch normalisation, say). Values that only happen to be equal get different numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..lazily import scipy_sparse
from ..network.graph import Graph, Node
from ..network.joins import Concat, Sum, Winner
from ..network.operators import Linear, Mean, Operator, Relu, Reshape, Scale, Shape
from ..network.windows import AveragePool

ZERO = 0
"""The number of the real number zero; for gradients, of every constant."""

ONE = np.float64(1.0).view(np.int64)


@dataclass
class Numbers:
    """Numbers given so far, by what they stand for."""

    known: dict[object, int] = field(default_factory=dict)

    def of(self, key: object) -> int:
        """The number of a key, a new one for a new key."""
        return self.known.setdefault(key, len(self.known) + 1)

    def fresh(self, count: int) -> np.ndarray:
        """Numbers (count,) that nothing else gets."""
        return np.array([self.of(object()) for _ in range(count)], dtype=np.int64)


class _Terms(NamedTuple):
    """Rows of sums: indices and weights (float64 as bits), row by row, and the bias (n,) of every row."""

    pointers: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    bias: np.ndarray


class NumberedGraph:
    """A graph whose values can be numbered; keeps the weights of its operators between calls."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._terms: dict[int, _Terms] = {}
        self._places: dict[int, tuple[int, slice]] = {}
        for layer, frame in enumerate(graph.frames):
            first = 0
            for number in frame.nodes:
                operator = graph.nodes[number - 1].operator
                size = len(operator.entries) if isinstance(operator, Winner) else _size(graph.nodes[number - 1].shape)
                self._places[number] = layer, slice(first, first + size)
                first += size

    def number(
        self,
        numbers: Numbers,
        pixels: np.ndarray,
        bits: Sequence[np.ndarray],
        choose: Callable[[int, np.ndarray, slice], np.ndarray],
        *,
        is_gradient: bool,
    ) -> list[np.ndarray]:
        """The numbers (n,) of every layer's inputs under a pattern, given those of the pixels; 0 for carried neurons.

        choose(layer, entries, place): the number of each window of a node, given those of its entries and their place.
        is_gradient: sums count as the same if their gradients are.
        """
        found = [np.zeros(len(layer), dtype=np.int64) for layer in self.graph.layers]
        values = [pixels]
        for number, node in enumerate(self.graph.nodes, start=1):
            inputs = [values[value] for value in node.inputs]
            if number in self._places:
                layer, place = self._places[number]
                entries = inputs[0][node.operator.entries] if isinstance(node.operator, Winner) else inputs[0]
                found[layer][place] = entries
                if isinstance(node.operator, Relu):
                    values.append(np.where(bits[layer][place], entries, ZERO))
                else:
                    values.append(choose(layer, entries, place))
            elif isinstance(node.operator, Relu | Winner):
                values.append(np.zeros(_size(node.shape), dtype=np.int64))  # nothing reads it
            else:
                values.append(self._linear(numbers, number, node, inputs, is_gradient=is_gradient))
        return found

    def _linear(
        self, numbers: Numbers, place: int, node: Node, inputs: list[np.ndarray], *, is_gradient: bool
    ) -> np.ndarray:
        operator, shapes = node.operator, [self.graph.shape_of(value) for value in node.inputs]
        if isinstance(operator, Reshape):
            return inputs[0]
        if isinstance(operator, Concat):
            parts = [part.reshape(shape) for part, shape in zip(inputs, shapes, strict=True)]
            return np.concatenate(parts, axis=operator.axis).ravel()
        if isinstance(operator, Sum):
            parts = [
                np.broadcast_to(part.reshape(shape), node.shape).ravel()
                for part, shape in zip(inputs, shapes, strict=True)
            ]
            signs = np.array(operator.signs, dtype=np.float64).view(np.int64)
            rows = np.stack(parts, axis=1)
            return _sums(numbers, rows, np.broadcast_to(signs, rows.shape), np.zeros(len(rows)), "", is_gradient)
        if isinstance(operator, Scale) and operator.is_rounded:
            return _scaled(numbers, operator, inputs[0].reshape(shapes[0]), node.shape, is_gradient=is_gradient)
        if place not in self._terms:
            self._terms[place] = _terms_of(operator, shapes[0])
        terms = self._terms[place]
        lengths = np.diff(terms.pointers)
        columns = np.arange(lengths.max(initial=0))
        is_term = columns < lengths[:, None]
        at = np.where(is_term, terms.pointers[:-1, None] + columns, 0)
        rows = np.where(is_term, inputs[0][terms.indices][at] if len(terms.indices) else 0, ZERO)
        weights = terms.weights[at] if len(terms.indices) else np.zeros_like(rows)
        if _is_known(operator):
            salt = "mean" if isinstance(operator, Mean | AveragePool) else ""
            return _sums(numbers, rows, weights, terms.bias, salt, is_gradient)
        # Rounded constants may be equal although the real ones differ.
        is_nothing = (rows == ZERO).all(axis=1) & (is_gradient | (terms.bias == 0.0))
        return np.where(is_nothing, ZERO, numbers.fresh(len(rows)))


def _size(shape: Shape) -> int:
    return int(np.prod(shape))


def _is_known(operator: Operator) -> bool:
    """Whether equal weights in float64 mean equal real ones: exact floats, or one over a count."""
    if not isinstance(operator, Linear) or operator.read_roundings:
        return False
    return not operator.roundings or isinstance(operator, Mean | AveragePool)


def _terms_of(operator: Operator, shape: Shape) -> _Terms:
    assert isinstance(operator, Linear)
    matrix, bias = operator.affine(shape)
    rows = scipy_sparse.csr_array(matrix)
    return _Terms(rows.indptr, rows.indices, (rows.data + 0.0).view(np.int64), np.asarray(bias, dtype=np.float64))


def _sums(
    numbers: Numbers, rows: np.ndarray, weights: np.ndarray, bias: np.ndarray, salt: str, is_gradient: bool
) -> np.ndarray:
    """The numbers (n,) of sums of numbers (n, k) with weights (n, k), as bits; zeros and zero weights add nothing."""
    is_nothing = (rows == ZERO) | (weights == 0)
    rows, weights = np.where(is_nothing, ZERO, rows), np.where(is_nothing, 0, weights)
    order = np.lexsort((weights, rows), axis=-1)
    rows, weights = np.take_along_axis(rows, order, axis=1), np.take_along_axis(weights, order, axis=1)
    added = np.zeros(len(rows), dtype=np.int64) if is_gradient else (bias + 0.0).view(np.int64)
    keys, inverse = np.unique(np.hstack([rows, weights, added[:, None]]), axis=0, return_inverse=True)
    width = rows.shape[1]
    found = np.empty(len(keys), dtype=np.int64)
    for place, key in enumerate(keys):
        some = key[:width] != ZERO
        terms, factors, constant = key[:width][some], key[width:-1][some], int(key[-1])
        if not len(terms) and not constant:
            found[place] = ZERO
        elif len(terms) == 1 and factors[0] == ONE and not constant and not salt:
            found[place] = terms[0]
        else:
            found[place] = numbers.of((salt, terms.tobytes(), factors.tobytes(), constant))
    return found[inverse.ravel()]


def _scaled(numbers: Numbers, operator: Scale, values: np.ndarray, shape: Shape, *, is_gradient: bool) -> np.ndarray:
    """The numbers (n,) of a Scale whose float factor and shift are rounded: by the numbers that it is defined with."""
    names = ["multiplier", "gain", "divisor"] + ["mean", "offset"] * (not is_gradient)
    constants = [
        np.broadcast_to(np.asarray(getattr(operator, name), dtype=np.float64), shape).ravel() for name in names
    ]
    spread = np.broadcast_to(1.0 if operator.variance is None else operator.variance, shape).ravel()
    flat = np.broadcast_to(values.reshape(*(1,) * (len(shape) - values.ndim), *values.shape), shape).ravel()
    if operator.read_roundings:
        fresh = numbers.fresh(len(flat))
        return np.where(flat == ZERO, ZERO, fresh) if is_gradient else fresh
    bits = np.stack([(part + 0.0).view(np.int64) for part in (*constants, spread)] + [flat], axis=1)
    keys, inverse = np.unique(bits, axis=0, return_inverse=True)
    root = None if operator.variance is None else operator.epsilon
    found = [
        ZERO if is_gradient and key[-1] == ZERO else numbers.of(("scale", root, is_gradient, key.tobytes()))
        for key in keys
    ]
    return np.array(found, dtype=np.int64)[inverse.ravel()]
