"""Carries values on boxes of thetas, as affine forms with a remainder, through linear steps and relaxations.

The box is e ∈ [−1, 1]^m. A value is centre + Σ_k coefficient_k · e_k + r with |r| ≤ remainder (`Forms`). The first
coordinates of e are those of theta. The others, generators, are relaxation errors of single neurons; they preserve the
correlations between values that share an error. All bounds hold for real numbers: the remainder includes rounding.
For a polytope inside the box, the forms have its corners, and bounds hold on the polytope.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..network.steps import ArrangeStep, ConvStep, MatrixStep, PartStep, Step
from ..perturbation import KnotCell, Perturbed
from ..perturbation.scalar_forms import fold
from ..tolerances import FLOOR, LEAST, UNIT, gamma, up
from . import box_kernels as kernels
from .deep import Norms, convolve

FIELDS = ("forms", "remainder")  # arrays whose last axis counts neurons


@dataclass(frozen=True, eq=False)
class HullCorners:
    """Polytopes inside boxes: corners (B, V, m) in e; blur (B, m): how far they may extend beyond, along each axis."""

    points: np.ndarray
    blur: np.ndarray

    def take(self, chosen: np.ndarray) -> "HullCorners":
        """The chosen boxes."""
        return HullCorners(self.points[chosen], self.blur[chosen])


@dataclass(frozen=True, eq=False)
class Forms:
    """The values of n neurons on each of B boxes: forms (B, 1 + m, n), the centre first; remainder (B, n).

    A value with zero form and zero remainder is exactly zero. With corners, all claims hold on the polytopes only, and
    there are no generators. With norms, values that are not exactly zero have further errors, whose 2-norm the norms
    bound.
    """

    forms: np.ndarray
    remainder: np.ndarray
    corners: HullCorners | None = None
    norms: Norms | None = None

    def take(self, chosen: slice | np.ndarray, norms: Norms | None = None) -> "Forms":
        """The chosen neurons, all boxes, with their norms."""
        # Compiled loops expect contiguous arrays.
        forms, remainder = (np.ascontiguousarray(part[..., chosen]) for part in (self.forms, self.remainder))
        return Forms(forms, remainder, self.corners, norms)

    def take_boxes(self, chosen: np.ndarray) -> "Forms":
        """The chosen boxes, all neurons."""
        corners = None if self.corners is None else self.corners.take(chosen)
        norms = None if self.norms is None else self.norms.take(chosen)
        return Forms(self.forms[chosen], self.remainder[chosen], corners, norms)

    def with_norms(self) -> "Forms":
        """The same values with all errors in their norms."""
        return Forms(self.forms, _marks(self.remainder), self.corners, Norms.of(self.remainder))

    @cached_property
    def rest(self) -> np.ndarray:
        """Bounds (B, n) on the total error of each value."""
        if self.norms is None:
            return self.remainder
        return np.where(self.remainder > 0.0, self.norms.each() * (1.0 + 8.0 * UNIT) + self.remainder, 0.0)

    @cached_property
    def spread(self) -> np.ndarray:
        """Σ_k |coefficient_k| (B, n), as computed."""
        spread = np.empty(self.remainder.shape)
        kernels.spreads(self.forms, spread)
        return spread

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Proved lower and upper bounds (B, n) on the values."""
        low, high = np.empty(self.remainder.shape), np.empty(self.remainder.shape)
        # A sum of m + 1 numbers, and one more addition for each end.
        factor = gamma(self.forms.shape[1] + 2)
        if self.corners is None:
            kernels.ends(self.forms, self.spread, self.rest, factor, LEAST, low, high)
        else:
            points, blur = self.corners.points, self.corners.blur
            kernels.corner_ends(self.forms, points, blur, self.spread, self.rest, factor, LEAST, low, high)
        return low, high


def unknown(boxes: int, rows: int, size: int) -> Forms:
    """Values about which nothing is known."""
    return Forms(np.zeros((boxes, rows, size)), np.full((boxes, size), np.inf))


def through(forms: Forms, step: Step) -> Forms:
    """The values after a linear step; copied values stay exact."""
    if isinstance(step, PartStep):
        first, last = step.before, step.before + step.inner.sizes[0]
        inner = through(_part(forms, first, last), step.inner)
        return _side_by_side([_part(forms, 0, first), inner, _part(forms, last, step.sizes[0])])
    if isinstance(step, ArrangeStep):
        return _side_by_side([_part(forms, part.start, part.stop) for part in step.slices])
    norms = None if forms.norms is None else forms.norms.through(step)
    if (index := _copied(step)) is not None:
        return forms.take(index, norms)
    boxes, rows, size = forms.forms.shape
    before = np.empty((boxes, size))
    after = step.forward(forms.forms.reshape(boxes * rows, size)).reshape(boxes, rows, step.sizes[1])
    if norms is not None and isinstance(step, ConvStep):
        # The centres are far larger than all other rows, so their rounding would dominate.
        after[:, 0], remainder = convolve(step, forms.forms[:, 0])
        remainder += step.forward_abs(gamma(step.terms + 2) * forms.spread + FLOOR * (forms.remainder > 0.0))
    else:
        kernels.errors_before(forms.forms, forms.spread, forms.remainder, gamma(step.terms + 2), FLOOR, before)
        remainder = step.forward_abs(before)
    kernels.finish_step(
        after, remainder, step.bias, step.bias_size, gamma(step.roundings + 2), up(step.terms + rows), LEAST
    )
    return _settled(after, remainder, forms.corners, norms)


def _settled(forms: np.ndarray, errors: np.ndarray, corners: HullCorners | None, norms: Norms | None) -> Forms:
    """Forms with new errors (B, n), which are added to the norms if there are norms."""
    if norms is None:
        return Forms(forms, errors, corners)
    return Forms(forms, _marks(errors), corners, norms.plus(errors))


def _marks(errors: np.ndarray) -> np.ndarray:
    """Remainders that merely mark values that are not exactly zero; NaN stays NaN."""
    return np.where(errors > 0.0, LEAST, errors)


def _part(forms: Forms, first: int, last: int) -> Forms:
    return forms.take(slice(first, last), None if forms.norms is None else forms.norms.part(first, last))


def _side_by_side(parts: list[Forms]) -> Forms:
    forms, remainder = (np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in FIELDS)
    norms = [part.norms for part in parts if part.norms is not None]
    return Forms(forms, remainder, parts[0].corners, Norms.join(norms) if norms else None)


def _copied(step: Step) -> np.ndarray | None:
    """The index of the value that each result of a step copies; None if the step computes any result."""
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
        # The remainder is a sum with a rounding for every row.
        kernels.lift_radii(remainder, up(4 + after.shape[1]), LEAST)
        # No slope exceeds 1, so the errors that the norms bound do not grow.
        norms = None if forms.norms is None else forms.norms.settled()
        return _settled(after, remainder, forms.corners, norms)


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
    """Relax max(z, 0) for z in [low, high] (B, n): exact if the sign is known, else between chord and parallel."""
    is_open = ~(low >= 0.0) & ~(high <= 0.0)
    width = np.where(is_open, high - low, 1.0)
    # An exact zero stays zero: its slope is 0.
    slope = np.where(is_open, high / width, (high > 0.0).astype(np.float64))
    # max(z, 0) − slope · z lies between 0 (at the kink) and its value at one of the ends.
    top = np.maximum(-slope * low, (1.0 - slope) * high)
    half = np.where(is_open, 0.5 * top, 0.0)
    return Relaxed(slope, half, half * (1.0 + 8.0 * UNIT))


def relax_clip(low: np.ndarray, high: np.ndarray) -> Relaxed:
    """Relax min(max(z, 0), 1) for z in [low, high] (B, n), like `relax_relu`, with the slope of the chord."""
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
    perturbed: Perturbed,
    cell: int,
    low: np.ndarray,
    high: np.ndarray,
    vertices: np.ndarray | None = None,
    *,
    is_deep: bool = False,
) -> Forms:
    """The clipped pixels on boxes with corners low and high (B, d) in t, all in the box of one knot cell.

    With vertices (B, V, d) in the boxes, the forms hold on their hulls inside the cell, widened as far as the boxes
    extend. For deep networks, the norms bound the errors, which are as small as possible.
    """
    if perturbed.curve is not None:
        assert vertices is None  # hulls belong to regions, which a curved image does not have
        found = perturbed.curve.enclose(perturbed.box(low, high))
        return _clipped(Forms(found.coefficients, found.radius), is_deep=is_deep)
    domain, piece = perturbed.domain, perturbed.cells[cell]
    halves = perturbed.boxes[piece.box] if vertices is None else (piece,)
    piece, d = halves[0], domain.dimension
    slope, base = piece.slope.reshape(d, -1), (perturbed.x0 + piece.offset).ravel()
    middle = 0.5 * (low + high)
    # At least the larger half, however the middle was rounded.
    half = np.maximum(high - middle, middle - low) * (1.0 + 4.0 * UNIT)
    thetas = domain.to_theta(middle)
    forms = np.empty((len(low), 1 + d, len(base)))
    forms[:, 0] = base + thetas @ slope
    forms[:, 1:] = (half * domain.widths)[:, :, None] * slope
    # A few roundings of numbers up to this size, including those in offset and slope of a moving image.
    size = perturbed.magnitudes
    error = np.where(size > 0.0, gamma(16 + 4 * d) * size + LEAST, 0.0)
    remainder = np.tile(error, (len(low), 1))
    if len(halves) > 1:
        remainder = up(4) * (remainder + _fold(forms, halves[0], halves[1], thetas, half * domain.widths))
    if is_deep and vertices is None and perturbed.moving_axis is None and np.isin(slope, (-1.0, 0.0, 1.0)).all():
        # All pixels share the rounding of theta, so a wider box covers it. The rest is the rounding of d + 1 additions.
        wider = 8.0 * UNIT * (np.abs(domain.low) + np.abs(domain.high))
        forms[:, 1:] = (half * domain.widths * (1.0 + 8.0 * UNIT) + wider)[:, :, None] * slope
        remainder[:] = np.where(size > 0.0, 1.01 * (d + 3) * UNIT * size + LEAST, 0.0)
    corners = None
    if vertices is not None:
        # In the coordinates of the box; hulls extend as far beyond their vertices as the boxes do.
        points = (vertices - middle[:, None]) / half[:, None]
        around = np.maximum(vertices.min(axis=1) - low, high - vertices.max(axis=1))
        corners = HullCorners(points, around / half * (1.0 + 8.0 * UNIT) + 8.0 * UNIT * (1.0 + np.abs(middle) / half))
    return _clipped(Forms(forms, remainder, corners), is_deep=is_deep)


def _fold(forms: np.ndarray, lower: KnotCell, upper: KnotCell, middle: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Extend forms (B, 1 + d, pixels) of the lower half of a knot box to both halves; returns their remainder.

    middle and half (B, d): the boxes in theta. Let s be the form of the upper side. The pixel's form on the upper half
    is that on the lower half plus a bend times s, because both agree where s vanishes. So a pixel is the lower form
    plus the bend times max(s, 0).
    """
    assert upper.side is not None
    normal, d = upper.side[:-1], len(upper.side) - 1
    axis = int(np.flatnonzero(normal)[0])
    slopes = lower.slope.reshape(d, -1)[axis], upper.slope.reshape(d, -1)[axis]
    bend = (slopes[1] - slopes[0]) / normal[axis]
    at, reach = middle @ normal + upper.side[-1], half @ np.abs(normal)
    rounding = 16.0 * UNIT * ((np.abs(middle) + half) @ np.abs(normal) + abs(upper.side[-1]))
    slope, offset, rest = fold(at - reach - rounding, at + reach + rounding)
    forms[:, 0] += (slope * at + offset)[:, None] * bend
    forms[:, 1:] += (slope[:, None] * half * normal)[:, :, None] * bend
    # The rounding of the bend is a share of both slopes.
    off = 2.0 * rounding + gamma(16) * (np.abs(at) + reach + offset)
    return rest[:, None] * np.abs(bend) + off[:, None] * (np.abs(slopes[0]) + np.abs(slopes[1]))


def _clipped(unclipped: Forms, *, is_deep: bool) -> Forms:
    clipped = relax_clip(*unclipped.bounds()).of(unclipped)
    return clipped.with_norms() if is_deep else clipped
