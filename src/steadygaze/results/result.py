"""The result of a map: the question, all regions, and the answer for its δ."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..network.model import Agreement
from ..problem import Delta, Problem
from ..properties.nearest import Nearest
from ..regions.check import CheckedMap
from ..regions.region import RegionSet
from ..verdict import Property, Verdict
from .answer import Answer, Answers
from .claim import Claim, Violation
from .domain_result import DomainResult, Point
from .piece_claims import piece_claims
from .view import Regions

__all__ = ["Point", "Result"]


@dataclass(frozen=True, eq=False)
class Result(DomainResult):
    """What `verify` returns for a map. Immutable; `with_delta` gives the same map asked for another threshold."""

    method: ClassVar[str] = "map"

    problem: Problem
    answers: Answers
    delta: Delta
    original: np.ndarray
    agreement: Agreement
    checked: CheckedMap
    seconds: dict[str, float] = field(default_factory=dict)

    @cached_property
    def answer(self) -> Answer:
        """The answer for this δ."""
        return self.answers.at(self.delta.value(self.answers.size))

    @property
    def exact_regions(self) -> RegionSet:
        """All regions that were mapped."""
        return self.answers.regions

    @property
    def map_size(self) -> float:
        """What relative thresholds refer to."""
        return self.answers.size

    @property
    def kept_shares(self) -> dict[str, tuple[float, float]]:
        """The share of AR at other thresholds."""
        return self.answers.kept_shares

    @property
    def enough_delta(self) -> float | None:
        """The smallest δ known to make every region AR, kinks aside, rounded up; None where a map is not certain."""
        return self.answers.enough_delta

    @property
    def nearest(self) -> dict[str, Nearest]:
        """The nearest violations of CR and of AR."""
        return self.answer.nearest

    @property
    def stopped(self) -> str | None:
        """Which limit ended the map before it covered the domain, None for none."""
        return self.answers.regions.stopped

    @cached_property
    def regions(self) -> Regions:
        """The activation regions, one by one, with vertices, pattern, affine logits and labels."""
        return Regions(self.problem, self.answer)

    def verdict_of(self, wanted: Property) -> Verdict:
        """What was proved of a property over the whole domain."""
        return self.answer.verdict(wanted)

    def claims(self, kind: Violation) -> Iterator[Claim]:
        """The centres of the pieces nearest to zero that violate and may be deep, then of the deepest of all."""
        return piece_claims(self.answer, kind, self.agreement.scale)

    def summary(self) -> dict[str, Any]:
        """The answer as plain data: what `--json` prints and `result.json` stores, timings apart."""
        from .summary import summarise  # noqa: PLC0415 (a summary describes a result)

        return summarise(self)

    def save(self, directory: str | Path, *, force: bool = False) -> Path:
        """Store the result in a directory, atomically; an existing one is refused without `force`."""
        from .store import save  # noqa: PLC0415 (stores results)

        return save(self, directory, force=force)
