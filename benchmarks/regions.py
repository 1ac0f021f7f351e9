"""How much faster does the engine enumerate the regions of random networks than a plain numpy splitter?

    python benchmarks/regions.py                      # all tasks, nine alternating pairs
    python benchmarks/regions.py w50d2 --pairs 1      # one task, once

Both run on one thread, in the same run, and are timed from the layers as arrays to all regions. Ends with exit code 1
if a count or a region's logits are wrong, whatever the speed; a missed target is shown and stored.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Read when numpy is imported: both sides run on one thread.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import reference_splitter
from random_networks import TASKS, complaints, enumerate_regions, load_tasks
from reference_splitter import Layers
from steadygaze.regions import kernels
from timing import RESULTS, Spread, Stopwatch, clock, clocked, exit_code, print_table, write_json

TARGETS = {"w50d2": 40, "w50d8": 30, "w50d2-he": 40, "w50d8-he": 40, "w200d4-he": 30}
"""Targets: how many times faster than the reference. Tasks without a target have coincident lines, where the reference
is wrong and does not run."""


def measure(name: str, layers: Layers, expected: int, *, pairs: int) -> dict[str, Any]:
    """One row of the table: alternating runs of the reference and the engine."""
    has_reference = name in TARGETS
    watch, engine, walk, reference = Stopwatch(), [], [], []
    problems = complaints(layers, enumerate_regions(layers), expected)  # also compiles or loads the kernels
    for _ in range(pairs):
        if has_reference:
            seconds, cells = clock(lambda: reference_splitter.regions(layers))
            reference.append(seconds)
            if len(cells) != expected:
                problems.append(f"the reference has {len(cells)} regions, {expected} expected")
        with clocked(watch, advance=kernels):
            seconds, regions = clock(lambda: enumerate_regions(layers))
        engine.append(seconds)
        walk.append(watch.lap("advance"))
        if len(regions) != expected:
            problems.append(f"{len(regions)} regions, {expected} expected")
    row: dict[str, Any] = {
        "task": name,
        "regions": expected,
        "seconds": Spread.of(engine),
        "walk_seconds": Spread.of(walk),
        "problems": sorted(set(problems)),
    }
    if has_reference:
        times_faster = Spread.of([r / e for r, e in zip(reference, engine, strict=True)])
        row |= {
            "reference_seconds": Spread.of(reference),
            "times_faster": times_faster,
            "walk_times_faster": Spread.of([r / w for r, w in zip(reference, walk, strict=True)]),
            "target": TARGETS[name],
            "is_met": times_faster.median >= TARGETS[name],
        }
    return row


def shown(row: dict[str, Any]) -> dict[str, str]:
    """A row as text."""
    has_reference = "target" in row
    return {
        "task": row["task"],
        "regions": f"{row['regions']:,}",
        "µs/region": f"{1e6 * row['seconds'].median / row['regions']:.2f}",
        "ms": f"{1e3 * row['seconds'].median:.2f}",
        "walk ms": f"{1e3 * row['walk_seconds'].median:.2f}",
        "reference ms": f"{1e3 * row['reference_seconds'].median:.1f}" if has_reference else "",
        "times faster": f"{row['times_faster']:.1f}" if has_reference else "",
        "walk alone": f"{row['walk_times_faster'].median:.1f}" if has_reference else "",
        "target": f"{row['target']}" if has_reference else "",
        "": "WRONG" if row["problems"] else ("" if row.get("is_met", True) else "missed"),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help="names of tasks; all of them if none is given")
    parser.add_argument("--pairs", type=int, default=9, help="alternating runs of reference and engine")
    parser.add_argument("--folder", type=Path, default=TASKS, help="where tasks.json and the .npz files are")
    parser.add_argument("--out", type=Path, default=RESULTS / "regions.json")
    options = parser.parse_args(arguments)
    tasks = load_tasks(options.folder, options.tasks)
    rows = [measure(name, *task, pairs=options.pairs) for name, task in tasks.items()]
    print_table([shown(row) for row in rows])
    write_json(options.out, (__doc__ or "").splitlines()[0], repetitions=options.pairs, rows=rows)
    return exit_code([f"{row['task']}: {problem}" for row in rows for problem in row["problems"]])


if __name__ == "__main__":
    sys.exit(main())
