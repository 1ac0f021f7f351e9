"""Where the attention is kept: AR, IR and AB of every region for one δ, from the stored curves.

A region is AR where ai ≤ δ and IR where ai > δ; both need slack (the error of the maps), what is left is undecided.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..attention import curve_kernels
from ..attention.error import MapErrors
from ..attention.inconsistency import Inconsistency


@dataclass(frozen=True, eq=False)
class AttentionLabels:
    """For every region: ai ≤ δ surely for τ in [inner0, inner1], ai > δ surely outside [outer0, outer1].

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
    curves: Inconsistency, taus: np.ndarray, delta: float, errors: MapErrors, doubtful: np.ndarray | None = None
) -> AttentionLabels:
    """Label all regions for δ; taus (R, 2) are their ranges of τ.

    The error bound for all maps is tried first; curves that it leaves undecided are computed again with their own.
    Regions that are doubtful (R,) have no certain map and are undecided.
    """
    slack = np.full(len(curves.curve_cell), errors.coarse)
    labels = _label(curves, taus, delta, slack)
    open_curves = np.unique(curves.curve[_is_open(labels, errors.finest)])
    if len(open_curves):
        settled = errors.settle(open_curves, taus)
        own = _label(settled.curves, taus[settled.regions], delta, settled.slack)
        labels = _replaced(labels, settled.regions, own)
    return labels if doubtful is None else _without(labels, doubtful.astype(bool))


def _replaced(labels: AttentionLabels, chosen: np.ndarray, other: AttentionLabels) -> AttentionLabels:
    """The labels with those of the chosen regions (S,) replaced."""
    inner, outer, reach = labels.inner.copy(), labels.outer.copy(), labels.reach.copy()
    inner[chosen], outer[chosen], reach[chosen] = other.inner, other.outer, other.reach
    return replace(labels, inner=inner, outer=outer, reach=reach)


def label_coarsely(
    curves: Inconsistency, taus: np.ndarray, delta: float, errors: MapErrors, doubtful: np.ndarray
) -> AttentionLabels:
    """Label all regions for δ by the error bound for all maps alone: much faster, and more is left undecided."""
    labels = _label(curves, taus, delta, np.full(len(curves.curve_cell), errors.coarse))
    return _without(labels, doubtful.astype(bool))


def unknown_attention(taus: np.ndarray, delta: float) -> AttentionLabels:
    """The labels of regions whose attention was not measured, given with their ranges of τ (R, 2): all undecided."""
    nothing = np.zeros((len(taus), 2))
    labels = AttentionLabels(delta, nothing, nothing, taus, nothing)
    return _without(labels, np.ones(len(taus), dtype=bool))


def _without(labels: AttentionLabels, doubtful: np.ndarray) -> AttentionLabels:
    """The labels with doubtful regions (R,) undecided: their maps may be others."""
    nothing, anything = np.array([1.0, 0.0]), np.array([0.0, np.inf])
    chosen = doubtful[:, None]
    return replace(
        labels,
        inner=np.where(chosen, nothing, labels.inner),
        outer=np.where(chosen, labels.taus, labels.outer),
        reach=np.where(chosen, anything, labels.reach),
    )


def reaches(curves: Inconsistency, taus: np.ndarray) -> np.ndarray:
    """[ai_min, ai_max] of every region (R, 2) as computed, without the error of the maps."""
    return _label(curves, taus, 0.0, np.zeros(len(curves.curve_cell))).reach


def _is_open(labels: AttentionLabels, finest: float) -> np.ndarray:
    """Regions that are not decided as a whole, and whose undecided strip is wider than the finest share of them."""
    width = np.maximum(labels.taus[:, 1] - labels.taus[:, 0], 0.0)
    gap = np.abs(labels.inner - labels.outer).sum(axis=1)
    return ~labels.is_kept & ~labels.is_lost & ((gap > finest * width) | (width == 0.0))


def _label(curves: Inconsistency, taus: np.ndarray, delta: float, slack: np.ndarray) -> AttentionLabels:
    count = len(curves.curve)
    if not curves.moves:
        value, doubt = curves.constant[curves.curve], slack[curves.curve]
        reach = np.stack([value - doubt, value + doubt], axis=1)
        whole, nothing = taus, np.broadcast_to([1.0, 0.0], (count, 2))
        inner = np.where((reach[:, 1] <= delta)[:, None], whole, nothing)
        outer = np.where((reach[:, 0] > delta)[:, None], nothing, whole)
        return AttentionLabels(delta, inner, outer, taus, reach)
    out, reach = np.zeros((count, 4)), np.zeros((count, 2))
    curve_kernels.slabs(
        curves.quadratic, curves.start, curves.breaks, curves.places, curves.jumps,
        curves.curve, taus, delta, slack, curves.rounding, out, reach,
    )  # fmt: skip
    return AttentionLabels(delta, out[:, :2], out[:, 2:], taus, reach)
