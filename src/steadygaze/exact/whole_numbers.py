"""Constants as whole numbers over one denominator, for exact arithmetic.

A float64 is a whole number over a power of two. The factor and shift of a `ScaleShift` are rounded; their true values
follow from the operator's own constants.
"""

from dataclasses import dataclass

import numpy as np
from flint import fmpq, fmpz

from ..errors import ModelError
from ..network.operators import ScaleShift

LONGEST_DENOMINATOR = 2048
"""The most bits of a common denominator of rationals; beyond that, the rationals are enclosed."""


@dataclass(frozen=True, eq=False)
class Constants:
    """Numbers of any shape: (numbers ± radii) / denominator, elementwise; `radii` is None if all are exact."""

    numbers: np.ndarray
    radii: np.ndarray | None
    denominator: fmpz


def from_floats(values: np.ndarray) -> Constants:
    """Float64 values as whole numbers over a power of two; exact.

    >>> half = from_floats(np.array([0.5, -3.0, 0.0]))
    >>> half.numbers, half.denominator
    (array([1, -6, 0], dtype=object), 2)
    """
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ModelError(
            "a constant is NaN or infinite; exact arithmetic needs finite constants: export the model again"
        )
    fractions, exponents = np.frexp(values)
    wholes = np.ldexp(fractions, 53).astype(np.int64)
    exponents = exponents.astype(np.int64) - 53
    # The position of the lowest set bit: a power of two is exact in float64, and so is its logarithm.
    last = exponents + np.frexp((wholes & -wholes).astype(np.float64))[1] - 1
    some = wholes != 0
    place = min(int(last.min(initial=0, where=some)), 0)
    top = int((exponents + 53).max(initial=place, where=some))
    if top - place <= 62:
        listed = np.ldexp(values, -place).astype(np.int64).ravel().tolist()
    else:
        pairs = zip(wholes.ravel().tolist(), (exponents - place).ravel().tolist(), strict=True)
        # A negative shift drops zeros only: `place` is the lowest bit of all.
        listed = [_shifted(whole, shift) for whole, shift in pairs]
    return Constants(to_array(listed, values.shape), None, fmpz(1) << -place)


def from_rationals(middles: list[fmpq], radii: list[fmpq], shape: tuple[int, ...], bits: int) -> Constants:
    """Rationals with radii over one denominator; rounded outward to `bits` bits if it is too long or radii exist."""
    denominator = fmpz(1)
    for number in middles:
        denominator = denominator * number.q // denominator.gcd(number.q)
        if denominator.bit_length() > LONGEST_DENOMINATOR:
            break
    if not any(radii) and denominator.bit_length() <= LONGEST_DENOMINATOR:
        listed = [number.p * (denominator // number.q) for number in middles]
        return Constants(to_array(listed, shape), None, denominator)
    smallest = min((abs(number) for number in middles if number), default=fmpq(1))
    place = bits + max(0, int(smallest.q.bit_length()) - int(smallest.p.bit_length()) + 1)
    denominator = fmpz(1) << place
    numbers = [(number * denominator).floor() for number in middles]
    rests = [(radius * denominator).ceil() + 1 for radius in radii]
    return Constants(to_array(numbers, shape), to_array(rests, shape), denominator)


def to_array(listed: list, shape: tuple[int, ...]) -> np.ndarray:
    """Whole numbers as an array of fmpz."""
    array = np.empty(len(listed), dtype=object)
    array[:] = [fmpz(number) for number in listed]
    return array.reshape(shape)


def to_rational(value: float) -> fmpq:
    """The exact rational value of a float64.

    >>> to_rational(0.375)
    3/8
    """
    numerator, denominator = float(value).as_integer_ratio()
    return fmpq(numerator, denominator)


def inverse_root(radicand: fmpq, bits: int) -> tuple[fmpq, fmpq]:
    """1/√radicand as midpoint and radius; the radius is 0 if the root is rational, else below 2^−bits of the midpoint.

    >>> inverse_root(fmpq(9, 4), 64)
    (2/3, 0)
    """
    # With radicand = p/q, 1/√radicand = √(p q) / p.
    p, product = radicand.p, radicand.p * radicand.q
    root, rest = product.sqrtrem()
    if not rest:
        return fmpq(root, p), fmpq(0)
    root, _ = (product << (2 * bits)).sqrtrem()
    denominator = p << (bits + 1)
    return fmpq(2 * root + 1, denominator), fmpq(1, denominator)


def _shifted(whole: int, shift: int) -> int:
    return whole << shift if shift >= 0 else whole >> -shift


def scale_constants(operator: ScaleShift, bits: int) -> tuple[Constants, Constants]:
    """Factor and shift of a ScaleShift from its constants, enclosed for irrational roots and overlong denominators."""
    shape = np.broadcast_shapes(operator.factor.shape, operator.shift.shape)
    names = ("multiplier", "mean", "gain", "divisor", "offset")
    numbers = [_rationals(getattr(operator, name), shape) for name in names]
    variance, epsilon = (1.0, 0.0) if operator.variance is None else (operator.variance, operator.epsilon)
    numbers += [_rationals(variance, shape), _rationals(epsilon, shape)]
    factors: list[tuple[fmpq, fmpq]] = []
    shifts: list[tuple[fmpq, fmpq]] = []
    for multiplier, mean, gain, divisor, offset, spread, added in zip(*numbers, strict=True):
        middle, radius = inverse_root(spread + added, bits)
        middle, radius = middle * gain / divisor, radius * abs(gain / divisor)
        factors.append((multiplier * middle, abs(multiplier) * radius))
        shifts.append((offset - mean * middle, abs(mean) * radius))
    factor, shift = (
        from_rationals([middle for middle, _ in pairs], [radius for _, radius in pairs], shape, bits)
        for pairs in (factors, shifts)
    )
    return factor, shift


def _rationals(values: np.ndarray | float, shape: tuple[int, ...]) -> list[fmpq]:
    return [to_rational(value) for value in np.broadcast_to(values, shape).ravel().tolist()]
