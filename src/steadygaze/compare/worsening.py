"""A share of a baseline and the same share of a new result → whether the new one is worse by more than is allowed."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..labels import Joint, Label
from ..requirement import Outcome
from .comparison import Comparison
from .overlay import Bounds

KEPT = (Label.CR, Label.AR, Joint.BOTH)
"""Shares that should be large; all others should be small."""


def judge_worsening(
    baseline: Sequence[float], new: Sequence[float], *, allowed: float, share: str = Joint.BOTH
) -> Outcome:
    """Judge proved bounds (low, high) of one share of two results; computed without rounding.

    NOT_MET: whatever the shares are between their bounds, the new one is worse by more than allowed. MET: it is not,
    whatever they are.

    >>> judge_worsening((0.6, 0.61), (0.5, 0.58), allowed=0.01)
    <Outcome.NOT_MET: 'not met'>
    >>> judge_worsening((0.6, 0.61), (0.5, 0.595), allowed=0.01)
    <Outcome.UNDECIDED: 'undecided'>
    >>> judge_worsening((0.1, 0.1), (0.3, 0.3), allowed=0.01, share="MR")
    <Outcome.NOT_MET: 'not met'>
    """
    (base_low, base_high), (new_low, new_high) = ([Fraction(float(end)) for end in ends] for ends in (baseline, new))
    least, most = (base_low - new_high, base_high - new_low)
    if share not in KEPT:
        least, most = (new_low - base_high, new_high - base_low)
    limit = Fraction(allowed)
    if least > limit:
        return Outcome.NOT_MET
    return Outcome.UNDECIDED if most > limit else Outcome.MET


@dataclass(frozen=True)
class WorseningGate:
    """Every later result against the first, the baseline. later: name, proved bounds of the share, outcome of each."""

    share: str
    allowed: float
    baseline: Bounds
    later: tuple[tuple[str, Bounds, Outcome], ...]

    @classmethod
    def of(cls, comparison: Comparison, share: str, allowed: float) -> "WorseningGate":
        """Judge the results of a comparison."""
        (_, baseline), *others = [
            (name, result.areas[share]) for name, result in zip(comparison.names, comparison.results, strict=True)
        ]
        later = [(name, new, judge_worsening(baseline, new, allowed=allowed, share=share)) for name, new in others]
        return cls(share, allowed, baseline, tuple(later))

    @property
    def outcome(self) -> Outcome:
        """The outcome of all."""
        return Outcome.all_of(outcome for _, _, outcome in self.later)

    def plain(self) -> dict[str, Any]:
        """The gate as `--json` prints it."""
        later = [{"name": name, "bounds": list(new), "outcome": outcome.value} for name, new, outcome in self.later]
        facts = {"share": self.share, "allowed": self.allowed, "baseline": list(self.baseline)}
        return facts | {"results": later, "outcome": self.outcome.value}
