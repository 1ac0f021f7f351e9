"""The classifier in whole numbers: every linear operator of a graph as an exact map of `WholeForms`.

The floats of MatMul and Conv count as exact; means divide by their exact count; `whole_numbers` encloses a Scale.
The graph must have no branches. `layer_walk` applies the ReLUs, which cut the domain.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm, prod

import numpy as np
from flint import fmpz, fmpz_mat

from ..errors import ModelError
from ..network.graph import Graph
from ..network.operators import LeftMatMul, Linear, MatMul, Mean, Operator, Pad, Relu, Reshape, Scale, Shape, Transpose
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

    def gated(self, is_active: np.ndarray, is_silent: np.ndarray) -> "WholeForms":
        """The values after a ReLU: zero if not active (n,), without a radius if silent (n,): surely not positive."""
        numbers = self.rows.copy()
        numbers[~is_active] = fmpz(0)
        radii = None
        if self.radii is not None:
            radii = self.radii.copy()
            radii[is_silent.reshape(radii.shape)] = fmpz(0)
        return WholeForms(numbers.reshape(self.numbers.shape), radii, self.denominator)

    def one_minus(self) -> "WholeForms":
        """1 − value."""
        numbers = -self.numbers
        numbers[..., -1] += self.denominator
        return WholeForms(numbers, self.radii, self.denominator)


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
        self.places = source.apply(places)[0].astype(np.int64)  # 0: outside, the index of the zero
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
        # The denominator of `result` may exceed that of forms times factor, because of the shift.
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


class ExactNetwork:
    """A graph as `segments`: for every ReLU, and for the logits, the exact maps that lead to it.

    `is_exact`: whether every constant is exact; otherwise more bits narrow the enclosures.
    """

    def __init__(self, graph: Graph, bits: int) -> None:
        self.segments: list[list[ExactMap]] = [[]]
        self.is_exact = True
        for number, node in enumerate(graph.nodes):
            if node.inputs != (number,):
                raise ModelError(f"node '{node.name}' joins or leaves a branch; exact arithmetic supports none")
            if isinstance(node.operator, Relu):
                self.segments.append([])
                continue
            self.segments[-1].append(self._compile(node.operator, graph.shape_of(number), bits))

    def advance(self, segment: int, forms: WholeForms) -> WholeForms:
        """Apply the linear operators before ReLU number `segment`, or before the logits."""
        for exact_map in self.segments[segment]:
            forms = exact_map(forms)
        return forms

    def _compile(self, operator: Operator, shape: Shape, bits: int) -> ExactMap:
        found: ExactMap
        if isinstance(operator, Linear) and operator.read_roundings:
            raise ModelError(
                "exact arithmetic does not support this model: reading it rounded some of its constants; "
                "simplify it (constant folding) on export"
            )
        match operator:
            case Reshape() | Transpose() | Pad():
                found = _Selected(operator, shape)
            case Scale():
                found = self._scaled(operator, shape, bits)
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
            case _:
                raise ModelError(
                    f"{type(operator).__name__} has no exact form; exact arithmetic does not support this network"
                )
        return found

    def _scaled(self, operator: Scale, shape: Shape, bits: int) -> ExactMap:
        factor, shift = scale_constants(operator, bits)
        self.is_exact &= factor.radii is None and shift.radii is None
        return _Scaled(factor, shift, operator.output_shape(shape))


def _seen(window: Window, numbers: np.ndarray) -> np.ndarray:
    """The input at each place of the window and each position, 0 outside: (N, C, positions, places, K)."""
    batch, channels, *spatial, count = numbers.shape
    pixels = window.pixels(tuple(spatial))
    flat = numbers.reshape(batch, channels, -1, count)
    # Index −1, outside, is the appended zero.
    outside = np.full((batch, channels, 1, count), ZERO, dtype=object)
    return np.concatenate([flat, outside], axis=2)[:, :, pixels]
