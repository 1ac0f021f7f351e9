"""Affine forms in whole numbers: every linear operator of a graph as an exact map of `WholeForms`.

The weights of MatMul and Conv are taken as exact; means divide by their exact count; `whole_numbers` encloses the
factors of a ScaleShift.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm, prod

import numpy as np
from flint import fmpz, fmpz_mat

from ..errors import ModelError
from ..lazily import scipy_sparse
from ..network.operators import LeftMatMul, Linear, MatMul, Mean, Pad, Reshape, ScaleShift, Shape, Transpose
from ..network.windows import AveragePool, Conv, Window
from .whole_numbers import Constants, from_floats, scale_constants


@dataclass(frozen=True, eq=False)
class WholeForms:
    """Values of a layer, of shape S, as affine forms of t: (numbers · (t, 1) ± radii) / denominator.

    numbers (*S, C) are whole, the constants last; radii (*S) are whole, or None if all values are exact.
    """

    numbers: np.ndarray
    radii: np.ndarray | None
    denominator: fmpz

    @property
    def rows(self) -> np.ndarray:
        """The numbers as (n, C)."""
        return self.numbers.reshape(-1, self.numbers.shape[-1])

    @property
    def sizes(self) -> np.ndarray:
        """A bound (*S) on |numbers · (t, 1)| over the unit cube."""
        return np.abs(self.numbers).sum(axis=-1)

    def add(self, constants: Constants) -> "WholeForms":
        """Add constants that broadcast to S."""
        common = self.denominator * constants.denominator // self.denominator.gcd(constants.denominator)
        own, other = common // self.denominator, common // constants.denominator
        numbers = self.numbers * own if own != 1 else self.numbers.copy()
        numbers[..., -1] += constants.numbers * other
        radii = None if self.radii is None else self.radii * own
        if constants.radii is not None:
            added = np.broadcast_to(constants.radii * other, numbers.shape[:-1])
            radii = added.copy() if radii is None else radii + added
        return WholeForms(numbers, radii, common)

    def gated(self, is_active: np.ndarray, radii: np.ndarray | None) -> "WholeForms":
        """The values after a layer: zero for inactive neurons (n,), with new radii (n,)."""
        numbers = self.rows.copy()
        numbers[~is_active] = fmpz(0)
        kept = None if radii is None else radii.reshape(self.numbers.shape[:-1])
        return WholeForms(numbers.reshape(self.numbers.shape), kept, self.denominator)

    def reshaped(self, shape: Shape) -> "WholeForms":
        """The same values in another shape."""
        radii = None if self.radii is None else self.radii.reshape(shape)
        return WholeForms(self.numbers.reshape(*shape, -1), radii, self.denominator)

    def chosen(self, index: np.ndarray) -> "WholeForms":
        """Values at places of the flattened array, in the shape of the index."""
        radii = None if self.radii is None else self.radii.ravel()[index]
        return WholeForms(self.rows[index], radii, self.denominator)

    def one_minus(self) -> "WholeForms":
        """1 − value."""
        numbers = -self.numbers
        numbers[..., -1] += self.denominator
        return WholeForms(numbers, self.radii, self.denominator)


def aligned(values: Sequence[WholeForms]) -> list[WholeForms]:
    """The same values over one denominator, all with radii if one has them."""
    common = fmpz(1)
    for value in values:
        common = common * value.denominator // common.gcd(value.denominator)
    has_radii = any(value.radii is not None for value in values)
    results = []
    for value in values:
        factor, radii = common // value.denominator, value.radii
        if radii is None and has_radii:
            radii = np.full(value.numbers.shape[:-1], fmpz(0), dtype=object)
        is_same = factor == 1
        numbers = value.numbers if is_same else value.numbers * factor
        results.append(WholeForms(numbers, radii if is_same or radii is None else radii * factor, common))
    return results


def to_matrix(rows: np.ndarray) -> fmpz_mat:
    """Whole numbers (n, m) as a matrix."""
    return fmpz_mat(rows.shape[0], rows.shape[1], rows.ravel().tolist())


def multiply(matrix: fmpz_mat, columns: np.ndarray) -> np.ndarray:
    """matrix (n, k) times columns (k, m), exactly."""
    product = matrix * to_matrix(columns)
    result = np.empty(product.nrows() * product.ncols(), dtype=object)
    result[:] = product.entries()
    return result.reshape(product.nrows(), product.ncols())


ZERO = fmpz(0)


class ExactMap(ABC):
    """x → (W x) / denominator + bias on arrays of whole numbers (*S, C)."""

    denominator = fmpz(1)
    bias: Constants | None = None

    @abstractmethod
    def product(self, numbers: np.ndarray, *, absolute: bool = False) -> np.ndarray:
        """W x, or |W| x, for numbers (*S, C)."""

    def __call__(self, forms: WholeForms) -> WholeForms:
        """Return the forms of the result."""
        radii = None if forms.radii is None else self.product(forms.radii[..., None], absolute=True)[..., 0]
        result = WholeForms(self.product(forms.numbers), radii, forms.denominator * self.denominator)
        return result if self.bias is None else result.add(self.bias)


class _Selected(ExactMap):
    """Reshape, Transpose and Pad: each entry of the result is an entry of the input, or zero."""

    def __init__(self, operator: Reshape | Transpose | Pad, shape: Shape) -> None:
        places = np.arange(1.0, 1.0 + prod(shape)).reshape(1, *shape)
        fill = operator.fill if isinstance(operator, Pad) else 0.0
        source = replace(operator, fill=0.0) if isinstance(operator, Pad) else operator
        self.places = source.apply(places)[0].astype(np.int64)  # 0 is the index of the zero outside
        self.bias = from_floats(np.where(self.places == 0, fill, 0.0)) if fill else None

    def product(self, numbers: np.ndarray, *, absolute: bool = False) -> np.ndarray:
        zero = np.full((1, numbers.shape[-1]), ZERO, dtype=object)
        return np.concatenate([zero, numbers.reshape(-1, numbers.shape[-1])])[self.places]


class _Scaled(ExactMap):
    def __init__(self, factor: Constants, shift: Constants, target: Shape) -> None:
        self.factor, self.bias, self.target = factor, shift, target
        self.denominator = factor.denominator

    def product(self, numbers: np.ndarray, *, absolute: bool = False) -> np.ndarray:
        factor = np.abs(self.factor.numbers) if absolute else self.factor.numbers
        return self._aligned(numbers) * factor[..., None]

    def __call__(self, forms: WholeForms) -> WholeForms:
        result = super().__call__(forms)
        if self.factor.radii is None:
            return result
        sizes = forms.sizes if forms.radii is None else forms.sizes + forms.radii
        # Because of the shift, the denominator of `result` may exceed the product of both denominators.
        lifted = result.denominator // (forms.denominator * self.denominator)
        radii = self._aligned(sizes[..., None])[..., 0] * self.factor.radii * lifted
        return WholeForms(result.numbers, radii if result.radii is None else result.radii + radii, result.denominator)

    def _aligned(self, numbers: np.ndarray) -> np.ndarray:
        ones = (1,) * (len(self.target) - numbers.ndim + 1)
        return np.broadcast_to(numbers.reshape(*ones, *numbers.shape), (*self.target, numbers.shape[-1]))


class _Weighted(ExactMap):
    """Operators with matrices of weights, one for each group of inputs."""

    def __init__(self, weight: np.ndarray, bias: np.ndarray | None, groups: int = 1) -> None:
        constants = from_floats(weight)
        self.denominator = constants.denominator
        self.matrices = [to_matrix(part) for part in np.split(constants.numbers, groups)]
        self.bias = None if bias is None or not bias.any() else from_floats(bias)

    @cached_property
    def absolute(self) -> list[fmpz_mat]:
        """The matrices of |weights|."""
        return [fmpz_mat(m.nrows(), m.ncols(), [abs(entry) for entry in m.entries()]) for m in self.matrices]

    def times(self, columns: np.ndarray, absolute: bool) -> np.ndarray:
        """The matrices times their groups of columns."""
        matrices = self.absolute if absolute else self.matrices
        groups = np.split(columns, len(matrices))
        return np.concatenate([multiply(matrix, group) for matrix, group in zip(matrices, groups, strict=True)])


class _Multiplied(_Weighted):
    """MatMul and LeftMatMul: a matrix along one axis of the value."""

    def __init__(self, weight: np.ndarray, bias: np.ndarray | None, axis: int) -> None:
        super().__init__(weight, bias)
        self.axis = axis

    def product(self, numbers: np.ndarray, *, absolute: bool = False) -> np.ndarray:
        first = np.moveaxis(numbers, self.axis, 0)
        result = self.times(first.reshape(len(first), -1), absolute)
        return np.moveaxis(result.reshape(-1, *first.shape[1:]), 0, self.axis)


class _Convolved(_Weighted):
    """A convolution: channels (N, C, *spatial) to (N, O, *positions)."""

    def __init__(self, conv: Conv) -> None:
        bias = conv.bias.reshape(-1, *(1,) * len(conv.window.kernel))
        super().__init__(conv.weight.reshape(len(conv.weight), -1), bias, conv.groups)
        self.window = conv.window

    def product(self, numbers: np.ndarray, *, absolute: bool = False) -> np.ndarray:
        seen = _seen(self.window, numbers)  # (N, C, positions, places, K)
        batch, channels, positions, places, count = seen.shape
        columns = seen.transpose(1, 3, 0, 2, 4).reshape(channels * places, -1)
        result = self.times(columns, absolute).reshape(-1, batch, positions, count).transpose(1, 0, 2, 3)
        return result.reshape(batch, -1, *self.window.positions(numbers.shape[2:-1]), count)


class _Averaged(ExactMap):
    def __init__(self, operator: AveragePool, shape: Shape) -> None:
        self.window = operator.window
        divisors = operator._divisors(shape[2:])
        self.denominator = fmpz(lcm(*divisors.tolist()))
        self.factors = np.array([self.denominator // count for count in divisors.tolist()], dtype=object)

    def product(self, numbers: np.ndarray, *, absolute: bool = False) -> np.ndarray:
        sums = _seen(self.window, numbers).sum(axis=3) * self.factors[:, None]
        return sums.reshape(*numbers.shape[:2], *self.window.positions(numbers.shape[2:-1]), numbers.shape[-1])


class _Mean(ExactMap):
    def __init__(self, operator: Mean, shape: Shape) -> None:
        self.axes = operator.axes
        self.denominator = fmpz(prod(shape) // prod(operator.output_shape(shape)))

    def product(self, numbers: np.ndarray, *, absolute: bool = False) -> np.ndarray:
        return numbers.sum(axis=self.axes, keepdims=True)


class _Sparse(ExactMap):
    """Any other operator whose matrix entries are exact, row by row."""

    def __init__(self, operator: Linear, shape: Shape) -> None:
        matrix, bias = operator.affine(shape)
        self.matrix, self.target = scipy_sparse.csr_array(matrix), operator.output_shape(shape)
        constants = from_floats(self.matrix.data)
        self.denominator, self.data = constants.denominator, constants.numbers
        self.bias = from_floats(bias.reshape(self.target)) if bias.any() else None

    def product(self, numbers: np.ndarray, *, absolute: bool = False) -> np.ndarray:
        rows, count = numbers.reshape(-1, numbers.shape[-1]), numbers.shape[-1]
        terms = rows[self.matrix.indices] * (np.abs(self.data) if absolute else self.data)[:, None]
        result = np.full((self.matrix.shape[0], count), ZERO, dtype=object)
        starts = self.matrix.indptr[:-1]
        filled = np.flatnonzero(np.diff(self.matrix.indptr))
        if len(filled):
            result[filled] = np.add.reduceat(terms, starts[filled], axis=0)
        return result.reshape(*self.target, count)


def exact_map(operator: Linear, shape: Shape, bits: int) -> tuple[ExactMap, bool]:
    """The exact map of an operator on a value of this shape, and whether its constants are exact.

    Irrational constants are enclosed with this many bits. Raises ModelError for rounded constants.
    """
    found: ExactMap
    if operator.read_roundings:
        raise ModelError(
            "exact arithmetic does not support this model: reading it rounded some of its constants; "
            "simplify it (constant folding) on export"
        )
    match operator:
        case Reshape() | Transpose() | Pad():
            found = _Selected(operator, shape)
        case ScaleShift():
            factor, shift = scale_constants(operator, bits)
            is_exact = factor.radii is None and shift.radii is None
            return _Scaled(factor, shift, operator.output_shape(shape)), is_exact
        case MatMul():
            found = _Multiplied(operator.weight.T, operator.bias, len(shape) - 1)
        case LeftMatMul():
            found = _Multiplied(operator.weight, None, max(len(shape) - 2, 0))
        case Conv():
            found = _Convolved(operator)
        case AveragePool():
            found = _Averaged(operator, shape)
        case Mean():
            found = _Mean(operator, shape)
        case Linear() if not operator.roundings:
            found = _Sparse(operator, shape)
        case _:
            raise ModelError(
                f"exact arithmetic does not support {type(operator).__name__}, which this network contains"
            )
    return found, True


def _seen(window: Window, numbers: np.ndarray) -> np.ndarray:
    """The input at each place of the window and each position, 0 outside: (N, C, positions, places, K)."""
    batch, channels, *spatial, count = numbers.shape
    pixels = window.pixels(tuple(spatial))
    flat = numbers.reshape(batch, channels, -1, count)
    # Index −1, outside, is the appended zero.
    outside = np.full((batch, channels, 1, count), ZERO, dtype=object)
    return np.concatenate([flat, outside], axis=2)[:, :, pixels]
