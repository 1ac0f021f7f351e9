"""How fast does the engine enumerate the regions of random networks, against a plain numpy splitter in the same run?

    python benchmarks/regions.py                      # all tasks, nine alternating pairs
    python benchmarks/regions.py w50d2 --pairs 1      # one task, once

Both clocks start with the layers as arrays and end with all regions. One thread. Ends with exit code 1 if a count or a
region's logits are wrong, whatever the speed; a missed target is shown and stored.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Read when numpy is imported: both sides run on one thread.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np

import reference_splitter
from reference_splitter import Layers
from steadygaze.compound import plain_program
from steadygaze.regions import kernels
from steadygaze.regions.region import RegionSet
from steadygaze.regions.subdivide import subdivide_cells
from timing import RESULTS, Spread, Stopwatch, clock, clocked, print_table, write_json

TASKS = Path(__file__).resolve().parent / "tasks"
TARGETS = {"w50d2": 40, "w50d8": 18, "w50d2-he": 40, "w50d8-he": 20, "w200d4-he": 6}
"""How many times faster than the reference. Tasks without a target have coincident lines: the reference is wrong there
and is not run."""


def load_tasks(folder: Path, names: Sequence[str], *, dimension: int = 2) -> dict[str, tuple[Layers, int]]:
    """Layers and the true number of regions of each task of a dimension; all tasks of the folder if none is named."""
    entries = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    entries.pop("_", None)
    counts = {name: int(entry["regions"]) for name, entry in entries.items() if entry.get("dimension", 2) == dimension}
    unknown = sorted(set(names) - set(counts))
    if unknown:
        raise SystemExit(f"no task {', '.join(unknown)} in {folder}; expected some of: {', '.join(counts)}")
    return {name: (load_layers(folder / f"{name}.npz"), counts[name]) for name in (names or counts)}


def load_layers(path: Path) -> Layers:
    with np.load(path) as data:
        return [(data[f"W{i}"], data[f"b{i}"]) for i in range(len(data.files) // 2)]


def enumerate_regions(layers: Layers) -> RegionSet:
    """The engine's whole work on one task."""
    return subdivide_cells([plain_program(layers)], threads=1)


def complaints(layers: Layers, regions: RegionSet, expected: int) -> list[str]:
    """What is wrong with a map: its count, its area, or logits that differ from a plain forward pass."""
    found = []
    if len(regions) != expected:
        found.append(f"{len(regions)} regions, {expected} expected")
    if abs(regions.polytopes.volumes.sum() - 1.0) > 1e-9:
        found.append(f"the areas or volumes add up to {regions.polytopes.volumes.sum()!r}")
    values = centres = regions.polytopes.centres
    for weight, bias in layers[:-1]:
        values = np.maximum(values @ weight.T + bias, 0.0)
    logits = values @ layers[-1][0].T + layers[-1][1]
    claimed = np.einsum("ri,rik->rk", np.column_stack([centres, np.ones(len(centres))]), regions.logits)
    wrong = np.abs(claimed - logits).max(axis=1) > 1e-9 * (1.0 + np.abs(logits).max(axis=1))
    if wrong.any():
        found.append(f"the logits of {wrong.sum()} regions differ from a forward pass")
    return found


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
    for row in rows:
        for problem in row["problems"]:
            print(f"{row['task']}: WRONG: {problem}", file=sys.stderr)
    return 1 if any(row["problems"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
