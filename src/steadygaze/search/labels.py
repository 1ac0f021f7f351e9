"""The labels of one region: CR, MR or CB by linear programming, AR, IR or AB by one sample or convex optimisation.

In one and two dimensions a form is bounded on the vertices; from three on by programs. A label needs slack: what is
within the error of the logits or of the maps is undecided.
"""

from dataclasses import dataclass

import numpy as np

from ..attention.single import SingleCurves
from ..problem import Problem
from ..properties.attention import AttentionLabels, label_attention
from ..properties.logit_error import coarse_logit_error, logit_errors
from ..tolerances import FEASIBILITY
from ..traversal import Traversal, TraversedRegion
from ..traversal.programs import LinearProgramTroubleError
from .outcome import Visited

UNKNOWN = (-np.inf, np.inf)


@dataclass(frozen=True, eq=False)
class _Errors:
    """What the error of the logits is bounded from; see `RegionSet`."""

    patterns: np.ndarray
    peaks: np.ndarray
    missed: np.ndarray
    pixels_missed: float


class Labeller:
    """Labels regions of one problem for one δ; what was not asked for is left blank."""

    def __init__(
        self, problem: Problem, traversal: Traversal, delta: float, *, asks_label: bool, asks_attention: bool
    ) -> None:
        self.problem, self.traversal, self.delta = problem, traversal, delta
        self.asks_label, self.asks_attention = asks_label, asks_attention
        self.curves = SingleCurves(problem.compound, problem.attention)
        self._coarse = np.inf
        self._bounded: tuple[np.ndarray, np.ndarray, float] | None = None
        self._constant: dict[bytes, tuple[str, tuple[float, float]]] = {}

    def label(self, region: TraversedRegion, *, is_following: bool = False) -> Visited:
        """Label a region."""
        classification, margin = self.classify(region) if self.asks_label else ("", UNKNOWN)
        attention, reach = self.attend(region) if self.asks_attention else ("", UNKNOWN)
        return Visited(region, classification, attention, margin, reach, is_following)

    def classify(self, region: TraversedRegion) -> tuple[str, tuple[float, float]]:
        """CR, MR, CB or undecided, and bounds of the margin f_label − max of the others on the region."""
        try:
            low, dip, seen, high = self._margin(region)
        except LinearProgramTroubleError:
            return "undecided", UNKNOWN
        slack = 2.0 * self._coarse_error()
        name = _decide(low, dip, seen, high, slack)
        if name == "undecided":
            slack = min(slack, self._own_slack(region))
            name = _decide(low, dip, seen, high, slack)
        if name == "undecided":
            try:
                reached, bound = self._highest(region)
            except LinearProgramTroubleError:
                return "undecided", (low - slack, high + slack)
            seen, high = max(seen, reached), min(high, bound)
            name = _decide(low, dip, seen, high, slack)
        return name, (low - slack, high + slack)

    def attend(self, region: TraversedRegion) -> tuple[str, tuple[float, float]]:
        """AR, IR, AB or undecided, and bounds of the inconsistency on the region."""
        moves = self.problem.perturbed.moving_axis is not None
        if not moves and not region.is_doubtful and region.pattern in self._constant:
            return self._constant[region.pattern]
        labels = self.slabs(region)
        names = (("AR", labels.is_kept), ("IR", labels.is_lost), ("AB", labels.is_mixed))
        name = next((name for name, holds in names if holds[0]), "undecided")
        if name == "AB" and region.corners is None and not self._slabs(region, self._seen_taus(region)).is_mixed[0]:
            name = "undecided"  # mixed within the tolerance of the programs alone
        found = name, (float(labels.reach[0, 0]), float(labels.reach[0, 1]))
        if not moves and not region.is_doubtful:
            self._constant[region.pattern] = found
        return found

    def attend_pattern(self, pattern: bytes) -> str:
        """AR, IR or undecided of a pattern of the classifier, where the expected map is kept."""
        if pattern not in self._constant:
            curves, errors = self.curves.of(0, pattern)
            labels = label_attention(curves, np.zeros((1, 2)), self.delta, errors)
            name = "AR" if labels.is_kept[0] else "IR" if labels.is_lost[0] else "undecided"
            self._constant[pattern] = name, (float(labels.reach[0, 0]), float(labels.reach[0, 1]))
        return self._constant[pattern][0]

    def slabs(self, region: TraversedRegion) -> AttentionLabels:
        """Where on the region ai ≤ δ, in τ."""
        return self._slabs(region, self._taus(region))

    def _slabs(self, region: TraversedRegion, taus: np.ndarray) -> AttentionLabels:
        curves, errors = self.curves.of(region.cell, region.pattern)
        doubtful = np.array([region.is_doubtful]) if region.is_doubtful else None
        return label_attention(curves, taus, self.delta, errors, doubtful)

    def _taus(self, region: TraversedRegion) -> np.ndarray:
        """A range of τ (1, 2) that encloses that of a region."""
        axis = self.problem.perturbed.moving_axis
        if axis is None:
            return np.zeros((1, 2))
        form = np.zeros(region.dimension + 1)
        form[axis] = 1.0
        try:
            ends = np.array([self.traversal.reach(region, form)])
        except LinearProgramTroubleError:
            cell = self.traversal.cells[region.cell]
            ends = np.array([[cell.low[axis], cell.high[axis]]])
        return self._to_tau(region, ends)

    def _seen_taus(self, region: TraversedRegion) -> np.ndarray:
        """The range of τ (1, 2) of the vertices of a region."""
        axis = self.problem.perturbed.moving_axis
        if axis is None:
            return np.zeros((1, 2))
        along = region.vertices[:, axis]
        return self._to_tau(region, np.array([[along.min(), along.max()]]))

    def _to_tau(self, region: TraversedRegion, ends: np.ndarray) -> np.ndarray:
        axis, domain = self.problem.perturbed.moving_axis, self.problem.perturbed.domain
        return domain.low[axis] + ends * domain.widths[axis] - self.problem.perturbed.cells[region.cell].low[axis]

    def _margin(self, region: TraversedRegion) -> tuple[float, float, float, float]:
        """A lower bound of the margin on a region, the smallest and largest seen at a point, and an upper bound.

        From three dimensions on the bound that can prove a label, CR or MR, is found by programs.
        """
        forms = self.leads(region)
        values = region.vertices @ forms[:-1] + forms[-1]
        inner = np.concatenate([region.centres, region.inside[None]]) @ forms[:-1] + forms[-1]
        dip, seen = float(values.min()), float(max(values.min(axis=1).max(), inner.min(axis=1).max()))
        tops = values.max(axis=0)
        if region.corners is not None:
            return dip, dip, seen, float(tops.min())
        rounding = 10 * FEASIBILITY * float(np.linalg.norm(forms[:-1], axis=0).max())
        low, high = dip - rounding, float(tops.min()) + rounding
        if seen < 0.0:
            # One rival that leads everywhere is enough; the vertices tell which.
            high = self.traversal.highest(region, forms[:, int(np.argmin(tops))])
        elif dip >= 0.0:
            low = min(-self.traversal.highest(region, -forms[:, j]) for j in range(forms.shape[1]))
        return low, dip, seen, high

    def keeps_label_inside(self, region: TraversedRegion) -> bool:
        """Whether the label surely wins at the region's inner point."""
        forms = self.leads(region)
        return float((region.inside @ forms[:-1] + forms[-1]).min()) > self._own_slack(region)

    def leads(self, region: TraversedRegion) -> np.ndarray:
        """The forms (d+1, K−1) of f_label − f_j for the other classes j."""
        label = self.problem.label
        return region.logits[:, [label]] - np.delete(region.logits, label, axis=1)

    def _highest(self, region: TraversedRegion) -> tuple[float, float]:
        """Bounds of the largest margin on a region: the highest point below all leads, by one program."""
        forms = self.leads(region)
        scale = max(float(np.abs(forms).max()), 1e-300)
        d = region.dimension
        rows = np.concatenate([region.halfspaces, forms.T / scale])
        matrix = np.column_stack([rows[:, :-1], np.zeros(len(rows))])
        matrix[len(region.halfspaces) :, d] = -1.0
        low, high = np.full(d + 1, -1.0), np.full(d + 1, 2.0)
        low[d], high[d] = -4.0 * (d + 1), 4.0 * (d + 1)
        cost = np.zeros(d + 1)
        cost[d] = 1.0
        found = self.traversal.programs.maximise(cost, matrix, -rows[:, -1], low, high)
        if found is None:
            return UNKNOWN
        # Ten times the program's own tolerance, as a value of the margin.
        return float((found[d] - 1e-9) * scale), float((found[d] + 1e-9) * scale)

    def _coarse_error(self) -> float:
        """The bound for all regions so far, with room for larger coefficients so that it is rarely computed again."""
        peaks, missed, pixels = self.traversal.errors()
        known = self._bounded
        if known is None or (peaks > known[0]).any() or (missed > known[1]).any() or pixels > known[2]:
            # Of every layer the largest, so that one more neuron with larger coefficients changes nothing.
            ends = np.cumsum(self.problem.compound.hidden)[:-1]
            level = [2.0 * np.full(len(part), part.max(initial=0.0)) for part in np.split(peaks, ends)]
            depth = [2.0 * np.full(len(part), part.max(initial=0.0)) for part in np.split(missed, ends)]
            self._bounded = known = np.concatenate(level), np.concatenate(depth), 2.0 * pixels
            self._coarse = coarse_logit_error(self.problem.compound, _Errors(np.zeros((0, 0)), *known))
        return self._coarse

    def _own_slack(self, region: TraversedRegion) -> float:
        packed = np.frombuffer(region.pattern, dtype=np.uint8)[None]
        errors = _Errors(packed, *self.traversal.errors())
        # Two logits, and twice the bound: an error displaces the border of a region (see `classify`).
        return 4.0 * float(logit_errors(self.problem.compound, errors, np.zeros(1, dtype=np.int64)).max())


def _decide(low: float, dip: float, seen: float, high: float, slack: float) -> str:
    """The label for a margin between `low` and `high` that was seen from `dip` to `seen`, with an error of `slack`."""
    if low > slack:
        return "CR"
    if high < -slack:
        return "MR"
    return "CB" if dip < -slack and seen > slack else "undecided"
