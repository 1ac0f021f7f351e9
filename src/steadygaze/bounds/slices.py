"""Convolves with hardly any rounding: products of slices of few bits are exact, and so are their sums.

A sum of n products is off by up to n·2⁻⁵³ times the sum of its |terms|, which may be far larger than the sum itself. So
the image is cut into slices: multiples of a unit, with so few bits that all products with weights of 24 bits, and their
sums, are multiples of a unit by less than 2⁵³, which float64 adds without rounding. The remainder is smaller by a
factor of 2³⁰, and so are its errors (Ozaki, Ogita, Oishi, Rump 2012).
"""

from copy import copy
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ..network.steps import ConvStep
from ..tolerances import LEAST, gamma

WEIGHT_BITS = 24  # bits of a float32 weight
MANTISSA = 53


class Sliced(NamedTuple):
    """A convolution with weights that are multiples of a unit, and one with the remainders of the weights."""

    main: ConvStep
    rest: ConvStep
    bits: int  # bits of each slice of an image
    sums: np.ndarray  # (n_out,) Σ|weight|
    rest_sums: np.ndarray  # (n_out,) the same for `rest`


_KNOWN: WeakKeyDictionary[ConvStep, Sliced] = WeakKeyDictionary()


def convolve(step: ConvStep, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The products (B, n_out) of a convolution with values (B, n_in), and bounds (B, n_out) on their errors."""
    if step not in _KNOWN:
        _KNOWN[step] = _slice_weights(step)
    sliced = _KNOWN[step]
    first, rest = _cut(values, sliced.bits)
    second, third = _cut(rest, sliced.bits)
    large, middle = sliced.main.forward(first), sliced.main.forward(second)
    small, tiny = sliced.main.forward(third), sliced.rest.forward(values)
    total = large + (middle + (small + tiny))
    # The first two products are exact; every addition is off by at most 2⁻⁵³ of its result.
    error = gamma(4) * (np.abs(large) + np.abs(middle) + np.abs(small) + np.abs(tiny))
    left, all_of = (np.abs(part).max(axis=1, keepdims=True) for part in (third, values))
    error += gamma(step.terms + 2) * 1.01 * (sliced.sums * left + sliced.rest_sums * all_of)
    return total, error + LEAST


def _cut(values: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Round values (B, n) to multiples of 2^(−bits) times the power of two above the largest; also the exact rest."""
    largest = np.abs(values).max(axis=-1, keepdims=True)
    unit = np.exp2(np.ceil(np.log2(np.where(largest > 0.0, largest, 1.0))) - bits)
    sliced = np.rint(values / unit) * unit
    return sliced, values - sliced


def _slice_weights(step: ConvStep) -> Sliced:
    # Sums of n products of `bits` and 24 bits need log₂ n more bits, and one for each rounding up.
    bits = MANTISSA - WEIGHT_BITS - 3 - int(np.ceil(np.log2(step.weight.shape[1] + 1)))
    main, rest = _cut(step.weight.reshape(1, -1), WEIGHT_BITS)
    places = step.sizes[1] // len(step.weight)
    steps, sums = [], []
    for part in (main, rest):
        weight, one = part.reshape(step.weight.shape), copy(step)
        one.weight = one.weights = weight
        one._kernels = weight, weight  # products with absolute weights are never computed
        steps.append(one)
        sums.append(np.repeat(np.abs(weight).sum(axis=1), places))
    return Sliced(steps[0], steps[1], bits, sums[0], sums[1])
