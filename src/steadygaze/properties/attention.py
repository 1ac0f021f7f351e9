"""Labels the attention of every region, AR, IR or AB, for one limit on the loss, from the stored curves.

A region is AR where the loss is at most the limit and IR where it is larger, in both cases by more than the error of
the maps; the rest is undecided. For the distance, the loss is ai and the limit is δ.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..attention.enclosed import EnclosedLoss
from ..attention.factored import Corners, planes, reach_between
from ..attention.inconsistency import Inconsistency
from ..attention.map_errors import MapErrors
from ..attention.polynomials import ConvexParts
from ..attention.spans import Spans


@dataclass(frozen=True, eq=False)
class AttentionLabels:
    """For every region: surely ai ≤ δ for s in [inner0, inner1], and surely ai > δ outside [outer0, outer1].

    s is the scalar product of t and the region's unit vector in along (R, D); along is None if no region has both
    labels. inner and outer are (R, 2), an empty interval is (1, 0); ends (R, 2) is the range of s; reach (R, 2)
    encloses [ai_min, ai_max]. has_both (R,): where both surely occur, if parts of regions have own slabs.
    """

    delta: float
    inner: np.ndarray
    outer: np.ndarray
    ends: np.ndarray
    reach: np.ndarray
    along: np.ndarray | None = None
    has_both: np.ndarray | None = None

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
        """AB: ai ≤ δ and ai > δ both surely occur in the region (R,)."""
        if self.has_both is not None:
            return self.has_both & ~self.is_kept & ~self.is_lost
        some_inside = self.inner[:, 0] <= self.inner[:, 1]
        some_outside = (self.outer[:, 0] > self.ends[:, 0]) | (self.outer[:, 1] < self.ends[:, 1])
        return some_inside & some_outside & ~self.is_kept & ~self.is_lost


def label_attention(
    curves: Inconsistency, spans: Spans, delta: float, errors: MapErrors, doubtful: "Doubtful | None" = None
) -> AttentionLabels:
    """Label all regions for δ; spans: where the regions lie.

    One error bound for all maps is tried first; curves that it leaves undecided are recomputed with their own bounds.
    Doubtful regions have no certain map: only bounds that hold for every possible map decide them.
    """
    slack = np.full(len(curves.curve_cell), errors.coarse)
    labels = _label(curves, spans, delta, slack)
    open_curves = np.unique(curves.curve[_is_open(labels, errors.finest)])
    if len(open_curves):
        settled = errors.settle(open_curves, spans)
        own = _label(settled.curves, spans.take(settled.regions), delta, settled.slack)
        labels = _replaced(labels, settled.regions, own)
    return labels if doubtful is None else _enclosed(labels, doubtful)


class Doubtful(NamedTuple):
    """Regions (N,) with uncertain maps, and bounds (N, 2) on the inconsistency that hold for every possible map."""

    regions: np.ndarray
    bounds: np.ndarray

    def among(self, chosen: np.ndarray) -> "Doubtful":
        """The doubtful regions among the chosen ones (S,), ascending, as indices into `chosen`."""
        places = np.searchsorted(chosen, self.regions)
        if not len(chosen):
            return Doubtful(places[:0], self.bounds[:0])
        found = np.flatnonzero(chosen[np.minimum(places, len(chosen) - 1)] == self.regions)
        return Doubtful(places[found], self.bounds[found])


def _enclosed(labels: AttentionLabels, doubtful: Doubtful) -> AttentionLabels:
    """The labels, with doubtful regions decided by their bounds alone."""
    ends, nothing, (low, high) = labels.ends[doubtful.regions], np.array([1.0, 0.0]), doubtful.bounds.T
    inner = np.where((high <= labels.delta)[:, None], ends, nothing)
    outer = np.where((low > labels.delta)[:, None], nothing, ends)
    own = AttentionLabels(labels.delta, inner, outer, ends, doubtful.bounds)
    return _replaced(labels, doubtful.regions, own)


def _replaced(labels: AttentionLabels, chosen: np.ndarray, other: AttentionLabels) -> AttentionLabels:
    """The labels with those of the chosen regions (S,) replaced."""
    inner, outer, reach = labels.inner.copy(), labels.outer.copy(), labels.reach.copy()
    inner[chosen], outer[chosen], reach[chosen] = other.inner, other.outer, other.reach
    ends, along = labels.ends.copy(), labels.along
    ends[chosen] = other.ends
    if along is not None and other.along is not None:
        # Recomputed curves have slightly different directions.
        along = along.copy()
        along[chosen] = other.along
    return replace(labels, inner=inner, outer=outer, reach=reach, ends=ends, along=along)


def label_coarsely(
    curves: Inconsistency, spans: Spans, delta: float, errors: MapErrors, doubtful: Doubtful
) -> AttentionLabels:
    """Label all regions for δ with one error bound for all maps: much faster, but more regions stay undecided."""
    labels = _label(curves, spans, delta, np.full(len(curves.curve_cell), errors.coarse))
    return _enclosed(labels, doubtful)


def unknown_attention(spans: Spans, delta: float) -> AttentionLabels:
    """Undecided labels for regions whose attention was not measured."""
    # Without curves there are no directions: regions are undecided as a whole.
    count, ends = len(spans), spans.place(spans.taus)
    nothing, unknown = np.tile([1.0, 0.0], (count, 1)), np.tile([0.0, np.inf], (count, 1))
    return AttentionLabels(delta, nothing, ends, ends, unknown, spans.along)


def reaches(curves: Inconsistency, spans: Spans, error: float | np.ndarray = 0.0) -> np.ndarray:
    """Bounds (R, 2) on the smallest and largest loss on every region; error, one or (Q,): bounds the errors of maps."""
    slack = np.broadcast_to(error, len(curves.curve_cell))
    if curves.is_factored and len(curves.curve):
        assert spans.shapes is not None
        return reach_between(curves, Corners(spans.shapes.points, spans.shapes.starts), slack)
    return _label(curves, spans, 0.0, slack).reach


def _is_open(labels: AttentionLabels, finest: float) -> np.ndarray:
    """Regions not decided as a whole whose undecided strip is wider than the share `finest` of their width."""
    width = np.maximum(labels.ends[:, 1] - labels.ends[:, 0], 0.0)
    gap = np.abs(labels.inner - labels.outer).sum(axis=1)
    return ~labels.is_kept & ~labels.is_lost & ((gap > finest * width) | (width == 0.0))


def _label(curves: Inconsistency, spans: Spans, delta: float, slack: np.ndarray) -> AttentionLabels:
    if not len(curves.curve):
        return unknown_attention(spans, delta)
    if curves.is_factored:
        return AttentionLabels(delta, *planes(curves, spans, delta, slack))
    if curves.layout is not None:
        assert spans.shapes is not None
        loss = EnclosedLoss(curves, curves.curve, spans.origins, slack[curves.curve])
        own = loss.strips(ConvexParts.of(spans.shapes.points, spans.shapes.starts), delta)
        return AttentionLabels(delta, own.inner, own.outer, own.ends, own.reach, own.along)
    found = curves.measure.slabs(curves, spans.taus, delta, slack)
    inner, outer, ends = (spans.place(slab) for slab in (found.inner, found.outer, spans.taus))
    return AttentionLabels(delta, inner, outer, ends, found.reach, spans.along)
