"""The engines bfs, gbs and boundary: run a search, confirm *robust* by a refinement, and restore stored searches."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...budget import Budget
from ...errors import StoreError
from ...labels import Status, Stop, Verdict
from ...question import Question
from ...results.array_file import read_arrays
from ...results.arrays import SCHEMA_VERSION
from ...results.result import Result
from ...results.sample_check import confirmed
from ...results.store import MAP
from ...tolerances import MAX_SEARCH_PARAMETERS
from ..contract import Engine, Progress, ProgressReport, RunOptions, refuse_changing_maps, refuse_curved
from ..refine.refine_engine import RefineEngine
from .paper_searches import search
from .search_arrays import SHAPES, Arrays, checked_arrays, pack_shares, read_components, read_regions, read_shares
from .search_tiling import SearchTiling
from .visited import ATTENTIONS, CLASSIFICATIONS, Visited
from .visited_shares import unknown_shares

MOST_CONFIRMING = 200_000
"""The most boxes to bound when confirming that a search covers the domain."""


@dataclass(frozen=True)
class SearchEngine(Engine):
    """Visits regions one by one, for up to four parameters.

    `status` describes the visited regions, `verdict` the whole domain: it is robust only if the whole domain was
    visited and a refinement, which covers every theta, confirms it.
    """

    method: str
    sentence: str
    takes: frozenset[str]
    gives_shares: bool = False

    def why_not(self, question: Question) -> str | None:
        """Searches need regions and few parameters; those along a line also need zero in the domain."""
        if question.perturbed.is_curved:
            return refuse_curved(question, self.method)
        refusal = refuse_changing_maps(question, is_search=True)
        if refusal is not None:
            return refusal
        domain = question.perturbed.domain
        if domain.dimension > MAX_SEARCH_PARAMETERS:
            return (
                f"searches take up to {MAX_SEARCH_PARAMETERS} parameters, but the perturbations have "
                f"{domain.dimension}; leave some out, or use --method refine"
            )
        if "line" not in self.takes or domain.contains_zero:
            return None
        return (
            f"the domain from {domain.low.tolist()} to {domain.high.tolist()} does not contain zero, the unperturbed "
            "image, where the search starts; widen the ranges, or use --method map or bfs"
        )

    def run(
        self, question: Question, budget: Budget, options: RunOptions, progress: ProgressReport | None = None
    ) -> Result:
        """Search; if the visited regions keep the property and cover the domain, confirm it by a refinement."""

        def advance(visited: int) -> None:
            if progress is not None:
                progress(Progress(None, visited))

        with budget.clock.phase("walk"):
            tiling = search(question, self.method, budget, options, advance)
        if tiling.is_covering:
            with budget.clock.phase("self-check"):
                tiling = replace(tiling, confirmation=_confirm(question, budget))
        return Result.of_run(question, tiling, budget)

    def restore(self, content: dict[str, Any], folder: Path, question: Question) -> SearchTiling:
        return restore_tiling(content, folder, question)


def _confirm(question: Question, budget: Budget) -> Verdict:
    """Decide a question by a refinement, with the remaining time and its own limit for boxes."""
    own = Budget(budget.limits, started=budget.started)

    def advance(done: Progress) -> None:
        if budget.cancelled.is_set() or (done.boxes or 0) > MOST_CONFIRMING:
            own.cancelled.set()

    return confirmed(RefineEngine().run(question, own, RunOptions(until=0.0, threads=1), advance)).verdict


SEARCHES = (
    SearchEngine("bfs", "A search through all regions, neighbour by neighbour (bfs).", frozenset(), gives_shares=True),
    SearchEngine(
        "gbs",
        "A search along a line from the unperturbed image, then along the boundary that it met (gbs), as in the paper. "
        "It visits part of the domain.",
        frozenset(("w_delta", "line")),
    ),
    SearchEngine(
        "boundary",
        "A search along the outermost boundary alone (boundary). It visits part of the domain.",
        frozenset(("line",)),
    ),
)


def restore_tiling(content: dict[str, Any], folder: Path, question: Question) -> SearchTiling:
    """Restore the search stored in a directory; StoreError if its arrays do not fit each other and the answer."""
    arrays = read_search_arrays(folder / MAP)
    try:
        arrays = checked_arrays(arrays, content, question)
    except StoreError as error:
        raise StoreError(f"{folder / MAP}: {error}") from None
    found = _rebuild(content, arrays, question)
    verdict = found.own_answer.verdict(question.property)
    told = content["verdict"]
    if content["schema_version"] < SCHEMA_VERSION and told == Verdict.ROBUST.value:
        told = Verdict.UNDECIDED.value  # earlier versions treated the visited regions as a proof
    if (verdict.value, found.search_status.value) != (told, content["status"]):
        raise StoreError(f"{folder}: its regions contradict its verdict; the result is damaged: run the search again")
    return found


def read_search_arrays(path: Path) -> Arrays:
    """The arrays of a stored search; earlier versions stored no shares."""
    try:
        return read_arrays(path, list(SHAPES))
    except StoreError:
        earlier = read_arrays(path, [name for name in SHAPES if name != "shares"])
        return earlier | pack_shares(unknown_shares())


def _rebuild(content: dict[str, Any], arrays: Arrays, question: Question) -> SearchTiling:
    line, told = content["line"], content.get("confirmation")
    regions = read_regions(arrays, question.perturbed.domain)
    names = ("margin", "inconsistency", "is_following", "is_doubtful")
    columns = zip(*(arrays[name].tolist() for name in names), strict=True)
    labels = zip(arrays["classification"].tolist(), arrays["attention"].tolist(), strict=True)
    visited = [
        Visited(
            region, CLASSIFICATIONS[code], ATTENTIONS[other], tuple(margin), tuple(reach), bool(follows), bool(doubt)
        )
        for region, (code, other), (margin, reach, follows, doubt) in zip(regions, labels, columns, strict=True)
    ]
    return SearchTiling(
        question=question,
        method=str(content["method"]),
        w_delta=float(content["w_delta"] or 0.0),
        line=None if line is None else np.array(line, dtype=np.float64),
        visited=visited,
        face_checks=int(content["face_checks"]),
        lps=int(content["lps"]),
        failures=int(content["failures"]),
        shares=read_shares(arrays),
        stopped=None if content["stopped"] is None else Stop(str(content["stopped"])),
        # A sum of volumes may round to 1; a search that covers the domain has a confirmation.
        is_whole=content["visited_share"] == 1.0 and not (content["status"] == Status.ROBUST and told is None),
        components=read_components(content, arrays, regions),
        confirmation=None if told is None else Verdict(told),
        stored=arrays,
    )
