"""Numbers the values of a graph under a pattern: equal numbers mean real values that are equal by construction.

Two sums are the same if they add the same numbers with the same weights in the same order, and have the same bias. So
copies, equal channels, a constant background and dead neurons get equal numbers without any arithmetic, whatever the
constants are (the root in a batch normalisation, say). Values that merely happen to be equal get different numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..lazily import scipy_sparse
from ..network.graph import Graph, Node
from ..network.joins import Concat, Sum, Winner
from ..network.operators import Linear, Mean, Operator, Relu, Reshape, ScaleShift, Shape
from ..network.windows import AveragePool

ZERO = 0
"""The number given to zero; for gradients, to every constant."""


@dataclass
class ValueNumbers:
    """The numbers given so far, by the key that each stands for."""

    known: dict[object, int] = field(default_factory=dict)

    def of(self, key: object) -> int:
        """The number of a key; a new key gets a new number."""
        return self.known.setdefault(key, len(self.known) + 1)

    def fresh(self, count: int) -> np.ndarray:
        """Numbers (count,) that no other value gets."""
        return np.array([self.of(object()) for _ in range(count)], dtype=np.int64)


class _Sums(NamedTuple):
    """The sums of a node, grouped by the entries that they read and by their weights.

    supports (S, k): sets of entries, padded with −1; support (n,): the set of every sum. kinds: the weights (and for
    values the bias) of every kind of sum; kind (n,): the kind of every sum. is_copy (n,): whether a sum is its only
    entry.
    """

    supports: np.ndarray
    support: np.ndarray
    kinds: list[bytes]
    kind: np.ndarray
    bias: np.ndarray
    is_copy: np.ndarray

    @classmethod
    def of(cls, index: np.ndarray, weights: np.ndarray, bias: np.ndarray, *, is_gradient: bool) -> "_Sums":
        """Sums of entries index (n, k), −1 for none, with weights (n, k) and biases (n,)."""
        supports, support = np.unique(index, axis=0, return_inverse=True)
        bias = np.zeros(len(index)) if is_gradient else bias + 0.0
        bits = np.hstack([np.where(index >= 0, weights, 0.0) + 0.0, bias[:, None]])
        kinds, kind = np.unique(bits.view(np.int64), axis=0, return_inverse=True)
        is_copy = ((index >= 0).sum(axis=1) == 1) & (index[:, :1] >= 0).all(axis=1) & (bias == 0.0)
        is_copy &= (weights[:, :1] == 1.0).all(axis=1)
        return cls(supports, support.ravel(), [row.tobytes() for row in kinds], kind.ravel(), bias, is_copy)

    def number(self, numbers: ValueNumbers, values: np.ndarray, salt: str) -> np.ndarray:
        """The numbers (n,) of the sums, given those of the entries."""
        seen = np.where(self.supports >= 0, values[self.supports], ZERO)
        distinct, column = np.unique(seen, axis=0, return_inverse=True)
        column = column.ravel()[self.support]
        keys = [row.tobytes() if row.any() else b"" for row in distinct]
        pairs, inverse = np.unique(self.kind * len(keys) + column, return_inverse=True)
        found = np.array(
            [numbers.of((salt, self.kinds[pair // len(keys)], keys[pair % len(keys)])) for pair in pairs.tolist()],
            dtype=np.int64,
        )[inverse.ravel()]
        is_nothing = np.array([not key for key in keys])[column]
        # These sums are their bias alone.
        for bias in np.unique(self.bias[is_nothing]):
            constant = ZERO if bias == 0.0 else numbers.of(("constant", float(bias)))
            found[is_nothing & (self.bias == bias)] = constant
        return np.where(self.is_copy, seen[self.support, 0], found) if seen.shape[1] and not salt else found


class NumberedGraph:
    """A graph whose values can be numbered; keeps the weights of its operators between calls."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._rows: dict[tuple[int, bool], _Sums] = {}
        self._terms: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self._places: dict[int, tuple[int, slice]] = {}
        for layer, frame in enumerate(graph.frames):
            first = 0
            for number in frame.nodes:
                operator = graph.nodes[number - 1].operator
                size = len(operator.entries) if isinstance(operator, Winner) else _size(graph.nodes[number - 1].shape)
                self._places[number] = layer, slice(first, first + size)
                first += size

    def place_of(self, node: int) -> tuple[int, int]:
        """The layer that decides a node, and the first of its neurons there."""
        layer, place = self._places[node]
        return layer, place.start

    def node_of(self, layer: int, neuron: int) -> tuple[int, int]:
        """The node that a neuron of a layer belongs to, and the first neuron of that node."""
        owners = [
            (node, place.start)
            for node, (own, place) in self._places.items()
            if own == layer and place.start <= neuron < place.stop
        ]
        (owner,) = owners
        return owner

    def is_known(self, node: int) -> bool:
        """Whether equal weights of a node in float64 mean equal real weights."""
        return _is_known(self.graph.nodes[node - 1].operator)

    def terms_of(self, node: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The sums of a linear node: entries (n, k) of its inputs, −1 for none, their weights (n, k), biases (n,)."""
        if node not in self._terms:
            own = self.graph.nodes[node - 1]
            self._terms[node] = _terms_of(own, [self.graph.shape_of(value) for value in own.inputs])
        return self._terms[node]

    def number(
        self,
        numbers: ValueNumbers,
        pixels: np.ndarray,
        bits: Sequence[np.ndarray],
        choose: Callable[[int, np.ndarray, slice], np.ndarray],
        *,
        is_gradient: bool,
    ) -> list[np.ndarray]:
        """The numbers (n,) of every layer's inputs under a pattern, given those of the pixels; 0 for carried neurons.

        choose(layer, entries, place): the number of each window of a node, given those of its entries and their place.
        is_gradient: sums with the same gradient count as the same.
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
        self, numbers: ValueNumbers, place: int, node: Node, inputs: list[np.ndarray], *, is_gradient: bool
    ) -> np.ndarray:
        operator, shapes = node.operator, [self.graph.shape_of(value) for value in node.inputs]
        if isinstance(operator, Reshape):
            return inputs[0]
        if isinstance(operator, Concat):
            parts = [part.reshape(shape) for part, shape in zip(inputs, shapes, strict=True)]
            return np.concatenate(parts, axis=operator.axis).ravel()
        if isinstance(operator, ScaleShift) and operator.is_rounded:
            return _scaled(numbers, operator, inputs[0].reshape(shapes[0]), node.shape, is_gradient=is_gradient)
        if (place, is_gradient) not in self._rows:
            self._rows[place, is_gradient] = _Sums.of(*self.terms_of(place), is_gradient=is_gradient)
        rows, values = self._rows[place, is_gradient], np.concatenate(inputs)
        if _is_known(operator):
            return rows.number(numbers, values, "mean" if isinstance(operator, Mean | AveragePool) else "")
        # Rounded constants may be equal although the real ones differ.
        seen = np.where(rows.supports >= 0, values[rows.supports], ZERO)
        reads = seen.max(axis=1, initial=ZERO)[rows.support] != ZERO
        return np.where(reads | (rows.bias != 0.0), numbers.fresh(len(rows.kind)), ZERO)


def _size(shape: Shape) -> int:
    return int(np.prod(shape))


def _is_known(operator: Operator) -> bool:
    """Whether equal weights in float64 mean equal real weights: exact floats, or one over a count."""
    if isinstance(operator, Sum):
        return True
    if not isinstance(operator, Linear) or operator.read_roundings:
        return False
    return not operator.roundings or isinstance(operator, Mean | AveragePool)


def _terms_of(node: Node, shapes: list[Shape]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Entries (n, k) of all inputs one after the other, −1 for none, their weights (n, k), and the bias (n,)."""
    operator = node.operator
    if isinstance(operator, Sum):
        firsts = np.cumsum([0, *map(_size, shapes)])
        parts = [
            np.broadcast_to(np.arange(_size(shape)).reshape(shape), node.shape).ravel() + first
            for shape, first in zip(shapes, firsts[:-1], strict=True)
        ]
        index = np.stack(parts, axis=1)
        return index, np.broadcast_to(np.array(operator.signs, dtype=np.float64), index.shape), np.zeros(len(index))
    assert isinstance(operator, Linear)
    matrix, bias = operator.affine(shapes[0])
    rows = scipy_sparse.csr_array(matrix)
    rows.sort_indices()
    lengths = np.diff(rows.indptr)
    columns = np.arange(lengths.max(initial=0))
    is_term = columns < lengths[:, None]
    at = np.where(is_term, rows.indptr[:-1, None] + columns, 0)
    if not rows.nnz:
        return np.full(at.shape, -1), np.zeros(at.shape), np.asarray(bias, dtype=np.float64)
    index, weights = np.where(is_term, rows.indices[at], -1), np.where(is_term, rows.data[at], 0.0)
    return index, weights, np.asarray(bias, dtype=np.float64)


def _scaled(
    numbers: ValueNumbers, operator: ScaleShift, values: np.ndarray, shape: Shape, *, is_gradient: bool
) -> np.ndarray:
    """The numbers (n,) of a ScaleShift with rounded factor and shift, by the exact numbers that define it."""
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
