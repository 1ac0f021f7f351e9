"""The engines bfs, gbs and boundary: run a search, and confirm *robust* by a refinement that covers every theta."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...budget import Budget
from ...labels import Verdict
from ...question import Question
from ...results.result import Result
from ...results.sample_check import confirmed
from ...tolerances import MAX_SEARCH_PARAMETERS
from ..contract import Engine, Progress, ProgressReport, RunOptions, refuse_changing_maps, refuse_curved
from ..refine.refine_engine import RefineEngine
from .paper_searches import search
from .search_tiling import SearchTiling
from .stored_search import restore_tiling

MOST_CONFIRMING = 200_000
"""The most boxes to bound when confirming that a search covers the domain."""


@dataclass(frozen=True)
class SearchEngine(Engine):
    """Visits regions one by one, for up to four parameters.

    `status` describes the visited regions, `verdict` the whole domain: robust only if all of it was visited and a
    refinement, which covers every theta, confirms it.
    """

    method: str
    sentence: str
    takes: frozenset[str]
    gives_shares: bool = False

    def why_not(self, question: Question) -> str | None:
        """Searches visit regions, take a few parameters, and those along a line start at zero."""
        if question.perturbed.is_curved:
            return refuse_curved(question, self.method)
        refusal = refuse_changing_maps(question)
        if refusal is not None:
            return refusal
        domain = question.perturbed.domain
        if domain.dimension > MAX_SEARCH_PARAMETERS:
            return (
                f"searches take up to {MAX_SEARCH_PARAMETERS} parameters, the perturbations have {domain.dimension}; "
                "leave some out, or use --method refine"
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
    SearchEngine("bfs", "A search through all regions, from one to the next (bfs).", frozenset(), gives_shares=True),
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
