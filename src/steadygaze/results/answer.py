"""From labelled regions to the answer for one δ: verdict, shares, nearest violations, the δ-curve, values at points."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..attention.enclosed import losses_at
from ..attention.factored import values
from ..attention.inconsistency import Inconsistency
from ..attention.map_errors import MapErrors, SingleCurves
from ..attention.measures.distance import DISTANCE
from ..attention.measuring import needs_shapes
from ..attention.spans import Spans
from ..budget import Budget
from ..compound import Compound
from ..labels import ATTENTIONS, CLASSIFICATIONS, Kept, Label, Property, Verdict
from ..properties.attention import AttentionLabels, Doubtful, label_attention, reaches, unknown_attention
from ..properties.classification import MOST_WORK, Pieces, hull_work
from ..properties.enclosing import enclose_attention
from ..properties.factored_kinks import factored_kink_loss
from ..properties.hull_proof import HullProof
from ..properties.joint import JointPieces, Shares, add_cells, join, missing_cells, piece_cells, shares
from ..properties.kept_box import Suspects, attention_suspects, label_suspects
from ..properties.nearest import Nearest, Violations, attention_violations, label_violations, nearest_violation
from ..properties.pattern_points import has_windows
from ..properties.settling import Settled, kink_inconsistency, settle_patterns
from ..properties.ties import TieVolumes, tie_volumes
from ..regions.forward_error import forward_errors, kink_share, region_coverage
from ..regions.region import RegionSet
from ..tolerances import AREA
from .delta_answer import verdict_from, zero_bounds, zero_volumes
from .label_counts import CountedAnswer, PatternLabels, count_pairs


def inconsistency_at(
    compound: Compound, cells: np.ndarray, curves: Inconsistency, region: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """The loss (N,) at points (N, D) of the unit square or cube, given with their regions (N,). Exact up to rounding.

    cells (R,) are the knot cells of all regions.
    """
    curve = curves.curve[region]
    if curves.is_factored:
        return values(curves, curve, points)
    if curves.layout is not None:
        return losses_at(curves, curve, points, np.stack([cell.low for cell in compound.programs])[cells[region]])
    axis = compound.perturbed.moving_axis
    tau = np.zeros(len(points))
    if axis is not None:
        lows = np.array([cell.low[axis] for cell in compound.cells])[cells[region]]
        tau = compound.domain.to_theta(points[:, axis], axis) - lows
    return curves.measure.values(curves, curve, tau)


def margin_at(regions: RegionSet, label: int, region: np.ndarray, points: np.ndarray) -> np.ndarray:
    """f_label − max of the other logits (N,) at points (N, D) of the unit square or cube in the given regions (N,)."""
    logits = np.einsum("nd,ndk->nk", np.hstack([points, np.ones((len(points), 1))]), regions.logits[region])
    return logits[:, label] - np.delete(logits, label, axis=1).max(axis=1)


TRIED = 8
"""The number of pieces whose centres are tried for violations of the attention smaller than the kinks."""


@dataclass(frozen=True, eq=False)
class Answers:
    """The data of a map, which answers for any δ.

    `size` is Σ_j ‖map_j(x0)‖, the base of relative thresholds. If attention was not measured, `curves` and `errors` are
    None, and the attention of every region is undecided. is_part: the regions are part of a larger map, which knows the
    share of its kinks and of its gaps; shares and `slivers` are those of the regions alone. budget: of the run, which
    also limits later computations; None after loading.
    """

    compound: Compound
    regions: RegionSet
    pieces: Pieces
    curves: Inconsistency | None
    errors: MapErrors | None
    size: float
    is_part: bool = False
    budget: Budget | None = None

    def without(self, label: Sequence[int], attention: Sequence[int]) -> "Answers":
        """The same regions; some have an undecided label, and the pattern of some is doubtful."""
        regions, pieces = self.regions, self.pieces
        is_open, doubtful = np.isin(pieces.region, label), regions.doubtful.copy()
        doubtful[list(attention)] = 1
        # No margin in the unit square or cube exceeds this.
        slack = 1.0 + 4.0 * np.abs(regions.logits[pieces.region]).sum(axis=(1, 2))
        pieces = replace(
            pieces,
            slack=np.where(is_open, slack, pieces.slack),
            most_strip=np.where(is_open, pieces.polytopes.volumes, pieces.most_strip),
        )
        return replace(self, regions=replace(regions, doubtful=doubtful), pieces=pieces)

    @cached_property
    def spans(self) -> Spans:
        """Where the regions lie, as far as their losses depend on it."""
        return Spans.of_regions(self.compound, self.regions, has_shapes=self.changes_in_regions)

    @property
    def changes_in_regions(self) -> bool:
        """Whether losses change within regions in all directions, not only along the moving parameter."""
        return self.curves is not None and self.curves.has_shapes

    def at(self, delta: float) -> "Answer":
        """The answer for an absolute δ."""
        labels, joint = self._labelled(delta)
        if self.is_part:
            return Answer(self, delta, labels, joint, add_cells([piece_cells(joint)]))
        accuracy = self.regions.accuracy
        is_partial = self.regions.stopped is not None or accuracy.skipped > 0
        found = shares(joint, is_partial=is_partial, holes=accuracy.holes)
        return Answer(self, delta, labels, joint, self._with_kinks(found, joint, delta))

    def _labelled(self, delta: float) -> tuple[AttentionLabels, JointPieces]:
        """The labels of regions, and pieces with both labels."""
        if self.curves is not None and self.errors is not None and self.curves.layout is not None:
            return enclose_attention(
                self.regions, self.pieces, self.curves, self.spans, delta, self.errors, self.doubtful,
                budget=self.budget,
            )  # fmt: skip
        if self.curves is None or self.errors is None:
            labels = unknown_attention(self.spans, delta)
        else:
            labels = label_attention(self.curves, self.spans, delta, self.errors, self.doubtful)
        return labels, join(self.regions, self.pieces, labels)

    def _with_kinks(self, found: Shares, joint: JointPieces, delta: float) -> Shares:
        """The shares; on kinks the attention is undecided unless bounds decide it."""
        slivers = self.slivers
        if slivers == 0.0 or self.errors is None:
            return found
        verdict = verdict_from(found, Property.AR)
        if verdict is Verdict.ROBUST and (self.kink_inconsistency <= delta or self.hull_inconsistency <= delta):
            return found
        has_violation = False
        if verdict is Verdict.NOT_ROBUST and sum(row[Kept.NO] for row in found.cells) <= slivers:
            lost = np.flatnonzero(joint.attention_codes == Kept.NO)
            largest = lost[np.argsort(-joint.polytopes.volumes[lost], kind="stable")[:TRIED]]
            cell, centres = self.regions.cell[joint.pieces.region[largest]], joint.polytopes.centres[largest]
            has_violation = any(
                self.proof.loses_attention(int(number), point[None], delta)
                for number, point in zip(cell, centres, strict=True)
            )
        return replace(found, slivers=slivers, has_violation=has_violation)

    @cached_property
    def slivers(self) -> float:
        """A bound of the share of the domain on kinks, where the attention may differ."""
        return self._kinks if self.errors is None else self._settled.slivers

    @property
    def _kinks(self) -> float:
        return 0.0 if self.is_part else kink_share(self.compound, self.regions.accuracy, self.forward_errors)

    @cached_property
    def forward_errors(self) -> list[np.ndarray]:
        """Bounds of the errors of every neuron's form, layer by layer, and of the logits."""
        return forward_errors(self.compound, self.regions.accuracy)

    @cached_property
    def doubtful(self) -> Doubtful:
        """The regions without a certain map, with bounds of ai that hold for any map."""
        return self._settled.doubtful

    @cached_property
    def _settled(self) -> Settled:
        assert self.errors is not None
        curves = SingleCurves(self.compound, self.errors.options, self.errors.original_doubt)
        return settle_patterns(self.compound, self.regions, self._kinks, curves, self.proof, self.budget)

    @cached_property
    def tie_share(self) -> tuple[float, float] | None:
        """Bounds of the share of the domain whose maps depend on the rule for ties of windows.

        None for networks without windows, parts of a map, and attention that was not measured.
        """
        if self.is_part or (found := self.tie_volumes()) is None:
            return None
        regions, accuracy = self.regions, self.regions.accuracy
        missing = missing_cells(
            float(regions.polytopes.volumes.sum()), len(regions), regions.polytopes.dimension,
            is_partial=regions.stopped is not None or accuracy.skipped > 0, holes=accuracy.holes,
        )  # fmt: skip
        return found.bounds(missing=float(missing.sum()), slack=self.slivers)

    def tie_volumes(self, part: float = 1.0) -> TieVolumes | None:
        """The volumes of regions whose maps depend on the rule for ties, or may; None if no map can.

        part: the share of the work that may be spent on these regions.
        """
        if self.errors is None or not has_windows(self.compound.graph):
            return None
        options, uncertain = self.errors.options, self.doubtful.regions
        return tie_volumes(self.compound, self.regions, options, uncertain, part=part, budget=self.budget)

    @cached_property
    def hull_inconsistency(self) -> float:
        """An upper bound of ai on all regions and kinks, by bounds alone; infinite if it would cost too much."""
        count, work = len(self.regions), 2 * self.compound.graph.classes * hull_work(self.compound)
        if self.errors is None or count * work > MOST_WORK:
            return np.inf
        found = self.proof.inconsistencies(self.regions.polytopes, self.regions.cell, np.arange(count))
        return float(found[:, 1].max(initial=0.0))

    @cached_property
    def kink_inconsistency(self) -> float:
        """An upper bound of ai on kinks between patterns of no region; infinite if it would cost too much."""
        if self.errors is None or len(self.regions) * hull_work(self.compound) > MOST_WORK:
            return np.inf
        curves = SingleCurves(self.compound, self.errors.options, self.errors.original_doubt)
        find = factored_kink_loss if needs_shapes(self.compound, self.errors.options) else kink_inconsistency
        return find(self.compound, self.regions, self.forward_errors, curves, self.proof.bounder, self.budget)

    @cached_property
    def proof(self) -> HullProof:
        """Proves single regions and thetas again, by bounds that do not depend on the map."""
        assert self.errors is not None
        around = region_coverage(self.regions.accuracy)
        return HullProof(self.compound, self.pieces.label, self.errors.options, around, self.budget)

    @cached_property
    def largest_inconsistency(self) -> float:
        """A bound of ai over all regions, from the error bound for all maps; infinite if that is not certain."""
        if self.curves is None or self.errors is None or self.regions.stopped is not None:
            return math.inf
        top = float(reaches(self.curves, self.spans, self.errors.coarse)[:, 1].max(initial=0.0))
        found = max(top, float(self.doubtful.bounds[:, 1].max(initial=0.0)))
        # NaN bounds nothing.
        return found if math.isfinite(top) and math.isfinite(found) else math.inf

    @cached_property
    def enough_delta(self) -> float | None:
        """The smallest δ known to make every region AR, kinks aside, rounded up; None if a map is not certain."""
        if self.curves is None or self.errors is None or math.isinf(self.largest_inconsistency):
            return None
        top, high = (reaches(self.curves, self.spans, error)[:, 1] for error in (0.0, self.errors.coarse))
        largest = int(np.argmax(top))
        near = np.unique(self.curves.curve[high >= top[largest] - (high[largest] - top[largest])])
        settled = self.errors.settle(near, self.spans)  # all others stay below, whatever the outcome
        found = reaches(settled.curves, self.spans.take(settled.regions), settled.slack)[:, 1]
        return round_up(max(float(found.max()), float(self.doubtful.bounds[:, 1].max(initial=0.0))))


@dataclass(frozen=True, eq=False)
class Answer(CountedAnswer):
    """The answer of regions for one δ."""

    answers: Answers
    delta: float
    labels: AttentionLabels
    joint: JointPieces
    shares: Shares

    @property
    def compound(self) -> Compound:
        return self.answers.compound

    @property
    def exact(self) -> "Answer":
        return self

    @property
    def coverage(self) -> float:
        total = float(self.answers.regions.polytopes.volumes.sum())
        return 1.0 if abs(total - 1.0) <= AREA else total

    @property
    def witnesses(self) -> np.ndarray:
        return self.joint.pieces.witnesses

    @cached_property
    def inconsistencies(self) -> np.ndarray:
        return self.inconsistency_at(self.joint.pieces.region, self.joint.polytopes.centres)

    def inconsistency_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        """ai (N,) at points (N, D) in t of the given regions (N,), up to rounding; NaN if it was not measured."""
        answers = self.answers
        if answers.curves is None:
            return np.full(len(points), np.nan)
        return inconsistency_at(answers.compound, answers.regions.cell, answers.curves, region, points)

    def margin_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The margin (N,) at points (N, D) in t of the given regions (N,), up to rounding."""
        return margin_at(self.answers.regions, self.answers.pieces.label, region, points)

    def margin_bounds_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        return np.repeat(self.margin_at(region, points)[:, None], 2, axis=1)

    def inconsistency_bounds_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        return np.repeat(self.inconsistency_at(region, points)[:, None], 2, axis=1)

    @property
    def reach(self) -> np.ndarray:
        slabs = self.joint.slabs
        assert slabs is not None
        return slabs.reach[self.joint.rows]

    @property
    def zero_share(self) -> tuple[float, float] | None:
        curves = self.answers.curves
        if curves is None or curves.measure == DISTANCE:
            return None
        rest = sum(sum(row) for row in self.shares.cells) - float(self.joint.polytopes.volumes.sum())
        return zero_bounds(self.zero_volumes, self.shares.slivers, rest)

    @property
    def zero_volumes(self) -> np.ndarray:
        """The volumes of regions that surely have no attention, and that may have none."""
        if self.joint.row is not None:
            # The bounds of parts are tighter than those of whole regions.
            return zero_volumes(self.reach, self.joint.polytopes.volumes)
        return zero_volumes(self.labels.reach, self.answers.regions.polytopes.volumes)

    @cached_property
    def nearest(self) -> dict[str, Nearest]:
        is_partial = self.answers.regions.stopped is not None
        return {name: nearest_violation(self.violations(name), is_partial=is_partial) for name in (Label.CR, Label.AR)}

    def violations(self, name: Label) -> Violations:
        """The pieces that matter for the nearest violation of CR, or AR."""
        answers = self.answers
        if name == Label.CR:
            return label_violations(answers.compound, answers.regions, self.joint)
        proof = answers.proof if answers.errors else None
        return attention_violations(answers.compound, answers.regions, self.joint, proof)

    def suspects(self, name: Label) -> list[Suspects]:
        regions = self.answers.regions
        if name == Label.CR:
            return [label_suspects(regions, self.joint)]
        return [attention_suspects(self.joint)]

    @cached_property
    def classifications(self) -> np.ndarray:
        """CR, MR, CB or undecided for every region (R,)."""
        return np.array([*CLASSIFICATIONS, Label.UNDECIDED])[self.classification_numbers]

    @cached_property
    def attentions(self) -> np.ndarray:
        """AR, IR, AB or undecided for every region (R,)."""
        return np.array([*ATTENTIONS, Label.UNDECIDED])[self.attention_numbers]

    @cached_property
    def classification_numbers(self) -> np.ndarray:
        """The classification of every region (R,): its place in `CLASSIFICATIONS`, or their number."""
        pieces, count = self.answers.pieces, len(self.answers.regions)
        keeps, is_open = pieces.keeps_label, pieces.has_strip
        surely_kept = keeps & (pieces.margin[:, 1] > pieces.slack)
        surely_lost = ~keeps & (pieces.margin[:, 0] < -pieces.slack)
        kept, lost, some_open, some_kept, some_lost = (
            np.bincount(pieces.region[chosen], minlength=count) > 0
            for chosen in (keeps, ~keeps, is_open, surely_kept, surely_lost)
        )
        chosen = [kept & ~lost & ~some_open, lost & ~kept & ~some_open, some_kept & some_lost]
        return np.select(chosen, [0, 1, 2], len(CLASSIFICATIONS))

    @cached_property
    def attention_numbers(self) -> np.ndarray:
        """The attention label of every region (R,): its place in `ATTENTIONS`, or their number."""
        labels = self.labels
        return np.select([labels.is_kept, labels.is_lost, labels.is_mixed], [0, 1, 2], len(ATTENTIONS))

    @cached_property
    def counts(self) -> np.ndarray:
        found = self.pattern_labels
        return count_pairs(self.classification_numbers, self.attention_numbers) if found is None else found.counts

    @cached_property
    def pattern_labels(self) -> PatternLabels | None:
        """The labels of regions that may consist of several polytopes; None if every polytope is a region."""
        if self.compound.graph.is_plain:
            return None
        digests = self.answers.regions.pattern_digests
        return PatternLabels.of(digests, self.classification_numbers, self.attention_numbers)


def round_up(number: float, digits: int = 8) -> float:
    """A number rounded up to some significant digits.

    >>> round_up(1.23456781, 4), round_up(0.125, 2), round_up(0.0)
    (1.235, 0.13, 0.0)
    """
    if number <= 0.0 or not math.isfinite(number):
        return max(number, 0.0)
    step = 10.0 ** (math.floor(math.log10(number)) + 1 - digits)
    rounded = float(f"{number:.{digits - 1}e}")
    return rounded if rounded >= number else float(f"{rounded + step:.{digits - 1}e}")
