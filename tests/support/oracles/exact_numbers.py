"""Floats as exact numbers: rationals, and integers times a power of two with exact forward passes and gradients.

A `Dyadic` array stands for whole · 2^−shift, with Python integers in `whole`. Products and sums of such arrays are
exact, and need no common divisors, which makes them far cheaper than rationals on deep networks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from flint import fmpq

from steadygaze.network.graph import Chain


def as_fractions(floats: np.ndarray) -> np.ndarray:
    """The exact values of floats as an object array of rationals."""
    values = np.empty(floats.size, dtype=object)
    values[:] = [Fraction(number) for number in np.asarray(floats, dtype=float).ravel().tolist()]
    return values.reshape(floats.shape)


def rational(number: float | Fraction | fmpq) -> fmpq:
    """The exact value of a number in flint's arithmetic, which is ten times as fast as that of `Fraction`."""
    return number if isinstance(number, fmpq) else fmpq(*number.as_integer_ratio())


def as_rationals(numbers: np.ndarray) -> np.ndarray:
    """The exact values of floats or fractions as an object array of flint's rationals."""
    values = np.empty(np.size(numbers), dtype=object)
    values[:] = [rational(number) for number in np.asarray(numbers).ravel().tolist()]
    return values.reshape(np.shape(numbers))


def on_grid(value: float, denominator: int) -> Fraction:
    """The multiple of 1/denominator that a float stands for."""
    nearest = Fraction(round(value * denominator), denominator)
    assert abs(nearest - Fraction(float(value))) < Fraction(1, 10**12)
    return nearest


def to_decimal(number: Fraction | fmpq) -> Decimal:
    """A rational to the digits of the context."""
    return Decimal(int(number.numerator)) / Decimal(int(number.denominator))


@dataclass(frozen=True, eq=False)
class Dyadic:
    """whole · 2^−shift, whole an object array of integers."""

    whole: np.ndarray
    shift: int

    @classmethod
    def of(cls, floats: np.ndarray) -> "Dyadic":
        """The exact values of an array of floats."""
        ratios = [number.as_integer_ratio() for number in np.asarray(floats, dtype=float).ravel().tolist()]
        shift = max((denominator.bit_length() - 1 for _, denominator in ratios), default=0)
        whole = np.empty(len(ratios), dtype=object)
        whole[:] = [number << (shift - denominator.bit_length() + 1) for number, denominator in ratios]
        return cls(whole.reshape(np.shape(floats)), shift)

    @classmethod
    def of_fractions(cls, values: np.ndarray) -> "Dyadic":
        """Rationals whose denominators are powers of two."""
        shift = max(value.denominator.bit_length() - 1 for value in values.ravel())
        whole = np.empty(values.size, dtype=object)
        whole[:] = [int(value * (1 << shift)) for value in values.ravel()]
        result = cls(whole.reshape(values.shape), shift)
        assert (result.fractions() == values).all(), "not dyadic"
        return result

    def __matmul__(self, other: "Dyadic") -> "Dyadic":
        return Dyadic(self.whole @ other.whole, self.shift + other.shift)

    def __add__(self, other: "Dyadic") -> "Dyadic":
        shift = max(self.shift, other.shift)
        return Dyadic((self.whole << (shift - self.shift)) + (other.whole << (shift - other.shift)), shift)

    def masked(self, bits: np.ndarray) -> "Dyadic":
        """Rows where a bit is set, zero elsewhere."""
        mask = bits.astype(object).reshape(-1, *[1] * (self.whole.ndim - 1))
        return Dyadic(self.whole * mask, self.shift)

    def fractions(self) -> np.ndarray:
        """The values as an object array of rationals."""
        values = np.empty(self.whole.size, dtype=object)
        values[:] = [Fraction(int(number), 1 << self.shift) for number in self.whole.ravel()]
        return values.reshape(self.whole.shape)


@dataclass(frozen=True, eq=False)
class ExactChain:
    """The layers of a chain in exact numbers."""

    layers: tuple[tuple[Dyadic, Dyadic], ...]

    @classmethod
    def of(cls, chain: Chain) -> "ExactChain":
        """The chain's floats."""
        return cls(tuple((Dyadic.of(dense(affine.matrix)), Dyadic.of(affine.bias)) for affine in chain.maps))

    def forward(self, pixels: Dyadic) -> tuple[list[np.ndarray], Dyadic]:
        """The pattern (active means > 0), one boolean array per layer, and the logits, at one image (pixels,)."""
        bits, values = [], pixels
        for matrix, bias in self.layers[:-1]:
            values = matrix @ values + bias
            bits.append((values.whole > 0).astype(bool))
            values = values.masked(bits[-1])
        matrix, bias = self.layers[-1]
        return bits, matrix @ values + bias

    def gradients(self, bits: Sequence[np.ndarray]) -> np.ndarray:
        """Gradients of the logits with respect to the pixels under a pattern, rationals (K, pixels)."""
        product = Dyadic(self.layers[-1][0].whole, self.layers[-1][0].shift)
        for (matrix, _), layer in zip(reversed(self.layers[:-1]), reversed(bits), strict=True):
            product = product @ matrix.masked(layer)
        return product.fractions()


def dense(matrix: object) -> np.ndarray:
    """A matrix of a chain as an array."""
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()  # type: ignore[attr-defined]
