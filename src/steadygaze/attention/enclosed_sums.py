"""Numbers of regions whose losses are functions of a few polynomials in t, which `enclosed` reads for any limit.

Maps are gradients, or gradients times the image less a baseline; expected maps and masks may move with the image, along
one axis or two. On a region all of these are affine in t or products of affine functions. So the sums over pixels
behind a loss are polynomials, of degree two for maps that move or contain the image, and four for those that do both.
"""

from typing import NamedTuple

import numpy as np

from ..compound import Compound
from ..tolerances import gamma, up
from .measures import MOVED, Expectation
from .options import AttentionOptions
from .pixel_forms import PixelLines
from .polynomial_sums import FactorForms, MovedMaps, Sums
from .polynomials import Monomials, monomials
from .spans import Spans


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
        return cls(options.measure.polynomial_count(classes), monomials(compound.coordinates, max(2, degree)))

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
        numbers = np.zeros((len(regions), layout.numbers))
        numbers[:, -2], numbers[:, -1] = 1.0, moved.error
        if self.pixels is not None:
            found = self.pixels[cell].whole(self.shapes.take(regions), is_signed=measure.squares_maps)
            factor, is_nothing = FactorForms(found.functions, found.off, found.largest), found.is_nothing
            numbers[:, -2] = found.largest.max(axis=1)
        out = np.zeros((len(regions), layout.sums, len(layout.powers) + 1))
        share = gamma(2 * maps[0].size + 128)
        measure.add_polynomials(Sums(maps, owner, moved, factor, layout.powers.table, share), out)
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
