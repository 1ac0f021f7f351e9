"""Deep networks: bounds errors by their 2-norm, for groups of neurons, and convolves with hardly any rounding.

Remainders of single neurons grow with the absolute weights, tenfold and more with every layer: after a dozen layers
nothing is known, even at a single theta, although the errors are mere rounding. The 2-norm of the errors grows only
with the spectral norm of the weights. Networks with more than `DEEP` layers use it.

A sum of n products is off by up to n·2⁻⁵³ times the sum of its |terms|, which may be far larger than the sum itself. So
`convolve` cuts the image into slices: multiples of a unit, with so few bits that all products with weights of 24 bits,
and their sums, are multiples of a unit by less than 2⁵³, which float64 adds without rounding. The remainder is smaller
by a factor of 2³⁰, and so are its errors (Ozaki, Ogita, Oishi, Rump 2012).
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import prod, sqrt
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ..network.steps import ConvStep, MatrixStep, OrderStep, ScaleStep, Step, SumStep
from ..tolerances import LEAST, gamma

DEEP = 16
"""Networks with up to this many layers bound errors by remainders of single neurons."""

LARGEST = 2048  # the largest side of dense matrices whose singular values are computed
ABOVE = 1.0 + 1e-6
"""Covers the rounding of computed norms and singular values, and the roundings of the weights themselves."""

WEIGHT_BITS = 24  # bits of a float32 weight
MANTISSA = 53

_KNOWN: WeakKeyDictionary[Step, float] = WeakKeyDictionary()
_SCALED: WeakKeyDictionary[ScaleStep, float] = WeakKeyDictionary()  # each follows one convolution
_SLICED: WeakKeyDictionary[ConvStep, "Sliced"] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Group:
    """Adjacent neurons: their number, and bounds (B,) on the 2-norms of their errors.

    If `step` is a convolution, `before` bounds the errors before it; they grow by its norm, or by its norm combined
    with a scale that follows. Otherwise `before` bounds the errors of a layer's inputs. `added` bounds errors added
    since.
    """

    size: int
    before: np.ndarray
    added: np.ndarray
    step: ConvStep | None = None

    @cached_property
    def bound(self) -> np.ndarray:
        """A bound (B,) on the 2-norm of all errors."""
        factor = 1.0 if self.step is None else spectral_norm(self.step)
        return (factor * self.before + self.added) * ABOVE

    def settled(self) -> "Group":
        """The group after a layer: errors of neurons that are off vanish, and no slope enlarges an error."""
        return Group(self.size, self.bound, np.zeros(len(self.before)))


@dataclass(frozen=True, eq=False)
class Norms:
    """Bounds on the 2-norms of errors, by groups of neurons."""

    groups: tuple[Group, ...]

    @classmethod
    def of(cls, errors: np.ndarray) -> "Norms":
        """One group, with errors (B, n) of every neuron."""
        none = np.zeros(len(errors))
        return cls((Group(errors.shape[1], none, none),)).plus(errors)

    def plus(self, errors: np.ndarray) -> "Norms":
        """The same groups with further errors (B, n)."""
        found, first = [], 0
        for group in self.groups:
            own = _norm(errors[:, first : first + group.size])
            first += group.size
            found.append(replace(group, added=(group.added + own) * ABOVE))
        return Norms(tuple(found))

    def each(self) -> np.ndarray:
        """A bound (B, n) on the error of each neuron."""
        bounds = np.stack([group.bound for group in self.groups], axis=1)
        return np.repeat(bounds, [group.size for group in self.groups], axis=1)

    @property
    def total(self) -> np.ndarray:
        """A bound (B,) for all neurons together."""
        # Without squares, which underflow for small errors.
        return reduce(np.hypot, [group.bound for group in self.groups]) * ABOVE

    def take(self, boxes: np.ndarray) -> "Norms":
        """The chosen boxes."""
        return Norms(tuple(replace(one, before=one.before[boxes], added=one.added[boxes]) for one in self.groups))

    def settled(self) -> "Norms":
        """The norms after a layer."""
        return Norms(tuple(group.settled() for group in self.groups))

    def part(self, first: int, last: int) -> "Norms":
        """The norms of the neurons from `first` to before `last`; a part of a group has at most the group's norm."""
        found, start = [], 0
        for group in self.groups:
            size = min(start + group.size, last) - max(start, first)
            start += group.size
            if size > 0:
                none = np.zeros(len(group.before))
                found.append(group if size == group.size else Group(size, none, group.bound))
        return Norms(tuple(found))

    @classmethod
    def join(cls, parts: Sequence["Norms"]) -> "Norms":
        """Groups side by side."""
        return cls(tuple(group for part in parts for group in part.groups))

    def through(self, step: Step) -> "Norms":
        """The errors after an exact linear step, of a kind that `forms.through` does not take apart."""
        size, one = step.sizes[1], self.groups[0]
        if isinstance(step, SumStep):
            parts = [self.part(first, first + size).total for first in range(0, step.sizes[0], size)]
            return _single(size, np.sum(parts, axis=0) * ABOVE)
        if isinstance(step, ConvStep):
            return _single(size, self.total, step)
        if isinstance(step, ScaleStep) and len(self.groups) == 1 and one.step is not None:
            factor = scaled_norm(one.step, step)
            if factor < np.inf:
                return _single(size, (factor * one.before + spectral_norm(step) * one.added) * ABOVE)
        if _adds_up(step) and len(self.groups) == 1 and one.step is None:
            # The slopes of a window's entries add up to 1, so a window's sum has at most the norm of its entries.
            return _single(size, (one.before + spectral_norm(step) * one.added) * ABOVE)
        return _single(size, self.total * spectral_norm(step))


def _single(size: int, before: np.ndarray, step: ConvStep | None = None) -> Norms:
    return Norms((Group(size, before, np.zeros(len(before)), step),))


def _adds_up(step: Step) -> bool:
    """Whether a step adds up the entries of windows, each of which belongs to one window."""
    return isinstance(step, MatrixStep) and step.is_selection and step.backward_terms == 2


def _norm(errors: np.ndarray) -> np.ndarray:
    """The 2-norms (B,) of errors (B, n), which may be so small that their squares underflow."""
    largest = errors.max(axis=1, initial=0.0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        shares = np.where(largest[:, None] > 0.0, errors / largest[:, None], 0.0)
        found = largest * np.sqrt(np.einsum("bn,bn->b", shares, shares)) * ABOVE
    return np.where(np.isfinite(errors).all(axis=1), found, np.nan)


def scaled_norm(conv: ConvStep, scale: ScaleStep) -> float:
    """An upper bound on the norm of a convolution and a scale after it; infinite unless it scales whole channels."""
    if scale not in _SCALED:
        factors = scale.factor.reshape(len(conv.weight), -1)
        is_whole = bool((factors == factors[:, :1]).all())
        _SCALED[scale] = _by_frequencies(conv, np.abs(factors[:, 0])) * ABOVE if is_whole else np.inf
    return _SCALED[scale]


def spectral_norm(step: Step) -> float:
    """An upper bound on the largest factor by which a step enlarges a 2-norm."""
    if step not in _KNOWN:
        _KNOWN[step] = _spectral_norm(step) * ABOVE
    return _KNOWN[step]


def _spectral_norm(step: Step) -> float:
    if isinstance(step, OrderStep):
        return 1.0
    if isinstance(step, ScaleStep):
        return float(np.abs(step.factor).max(initial=0.0))
    if isinstance(step, ConvStep):
        return min(_by_frequencies(step), _by_sums(step))
    if isinstance(step, MatrixStep) and isinstance(step.matrix, np.ndarray) and max(step.sizes) <= LARGEST:
        return float(np.linalg.norm(step.matrix, ord=2)) if step.matrix.size else 0.0
    return _by_sums(step)


def _by_sums(step: Step) -> float:
    """The geometric mean of the largest sums of |weights| over the inputs, and over the outputs."""
    over_inputs = step.forward_abs(np.ones((1, step.sizes[0]))).max(initial=0.0)
    over_outputs = step.backward_abs(np.ones((1, step.sizes[1]))).max(initial=0.0)
    return sqrt(float(over_inputs) * float(over_outputs))


def _by_frequencies(step: ConvStep, factors: np.ndarray | None = None) -> float:
    """The norm of the periodic convolution on an image enlarged by the padding, its channels times factors (C,).

    Zero padding, strides and the border only remove rows and columns of its matrix. That matrix is block diagonal in
    the frequencies, with one block (channels out, channels in) each. A dilated kernel has zeros in between.
    """
    window, shape = step.conv.window, step.shape
    spans = [(k - 1) * d + 1 for k, d in zip(window.kernel, window.dilations, strict=True)]
    kernel = np.zeros((*step.conv.weight.shape[:2], *spans))
    kernel[:, :, :: window.dilations[0], :: window.dilations[1]] = step.conv.weight
    if factors is not None:
        kernel *= factors[:, None, None, None]
    sides = [
        max(n + max(ends), span) for n, span, *ends in zip(shape[1:], spans, window.before, window.after, strict=True)
    ]
    if prod(spans) == 1:
        return float(np.linalg.norm(kernel[:, :, 0, 0], ord=2))
    largest = 0.0
    columns = np.fft.rfft(kernel, sides[1], axis=3)
    for column in range(columns.shape[3]):
        blocks = np.fft.fft(columns[:, :, :, column], sides[0], axis=2).transpose(2, 0, 1)
        blocks = blocks if blocks.shape[1] >= blocks.shape[2] else blocks.conj().transpose(0, 2, 1)
        squares = blocks.conj().transpose(0, 2, 1) @ blocks
        largest = max(largest, float(np.linalg.eigvalsh(squares).max()))
    return sqrt(largest)


class Sliced(NamedTuple):
    """A convolution with weights that are multiples of a unit, and one with the remainders of the weights."""

    main: ConvStep
    rest: ConvStep
    bits: int  # bits of each slice of an image
    sums: np.ndarray  # (n_out,) Σ|weight|
    rest_sums: np.ndarray  # (n_out,) the same for `rest`


def convolve(step: ConvStep, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The products (B, n_out) of a convolution with values (B, n_in), and bounds (B, n_out) on their errors."""
    if step not in _SLICED:
        _SLICED[step] = _slice_weights(step)
    sliced = _SLICED[step]
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
