"""Values on boxes of thetas as affine forms with a remainder, through linear steps and relaxations.

The box is e ∈ [−1, 1]^m. A value is centre + Σ_k coefficient_k · e_k + r with |r| ≤ remainder (`Forms`). The first
coordinates of e are those of theta. The others, generators, are relaxation errors of single neurons: they keep the
correlations between values that share an error. All bounds hold for real numbers: rounding goes into the remainder.
For a polytope inside the box, the forms come with its corners, and bounds hold on the polytope.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..network.steps import ArrangeStep, MatrixStep, PartStep, Step
from ..perturbation import Perturbed
from ..tolerances import FLOOR, LEAST, UNIT, gamma, up
from . import box_kernels as kernels

FIELDS = ("forms", "remainder")  # arrays whose last axis counts neurons


@dataclass(frozen=True, eq=False)
class Corners:
    """Polytopes inside boxes: corners (B, V, m) in e; blur (B, m) is how far they reach beyond, along each axis."""

    points: np.ndarray
    blur: np.ndarray

    def take(self, chosen: np.ndarray) -> "Corners":
        """The chosen boxes."""
        return Corners(self.points[chosen], self.blur[chosen])


@dataclass(frozen=True, eq=False)
class Forms:
    """The values of n neurons on each of B boxes: forms (B, 1 + m, n), the centre first; remainder (B, n).

    A value with zero form and remainder is exactly zero. With corners, all claims hold on the polytopes only, and
    there are no generators.
    """

    forms: np.ndarray
    remainder: np.ndarray
    corners: Corners | None = None

    def take(self, chosen: slice | np.ndarray) -> "Forms":
        """The chosen neurons, all boxes."""
        # Contiguous, as the compiled loops expect all arrays.
        forms, remainder = (np.ascontiguousarray(part[..., chosen]) for part in (self.forms, self.remainder))
        return Forms(forms, remainder, self.corners)

    @cached_property
    def spread(self) -> np.ndarray:
        """Σ_k |coefficient_k| (B, n), as computed."""
        spread = np.empty(self.remainder.shape)
        kernels.spreads(self.forms, spread)
        return spread

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Proved lower and upper bounds (B, n) of the values."""
        low, high = np.empty(self.remainder.shape), np.empty(self.remainder.shape)
        # A sum of m + 1 numbers, and one more addition for each end.
        factor = gamma(self.forms.shape[1] + 2)
        if self.corners is None:
            kernels.ends(self.forms, self.spread, self.remainder, factor, LEAST, low, high)
        else:
            points, blur = self.corners.points, self.corners.blur
            kernels.corner_ends(self.forms, points, blur, self.spread, self.remainder, factor, LEAST, low, high)
        return low, high


def through(forms: Forms, step: Step) -> Forms:
    """The values after a linear step; values that it only copies stay exact."""
    if isinstance(step, PartStep):
        first, last = step.before, step.before + step.inner.sizes[0]
        inner = through(forms.take(slice(first, last)), step.inner)
        return _side_by_side([forms.take(slice(first)), inner, forms.take(slice(last, None))])
    if isinstance(step, ArrangeStep):
        return _side_by_side([forms.take(part) for part in step.slices])
    if (index := _copied(step)) is not None:
        return forms.take(index)
    boxes, rows, size = forms.forms.shape
    before = np.empty((boxes, size))
    kernels.errors_before(forms.forms, forms.spread, forms.remainder, gamma(step.terms + 2), FLOOR, before)
    after = step.forward(forms.forms.reshape(boxes * rows, size)).reshape(boxes, rows, step.sizes[1])
    remainder = step.forward_abs(before)
    kernels.finish_step(
        after, remainder, step.bias, step.bias_size, gamma(step.roundings + 2), up(step.terms + rows), LEAST
    )
    return Forms(after, remainder, forms.corners)


def _side_by_side(parts: list[Forms]) -> Forms:
    forms, remainder = (np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in FIELDS)
    return Forms(forms, remainder, parts[0].corners)


def _copied(step: Step) -> np.ndarray | None:
    """The place of the value that each result of a step copies; None if it computes any."""
    if not isinstance(step, MatrixStep) or not step.is_selection or isinstance(step.matrix, np.ndarray):
        return None
    is_copy = step.matrix.nnz == step.sizes[1] and step.terms == 2 and bool((step.weights == 1.0).all())
    return step.matrix.indices if is_copy else None


@dataclass(frozen=True, eq=False)
class Relaxed:
    """A function of every value enclosed by slope · value + shift ± radius, each (B, n)."""

    slope: np.ndarray
    shift: np.ndarray
    radius: np.ndarray

    def of(self, forms: Forms, room: int = 0) -> Forms:
        """The function's values; up to `room` of the largest radii of each box become new generators."""
        after, remainder = forms.forms.copy(), forms.remainder.copy()
        kernels.relax(after, remainder, self.slope, self.shift, gamma(3))
        radius = self.radius
        if room:
            generators, radius = _generators(radius, room)
            after = np.concatenate([after, generators], axis=1)
        remainder += radius
        # The remainder has collected the roundings of all rows, one by one.
        kernels.lift_radii(remainder, up(4 + after.shape[1]), LEAST)
        return Forms(after, remainder, forms.corners)


def _generators(radius: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest radii of each box as one-hot rows (B, k, n), and the other radii (B, n)."""
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
    # An exact zero stays zero: its slope is 0.
    slope = np.where(is_open, high / width, (high > 0.0).astype(np.float64))
    # max(z, 0) − slope · z lies between 0 (at the kink) and its value at one of the ends.
    top = np.maximum(-slope * low, (1.0 - slope) * high)
    half = np.where(is_open, 0.5 * top, 0.0)
    return Relaxed(slope, half, half * (1.0 + 8.0 * UNIT))


def relax_clip(low: np.ndarray, high: np.ndarray) -> Relaxed:
    """min(max(z, 0), 1) for z in [low, high] (B, n), like `relax_relu`; the slope is that of the chord."""
    first, last = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    is_same = (low >= 0.0) & (high <= 1.0)
    is_flat = (high <= 0.0) | (low >= 1.0)
    is_open = ~is_same & ~is_flat
    width = np.where(is_open, high - low, 1.0)
    slope = np.where(is_open, (last - first) / width, is_same.astype(np.float64))
    # The difference from slope · z is largest and smallest at an end, or at a kink in between.
    ends = np.stack([first - slope * low, last - slope * high])
    at_zero = np.where((low < 0.0) & (high > 0.0), 0.0, ends[0])
    at_one = np.where((low < 1.0) & (high > 1.0), 1.0 - slope, ends[1])
    top = np.maximum(ends.max(axis=0), np.maximum(at_zero, at_one))
    bottom = np.minimum(ends.min(axis=0), np.minimum(at_zero, at_one))
    rounding = 8.0 * UNIT * (1.0 + slope * np.maximum(np.abs(low), np.abs(high)))
    shift = np.where(is_open, 0.5 * (top + bottom), np.where(is_flat, first, 0.0))
    return Relaxed(slope, shift, np.where(is_open, 0.5 * (top - bottom) + rounding, 0.0))


def pixels(
    perturbed: Perturbed, cell: int, low: np.ndarray, high: np.ndarray, vertices: np.ndarray | None = None
) -> Forms:
    """The clipped pixels on boxes with corners low and high (B, d) in t, all in one knot cell.

    With vertices (B, V, d) in the boxes: on their hulls, widened as far as the boxes reach.
    """
    domain, piece = perturbed.domain, perturbed.cells[cell]
    d = domain.dimension
    slope, base = piece.slope.reshape(d, -1), (perturbed.x0 + piece.offset).ravel()
    middle = 0.5 * (low + high)
    # At least either half, however the middle was rounded.
    half = np.maximum(high - middle, middle - low) * (1.0 + 4.0 * UNIT)
    thetas = domain.to_theta(middle)
    forms = np.empty((len(low), 1 + d, len(base)))
    forms[:, 0] = base + thetas @ slope
    forms[:, 1:] = (half * domain.widths)[:, :, None] * slope
    # A few roundings of numbers up to this size, including those in offset and slope of a moving image.
    size = perturbed.magnitudes
    error = np.where(size > 0.0, gamma(16 + 4 * d) * size + LEAST, 0.0)
    corners = None
    if vertices is not None:
        # In box coordinates; hulls reach as far beyond their vertices as the boxes do.
        points = (vertices - middle[:, None]) / half[:, None]
        around = np.maximum(vertices.min(axis=1) - low, high - vertices.max(axis=1))
        corners = Corners(points, around / half * (1.0 + 8.0 * UNIT) + 8.0 * UNIT * (1.0 + np.abs(middle) / half))
    unclipped = Forms(forms, np.tile(error, (len(low), 1)), corners)
    return relax_clip(*unclipped.bounds()).of(unclipped)
