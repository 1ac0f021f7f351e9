"""Linear steps between the layers of a graph, with products forward and backward, with signed and absolute weights.

Convolutions stay convolutions, and steps are not fused: every weight is one of the graph's own constants.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import TypeAlias

import numpy as np

from ..lazily import scipy_sparse
from .operators import Array, Linear, Matrix, ScaleShift, Shape, Transpose, select
from .windows import CACHED, Conv, gather, scatter


class Step(ABC):
    """x → W x + bias on flattened values; batches are rows.

    `terms` and `backward_terms` bound how many numbers are summed in one entry of a product with W, or with its
    transpose, plus `roundings`: how often an entry of W is itself rounded, relative to its size. The bias is rounded as
    often, relative to `bias_size` (n_out,), which is at least |bias|. `weights` holds all stored entries of W, in any
    order, and `work` counts the multiplications of one product with one vector. A selection has only the entries 0, 1
    and −1, and its products with matrices are exact.
    """

    sizes: tuple[int, int]
    bias: Array
    terms: int
    backward_terms: int
    weights: Array
    work: int
    roundings: int = 0
    is_selection: bool = False
    name: str = ""

    def named(self, name: str) -> "Step":
        """Give the step the name of its node, for messages; return the step."""
        self.name = name
        return self

    @abstractmethod
    def affine(self) -> tuple[Matrix, Array]:
        """Matrix (n_out, n_in) and bias (n_out,)."""

    @property
    def entries(self) -> int:
        """An upper bound on the entries that the matrix of `affine` stores, known before any allocation."""
        return self.sizes[1]

    @cached_property
    def bias_size(self) -> Array:
        """The reference size for rounding errors of the bias: |bias|, unless it is a difference of rounded numbers."""
        return np.abs(self.bias)

    def count_roundings(self, operator: Linear, shape: Shape) -> "Step":
        """Add the roundings of the constants of the step's operator; return the step."""
        self.roundings = operator.roundings
        self.terms += self.roundings
        self.backward_terms += self.roundings
        if isinstance(operator, ScaleShift):
            self.bias_size = np.broadcast_to(operator.shift_size, operator.output_shape(shape)).ravel()
        return self

    def forward(self, values: Array) -> Array:
        """W x for rows x: (N, n_in) → (N, n_out), without the bias."""
        return self._forward(values, is_absolute=False)

    def forward_abs(self, values: Array) -> Array:
        """|W| x for rows x."""
        return self._forward(values, is_absolute=True)

    def backward(self, rows: Array) -> Array:
        """r W for rows r: (N, n_out) → (N, n_in)."""
        return self._backward(rows, is_absolute=False)

    def backward_abs(self, rows: Array) -> Array:
        """r |W| for rows r."""
        return self._backward(rows, is_absolute=True)

    @abstractmethod
    def _forward(self, values: Array, *, is_absolute: bool) -> Array: ...

    @abstractmethod
    def _backward(self, rows: Array, *, is_absolute: bool) -> Array: ...

    @cached_property
    def smallest(self) -> float:
        """The smallest nonzero |entry| of W; infinite if there is none."""
        sizes = np.abs(self.weights)
        return float(sizes.min(initial=np.inf, where=sizes > 0.0))


class MatrixStep(Step):
    """A step by a matrix (n_out, n_in), dense or sparse."""

    def __init__(self, matrix: Matrix, bias: Array, *, is_selection: bool = False) -> None:
        self.matrix, self.bias, self.is_selection = matrix, bias, is_selection
        self.sizes, self.work = (matrix.shape[1], matrix.shape[0]), int(matrix.size)
        absolute = abs(matrix)
        if isinstance(matrix, np.ndarray):
            self.weights = matrix
            transposed, absolute_transposed = matrix.T, absolute.T
            self.terms, self.backward_terms = matrix.shape[1] + 1, matrix.shape[0] + 1
        else:
            self.weights = matrix.data
            transposed, absolute_transposed = scipy_sparse.csr_array(matrix.T), scipy_sparse.csr_array(absolute.T)
            self.terms, self.backward_terms = (
                int(np.diff(rows.indptr).max(initial=0)) + 1 for rows in (matrix, transposed)
            )
        self._pairs = ((matrix, transposed), (absolute, absolute_transposed))

    @property
    def entries(self) -> int:
        return self.work

    def affine(self) -> tuple[Matrix, Array]:
        return self.matrix, self.bias

    def _forward(self, values: Array, *, is_absolute: bool) -> Array:
        return _product(values, *self._pairs[is_absolute])

    def _backward(self, rows: Array, *, is_absolute: bool) -> Array:
        return _product(rows, *self._pairs[is_absolute][::-1])


def _product(values: Array, matrix: Matrix, transposed: Matrix) -> Array:
    if isinstance(transposed, np.ndarray):
        return values @ transposed
    return np.ascontiguousarray((matrix @ values.T).T)


class ScaleStep(Step):
    """Every number times its own factor."""

    def __init__(self, factor: Array, bias: Array) -> None:
        self.factor = self.weights = factor
        self.bias, self.sizes, self.work = bias, (len(factor), len(factor)), len(factor)
        self.terms = self.backward_terms = 1

    def affine(self) -> tuple[Matrix, Array]:
        return select(np.arange(len(self.factor)), len(self.factor), self.factor), self.bias

    def _forward(self, values: Array, *, is_absolute: bool) -> Array:
        return values * (np.abs(self.factor) if is_absolute else self.factor)

    def _backward(self, rows: Array, *, is_absolute: bool) -> Array:
        return self._forward(rows, is_absolute=is_absolute)


class OrderStep(Step):
    """The same numbers in another order: entry i of the result is entry order[i]."""

    is_selection = True

    def __init__(self, order: np.ndarray) -> None:
        self.order, self.inverse = order, np.argsort(order)
        self.bias, self.weights = np.zeros(len(order)), np.ones(1)
        self.sizes, self.work = (len(order), len(order)), len(order)
        self.terms = self.backward_terms = 0

    def affine(self) -> tuple[Matrix, Array]:
        return select(self.order, len(self.order)), self.bias

    def _forward(self, values: Array, *, is_absolute: bool) -> Array:
        return values[:, self.order]

    def _backward(self, rows: Array, *, is_absolute: bool) -> Array:
        return rows[:, self.inverse]


class ConvStep(Step):
    """A convolution in two spatial dimensions, one image at a time, without groups."""

    def __init__(self, conv: Conv, shape: Shape) -> None:
        self.conv, self.whole, self.shape = conv, shape, shape[1:]
        target = conv.output_shape(shape)
        self.target = target[1:]
        self.sizes = (prod(shape), prod(target))
        self.weight = self.weights = conv.weight.reshape(len(conv.weight), -1)
        self._kernels = (self.weight, np.abs(self.weight))
        self.work = self.weight.size * prod(self.target[1:])
        self.bias = np.repeat(conv.bias, prod(self.target[1:]))
        window, places = conv.window, prod(conv.window.kernel)
        self.window = np.array([*window.strides, *window.dilations, *window.before])
        self.terms, self.backward_terms = self.weight.shape[1] + 1, len(self.weight) * places + 1

    @property
    def entries(self) -> int:
        return self.conv.entries(self.whole)

    def affine(self) -> tuple[Matrix, Array]:
        return self.conv.affine(self.whole)

    def _forward(self, values: Array, *, is_absolute: bool) -> Array:
        weight, images = self._kernels[is_absolute], np.ascontiguousarray(values).reshape(-1, *self.shape)
        result = np.empty((len(images), len(weight), prod(self.target[1:])))
        for part in self._parts(len(images)):
            columns = self._columns(len(images[part]))
            gather(images[part], self.window, columns)
            np.matmul(weight, columns.reshape(len(columns), weight.shape[1], -1), out=result[part])
        return result.reshape(len(images), self.sizes[1])

    def _backward(self, rows: Array, *, is_absolute: bool) -> Array:
        weight = self._kernels[is_absolute]
        above = np.ascontiguousarray(rows).reshape(-1, len(weight), prod(self.target[1:]))
        images = np.empty((len(rows), *self.shape))
        for part in self._parts(len(rows)):
            columns = self._columns(len(images[part]))
            np.matmul(weight.T, above[part], out=columns.reshape(len(columns), weight.shape[1], -1))
            scatter(columns, self.window, images[part])
        return images.reshape(len(rows), self.sizes[0])

    def _columns(self, count: int) -> Array:
        return np.empty((count, self.shape[0], *self.conv.window.kernel, *self.target[1:]))

    def _parts(self, count: int) -> list[slice]:
        """Slices of images whose columns stay in the cache."""
        step = max(1, CACHED // (self.weight.shape[1] * prod(self.target[1:])))
        return [slice(first, first + step) for first in range(0, count, step)]


class PartStep(Step):
    """A step on adjacent values; `before` values in front of them and `after` values behind them stay unchanged."""

    def __init__(self, inner: Step, before: int, after: int) -> None:
        self.inner, self.name, self.is_selection = inner, inner.name, inner.is_selection
        self.sizes = (before + inner.sizes[0] + after, before + inner.sizes[1] + after)
        self.before = before
        self.bias = np.concatenate([np.zeros(before), inner.bias, np.zeros(after)])
        self.bias_size = np.concatenate([np.zeros(before), inner.bias_size, np.zeros(after)])
        self.weights = np.append(inner.weights, 1.0)
        self.work, self.roundings = inner.work, inner.roundings
        self.terms, self.backward_terms = inner.terms, inner.backward_terms

    @property
    def entries(self) -> int:
        return self.inner.entries + self.sizes[1] - self.inner.sizes[1]

    def affine(self) -> tuple[Matrix, Array]:
        after = self.sizes[1] - self.before - self.inner.sizes[1]
        blocks = [scipy_sparse.eye_array(self.before), self.inner.affine()[0], scipy_sparse.eye_array(after)]
        kept = [block for block in blocks if block.shape[1]]
        return scipy_sparse.csr_array(scipy_sparse.block_diag(kept, format="csr")), self.bias

    def _forward(self, values: Array, *, is_absolute: bool) -> Array:
        low, high = self.before, self.before + self.inner.sizes[0]
        inner = self.inner._forward(np.ascontiguousarray(values[:, low:high]), is_absolute=is_absolute)
        return np.concatenate([values[:, :low], inner, values[:, high:]], axis=1)

    def _backward(self, rows: Array, *, is_absolute: bool) -> Array:
        low, high = self.before, self.before + self.inner.sizes[1]
        inner = self.inner._backward(np.ascontiguousarray(rows[:, low:high]), is_absolute=is_absolute)
        return np.concatenate([rows[:, :low], inner, rows[:, high:]], axis=1)


class ArrangeStep(Step):
    """Whole values, given by their sizes, rearranged: the values at places `order`, some dropped, some repeated."""

    def __init__(self, sizes: Sequence[int], order: Sequence[int]) -> None:
        ends = np.cumsum([0, *sizes])
        self.slices = [slice(int(ends[place]), int(ends[place + 1])) for place in order]
        self.sizes = (int(ends[-1]), sum(sizes[place] for place in order))
        self.bias, self.weights, self.work = np.zeros(self.sizes[1]), np.ones(1), self.sizes[1]
        most = max(map(list(order).count, order))
        self.terms, self.backward_terms = 0, most if most > 1 else 0
        # One entry of a product may sum repeated values.
        self.is_selection = most == 1

    def affine(self) -> tuple[Matrix, Array]:
        index = np.concatenate([np.arange(part.start, part.stop) for part in self.slices])
        return select(index, self.sizes[0]), self.bias

    def _forward(self, values: Array, *, is_absolute: bool) -> Array:
        return np.concatenate([values[:, part] for part in self.slices], axis=1)

    def _backward(self, rows: Array, *, is_absolute: bool) -> Array:
        result, first = np.zeros((len(rows), self.sizes[0])), 0
        for part in self.slices:
            size = part.stop - part.start
            result[:, part] += rows[:, first : first + size]
            first += size
        return result


class SumStep(Step):
    """The sum of values of the same size that lie side by side, each with its sign."""

    is_selection = True

    def __init__(self, size: int, signs: Sequence[int]) -> None:
        self.signs = np.array(signs, dtype=np.float64)
        self.sizes = (size * len(signs), size)
        self.bias, self.weights, self.work = np.zeros(size), np.ones(1), size * len(signs)
        self.terms, self.backward_terms = len(signs) + 1, 0

    @property
    def entries(self) -> int:
        return self.sizes[0]

    def affine(self) -> tuple[Matrix, Array]:
        return scipy_sparse.csr_array(
            scipy_sparse.kron(self.signs[None], scipy_sparse.eye_array(self.sizes[1]))
        ), self.bias

    def _forward(self, values: Array, *, is_absolute: bool) -> Array:
        parts = values.reshape(len(values), len(self.signs), self.sizes[1])
        return np.einsum("bmn,m->bn", parts, np.abs(self.signs) if is_absolute else self.signs)

    def _backward(self, rows: Array, *, is_absolute: bool) -> Array:
        signs = np.abs(self.signs) if is_absolute else self.signs
        return (rows[:, None, :] * signs[:, None]).reshape(len(rows), self.sizes[0])


def step_of(operator: Linear, shape: Shape) -> Step:
    """The step of an operator on a value of this shape."""
    return _step(operator, shape).count_roundings(operator, shape)


def _step(operator: Linear, shape: Shape) -> Step:
    if isinstance(operator, Conv) and shape[0] == 1 and operator.groups == 1 and len(shape) == 4:
        return ConvStep(operator, shape)
    if isinstance(operator, ScaleShift) and prod(operator.output_shape(shape)) == prod(shape):
        factor = np.broadcast_to(operator.factor, operator.output_shape(shape)).ravel()
        return ScaleStep(factor, np.broadcast_to(operator.shift, operator.output_shape(shape)).ravel())
    if isinstance(operator, Transpose):
        return OrderStep(np.arange(prod(shape)).reshape(shape).transpose(operator.order).ravel())
    return MatrixStep(*operator.affine(shape))


Segment: TypeAlias = Sequence[Step]
"""The steps to one layer, or to the logits."""


def is_folded(segment: Segment) -> bool:
    """Whether the steps, joined into one matrix, have rounded constants: then a zero of the matrix proves nothing."""
    return sum(not step.is_selection for step in segment) > 1 or any(step.roundings for step in segment)


def upwards(segment: Segment, values: Array) -> Array:
    """Carry values (B, n_in) through the steps: (B, n_out)."""
    for step in segment:
        values = step.forward(values) + step.bias
    return values


def magnitude(segment: Segment, sizes: Array) -> Array:
    """The largest sums Σ|weight · value| + |bias| (B, n_out) for |values| up to `sizes` (B, n_in).

    For a bias that is itself a sum, its |terms| are added, because its rounding errors are relative to them.
    """
    for step in segment:
        sizes = step.forward_abs(sizes) + step.bias_size
    return sizes


def downwards(segment: Segment, rows: Array) -> Array:
    """Gradients (B, n_in) with respect to the input of the steps, given those with respect to their result."""
    for step in reversed(segment):
        rows = step.backward(rows)
    return rows
