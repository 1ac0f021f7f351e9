"""Operators of a graph: their effect on a batch of values, on a shape, and as an affine map of flattened values.

A value of shape S is an array (B, *S): B images, S the shape of one image in the model file, including the file's batch
axis of length 1. `apply` computes on such arrays; `affine` is written separately, so each checks the other. `windows`
has convolution and pooling.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..lazily import scipy_sparse

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Shape: TypeAlias = tuple[int, ...]
Array: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = "Array | csr_array"


class ShapeError(ValueError):
    """An operator does not fit a value of this shape; `from_onnx` adds file and node to the message."""


class Operator(ABC):
    """One step of a graph; its constants are its only state."""

    @abstractmethod
    def output_shape(self, *shapes: Shape) -> Shape:
        """Shape of the result for inputs of these shapes; raises ShapeError."""

    @abstractmethod
    def apply(self, *values: Array) -> Array:
        """Result (B, *output shape) for inputs (B, *input shape)."""


@dataclass(frozen=True, eq=False)
class Linear(Operator):
    """An operator that is affine in its one input.

    read_roundings: how often reading the model rounded its constants, each time relative to their own size.
    own_roundings: how often `affine` rounds them.
    """

    own_roundings: ClassVar[int] = 0
    read_roundings: int = field(default=0, kw_only=True)

    @property
    def roundings(self) -> int:
        """An upper bound on the roundings of its constants; proofs are about `affine` with exact constants."""
        return self.read_roundings + self.own_roundings

    def entries(self, shape: Shape) -> int:
        """An upper bound on the entries that `affine` stores, known before allocation: by default one per result."""
        return prod(self.output_shape(shape))

    @abstractmethod
    def affine(self, shape: Shape) -> tuple[Matrix, Array]:
        """Matrix (n_out, n_in) and bias (n_out,) on flattened values."""


class Relu(Operator):
    """max(x, 0) elementwise."""

    def output_shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    def apply(self, *values: Array) -> Array:
        return np.maximum(values[0], 0.0)


@dataclass(frozen=True)
class Reshape(Linear):
    """The same numbers in the same order under another shape (also Flatten, Squeeze and Unsqueeze)."""

    shape: Shape

    def output_shape(self, *shapes: Shape) -> Shape:
        if prod(shapes[0]) != prod(self.shape):
            raise ShapeError(f"cannot reshape {list(shapes[0])} to {list(self.shape)}")
        return self.shape

    def apply(self, *values: Array) -> Array:
        return values[0].reshape(values[0].shape[0], *self.shape)

    def affine(self, shape: Shape) -> tuple[Matrix, Array]:
        return select(np.arange(prod(shape)), prod(shape)), np.zeros(prod(shape))


@dataclass(frozen=True)
class Transpose(Linear):
    """Axis i of the result is axis order[i] of the input."""

    order: tuple[int, ...]

    def output_shape(self, *shapes: Shape) -> Shape:
        if sorted(self.order) != list(range(len(shapes[0]))):
            raise ShapeError(f"perm {list(self.order)} does not fit a value of shape {list(shapes[0])}")
        return tuple(shapes[0][axis] for axis in self.order)

    def apply(self, *values: Array) -> Array:
        return values[0].transpose(0, *(axis + 1 for axis in self.order))

    def affine(self, shape: Shape) -> tuple[Matrix, Array]:
        index = np.arange(prod(shape)).reshape(shape).transpose(self.order).ravel()
        return select(index, prod(shape)), np.zeros(prod(shape))


@dataclass(frozen=True)
class Pad(Linear):
    """A constant before and after each axis; a negative amount crops."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    fill: float = 0.0

    def output_shape(self, *shapes: Shape) -> Shape:
        if not len(self.before) == len(self.after) == len(shapes[0]):
            raise ShapeError(f"{2 * len(self.before)} pads do not fit a value of shape {list(shapes[0])}")
        sides = list(zip(shapes[0], self.before, self.after, strict=True))
        padded = tuple(size + b + a for size, b, a in sides)
        cut = tuple(size + min(b, 0) + min(a, 0) for size, b, a in sides)
        if min(padded + cut, default=1) < 1:
            raise ShapeError(f"pads {list(self.before + self.after)} leave nothing of shape {list(shapes[0])}")
        return padded

    def apply(self, *values: Array) -> Array:
        inner = tuple(
            slice(max(-b, 0), size - max(-a, 0))
            for size, b, a in zip(values[0].shape[1:], self.before, self.after, strict=True)
        )
        widths = [(max(b, 0), max(a, 0)) for b, a in zip(self.before, self.after, strict=True)]
        return np.pad(values[0][(slice(None), *inner)], [(0, 0), *widths], constant_values=self.fill)

    def affine(self, shape: Shape) -> tuple[Matrix, Array]:
        source = np.full(self.output_shape(shape), -1)
        ends = [(max(0, -b), min(size, size + a)) for size, b, a in zip(shape, self.before, self.after, strict=True)]
        kept = np.arange(prod(shape)).reshape(shape)[tuple(slice(*end) for end in ends)]
        source[tuple(slice(low + b, high + b) for (low, high), b in zip(ends, self.before, strict=True))] = kept
        index = source.ravel()
        return select(index, prod(shape)), np.where(index < 0, self.fill, 0.0)


@dataclass(frozen=True, eq=False)
class Select(Linear):
    """Entries of the flattened value in any order, with repetitions, and constants between them.

    Used for Slice, Gather, Split, Expand, Tile, the other modes of Pad, nearest Resize, and a Concat with constants.
    index (n,): the entry for every number of the result, or −1 to take it from `fill` (one number for all, or (n,)).
    """

    index: NDArray[np.int64]
    shape: Shape
    fill: Array | float = 0.0

    def __post_init__(self) -> None:
        if prod(self.shape) != len(self.index):
            raise ShapeError(f"{len(self.index)} numbers do not fill the shape {list(self.shape)}")

    def output_shape(self, *shapes: Shape) -> Shape:
        if self.index.max(initial=-1) >= prod(shapes[0]):
            raise ShapeError(f"its indices do not fit a value of shape {list(shapes[0])}")
        return self.shape

    def apply(self, *values: Array) -> Array:
        chosen = values[0].reshape(len(values[0]), -1)[:, self.index]
        is_filled = self.index < 0
        if is_filled.any():
            chosen[:, is_filled] = np.broadcast_to(self.fill, self.index.shape)[is_filled]
        return chosen.reshape(len(chosen), *self.shape)

    def affine(self, shape: Shape) -> tuple[Matrix, Array]:
        return select(self.index, prod(shape)), np.where(self.index < 0, self.fill, 0.0)


SCALE_ROUNDINGS = 6
"""Roundings of factor and shift: √(variance + epsilon) counts 1.5, two products and a quotient 3, a difference 1."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ScaleShift(Linear):
    """(x·multiplier − mean)·gain / (divisor·√(variance + epsilon)) + offset elementwise, with broadcasting.

    Used for Add, Sub, Mul, Div, BatchNormalization and preprocessing. These constants are exact, up to
    `read_roundings`; without a variance there is no root. `factor` and `shift` give the same map as x·factor + shift in
    float64; raises FloatingPointError if they leave its range.
    """

    multiplier: Array | float = 1.0
    mean: Array | float = 0.0
    gain: Array | float = 1.0
    divisor: Array | float = 1.0
    variance: Array | None = None
    epsilon: float = 0.0
    offset: Array | float = 0.0
    factor: Array = field(init=False)
    shift: Array = field(init=False)

    def __post_init__(self) -> None:
        with np.errstate(over="raise", under="raise", divide="raise", invalid="raise"):
            root = 1.0 if self.variance is None else np.sqrt(self.variance + self.epsilon)
            spread = self.divisor * root
            factor = self.multiplier * self.gain / spread
            shift = self.offset - self.mean * self.gain / spread
        object.__setattr__(self, "factor", np.asarray(factor, dtype=np.float64))
        object.__setattr__(self, "shift", np.asarray(shift, dtype=np.float64))

    @property
    def is_rounded(self) -> bool:
        """Whether factor and shift need any arithmetic."""
        is_product = np.any(np.not_equal(self.multiplier, 1.0)) and np.any(np.not_equal(self.gain, 1.0))
        has_quotient = self.variance is not None or np.any(np.not_equal(self.divisor, 1.0))
        return bool(is_product or has_quotient or np.any(self.mean))

    @property
    def roundings(self) -> int:
        """Roundings of the factor relative to its size, and of the shift relative to `shift_size`."""
        return self.read_roundings + (SCALE_ROUNDINGS if self.is_rounded else 0)

    @property
    def shift_size(self) -> Array:
        """An upper bound on Σ|terms| of the shift: offset and mean may cancel, but their rounding errors do not."""
        # shift = offset − moved, so |offset| + |moved| ≤ |shift| + 2 |offset|.
        return np.abs(self.shift) + (2.0 * np.abs(self.offset) if self.is_rounded else 0.0)

    def output_shape(self, *shapes: Shape) -> Shape:
        try:
            return np.broadcast_shapes(shapes[0], self.factor.shape, self.shift.shape)
        except ValueError:
            constant = np.broadcast_shapes(self.factor.shape, self.shift.shape)
            raise ShapeError(f"a constant of shape {list(constant)} does not fit {list(shapes[0])}") from None

    def apply(self, *values: Array) -> Array:
        batch, *shape = values[0].shape
        rank = len(self.output_shape(tuple(shape)))
        aligned = values[0].reshape(batch, *(1,) * (rank - len(shape)), *shape)
        return aligned * self.factor + self.shift

    def affine(self, shape: Shape) -> tuple[Matrix, Array]:
        # One entry per row: diagonal unless the value itself is repeated.
        target = self.output_shape(shape)
        index = np.broadcast_to(np.arange(prod(shape)).reshape(shape), target).ravel()
        factor = np.broadcast_to(self.factor, target).ravel()
        return select(index, prod(shape), factor), np.broadcast_to(self.shift, target).flatten()


@dataclass(frozen=True, eq=False)
class MatMul(Linear):
    """x @ weight + bias over the last axis; weight (k, n), bias (n,)."""

    weight: Array
    bias: Array

    def output_shape(self, *shapes: Shape) -> Shape:
        if not shapes[0] or shapes[0][-1] != self.weight.shape[0]:
            raise ShapeError(f"a weight of shape {list(self.weight.shape)} does not fit {list(shapes[0])}")
        return (*shapes[0][:-1], self.weight.shape[1])

    def apply(self, *values: Array) -> Array:
        return values[0] @ self.weight + self.bias

    def entries(self, shape: Shape) -> int:
        return prod(shape[:-1]) * self.weight.size

    def affine(self, shape: Shape) -> tuple[Matrix, Array]:
        rows = prod(shape[:-1])
        return repeat(np.ascontiguousarray(self.weight.T), rows), np.tile(self.bias, rows)


@dataclass(frozen=True, eq=False)
class LeftMatMul(Linear):
    """weight @ x over the axis before the last (the only axis of a vector); weight (m, k)."""

    weight: Array

    def output_shape(self, *shapes: Shape) -> Shape:
        axis = max(len(shapes[0]) - 2, 0)
        if not shapes[0] or shapes[0][axis] != self.weight.shape[1]:
            raise ShapeError(f"a weight of shape {list(self.weight.shape)} does not fit {list(shapes[0])}")
        return (*shapes[0][:axis], self.weight.shape[0], *shapes[0][axis + 1 :])

    def apply(self, *values: Array) -> Array:
        return values[0] @ self.weight.T if values[0].ndim == 2 else self.weight @ values[0]

    def entries(self, shape: Shape) -> int:
        return prod(shape) // self.weight.shape[1] * self.weight.size

    def affine(self, shape: Shape) -> tuple[Matrix, Array]:
        columns = shape[-1] if len(shape) > 1 else 1
        block = (
            self.weight
            if columns == 1
            else scipy_sparse.kron(self.weight, scipy_sparse.eye_array(columns), format="csr")
        )
        return repeat(block, prod(shape[:-2])), np.zeros(prod(self.output_shape(shape)))


@dataclass(frozen=True)
class Mean(Linear):
    """Mean over some axes, kept with length 1 (ReduceMean, GlobalAveragePool)."""

    own_roundings: ClassVar[int] = 1  # 1/count
    axes: tuple[int, ...]

    def output_shape(self, *shapes: Shape) -> Shape:
        if any(not 0 <= axis < len(shapes[0]) for axis in self.axes):
            raise ShapeError(f"axes {list(self.axes)} do not exist in shape {list(shapes[0])}")
        return tuple(1 if axis in self.axes else size for axis, size in enumerate(shapes[0]))

    def apply(self, *values: Array) -> Array:
        return values[0].mean(axis=tuple(axis + 1 for axis in self.axes), keepdims=True)

    def entries(self, shape: Shape) -> int:
        return prod(shape)

    def affine(self, shape: Shape) -> tuple[Matrix, Array]:
        target = self.output_shape(shape)
        return _summing_matrix(shape, target, 1.0 / (prod(shape) // prod(target))), np.zeros(prod(target))


@dataclass(frozen=True)
class Total(Linear):
    """Sum over some axes, kept with length 1 (ReduceSum)."""

    axes: tuple[int, ...]

    def output_shape(self, *shapes: Shape) -> Shape:
        return Mean(self.axes).output_shape(*shapes)

    def apply(self, *values: Array) -> Array:
        return values[0].sum(axis=tuple(axis + 1 for axis in self.axes), keepdims=True)

    def entries(self, shape: Shape) -> int:
        return prod(shape)

    def affine(self, shape: Shape) -> tuple[Matrix, Array]:
        target = self.output_shape(shape)
        return _summing_matrix(shape, target, 1.0), np.zeros(prod(target))


def _summing_matrix(shape: Shape, target: Shape, weight: float) -> "csr_array":
    """The matrix that sums, times a weight, the entries of a value to which one target entry would be broadcast."""
    row = np.broadcast_to(np.arange(prod(target)).reshape(target), shape).ravel()
    data = np.full(row.size, weight)
    return scipy_sparse.csr_array((data, (row, np.arange(row.size))), shape=(prod(target), row.size))


@dataclass(frozen=True, eq=False)
class WeightedSum(Linear):
    """Every number of the result is a weighted sum of k entries of the flattened value (linear Resize).

    index and weights: (n, k), the entries and their weights for every number. An entry may appear several times, with
    weights of one sign: `affine` adds them up.
    """

    index: NDArray[np.int64]
    weights: Array
    shape: Shape

    @property
    def roundings(self) -> int:
        return self.read_roundings + self._sums

    @cached_property
    def _sums(self) -> int:
        """How often `affine` rounds the summed weights of one entry, relative to their size."""
        places = np.arange(len(self.index))[:, None] * (int(self.index.max(initial=0)) + 1) + self.index
        counts, rising, falling = (
            np.unique(places[kept], return_counts=True)[1]
            for kept in (self.weights != 0.0, self.weights > 0.0, self.weights < 0.0)
        )
        if len(rising) + len(falling) > len(counts):
            raise ValueError("weights of one entry have different signs")
        return int(counts.max(initial=1)) - 1

    def output_shape(self, *shapes: Shape) -> Shape:
        if self.index.max(initial=-1) >= prod(shapes[0]) or prod(self.shape) != len(self.index):
            raise ShapeError(f"its weights do not fit a value of shape {list(shapes[0])}")
        return self.shape

    def apply(self, *values: Array) -> Array:
        flat = values[0].reshape(len(values[0]), -1)
        columns = zip(self.index.T, self.weights.T, strict=True)
        total = sum((flat[:, index] * weight for index, weight in columns), start=np.zeros(()))
        return total.reshape(len(flat), *self.shape)

    def entries(self, shape: Shape) -> int:
        return self.index.size

    def affine(self, shape: Shape) -> tuple[Matrix, Array]:
        rows = np.repeat(np.arange(len(self.index)), self.index.shape[1])
        matrix = scipy_sparse.csr_array(
            (self.weights.ravel(), (rows, self.index.ravel())), shape=(len(self.index), prod(shape))
        )
        return matrix, np.zeros(len(self.index))


def select(index: NDArray[np.int64], size: int, factor: Array | None = None) -> "csr_array":
    """Matrix (len(index), size) whose row i is factor[i] at column index[i]; an index of -1 gives an empty row.

    >>> select(np.array([1, -1, 0]), 2).toarray()
    array([[0., 1.],
           [0., 0.],
           [1., 0.]])
    """
    kept = index >= 0
    data = np.ones(len(index)) if factor is None else factor
    pointers = np.concatenate([[0], np.cumsum(kept)])
    return scipy_sparse.csr_array((data[kept], index[kept], pointers), shape=(len(index), size))


def repeat(block: Matrix, times: int) -> Matrix:
    """Block diagonal matrix of `times` copies of a block; one copy is the block itself."""
    return block if times == 1 else scipy_sparse.kron(scipy_sparse.eye_array(times), block, format="csr")
