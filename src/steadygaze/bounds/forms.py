"""Sets of values over a box: affine forms with a remainder, and how linear steps, the clip and the ReLU map them.

The box is e ∈ [−1, 1]^m. A value is centre + Σ_k coefficient_k · e_k + r with |r| ≤ remainder. The first coordinates
of e are those of theta; the others, generators, stand for the relaxation errors of single neurons and keep what these
do to several values at once. All bounds hold for real numbers: rounding goes into the remainder. If only a polytope
inside the box matters, its corners stand beside the forms, and values are bounded there.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..network.steps import Step
from ..tolerances import FLOOR, LEAST, UNIT, gamma, up
from . import box_kernels as kernels


@dataclass(frozen=True, eq=False)
class Corners:
    """Polytopes inside boxes: corners (B, V, m) in e, and blur (B, m), how far along each axis they reach beyond."""

    points: np.ndarray
    blur: np.ndarray

    def take(self, chosen: np.ndarray) -> "Corners":
        """Some of the boxes."""
        return Corners(self.points[chosen], self.blur[chosen])


@dataclass(frozen=True, eq=False)
class Forms:
    """The values of n neurons on each of B boxes: forms (B, 1 + m, n), the centre first; remainder (B, n).

    A value with zero form and remainder is exactly zero. With corners, all claims are about the polytopes alone, and
    there are no generators.
    """

    forms: np.ndarray
    remainder: np.ndarray
    corners: Corners | None = None

    @cached_property
    def spread(self) -> np.ndarray:
        """Σ_k |coefficient_k| (B, n), as computed."""
        spread = np.empty(self.remainder.shape)
        kernels.spreads(self.forms, spread)
        return spread

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Proved lower and upper bounds (B, n) of the values."""
        low, high = np.empty(self.remainder.shape), np.empty(self.remainder.shape)
        # The sum of m + 1 numbers, and one more addition for each end.
        factor = gamma(self.forms.shape[1] + 2)
        if self.corners is None:
            kernels.ends(self.forms, self.spread, self.remainder, factor, LEAST, low, high)
        else:
            points, blur = self.corners.points, self.corners.blur
            kernels.corner_ends(self.forms, points, blur, self.spread, self.remainder, factor, LEAST, low, high)
        return low, high


def through(forms: Forms, step: Step) -> Forms:
    """The values after a linear step."""
    boxes, rows, size = forms.forms.shape
    before = np.empty((boxes, size))
    kernels.errors_before(forms.forms, forms.spread, forms.remainder, gamma(step.terms + 2), FLOOR, before)
    after = step.forward(forms.forms.reshape(boxes * rows, size)).reshape(boxes, rows, step.sizes[1])
    remainder = step.forward_abs(before)
    kernels.finish_step(
        after, remainder, step.bias, step.bias_size, gamma(step.roundings + 2), up(step.terms + rows), LEAST
    )
    return Forms(after, remainder, forms.corners)


@dataclass(frozen=True, eq=False)
class Relaxed:
    """A function of every value enclosed by slope · value + shift ± radius, each (B, n)."""

    slope: np.ndarray
    shift: np.ndarray
    radius: np.ndarray

    def of(self, forms: Forms, room: int = 0) -> Forms:
        """The function's values; up to `room` of the largest radii of each box become generators of their own."""
        after, remainder = forms.forms.copy(), forms.remainder.copy()
        kernels.relax(after, remainder, self.slope, self.shift, gamma(3))
        radius = self.radius
        if room:
            generators, radius = _generators(radius, room)
            after = np.concatenate([after, generators], axis=1)
        remainder += radius
        # The roundings of all rows were added to it one after the other.
        kernels.lift_radii(remainder, up(4 + after.shape[1]), LEAST)
        return Forms(after, remainder, forms.corners)


def _generators(radius: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest radii of each box as one-hot rows (B, k, n), and what is left (B, n)."""
    boxes, size = radius.shape
    count = min(room, int((radius > 0.0).sum(axis=1).max(initial=0)))
    rows = np.zeros((boxes, count, size))
    if not count:
        return rows, radius
    chosen = (
        np.argpartition(-radius, count - 1, axis=1)[:, :count] if count < size else np.tile(np.arange(size), (boxes, 1))
    )
    number = np.arange(boxes)[:, None]
    rows[number, np.arange(count), chosen] = radius[number, chosen]
    left = radius.copy()
    left[number, chosen] = 0.0
    return rows, left


def relax_relu(low: np.ndarray, high: np.ndarray) -> Relaxed:
    """max(z, 0) for z in [low, high] (B, n): exact where the sign is known, else between the chord and its parallel."""
    is_open = ~(low >= 0.0) & ~(high <= 0.0)
    width = np.where(is_open, high - low, 1.0)
    # A value that is exactly zero stays so: its slope is 0.
    slope = np.where(is_open, high / width, (high > 0.0).astype(np.float64))
    # max(z, 0) − slope · z lies between 0 (at the kink) and its value at one of the ends.
    top = np.maximum(-slope * low, (1.0 - slope) * high)
    half = np.where(is_open, 0.5 * top, 0.0)
    return Relaxed(slope, half, half * (1.0 + 8.0 * UNIT))


def relax_clip(low: np.ndarray, high: np.ndarray) -> Relaxed:
    """min(max(z, 0), 1) for z in [low, high] (B, n), likewise; the slope is that of the chord."""
    first, last = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    is_same = (low >= 0.0) & (high <= 1.0)
    is_flat = (high <= 0.0) | (low >= 1.0)
    is_open = ~is_same & ~is_flat
    width = np.where(is_open, high - low, 1.0)
    slope = np.where(is_open, (last - first) / width, is_same.astype(np.float64))
    # The difference to slope · z is largest and smallest at an end, or at a kink between them.
    ends = np.stack([first - slope * low, last - slope * high])
    at_zero = np.where((low < 0.0) & (high > 0.0), 0.0, ends[0])
    at_one = np.where((low < 1.0) & (high > 1.0), 1.0 - slope, ends[1])
    top = np.maximum(ends.max(axis=0), np.maximum(at_zero, at_one))
    bottom = np.minimum(ends.min(axis=0), np.minimum(at_zero, at_one))
    rounding = 8.0 * UNIT * (1.0 + slope * np.maximum(np.abs(low), np.abs(high)))
    shift = np.where(is_open, 0.5 * (top + bottom), np.where(is_flat, first, 0.0))
    return Relaxed(slope, shift, np.where(is_open, 0.5 * (top - bottom) + rounding, 0.0))
