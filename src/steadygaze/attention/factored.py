"""Losses of maps that are gradients times (image − baseline): ratios of two affine functions of t on a region.

On a region, gradients are constant and pixels are affine in t. Where no pixel passes the baseline or an end of [0, 1],
|gradient · (pixel − baseline)| is |gradient| times a non-negative affine function. So a loss that weighs such
absolute values is `above` / `below`, both affine in t, and its border for a limit is straight:
above − limit · below = 0. How far pixels can deviate from their affine functions on a region bounds the error of both.
"""

from typing import NamedTuple

import numpy as np

from ..compound import Compound
from ..tolerances import MORE, UNIT, gamma, up
from . import factored_kernels as kernels
from .inconsistency import Inconsistency
from .measures import NO_ATTENTION, Expectation, Measure
from .options import AttentionOptions
from .pixel_forms import ROUNDINGS, PixelLines
from .spans import Spans, up_to


def number_count(coordinates: int) -> int:
    """The length of a region's row: two forms of t, each with its error and the largest factor of a gradient."""
    return 2 * (coordinates + 3)


class FactoredSums:
    """Collects the forms of regions, pattern by pattern.

    numbers (R, 2, D+3), one row each for `above` and `below`: the coefficients in t and the constant; a bound on the
    error on the region if gradients are exact; the largest weight times |pixel − baseline|, the factor for errors of
    gradients.
    """

    def __init__(self, compound: Compound, options: AttentionOptions, spans: Spans, place: np.ndarray) -> None:
        """place (R,): the index of each region's pattern among the measured patterns."""
        baseline = options.method.factor_baseline
        assert baseline is not None and spans.shapes is not None and spans.accuracy is not None
        self.measure, self.shapes = options.measure, spans.shapes
        self.pixels = PixelLines(compound, 0, baseline, spans.accuracy)
        # Regions, sorted by the place of their pattern.
        self.by_place = np.argsort(place, kind="stable")
        self.place_starts = np.searchsorted(place[self.by_place], np.arange(place.max(initial=-1) + 2))
        self.numbers = np.zeros((len(place), 2, compound.coordinates + 3))

    def add(self, places: np.ndarray, maps: np.ndarray, at: Expectation) -> None:
        """Write the forms of the regions with patterns at places (B,); maps (B, K', C, H, W) are filtered gradients."""
        pixels, weights = self.pixels, self.measure.term_weights(at)
        # The roundings of terms, of their sums over the pixels of a line, and of sums over lines, in any order.
        share = gamma(maps[0].size + len(pixels.off) + ROUNDINGS)
        found = [self.by_place[self.place_starts[place] : self.place_starts[place + 1]] for place in places]
        owner = np.repeat(np.arange(len(places)), [len(part) for part in found])
        regions = np.concatenate([np.zeros(0, dtype=np.int64), *found])
        forms = pixels.forms(self.shapes.take(regions), share)
        sums = self._sums_by_line(maps, self.measure.subtracted_maps(at), weights, share)
        numbers = np.zeros((len(regions), len(weights), self.numbers.shape[2]))
        kernels.add_forms(
            owner, sums, pixels.lines, forms.slope, forms.constant, forms.error, forms.largest,
            pixels.heaviest(weights), np.zeros(len(pixels.off)), numbers,
        )  # fmt: skip
        self.numbers[regions, : len(weights)] = numbers
        if len(weights) == 1:
            # Without a divisor, `below` is 1.
            self.numbers[regions, 1, -3] = 1.0
        else:
            self.numbers[regions[forms.is_nothing]] = 0.0

    def _sums_by_line(self, maps: np.ndarray, subtracted: np.ndarray, weights: np.ndarray, share: float) -> np.ndarray:
        """The weighted sums (B, W, L+2) of absolute values over the pixels of each line.

        The last two: over pixels that do not change, times their distances from the baseline, and times their errors.
        """
        pixels = self.pixels
        still_error = pixels.factor_error + share * pixels.factor
        chosen = np.concatenate([pixels.moving, pixels.still, pixels.still])
        factors = np.concatenate([np.ones(len(pixels.moving)), pixels.factor, still_error])
        starts = np.append(pixels.first, len(pixels.moving) + np.arange(3) * len(pixels.still))
        out = np.zeros((len(maps), len(weights), len(starts) - 1))
        size = maps[0, 0].size
        kernels.group_sums(
            np.ascontiguousarray(maps.reshape(*maps.shape[:2], size)), subtracted.reshape(-1, size), chosen, starts,
            weights[:, chosen] * factors, np.zeros(size), out,
        )  # fmt: skip
        return out


class Planes(NamedTuple):
    """The fields of `AttentionLabels` for R regions at one limit, without the limit itself."""

    inner: np.ndarray
    outer: np.ndarray
    ends: np.ndarray
    reach: np.ndarray
    along: np.ndarray


class Corners(NamedTuple):
    """The corners (V, D) of R convex parts of regions; part r has the corners starts[r]:starts[r+1]."""

    points: np.ndarray
    starts: np.ndarray

    def ends_of(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest of values (V,) at the corners of every part, (R,) each."""
        if not len(values):
            return values, values
        return np.minimum.reduceat(values, self.starts[:-1]), np.maximum.reduceat(values, self.starts[:-1])


class _AtCorners(NamedTuple):
    """`above` and `below` at all corners (V,), and bounds (R,) on their errors on every part."""

    above: np.ndarray
    below: np.ndarray
    above_error: np.ndarray
    below_error: np.ndarray


def planes(curves: Inconsistency, spans: Spans, limit: float, error: np.ndarray) -> Planes:
    """Find where the loss is at most a limit, over the real numbers; error (Q,) bounds the errors of gradients."""
    shapes, numbers = spans.shapes, _numbers(curves, curves.curve)
    assert shapes is not None
    corners = Corners(shapes.points, shapes.starts)
    at = _at_corners(corners, numbers, error[curves.curve])
    reach = _reach(curves.measure, corners, numbers, at)
    form = numbers[:, 0, :-2] - limit * numbers[:, 1, :-2]
    # The rounding of this difference, of directions, and of positions along them.
    size = (np.abs(numbers[:, 0, :-2]) + limit * np.abs(numbers[:, 1, :-2])).sum(axis=1)
    doubt = (at.above_error + limit * at.below_error) * MORE + 8.0 * gamma(ROUNDINGS) * size
    length = np.linalg.norm(form[:, :-1], axis=1)
    is_flat = ~(length > 64.0 * UNIT * size) | ~np.isfinite(length)
    first = np.eye(form.shape[1] - 1)[0]
    along = np.where(is_flat[:, None], first, form[:, :-1] / np.where(is_flat, 1.0, length)[:, None])
    ends = np.stack(shapes.extent_along(along), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        kept, lost = (-doubt - form[:, -1]) / length, (doubt - form[:, -1]) / length
    # On a flat region, the bounds on the loss decide.
    kept = np.where(is_flat | np.isnan(kept), -np.inf, kept)
    lost = np.where(is_flat | np.isnan(lost), np.inf, lost)
    is_kept, is_lost = reach[:, 1] <= limit, reach[:, 0] > limit
    kept, lost = np.where(is_kept, np.inf, np.where(is_lost, -np.inf, kept)), np.where(is_lost, -np.inf, lost)
    return Planes(up_to(kept, ends), up_to(lost, ends), ends, reach, along)


def values(curves: Inconsistency, curve: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The losses (N,) of curves (N,) at points (N, D) of their regions, up to rounding."""
    numbers = _numbers(curves, curve)
    padded = np.hstack([points, np.ones((len(points), 1))])
    above, below = np.einsum("nd,nwd->wn", padded, numbers[:, :, :-2])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below == 0.0, NO_ATTENTION, np.maximum(above, 0.0) / below)


def reach_between(curves: Inconsistency, corners: Corners, error: np.ndarray) -> np.ndarray:
    """Bounds (R, 2) on the losses of curves on parts of their regions; error (Q,) bounds the errors of gradients."""
    numbers = _numbers(curves, curves.curve)
    return _reach(curves.measure, corners, numbers, _at_corners(corners, numbers, error[curves.curve]))


def _numbers(curves: Inconsistency, curve: np.ndarray) -> np.ndarray:
    """The numbers (N, 2, D+3) of curves (N,), see `FactoredSums`."""
    return curves.sums[curve].reshape(len(curve), 2, curves.sums.shape[1] // 2)


def _at_corners(corners: Corners, numbers: np.ndarray, error: np.ndarray) -> _AtCorners:
    forms = numbers[:, :, :-2]
    own = np.repeat(forms, np.diff(corners.starts), axis=0)
    above, below = ((corners.points * own[:, row, :-1]).sum(axis=1) + own[:, row, -1] for row in (0, 1))
    with np.errstate(invalid="ignore"):
        # Where all factors are zero, errors of gradients do not matter.
        off = np.where(numbers[:, :, -1] > 0.0, error[:, None] * numbers[:, :, -1], 0.0)
    off = (numbers[:, :, -2] + off) * up(ROUNDINGS) * MORE + gamma(ROUNDINGS) * np.abs(forms).sum(axis=2)
    return _AtCorners(above, below, off[:, 0], off[:, 1])


def _reach(measure: Measure, corners: Corners, numbers: np.ndarray, at: _AtCorners) -> np.ndarray:
    """Bounds (R, 2) on the loss: a ratio of affine functions is largest and smallest at corners."""
    sizes = np.diff(corners.starts)
    above_off, below_off = np.repeat(at.above_error, sizes), np.repeat(at.below_error, sizes)
    least = at.below - below_off
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.maximum(at.above - above_off, 0.0) / (at.below + below_off) * (1.0 - 8.0 * UNIT)
        high = np.where(least > 0.0, np.maximum(at.above + above_off, 0.0) / least * (1.0 + 8.0 * UNIT), np.inf)
    lowest, highest = corners.ends_of(low)[0], corners.ends_of(high)[1]
    highest = measure.largest_loss(highest)
    # NaN bounds nothing.
    reach = np.stack([np.where(lowest >= 0.0, lowest, 0.0), np.where(np.isnan(highest), np.inf, highest)], axis=1)
    is_zero = (numbers[:, 1, :-2] == 0.0).all(axis=1) & (at.below_error == 0.0)
    return np.where(is_zero[:, None], NO_ATTENTION, reach)
