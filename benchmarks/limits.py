"""Do runs end within their limits, whatever phase they are in?

    python benchmarks/limits.py            # all cells
    python benchmarks/limits.py --only map # cells whose name contains a text

Every cell starts one process: an engine, a limit and an interface (command line, Python, campaign). Time limits and
Ctrl-C hit different phases; the row names the phase that took longest. A run must end within 10 % or 2 s (the larger)
of its time limit, or 2 s after Ctrl-C. Its memory may exceed the limit by 10 %. Its exit code must be that of a
verdict, and its verdict and shares must not contradict a longer run. Code is compiled before the clock starts. On a
busy machine a process waits for a processor, so seconds beyond a limit are multiplied by the share of one processor
that the process had (`processor`, at most 1); the rows contain both numbers.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from timing import RESULTS, print_table, write_json

PROGRAM = str(Path(sys.executable).parent / "steadygaze")
SLACK, LEAST_SLACK = 0.1, 2.0
LONG = 25.0
CODES = {0: "robust", 10: "not robust", 3: "undecided"}


@dataclass(frozen=True)
class Asked:
    """A question; `model` and `image` are bundled."""

    model: str
    image: str
    specs: tuple[str, ...]


QUESTIONS = {
    "large": Asked("M-CNN-M", "mnist:69993", ("translate:dy=1", "brightness")),
    "line": Asked("M-CNN-M", "mnist:69990", ("translate:dx=9",)),
    "solid": Asked("M-FNN-200", "mnist:69990", ("brightness", "darkness", "translate:dx=1")),
    "small": Asked("M-FNN-100", "mnist:69990", ("brightness", "patch:x=12,y=12,w=4,h=4")),
}


@dataclass(frozen=True)
class Cell:
    """One run; `interrupted` is the number of seconds until Ctrl-C."""

    interface: str
    method: str
    question: str
    timeout: float | None = None
    memory: float | None = None
    max_regions: int | None = None
    interrupted: float | None = None
    pictures: bool = False

    @property
    def name(self) -> str:
        """The cell in one line."""
        limits = {"timeout": self.timeout, "memory": self.memory, "regions": self.max_regions}
        texts = [f"{name} {value:g}" for name, value in limits.items() if value is not None]
        texts += [] if self.interrupted is None else [f"Ctrl-C at {self.interrupted:g}"]
        return " ".join([self.interface, self.method, self.question, *texts, *(["pictures"] if self.pictures else [])])


def cells() -> Iterator[Cell]:
    """All cells."""
    for method in ("map", "refine", "auto"):
        for seconds in (0.5, 1.0, 2.0, 5.0, 12.0):
            yield Cell("command", method, "large", timeout=seconds)
    yield Cell("command", "map", "large", timeout=12.0, pictures=True)
    yield Cell("command", "refine", "large", timeout=12.0, pictures=True)
    for method in ("map", "refine", "bfs"):
        yield Cell("command", method, "solid", timeout=3.0)
    for method in ("map", "refine"):
        yield Cell("command", method, "line", timeout=1.0)
    for method in ("bfs", "gbs", "boundary"):
        for seconds in (1.0, 4.0):
            yield Cell("command", method, "large", timeout=seconds)
        yield Cell("command", method, "large", interrupted=3.0)
    for method in ("map", "refine"):
        for seconds in (1.5, 4.0, 9.0, 15.0):
            yield Cell("command", method, "large", interrupted=seconds)
        yield Cell("command", method, "large", memory=0.6)
        yield Cell("command", method, "large", timeout=20.0, memory=1.0)
    yield Cell("command", "map", "small", memory=0.4)
    yield Cell("command", "map", "large", max_regions=1000)
    yield Cell("command", "map", "large", max_regions=60_000)
    yield Cell("command", "bfs", "large", max_regions=200)
    for method in ("map", "refine", "gbs"):
        yield Cell("python", method, "large", timeout=2.0)
        yield Cell("campaign", method, "large", timeout=5.0)
    yield Cell("python", "map", "large", timeout=5.0)
    yield Cell("python", "map", "large", memory=0.6)
    yield Cell("python", "refine", "large", memory=0.6)
    yield Cell("python", "map", "large", max_regions=1000)


def run_cell(cell: Cell, folder: Path) -> dict[str, Any]:
    """Run the process of a cell; returns its exit and its answer."""
    command = {"command": _verify, "python": _python, "campaign": _campaign}[cell.interface](cell, folder)
    started = time.monotonic()
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err)
        if cell.interrupted is not None:
            time.sleep(cell.interrupted)
            os.kill(process.pid, signal.SIGINT)  # `send_signal` would wait for a process that has ended
        signalled = time.monotonic()
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    ended = time.monotonic()
    answer = _read(folder / "stdout", cell, folder)
    return {
        "code": process.returncode,
        "seconds": answer.pop("own_seconds", ended - started),
        "after_signal": ended - signalled if cell.interrupted is not None else None,
        "processor": min(1.0, (usage.ru_utime + usage.ru_stime) / (ended - started)),
        "peak_gib": usage.ru_maxrss / 2**20,
        "stderr": (folder / "stderr").read_text(encoding="utf-8", errors="replace")[-400:],
    } | answer


def _words(cell: Cell) -> list[str]:
    asked = QUESTIONS[cell.question]
    specs = [word for spec in asked.specs for word in ("--perturb", spec)]
    return [asked.model, "--image", asked.image, *specs, "--method", cell.method]


def _verify(cell: Cell, folder: Path) -> list[str]:
    limits = {"--timeout": cell.timeout, "--memory": cell.memory, "--max-regions": cell.max_regions}
    words = [word for name, value in limits.items() if value is not None for word in (name, str(value))]
    pictures = "png" if cell.pictures else "none"
    return [PROGRAM, "verify", *_words(cell), *words, "--json", "--pictures", pictures, "--out", "out", "--force"]


PYTHON = """
import json, sys, time
import steadygaze
asked = json.loads(sys.argv[1])
started = time.monotonic()
budget = steadygaze.Budget(steadygaze.Limits(asked["timeout"], asked["max_regions"], asked["memory"]))
result = steadygaze.verify(asked["model"], asked["image"], asked["specs"], method=asked["method"], budget=budget)
seconds = time.monotonic() - started
area = {str(name): bounds for name, bounds in result.areas.items()}
print(json.dumps({"verdict": result.verdict.value, "regions": result.region_count, "stopped": result.stopped,
                  "area": area, "seconds": result.seconds, "own_seconds": seconds}))
sys.exit(result.verdict.exit_code)
"""


def _python(cell: Cell, folder: Path) -> list[str]:
    asked = asdict(cell) | asdict(QUESTIONS[cell.question])
    return [sys.executable, "-c", PYTHON, json.dumps(asked)]


PLAN = """
[campaign]
name = "limits"
[limits]
seconds = {seconds}
memory_gib = 4
[[models]]
use = ["{model}"]
[[images]]
use = ["{image}"]
[combinations]
A = {specs}
[[runs]]
method = "{method}"
delta = "25%"
"""


def _campaign(cell: Cell, folder: Path) -> list[str]:
    asked = QUESTIONS[cell.question]
    plan = PLAN.format(
        seconds=cell.timeout, model=asked.model, image=asked.image, specs=json.dumps(list(asked.specs)),
        method=cell.method,
    )  # fmt: skip
    (folder / "plan.toml").write_text(plan, encoding="utf-8")
    return [PROGRAM, "campaign", "run", "plan.toml", "--out", "campaign", "--workers", "1", "--quiet"]


def _read(path: Path, cell: Cell, folder: Path) -> dict[str, Any]:
    """The answer of a process; empty if there is none."""
    if cell.interface == "campaign":
        rows = list((folder / "campaign" / "rows").glob("*.json"))
        row = json.loads(rows[0].read_text(encoding="utf-8")) if rows else {"answer": {}, "measured": {}}
        found = row["answer"]
        return {"verdict": found.get("verdict"), "regions": found.get("regions"), "stopped": found.get("reason"),
                "own_seconds": row["measured"].get("seconds") or 0.0}  # fmt: skip
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return {"verdict": None}
    phases = found["seconds"]
    named = {"phase": max(phases, key=phases.__getitem__, default=""), "phases": phases}
    kept = ("verdict", "regions", "stopped", "area", "own_seconds")
    return {name: found[name] for name in kept if name in found} | named


def faults(cell: Cell, row: Mapping[str, Any], full: Mapping[str, Any]) -> list[str]:
    """The errors of a run, in words."""
    found = []
    if cell.interface != "campaign" and CODES.get(row["code"]) != row["verdict"]:
        found.append(f"exit code {row['code']} with the verdict {row['verdict']}")
    if row["code"] < 0 or row["verdict"] is None:
        found.append(f"gave no answer: exit code {row['code']}")
    busy = 1.0 if cell.interface == "campaign" else row["processor"]
    if cell.timeout is not None and busy * (row["seconds"] - cell.timeout) > max(SLACK * cell.timeout, LEAST_SLACK):
        found.append(f"ended after {row['seconds']:.1f} s")
    if row["after_signal"] is not None and busy * row["after_signal"] > LEAST_SLACK:
        found.append(f"ended {row['after_signal']:.1f} s after Ctrl-C")
    if cell.memory is not None and row["peak_gib"] > (1.0 + SLACK) * cell.memory:
        found.append(f"took {row['peak_gib']:.2f} GiB")
    if {row["verdict"], full["verdict"]} == {"robust", "not robust"}:
        found.append(f"{row['verdict']}, but a longer run says {full['verdict']}")
    for name, (low, high) in (row.get("area") or {}).items():
        if name == "undecided":  # not a fact about the question
            continue
        least, most = full["area"][name]
        if low > most + 1e-9 or least > high + 1e-9:
            found.append(f"{name} from {low:g} to {high:g}, but a longer run says from {least:g} to {most:g}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a part of the names of cells")
    parser.add_argument("--out", type=Path, default=RESULTS / "limits.json")
    options = parser.parse_args(arguments)
    chosen = [cell for cell in cells() if options.only in cell.name]
    rows, full = [], {}
    with tempfile.TemporaryDirectory() as place:
        for name in dict.fromkeys(cell.question for cell in chosen):
            # A proved answer from a longer run than any cell. It also compiles the code that the cells need.
            full[name] = run_cell(Cell("command", "refine", name, timeout=LONG), _folder(place, f"full {name}"))
        for method, name in dict.fromkeys(
            (cell.method, "solid" if cell.question == "solid" else "small") for cell in chosen
        ):
            run_cell(Cell("command", method, name, timeout=LONG), _folder(place, f"compile {method} {name}"))
        for cell in chosen:
            row = run_cell(cell, _folder(place, cell.name))
            wrong = faults(cell, row, full[cell.question])
            rows.append({"cell": cell.name} | asdict(cell) | row | {"wrong": wrong, "load": os.getloadavg()[0]})
            print(
                f"{cell.name}: {row['seconds']:.1f} s, {row['peak_gib']:.2f} GiB, {row['verdict']} {wrong or ''}",
                flush=True,
            )
            if not options.only:
                _write(options.out, rows)
    print_table(
        [
            {"cell": row["cell"], "s": f"{row['seconds']:.1f}", "GiB": f"{row['peak_gib']:.2f}",
             "after Ctrl-C": "" if row["after_signal"] is None else f"{row['after_signal']:.1f}",
             "verdict": str(row["verdict"]), "longest": row.get("phase", ""), "": "; ".join(row["wrong"])}
            for row in rows
        ]
    )  # fmt: skip
    missed = _missed(rows)
    print(f"{len(rows) - len(missed)} of {len(rows)} cells end within their limits")
    return 1 if missed else 0


def _missed(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [row["cell"] for row in rows if row["wrong"]]


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows so far, because all cells take a while."""
    write_json(path, (__doc__ or "").splitlines()[0], repetitions=1, rows=rows, missed=_missed(rows))


def _folder(place: str, name: str) -> Path:
    folder = Path(place) / name
    folder.mkdir()
    return folder


if __name__ == "__main__":
    sys.exit(main())
