"""The labels of one region: CR, MR or CB by linear programming, AR, IR or AB by one sample or convex optimisation.

In one and two dimensions a form is bounded on the vertices; from three on by programs. A label needs slack: what is
within the error of the logits is settled by exact arithmetic, or undecided. A region has the attention of its pattern
where that is certain at its inner point, kinks along its border left out.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..accuracy import Accuracy
from ..attention.map_errors import SingleCurves
from ..problem import Problem
from ..properties.attention import AttentionLabels, Doubtful, label_attention
from ..properties.hull_proof import HullProof
from ..regions.forward_error import coverage, forward_errors
from ..tolerances import FEASIBILITY, UNIT
from ..traversal import Traversal, TraversedRegion
from ..traversal.programs import LinearProgramTroubleError
from ..traversal.traverse import CLIPS
from .outcome import Visited
from .settling import Settler

UNKNOWN = (-np.inf, np.inf)
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class _Certainty:
    """What is known of the patterns on a region.

    bounds (1, 2) enclose the inconsistency whatever the pattern; None where the region's own pattern is certain, but
    for its border. The border is narrower than `border` times the region, along every axis.
    """

    bounds: np.ndarray | None
    border: float


class Labeller:
    """Labels regions of one problem for one δ; what was not asked for is left blank.

    `seconds_left` says how much time the search has.
    """

    def __init__(
        self,
        problem: Problem,
        traversal: Traversal,
        delta: float,
        *,
        asks_label: bool,
        asks_attention: bool,
        seconds_left: Callable[[], float] = lambda: np.inf,
    ) -> None:
        self.problem, self.traversal, self.delta = problem, traversal, delta
        self.asks_label, self.asks_attention = asks_label, asks_attention
        self.curves = SingleCurves(problem.compound, problem.attention, problem.original_doubt)
        self._errors: list[np.ndarray] = []
        self._bounded: Accuracy | None = None
        # Vertices found by programs are off by their tolerance; those of polygons by rounding.
        around = coverage(CLIPS) if problem.compound.domain.dimension < 3 else 10 * FEASIBILITY
        self.proof = HullProof(problem.compound, problem.label, problem.attention, around)
        self.settler = Settler(problem.compound, problem.label, around, seconds_left)
        self._constant: dict[bytes, tuple[str, tuple[float, float]]] = {}
        self._certain: dict[bytes, _Certainty] = {}

    def label(self, region: TraversedRegion, *, is_following: bool = False) -> Visited:
        """Label a region."""
        classification, margin = self.classify(region) if self.asks_label else ("", UNKNOWN)
        attention, reach = self.attend(region) if self.asks_attention else ("", UNKNOWN)
        is_doubtful = self.asks_attention and self._certainty(region).bounds is not None
        return Visited(region, classification, attention, margin, reach, is_following, is_doubtful)

    def classify(self, region: TraversedRegion) -> tuple[str, tuple[float, float]]:
        """CR, MR, CB or undecided, and bounds of the margin f_label − max of the others on the region."""
        name, (low, high) = self._classify(region)
        if name == "undecided":
            name = self.settler.classify(region)
            # The sign is known; of the size no more than was computed.
            low, high = max(low, TINY) if name == "CR" else low, min(high, -TINY) if name == "MR" else high
        return name, (low, high)

    def _classify(self, region: TraversedRegion) -> tuple[str, tuple[float, float]]:
        """As `classify`, in float64 alone."""
        try:
            low, dip, seen, high = self._margin(region)
        except LinearProgramTroubleError:
            return "undecided", UNKNOWN
        slack = 2.0 * float(self._bounds_of_layers()[-1].max())
        name = _decide(low, dip, seen, high, slack)
        if name == "undecided":
            margin, own = self._prove(region)
            if margin[0] > 0.0 or margin[1] < 0.0:
                return "CR" if margin[0] > 0.0 else "MR", margin
            slack = min(slack, own)
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
        is_constant = self.problem.perturbed.moving_axis is None and self._certainty(region).bounds is None
        if is_constant and region.pattern in self._constant:
            return self._constant[region.pattern]
        labels = self.slabs(region)
        names = (("AR", labels.is_kept), ("IR", labels.is_lost), ("AB", labels.is_mixed))
        name = next((name for name, holds in names if holds[0]), "undecided")
        if name == "AB" and not self._is_mixed_inside(region):
            name = "undecided"  # mixed on its border, or within the tolerance of the programs, alone
        found = name, (float(labels.reach[0, 0]), float(labels.reach[0, 1]))
        if is_constant:
            self._constant[region.pattern] = found
        return found

    def _is_mixed_inside(self, region: TraversedRegion) -> bool:
        """Whether a region is AB without its border; where that is not so, exact arithmetic may tell a narrower one."""
        if self._slabs(region, self._inner_taus(region)).is_mixed[0]:
            return True
        exact = self._settle(region)
        if exact.bounds is not None or exact.border >= self._certainty(region).border:
            return False
        self._certain[region.key] = exact
        return bool(self._slabs(region, self._inner_taus(region)).is_mixed[0])

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
        bounds = self._certainty(region).bounds
        doubtful = None if bounds is None else Doubtful(np.zeros(1, dtype=np.int64), bounds)
        return label_attention(curves, taus, self.delta, errors, doubtful)

    def _certainty(self, region: TraversedRegion) -> _Certainty:
        """What is known of the patterns on a region: by the errors of its forms, or else exactly."""
        if region.key not in self._certain:
            border = self._border(region)
            # NaN and infinity are no width.
            self._certain[region.key] = _Certainty(None, border) if border < 0.5 else self._settle(region)
        return self._certain[region.key]

    def _border(self, region: TraversedRegion) -> float:
        """The width of the border where the region's pattern is not certain, as a share of the region.

        At (1 − s) v + s·inside, v any point of the region, no neuron is nearer to zero than s·clearance − missed.
        """
        assert region.clearance is not None  # every region of a traversal has it
        *layers, _ = self._bounds_of_layers()
        assert self._bounded is not None
        error, depth = (self._levels(values) for values in (np.concatenate(layers), self._bounded.missed))
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(region.clearance > error, (error + depth) / (region.clearance + depth), np.inf)
        return float(shares.max(initial=0.0)) * (1.0 + 1e-6) + UNIT

    def _settle(self, region: TraversedRegion) -> _Certainty:
        """What exact arithmetic, or bounds that hold whatever the pattern, tell of a region."""
        found = self.settler.patterns(region)
        if found is not None:
            patterns, rest = found
            if patterns == [region.pattern]:
                # A part of the region that is s times as wide, around any of its points, has s^d of its volume.
                return _Certainty(None, min(1.0, 1.01 * rest ** (1.0 / region.dimension)))
            low, high = self.settler.reach(self.curves, region.cell, patterns)
            return _Certainty(np.array([[low, high]]), 0.0)
        hull = self.proof.bounder.bound_hulls(
            region.cell, region.vertices[None], self.proof.around, asks_attention=True
        )
        return _Certainty(hull.inconsistency, 0.0)

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

    def _inner_taus(self, region: TraversedRegion) -> np.ndarray:
        """The range of τ (1, 2) of the vertices of a region, without its border."""
        axis = self.problem.perturbed.moving_axis
        if axis is None:
            return np.zeros((1, 2))
        along = region.vertices[:, axis]
        low, high = float(along.min()), float(along.max())
        border = self._certainty(region).border * (high - low)
        return self._to_tau(region, np.array([[low + border, max(low + border, high - border)]]))

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

    def tells_kept_part(self, visited: Visited) -> bool:
        """Whether float64 tells where the label wins on a region that it does not keep everywhere.

        Of one that is not decided, whether the label surely wins at the inner point.
        """
        region, forms = visited.region, self.leads(visited.region)
        if visited.classification == "undecided":
            return float((region.inside @ forms[:-1] + forms[-1]).min()) > self._prove(region)[1]
        return float((region.vertices @ forms[:-1] + forms[-1]).min()) < 0.0

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

    def _bounds_of_layers(self) -> list[np.ndarray]:
        """`forward_errors` for all regions so far, with room for larger coefficients: they rarely change."""
        seen, known = self.traversal.accuracy(), self._bounded
        if known is None or _exceeds(seen, known):
            # Of every layer the largest, so that one more neuron with larger coefficients changes nothing.
            peaks, missed = (
                2.0 * np.repeat(self._levels(values), self.problem.compound.hidden) * self.traversal.scales
                for values in (seen.peaks, seen.missed)
            )
            self._bounded = replace(
                seen, peaks=peaks, missed=missed, pixels_missed=2.0 * seen.pixels_missed, drift=2.0 * seen.drift
            )
            self._errors = forward_errors(self.problem.compound, self._bounded)
        return self._errors

    def _levels(self, values: np.ndarray) -> np.ndarray:
        """The largest of the neurons' values (n,) in every layer (L,), divided by the neurons' scales."""
        if not len(self.problem.compound.hidden):
            return np.zeros(0)
        with np.errstate(over="ignore", invalid="ignore"):
            shares = values / self.traversal.scales
        ends = np.cumsum(self.problem.compound.hidden)[:-1]
        return np.array([part.max(initial=0.0) for part in np.split(shares, ends)])

    def _prove(self, region: TraversedRegion) -> tuple[tuple[float, float], float]:
        """Proved bounds of the margin on a region, and of the error of the region's own forms."""
        found = self.proof.bounder.bound_hulls(
            region.cell, region.vertices[None], self.proof.around, asks_attention=False
        )
        forms = self.leads(region)
        claimed = region.vertices @ forms[:-1] + forms[-1]
        with np.errstate(invalid="ignore"):
            off = float((np.abs(claimed - found.leads[0]).max(axis=0) + found.radius[0]).max(initial=0.0))
        low, high = found.margin[0]
        return (float(low), float(high)), np.inf if np.isnan(off) else off


def _exceeds(seen: Accuracy, known: Accuracy) -> bool:
    """Whether something is larger than what a bound was made for."""
    names = ("peaks", "missed", "drift")
    return seen.pixels_missed > known.pixels_missed or any(
        bool((getattr(seen, name) > getattr(known, name)).any()) for name in names
    )


def _decide(low: float, dip: float, seen: float, high: float, slack: float) -> str:
    """The label for a margin between `low` and `high` that was seen from `dip` to `seen`, with an error of `slack`."""
    if low > slack:
        return "CR"
    if high < -slack and dip < -slack:
        return "MR"
    return "CB" if dip < -slack and seen > slack else "undecided"
