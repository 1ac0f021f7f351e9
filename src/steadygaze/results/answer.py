"""From labelled regions to the answer for one δ: verdict, shares, nearest violations, the δ-curve."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..attention.error import MapErrors
from ..attention.inconsistency import Inconsistency, region_taus
from ..compound import Compound
from ..properties.attention import AttentionLabels, label_attention, reaches
from ..properties.classification import Pieces
from ..properties.joint import JointPieces, Kept, Shares, join, shares
from ..properties.nearest import Nearest, nearest_attention_violation, nearest_label_violation
from ..regions.region import RegionSet
from ..verdict import Property, Verdict

RELATIVE_DELTAS = (0.10, 0.25, 0.50, 1.00)


@dataclass(frozen=True, eq=False)
class Answers:
    """Everything that a map knows, ready to be asked for any δ.

    `size` is Σ_j ‖map_j(x0)‖, what relative thresholds refer to.
    """

    compound: Compound
    regions: RegionSet
    pieces: Pieces
    curves: Inconsistency
    errors: MapErrors
    size: float

    @cached_property
    def taus(self) -> np.ndarray:
        """Range of τ of every region (R, 2)."""
        return region_taus(self.compound, self.regions)

    def at(self, delta: float) -> "Answer":
        """The answer for an absolute δ."""
        labels = label_attention(self.curves, self.taus, delta, self.errors, self.regions.doubtful)
        joint = join(self.compound, self.regions, self.pieces, labels)
        return Answer(self, delta, labels, joint, shares(joint, is_partial=self.regions.stopped is not None))

    @cached_property
    def kept_shares(self) -> dict[str, tuple[float, float]]:
        """The share of AR at 10, 25, 50 and 100 % of the original map's size."""
        return {f"{100 * part:g}%": self.at(part * self.size).shares.bounds(None, Kept.YES) for part in RELATIVE_DELTAS}

    @cached_property
    def enough_delta(self) -> float | None:
        """The smallest δ known to make the whole domain AR, rounded up; None where part of the map is not certain."""
        if self.regions.stopped is not None or self.regions.doubtful.any():
            return None
        top = reaches(self.curves, self.taus)[:, 1]
        near = np.unique(self.curves.curve[top >= top.max() - 2.0 * self.errors.coarse])
        settled, slack = self.errors.settle(near, self.taus)
        return round_up(float((reaches(settled, self.taus)[:, 1] + slack[settled.curve]).max()))


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer for one δ."""

    answers: Answers
    delta: float
    labels: AttentionLabels
    joint: JointPieces
    shares: Shares

    def verdict(self, wanted: Property) -> Verdict:
        """What was proved of a property over the whole domain."""
        cells = np.array(self.shares.cells)
        label_fails, attention_fails = cells[Kept.NO].sum(), cells[:, Kept.NO].sum()
        label_open, attention_open = cells[Kept.UNKNOWN].sum(), cells[:, Kept.UNKNOWN].sum()
        if wanted is Property.CR:
            return Verdict.of(violated=label_fails, undecided=label_open)
        if wanted is Property.AR:
            return Verdict.of(violated=attention_fails, undecided=attention_open)
        return Verdict.of(violated=max(label_fails, attention_fails), undecided=max(label_open, attention_open))

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
