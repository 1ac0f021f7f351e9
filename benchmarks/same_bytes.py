"""Does this checkout compute the same bytes as another commit?

    python benchmarks/same_bytes.py ded72ff
    python benchmarks/same_bytes.py ded72ff --only refine --keep /tmp/same

The other commit is checked out beside this one during the run. Each makes ten results (maps and refinements, one to
three parameters) in its own process, stores them, and exports their regions as CSV. Exports and arrays of `regions.npz`
are compared by bytes, and those that differ by numbers: `largest` is the largest difference of an array over its
largest entry. Columns and arrays that only one commit writes are listed, and do not count as different.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from timing import CHECKOUT, RESULTS, one_thread, print_table, write_json

Problem = tuple[str, str, str, tuple[str, ...], dict[str, str]]
"""Method, network, image, perturbations, options."""

BRIGHT, PATCH, SHIFT = "brightness:0..0.3", "patch:x=12,y=12,w=4,h=4", "translate:dy=1"
SMALL = ("brightness:0..0.05", "patch:x=12,y=12,w=4,h=4:0..0.2", "translate:dy=1:0..0.2")
PROBLEMS: dict[str, Problem] = {
    "map-1": ("map", "M-FNN-100", "mnist:69990", (BRIGHT,), {}),
    "map-1-shift": ("map", "M-FNN-400", "mnist:69991", (SHIFT,), {}),
    "map-2": ("map", "M-FNN-100", "mnist:69990", (BRIGHT, PATCH), {}),
    "map-2-abs-l1": ("map", "F-FNN-200", "fashion:69990", (BRIGHT, PATCH), {"filter": "abs", "dist": "l1"}),
    "map-2-convolutions": ("map", "M-CNN-S", "mnist:69992", SMALL[:2], {"filter": "mean"}),
    "map-3": ("map", "M-FNN-100", "mnist:69990", SMALL, {}),
    "refine-1": ("refine", "M-CNN-S", "mnist:69990", ("brightness:0..0.05",), {}),
    "refine-2": ("refine", "M-FNN-100", "mnist:69990", (BRIGHT, PATCH), {}),
    "refine-2-label": ("refine", "F-FNN-100", "fashion:69991", (SHIFT, PATCH), {"property": "cr"}),
    "refine-3": ("refine", "M-FNN-100", "mnist:69993", SMALL, {"delta": "50%"}),
}
SAME, EQUAL, DIFFERENT = "same bytes", "same numbers", "different"


def make_results(names: Sequence[str], folder: Path) -> None:
    """Store the results of problems, each with an export of its regions. Runs with the package of either commit."""
    import steadygaze  # noqa: PLC0415 (the package of the tree that the process belongs to)

    for name in names:
        method, model, image, perturbations, options = PROBLEMS[name]
        result = steadygaze.verify(model, image, list(perturbations), method=method, threads=1, **options)
        result.save(folder / name)
        steadygaze.export(result, folder / f"{name}.csv")
        print(name, file=sys.stderr, flush=True)


def run(tree: Path, names: Sequence[str], folder: Path) -> None:
    """Make results in a process with the package of a tree."""
    environment = one_thread() | {"PYTHONPATH": str(tree / "src")}
    command = [sys.executable, str(Path(__file__).resolve()), "--make", str(folder), "--only", *names]
    subprocess.run(command, env=environment, check=True, cwd=tree)


def compare_arrays(one: np.ndarray, two: np.ndarray) -> str:
    """How two arrays agree.

    >>> compare_arrays(np.array([1, 2]), np.array([1.0, 2.0])), compare_arrays(np.zeros(2), np.zeros(3))
    ('same numbers', 'different')
    """
    if one.shape != two.shape:
        return DIFFERENT
    if one.dtype == two.dtype and one.tobytes() == two.tobytes():
        return SAME
    return EQUAL if np.array_equal(one, two, equal_nan=one.dtype.kind == "f" == two.dtype.kind) else DIFFERENT


def largest_difference(one: np.ndarray, two: np.ndarray) -> float | None:
    """The largest difference of two arrays over their largest entry; None if their shapes differ.

    >>> largest_difference(np.array([1.0, 4.0]), np.array([1.0, 3.0])), largest_difference(np.zeros(2), np.zeros(3))
    (0.25, None)
    """
    if one.shape != two.shape:
        return None
    ours, theirs = one.astype(float), two.astype(float)
    is_other = ours != theirs  # before the difference: infinite entries that agree have none
    if not is_other.any():
        return 0.0
    apart = np.abs(ours[is_other] - theirs[is_other]).max()
    return float(apart / max(np.abs(ours).max(), np.abs(theirs).max()))


def compare_sizes(one: Path, two: Path) -> dict[str, float | None]:
    """The largest difference of each array that both files have and that is not the same."""
    with np.load(one, allow_pickle=False) as ours, np.load(two, allow_pickle=False) as theirs:
        found = {name: largest_difference(ours[name], theirs[name]) for name in ours if name in theirs}
    return {name: size for name, size in found.items() if size != 0.0}


def compare_files(one: Path, two: Path) -> dict[str, str]:
    """How the arrays of two files agree, by name; arrays that only one file has are not compared."""
    with np.load(one, allow_pickle=False) as ours, np.load(two, allow_pickle=False) as theirs:
        found = {name: compare_arrays(ours[name], theirs[name]) for name in ours if name in theirs}
        alone = {name: "only this checkout" if name in ours else "only before" for name in {*ours} ^ {*theirs}}
    return found | dict(sorted(alone.items()))


def compare_exports(one: Path, two: Path) -> tuple[str, list[str]]:
    """How two exports agree, and the columns that differ or that one of them lacks."""
    if one.read_bytes() == two.read_bytes():
        return SAME, []
    ours, theirs = _columns(one), _columns(two)
    shared = [name for name in ours if name in theirs]
    lines = {name: _numbers(ours[name]) == _numbers(theirs[name]) for name in shared}
    differing = [name for name, is_same in lines.items() if not is_same]
    return DIFFERENT if differing or not shared else EQUAL, differing + sorted({*ours} ^ {*theirs})


def _columns(path: Path) -> Mapping[str, list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    return {name: [row[place] for row in rows] for place, name in enumerate(head)}


def _numbers(cells: Sequence[str]) -> list[float | str]:
    """The cells of a column, as numbers where possible.

    >>> _numbers(["1.0", "1e0", "CR"])
    [1.0, 1.0, 'CR']
    """
    found: list[float | str] = []
    for cell in cells:
        try:
            found.append(float(cell))
        except ValueError:
            found.append(cell)
    return found


def compare_problem(name: str, ours: Path, theirs: Path) -> dict[str, Any]:
    """The row of one problem."""
    export, columns = compare_exports(ours / f"{name}.csv", theirs / f"{name}.csv")
    files = [side / name / "regions.npz" for side in (ours, theirs)]
    arrays, largest = compare_files(*files), compare_sizes(*files)
    rows = (ours / f"{name}.csv").read_bytes().count(b"\n") - 1
    return {"name": name, "rows": rows, "export": export, "columns": columns, "arrays": arrays, "largest": largest}


def as_text(row: Mapping[str, Any]) -> dict[str, str]:
    """A row for the printed table."""
    counts = {kind: list(row["arrays"].values()).count(kind) for kind in (SAME, EQUAL, DIFFERENT)}
    return {
        "problem": row["name"],
        "rows": str(row["rows"]),
        "export": row["export"],
        **{f"arrays: {kind}": str(count) for kind, count in counts.items()},
        "in one alone": str(len(row["arrays"]) - sum(counts.values())),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", help="the commit to compare with")
    parser.add_argument("--only", nargs="*", default=[""], help="parts of the names of problems")
    parser.add_argument("--keep", type=Path, help="a new folder for results and exports of both")
    parser.add_argument("--out", type=Path, default=RESULTS / "same_bytes.json")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.make is not None:
        make_results(options.only, options.make)
        return 0
    names = [name for name in PROBLEMS if any(part in name for part in options.only)]
    if options.commit is None or not names:
        parser.error(f"give a commit, and --only parts of {', '.join(PROBLEMS)}")
    with tempfile.TemporaryDirectory() as place:
        other, kept = Path(place) / "before", options.keep or Path(place) / "results"
        folders = [kept.resolve() / side for side in ("this", "before")]
        for folder in folders:
            folder.mkdir(parents=True)
        git = ["git", "-C", str(CHECKOUT), "worktree"]
        subprocess.run([*git, "add", "--detach", str(other), options.commit], check=True)
        try:
            for tree, folder in zip((CHECKOUT, other), folders, strict=True):
                run(tree, names, folder)
        finally:
            subprocess.run([*git, "remove", "--force", str(other)], check=True)
        rows = [compare_problem(name, *folders) for name in names]
    print_table([as_text(row) for row in rows])
    for row in rows:
        odd = {array: row["largest"].get(array, how) for array, how in row["arrays"].items() if how != SAME}
        if row["columns"] or odd:
            print(f"{row['name']}: columns {', '.join(row['columns']) or 'all the same'}; arrays {json.dumps(odd)}")
    is_met = all(row["export"] != DIFFERENT and DIFFERENT not in row["arrays"].values() for row in rows)
    print(f"{'no number differs' if is_met else 'some numbers differ'} from {options.commit}")
    more = {"commit_before": options.commit, "is_met": is_met}
    write_json(options.out, (__doc__ or "").splitlines()[0], repetitions=1, rows=rows, **more)
    return 0


if __name__ == "__main__":
    sys.exit(main())
