"""The true constants of a `Scale` operator, whose floats may be results of roundings.

Add, Sub and Mul hold numbers of the file. Div, preprocessing and batch normalisation hold quotients and roots that were
rounded when the graph was made. An operator may carry the numbers that they were made of as its attribute `source`:

    y = (x·multiplier − mean)·gain / (divisor·√(variance + epsilon)) + offset

with arrays of those names (`variance` None: no root). Then the constants are exact, or enclosed as closely as asked.
Without a source the roundings are enclosed where their number is known, and refused where it is not.
"""

import numpy as np
from flint import fmpq

from steadygaze.errors import ModelError
from steadygaze.network.operators import Scale

from .whole_numbers import Constants, from_floats, from_rationals, inverse_root, to_rational

ONE_ROUNDING = fmpq(1, 2**53)
SMALLEST = fmpq(1, 2**1074)


def scale_constants(operator: Scale, *, is_preprocessing: bool, bits: int) -> tuple[Constants, Constants]:
    """Factor and shift that enclose the true ones; raises ModelError where nothing is known of their rounding."""
    source = getattr(operator, "source", None)
    if source is not None:
        return _from_source(operator, source, bits)
    factor, shift = np.asarray(operator.factor), np.asarray(operator.shift)
    if factor.shape == () and abs(float(factor)) == 1.0 and (shift.shape != () or float(shift) != 0.0):
        return from_floats(factor), from_floats(shift)  # Add or Sub
    if shift.shape == () and float(shift) == 0.0:
        return _rounded_once(factor, bits), from_floats(shift)  # Mul, or Div with one rounding
    if is_preprocessing:
        return _rounded_once(factor, bits), _rounded_once(shift, bits)
    raise ModelError(
        "the graph does not hold the numbers that a batch normalisation was made of, so its rounding is unknown; "
        "exact arithmetic cannot settle anything for this network"
    )


def _rounded_once(values: np.ndarray, bits: int) -> Constants:
    """Enclose numbers of which each float is the nearest one."""
    middles = [to_rational(value) for value in values.ravel().tolist()]
    radii = [abs(number) * ONE_ROUNDING + SMALLEST for number in middles]
    return from_rationals(middles, radii, values.shape, bits)


def _from_source(operator: Scale, source: object, bits: int) -> tuple[Constants, Constants]:
    shape = np.broadcast_shapes(np.shape(operator.factor), np.shape(operator.shift))

    def listed(name: str, default: float) -> list[fmpq]:
        given = getattr(source, name, None)
        array = np.broadcast_to(np.asarray(default if given is None else given, dtype=np.float64), shape)
        return [to_rational(value) for value in array.ravel().tolist()]

    has_root = getattr(source, "variance", None) is not None
    variances = listed("variance", 1.0)
    epsilons = listed("epsilon", 0.0) if has_root else [fmpq(0)] * len(variances)
    factors: list[tuple[fmpq, fmpq]] = []
    shifts: list[tuple[fmpq, fmpq]] = []
    for multiplier, mean, gain, divisor, variance, epsilon, offset in zip(
        listed("multiplier", 1.0),
        listed("mean", 0.0),
        listed("gain", 1.0),
        listed("divisor", 1.0),
        variances,
        epsilons,
        listed("offset", 0.0),
        strict=True,
    ):
        middle, radius = inverse_root(variance + epsilon, bits)
        middle, radius = middle * gain / divisor, radius * abs(gain / divisor)
        factors.append((multiplier * middle, abs(multiplier) * radius))
        shifts.append((offset - mean * middle, abs(mean) * radius))
    return (
        from_rationals([m for m, _ in factors], [r for _, r in factors], shape, bits),
        from_rationals([m for m, _ in shifts], [r for _, r in shifts], shape, bits),
    )
