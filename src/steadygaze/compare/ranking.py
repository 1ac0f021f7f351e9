"""Proved bounds → rankings: networks by the share they keep, perturbations by the risk they pose.

A result comes before another only if the bounds prove it; otherwise both have a range of ranks. Computes no shares.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..labels import Joint, Kept, Label, Property
from ..results.result import Result
from .overlay import Bounds, lost_share

ROBUSTNESS: dict[str, str] = {
    Label.CR: "share of the domain where the label is kept",
    Label.AR: "share of the domain where the attention is kept",
    Joint.BOTH: "share of the domain where both are kept",
}
"""Measures for networks and images, the largest share first."""

RISK = {
    "MR or IR": "share of the domain where the label or the attention is not kept",
    Label.MR: "share of the domain where the label is not kept",
    Label.IR: "share of the domain where the attention is not kept",
    "nearest MR": "distance from zero, in widths of the domain, to the nearest theta where the label is not kept",
    "nearest IR": "distance from zero, in widths of the domain, to the nearest theta where the attention is not kept",
}
"""Measures for perturbations, the greatest risk first: the largest share, the smallest distance."""


@dataclass(frozen=True)
class Rank:
    """The place of a result (by number): proved bounds of the measure, the first and last rank that they allow.

    `is_tied`: ranks are shared because values are equal, rather than because bounds leave the order open.
    """

    result: int
    bounds: Bounds
    first: int
    last: int
    is_tied: bool


@dataclass(frozen=True)
class Ranking:
    """Results in the order of a measure."""

    measure: str
    meaning: str
    is_risk: bool
    ranks: tuple[Rank, ...]

    @property
    def order(self) -> str:
        """Which values come first, in words."""
        return "smallest first" if is_distance(self.measure) else "largest first"

    def is_before(self, result: int, other: int) -> bool:
        """Whether one result is proved to come before another."""
        bounds = {rank.result: rank.bounds for rank in self.ranks}
        return _is_before(bounds[result], bounds[other], is_rising=is_distance(self.measure))


def is_distance(measure: str) -> bool:
    """Whether a measure is a distance: the smallest comes first."""
    return measure.startswith("nearest")


def make_rankings(results: Sequence[Result], differs: Sequence[str]) -> tuple[Ranking, ...]:
    """Rankings by risk if the perturbations differ, and by the share kept if anything else does."""
    measures: dict[str, str] = {}
    if "perturbation" in differs:
        measures |= RISK
    if {"network", "image"} & set(differs) or (differs and "perturbation" not in differs):
        measures |= ROBUSTNESS
    is_measured = all(result.is_measured for result in results)
    chosen = [name for name in measures if is_measured or name in (Label.CR, Label.MR, "nearest MR")]
    return tuple(
        rank(name, measures[name], [value_of(result, name) for result in results], is_risk=name in RISK)
        for name in chosen
    )


def value_of(result: Result, measure: str) -> Bounds:
    """The proved bounds of a measure; the distance to a violation is infinite if there is none."""
    if is_distance(measure):
        nearest = result.nearest[Label.CR if measure.endswith(Label.MR) else Label.AR]
        return nearest.low, nearest.high
    shares = result.answer.shares
    if measure == "MR or IR":
        return lost_share(shares, Property.BOTH)
    if measure == Joint.BOTH:
        return shares.bounds(Kept.YES, Kept.YES)
    codes: dict[str, tuple[Kept | None, Kept | None]] = {
        Label.CR: (Kept.YES, None),
        Label.MR: (Kept.NO, None),
        Label.AR: (None, Kept.YES),
        Label.IR: (None, Kept.NO),
    }
    return shares.bounds(*codes[measure])


def rank(measure: str, meaning: str, values: Sequence[Bounds], *, is_risk: bool = False) -> Ranking:
    """Order bounds (low, high) of a measure; equal values stay in their order.

    >>> ranks = rank("CR", "", [(0.2, 0.3), (0.9, 0.9), (0.25, 0.4)]).ranks
    >>> [(one.result, one.first, one.last) for one in ranks]
    [(1, 1, 1), (2, 2, 3), (0, 2, 3)]
    """
    is_rising = is_distance(measure)
    count = len(values)
    ranks = []
    for place, own in enumerate(values):
        others = [other for number, other in enumerate(values) if number != place]
        before = sum(_is_before(other, own, is_rising=is_rising) for other in others)
        after = sum(_is_before(own, other, is_rising=is_rising) for other in others)
        first, last = 1 + before, count - after
        alike = sum(other == own for other in others)
        ranks.append(Rank(place, own, first, last, own[0] == own[1] and 0 < alike == last - first))
    order = sorted(ranks, key=lambda one: (one.first + one.last, _middle(one.bounds, is_rising=is_rising)))
    return Ranking(measure, meaning, is_risk, tuple(order))


def find_contrary(first: Ranking, second: Ranking) -> tuple[tuple[int, int], ...]:
    """Pairs of results, ordered as in the first ranking, that the second is proved to order the other way round."""
    numbers = [one.result for one in first.ranks]
    return tuple(
        (a, b) for a in numbers for b in numbers if a != b and first.is_before(a, b) and second.is_before(b, a)
    )


def _is_before(own: Bounds, other: Bounds, *, is_rising: bool) -> bool:
    return own[1] < other[0] if is_rising else own[0] > other[1]


def _middle(bounds: Bounds, *, is_rising: bool) -> float:
    low, high = bounds
    middle = low if math.isinf(high) else 0.5 * (low + high)
    return middle if is_rising else -middle
