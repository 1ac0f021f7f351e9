"""Shared by all benchmarks: clocks, medians with their spread, facts about the machine, tables and JSON files.

Imports no heavy modules: a process that starts others must stay small, because Linux counts its memory into the peak of
the started process.
"""

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

CHECKOUT = Path(__file__).resolve().parents[1]
RESULTS = CHECKOUT / "benchmarks" / "results"
PACKAGES = ("steadygaze", "numpy", "scipy", "numba", "onnxruntime")

Value = TypeVar("Value")


@dataclass(frozen=True)
class Spread:
    """Repeated measurements of one quantity: median, smallest, largest, and their number.

    >>> Spread.of([3.0, 1.0, 2.0])
    Spread(median=2.0, low=1.0, high=3.0, repetitions=3)
    """

    median: float
    low: float
    high: float
    repetitions: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(statistics.median(values), min(values), max(values), len(values))

    def __format__(self, spec: str) -> str:
        """Median and, in brackets, smallest and largest."""
        return f"{self.median:{spec}} ({self.low:{spec}}–{self.high:{spec}})"


def clock(function: Callable[[], Value]) -> tuple[float, Value]:
    """The seconds of one call, and its result."""
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


class Stopwatch:
    """Seconds spent in each of the functions that `clocked` watches."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def lap(self, name: str) -> float:
        """The seconds of one function since the last lap."""
        return self.seconds.pop(name, 0.0)


@contextmanager
def clocked(watch: Stopwatch, **owners: Any) -> Iterator[None]:
    """Add up the time spent in functions while the block runs: `clocked(watch, measure=api)` watches `api.measure`."""
    originals = {name: getattr(owner, name) for name, owner in owners.items()}

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                watch.seconds[name] = watch.seconds.get(name, 0.0) + time.perf_counter() - start

        return call

    for name, owner in owners.items():
        setattr(owner, name, timed(name, originals[name]))
    try:
        yield
    finally:
        for name, owner in owners.items():
            setattr(owner, name, originals[name])


def peak_mib() -> float:
    """The most memory that this process has held so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def one_thread() -> dict[str, str]:
    """The environment for a process that measures: numpy's products on one thread."""
    return os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def machine() -> dict[str, Any]:
    """Facts about the machine that affect times, without its name."""
    cores = os.cpu_count() or 1
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": _processor(),
        "cores": cores,
        "memory_gib": round(gib, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
        **{name: _version(name) for name in PACKAGES},
    }


def commit() -> str:
    """The commit of the checkout, with `+changes` if files other than results differ; `unknown` outside of git."""
    results = f":(exclude){RESULTS.relative_to(CHECKOUT)}"
    try:
        found = _git("rev-parse", "HEAD")
        return found + ("+changes" if _git("status", "--porcelain", "--untracked-files=no", "--", ".", results) else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def write_json(path: Path, question: str, *, repetitions: int, **content: Any) -> None:
    """Store the outcome of a benchmark with commit and machine."""
    facts = {"question": question, "commit": commit(), "machine": machine(), "repetitions": repetitions}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts | content, indent=1, default=_plain) + "\n", encoding="utf-8")


def print_table(rows: Sequence[Mapping[str, str]]) -> None:
    """Print rows (at least one; one dictionary each, the keys are the headings) in aligned columns."""
    heads = list(rows[0])
    widths = [max(len(head), *(len(row[head]) for row in rows)) for head in heads]
    for line in [dict(zip(heads, heads, strict=True)), *rows]:
        cells = [line[head].rjust(width) for head, width in zip(heads, widths, strict=True)]
        print("  ".join([line[heads[0]].ljust(widths[0]), *cells[1:]]).rstrip())


def exit_code(wrong: Sequence[str]) -> int:
    """The exit code of a benchmark with these wrong answers, 0 if there are none; prints the first fifty."""
    for line in wrong[:50]:
        print(f"WRONG: {line}", file=sys.stderr)
    return 1 if wrong else 0


def _plain(value: Any) -> Any:
    if isinstance(value, Spread):
        return vars(value)
    raise TypeError(f"{type(value).__name__} cannot be stored")


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(CHECKOUT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
