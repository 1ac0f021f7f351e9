"""Turns the regions of an exact map into ranges of the margin and of the inconsistency, and into labels.

Margins are rationals; inconsistencies are exact where the map is kept and have 30 digits where it moves. If a range
touches its threshold without crossing it, both "undecided" and the label inside the region are true.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from steadygaze.compound import Compound
from support.oracles.attention_by_definition import Question
from support.oracles.exact_attention import ExactAttention
from support.oracles.exact_curves import Curve
from support.oracles.exact_polytopes import plain
from support.oracles.exact_regions import Bounds, ExactMap, ExactRegion, Key, exact_compound_map

CLOSE = Decimal("1e-9")
"""Floats cannot distinguish a threshold from an end of a range within this distance."""


@dataclass(frozen=True, eq=False)
class ExactLabels:
    """The truth about a compound network and one label. Pixels are multiples of 1/denominator."""

    compound: Compound
    label: int
    question: Question
    denominator: int = 2**20

    @cached_property
    def map(self) -> ExactMap:
        """All regions."""
        return exact_compound_map(self.compound, denominator=self.denominator)

    @cached_property
    def margins(self) -> list[Bounds]:
        """The range of f_label − max of the others on every region."""
        return [region.margin(self.label) for region in self.map.regions]

    @cached_property
    def inconsistencies(self) -> list[tuple[Decimal, Decimal]]:
        """The range of ai on every region."""
        found = []
        for region in self.map.regions:
            curve, (start, stop) = self.curve(region), self.taus(region)
            ends = curve.value(start), curve.value(stop)
            found.append((curve.lowest(start, stop)[1] if start < stop else ends[0], max(ends)))
        return found

    def classification(self, number: int) -> set[str]:
        """The names that a region may have: one, and "undecided" where the margin touches zero."""
        low, up = self.margins[number]
        return _names(Decimal(float(low)), Decimal(float(up)), ("MR", "CR", "CB"))

    def attention(self, number: int, delta: float) -> set[str]:
        """The names that a region may have at δ."""
        low, up = self.inconsistencies[number]
        return _names(low - Decimal(delta), up - Decimal(delta), ("AR", "IR", "AB"))

    def taus(self, region: ExactRegion) -> tuple[Fraction, Fraction]:
        """The range of θ_T − the low end of the knot cell on a region; (0, 0) where nothing moves."""
        axis = self.compound.perturbed.moving_axis
        if axis is None:
            return Fraction(0), Fraction(0)
        low, high = (Fraction(float(ends[axis])) for ends in (self.compound.domain.low, self.compound.domain.high))
        begin = Fraction(float(self.compound.cells[region.cell].low[axis]))
        along = [low + plain(vertex)[axis] * (high - low) - begin for vertex in region.polytope.vertices]
        return min(along), max(along)

    def curve(self, region: ExactRegion) -> Curve:
        """ai on the region as a function of τ, from the low end of its knot cell."""
        bits = region.key[1 + 2 * self.compound.perturbed.x0.size :]
        if (region.cell, bits) not in self._curves:
            cell = self.compound.cells[region.cell]
            low, high = ([Fraction(float(end)) for end in ends] for ends in (cell.low, cell.high))
            layers = np.split(np.array(bits, dtype=bool), np.cumsum(self.compound.hidden)[:-1])
            at_low, at_high = (
                self._attention.difference(layers, end).reshape(len(self._attention.original), -1)
                for end in (low, high)
            )
            axis = self.compound.perturbed.moving_axis
            step = (at_low - at_high) / (high[axis] - low[axis] if axis is not None else Fraction(1))
            pairs = tuple((tuple(u), tuple(v)) for u, v in zip(at_low.tolist(), step.tolist(), strict=True))
            self._curves[region.cell, bits] = Curve(pairs, self.question.dist)
        return self._curves[region.cell, bits]

    def slab(self, region: ExactRegion, delta: float) -> tuple[Fraction, Fraction] | None:
        """Where ai ≤ δ among the τ of a region, as `Curve.slab` says."""
        if (region.key, delta) not in self._slabs:
            self._slabs[region.key, delta] = self.curve(region).slab(*self.taus(region), Fraction(delta))
        return self._slabs[region.key, delta]

    @cached_property
    def _slabs(self) -> dict[tuple[Key, float], tuple[Fraction, Fraction] | None]:
        return {}

    @cached_property
    def _attention(self) -> ExactAttention:
        return ExactAttention(self.compound, self.question)

    @cached_property
    def _curves(self) -> dict[tuple[int, tuple[int, ...]], Curve]:
        return {}


def _names(low: Decimal, up: Decimal, names: tuple[str, str, str]) -> set[str]:
    """One of (wholly ≤ 0, wholly > 0, both), or "undecided" if an end is zero up to rounding."""
    below, above, both = names
    if low < -CLOSE and up > CLOSE:
        return {both}
    if up <= CLOSE and low >= -CLOSE:
        return {"undecided"} if names[0] == "MR" else {below, "undecided"}
    if low >= -CLOSE:
        return {above} if low > CLOSE else {above, "undecided"}
    return {below} if up < -CLOSE else {below, "undecided"}


def threshold(truth: ExactLabels) -> float:
    """A threshold in the widest gap between the ends of the ranges of ai: no region is close to it."""
    ends = sorted({float(end) for bounds in truth.inconsistencies for end in bounds})
    gaps = [(b - a, (a + b) / 2) for a, b in pairwise(ends)]
    return max(gaps)[1] if gaps else ends[0] + 0.5
