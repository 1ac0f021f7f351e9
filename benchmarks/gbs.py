"""How many regions per second does the boundary search visit, compared with the printed search in the same run?

    python benchmarks/gbs.py                                # twelve problems, three properties: twenty minutes
    python benchmarks/gbs.py --only M-FNN-100 --seconds 5   # a short look
    python benchmarks/gbs.py --resume                       # problems missing in the results of this commit

Uses one thread. Ends with exit code 1 if the search of the package visits a region that the full map does not have, or
labels it differently, whatever the speed; a missed target is shown and stored.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Read when numpy is imported: everything runs on one thread.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

from as_printed.gbs import Kind
from as_printed.gbs import gbs as printed_gbs
from one_map import printed_problem
from one_search import run_search
from paper_problems import PROPERTIES, SHIFT, W_DELTA, Asked, question_of, restricted, sample, stored
from search_check import digest, map_contradictions, own_contradictions, plain_contradictions
from steadygaze.engines import run
from steadygaze.errors import SteadygazeError
from timing import RESULTS, Spread, clock, exit_code, print_table, write_json

TARGETS = {"times_printed": 1000}
KINDS: dict[str, Kind] = {"cr": "CR", "ar": "AR", "both": "CRAR"}
TIMEOUT = 600.0
"""Time limit in seconds for the search of the package; a search that does not end counts as wrong."""


def measure(asked: Asked, wanted: str, *, repetitions: int, seconds: float, samples: int, shift: str) -> dict[str, Any]:
    """Both searches of one problem, and the errors of the package's search."""
    row: dict[str, Any] = {"asked": str(asked), "property": wanted, "wrong": []}
    first = question_of(asked, wanted, shift=shift)
    counts, times = [], []
    try:
        found = run_search(first, "gbs", timeout=TIMEOUT)  # compiles or loads the kernels
        for _ in range(repetitions):
            problem = question_of(asked, wanted, shift=shift, model=first.model)
            spent, again = clock(lambda problem=problem: run_search(problem, "gbs", timeout=TIMEOUT))
            times.append(spent)
            counts.append(len(again.tiling.visited))
    except SteadygazeError as error:
        return row | {"wrong": [str(error)]}
    kept = digest(found, samples)
    row |= {"visited": kept.visited, "visited_share": kept.visited_share, "status": kept.status}
    row["seconds"] = vars(Spread.of(times))
    if kept.status not in ("robust", "notrobust"):
        row["wrong"].append(f"did not end: {kept.status}")
    if set(counts) != {kept.visited}:
        row["wrong"].append(f"{kept.visited} regions visited, then {counts}")
    mapped = run(question_of(asked, wanted, shift=shift, model=first.model), "map", threads=1)
    row["regions"] = len(mapped.tiling.answers.regions)
    row["wrong"] += own_contradictions(found) + plain_contradictions(kept) + map_contradictions(kept, mapped)
    outcome = printed_gbs(printed_problem(first), seconds, kind=KINDS[wanted], w=W_DELTA)
    row["printed"] = {"popped": outcome.popped, "queued": outcome.queued, "seconds": outcome.seconds}
    return compared(row)


def compared(row: dict[str, Any]) -> dict[str, Any]:
    """Add the two rates and their ratio."""
    row["regions_per_second"] = row["visited"] / row["seconds"]["median"]
    row["printed"]["patterns_per_second"] = row["printed"]["popped"] / row["printed"]["seconds"]
    row["times_printed"] = row["regions_per_second"] / row["printed"]["patterns_per_second"]
    return row


def summarised(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Median and spread of the ratios, for each property and for all together, and whether the target is met."""
    found = []
    for name in (*PROPERTIES, "all"):
        ratios = [row["times_printed"] for row in rows if name in (row["property"], "all") and "times_printed" in row]
        if ratios:
            spread = Spread.of(ratios)
            is_met = spread.median >= TARGETS["times_printed"]
            found.append({"property": name, "times_printed": spread, "is_met": is_met})
    return found


def shown(row: dict[str, Any]) -> dict[str, str]:
    """A row as text."""
    heads = ("problem", "property", "visited", "of the map", "s", "regions/s", "printed/s", "times printed", "")
    cells = dict.fromkeys(heads, "")
    cells |= {"problem": row["asked"], "property": row["property"], "": "WRONG" if row["wrong"] else ""}
    if "times_printed" in row:
        cells["visited"], cells["of the map"] = f"{row['visited']:,}", f"{100 * row['visited'] / row['regions']:.1f} %"
        cells["s"] = f"{row['seconds']['median']:.3f}"
        cells["regions/s"] = f"{row['regions_per_second']:,.0f}"
        cells["printed/s"] = f"{row['printed']['patterns_per_second']:.2f}"
        cells["times printed"] = f"{row['times_printed']:,.0f}"
    return cells


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--properties", nargs="+", default=PROPERTIES, choices=PROPERTIES)
    parser.add_argument(
        "--only", nargs="*", default=[], help="problems whose name contains one of these, e.g. TP :69990"
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="seconds of the printed search, for each problem")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--samples", type=int, default=300, help="visited regions that are compared with the map")
    parser.add_argument("--shift", default=SHIFT, help="the translation by one pixel: dx=1 or dy=1")
    parser.add_argument("--resume", action="store_true", help="keep rows of an earlier run at this commit")
    parser.add_argument("--out", type=Path, default=RESULTS / "gbs.json")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    limits = {name: getattr(options, name) for name in ("repetitions", "seconds", "samples", "shift")}
    rows: list[dict[str, Any]] = stored(options.out, "rows", [], **limits) if options.resume else []
    done = {(row["asked"], row["property"]) for row in rows if not row["wrong"]}
    rows = [row for row in rows if not row["wrong"]]
    question = (__doc__ or "").splitlines()[0]
    for asked in restricted(sample(), options.only):
        for wanted in options.properties:
            if (str(asked), wanted) in done:
                continue
            rows.append(measure(asked, wanted, **limits))
            print(f"{asked} {wanted}", file=sys.stderr)
            write_json(
                options.out, question, repetitions=options.repetitions, options=limits, targets=TARGETS,
                summary=summarised(rows), rows=rows,
            )  # fmt: skip
    if not rows:
        names = ", ".join(str(asked) for asked in sample())
        print(f"no problem of the sample has such a name; expected a part of one of: {names}", file=sys.stderr)
        return 2
    print_table([shown(row) for row in rows])
    print(f"\nregions a second over printed patterns a second (target: {TARGETS['times_printed']:,} in the median):")
    for found in summarised(rows):
        print(f"{found['property']:>5}  {found['times_printed']:,.0f}{'' if found['is_met'] else '  missed'}")
    return exit_code([f"{row['asked']} {row['property']}: {wrong}" for row in rows for wrong in row["wrong"][:5]])


if __name__ == "__main__":
    sys.exit(main())
