"""Searches all problems of one network in its own process and prints the outcome as one line of JSON.

    python benchmarks/one_search.py M-FNN-100 --searches gbs:cr boundary:ar --only BP

`every_search.py` starts it. Memory is read before the first full map; the maps then check the searches.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

# Read when numpy is imported: everything runs on one thread.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

from paper_problems import SHIFT, W_DELTA, Asked, problems_of, question_of, restricted
from search_check import Digest, digest, map_contradictions, own_contradictions, plain_contradictions
from steadygaze.budget import Budget, Limits
from steadygaze.engines import run
from steadygaze.engines.contract import RunOptions
from steadygaze.engines.search.paper_searches import search
from steadygaze.errors import SteadygazeError
from steadygaze.network.model import Model
from steadygaze.question import Question
from steadygaze.results.result import Result
from timing import clock, peak_mib

FIELDS = ("visited", "visited_share", "face_checks", "lps", "failures", "status")


def run_search(question: Question, method: str, *, timeout: float | None = None) -> Result:
    """One search of the package, unconfirmed by a refinement: gbs with the paper's w^δ, boundary without one."""
    options = RunOptions(w_delta=W_DELTA if method == "gbs" else None)
    spent, tiling = clock(lambda: search(question, method, Budget(Limits(timeout_seconds=timeout)), options))
    return Result(question, tiling, question.threshold, question.agreement, seconds={"total": spent})


class OneNetwork:
    """The searches of one network: one row for each problem and search, with the digest that a map can check."""

    def __init__(self, model: str, *, timeout: float, samples: int, shift: str) -> None:
        self.name, self.timeout, self.samples, self.shift = model, timeout, samples, shift
        self.model: Model | None = None
        self.kept: list[tuple[Asked, dict[str, Any], Digest]] = []
        self.rows: list[dict[str, Any]] = []

    def ask(self, asked: Asked, wanted: str) -> Question:
        """A fresh question without cached values; the model is read once."""
        question = question_of(asked, wanted, shift=self.shift, model=self.model)
        self.model = question.model
        return question

    def measure(self, asked: Asked, method: str, wanted: str) -> dict[str, Any]:
        """Run and time one search; contradictions by its own regions or by plain passes are in `wrong`."""
        row: dict[str, Any] = {"asked": str(asked), "search": f"{method}:{wanted}", "regions": None}
        row |= dict.fromkeys(("seconds", *FIELDS), None) | {"wrong": []}
        self.rows.append(row)
        try:
            question = self.ask(asked, wanted)
            row["seconds"], found = clock(lambda: run_search(question, method, timeout=self.timeout))
        except SteadygazeError as error:
            row["wrong"].append(str(error))
            return row
        kept = digest(found, self.samples)
        row |= {"visited": kept.visited, "visited_share": kept.visited_share, "status": kept.status}
        row |= {name: _count(getattr(found.tiling, name)) for name in ("face_checks", "lps", "failures")}
        if kept.status not in ("robust", "notrobust"):
            row["wrong"].append(f"did not end: {kept.status} after {row['seconds']:.1f} s")
        row["wrong"] += own_contradictions(found) + plain_contradictions(kept)
        self.kept.append((asked, row, kept))
        return row

    def compare_with_maps(self) -> None:
        """Compare every measured search with the full map of its problem."""
        for asked in dict.fromkeys(asked for asked, _, _ in self.kept):
            mapped = run(self.ask(asked, "both"), "map", threads=1)
            for own, row, kept in self.kept:
                if own == asked:
                    row["regions"] = len(mapped.tiling.answers.regions)
                    row["wrong"] += map_contradictions(kept, mapped)


def _count(value: Any) -> int:
    return value if isinstance(value, int) else len(value)


def measure_network(
    model: str, searches: Sequence[str], only: Sequence[str], *, timeout: float, samples: int, shift: str, maps: bool
) -> dict[str, Any]:
    """All rows of one network and the peak memory of its searches."""
    network = OneNetwork(model, timeout=timeout, samples=samples, shift=shift)
    problems = restricted(problems_of(model), only)
    pairs = [search.split(":") for search in searches]
    if problems:
        for method, wanted in pairs:  # compiles or loads the kernels
            network.measure(problems[0], method, wanted)
        network.rows.clear()
        network.kept.clear()
    for asked in problems:
        for method, wanted in pairs:
            network.measure(asked, method, wanted)
    peak = peak_mib()
    if maps:
        network.compare_with_maps()
    return {"model": model, "peak_mib": peak, "rows": network.rows}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--searches", nargs="+", default=["gbs:cr"])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--timeout", type=float, default=120.0)
    parser.add_argument("--samples", type=int, default=40, help="visited regions that are checked, for each search")
    parser.add_argument("--shift", default=SHIFT)
    parser.add_argument("--no-maps", dest="maps", action="store_false", help="do not check against full maps")
    print(json.dumps(measure_network(**vars(parser.parse_args(arguments)))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
