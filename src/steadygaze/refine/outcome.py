"""The result of a refinement: boxes with what is proved of each, exact regions where bounds did not suffice."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..boundary import Boundary, find_boundary
from ..errors import InternalError, OptionError
from ..network.model import Agreement
from ..problem import Delta, Problem
from ..properties.joint import Kept
from ..properties.nearest import Nearest
from ..regions.check import CheckedMap
from ..regions.region import RegionSet
from ..results.answer import RELATIVE_DELTAS, Answers, round_up, verdict_of
from ..results.claim import Claim, Violation
from ..results.domain_result import DomainResult
from ..results.enclosure import Enclosing
from ..results.view import Region, Regions
from ..verdict import Property, Verdict
from .boxes import Boxes, State
from .claims import make_claims
from .merged import MOST_DRAWN, MergedAnswer, undecided_share
from .nearest import nearest_violation
from .plain import Plain
from .rounding import Measuring

Until = float | Literal["exact"]
Goal = Literal["map", "verdict"]


@dataclass(frozen=True, eq=False)
class RefineResult(DomainResult):
    """What `verify` returns for a refinement. Immutable; `with_delta` asks the same boxes for another threshold.

    boxes tile the domain. answers: the regions of EXACT boxes (None where there are none), box_of (R,) the box of each;
    the regions' table of cuts begins with that of the boxes. points (N, d): thetas that the search for violations
    found; they count once they are replayed. until and goal: when the run was to end; relaxation: which bounds it used.
    """

    method: ClassVar[str] = "refine"

    problem: Problem
    boxes: Boxes
    answers: Answers | None
    box_of: np.ndarray
    delta: Delta
    original: np.ndarray
    agreement: Agreement
    checked: CheckedMap
    until: Until
    goal: Goal
    stopped: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    points: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    relaxation: str = ""

    @cached_property
    def answer(self) -> MergedAnswer:
        """The answer for this δ."""
        return self._answer_at(self.delta.value(self.map_size))

    @property
    def exact_regions(self) -> RegionSet | None:
        """The regions of EXACT boxes; None where there are none."""
        return None if self.answers is None else self.answers.regions

    @cached_property
    def map_size(self) -> float:
        """What relative thresholds refer to."""
        return float(sum(self.problem.attention.distance.size(part) for part in self.original))

    @property
    def is_measured(self) -> bool:
        """Whether attention was looked at: not where the label alone was asked for."""
        return self.problem.property is not Property.CR

    @property
    def areas(self) -> dict[str, tuple[float, float]]:
        """As for a map; undecided is the share where the property that was asked for is not decided."""
        undecided = undecided_share(np.array(self.answer.shares.cells), self.problem.property)
        if self.problem.property is not Property.CR:
            undecided = min(1.0, undecided + self.answer.shares.slivers)
        return self.answer.shares.named() | {"undecided": (undecided, undecided)}

    @cached_property
    def guarantee_shares(self) -> dict[str, float]:
        """Shares of the domain: "rounding-sound", "float64 with slack", "undecided"."""
        return self.answer.guarantee_shares(self.problem.property)

    @cached_property
    def kept_shares(self) -> dict[str, tuple[float, float]]:
        """The share of AR at other thresholds, as bounds."""
        answers = {part: self._answer_at(part * self.map_size) for part in RELATIVE_DELTAS}
        return {f"{100 * part:g}%": answer.shares.bounds(None, Kept.YES) for part, answer in answers.items()}

    @cached_property
    def enough_delta(self) -> float | None:
        """The smallest δ known to make all of it AR, kinks aside, rounded up; None where that is not known."""
        top = float(self.boxes.inconsistency[self.answer.bounded, 1].max(initial=0.0))
        if self.answers is not None and self.answers.largest_inconsistency > top:
            # Only where regions exceed all boxes their own error bounds are worth the time.
            exact = self.answers.enough_delta
            top = np.inf if exact is None else max(top, exact)
        return None if self.answer.missing.any() or not np.isfinite(top) else round_up(top)

    @cached_property
    def measuring(self) -> Measuring:
        """Measures single thetas, with bounds of the rounding."""
        return Measuring(Plain(self.problem, self.original))

    @cached_property
    def violating(self) -> dict[str, np.ndarray]:
        """Those of `points` (N, d) where bounds prove that CR, and that AR, is violated."""
        thetas = self.points.reshape(-1, self.problem.perturbed.domain.dimension)
        if not len(thetas):
            return {"CR": thetas, "AR": thetas}
        enclosing = Enclosing(self.problem)
        found = [enclosing.at(theta, has_attention=self.is_measured) for theta in thetas]
        is_violated = {
            "CR": np.array([one.margin[1] < 0.0 for one in found]),
            "AR": np.array([one.inconsistency[0] > self.answer.delta for one in found]),
        }
        for name, codes in (("CR", self.answer.label_codes), ("AR", self.answer.attention_codes)):
            for theta in thetas[is_violated[name]]:
                box = self.box_at(theta)
                if box is not None and self.boxes.state[box] != State.EXACT and codes[box] == Kept.YES:
                    raise InternalError(
                        f"box {box} is claimed to satisfy {name}, but theta {theta.tolist()} violates it; nothing is "
                        "delivered, please report this model and image"
                    )
        return {name: thetas[chosen] for name, chosen in is_violated.items()}

    @cached_property
    def nearest(self) -> dict[str, Nearest]:
        """The nearest violations of CR and of AR."""
        return {name: nearest_violation(self.answer, name, self.violating[name]) for name in ("CR", "AR")}

    @cached_property
    def regions(self) -> Sequence[Region]:
        """The activation regions of EXACT boxes, one by one."""
        return () if self.answer.exact is None else Regions(self.problem, self.answer.exact)

    def verdict_of(self, wanted: Property) -> Verdict:
        """What was proved of a property: robust needs every box proved, one violated box or replayed theta decides."""
        names = {Property.CR: ("CR",), Property.AR: ("AR",), Property.BOTH: ("CR", "AR")}[wanted]
        is_violated = any(len(self.violating[name]) for name in names)
        return Verdict.NOT_ROBUST if is_violated else verdict_of(self.answer, wanted)

    def claims(self, kind: Violation) -> Iterator[Claim]:
        """Centres of violated boxes and pieces, and thetas that were found by trying, nearest to zero first."""
        return make_claims(self, kind)

    def box_at(self, theta: ArrayLike) -> int | None:
        """The box that contains theta (d,), the one in which it lies deepest; None outside of the domain."""
        where = np.asarray(theta, dtype=np.float64)
        compound = self.problem.compound
        if not compound.domain.contains(where):
            return None
        point, d = compound.to_unit(where[None])[0], compound.domain.dimension
        depth = np.minimum(point - self.boxes.low, self.boxes.high - point)[:, :d].min(axis=1)
        return int(np.argmax(depth))

    def region_at(self, theta: ArrayLike) -> int | None:
        """The exact region that contains theta (d,), None where its box is not EXACT."""
        box = self.box_at(theta)
        if box is None or self.boxes.state[box] != State.EXACT:
            return None
        return super().region_at(theta)

    def boundary(self, property: str | Property | None = None) -> Boundary:
        """The outermost boundary, as for a map; boxes that are not decided count as not kept."""
        wanted = self.problem.property if property is None else Property.parse(property)
        if self.problem.compound.domain.dimension > MOST_DRAWN:
            raise OptionError(
                f"the boundary takes up to {MOST_DRAWN} parameters, this result has "
                f"{self.problem.compound.domain.dimension}; leave some out, or take --method boundary"
            )
        if not self.is_measured and wanted is not Property.CR:
            raise OptionError(
                f"the boundary of {wanted.value} needs the attention, which this result did not measure (--property "
                "cr); verify again with --property both, or ask for --property cr"
            )
        return find_boundary(self.problem.compound, None, self.answer.joint, wanted)

    def summary(self) -> dict[str, Any]:
        """The answer as plain data: what `--json` prints and `result.json` stores, timings apart."""
        from .summary import summarise_refine  # noqa: PLC0415 (a summary describes a result)

        return summarise_refine(self)

    def save(self, directory: str | Path, *, force: bool = False) -> Path:
        """Store the result in a directory, atomically; an existing one is refused without `force`."""
        from .store import save_refine  # noqa: PLC0415 (stores results)

        return save_refine(self, directory, force=force)

    def _answer_at(self, delta: float) -> MergedAnswer:
        exact = None if self.answers is None else self.answers.at(delta)
        return MergedAnswer(self.problem.compound, self.boxes, exact, self.box_of, delta, self.label)
