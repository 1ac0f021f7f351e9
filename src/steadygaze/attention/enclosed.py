"""Losses that are functions of a few polynomials in t: where they are at most a limit, enclosed on parts of regions.

On a part the border of a limit lies between two parallel planes: a linear form of t with bounds on its difference from
the loss. The smaller the part, the closer the planes: `properties/enclosing.py` divides parts for that.

`EnclosedSums` collects the polynomials of all regions, so they answer any limit. Maps are gradients, or gradients times
the image less a baseline; expected maps and masks may move with the image, along one axis or two. On a region all of
these are affine in t or products of affine functions. So the sums over pixels behind a loss are polynomials, of degree
two for maps that move or contain the image, and four for those that do both.
"""

from typing import NamedTuple

import numpy as np

from ..compound import Compound
from ..tolerances import LEAST, MORE, UNIT, gamma, up
from .inconsistency import Inconsistency
from .measures import MOVED, Border, Expectation
from .measures.distance import DISTANCE
from .options import AttentionOptions
from .pixel_forms import PixelLines
from .polynomial_sums import FactorForms, MovedMaps, Sums
from .polynomials import ConvexParts, Monomials, monomials
from .spans import Spans, up_to


class Strips(NamedTuple):
    """The loss on N parts at one limit: surely kept for s in inner (N, 2), surely lost outside outer (N, 2).

    s is t times the direction in along (N, D); ends (N, 2) is its range. reach (N, 2) encloses the loss. doubt (N,):
    what errors of maps contribute to the distance between both planes. In units of the loss, gap (N,) is how far the
    border may be from a plane, and floor (N,) the part of it that errors cause, which halving a part does not reduce.
    """

    inner: np.ndarray
    outer: np.ndarray
    ends: np.ndarray
    reach: np.ndarray
    along: np.ndarray
    gap: np.ndarray
    doubt: np.ndarray
    floor: np.ndarray


class EnclosedLoss:
    """The losses of N parts of regions, which have given curves (N,).

    origins (N, D): the low corners of their knot cells; error (N,) bounds that of gradients.
    """

    def __init__(self, curves: Inconsistency, curve: np.ndarray, origins: np.ndarray, error: np.ndarray) -> None:
        assert curves.layout is not None
        self.layout, self.measure, self.origins = curves.layout, curves.measure, origins
        self.coefficients, self.errors, factor, other = self.layout.split(curves.sums[curve])
        if self.measure != DISTANCE:
            # A map that is surely zero has no attention, whatever the expected map.
            other = np.where(error == 0.0, 0.0, other)
        with np.errstate(invalid="ignore"):
            # No gradient counts where all factors are zero, whatever its error.
            self.error = np.where(factor > 0.0, (error + other) * factor, 0.0) * MORE
        # Polynomials of degree two are sums of squares of affine functions, unless they are those of absolute values.
        self.are_squares = self.measure.squares_maps and self.layout.powers.degree == 2

    def take(self, chosen: np.ndarray) -> "EnclosedLoss":
        """The losses of the chosen parts (an index array)."""
        found = object.__new__(EnclosedLoss)
        found.layout, found.measure, found.are_squares = self.layout, self.measure, self.are_squares
        for name in ("coefficients", "errors", "error", "origins"):
            setattr(found, name, getattr(self, name)[chosen])
        return found

    def strips(self, parts: ConvexParts, limit: float) -> Strips:
        """Where the losses are at most a limit, on parts. Holds over the real numbers."""
        border = self._border(parts, limit)
        form = border.form
        value, slope, low, high = form.value[:, 0], form.slope[:, 0], form.low[:, 0], form.high[:, 0]
        # The rounding of directions, and of places along them; kept where the form is below 0, not at 0.
        size = form.size[:, 0] + np.abs(slope).sum(axis=1)
        off = 16.0 * gamma(16) * size + LEAST
        length = np.linalg.norm(slope, axis=1)
        is_flat = ~(length > 64.0 * UNIT * size) | ~np.isfinite(length)
        first = np.eye(slope.shape[1])[0]
        along = np.where(is_flat[:, None], first, slope / np.where(is_flat, 1.0, length)[:, None])
        ends = np.stack(parts.ends_of((parts.points * along[parts.owner]).sum(axis=1)), axis=1)
        centre = (parts.middle * along).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            kept, lost = centre + (-high - off - value) / length, centre + (-low + off - value) / length
            gap, floor = high - low, self.remainder(parts.middles, limit)
            doubt = 2.0 * self.error / length
        kept = np.where(is_flat | np.isnan(kept), -np.inf, kept)
        lost = np.where(is_flat | np.isnan(lost), np.inf, lost)
        reach = border.reach
        is_kept = (reach[:, 1] <= limit) | (kept >= ends[:, 1])
        is_lost = (reach[:, 0] > limit) | (lost < ends[:, 0])
        is_kept &= ~is_lost
        reach[:, 1] = np.where(is_kept, np.minimum(reach[:, 1], limit), reach[:, 1])
        reach[:, 0] = np.where(is_lost, np.maximum(reach[:, 0], np.nextafter(limit, np.inf)), reach[:, 0])
        kept, lost = np.where(is_kept, np.inf, np.where(is_lost, -np.inf, kept)), np.where(is_lost, -np.inf, lost)
        return Strips(up_to(kept, ends), up_to(lost, ends), ends, reach, along, gap, doubt, floor)

    def reach(self, parts: ConvexParts) -> np.ndarray:
        """Bounds (N, 2) of the losses on parts."""
        return self._border(parts, 0.0).reach

    def remainder(self, parts: ConvexParts, limit: float) -> np.ndarray:
        """How far (N,) the border may be from a plane on parts, in units of the loss."""
        form = self._border(parts, limit).form
        return form.high[:, 0] - form.low[:, 0]

    def _border(self, parts: ConvexParts, limit: float) -> Border:
        with np.errstate(invalid="ignore", over="ignore"):
            forms = self.layout.powers.enclose(
                self.coefficients, self.errors * MORE, self.origins, parts, are_squares=self.are_squares
            )
            low, high = (found := self.measure.border(forms, limit, self.error)).reach.T
        # NaN bounds nothing.
        reach = np.stack([np.where(low >= 0.0, low, 0.0), np.where(np.isnan(high), np.inf, high)], axis=1)
        return found._replace(reach=reach)

    def values(self, points: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """The values (V, k) of the polynomials at points (V, D) of parts (V,), up to rounding."""
        return self.layout.powers.values(self.coefficients, points - self.origins[owner], owner)


def losses_at(curves: Inconsistency, curve: np.ndarray, points: np.ndarray, origins: np.ndarray) -> np.ndarray:
    """The losses (N,) of curves (N,) at points (N, D) in knot cells with low corners (N, D), up to rounding."""
    loss = EnclosedLoss(curves, curve, origins, np.zeros(len(curve)))
    return loss.measure.polynomial_losses(loss.values(points, np.arange(len(curve))))


class NumberShape(NamedTuple):
    """How the numbers of a region are laid out: `sums` polynomials, each with its error, then two single numbers.

    The single numbers bound the factor of a gradient's error, and an error beside those of gradients.
    """

    sums: int
    powers: Monomials

    @classmethod
    def of(cls, compound: Compound, options: AttentionOptions) -> "NumberShape":
        """The layout for a question."""
        moves, has_factor = compound.perturbed.moving_axis is not None, options.method.factor_baseline is not None
        classes = len(options.chosen(compound.graph.classes))
        degree = options.measure.polynomial_degree * (moves + has_factor)
        return cls(options.measure.polynomial_count(classes), monomials(compound.coordinates, degree))

    @property
    def numbers(self) -> int:
        """How many numbers a region has."""
        return self.sums * (len(self.powers) + 1) + 2

    def split(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Coefficients (N, k, M), their errors (N, k), the largest factors (N,) and other errors (N,)."""
        rows = numbers[:, :-2].reshape(len(numbers), self.sums, len(self.powers) + 1)
        return rows[:, :, :-1], rows[:, :, -1], numbers[:, -2], numbers[:, -1]


class EnclosedSums:
    """Collects the numbers (R, S) of regions, pattern by pattern."""

    def __init__(
        self, compound: Compound, options: AttentionOptions, original: np.ndarray, spans: Spans, place: np.ndarray
    ) -> None:
        """place (R,): where the pattern of each region stands among those that are measured.

        original (K', C, H, W): the filtered maps of the unperturbed image, or its gradients if maps contain the image.
        """
        assert spans.shapes is not None and spans.cells is not None and spans.accuracy is not None
        self.compound, self.options, self.shapes, self.cells = compound, options, spans.shapes, spans.cells
        self.layout = NumberShape.of(compound, options)
        self.by_place = np.argsort(place, kind="stable")
        self.place_starts = np.searchsorted(place[self.by_place], np.arange(place.max(initial=-1) + 2))
        self.numbers = np.zeros((len(place), self.layout.numbers))
        baseline, chosen = options.method.factor_baseline, np.unique(self.cells).tolist()
        self.moved = {cell: moved_maps(compound, options, original, cell) for cell in chosen}
        self.pixels = (
            None if baseline is None
            else {cell: PixelLines(compound, cell, baseline, spans.accuracy) for cell in chosen}
        )  # fmt: skip

    def add(self, places: np.ndarray, maps: np.ndarray, _at: Expectation) -> None:
        """Write the numbers of regions with patterns at places (B,); maps (B, K', C, H, W) are filtered gradients."""
        found = [self.by_place[self.place_starts[place] : self.place_starts[place + 1]] for place in places]
        owner = np.repeat(np.arange(len(places)), [len(part) for part in found])
        regions = np.concatenate([np.zeros(0, dtype=np.int64), *found])
        own = np.ascontiguousarray(maps.reshape(*maps.shape[:2], -1))
        for cell in np.unique(self.cells[regions]).tolist():
            chosen = self.cells[regions] == cell
            self.numbers[regions[chosen]] = self._numbers(own, owner[chosen], regions[chosen], cell)

    def _numbers(self, maps: np.ndarray, owner: np.ndarray, regions: np.ndarray, cell: int) -> np.ndarray:
        layout, measure, moved = self.layout, self.options.measure, self.moved[cell]
        factor, is_nothing = None, np.zeros(len(regions), dtype=bool)
        shapes = self.shapes.take(regions)
        numbers = np.zeros((len(regions), layout.numbers))
        numbers[:, -2], numbers[:, -1] = 1.0, moved.error
        if self.pixels is not None:
            found = self.pixels[cell].whole(shapes, is_signed=measure.squares_maps)
            factor, is_nothing = FactorForms(found.functions, found.off, found.largest), found.is_nothing
            numbers[:, -2] = found.largest.max(axis=1)
        out = np.zeros((len(regions), layout.sums, len(layout.powers) + 1))
        share = gamma(2 * maps[0].size + 128)
        corners = shapes.points - self.compound.corners[cell].low
        sums = Sums(maps, owner, moved, factor, layout.powers.table, share, corners, shapes.starts)
        measure.add_polynomials(sums, out)
        out[:, :, -1] *= up(maps[0].size + 16)
        numbers[:, :-2] = out.reshape(len(regions), -1)
        numbers[is_nothing] = 0.0
        return numbers


def moved_maps(compound: Compound, options: AttentionOptions, original: np.ndarray, cell: int) -> MovedMaps:
    """The expected maps and the mask on a knot cell, as functions of t − (the low corner of the cell)."""
    expected = _in_cell(compound, original, cell).reshape(len(original), -1, compound.coordinates + 1)
    weights, error = None, 0.0
    if options.mask is not None:
        weights = _in_cell(compound, options.mask.weights[None], cell).reshape(-1, compound.coordinates + 1)
    if compound.perturbed.moving_axis is not None and options.measure.uses_expected:
        error = MOVED * float(np.linalg.norm(np.abs(expected).sum(axis=2), axis=1).sum())
    return MovedMaps(np.ascontiguousarray(expected), weights, error)


def _in_cell(compound: Compound, maps: np.ndarray, number: int) -> np.ndarray:
    """Maps (…, H, W), moved over a knot cell: functions (…, H, W, D+1) of t − low corner, constants first."""
    perturbed, domain, cell = compound.perturbed, compound.domain, compound.cells[number]
    found = np.zeros((*maps.shape, compound.coordinates + 1))
    offset, slopes = perturbed.moved_form(maps, cell)
    found[..., 0] = maps + offset
    for axis in range(domain.dimension):
        found[..., 0] += cell.low[axis] * slopes[axis]
        found[..., 1 + axis] = domain.widths[axis] * slopes[axis]
    return found
