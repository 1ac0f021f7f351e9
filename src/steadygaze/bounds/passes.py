"""Enclosures of neurons, margins and gradients on boxes of thetas: a forward pass, and a backward one.

The box is e ∈ [−1, 1]^m. A value is centre + Σ_k coefficient_k · e_k + r with |r| ≤ remainder (`Forms`). The first
coordinates of e are those of theta. The others, generators, are relaxation errors of single neurons: they keep the
correlations between values that share an error. All bounds hold for real numbers: rounding goes into the remainder.
For a polytope inside the box, the forms come with its corners, and bounds hold on the polytope. Backward, gradients
are intervals, and a ReLU of unknown sign has a derivative in [0, 1].
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..attention.filters import Intervals
from ..attention.options import Distance
from ..network.steps import Step
from ..perturbation import Perturbed
from ..tolerances import FLOOR, LEAST, LEAST_ROOT, UNIT, down, gamma, up
from . import box_kernels as kernels

Segments = tuple[tuple[Step, ...], ...]


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


@dataclass(frozen=True, eq=False)
class Readout:
    """Linear functions row · h + constant of the last hidden values, (R, n) and (R,), each known up to its error."""

    row: np.ndarray
    row_error: np.ndarray
    constant: np.ndarray
    constant_error: np.ndarray

    @classmethod
    def of(cls, steps: Sequence[Step], targets: np.ndarray) -> "Readout":
        """The functions target · (the last steps applied to h), for targets (R, K)."""
        row, error = targets.astype(np.float64), np.zeros(targets.shape)
        constant, slack = np.zeros(len(row)), np.zeros(len(row))
        for step in reversed(steps):
            size, terms = step.bias_size, step.sizes[1] + step.roundings
            slack += (error @ size + gamma(terms + 2) * (np.abs(row) @ size)) * up(terms)
            constant = constant + row @ step.bias
            slack += gamma(1) * np.abs(constant)
            above = error + gamma(step.backward_terms + 1) * np.abs(row)
            row = step.backward(row)
            error = step.backward_abs(above) * up(step.backward_terms) + LEAST
        return cls(row, error, constant, slack * up(4) + LEAST)

    def bounds(self, forms: Forms) -> tuple[np.ndarray, np.ndarray]:
        """Proved bounds (B, R) of the functions, given the values as forms."""
        values, error = self._applied(forms)
        terms = up(sum(forms.forms.shape[1:]))
        reach = (np.abs(values[:, 1:]).sum(axis=1) + error + self.constant_error) * terms
        centre = values[:, 0] + self.constant
        slack = gamma(4) * (np.abs(values[:, 0]) + np.abs(self.constant) + reach) + LEAST
        low, high = centre - reach - slack, centre + reach + slack
        # After an overflow, nothing is known.
        is_known = np.isfinite(centre) & np.isfinite(reach)
        return np.where(is_known, low, -np.inf), np.where(is_known, high, np.inf)

    def at_corners(self, forms: Forms, corners: Corners) -> tuple[np.ndarray, np.ndarray]:
        """Values (B, V, R) at the corners of affine functions close to the given ones on the polytopes.

        Also the largest distance (B, R) between the two anywhere on the polytope; infinite if unknown.
        """
        values, error = self._applied(forms)
        reach = np.abs(values).sum(axis=1) + np.abs(self.constant)
        error += self.constant_error + gamma(values.shape[1] + 6) * reach + LEAST
        error += np.einsum("bk,bkr->br", corners.blur, np.abs(values[:, 1:]))
        at = np.einsum("bvk,bkr->bvr", corners.points, values[:, 1:]) + (values[:, :1] + self.constant)
        is_known = np.isfinite(at).all(axis=1) & np.isfinite(error)
        return at, np.where(is_known, error * up(sum(forms.forms.shape[1:])), np.inf)

    def _applied(self, forms: Forms) -> tuple[np.ndarray, np.ndarray]:
        """Forms (B, 1 + m, R) of the functions without their constants, and a bound (B, R) of their error."""
        boxes, rows, size = forms.forms.shape
        values = (forms.forms.reshape(boxes * rows, size) @ self.row.T).reshape(boxes, rows, len(self.row))
        magnitude = np.abs(forms.forms[:, 0]) + forms.spread
        error = (forms.remainder + gamma(size + 2) * magnitude) @ np.abs(self.row).T
        error += ((magnitude + forms.remainder) * up(rows)) @ self.row_error.T
        return values, error


@dataclass(frozen=True, eq=False)
class Passed:
    """One pass: proved bounds (B, n) of the input of every ReLU layer, and the last hidden values.

    pull (B, d) adds up how much each parameter moves the neurons of unknown sign: a hint where to split.
    """

    low: tuple[np.ndarray, ...]
    high: tuple[np.ndarray, ...]
    last: Forms
    pull: np.ndarray

    def take(self, chosen: np.ndarray) -> "Passed":
        """The chosen boxes."""
        low, high = (tuple(part[chosen] for part in ends) for ends in (self.low, self.high))
        corners = None if self.last.corners is None else self.last.corners.take(chosen)
        last = Forms(self.last.forms[chosen], self.last.remainder[chosen], corners)
        return Passed(low, high, last, self.pull[chosen])

    @property
    def unstable(self) -> np.ndarray:
        """How many of the classifier's neurons may split each box (B,): both signs occur, by more than rounding."""
        counts = [is_split(low, high).sum(axis=1) for low, high in zip(self.low, self.high, strict=True)]
        return np.sum(counts, axis=0) if counts else np.zeros(len(self.last.forms), dtype=np.int64)


TOUCHING = 1e-9  # a neuron that passes zero by less than this share of its range only touches it


def is_split(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Where bounds (B, n) lie on both sides of zero by more than rounding; a count, not a proof."""
    least = TOUCHING * (high - low)
    return (low < -least) & (high > least)


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


def forward(segments: Segments, image: Forms, parameters: int = 0, room: int = 0) -> Passed:
    """Carry values through the classifier up to its last hidden layer.

    The first `parameters` coordinates of the forms are those of theta; every layer may add `room` generators.
    """
    lows, highs = [], []
    values = image
    pull = np.zeros((len(image.forms), parameters))
    for steps in segments[:-1]:
        for step in steps:
            values = through(values, step)
        low, high = values.bounds()
        lows.append(low)
        highs.append(high)
        is_open = is_split(low, high).astype(np.float64)
        pull += np.einsum("bkn,bn->bk", np.abs(values.forms[:, 1 : 1 + parameters]), is_open)
        values = relax_relu(low, high).of(values, room)
    return Passed(tuple(lows), tuple(highs), values, pull)


def gradients(segments: Segments, passed: Passed, logits: Readout) -> Intervals:
    """Enclosures (B, R, pixels) of the gradients of functions of the logits, given on the last hidden values."""
    boxes, count = len(passed.last.forms), len(logits.row)
    centre, radius = (np.repeat(part[None], boxes, axis=0) for part in (logits.row, logits.row_error))
    layers = zip(segments[:-1], passed.low, passed.high, strict=True)
    for steps, low, high in reversed(list(layers)):
        kernels.relu_gradients(centre, radius, low, high, up(2))
        centre, radius = centre.reshape(boxes * count, -1), radius.reshape(boxes * count, -1)
        for step in reversed(steps):
            kernels.errors_above(centre, radius, gamma(step.backward_terms + 1), FLOOR)
            radius = np.ascontiguousarray(step.backward_abs(radius))
            kernels.lift_radii(radius, up(step.backward_terms), LEAST)
            centre = np.ascontiguousarray(step.backward(centre))
        centre, radius = centre.reshape(boxes, count, -1), radius.reshape(boxes, count, -1)
    return Intervals(centre, radius)


def inconsistencies(maps: Intervals, low: np.ndarray, high: np.ndarray, distance: Distance) -> np.ndarray:
    """Proved bounds (B, 2) of Σ_j dist(map_j, expected_j); maps (B, K, pixels), expected maps between low and high."""
    boxes, classes, size = maps.centre.shape
    sums = np.empty((boxes, classes, 2))
    kernels.map_distances(maps.centre, maps.radius, low, high, gamma(2), distance.value, sums)
    if distance is Distance.L2:
        # An overflown sum of squares gives no lower bound.
        sums[:, :, 0] = np.where(np.isfinite(sums[:, :, 0]), sums[:, :, 0], 0.0)
        sums = np.sqrt(sums)
    lower, upper = sums.sum(axis=1).T
    terms = classes + size + 8
    least, most = np.maximum(lower * down(terms) - classes * LEAST_ROOT, 0.0), upper * up(terms) + classes * LEAST_ROOT
    # After an overflow, nothing is known.
    return np.stack([np.where(np.isfinite(least), least, 0.0), np.where(np.isnan(most), np.inf, most)], axis=1)
