"""The result of a search: the visited regions with their labels, counts, status and verdict; as plain data and arrays.

The summary holds no timing and no path: the same question gives the same bytes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...labels import Label, Property, Status, Stop, Verdict
from ...perturbation import Domain
from ...question import Question
from ...results.arrays import SCHEMA_VERSION
from ...results.store import check_directory, current_versions, write_result
from ...results.summary import agreement_text
from ...tolerances import AREA, FEASIBILITY
from .traversal import TraversedRegion

CLASSIFICATIONS, ATTENTIONS = (
    ("", "undecided", Label.CR, Label.MR, Label.CB),
    ("", "undecided", Label.AR, Label.IR, Label.AB),
)
"""The labels in the order of their stored codes; "" if not asked for."""
ARITHMETIC = "for the real-valued network, by float64 arithmetic with error bounds or by exact arithmetic"


class Holds(Enum):
    """Whether a property holds on a region: everywhere, nowhere, in part, or not known."""

    EVERYWHERE = "everywhere"
    NOWHERE = "nowhere"
    PARTLY = "partly"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class Visited:
    """One region with its labels.

    classification is CR, MR, CB, undecided, or "" if not asked for; attention AR, IR, AB likewise. margin encloses
    f_label − (largest other logit), inconsistency encloses ai, both over the region. `is_following`: the search reached
    it while following a boundary. `is_doubtful`: its pattern is not certain, so bounds for any pattern decide its
    attention.
    """

    region: TraversedRegion
    classification: str
    attention: str
    margin: tuple[float, float]
    inconsistency: tuple[float, float]
    is_following: bool = False
    is_doubtful: bool = False

    def holds(self, wanted: Property) -> Holds:
        """Whether a property holds on this region."""
        asked = {self.classification if wanted is not Property.AR else Label.CR}
        asked |= {self.attention if wanted is not Property.CR else Label.AR}
        if asked & {Label.MR, Label.IR}:
            return Holds.NOWHERE
        if asked & {"", "undecided"}:
            return Holds.UNKNOWN
        return Holds.PARTLY if asked & {Label.CB, Label.AB} else Holds.EVERYWHERE


@dataclass(frozen=True, eq=False)
class BoundaryPart:
    """One component of the outermost boundary: keys of the regions along it, on the reachable and on the other side."""

    inner: frozenset[bytes]
    outer: frozenset[bytes]


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The result of a search, after a run or loaded.

    `line` is the theta where the search line ends (None without a line). `stopped` names the limit that ended the
    search, `failures` counts regions and programs without an answer, `is_whole` tells that the visited regions are all
    there are, up to tolerances. `components` are those of the outermost boundary (method boundary, else None).
    `confirmation` is the verdict of a proof that covers every theta, asked for if the search `is_covering`. `stored`
    holds the arrays of a loaded search.
    """

    question: Question
    method: str
    delta: float
    map_size: float
    w_delta: float
    line: np.ndarray | None
    visited: list[Visited]
    face_checks: int
    lps: int
    failures: int
    sliver_share: float
    stopped: Stop | None
    seconds: float
    is_whole: bool
    components: Sequence[BoundaryPart] | None = None
    confirmation: Verdict | None = None
    stored: dict[str, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.visited)

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
    def sets(self) -> dict[str, int | None]:
        """Number of visited regions in CR, MR, CB, AR, IR and AB; None if the label was not asked for."""
        kinds = ((CLASSIFICATIONS, self.classification), (ATTENTIONS, self.attention))
        return {name: found.count(name) if any(found) else None for names, found in kinds for name in names[2:]}

    @cached_property
    def status(self) -> Status:
        """How the search ended, in the paper's meaning: Robust speaks of the visited regions."""
        if self.stopped is not None:
            return Status.stopped_by(self.stopped)
        if self._is_violated:
            return Status.NOT_ROBUST
        return Status.FAILED if self.failures or Holds.UNKNOWN in self._held else Status.ROBUST

    @cached_property
    def _held(self) -> set[Holds]:
        return {one.holds(self.question.property) for one in self.visited}

    @property
    def _is_violated(self) -> bool:
        return not self._held.isdisjoint((Holds.NOWHERE, Holds.PARTLY))

    @property
    def is_covering(self) -> bool:
        """Whether the property holds on every visited region, and the search found no other region."""
        return self.status is Status.ROBUST and self.is_whole

    @cached_property
    def verdict(self) -> Verdict:
        """The proved answer for the whole domain.

        One visited region that violates is enough. Robust needs a search of all of the domain and a proof that covers
        every theta: the search finds regions up to tolerances, which are no proof.
        """
        if self._is_violated:
            return Verdict.NOT_ROBUST
        return self.confirmation if self.is_covering and self.confirmation is not None else Verdict.UNDECIDED

    def summary(self) -> dict[str, Any]:
        """The answer as plain data: what `--json` prints and `result.json` stores, timings apart."""
        return dict(self._summary)

    @cached_property
    def _summary(self) -> dict[str, Any]:
        question = self.question
        uses_width = self.method == "gbs" and question.property is not Property.CR
        components = None
        if self.components is not None and self.stopped is None:
            components = [{"inner": len(part.inner), "outer": len(part.outer)} for part in self.components]
        labels = {"classification": self.classification, "attention": self.attention}
        return {
            "schema_version": SCHEMA_VERSION,
            "method": self.method,
            "verdict": self.verdict.value,
            "status": self.status.value,
            "property": question.property.value,
            "label": question.label,
            "label_name": question.names[question.label],
            "sets": dict(self.sets),
            "undecided": {kind: found.count("undecided") if any(found) else None for kind, found in labels.items()},
            "visited": len(self),
            "visited_share": self.visited_share,
            "following": sum(one.is_following for one in self.visited),
            "face_checks": self.face_checks,
            "lps": self.lps,
            "failures": self.failures,
            "components": components,
            "confirmation": None if self.confirmation is None else self.confirmation.value,
            "delta": {"text": str(question.delta), "value": self.delta, "map_size": self.map_size},
            "w_delta": self.w_delta if uses_width else None,
            "line": None if self.line is None else self.line.tolist(),
            "sliver_share": self.sliver_share if question.perturbed.domain.dimension == 2 else None,
            "guarantee": guarantee(self),
            "complete": self.stopped is None,
            "stopped": self.stopped,
            **question.describe(),
        }

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The visited regions as `pack_search` stores them."""
        return pack_search(self) if self.stored is None else self.stored

    def save(self, directory: str | Path, *, force: bool = False) -> Path:
        """Store the search in a directory, all or nothing; an existing result is refused without `force`."""
        check_directory(directory, force=force)
        stored = self.question.stored(self.question.delta) | {"versions": current_versions()}
        seconds = {"total": self.seconds}
        return write_result(directory, self.summary(), stored, self.arrays, self.question, seconds, force=force)

    def plot(self, path: str | Path) -> list[Path]:
        """Draw the visited regions as PNG and SVG; from four parameters on there is no picture."""
        from ...report.figures.visited import draw_search  # noqa: PLC0415 (matplotlib is slow to import)

        return draw_search(self, path)

    def report(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the report: one HTML file that needs nothing else; an existing report is refused without `force`."""
        from ...report.page.html import write_report  # noqa: PLC0415 (matplotlib is slow to import)

        return write_report(self, path, force=force)


def guarantee(result: SearchResult) -> str:
    """The basis of the verdict, in sentences that say no more than was proved."""
    # Rounded down: never more than was visited.
    share = f"{math.floor(1e4 * min(result.visited_share, 1.0)) / 1e2:g}%"
    exceptions = (
        "except on kinks: strips along the borders of the regions, as wide as an error divided by a slope, whose share "
        "a search does not add up"
    )
    if result.question.perturbed.domain.dimension > 2:
        exceptions += f"; the borders are found by linear programs with a tolerance of {FEASIBILITY:g} of the domain"
    if result.is_covering:
        first = _covering(result, exceptions)
    elif result.verdict is Verdict.NOT_ROBUST:
        rest = "" if result.visited_share == 1.0 else f" ({share} of it); nothing is said about the rest"
        first = (
            f"Proved {ARITHMETIC}: the labels of the visited regions other than undecided, {exceptions}. The visited "
            f"regions cover {'part of ' if rest else ''}the domain{rest or ' up to tolerances'}."
        )
    elif result.status is Status.ROBUST:
        first = (
            f"Nothing is proved of the whole domain: the property holds on every visited region, {ARITHMETIC}, but "
            f"these cover {share} of it, and the rest was not looked at. The labels hold {exceptions}."
        )
    else:
        first = (
            f"Nothing is proved of the whole domain, of which {share} was visited; the labels of the visited regions "
            f"are proved {ARITHMETIC}, and those within the error bounds of a threshold are undecided. They hold "
            f"{exceptions}."
        )
    return f"{first} {agreement_text(result.question.agreement)}"


def _covering(result: SearchResult, exceptions: str) -> str:
    """The guarantee of a search that visited all of the domain, with what the proof for every theta adds."""
    visited = (
        f"The visited regions cover the domain up to tolerances: their volumes add up to it within {AREA:g}. On each "
        "of them the property holds"
    )
    if result.verdict is Verdict.ROBUST:
        return (
            f"{visited}. That it holds at every theta is proved by a refinement of the same question, {ARITHMETIC}; "
            "nothing is left out."
        )
    if result.verdict is Verdict.NOT_ROBUST:
        return f"{visited}; but a refinement of the same question proves a violation between them, {ARITHMETIC}."
    why = (
        "the refinement that would prove it for every theta left something undecided"
        if result.confirmation is not None
        else "no proof that covers every theta was asked for"
    )
    return f"{visited}, {ARITHMETIC}, {exceptions}. Nothing is proved of the whole domain: {why}."


def pack_search(result: SearchResult) -> dict[str, np.ndarray]:
    """The arrays of a search in `regions.npz`.

    halfspaces (F, d+1) in theta, unit inward normal n and offset c with n·θ + c ≥ 0; those of region r are
    starts[r]:starts[r+1]. inside (R, d) is a theta inside each region, volume (R,) its share of the domain, logits
    (R, d+1, K) slope in theta and constant. cell (R,), clip[clip_starts[r]:clip_starts[r+1]] and pattern (R, B) are
    the packed bits that tell a region from all others. classification and attention (R,): 0 not asked for, 1
    undecided, then 2, 3, 4 for CR, MR, CB or AR, IR, AB. margin and inconsistency (R, 2) are bounds over the region.
    component, component_region and component_is_inner (N,): the regions along each component of the boundary.
    """
    domain, visited = result.question.perturbed.domain, result.visited
    regions = [one.region for one in visited]
    d, count = domain.dimension, len(regions)
    program = result.question.compound.programs[0].program
    classes = int(program.offsets[-1] - program.offsets[-2])
    clips = [np.frombuffer(region.clip, dtype=np.uint8) for region in regions]
    patterns = [np.frombuffer(region.pattern, dtype=np.uint8) for region in regions]
    logits = np.array([region.logits for region in regions]).reshape(count, d + 1, classes)
    logits[:, :d] /= domain.widths[:, None]
    logits[:, d] -= (logits[:, :d] * domain.low[:, None]).sum(axis=1)
    inside = np.array([region.inside for region in regions]).reshape(count, d)
    place = {region.key: number for number, region in enumerate(regions)}
    along = sorted(
        (number, place[key], is_inner)
        for number, part in enumerate(result.components or ())
        for is_inner, keys in ((1, part.inner), (0, part.outer))
        for key in keys
        if key in place
    )
    component, component_region, is_inner = np.array(along, dtype=np.int64).reshape(-1, 3).T
    return {
        "halfspaces": _in_theta(np.concatenate([np.zeros((0, d + 1)), *(r.halfspaces for r in regions)]), domain),
        "starts": np.cumsum([0, *(len(region.halfspaces) for region in regions)], dtype=np.int64),
        "inside": domain.to_theta(inside),
        "volume": np.array([region.volume for region in regions], dtype=np.float64),
        "logits": logits,
        "cell": np.array([region.cell for region in regions], dtype=np.int64),
        "clip": np.concatenate([np.zeros(0, dtype=np.uint8), *clips]),
        "clip_starts": np.cumsum([0, *(len(clip) for clip in clips)], dtype=np.int64),
        "pattern": np.array(patterns, dtype=np.uint8).reshape(count, -1 if count else 0),
        "classification": np.array([CLASSIFICATIONS.index(one) for one in result.classification], dtype=np.int64),
        "attention": np.array([ATTENTIONS.index(one) for one in result.attention], dtype=np.int64),
        "margin": np.array([one.margin for one in visited], dtype=np.float64).reshape(count, 2),
        "inconsistency": np.array([one.inconsistency for one in visited], dtype=np.float64).reshape(count, 2),
        "is_following": np.array([one.is_following for one in visited], dtype=np.uint8),
        "is_doubtful": np.array([one.is_doubtful for one in visited], dtype=np.uint8),
        "component": component,
        "component_region": component_region,
        "component_is_inner": is_inner.astype(np.uint8),
    }


def _in_theta(rows: np.ndarray, domain: Domain) -> np.ndarray:
    """Half-spaces (F, d+1) of the unit cube in theta, with unit normals again."""
    normals = rows[:, :-1] / domain.widths
    offsets = rows[:, -1] - normals @ domain.low
    return np.column_stack([normals, offsets]) / np.linalg.norm(normals, axis=1)[:, None]
