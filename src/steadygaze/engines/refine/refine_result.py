"""The result of a refinement: boxes and exact regions with their proofs, claims to be replayed, and the summary."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from ...boundary import Boundary, find_boundary
from ...errors import InternalError, OptionError
from ...labels import Kept, Label, Property, Stop, Verdict
from ...network.model import Agreement
from ...properties.nearest import Nearest
from ...question import Question, Threshold
from ...regions.check import CheckedMap
from ...regions.region import RegionSet
from ...results.answer import RELATIVE_DELTAS, Answers, round_up, verdict_from, verdict_of
from ...results.claims import TRIES, Claim, Violation, piece_claims
from ...results.result import DomainResult
from ...results.summary import SINGLE_THETAS, agreement_text, kinks_text, summarise_domain
from ...results.view import Region, Regions
from ...results.witness import Enclosing
from ...tolerances import MAX_MAP_PARAMETERS
from .boxes import Boxes, State
from .merged_answer import MergedAnswer, distances, nearest_violation, undecided_share
from .pointwise import PointPasses

Until = float | Literal["exact"]
Goal = Literal["map", "verdict"]

SUMMED = 1e-14  # how much rounding may take from a share that is the sum of many


@dataclass(frozen=True, eq=False)
class RefineResult(DomainResult):
    """What `verify` returns for a refinement. Immutable; `with_delta` asks the same boxes for another threshold.

    boxes tile the domain. answers: the regions of EXACT boxes (None if there are none), box_of (R,) the box of each;
    the regions' table of cuts begins with that of the boxes. points (N, d): violations found by the search; they count
    once bounds prove them. until and goal: when the run was to end; relaxation: which bounds it used.
    """

    method: ClassVar[str] = "refine"

    question: Question
    boxes: Boxes
    answers: Answers | None
    box_of: np.ndarray
    delta: Threshold
    original: np.ndarray
    agreement: Agreement
    checked: CheckedMap
    until: Until
    goal: Goal
    stopped: Stop | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    points: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    relaxation: str = ""

    @cached_property
    def answer(self) -> MergedAnswer:
        """The answer for this δ."""
        return self._answer_at(self.delta.value(self.map_size))

    def _answer_at(self, delta: float) -> MergedAnswer:
        exact = None if self.answers is None else self.answers.at(delta)
        return MergedAnswer(self.question.compound, self.boxes, exact, self.box_of, delta, self.label)

    @property
    def exact_regions(self) -> RegionSet | None:
        """The regions of EXACT boxes; None if there are none."""
        return None if self.answers is None else self.answers.regions

    @cached_property
    def map_size(self) -> float:
        """The size of the original maps, to which relative thresholds refer."""
        return self.question.attention.size(self.original)

    @property
    def is_measured(self) -> bool:
        """Whether attention was measured: not if the question asks for the label alone."""
        return self.question.property is not Property.CR

    @property
    def areas(self) -> dict[str, tuple[float, float]]:
        """As for a map; undecided is the share where the property of the question is undecided."""
        undecided = undecided_share(np.array(self.answer.shares.cells), self.question.property)
        if self.is_measured:
            undecided = min(1.0, undecided + self.answer.shares.slivers)
        return self.answer.shares.named() | {"undecided": (undecided, undecided)}

    @cached_property
    def guarantee_shares(self) -> dict[str, float]:
        """The shares of the domain where the property is decided, by the kind of proof, and where it is undecided."""
        cells = self.answer.bounded_cells, self.answer.exact_cells
        bounded, exact = (undecided_share(part, self.question.property) for part in cells)
        if self.is_measured:
            exact = min(float(cells[1].sum()), exact + self.answer.slivers)
        return {
            "rounding-sound": max(0.0, float(cells[0].sum()) - bounded),
            "float64 with slack": max(0.0, float(cells[1].sum()) - exact),
            "undecided": bounded + exact,
        }

    @cached_property
    def kept_shares(self) -> dict[str, tuple[float, float]]:
        """The share of AR at other thresholds, as bounds."""
        answers = {part: self._answer_at(part * self.map_size) for part in RELATIVE_DELTAS}
        return {f"{100 * part:g}%": answer.shares.bounds(None, Kept.YES) for part, answer in answers.items()}

    @cached_property
    def enough_delta(self) -> float | None:
        """The smallest δ known to make the whole domain AR, kinks aside, rounded up; None if unknown."""
        top = float(self.boxes.inconsistency[self.answer.bounded, 1].max(initial=0.0))
        if self.answers is not None and self.answers.largest_inconsistency > top:
            # The regions' own error bounds are worth the time only where regions exceed all boxes.
            exact = self.answers.enough_delta
            top = np.inf if exact is None else max(top, exact)
        return None if self.answer.missing.any() or not np.isfinite(top) else round_up(top)

    @cached_property
    def violating(self) -> dict[str, np.ndarray]:
        """Those of `points` (N, d) where bounds prove that CR, and that AR, is violated."""
        thetas = self.points.reshape(-1, self.question.perturbed.domain.dimension)
        if not len(thetas):
            return {Label.CR: thetas, Label.AR: thetas}
        enclosing = Enclosing(self.question)
        found = [enclosing.at(theta, has_attention=self.is_measured) for theta in thetas]
        is_violated = {
            Label.CR: np.array([one.margin[1] < 0.0 for one in found]),
            Label.AR: np.array([one.inconsistency[0] > self.answer.delta for one in found]),
        }
        for name, codes in ((Label.CR, self.answer.label_codes), (Label.AR, self.answer.attention_codes)):
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
        return {name: nearest_violation(self.answer, name, self.violating[name]) for name in (Label.CR, Label.AR)}

    @cached_property
    def regions(self) -> Sequence[Region]:
        """The activation regions of EXACT boxes, one by one."""
        return () if self.answer.exact is None else Regions(self.question, self.answer.exact)

    def verdict_of(self, wanted: Property) -> Verdict:
        """The proved verdict on a property: robust needs every box; one violated box or theta suffices against it."""
        names = {Property.CR: (Label.CR,), Property.AR: (Label.AR,), Property.BOTH: (Label.CR, Label.AR)}[wanted]
        is_violated = any(len(self.violating[name]) for name in names)
        return Verdict.NOT_ROBUST if is_violated else verdict_of(self.answer, wanted)

    def box_at(self, theta: ArrayLike) -> int | None:
        """The box in which theta (d,) lies deepest; None outside of the domain."""
        where = np.asarray(theta, dtype=np.float64)
        compound = self.question.compound
        if not compound.domain.contains(where):
            return None
        point, d = compound.to_unit(where[None])[0], compound.domain.dimension
        depth = np.minimum(point - self.boxes.low, self.boxes.high - point)[:, :d].min(axis=1)
        return int(np.argmax(depth))

    def region_at(self, theta: ArrayLike) -> int | None:
        """The exact region that contains theta (d,), None if its box is not EXACT."""
        box = self.box_at(theta)
        return None if box is None or self.boxes.state[box] != State.EXACT else super().region_at(theta)

    def boundary(self, property: str | Property | None = None) -> Boundary:
        """The outermost boundary, as for a map; undecided boxes count as not kept."""
        wanted = self.question.property if property is None else Property.parse(property)
        if self.question.compound.domain.dimension > MAX_MAP_PARAMETERS:
            raise OptionError(
                f"the boundary takes up to {MAX_MAP_PARAMETERS} parameters, this result has "
                f"{self.question.compound.domain.dimension}; leave some out, or take --method boundary"
            )
        if not self.is_measured and wanted is not Property.CR:
            raise OptionError(
                f"the boundary of {wanted.value} needs the attention, which this result did not measure (--property "
                "cr); verify again with --property both, or ask for --property cr"
            )
        return find_boundary(self.question.compound, None, self.answer.joint, wanted)

    def claims(self, kind: Violation) -> Iterator[Claim]:
        """Claims of a kind, nearest to zero first: centres of boxes and pieces, and violations from the search."""
        if kind is not Violation.LABEL and not self.is_measured:
            return
        found: list[np.ndarray | Claim] = [*_box_thetas(self.answer, kind), *self._found_thetas(kind)]
        if self.answer.exact is not None:
            found += piece_claims(self.answer.exact, kind, self.agreement.scale)
        thetas = [one.theta if isinstance(one, Claim) else one for one in found]
        widths = self.question.perturbed.domain.widths
        # Measured one by one: usually the first one will do.
        for place in np.argsort([np.linalg.norm(theta / widths) for theta in thetas], kind="stable"):
            one = found[place]
            if not isinstance(one, Claim):  # no region is known there: the pattern is that of a plain forward pass
                measured = self._passes.measure(one[None], has_attention=self.is_measured)
                slack = float(measured.inconsistency_slack[0])
                one = Claim(one, None, float(measured.margin_slack[0]), partial(float, slack))
            yield one

    @cached_property
    def _passes(self) -> PointPasses:
        return PointPasses(self.question, self.original)

    def _found_thetas(self, kind: Violation) -> list[np.ndarray]:
        """The proved violations of a kind among `points`."""
        if kind is Violation.EVIDENCE:
            lost = {theta.tobytes() for theta in self.violating[Label.CR]}
            return [theta for theta in self.violating[Label.AR] if theta.tobytes() not in lost]
        return list(self.violating[Label.CR if kind is Violation.LABEL else Label.AR])

    def summary(self) -> dict[str, Any]:
        """The answer as plain data, timings apart: as for a map, with `boxes` by state and `guarantee_shares`.

        `until`, `goal` and `relaxation` say how the run was to end and which bounds it used; `measures` what it asked.
        """
        state = self.boxes.state
        more = {
            "guarantee_shares": dict(self.guarantee_shares),
            "boxes": {"all": len(state)} | {kind.name.lower(): int((state == kind).sum()) for kind in State},
            "until": self.until,
            "goal": self.goal,
            "relaxation": self.relaxation,
            "measures": ["label", "attention"] if self.is_measured else ["label"],
        }
        reached = float(self.boxes.volumes[state != State.OPEN].sum())
        return summarise_domain(self, visited_share=min(1.0, reached), guarantee=_guarantee(self), more=more)

    def save(self, directory: str | Path, *, force: bool = False) -> Path:
        """Store the result in a directory, atomically; an existing one is refused without `force`."""
        from .refine_files import save_refine  # noqa: PLC0415 (stores results)

        return save_refine(self, directory, force=force)


def _box_thetas(answer: MergedAnswer, kind: Violation) -> list[np.ndarray]:
    """The centres of the boxes that violate: those nearest to zero, then the deepest one; at most `TRIES`."""
    boxes, bounded = answer.boxes, answer.bounded
    label, attention = answer.label_codes[bounded], answer.attention_codes[bounded]
    chosen = {
        Violation.LABEL: label == Kept.NO,
        Violation.ATTENTION: attention == Kept.NO,
        Violation.EVIDENCE: (label == Kept.YES) & (attention == Kept.NO),
    }[kind]
    fails = bounded[chosen]
    if not len(fails):
        return []
    depth = -boxes.margin[fails, 1] if kind is Violation.LABEL else boxes.inconsistency[fails, 0]
    away = distances(answer.compound, boxes.low[fails], boxes.high[fails])[0]
    tried = np.append(fails[np.argsort(away, kind="stable")[: TRIES - 1]], fails[np.argmax(depth)])
    return list(answer.compound.to_theta(0.5 * (boxes.low[tried] + boxes.high[tried])))


def _guarantee(result: RefineResult) -> str:
    """The proofs behind the answer, and the undecided share, in a few sentences."""
    bounded, exact, undecided = result.guarantee_shares.values()
    parts = []
    if bounded > 0.0:
        parts.append(f"on {_percent_down(bounded)} of the domain by bounds over boxes that hold whatever the rounding")
    if exact > 0.0:
        parts.append(
            f"on {_percent_down(exact)} of the domain by regions, in float64 arithmetic with error bounds or in exact "
            "arithmetic"
        )
    proved = f"Proved for the real-valued network: {'; '.join(parts)}."
    sentences = [proved if parts else "Nothing is proved of any part of the domain."]
    by_shares = verdict_from(result.answer.shares, result.question.property)
    if result.verdict is Verdict.NOT_ROBUST and by_shares is not Verdict.NOT_ROBUST:
        sentences.append(SINGLE_THETAS)
    if result.is_measured and result.sliver_share > 0.0:
        sentences.append(kinks_text(result.sliver_share))
    why = f"; the run was ended ({result.stopped})" if result.stopped is not None else ""
    sentences.append(
        f"A share of {round_up(undecided, 2):g} is undecided{why}." if undecided > 0.0 else "Nothing is undecided."
    )
    if not result.is_measured:
        sentences.append("Attention was not measured.")
    return " ".join([*sentences, agreement_text(result.agreement)])


def _percent_down(share: float) -> str:
    """A share in percent, rounded down: never more than was proved, the rounding of sums of shares apart.

    >>> _percent_down(0.99999999), _percent_down(1.0 - 1e-16)
    ('99.999999 %', '100 %')
    """
    if share < 1e-4:
        return "less than 0.01 %"
    digits = 1e4 if share < 0.9999 else 1e8
    return f"{100.0 * math.floor(digits * min(share + SUMMED, 1.0)) / digits:.8g} %"
