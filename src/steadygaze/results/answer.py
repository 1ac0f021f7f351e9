"""From labelled regions to the answer for one δ: verdict, shares, nearest violations, the δ-curve."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ..attention.error import MapErrors
from ..attention.inconsistency import Inconsistency, region_taus
from ..compound import Compound
from ..properties.attention import AttentionLabels, label_attention, reaches, unknown_attention
from ..properties.classification import Pieces
from ..properties.joint import JointPieces, Kept, Shares, join, shares
from ..properties.nearest import Nearest, nearest_attention_violation, nearest_label_violation
from ..regions.region import RegionSet
from ..verdict import Property, Verdict
from .values import inconsistency_at, margin_at

RELATIVE_DELTAS = (0.10, 0.25, 0.50, 1.00)


class DeltaAnswer(Protocol):
    """What the answer for one δ holds, whatever engine found it: P pieces that tile the domain, with their labels.

    Pieces count into regions and boxes by `joint.pieces.region`; `inconsistencies` (P,) is what stands for ai on each
    piece in a picture, `reach` (P, 2) encloses it. The last two give bounds (N, 2) at points (N, D) in t of the given
    regions or boxes (N,).
    """

    @property
    def compound(self) -> Compound: ...  # noqa: D102 (see above)
    @property
    def delta(self) -> float: ...  # noqa: D102
    @property
    def joint(self) -> JointPieces: ...  # noqa: D102
    @property
    def shares(self) -> Shares: ...  # noqa: D102
    @property
    def sets(self) -> dict[str, int]: ...  # noqa: D102
    @property
    def inconsistencies(self) -> np.ndarray: ...  # noqa: D102
    @property
    def reach(self) -> np.ndarray: ...  # noqa: D102
    def margin_bounds_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray: ...  # noqa: D102
    def inconsistency_bounds_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class Answers:
    """Everything that a map knows, ready to be asked for any δ.

    `size` is Σ_j ‖map_j(x0)‖, what relative thresholds refer to. Where attention was not measured, `curves` and
    `errors` are None, and the attention of every region is undecided.
    """

    compound: Compound
    regions: RegionSet
    pieces: Pieces
    curves: Inconsistency | None
    errors: MapErrors | None
    size: float

    @cached_property
    def taus(self) -> np.ndarray:
        """Range of τ of every region (R, 2)."""
        return region_taus(self.compound, self.regions)

    def at(self, delta: float) -> "Answer":
        """The answer for an absolute δ."""
        if self.curves is None or self.errors is None:
            labels = unknown_attention(self.taus, delta)
        else:
            labels = label_attention(self.curves, self.taus, delta, self.errors, self.regions.doubtful)
        joint = join(self.compound, self.regions, self.pieces, labels)
        return Answer(self, delta, labels, joint, shares(joint, is_partial=self.regions.stopped is not None))

    @cached_property
    def kept_shares(self) -> dict[str, tuple[float, float]]:
        """The share of AR at 10, 25, 50 and 100 % of the original map's size."""
        return {f"{100 * part:g}%": self.at(part * self.size).shares.bounds(None, Kept.YES) for part in RELATIVE_DELTAS}

    @cached_property
    def largest_inconsistency(self) -> float:
        """A bound of ai over all regions, from the error bound for all maps; infinite where it is not certain."""
        if self.curves is None or self.errors is None or self.regions.stopped is not None:
            return math.inf
        if self.regions.doubtful.any():
            return math.inf
        return float(reaches(self.curves, self.taus)[:, 1].max(initial=0.0)) + self.errors.coarse

    @cached_property
    def enough_delta(self) -> float | None:
        """The smallest δ known to make the whole domain AR, rounded up; None where part of the map is not certain."""
        if self.curves is None or self.errors is None or math.isinf(self.largest_inconsistency):
            return None
        top = reaches(self.curves, self.taus)[:, 1]
        near = np.unique(self.curves.curve[top >= top.max() - 2.0 * self.errors.coarse])
        settled = self.errors.settle(near, self.taus)  # all others stay below whatever comes of these
        top = reaches(settled.curves, self.taus[settled.regions])[:, 1] + settled.slack[settled.curves.curve]
        return round_up(float(top.max()))


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer for one δ."""

    answers: Answers
    delta: float
    labels: AttentionLabels
    joint: JointPieces
    shares: Shares

    @property
    def compound(self) -> Compound:
        """Classifier after perturbation."""
        return self.answers.compound

    def verdict(self, wanted: Property) -> Verdict:
        """What was proved of a property over the whole domain."""
        return verdict_from(self.shares, wanted)

    @cached_property
    def inconsistencies(self) -> np.ndarray:
        """ai (P,) at the centre of every piece, up to rounding; NaN where attention was not measured."""
        return self.inconsistency_at(self.joint.pieces.region, self.joint.polytopes.centres)

    def inconsistency_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        """ai (N,) at points (N, D) in t of the given regions (N,), up to rounding; NaN where it was not measured."""
        answers = self.answers
        if answers.curves is None:
            return np.full(len(points), np.nan)
        return inconsistency_at(answers.compound, answers.regions.cell, answers.curves, region, points)

    def margin_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The margin (N,) at points (N, D) in t of the given regions (N,), up to rounding."""
        return margin_at(self.answers.regions, self.answers.pieces.label, region, points)

    def margin_bounds_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The margin, twice (N, 2)."""
        return np.repeat(self.margin_at(region, points)[:, None], 2, axis=1)

    def inconsistency_bounds_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The inconsistency, twice (N, 2)."""
        return np.repeat(self.inconsistency_at(region, points)[:, None], 2, axis=1)

    @property
    def reach(self) -> np.ndarray:
        """Bounds (P, 2) of ai over the region of every piece."""
        return self.labels.reach[self.joint.pieces.region]

    @cached_property
    def nearest(self) -> dict[str, Nearest]:
        """The nearest violations of CR and of AR."""
        answers = self.answers
        return {
            "CR": nearest_label_violation(answers.compound, answers.regions, self.joint),
            "AR": nearest_attention_violation(answers.compound, answers.regions, self.joint, self.labels),
        }

    @cached_property
    def classifications(self) -> np.ndarray:
        """CR, MR, CB or undecided for every region (R,)."""
        pieces, count = self.answers.pieces, len(self.answers.regions)
        keeps, is_open = pieces.keeps_label, pieces.has_strip
        surely_kept = keeps & (pieces.margin[:, 1] > pieces.slack)
        surely_lost = ~keeps & (pieces.margin[:, 0] < -pieces.slack)
        kept, lost, some_open, some_kept, some_lost = (
            np.bincount(pieces.region[chosen], minlength=count) > 0
            for chosen in (keeps, ~keeps, is_open, surely_kept, surely_lost)
        )
        chosen = [kept & ~lost & ~some_open, lost & ~kept & ~some_open, some_kept & some_lost]
        return np.select(chosen, ["CR", "MR", "CB"], "undecided")

    @cached_property
    def attentions(self) -> np.ndarray:
        """AR, IR, AB or undecided for every region (R,)."""
        labels = self.labels
        return np.select([labels.is_kept, labels.is_lost, labels.is_mixed], ["AR", "IR", "AB"], "undecided")

    @cached_property
    def sets(self) -> dict[str, int]:
        """Number of regions in CR, MR, CB and AR, IR, AB; regions that are not decided are in none of them."""
        counts = {name: int((self.classifications == name).sum()) for name in ("CR", "MR", "CB")}
        return counts | {name: int((self.attentions == name).sum()) for name in ("AR", "IR", "AB")}


def verdict_from(shares: Shares, wanted: Property) -> Verdict:
    """What shares prove of a property over the whole domain."""
    cells = np.array(shares.cells)
    label_fails, attention_fails = cells[Kept.NO].sum(), cells[:, Kept.NO].sum()
    label_open, attention_open = cells[Kept.UNKNOWN].sum(), cells[:, Kept.UNKNOWN].sum()
    if wanted is Property.CR:
        return Verdict.of(violated=label_fails, undecided=label_open)
    if wanted is Property.AR:
        return Verdict.of(violated=attention_fails, undecided=attention_open)
    return Verdict.of(violated=max(label_fails, attention_fails), undecided=max(label_open, attention_open))


def round_up(number: float, digits: int = 8) -> float:
    """The smallest number with so many significant digits that is not below the given one.

    >>> round_up(1.23456781, 4), round_up(0.0)
    (1.235, 0.0)
    """
    if number <= 0.0 or not math.isfinite(number):
        return max(number, 0.0)
    step = 10.0 ** (math.floor(math.log10(number)) + 1 - digits)
    rounded = float(f"{number:.{digits - 1}e}")
    return rounded if rounded >= number else float(f"{number + step:.{digits - 1}e}")
