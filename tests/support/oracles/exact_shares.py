"""Exact shares of labels on a small domain, of one to three parameters.

Regions of `ExactLabels` are cut where the label changes, and where ai crosses δ (whose ends have 30 digits).
"""

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from support.oracles.exact_labels import ExactLabels
from support.oracles.exact_polytopes import Form, Polytope, integer
from support.oracles.exact_regions import ExactRegion

NAMES = ("CR", "MR", "AR", "IR", "CR&AR", "CR&IR", "MR&AR", "MR&IR")


class ExactShares(ExactLabels):
    """The truth about a compound network and one label: shares of the domain, and whether all of it is kept."""

    def shares(self, delta: float) -> dict[str, Fraction]:
        """The shares of the domain by name; ties are neither CR nor MR."""
        found = dict.fromkeys(("CR&AR", "CR&IR", "MR&AR", "MR&IR", "tied&AR", "tied&IR"), Fraction(0))
        for region in self.map.regions:
            kept, lost = self._cut_by_attention(region, delta)
            for name, parts in (("AR", kept), ("IR", lost)):
                for part in parts:
                    for word, volume in zip(("CR", "MR", "tied"), self._label_volumes(region, part), strict=True):
                        found[f"{word}&{name}"] += volume
        for word in ("CR", "MR", "tied", "AR", "IR"):
            found[word] = sum((share for name, share in found.items() if word in name.split("&")), Fraction(0))
        return found

    def keeps_label(self) -> bool | None:
        """Whether the label is kept everywhere; None where a tie is the worst that happens."""
        lowest = min(low for low, _ in self.margins)
        return None if lowest == 0 else lowest > 0

    def keeps_attention(self, delta: float) -> bool:
        """Whether ai ≤ δ on all regions."""
        return max(high for _, high in self.inconsistencies) <= Decimal(delta)

    def levels(self) -> list[float]:
        """Thresholds between the values that ai takes at the ends of regions."""
        values = sorted({round(float(end), 9) for ends in self.inconsistencies for end in ends})
        return [(a + b) / 2 for a, b in pairwise(values)] or [values[0] + 1.0]

    def _cut_by_attention(self, region: ExactRegion, delta: float) -> tuple[list[Polytope], list[Polytope]]:
        """The parts of a region with ai ≤ δ and with ai > δ."""
        start, stop = self.taus(region)
        curve = self.curve(region)
        axis = self.compound.perturbed.moving_axis
        if axis is None:
            is_kept = curve.value(start) <= Decimal(delta)
            return ([region.polytope], []) if is_kept else ([], [region.polytope])
        slab = curve.slab(start, stop, Fraction(delta))
        if slab is None:
            return [], [region.polytope]
        inside, outside = region.polytope, []
        for sign, end in zip((1, -1), slab, strict=True):
            rest, part = inside.cut(self._plane(region, axis, end, sign))
            outside += [] if rest is None else [rest]
            if part is None:
                return [], outside
            inside = part
        return [inside], outside

    def _plane(self, region: ExactRegion, axis: int, tau: Fraction, sign: int) -> Form:
        """± (τ − end) as a form in t."""
        domain, cell = self.compound.domain, self.compound.cells[region.cell]
        low, high, begin = (Fraction(float(ends[axis])) for ends in (domain.low, domain.high, cell.low))
        slopes = [(high - low) * int(k == axis) for k in range(domain.dimension)]
        return integer([sign * slope for slope in slopes] + [sign * (low - begin - tau)])

    def _label_volumes(self, region: ExactRegion, part: Polytope) -> tuple[Fraction, Fraction, Fraction]:
        """Volumes of a part where the label leads, where it is beaten, and where it is tied."""
        leads = region.leads(self.label)
        not_beaten: Polytope | None = part
        for lead in leads:
            if not_beaten is not None and any(lead):
                not_beaten = not_beaten.cut(lead)[1]
        volume = Fraction(0) if not_beaten is None else not_beaten.volume
        tied = volume if any(not any(lead) for lead in leads) else Fraction(0)
        return volume - tied, part.volume - volume, tied
