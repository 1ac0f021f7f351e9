"""How much slower or faster is this checkout than another commit, map by map and task by task?

    python benchmarks/against.py 4e2c450                      # all maps of map.py, all tasks of regions.py
    python benchmarks/against.py 4e2c450 --models M-FNN-100 --rounds 3

The other commit is checked out beside this one for the time of the run. Both alternate, each in processes of its own,
on one thread; a ratio above 1 means that this checkout is slower.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from timing import CHECKOUT, RESULTS, Spread, print_table, write_json

MODELS = ("M-FNN-100", "M-FNN-200", "M-FNN-400", "M-FNN-800", "M-CNN-S")
DOMAINS = ("BP", "TP", "TB")
MOST = 1.15
"""The largest median ratio that counts as met."""


def run(tree: Path, script: str, *arguments: str) -> str:
    """Run a benchmark of a tree with that tree's own package; returns what it prints."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(tree / "benchmarks" / script), *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, cwd=tree).stdout


def map_seconds(tree: Path, model: str, domain: str, repetitions: int) -> float:
    """The median seconds of one map with all labels."""
    options = ("mnist:69990", "--repetitions", str(repetitions), "--seconds", "0", "--samples", "20")
    found = json.loads(run(tree, "one_map.py", model, domain, *options).splitlines()[-1])
    return float(found["seconds"]["engine"]["median"])


def task_seconds(tree: Path, folder: Path, pairs: int) -> dict[str, float]:
    """The median seconds of every region task."""
    out = folder / "regions.json"
    run(tree, "regions.py", "--pairs", str(pairs), "--out", str(out))
    rows = json.loads(out.read_text(encoding="utf-8"))["rows"]
    return {row["task"]: float(row["seconds"]["median"]) for row in rows}


def compared(kind: str, name: str, ours: list[float], theirs: list[float]) -> dict[str, Any]:
    """One row: both times, and the ratio round by round."""
    ratio = Spread.of([a / b for a, b in zip(ours, theirs, strict=True)])
    return {"kind": kind, "name": name, "seconds": Spread.of(ours), "before": Spread.of(theirs), "ratio": ratio}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument("--models", nargs="*", default=MODELS, help="networks whose maps are compared; none: no maps")
    parser.add_argument("--rounds", type=int, default=3, help="how often both run in turn")
    parser.add_argument("--repetitions", type=int, default=3, help="maps of each kind in one process")
    parser.add_argument("--no-tasks", action="store_true", help="leave the region tasks out")
    parser.add_argument("--out", type=Path, default=RESULTS / "against.json")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        other = Path(place) / "before"
        subprocess.run(
            ["git", "-C", str(CHECKOUT), "worktree", "add", "--detach", str(other), options.commit], check=True
        )
        try:
            rows = list(measure(other, Path(place), options))
        finally:
            subprocess.run(["git", "-C", str(CHECKOUT), "worktree", "remove", "--force", str(other)], check=True)
    print_table(
        [{name: f"{value:.3f}" if isinstance(value, Spread) else value for name, value in row.items()} for row in rows]
    )
    medians = {
        kind: Spread.of([row["ratio"].median for row in rows if row["kind"] == kind])
        for kind in {r["kind"] for r in rows}
    }
    for kind, ratio in medians.items():
        print(
            f"{kind}: {ratio:.3f} times the seconds of {options.commit} ({'met' if ratio.median <= MOST else 'missed'})"
        )
    more = {
        "commit_before": options.commit,
        "medians": medians,
        "is_met": {k: r.median <= MOST for k, r in medians.items()},
    }
    write_json(options.out, (__doc__ or "").splitlines()[0], repetitions=options.rounds, rows=rows, **more)
    return 0


def measure(other: Path, place: Path, options: argparse.Namespace) -> Sequence[dict[str, Any]]:
    """All rows; the first run of each tree, which compiles, does not count."""
    rows = []
    for tree in (CHECKOUT, other):
        map_seconds(tree, "M-FNN-100", "BP", 1)
    for model in options.models:
        for domain in DOMAINS:
            pairs = [
                [map_seconds(tree, model, domain, options.repetitions) for tree in (CHECKOUT, other)]
                for _ in range(options.rounds)
            ]
            rows.append(compared("map", f"{model} {domain}", *map(list, zip(*pairs, strict=True))))
    if not options.no_tasks:
        runs = [[task_seconds(tree, place, 5) for tree in (CHECKOUT, other)] for _ in range(options.rounds)]
        for name in runs[0][0]:
            ours, theirs = ([pair[side][name] for pair in runs] for side in (0, 1))
            rows.append(compared("task", name, ours, theirs))
    return rows


if __name__ == "__main__":
    sys.exit(main())
