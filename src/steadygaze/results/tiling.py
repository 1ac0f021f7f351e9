"""The output of an engine: units with a shape (regions, boxes, visited regions) that cover the domain or part of it.

A tiling answers for the thresholds it supports, packs itself into arrays, and describes the proofs of its labels.
Everything downstream uses a `Tiling`, whatever engine made it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..accuracy import Accuracy
from ..boundary import Boundary
from ..budget import Budget
from ..labels import Kept, Property, Status, Stop, Verdict
from ..properties.joint import Shares
from ..properties.pattern_points import has_windows
from ..question import Question
from ..regions.region import RegionSet
from .answer import Answer, Answers
from .array_file import write_arrays
from .claims import Claim, Doubts, Sample, Violation, Visible
from .delta_answer import DeltaAnswer
from .export import Part
from .label_counts import ROWS

if TYPE_CHECKING:
    from .result import Result

MAP = "regions.npz"
"""The file of the units in the directory of a result."""


NOT_ASKED = len(ROWS)
"""The number of a label that was not asked for."""


@dataclass(frozen=True, eq=False)
class TileLabels:
    """T units: the numbers (T,) of both labels in `ROWS` and `COLUMNS`, NOT_ASKED beyond them, and shares (T,)."""

    classification: np.ndarray
    attention: np.ndarray
    shares: np.ndarray

    @property
    def has_labels(self) -> tuple[bool, bool]:
        """Whether any unit has a classification, and an attention label."""
        return bool((self.classification != NOT_ASKED).any()), bool((self.attention != NOT_ASKED).any())

    @classmethod
    def join(cls, parts: "Sequence[TileLabels]") -> "TileLabels":
        """The units of several parts, in order."""
        return cls(*(np.concatenate([getattr(part, own.name) for part in parts]) for own in fields(cls)))


def region_tiles(answer: Answer) -> TileLabels:
    """The labels of the regions of an answer."""
    volumes, is_measured = answer.answers.regions.polytopes.volumes, answer.answers.curves is not None
    attention = answer.attention_numbers if is_measured else np.full(len(volumes), NOT_ASKED)
    return TileLabels(answer.classification_numbers.astype(np.uint8), attention.astype(np.uint8), volumes)


AnswerT = TypeVar("AnswerT", bound=DeltaAnswer)


class Tiling(ABC, Generic[AnswerT]):
    """The units of one question, which give answers of one type. Immutable.

    kind: "map", "refinement" or "search". method: the engine that made it. stopped: the limit that ended the run, None
    for none. answers: the regions found one by one, ready for any δ, and boxes: the boxes of a refinement; None if
    there are none. answers_any_delta: whether `answer` accepts thresholds other than that of the question.
    """

    kind: str
    answers_any_delta: bool = True

    question: Question
    method: str
    stopped: Stop | None
    answers: Answers | None
    boxes: Any

    @abstractmethod
    def answer(self, delta: float) -> AnswerT:
        """The answer for an absolute δ."""

    @property
    def is_search(self) -> bool:
        """Whether the units are regions visited one by one; the others cover the whole domain."""
        return self.kind == "search"

    @property
    def exact_regions(self) -> RegionSet | None:
        """The regions found one by one, as a map holds them; None if there are none."""
        return None if self.answers is None else self.answers.regions

    @property
    def region_count(self) -> int:
        """The number of regions found one by one."""
        return 0 if self.exact_regions is None else len(self.exact_regions)

    @property
    def is_measured(self) -> bool:
        """Whether attention was measured."""
        return True

    @property
    def tie_share(self) -> tuple[float, float] | None:
        """Bounds of the share of the domain whose maps depend on the rule for ties of windows; see `ties_within`."""
        return self.ties_within(None)

    def ties_within(self, budget: Budget | None) -> tuple[float, float] | None:
        """`tie_share`, computed once; regions that are left when the budget ends count as unknown.

        None for networks without windows, and if attention was not measured.
        """
        if "ties" not in self.__dict__:
            self.__dict__["ties"] = self._find_ties(budget) if has_windows(self.question.compound.graph) else None
        found: tuple[float, float] | None = self.__dict__["ties"]
        return found

    def _find_ties(self, budget: Budget | None) -> tuple[float, float] | None:
        return None

    @cached_property
    def kept_shares(self) -> dict[str, tuple[float, float]]:
        """The share of AR at the thresholds that the measure marks: 10, 25, 50 and 100 % for distances."""
        found = self.shares_at(list(self.question.marks.values()))
        return {name: own.bounds(None, Kept.YES) for name, own in zip(self.question.marks, found, strict=True)}

    @property
    def knows_other_deltas(self) -> bool:
        """Whether `kept_shares` costs nothing any more."""
        return "kept_shares" in self.__dict__

    def shares_at(self, deltas: Sequence[float]) -> list[Shares]:
        """The shares for several δ."""
        return [self.answer(delta).shares for delta in deltas]

    def coarse_shares_at(self, deltas: np.ndarray) -> list[Shares]:
        """The shares for many δ (N,), ascending, where more than needed may stay undecided."""
        return self.shares_at(deltas.tolist())

    @property
    @abstractmethod
    def enough_delta(self) -> float | None:
        """The smallest δ known to make the whole domain AR, kinks aside, rounded up; None if unknown."""

    def status(self, answer: AnswerT, verdict: Verdict) -> Status:
        """How the run ended, in the paper's words: a limit comes first, whatever was proved before."""
        if self.stopped is not None:
            return Status.stopped_by(self.stopped)
        found = {Verdict.ROBUST: Status.ROBUST, Verdict.NOT_ROBUST: Status.NOT_ROBUST}
        return found.get(verdict, Status.UNDECIDED)

    @abstractmethod
    def regions(self, answer: AnswerT) -> Sequence[Any]:
        """The regions, one by one, with the labels of an answer."""

    @abstractmethod
    def region_at(self, theta: ArrayLike) -> int | None:
        """The number of the exact region that contains theta (d,); None if there is none."""

    @abstractmethod
    def boundary(self, answer: AnswerT, wanted: Property) -> Boundary:
        """The outermost boundary of a property; OptionError if these units do not give one."""

    @abstractmethod
    def claims(self, answer: AnswerT, kind: Violation, visible: Visible) -> Iterable[Claim]:
        """Thetas where a violation is claimed, in the order in which to try them as witnesses."""

    def samples(self, answer: AnswerT, count: int) -> Iterable[Sample]:
        """About `count` thetas inside units, with the labels claimed there."""
        return ()

    def without(self, doubts: Doubts) -> "Tiling[AnswerT]":
        """The same units, but those in doubt are undecided."""
        raise NotImplementedError(f"{self.method}: its samples are compared where they are made")

    @abstractmethod
    def guarantee(self, result: "Result") -> str:
        """The proofs behind an answer, and the undecided share, in a few sentences."""

    def facts(self, answer: AnswerT) -> dict[str, Any]:
        """The fields of the summary that only this kind of tiling has."""
        return {}

    def words(self) -> list[str]:
        """The options of the command line, beside --method, that repeat the run."""
        return []

    @abstractmethod
    def tiles(self, answer: AnswerT) -> TileLabels:
        """The labels of all units."""

    @property
    @abstractmethod
    def tile_patterns(self) -> np.ndarray:
        """The number (T,) of the pattern of every unit, −1 for a box."""

    @abstractmethod
    def parts(self, answer: AnswerT, what: str) -> tuple[Part, ...]:
        """The rows of an export: "regions" (all units) or "pieces" (their parts with a single label)."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """The units as named arrays, for `regions.npz`."""

    def write(self, folder: Path) -> None:
        """Write the units into a folder: `regions.npz`, and files beside it if they do not fit into memory."""
        write_arrays(folder / MAP, self.arrays())

    def pattern(self, region: int) -> np.ndarray | None:
        """The packed pattern (bytes,) of a region found one by one; None if there are none."""
        found = self.exact_regions
        return None if found is None else found.patterns[found.pattern[region]]

    @property
    def numbers(self) -> Mapping[str, Any] | None:
        """The numbers stored for exact regions beside their arrays."""
        regions = self.exact_regions
        if regions is None:
            return None
        return self.accuracy_numbers(regions.accuracy) | {"stopped": regions.stopped}

    @staticmethod
    def accuracy_numbers(accuracy: Accuracy) -> dict[str, Any]:
        """The single numbers among the measures of exact regions."""
        return {
            "pixels_missed": float(accuracy.pixels_missed),
            "sliver_area": float(accuracy.slivers),
            "depth": int(accuracy.depth),
            "skipped": int(accuracy.skipped),
            "gap": float(accuracy.gap),
            "holes": float(accuracy.holes),
        }
