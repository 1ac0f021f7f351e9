"""The contract of all engines: each says whether it accepts a question, and answers it within a budget.

Also defines the options of a run, and limits matrix products to one thread.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

from ..budget import Budget
from ..errors import OptionError

if TYPE_CHECKING:
    import numpy as np

    from ..question import Question
    from ..results.result import Result
    from ..results.tiling import Tiling

Until = float | Literal["exact"]
Goal = Literal["map", "verdict"]

UNTIL: Until = 0.001
"""The default share of the domain that a refinement may leave undecided."""

W_DELTA = 0.2
"""Regions within this distance of δ count as near the boundary, as in the paper's runs."""

W_SHARE = 0.02
"""`W_DELTA` for properties of attention whose losses are shares."""

AUTO, MAP, REFINE = "auto", "map", "refine"
"""The method "auto", and the two methods that it chooses from."""

MOST_REGIONS = 200_000
"""The method "auto" chooses the map if up to this many regions are expected: seconds to minutes."""

CORNER = "corner"
"""The search line that ends at the vertex of the domain farthest from zero."""


class Progress(NamedTuple):
    """Progress of a run: the share decided (None if unknown), regions found, boxes bounded, boxes still open."""

    share: float | None
    regions: int
    boxes: int | None = None
    open: int = 0


ProgressReport = Callable[[Progress], None]


class RunWords(TypedDict, total=False):
    """The options of a run as keyword arguments."""

    until: Until | None
    goal: Goal | None
    resume: "str | Path | Result | None"
    w_delta: float | None
    line: "str | Sequence[float] | np.ndarray | None"
    threads: int | None


@dataclass(frozen=True)
class RunOptions:
    """The options of a run; None means that an option was not given.

    until, goal and resume are for refinements: when to end, and the earlier refinement (or its directory) to continue.
    w_delta and line are for searches: how closely to follow the boundary, and where the line from zero ends.
    """

    until: Until | None = None
    goal: Goal | None = None
    resume: "str | Path | Result | None" = None
    w_delta: float | None = None
    line: "str | Sequence[float] | np.ndarray | None" = None
    threads: int | None = None

    def __post_init__(self) -> None:
        until, threads = self.until, self.threads
        if until not in (None, "exact") and not (isinstance(until, int | float) and 0.0 <= until < 1.0):
            raise OptionError(f"until is {until!r}; expected a share such as 0.001, or exact")
        if self.goal not in (None, "map", "verdict"):
            raise OptionError(f"goal is {self.goal!r}; expected map or verdict")
        if self.w_delta is not None and not 0.0 <= self.w_delta < float("inf"):
            raise OptionError(f"w-delta is {self.w_delta}; expected a number of at least 0")
        if threads is not None and threads < 1:
            raise OptionError(f"threads is {threads}; expected a whole number above 0")

    @property
    def given(self) -> list[str]:
        """The names of the given options."""
        return [name for name in self.__dataclass_fields__ if getattr(self, name) is not None]


WHY = {
    "until": "only a refinement can stop before everything is decided, and resume later",
    "goal": "only a refinement can stop before everything is decided, and resume later",
    "resume": "only a refinement can stop before everything is decided, and resume later",
    "threads": "a search runs in one thread",
    "w_delta": "it sets how closely gbs follows the boundary",
    "line": "it sets where gbs and boundary start to search",
}
"""Why only some methods take an option."""


def refuse_curved(question: "Question", method: str) -> str:
    """Why a method that needs regions refuses an image that is not piecewise affine in theta."""
    return (
        f"--method {method} needs an image that is piecewise affine in theta; {question.perturbed.why_curved}; "
        "use --method refine"
    )


def changing_maps(question: "Question", *, is_search: bool = False) -> str | None:
    """A clause that says which maps change within a region, where only bounds can prove attention; None if none do.

    If maps contain the image, a map can still label regions with straight borders; a search cannot.
    """
    is_known = not question.maps_change_in_regions if is_search else question.measures_regions
    if is_known or not question.property.asks_attention:
        return None
    if question.attention.method.changes_in_regions:
        return f"maps of {question.attention.method.name} change within a region"
    return "expected maps that move along two axes change within a region"


def refuse_changing_maps(question: "Question", *, is_search: bool = False) -> str | None:
    """Why an engine that labels regions refuses a question about attention; None if it accepts it."""
    changing = changing_maps(question, is_search=is_search)
    if changing is None:
        return None
    if question.measures_regions:
        return f"{changing}, so searches cannot label regions; use --method map or refine, or --property cr"
    where = f"{changing}{_without_borders(question)}"
    return f"{where}, so only bounds can prove attention; use --method refine, or --property cr"


def _without_borders(question: "Question") -> str:
    """What a map knows no borders for, if it knows them for another property, distance or filter; otherwise empty."""
    attention = question.attention
    method, measure = attention.method, attention.measure
    if method.changes_in_regions and method.factor_baseline is None:
        return ""
    is_distance = measure.norm is None
    what = f"distance {attention.distance.name}" if is_distance else measure.name
    if measure.takes_polynomials(attention.distance):
        is_filter = measure.polynomials_move or question.perturbed.moving_axis is None
        what = f"filter {attention.filter.name}" if is_filter else f"{what} on an object that moves"
    return f", and a map has no borders for {what} there"


class Engine(ABC):
    """One way to answer questions. method: its name; takes: the options of a run that it accepts.

    gives_shares: whether its results bound the shares of all labels, for requirements. sentence: describes the method.
    """

    method: str
    sentence: str
    takes: frozenset[str] = frozenset()
    gives_shares: bool = True

    def why_not(self, question: "Question") -> str | None:
        """Why the engine refuses a question, and what to do instead; None if it accepts the question."""
        return None

    @abstractmethod
    def run(
        self, question: "Question", budget: Budget, options: RunOptions, progress: ProgressReport | None = None
    ) -> "Result":
        """Answer a question within a budget; the result is partial if the budget ends first."""

    @abstractmethod
    def restore(self, content: dict[str, Any], folder: Path, question: "Question") -> "Tiling[Any]":
        """Restore the tiling from a directory and the content of its `result.json`; StoreError if it is damaged."""
