"""Labels one region: CR, MR or CB by bounds on affine forms; AR, IR or AB by the curve of the region's pattern.

Up to three dimensions the vertices bound a form; in four, linear programs do. A label needs slack: a margin within the
error of the logits is decided by exact arithmetic, or stays undecided. A region has the attention of its pattern if the
pattern is certain at its inner point; kinks along the region's border do not count.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...attention.map_errors import SingleCurves
from ...attention.spans import Spans
from ...bounds.bounder import Hulls
from ...compound import Compound
from ...exact import ExactLabels, LabelOutcome
from ...labels import Label
from ...properties.attention import AttentionLabels, Doubtful, label_attention
from ...properties.hull_proof import HullProof
from ...properties.settling import LEAST_SHARE, LIMIT_SECONDS, affordable, exact_labels, pattern_reach
from ...question import Question
from ...regions.forward_error import coverage, forward_errors
from ...tolerances import FEASIBILITY, LEAST, SMALLEST, UNIT, UNKNOWN, gamma
from .form_kernels import lead_ranges
from .halfspaces import LinearProgramTroubleError
from .traversal import CLIPS, Roof, Traversal
from .visited import TraversedRegion, Visited

LEAST_DRIFT = np.array([[32.0], [0.0]])
"""How far forms may drift (see `Accuracy`) before their error bounds are recomputed."""
SETTLED: dict[LabelOutcome | None, str] = {LabelOutcome.KEPT: Label.CR, LabelOutcome.LOST: Label.MR}


class Certainty(NamedTuple):
    """How certain the pattern of a region is.

    bounds (1, 2) encloses the inconsistency whatever the pattern; None if the region's own pattern is certain except
    along its border. The border is narrower than `border` times the region, along every axis.
    """

    bounds: np.ndarray | None
    border: float


class Labeller:
    """Labels regions of one problem for one δ; `seconds_left` returns the remaining time of the search."""

    def __init__(
        self,
        question: Question,
        traversal: Traversal,
        delta: float,
        *,
        asks_label: bool,
        asks_attention: bool,
        seconds_left: Callable[[], float] = lambda: np.inf,
    ) -> None:
        self.question, self.traversal, self.delta = question, traversal, delta
        self.asks_label, self.asks_attention = asks_label, asks_attention
        self.curves = SingleCurves(question.compound, question.attention, question.original_doubt)
        self._rivals = np.delete(np.arange(question.compound.graph.classes), question.label)
        self._errors: list[np.ndarray] = []
        self._roofs: list[Roof] = []
        self._slack, self._depths = np.inf, (np.zeros(0), np.zeros(0))
        self.proof = HullProof(question.compound, question.label, question.attention, coverage(CLIPS))
        self.settler = Settler(question.compound, question.label, seconds_left)
        self._constant: dict[bytes, tuple[str, tuple[float, float]]] = {}
        self._certain: dict[bytes, Certainty] = {}

    def label(self, region: TraversedRegion, *, is_following: bool = False) -> Visited:
        classification, margin = self.classify(region) if self.asks_label else ("", UNKNOWN)
        attention, reach = self.attend(region) if self.asks_attention else ("", UNKNOWN)
        is_doubtful = self.asks_attention and self._certainty(region).bounds is not None
        return Visited(region, classification, attention, margin, reach, is_following, is_doubtful)

    def classify(self, region: TraversedRegion) -> tuple[str, tuple[float, float]]:
        """CR, MR, CB or undecided, and bounds on the margin over the region."""
        name, (low, high) = self._classify(region)
        if name == Label.UNDECIDED:
            name = self.settler.classify(region)
            # Exact arithmetic proves only the sign; the size keeps its float64 bounds.
            low, high = (
                max(low, SMALLEST) if name == Label.CR else low,
                min(high, -SMALLEST) if name == Label.MR else high,
            )
        return name, (low, high)

    def _classify(self, region: TraversedRegion) -> tuple[str, tuple[float, float]]:
        """Like `classify`, in float64 only."""
        try:
            low, dip, seen, high = self._margin(region)
        except LinearProgramTroubleError:
            return Label.UNDECIDED, UNKNOWN
        self._bounds_of_layers()
        slack = self._slack
        name = _decide(low, dip, seen, high, slack)
        if name == Label.UNDECIDED:
            margin, own = self._prove(region)
            if margin[0] > 0.0 or margin[1] < 0.0:
                return Label.CR if margin[0] > 0.0 else Label.MR, margin
            slack = min(slack, own)
            name = _decide(low, dip, seen, high, slack)
        if name == Label.UNDECIDED:
            try:
                reached, bound = self._highest(region)
            except LinearProgramTroubleError:
                return Label.UNDECIDED, (low - slack, high + slack)
            seen, high = max(seen, reached), min(high, bound)
            name = _decide(low, dip, seen, high, slack)
        return name, (low - slack, high + slack)

    def attend(self, region: TraversedRegion) -> tuple[str, tuple[float, float]]:
        """AR, IR, AB or undecided, and bounds on the inconsistency over the region."""
        is_constant = self.question.perturbed.moving_axis is None and self._certainty(region).bounds is None
        if is_constant and region.pattern in self._constant:
            return self._constant[region.pattern]
        found = name, reach = _named(self.slabs(region))
        if name == Label.AB and not self._is_mixed_inside(region):
            found = Label.UNDECIDED, reach  # mixed only on its border, or within the tolerance of the linear programs
        if is_constant:
            self._constant[region.pattern] = found
        return found

    def _is_mixed_inside(self, region: TraversedRegion) -> bool:
        """Whether a region is AB even without its border; if not, exact arithmetic may find a narrower border."""
        if self.slabs(region, inner=True).is_mixed[0]:
            return True
        exact = self._settle(region)
        if exact.bounds is not None or exact.border >= self._certainty(region).border:
            return False
        self._certain[region.key] = exact
        return bool(self.slabs(region, inner=True).is_mixed[0])

    def attend_pattern(self, pattern: bytes) -> str:
        """AR, IR or undecided for a pattern of the classifier, if the expected map does not move."""
        if pattern not in self._constant:
            curves, errors = self.curves.of(0, pattern)
            name, reach = _named(label_attention(curves, Spans(np.zeros((1, 2))), self.delta, errors))
            self._constant[pattern] = Label.UNDECIDED if name == Label.AB else name, reach
        return self._constant[pattern][0]

    def slabs(self, region: TraversedRegion, *, inner: bool = False) -> AttentionLabels:
        """Where on the region ai ≤ δ, in t; with `inner`, on the region without its border."""
        axis, spans = self.question.perturbed.moving_axis, Spans(np.zeros((1, 2)))
        if axis is not None:
            ends = self._inner_ends(region, axis) if inner else self._outer_ends(region, axis)
            spans = Spans.of_ends(self.question.compound, np.array([region.cell]), np.array([ends]))
        curves, errors = self.curves.of(region.cell, region.pattern)
        bounds = self._certainty(region).bounds
        doubtful = None if bounds is None else Doubtful(np.zeros(1, dtype=np.int64), bounds)
        return label_attention(curves, spans, self.delta, errors, doubtful)

    def _outer_ends(self, region: TraversedRegion, axis: int) -> tuple[float, float]:
        """A range of t along an axis that encloses a region."""
        form = np.eye(region.dimension + 1)[axis]
        try:
            return -self.traversal.highest(region, -form), self.traversal.highest(region, form)
        except LinearProgramTroubleError:
            cell = self.traversal.cells[region.cell]
            return cell.low[axis], cell.high[axis]

    def _inner_ends(self, region: TraversedRegion, axis: int) -> tuple[float, float]:
        """The range of t that a region's vertices span along an axis, without the region's border."""
        low, high = float(region.vertices[:, axis].min()), float(region.vertices[:, axis].max())
        border = self._certainty(region).border * (high - low)
        return low + border, max(low + border, high - border)

    def _certainty(self, region: TraversedRegion) -> Certainty:
        """How certain the pattern of a region is, by the errors of its forms or else by exact arithmetic."""
        if region.key not in self._certain:
            border = self._border(region)
            # NaN and infinity are not widths.
            self._certain[region.key] = Certainty(None, border) if border < 0.5 else self._settle(region)
        return self._certain[region.key]

    def _border(self, region: TraversedRegion) -> float:
        """The width of the border where the region's pattern is uncertain, as a share of the region.

        For any point v of the region, no neuron at (1 − s) v + s·inside is nearer to its kink than
        s·clearance − missed.
        """
        assert region.clearance is not None  # set for every region of a traversal
        self._bounds_of_layers()
        error, depth = self._depths
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(region.clearance > error, (error + depth) / (region.clearance + depth), np.inf)
        return float(shares.max(initial=0.0)) * (1.0 + 1e-6) + UNIT

    def _settle(self, region: TraversedRegion) -> Certainty:
        """The certainty of a region by exact arithmetic, or by bounds that hold whatever the pattern."""
        found = self.settler.patterns(region)
        if found is None:
            return Certainty(self._bound_hull(region, asks_attention=True).inconsistency, 0.0)
        patterns, rest = found
        if patterns == [region.pattern]:
            # The region, shrunk by a factor s around any of its points, has s^d of its volume.
            return Certainty(None, min(1.0, 1.01 * rest ** (1.0 / region.dimension)))
        reaches = np.array([pattern_reach(self.question.compound, self.curves, region.cell, one) for one in patterns])
        return Certainty(np.array([[reaches[:, 0].min(), reaches[:, 1].max()]]), 0.0)

    def _margin(self, region: TraversedRegion) -> tuple[float, float, float, float]:
        """A lower bound on the margin over a region, its smallest and largest observed value, and an upper bound.

        In four dimensions, linear programs compute only the bound that can prove a label: lower for CR, upper for MR.
        """
        label, classes = self.question.label, region.logits.shape[1]
        tops, unused = np.full((2, classes), -np.inf)
        tops[label] = np.inf
        vertices, logits = np.ascontiguousarray(region.vertices), np.ascontiguousarray(region.logits)
        dip, seen = lead_ranges(logits, label, vertices, tops)
        for points in (np.ascontiguousarray(region.centres), region.inside[None]):
            seen = max(seen, lead_ranges(logits, label, points, unused)[1])
        if region.corners is not None:
            return dip, dip, seen, float(tops.min())
        forms, rival = self.leads(region), int(np.argmin(np.delete(tops, label)))
        rounding = 10 * FEASIBILITY * float(np.abs(forms[:-1]).sum(axis=0).max())
        low, high = dip - rounding, float(tops.min()) + rounding
        if seen < 0.0:
            # One rival that leads everywhere is enough; the vertices show which.
            high = self.traversal.highest(region, forms[:, rival])
        elif dip >= 0.0:
            low = min(-self.traversal.highest(region, -forms[:, j]) for j in range(forms.shape[1]))
        return low, dip, seen, high

    def label_error(self, visited: Visited) -> float:
        """A bound on the error of a region's leads: the common bound of all regions where it is small, else its own."""
        self._bounds_of_layers()
        if min(-visited.margin[0], visited.margin[1]) > 1e3 * self._slack:
            return self._slack
        return min(self._slack, self._prove(visited.region)[1])

    def has_certain_kept_part(self, visited: Visited) -> bool:
        """Whether float64 shows where the label wins on a region that does not keep it everywhere.

        For an undecided region: whether the label surely wins at its inner point.
        """
        region, forms = visited.region, self.leads(visited.region)
        if visited.classification == Label.UNDECIDED:
            return float((region.inside @ forms[:-1] + forms[-1]).min()) > self._prove(region)[1]
        return float((region.vertices @ forms[:-1] + forms[-1]).min()) < 0.0

    def leads(self, region: TraversedRegion) -> np.ndarray:
        """The forms (d+1, K−1) of f_label − f_j for the other classes j."""
        return region.logits[:, [self.question.label]] - region.logits[:, self._rivals]

    def _highest(self, region: TraversedRegion) -> tuple[float, float]:
        """Bounds on the largest margin over a region: one linear program finds the highest point below all leads."""
        forms = self.leads(region)
        scale, d = max(float(np.abs(forms).max()), 1e-300), region.dimension
        rows = np.concatenate([region.halfspaces, forms.T / scale])
        matrix = np.column_stack([rows[:, :-1], np.zeros(len(rows))])
        matrix[len(region.halfspaces) :, d] = -1.0
        low, high = np.full(d + 1, -1.0), np.full(d + 1, 2.0)
        low[d], high[d] = -4.0 * (d + 1), 4.0 * (d + 1)
        found = self.traversal.programs.maximise(np.eye(d + 1)[d], matrix, -rows[:, -1], low, high)
        if found is None:
            return UNKNOWN
        # Ten times the tolerance of the linear program, as a value of the margin.
        return float((found[d] - 1e-9) * scale), float((found[d] + 1e-9) * scale)

    def _bounds_of_layers(self) -> list[np.ndarray]:
        """`forward_errors` for all regions so far, with room for larger coefficients, so that they rarely change."""
        if not self._roofs or self.traversal.exceeds(self._roofs):
            seen = self.traversal.accuracy()
            # The largest value of a layer makes room for larger coefficients of its other neurons; a 64th of the values
            # that count as rounding is less than a form's own error.
            peaks, missed = (
                np.repeat(2.0 * np.maximum(self._levels(values), least), self.question.compound.hidden)
                * self.traversal.scales
                for values, least in ((seen.peaks, 0.0), (seen.missed, 1.0 / 64.0))
            )
            bounded = replace(
                seen,
                peaks=peaks,
                missed=missed,
                pixels_missed=max(2.0 * seen.pixels_missed, UNIT),
                drift=np.maximum(4.0 * seen.drift, LEAST_DRIFT),
            )
            self._errors = forward_errors(self.question.compound, bounded)
            self._depths = self._levels(np.concatenate([*self._errors[:-1], np.zeros(0)])), self._levels(missed)
            self._slack = 2.0 * float(self._errors[-1].max())
            self._roofs = self.traversal.roofs(bounded)
        return self._errors

    def _levels(self, values: np.ndarray) -> np.ndarray:
        """The largest of the neurons' values (n,) in every layer (L,), divided by the neurons' scales."""
        if not len(self.question.compound.hidden):
            return np.zeros(0)
        with np.errstate(over="ignore", invalid="ignore"):
            shares = values / self.traversal.scales
        ends = np.cumsum(self.question.compound.hidden)[:-1]
        return np.array([part.max(initial=0.0) for part in np.split(shares, ends)])

    def _prove(self, region: TraversedRegion) -> tuple[tuple[float, float], float]:
        """Proved bounds on the margin over a region, and a bound on the error of the region's own forms."""
        found, forms = self._bound_hull(region, asks_attention=False), self.leads(region)
        claimed = region.vertices @ forms[:-1] + forms[-1]
        with np.errstate(invalid="ignore"):
            off = float((np.abs(claimed - found.leads[0]).max(axis=0) + found.radius[0]).max(initial=0.0))
            # Covers the rounding of the forms' values, here and where margins are computed.
            off += 2.0 * gamma(len(forms) + 4) * float(np.abs(region.logits).sum(axis=0).max()) + LEAST
        low, high = found.margin[0]
        return (float(low), float(high)), np.inf if np.isnan(off) else off

    def _bound_hull(self, region: TraversedRegion, *, asks_attention: bool) -> Hulls:
        around, vertices = _vertex_error(region), region.vertices[None]
        return self.proof.bounder.bound_hulls(region.cell, vertices, around, asks_attention=asks_attention)


class Settler:
    """Decides regions that float64 leaves undecided, by exact arithmetic, one by one, up to a fixed number.

    `properties.settling` does the same for maps. The number is fixed in advance, so results do not depend on the
    machine unless a time limit ends the search.
    """

    def __init__(self, compound: Compound, label: int, seconds_left: Callable[[], float]) -> None:
        self.compound, self.label, self._seconds_left = compound, label, seconds_left
        self._left = affordable(compound)

    def classify(self, region: TraversedRegion) -> str:
        outcome = self._outcome(region, 0.0, _vertex_error(region))
        if outcome is LabelOutcome.MIXED:
            # One of the two labels may belong to a neighbour: try again without the border.
            shrinks = _within_rounding(region)
            is_mixed = shrinks <= 0.5 and self._outcome(region, shrinks, 0.0) is LabelOutcome.MIXED
            return Label.CB if is_mixed else Label.UNDECIDED
        return SETTLED.get(outcome, Label.UNDECIDED)

    def patterns(self, region: TraversedRegion) -> tuple[list[bytes], float] | None:
        """The classifier's patterns on a region, and a bound on the share of all other patterns; None if not settled.

        Patterns with less than LEAST_SHARE of the region belong to its border and are left out.
        """
        exact, seconds = self._ask()
        found = None if exact is None else exact.patterns(self._vertices(region), limit_seconds=seconds)
        if not found or not (volume := sum(found.values())):
            return None
        main = [pattern for pattern, own in found.items() if own >= LEAST_SHARE * volume]
        rest = 1 - sum(found[pattern] for pattern in main) / volume
        return main, float(rest) * (1.0 + 1e-9)

    def _outcome(self, region: TraversedRegion, shrinks: float, around: float) -> LabelOutcome | None:
        exact, seconds = self._ask()
        if exact is None:
            return None
        return exact.settle(self._vertices(region, shrinks), around, limit_seconds=seconds).outcome

    @cached_property
    def _exact(self) -> ExactLabels | None:
        return exact_labels(self.compound, self.label)

    def _ask(self) -> tuple[ExactLabels | None, float]:
        """Exact arithmetic for one more region, and its time limit; None once the allowed number is used up."""
        seconds = min(LIMIT_SECONDS, self._seconds_left())
        if self._left <= 0 or seconds <= 0.0:
            return None, 0.0
        self._left -= 1
        return self._exact, seconds

    def _vertices(self, region: TraversedRegion, shrinks: float = 0.0) -> np.ndarray:
        """The vertices (V, D) in t, moved inward by a share; one parameter gets a second coordinate in 0..1."""
        vertices = region.vertices + shrinks * (region.inside - region.vertices)
        if region.dimension > 1:
            return vertices
        return np.concatenate([np.hstack([vertices, np.full_like(vertices, end)]) for end in (0.0, 1.0)])


def _vertex_error(region: TraversedRegion) -> float:
    """How far vertices may be off along every axis of t: by rounding, or by the tolerance of linear programs."""
    return coverage(CLIPS) if region.corners is not None else 10 * FEASIBILITY


def _within_rounding(region: TraversedRegion) -> float:
    """How much, as a share, a region must shrink towards its inner point to stay within itself despite rounding."""
    clear = float((region.halfspaces[:, :-1] @ region.inside + region.halfspaces[:, -1]).min())
    return min(1.0, 2.0 * region.dimension * coverage(CLIPS) / clear) if clear > 0.0 else 1.0


def _named(labels: AttentionLabels) -> tuple[str, tuple[float, float]]:
    """The label of a single region, and bounds on its inconsistency."""
    names = ((Label.AR, labels.is_kept), (Label.IR, labels.is_lost), (Label.AB, labels.is_mixed))
    name = next((name for name, holds in names if holds[0]), Label.UNDECIDED)
    return name, (float(labels.reach[0, 0]), float(labels.reach[0, 1]))


def _decide(low: float, dip: float, seen: float, high: float, slack: float) -> str:
    """The label for a margin between `low` and `high`, with observed values from `dip` to `seen`, up to `slack`."""
    if low > slack:
        return Label.CR
    if high < -slack and dip < -slack:
        return Label.MR
    return Label.CB if dip < -slack and seen > slack else Label.UNDECIDED
