"""The tiling of a search: the visited regions with their labels, as arrays and as rows of an export.

A loaded search (`restore_tiling`) can be shown, drawn and exported, but not continued: its regions lack the neuron
behind each facet.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...boundary import Boundary
from ...budget import Budget
from ...compound import Compound
from ...errors import OptionError
from ...labels import Kept, Label, Property, Status, Stop, Verdict
from ...properties.joint import JointPieces, Shares
from ...properties.nearest import Nearest
from ...question import Question
from ...results.claims import Claim, Doubts, Sample, Violation, Visible, chosen_sizes
from ...results.delta_answer import DeltaAnswer
from ...results.export import Part
from ...results.label_counts import COLUMNS, ROWS
from ...results.result import Result
from ...results.summary import ties_sentences
from ...results.tiling import TileLabels, Tiling
from ...tolerances import AREA, FEASIBILITY
from ...words import percent_down, percent_up, rounded
from .search_arrays import pack_search, visited_part
from .visited import ATTENTIONS, CLASSIFICATIONS, BoundaryPart, Holds, Visited
from .visited_shares import unknown_shares, visited_ties

ARITHMETIC = "for the real-valued network, by float64 arithmetic with error bounds or by exact arithmetic"


@dataclass(frozen=True, eq=False)
class VisitedAnswer(DeltaAnswer):
    """The answer of a search, for the δ of its run."""

    exact = None

    tiling: "SearchTiling"
    delta: float

    @property
    def compound(self) -> Compound:
        return self.tiling.question.compound

    @cached_property
    def shares(self) -> Shares:
        """Shares by the volumes of visited regions (`visited_shares`); a proof for every theta settles the rest."""
        found, wanted = self.tiling.shares, self.tiling.question.property
        if self.verdict(wanted) is not Verdict.ROBUST:
            return found
        cells = np.array(found.cells)
        if wanted.asks_label:
            cells = np.stack([cells.sum(axis=0), np.zeros(3), np.zeros(3)])
        if wanted.asks_attention:
            cells = np.stack([cells.sum(axis=1), np.zeros(3), np.zeros(3)], axis=1)
        slivers = 0.0 if wanted.asks_attention else found.slivers
        return Shares(tuple(tuple(row) for row in cells.tolist()), slivers)  # type: ignore[arg-type]

    @property
    def areas(self) -> dict[str, tuple[float, float]]:
        """Bounds on all shares; "undecided" is the share where the question's property is undecided."""
        is_label_alone = self.tiling.question.property is Property.CR
        undecided = min(1.0, float(sum(self.shares.cells[Kept.UNKNOWN]))) if is_label_alone else self.shares.undecided
        return self.shares.named() | {Label.UNDECIDED: (undecided, undecided)}

    @property
    def sliver_share(self) -> float | None:
        return self.shares.slivers if self.shares.slivers < 1.0 else None

    @property
    def coverage(self) -> float:
        return self.tiling.visited_share

    @cached_property
    def sets(self) -> dict[str, int | None]:
        kinds = ((CLASSIFICATIONS, self.tiling.classification), (ATTENTIONS, self.tiling.attention))
        return {name: found.count(name) if any(found) else None for names, found in kinds for name in names[2:]}

    def count(self, classification: Label, attention: Label) -> int:
        return sum((one.classification, one.attention) == (classification, attention) for one in self.tiling.visited)

    @property
    def undecided_counts(self) -> dict[str, int | None]:
        labels = {"classification": self.tiling.classification, "attention": self.tiling.attention}
        return {kind: found.count(Label.UNDECIDED) if any(found) else None for kind, found in labels.items()}

    def verdict(self, wanted: Property) -> Verdict:
        """The proved verdict on the property of the question, over the whole domain.

        One violating region is enough for "not robust". "Robust" needs a search of the whole domain and a proof that
        covers every theta: a search finds regions only up to tolerances, which prove nothing.
        """
        tiling = self.tiling
        if any(one.holds(wanted) in (Holds.NOWHERE, Holds.PARTLY) for one in tiling.visited):
            return Verdict.NOT_ROBUST
        is_asked = wanted is tiling.question.property
        if is_asked and tiling.is_covering and tiling.confirmation is not None:
            return tiling.confirmation
        return Verdict.UNDECIDED

    @property
    def witnesses(self) -> np.ndarray:
        """None: a search labels only whole regions."""
        return np.zeros((0, self.compound.domain.dimension))

    @property
    def nearest(self) -> dict[str, Nearest]:
        """Unknown: regions nearer to zero may not have been visited."""
        return {name: Nearest(0.0, math.inf, None, None) for name in (Label.CR, Label.AR)}

    @property
    def joint(self) -> JointPieces:
        """Refused: visited regions are not split into pieces."""
        raise OptionError(_no_pieces(self.tiling.method))

    @property
    def inconsistencies(self) -> np.ndarray:
        raise OptionError(_no_pieces(self.tiling.method))

    @property
    def reach(self) -> np.ndarray:
        return np.array([one.inconsistency for one in self.tiling.visited]).reshape(-1, 2)

    def margin_bounds_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        return np.array([one.margin for one in self.tiling.visited]).reshape(-1, 2)[region]

    def inconsistency_bounds_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        return self.reach[region]


def _no_pieces(method: str) -> str:
    return (
        f"a search ({method}) labels whole regions and has no pieces; use --method map or refine for boundaries, "
        "pieces and maps of labels"
    )


@dataclass(frozen=True, eq=False)
class SearchTiling(Tiling[VisitedAnswer]):
    """The visited regions of a search, after a run or loaded.

    `line` is the theta where the search line ends (None without a line). `stopped` is the limit that ended the search,
    `failures` counts lost regions and linear programs without an answer. `shares` are proved by the regions.
    `is_whole`: the visited regions are all regions, up to tolerances. `components`: the components of the outermost
    boundary (None unless the method is boundary). `confirmation` is the verdict of a proof that covers every theta,
    made if the search `is_covering`. `stored` holds the arrays of a loaded search.
    """

    kind = "search"
    answers_any_delta = False
    answers = boxes = None

    question: Question
    method: str
    w_delta: float
    line: np.ndarray | None
    visited: list[Visited]
    face_checks: int
    lps: int
    failures: int
    shares: Shares
    stopped: Stop | None
    is_whole: bool
    components: Sequence[BoundaryPart] | None = None
    confirmation: Verdict | None = None
    stored: dict[str, np.ndarray] | None = None

    @cached_property
    def own_answer(self) -> VisitedAnswer:
        """The answer for the δ of the search."""
        return VisitedAnswer(self, self.question.own_limit)

    def answer(self, delta: float) -> VisitedAnswer:
        """The answer for the δ of the search; OptionError for any other."""
        if delta != self.own_answer.delta:
            raise OptionError(
                f"a search ({self.method}) answers only for δ = {self.question.threshold}; use --method map or refine "
                "for other values"
            )
        return self.own_answer

    @property
    def region_count(self) -> int:
        return len(self.visited)

    @property
    def is_measured(self) -> bool:
        return any(self.attention) or self.question.property.asks_attention

    @property
    def enough_delta(self) -> float | None:
        """None: a search answers only for its own δ."""
        return None

    def _find_ties(self, budget: Budget | None) -> tuple[float, float] | None:
        if not self.is_measured:
            return None
        return visited_ties(self.question, self.visited, self.shares.slivers, budget)

    @cached_property
    def classification(self) -> list[str]:
        """CR, MR, CB, undecided, or "" of every visited region."""
        return [one.classification for one in self.visited]

    @cached_property
    def attention(self) -> list[str]:
        """AR, IR, AB, undecided, or "" of every visited region."""
        return [one.attention for one in self.visited]

    @cached_property
    def visited_share(self) -> float:
        """The share of the domain that the visited regions cover."""
        return 1.0 if self.is_whole else min(1.0, float(sum(one.region.volume for one in self.visited)))

    @cached_property
    def search_status(self) -> Status:
        """How the search ended, in the paper's sense: Robust describes the visited regions."""
        if self.stopped is not None:
            return Status.stopped_by(self.stopped)
        held = {one.holds(self.question.property) for one in self.visited}
        if held & {Holds.NOWHERE, Holds.PARTLY}:
            return Status.NOT_ROBUST
        return Status.FAILED if self.failures or Holds.UNKNOWN in held else Status.ROBUST

    def status(self, answer: VisitedAnswer, verdict: Verdict) -> Status:
        return self.search_status

    @property
    def is_covering(self) -> bool:
        """Whether the property holds on every visited region, and no region was left unvisited."""
        return self.search_status is Status.ROBUST and self.is_whole

    def regions(self, answer: VisitedAnswer) -> Sequence[Any]:
        """The visited regions, each with its half-spaces, labels and ranges."""
        return self.visited

    def region_at(self, theta: ArrayLike) -> int | None:
        """None: a search does not locate single thetas."""
        return None

    def boundary(self, answer: VisitedAnswer, wanted: Property) -> Boundary:
        """Refused: `components` holds the boundary that a search followed."""
        raise OptionError(_no_pieces(self.method))

    def claims(self, answer: VisitedAnswer, kind: Violation, visible: Visible) -> Iterable[Claim]:
        """None: the violations of a search are whole regions."""
        return ()

    def samples(self, answer: VisitedAnswer, count: int) -> Iterator[Sample]:
        """Points inside the deepest regions, and inside some others."""
        # Sorted by the distance of the inner point from the facets: volumes are expensive from three parameters on.
        sizes = [(one.region.halfspaces @ np.append(one.region.inside, 1.0)).min() for one in self.visited]
        for number in chosen_sizes(np.array(sizes), count):
            one = self.visited[int(number)]
            theta = self.question.compound.domain.to_theta(one.region.inside[None])[0]
            attention = Kept.UNKNOWN if one.is_doubtful else Kept.of_label(one.attention)
            # The claimed range of the margin includes its error.
            claim = Claim(theta, None, 0.0, partial(float, 0.0))
            yield Sample(claim, Kept.of_label(one.classification), attention, int(number))

    def without(self, doubts: Doubts) -> "SearchTiling":
        """The same regions, with doubtful labels undecided; the shares become unknown."""
        visited = list(self.visited)
        for number in doubts.label:
            visited[number] = replace(visited[number], classification=Label.UNDECIDED, margin=(-np.inf, np.inf))
        for number in doubts.attention:
            visited[number] = replace(visited[number], attention=Label.UNDECIDED, inconsistency=(0.0, np.inf))
        return replace(self, visited=visited, shares=unknown_shares())

    def facts(self, answer: VisitedAnswer) -> dict[str, Any]:
        components = None
        if self.components is not None and self.stopped is None:
            components = [{"inner": len(part.inner), "outer": len(part.outer)} for part in self.components]
        return {
            "following": sum(one.is_following for one in self.visited),
            "face_checks": self.face_checks,
            "lps": self.lps,
            "failures": self.failures,
            "components": components,
            "confirmation": None if self.confirmation is None else self.confirmation.value,
            "w_delta": self.w_delta if self._uses_width else None,
            "line": None if self.line is None else self.line.tolist(),
        }

    @property
    def _uses_width(self) -> bool:
        return self.method == "gbs" and self.question.property.asks_attention

    def words(self) -> list[str]:
        words, domain = ["--w-delta", repr(self.w_delta)] if self._uses_width else [], self.question.perturbed.domain
        if self.line is not None:
            # The line was scaled to t and back, which may round its end out of the domain.
            end = np.clip(self.line, domain.low, domain.high)
            words.append(f"--line={','.join(repr(float(value)) for value in end)}")
        return words

    def tiles(self, answer: VisitedAnswer) -> TileLabels:
        classification = [(*ROWS, "").index(label) for label in self.classification]
        attention = [(*COLUMNS, "").index(label) for label in self.attention]
        return TileLabels(np.array(classification, np.int64), np.array(attention, np.int64), self.arrays()["volume"])

    @property
    def tile_patterns(self) -> np.ndarray:
        rows = self.arrays()["pattern"]
        pattern = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1) if self.visited else np.zeros(0)
        return pattern.astype(np.int64)

    def parts(self, answer: VisitedAnswer, what: str) -> tuple[Part, ...]:
        if what != "regions":
            raise OptionError(
                f"a search ({self.method}) labels whole regions and has no {what}; leave --what out, or verify with "
                "--method map"
            )
        return (visited_part(self.arrays(), self.question.label, answer.delta),)

    def arrays(self) -> dict[str, np.ndarray]:
        return self._packed

    @cached_property
    def _packed(self) -> dict[str, np.ndarray]:
        if self.stored is not None:
            return self.stored
        return pack_search(self.question, self.visited, self.components or (), self.shares)

    def guarantee(self, result: Result) -> str:
        return " ".join([_basis(self, result.verdict), *ties_sentences(result.tie_share), result.agreement.sentence])


def _basis(tiling: SearchTiling, verdict: Verdict) -> str:
    share = percent_down(min(tiling.visited_share, 1.0))
    kinks = tiling.shares.slivers
    size = f"at most {percent_up(kinks)} of the domain" if kinks < 1.0 else "whose share is unknown"
    exceptions = (
        f"except on kinks, {size}: strips along the borders of the regions, as wide as an error divided by a slope"
    )
    if tiling.question.perturbed.domain.dimension > 3:
        exceptions += (
            f"; the borders are found by linear programs with a tolerance of {rounded(FEASIBILITY, 2)} of the domain"
        )
    if tiling.is_covering:
        first = _covering(tiling, verdict, exceptions)
    elif verdict is Verdict.NOT_ROBUST:
        rest = "" if tiling.visited_share == 1.0 else f" ({share} of it); nothing is known about the rest"
        first = (
            f"Proved {ARITHMETIC}: the decided labels of the visited regions, {exceptions}. The visited regions cover "
            f"{'part of ' if rest else ''}the domain{rest or ' up to tolerances'}."
        )
    elif tiling.search_status is Status.ROBUST:
        first = (
            f"The property holds on every visited region, {ARITHMETIC}. These regions cover {share} of the domain; "
            f"the search proves nothing about the rest. The labels hold {exceptions}."
        )
    else:
        first = (
            f"The search visited {share} of the domain and proves nothing about the rest. The decided labels of the "
            f"visited regions are proved {ARITHMETIC}, {exceptions}. Regions too close to a threshold are undecided."
        )
    return first


def _covering(tiling: SearchTiling, verdict: Verdict, exceptions: str) -> str:
    """The guarantee of a search that visited the whole domain, with the outcome of the proof for every theta."""
    visited = (
        f"The visited regions cover the domain up to tolerances: their volumes add up to it within {rounded(AREA, 2)}. "
        "The property holds on each of them"
    )
    if verdict is Verdict.ROBUST:
        return (
            f"{visited}. A refinement of the same question proves it for every theta, {ARITHMETIC}; nothing is left "
            "out."
        )
    if verdict is Verdict.NOT_ROBUST:
        return f"{visited}; but a refinement of the same question proves a violation between them, {ARITHMETIC}."
    why = (
        "the refinement that should prove it for every theta left a part undecided"
        if tiling.confirmation is not None
        else "no proof for every theta was requested"
    )
    return f"{visited}, {ARITHMETIC}, {exceptions}. Nothing is proved about the whole domain: {why}."
