"""How much slower or faster is this checkout than another commit, map by map and task by task?

    python benchmarks/against.py 4e2c450     # maps of map.py, refinements, gbs, all tasks of regions.py
    python benchmarks/against.py 4e2c450 --models M-FNN-100 --rounds 3

The other commit is checked out beside this one during the run. Both alternate, each in its own processes, on one
thread; a ratio above 1 means that this checkout is slower. The region tasks take milliseconds: two processes stay open,
run them in turn, and measure CPU time, so other work on the machine affects both alike.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from random_networks import TASKS, enumerate_regions, load_tasks
from timing import CHECKOUT, RESULTS, Spread, one_thread, print_table, write_json

MODELS = ("M-FNN-100", "M-FNN-200", "M-FNN-400", "M-FNN-800", "M-CNN-S")
DOMAINS = ("BP", "TP", "TB")
ANSWER = "--answer-tasks"
MOST = 1.15
"""The largest median ratio that counts as met."""


def run(tree: Path, script: str, *arguments: str) -> str:
    """Run a benchmark of a tree with that tree's own package; returns its output."""
    environment = one_thread() | {"PYTHONPATH": str(tree / "src")}
    command = [sys.executable, str(tree / "benchmarks" / script), *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, cwd=tree).stdout


def map_seconds(tree: Path, model: str, domain: str, repetitions: int) -> float:
    """The median seconds of one map with all labels."""
    options = ("mnist:69990", "--repetitions", str(repetitions), "--seconds", "0", "--samples", "20")
    found = json.loads(run(tree, "one_map.py", model, domain, *options).splitlines()[-1])
    return float(found["seconds"]["engine"]["median"])


def refine_seconds(tree: Path, domain: str) -> float:
    """The seconds of an exact refinement of M-CNN-S with its self-check."""
    options = ("--threads", "1", "--samples", "200")
    found = json.loads(run(tree, "one_refine.py", "map", "M-CNN-S", domain, "mnist:69990", *options).splitlines()[-1])
    return float(found["rows"][0]["seconds"])


def search_seconds(tree: Path) -> dict[str, float]:
    """The seconds of gbs for label and attention on three images of M-FNN-100, by search."""
    options = ("--searches", "gbs:cr", "gbs:ar", "--only", "69990", "69991", "69992", "--no-maps")
    found = json.loads(run(tree, "one_search.py", "M-FNN-100", *options).splitlines()[-1])
    return {f"{row['asked']} {row['search']}": float(row["seconds"]) for row in found["rows"]}


class TaskProcess:
    """A process that runs region tasks with the package of a tree, on request."""

    def __init__(self, tree: Path) -> None:
        environment = one_thread() | {"PYTHONPATH": str(tree / "src")}
        command = [sys.executable, str(Path(__file__).resolve()), ANSWER]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tree
        )

    def seconds(self, task: str) -> float:
        """Run a task once."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{task}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def answer_tasks() -> int:
    """The loop of a `TaskProcess`: for each task name that it reads, print the seconds of one run."""
    tasks = load_tasks(TASKS, [])
    for line in sys.stdin:
        layers, expected = tasks[line.strip()]
        start = time.process_time()
        regions = enumerate_regions(layers)
        seconds = time.process_time() - start
        if len(regions) != expected:
            raise SystemExit(f"{line.strip()}: {len(regions)} regions, {expected} expected")
        print(seconds, flush=True)
    return 0


def compare_tasks(other: Path, pairs: int) -> list[dict[str, Any]]:
    """A row for every region task; the first run of each, which compiles or loads the kernels, does not count."""
    processes = [TaskProcess(tree) for tree in (CHECKOUT, other)]
    rows = []
    try:
        for name in load_tasks(TASKS, []):
            for process in processes:
                process.seconds(name)
            found = [[process.seconds(name) for process in processes] for _ in range(pairs)]
            rows.append(compared("task", name, *map(list, zip(*found, strict=True))))
    finally:
        for process in processes:
            process.close()
    return rows


def compared(kind: str, name: str, ours: list[float], theirs: list[float]) -> dict[str, Any]:
    """One row: both times, and the ratio round by round."""
    ratio = Spread.of([a / b for a, b in zip(ours, theirs, strict=True)])
    return {"kind": kind, "name": name, "seconds": Spread.of(ours), "before": Spread.of(theirs), "ratio": ratio}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument("--models", nargs="*", default=MODELS, help="networks whose maps are compared; none: no maps")
    parser.add_argument("--rounds", type=int, default=3, help="rounds in which both run each map")
    parser.add_argument("--pairs", type=int, default=25, help="rounds in which both run each region task")
    parser.add_argument("--repetitions", type=int, default=3, help="maps of each kind per process")
    parser.add_argument("--no-tasks", action="store_true", help="skip the region tasks")
    parser.add_argument("--no-engines", action="store_true", help="skip refinements and searches")
    parser.add_argument("--out", type=Path, default=RESULTS / "against.json")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        other = Path(place) / "before"
        subprocess.run(
            ["git", "-C", str(CHECKOUT), "worktree", "add", "--detach", str(other), options.commit], check=True
        )
        try:
            rows = list(measure(other, options))
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


def measure(other: Path, options: argparse.Namespace) -> Sequence[dict[str, Any]]:
    """All rows; the first run of each tree, which compiles, does not count."""
    rows = []
    for tree in (CHECKOUT, other) if options.models else ():
        map_seconds(tree, "M-FNN-100", "BP", 1)
    for model in options.models:
        for domain in DOMAINS:
            pairs = [
                [map_seconds(tree, model, domain, options.repetitions) for tree in (CHECKOUT, other)]
                for _ in range(options.rounds)
            ]
            rows.append(compared("map", f"{model} {domain}", *map(list, zip(*pairs, strict=True))))
    if not options.no_engines:
        for domain in DOMAINS:
            pairs = [[refine_seconds(tree, domain) for tree in (CHECKOUT, other)] for _ in range(options.rounds)]
            rows.append(compared("refine", f"M-CNN-S {domain}", *map(list, zip(*pairs, strict=True))))
        found = [[search_seconds(tree) for tree in (CHECKOUT, other)] for _ in range(options.rounds)]
        for name in found[0][0]:
            ours, theirs = ([pair[side][name] for pair in found] for side in (0, 1))
            rows.append(compared("gbs", name, ours, theirs))
    if not options.no_tasks:
        rows += compare_tasks(other, options.pairs)
    return rows


if __name__ == "__main__":
    sys.exit(answer_tasks() if sys.argv[1:] == [ANSWER] else main())
