"""Regions of a search that float64 leaves undecided, settled by exact arithmetic: their label, and their patterns.

As for maps (`properties.settling`), but one region after the other, as the search meets them. How many are settled is
fixed beforehand, so that a result does not depend on the machine unless a time limit ends it.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..attention.map_errors import SingleCurves
from ..compound import Compound
from ..exact.outcome import Outcome
from ..properties.settling import LEAST_SHARE, LIMIT_SECONDS, affordable, exact_labels, pattern_reach
from ..regions.forward_error import coverage
from ..traversal import TraversedRegion
from ..traversal.traverse import CLIPS

if TYPE_CHECKING:
    from ..exact import ExactLabels

NAMES = {Outcome.KEPT: "CR", Outcome.LOST: "MR"}


class Settler:
    """Settles regions of one compound network, as many as are affordable.

    around: how far the vertices may be from the region that they stand for, along every axis of t. seconds_left: how
    much time the run has.
    """

    def __init__(self, compound: Compound, label: int, around: float, seconds_left: Callable[[], float]) -> None:
        self.compound, self.label, self.around, self._seconds_left = compound, label, around, seconds_left
        self._left = affordable(compound)

    def classify(self, region: TraversedRegion) -> str:
        """CR, MR, CB or undecided."""
        exact, seconds = self._ask()
        if exact is None:
            return "undecided"
        outcome = exact.settle(self._vertices(region), self.around, limit_seconds=seconds).outcome
        if outcome is not Outcome.MIXED:
            return NAMES.get(outcome, "undecided")
        # The other label may be that of a neighbour.
        (exact, seconds), shrinks = self._ask(), _within_rounding(region)
        if exact is None or shrinks > 0.5:
            return "undecided"
        outcome = exact.settle(self._vertices(region, shrinks), 0.0, limit_seconds=seconds).outcome
        return "CB" if outcome is Outcome.MIXED else "undecided"

    def patterns(self, region: TraversedRegion) -> tuple[list[bytes], float] | None:
        """The classifier's patterns on a region, and a bound of the share of the region that has others; None if open.

        Patterns with less than LEAST_SHARE of the region belong to its border and are left out.
        """
        exact, seconds = self._ask()
        found = None if exact is None else exact.patterns(self._vertices(region), limit_seconds=seconds)
        if not found or not (volume := sum(found.values())):
            return None
        main = [pattern for pattern, own in found.items() if own >= LEAST_SHARE * volume]
        rest = 1 - sum(found[pattern] for pattern in main) / volume
        return main, float(rest) * (1.0 + 1e-9)

    def reach(self, curves: SingleCurves, cell: int, patterns: list[bytes]) -> tuple[float, float]:
        """Bounds of the inconsistency under any of some patterns, anywhere in a knot cell."""
        reaches = [pattern_reach(self.compound, curves, cell, pattern) for pattern in patterns]
        return min(low for low, _ in reaches), max(high for _, high in reaches)

    @cached_property
    def _exact(self) -> "ExactLabels | None":
        return exact_labels(self.compound, self.label)

    def _ask(self) -> tuple["ExactLabels | None", float]:
        """What settles one more region, and in how many seconds; None where no more is affordable."""
        seconds = min(LIMIT_SECONDS, self._seconds_left())
        if self._left <= 0 or seconds <= 0.0:
            return None, 0.0
        self._left -= 1
        return self._exact, seconds

    def _vertices(self, region: TraversedRegion, shrinks: float = 0.0) -> np.ndarray:
        """The vertices (V, D) in t, moved inward by a share; a single parameter has a second coordinate from 0 to 1."""
        vertices = region.vertices + shrinks * (region.inside - region.vertices)
        if region.dimension > 1:
            return vertices
        return np.concatenate([np.hstack([vertices, np.full_like(vertices, end)]) for end in (0.0, 1.0)])


def _within_rounding(region: TraversedRegion) -> float:
    """The share by which a region has to shrink towards its inner point to lie inside itself however it was rounded."""
    clear = float((region.halfspaces[:, :-1] @ region.inside + region.halfspaces[:, -1]).min())
    return min(1.0, 2.0 * region.dimension * coverage(CLIPS) / clear) if clear > 0.0 else 1.0
