"""Where the attention is kept: AR, IR and AB of every region for one limit on the loss, from the stored curves.

A region is AR where the loss is at most the limit and IR where it is larger, by more than the error of the maps; other
parts are undecided. The loss of the distance is ai, its limit δ.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..attention.inconsistency import Inconsistency
from ..attention.map_errors import MapErrors


@dataclass(frozen=True, eq=False)
class AttentionLabels:
    """For every region: surely ai ≤ δ for τ in [inner0, inner1], and surely ai > δ outside [outer0, outer1].

    inner and outer are (R, 2), an empty interval is (1, 0); reach (R, 2) encloses [ai_min, ai_max].
    """

    delta: float
    inner: np.ndarray
    outer: np.ndarray
    taus: np.ndarray
    reach: np.ndarray

    @property
    def is_kept(self) -> np.ndarray:
        """AR: ai ≤ δ everywhere in the region (R,)."""
        return self.reach[:, 1] <= self.delta

    @property
    def is_lost(self) -> np.ndarray:
        """IR: ai > δ everywhere in the region (R,)."""
        return self.reach[:, 0] > self.delta

    @property
    def is_mixed(self) -> np.ndarray:
        """AB: both surely occur (R,)."""
        some_inside = self.inner[:, 0] <= self.inner[:, 1]
        some_outside = (self.outer[:, 0] > self.taus[:, 0]) | (self.outer[:, 1] < self.taus[:, 1])
        return some_inside & some_outside & ~self.is_kept & ~self.is_lost


def label_attention(
    curves: Inconsistency, taus: np.ndarray, delta: float, errors: MapErrors, doubtful: "Doubtful | None" = None
) -> AttentionLabels:
    """Label all regions for δ; taus (R, 2) are their ranges of τ.

    One error bound for all maps comes first; curves that it leaves undecided are computed again with their own bounds.
    Doubtful regions have no certain map: only bounds that hold for every possible map decide them.
    """
    slack = np.full(len(curves.curve_cell), errors.coarse)
    labels = _label(curves, taus, delta, slack)
    open_curves = np.unique(curves.curve[_is_open(labels, errors.finest)])
    if len(open_curves):
        settled = errors.settle(open_curves, taus)
        own = _label(settled.curves, taus[settled.regions], delta, settled.slack)
        labels = _replaced(labels, settled.regions, own)
    return labels if doubtful is None else _enclosed(labels, doubtful)


class Doubtful(NamedTuple):
    """Regions (N,) whose maps are not certain, and bounds (N, 2) of the inconsistency that hold for every map."""

    regions: np.ndarray
    bounds: np.ndarray

    def among(self, chosen: np.ndarray) -> "Doubtful":
        """The doubtful regions among the chosen ones (S,), ascending, as indices into these."""
        places = np.searchsorted(chosen, self.regions)
        if not len(chosen):
            return Doubtful(places[:0], self.bounds[:0])
        found = np.flatnonzero(chosen[np.minimum(places, len(chosen) - 1)] == self.regions)
        return Doubtful(places[found], self.bounds[found])


def _enclosed(labels: AttentionLabels, doubtful: Doubtful) -> AttentionLabels:
    """The labels, with doubtful regions decided by their bounds alone."""
    taus, nothing, (low, high) = labels.taus[doubtful.regions], np.array([1.0, 0.0]), doubtful.bounds.T
    inner = np.where((high <= labels.delta)[:, None], taus, nothing)
    outer = np.where((low > labels.delta)[:, None], nothing, taus)
    own = AttentionLabels(labels.delta, inner, outer, taus, doubtful.bounds)
    return _replaced(labels, doubtful.regions, own)


def _replaced(labels: AttentionLabels, chosen: np.ndarray, other: AttentionLabels) -> AttentionLabels:
    """The labels with those of the chosen regions (S,) replaced."""
    inner, outer, reach = labels.inner.copy(), labels.outer.copy(), labels.reach.copy()
    inner[chosen], outer[chosen], reach[chosen] = other.inner, other.outer, other.reach
    return replace(labels, inner=inner, outer=outer, reach=reach)


def label_coarsely(
    curves: Inconsistency, taus: np.ndarray, delta: float, errors: MapErrors, doubtful: Doubtful
) -> AttentionLabels:
    """Label all regions for δ with one error bound for all maps: much faster, but more regions stay undecided."""
    labels = _label(curves, taus, delta, np.full(len(curves.curve_cell), errors.coarse))
    return _enclosed(labels, doubtful)


def unknown_attention(taus: np.ndarray, delta: float) -> AttentionLabels:
    """Undecided labels for regions with ranges of τ (R, 2) whose attention was not measured."""
    count = len(taus)
    return AttentionLabels(delta, np.tile([1.0, 0.0], (count, 1)), taus, taus, np.tile([0.0, np.inf], (count, 1)))


def reaches(curves: Inconsistency, taus: np.ndarray, error: float = 0.0) -> np.ndarray:
    """Bounds (R, 2) of the smallest and largest loss on every region, for maps with at most a given error."""
    return _label(curves, taus, 0.0, np.full(len(curves.curve_cell), error)).reach


def _is_open(labels: AttentionLabels, finest: float) -> np.ndarray:
    """Regions that are not decided as a whole and whose undecided strip is wider than the share `finest` of them."""
    width = np.maximum(labels.taus[:, 1] - labels.taus[:, 0], 0.0)
    gap = np.abs(labels.inner - labels.outer).sum(axis=1)
    return ~labels.is_kept & ~labels.is_lost & ((gap > finest * width) | (width == 0.0))


def _label(curves: Inconsistency, taus: np.ndarray, delta: float, slack: np.ndarray) -> AttentionLabels:
    found = curves.measure.slabs(curves, taus, delta, slack)
    return AttentionLabels(delta, found.inner, found.outer, taus, found.reach)
