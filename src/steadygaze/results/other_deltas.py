"""Labels the regions of a map for one δ after another, and recomputes only regions near δ.

Shares are proved. At a δ that is not the result's own, a share of at most ENOUGH may stay undecided beside the parts
that no bound decides: if one error bound for all maps together leaves no more than that, maps are not computed again.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..labels import Kept
from ..properties.attention import AttentionLabels, label_attention, label_coarsely, reaches
from ..properties.classification import Pieces, strip_volumes
from ..properties.enclosing import ENOUGH as NARROW
from ..properties.enclosing import enclose_attention
from ..properties.joint import join, parts_of, piece_cells
from ..threshold import kept_codes
from .answer import Answers

ENOUGH = 1e-6
"""Share of the domain that a step may leave undecided, beside the parts that no bound decides."""

OTHERS = 1e-5
"""`ENOUGH` where borders are curved and a step costs more."""


class NearDelta:
    """Labels exact regions for one δ after another, and recomputes only regions near δ."""

    def __init__(self, answers: Answers) -> None:
        assert answers.curves is not None and answers.errors is not None
        self.answers, self.curves, self.errors = answers, answers.curves, answers.errors
        pieces = answers.pieces
        self.reach = coarse_reach(answers)
        self.strip = np.minimum(strip_volumes(pieces, answers.regions), pieces.polytopes.volumes)
        self.rest = pieces.polytopes.volumes - self.strip
        self.doubtful = float(answers.regions.polytopes.volumes[answers.doubtful.regions].sum())
        self.states = np.zeros(len(answers.regions), dtype=np.uint8)
        self.slab_region, self.slabs = np.zeros(0, dtype=np.int64), self._no_slabs

    @property
    def _no_slabs(self) -> np.ndarray:
        return np.zeros((0, 4 + self.answers.compound.coordinates))

    def ask(self, delta: float, *, is_own: bool = False) -> np.ndarray:
        """Shares (3, 3) of reached parts for δ (`is_own`: as exactly as the answer); sets `states` (R,) and slabs."""
        low, high = self.reach.T
        self.states = kept_codes(low, high, delta).astype(np.uint8)
        near = np.flatnonzero(self.states == Kept.UNKNOWN)
        pieces, cells = self.answers.pieces, np.zeros((3, 3))
        state = self.states[pieces.region]
        label = np.where(pieces.keeps_label, Kept.YES, Kept.NO)
        for attention in (Kept.YES, Kept.NO):
            is_such = state == attention
            cells[Kept.UNKNOWN, attention] += self.strip[is_such].sum()
            for code in (Kept.YES, Kept.NO):
                cells[code, attention] += self.rest[is_such & (label == code)].sum()
        self.slab_region, self.slabs = near[:0], self._no_slabs
        if len(near):
            chosen = np.flatnonzero(state == Kept.UNKNOWN)
            labels = self._label(near, delta, is_coarse=not is_own or self.curves.layout is not None)
            if self.curves.layout is not None:
                cells += self._enclosed_cells(chosen, delta, is_own=is_own)
                self._keep(near, labels)
                return cells
            found = self._near_cells(chosen, labels)
            if not is_own and found[:, Kept.UNKNOWN].sum() - self.doubtful > ENOUGH:
                labels = self._label(near, delta, is_coarse=False)
                found = self._near_cells(chosen, labels)
            cells += found
            self._keep(near, labels)
        return cells

    def _label(self, near: np.ndarray, delta: float, *, is_coarse: bool) -> AttentionLabels:
        """Labels of all regions; only the near ones count."""
        answers, curves = self.answers, self.curves
        own = replace(curves, curve=curves.curve[near])
        spans, doubtful = answers.spans.take(near), answers.doubtful.among(near)
        if is_coarse:
            labels = label_coarsely(own, spans, delta, self.errors, doubtful)
        else:
            errors = self.errors.for_curves(answers.regions.patterns, own)
            labels = label_attention(own, spans, delta, errors, doubtful)
        columns: dict[str, Any] = {}
        for name in ("inner", "outer", "ends", "reach", "along"):
            found = getattr(labels, name)
            if found is not None:
                columns[name] = np.zeros((len(answers.regions), found.shape[1]))
                columns[name][near] = found
        return AttentionLabels(delta, **columns)

    def _near_cells(self, chosen: np.ndarray, labels: AttentionLabels) -> np.ndarray:
        return piece_cells(join(self.answers.regions, self._pieces(chosen), labels))

    def _enclosed_cells(self, chosen: np.ndarray, delta: float, *, is_own: bool) -> np.ndarray:
        """Shares (3, 3) of the chosen pieces, whose borders are curved."""
        answers = self.answers
        target = (NARROW if is_own else OTHERS) * float(answers.pieces.polytopes.volumes.sum())
        _, joint = enclose_attention(
            answers.regions, self._pieces(chosen), self.curves, answers.spans, delta, self.errors, answers.doubtful,
            target=target,
        )  # fmt: skip
        return piece_cells(joint)

    def _pieces(self, chosen: np.ndarray) -> Pieces:
        pieces = self.answers.pieces
        return parts_of(pieces, pieces.polytopes.take(chosen), chosen, np.zeros((0, 3), dtype=np.int32))

    def _keep(self, near: np.ndarray, labels: AttentionLabels) -> None:
        """Write states of near regions, and slabs of the regions that are partly AR."""
        is_kept, is_lost = labels.is_kept[near], labels.is_lost[near]
        self.states[near[is_kept]], self.states[near[is_lost]] = Kept.YES, Kept.NO
        if labels.along is None:
            return
        inner, outer = labels.inner[near], labels.outer[near]
        has_any = (inner[:, 0] <= inner[:, 1]) | (outer != labels.ends[near]).any(axis=1)
        mixed = ~is_kept & ~is_lost & has_any & ~self.answers.regions.doubtful[near].astype(bool)
        self.slab_region, self.slabs = near[mixed], np.hstack([inner, outer, labels.along[near]])[mixed]


def coarse_reach(answers: Answers) -> np.ndarray:
    """Bounds (R, 2) of ai that hold for every δ; nothing is known if it was not measured."""
    if answers.curves is None or answers.errors is None:
        return np.tile([0.0, np.inf], (len(answers.regions), 1))
    reach = reaches(answers.curves, answers.spans, answers.errors.coarse)
    reach[answers.doubtful.regions] = answers.doubtful.bounds
    return reach


def cells_at(answers: Answers, deltas: Sequence[float]) -> np.ndarray:
    """The volumes (N, 3, 3) of regions by label and attention, as `Kept` codes, for each of N thresholds."""
    if answers.curves is None:
        return np.array([answers.at(delta).shares.cells for delta in deltas])
    near = NearDelta(answers)
    return np.array([near.ask(delta) for delta in deltas])


def coarse_cells_at(answers: Answers, deltas: np.ndarray) -> np.ndarray:
    """Volumes (N, 3, 3) as those of `cells_at`, for many thresholds (N,), ascending: regions near δ stay undecided."""
    pieces, volumes, count = answers.pieces, answers.pieces.polytopes.volumes, len(deltas)
    low, high = coarse_reach(answers)[pieces.region].T
    # ai surely exceeds δ before step `lost`, and surely does not from step `kept` on.
    is_known = ~(np.isnan(low) | np.isnan(high))
    lost = np.where(is_known, np.searchsorted(deltas, low, side="left"), 0)
    kept = np.where(is_known, np.searchsorted(deltas, high, side="left"), count)
    strip = np.minimum(strip_volumes(pieces, answers.regions), volumes)
    keeps = pieces.keeps_label
    parts = ((Kept.YES, keeps, volumes - strip), (Kept.NO, ~keeps, volumes - strip), (Kept.UNKNOWN, strip > 0.0, strip))
    cells = np.zeros((count, 3, 3))
    for label, chosen, part in parts:
        own = part[chosen]
        not_lost, is_kept = (_up_to_each(steps[chosen], own, count) for steps in (lost, kept))
        for code, sums, number in (
            (Kept.YES, is_kept[0], is_kept[1]),
            (Kept.NO, own.sum() - not_lost[0], len(own) - not_lost[1]),
            (Kept.UNKNOWN, not_lost[0] - is_kept[0], not_lost[1] - is_kept[1]),
        ):
            # Differences of sums round; the sum of no piece is exactly 0.
            cells[:, label, code] = np.where(number > 0, np.maximum(sums, 0.0), 0.0)
    return cells


def _up_to_each(steps: np.ndarray, volumes: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The volume (N,) and the number (N,) of the parts whose step is at most 0, 1, …, N − 1."""
    sums, numbers = np.bincount(steps, volumes, count + 1), np.bincount(steps, minlength=count + 1)
    return np.cumsum(sums)[:count], np.cumsum(numbers)[:count]
