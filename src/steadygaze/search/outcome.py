"""What a search returns: the regions visited with their labels, its counts, status and verdict. Data only."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..problem import Problem
from ..traversal import TraversedRegion
from ..verdict import Property, Status, Verdict

CLASSIFICATIONS, ATTENTIONS = ("CR", "MR", "CB"), ("AR", "IR", "AB")


class Holds(Enum):
    """Whether a property holds on a region: everywhere, nowhere, in part, or not known."""

    EVERYWHERE = "everywhere"
    NOWHERE = "nowhere"
    PARTLY = "partly"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class Visited:
    """One region with its labels.

    classification is CR, MR, CB, undecided, or "" where it was not asked for; attention AR, IR, AB likewise. margin
    encloses f_label − (largest other logit), inconsistency encloses ai, both over the region. `is_following` tells
    whether it was reached while following a boundary, `is_doubtful` that the pattern of the region is not certain, so
    that bounds for any pattern decide its attention.
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
        named = {"CR": 1, "AR": 1, "MR": -1, "IR": -1, "CB": 0, "AB": 0}
        asked = [self.classification] * (wanted is not Property.AR) + [self.attention] * (wanted is not Property.CR)
        codes = [named.get(label) for label in asked]
        if -1 in codes:
            return Holds.NOWHERE
        if None in codes:
            return Holds.UNKNOWN
        return Holds.PARTLY if 0 in codes else Holds.EVERYWHERE


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found.

    `stopped` says which limit ended it, `failures` counts regions and programs without an answer, `is_whole` tells that
    the visited regions are all there are, up to tolerances; `components` are those of the outermost boundary, where it
    was followed alone (None otherwise). `confirmation` is the verdict of a proof that covers every theta, asked for
    where the search `is_covering`; None where it was not.
    """

    problem: Problem
    method: str
    delta: float
    w_delta: float
    line: np.ndarray | None
    visited: list[Visited]
    face_checks: int
    lps: int
    failures: int
    sliver_share: float
    stopped: str | None
    seconds: float
    is_whole: bool
    components: Sequence["BoundaryPart"] | None = None
    confirmation: Verdict | None = None

    def __len__(self) -> int:
        return len(self.visited)

    @cached_property
    def visited_share(self) -> float:
        """The share of the domain that the visited regions cover."""
        return 1.0 if self.is_whole else min(1.0, float(sum(one.region.volume for one in self.visited)))

    @cached_property
    def sets(self) -> dict[str, int | None]:
        """Number of visited regions in CR, MR, CB, AR, IR and AB; None where the label was not asked for."""
        labels = [one.classification for one in self.visited], [one.attention for one in self.visited]
        counts: dict[str, int | None] = {}
        for names, found in zip((CLASSIFICATIONS, ATTENTIONS), labels, strict=True):
            is_asked = any(found)
            counts |= {name: found.count(name) if is_asked else None for name in names}
        return counts

    @cached_property
    def status(self) -> Status:
        """How the search ended, in the paper's meaning: Robust speaks of what was visited."""
        if self.stopped is not None:
            return Status.stopped_by(self.stopped)
        held = [one.holds(self.problem.property) for one in self.visited]
        if Holds.NOWHERE in held or Holds.PARTLY in held:
            return Status.NOT_ROBUST
        return Status.FAILED if self.failures or Holds.UNKNOWN in held else Status.ROBUST

    @property
    def is_covering(self) -> bool:
        """Whether the property holds on every visited region, and nothing but these was found in the domain."""
        return self.status is Status.ROBUST and self.is_whole

    @cached_property
    def verdict(self) -> Verdict:
        """What is proved over the whole domain.

        A visited region that violates is enough. Robust is said where all of the domain was visited and a proof that
        covers every theta agrees: regions are found up to tolerances, which are no proof.
        """
        held = [one.holds(self.problem.property) for one in self.visited]
        if Holds.NOWHERE in held or Holds.PARTLY in held:
            return Verdict.NOT_ROBUST
        return self.confirmation if self.is_covering and self.confirmation is not None else Verdict.UNDECIDED

    def summary(self) -> dict[str, Any]:
        """What was found as plain data: what `--json` prints and `result.json` stores, timings apart."""
        from .summary import summarise_search  # noqa: PLC0415 (a summary describes a result)

        return summarise_search(self)

    def save(self, directory: str | Path, *, force: bool = False) -> Path:
        """Store the search in a directory, atomically; an existing one is refused without `force`."""
        from .store import save_search  # noqa: PLC0415 (stores results)

        return save_search(self, directory, force=force)

    def plot(self, path: str | Path) -> list[Path]:
        """Draw the visited regions as PNG and SVG; from four parameters on there is no picture."""
        from ..report.figures.visited import draw_search  # noqa: PLC0415 (matplotlib is slow to import)

        return draw_search(self, path)

    def report(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the report: one HTML file that needs nothing else; an existing report is refused without `force`."""
        from ..report.page.html import write_report  # noqa: PLC0415 (matplotlib is slow to import)

        return write_report(self, path, force=force)


@dataclass(frozen=True, eq=False)
class BoundaryPart:
    """One component of the outermost boundary: keys of the regions along it, on the reachable and on the other side."""

    inner: frozenset[bytes]
    outer: frozenset[bytes]
