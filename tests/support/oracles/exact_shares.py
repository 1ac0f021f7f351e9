"""The exact shares of a tiny domain: label and attention together, from rational regions and exact maps.

Exact in rationals; where ai moves, the ends of the slab ai ≤ δ have 30 digits. Nothing of the engine is used: only the
cells' affine forms of the image, the chain's weights, and the options.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from steadygaze.compound import Compound
from support.oracles import rational_polygons
from support.oracles.attention_by_definition import Question
from support.oracles.exact_attention import ExactAttention
from support.oracles.exact_curves import Curve
from support.oracles.exact_maps import on_grid
from support.oracles.rational_polygons import Region, area, clip

Shares = dict[str, Fraction]


@dataclass(frozen=True, eq=False)
class ExactAnswer:
    """Shares by definition. Pixels are multiples of 1/denominator, also where their floats are not."""

    compound: Compound
    label: int
    question: Question
    denominator: int = 2**20

    @cached_property
    def attention(self) -> ExactAttention:
        """The exact maps."""
        return ExactAttention(self.compound, self.question)

    @cached_property
    def pieces(self) -> list[tuple[Region, Curve, Fraction]]:
        """All regions with volume, the curve of ai in τ on each, and the θ_T where its cell begins."""
        found = []
        axis = self.compound.perturbed.moving_axis
        chain = [
            (weights.fractions().tolist(), bias.fractions().tolist()) for weights, bias in self.attention.chain.layers
        ]
        for cell in self.compound.cells:
            offset = [on_grid(value, self.denominator) for value in (self.compound.perturbed.x0 + cell.offset).ravel()]
            slope = [
                [on_grid(value, self.denominator) for value in row] for row in cell.slope.reshape(len(cell.low), -1)
            ]
            layers = rational_polygons.compound(offset, slope, chain)
            low, high = (tuple(Fraction(float(end)) for end in ends) for ends in (cell.low, cell.high))
            begin = low[axis] if axis is not None else Fraction(0)
            curves: dict[tuple[int, ...], Curve] = {}
            for region in rational_polygons.split_regions(layers, low, high):
                bits = region.pattern[2 * len(offset) :]
                if bits not in curves:
                    curves[bits] = self._curve(bits, low, high)
                found.append((region, curves[bits], begin))
        return found

    def _curve(self, bits: tuple[int, ...], low: tuple[Fraction, ...], high: tuple[Fraction, ...]) -> Curve:
        """ai on a cell as a function of τ, the distance from its low end."""
        layers = np.split(np.array(bits, dtype=bool), np.cumsum(self.compound.hidden)[:-1]) if bits else []
        at_low, at_high = (
            self.attention.difference(layers, end).reshape(len(self.attention.original), -1) for end in (low, high)
        )
        axis = self.compound.perturbed.moving_axis
        width = high[axis] - low[axis] if axis is not None else Fraction(1)
        step = (at_low - at_high) / width
        pairs = tuple((tuple(u), tuple(v)) for u, v in zip(at_low.tolist(), step.tolist(), strict=True))
        return Curve(pairs, self.question.dist)

    def shares(self, delta: float) -> Shares:
        """CR, MR and tied, each with AR and IR, and the sums over one of them."""
        totals = dict.fromkeys(("CR&AR", "CR&IR", "MR&AR", "MR&IR", "tied&AR", "tied&IR"), Fraction(0))
        for region, curve, begin in self.pieces:
            kept, lost = self._split(region, curve, begin, Fraction(delta))
            for name, parts in (("AR", kept), ("IR", lost)):
                for part in parts:
                    found = rational_polygons.label_areas([part], self.label)
                    for word, share in zip(("CR", "MR", "tied"), found, strict=True):
                        totals[f"{word}&{name}"] += share
        volume = sum((region.area for region, _, _ in self.pieces), Fraction(0))
        totals = {name: share / volume for name, share in totals.items()}
        for word in ("CR", "MR", "tied", "AR", "IR"):
            totals[word] = sum((share for name, share in totals.items() if word in name.split("&")), Fraction(0))
        return totals

    def _split(
        self, region: Region, curve: Curve, begin: Fraction, delta: Fraction
    ) -> tuple[list[Region], list[Region]]:
        """The parts of a region with ai ≤ δ and with ai > δ."""
        axis = self.compound.perturbed.moving_axis or 0
        along = [vertex[axis] - begin for vertex in region.polygon]
        slab = curve.slab(min(along), max(along), delta)
        if slab is None:
            return [], [region]
        first, last = (end + begin for end in slab)
        unit = tuple(Fraction(axis == k) for k in range(len(region.polygon[0])))
        back = tuple(-u for u in unit)
        inside = clip(clip(region.polygon, (*unit, -first)), (*back, last))
        outside = [
            clip(region.polygon, (*back, first)),
            clip(region.polygon, (*unit, -last)),
        ]
        parts = [Region(region.pattern, polygon, area(polygon), region.logits) for polygon in (inside, *outside)]
        with_volume = [part for part in parts[1:] if part.area > 0]
        return ([parts[0]] if parts[0].area > 0 else []), with_volume
