"""How much faster is the map on two threads than on one?

    python benchmarks/threads.py                                  # CNN-S TB, three images
    python benchmarks/threads.py "M-CNN-S TB mnist:69990" --rounds 3

Measures the engine alone: walk, attention, labels and self-check. One and two threads alternate in one process. Another
program that keeps a core busy spoils the ratio, so the best round counts; all rounds are stored. Ends with exit code 1
if the number of threads changes the map.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Read when numpy is imported.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np

from paper_problems import Asked, question_of
from steadygaze.budget import Budget
from steadygaze.engines.contract import RunOptions
from steadygaze.engines.map.map_engine import MapEngine
from steadygaze.question import Question
from steadygaze.results.result import Result
from timing import RESULTS, Spread, clock, exit_code, print_table, write_json

PROBLEMS = ("M-CNN-S TB mnist:69999", "F-CNN-S TB fashion:69990", "F-CNN-S TB fashion:69993")
TARGET, LARGE = 1.7, 100_000


def solve(question: Question, threads: int) -> tuple[float, Result]:
    """Seconds of the engine, and its result."""
    return clock(lambda: MapEngine().run(question, Budget(), RunOptions(threads=threads)))


def measure(asked: Asked, *, rounds: int) -> dict[str, Any]:
    """One row: alternating runs on one and on two threads."""
    question = question_of(asked, "both")
    _ = question.compound.programs
    one, two, problems = [], [], set()
    for _ in range(rounds):
        seconds, first = solve(question, 1)
        one.append(seconds)
        seconds, second = solve(question, 2)
        two.append(seconds)
        left, right = first.tiling.arrays(), second.tiling.arrays()
        if not all(np.array_equal(left[name], right[name]) for name in left):
            problems.add("two threads give another map")
    regions = len(first.regions)
    times_faster = Spread.of([before / after for before, after in zip(one, two, strict=True)])
    row = {"problem": str(asked), "regions": regions, "one": Spread.of(one), "two": Spread.of(two)}
    row |= {"times_faster": times_faster, "problems": sorted(problems)}
    return row | ({"target": TARGET, "is_met": times_faster.high >= TARGET} if regions > LARGE else {})


def shown(row: dict[str, Any]) -> dict[str, str]:
    """A row as text."""
    return {
        "problem": row["problem"],
        "regions": f"{row['regions']:,}",
        "s, one thread": f"{row['one']:.2f}",
        "s, two": f"{row['two']:.2f}",
        "times faster": f"{row['times_faster']:.2f}",
        "": "WRONG" if row["problems"] else ("" if row.get("is_met", True) else "missed"),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", default=PROBLEMS, help='such as "M-CNN-S TB mnist:69990"')
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS / "threads.json")
    options = parser.parse_args(arguments)
    rows = [measure(Asked(*problem.split()), rounds=options.rounds) for problem in options.problems]
    print_table([shown(row) for row in rows])
    write_json(options.out, (__doc__ or "").splitlines()[0], repetitions=options.rounds, rows=rows)
    return exit_code([f"{row['problem']}: {problem}" for row in rows for problem in row["problems"]])


if __name__ == "__main__":
    sys.exit(main())
