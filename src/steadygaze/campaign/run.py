"""run_campaign(plan, out) -> Report: every problem without a row is solved, and its row stored as soon as it ends.

Runs on worker processes of this machine, or on a Dask cluster. Prints nothing.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import OptionError
from ..verdict import Status
from . import worker
from .pace import Pace
from .plan import Plan, Task
from .pool import Asked, Pool
from .process import Duty, End, Limits, Outcome
from .schema import EMPTY_ANSWER
from .store import Store, held


@dataclass(frozen=True)
class Advance:
    """How far a campaign is: problems that ended, by status; keys of those that run; seconds left, if known."""

    total: int
    counts: Mapping[str, int]
    running: tuple[str, ...]
    seconds_left: float | None

    @property
    def done(self) -> int:
        """Number of problems that have ended."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class Report:
    """What a run left behind: problems by status, and how many have not ended because it was interrupted."""

    counts: Mapping[str, int]
    missing: int


def run_campaign(
    plan: Plan,
    out: str | Path,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[Advance], None] | None = None,
    cancelled: threading.Event | None = None,
    duty: Duty | None = None,
) -> Report:
    """Solve the problems of a plan that have no row in `out` yet.

    workers: processes on this machine, one for each processor unless given; scheduler: the address of a Dask scheduler,
    whose workers are used instead. A problem that fails, crashes, or exceeds its limits is a row like any other. After
    an interruption (`cancelled`, or the end of this process by whatever) the same call goes on where it was: the rows
    are those of an undisturbed run, `seconds` and `peak_mib` apart. `duty` replaces what workers do.
    """
    if workers is not None and workers < 1:
        raise OptionError(f"workers is {workers}; expected a whole number above 0")
    if workers is not None and scheduler is not None:
        raise OptionError("workers and a scheduler were given; the cluster has its own workers: leave one of them out")
    count = workers or _processors()
    duty = duty or Duty.of(worker.solve, worker.prepare, worker.needs(plan))
    is_cancelled = (cancelled or threading.Event()).is_set
    with held(out):
        store = Store.begin(out, plan)
        tally = _Tally(plan, store.rows(), count, progress)
        todo = [task for task in plan.tasks if task.key not in tally.rows]
        tally.report(())
        with _runner(duty, count if todo else 0, scheduler) as runner:
            for ended in runner.run((_asked(plan, task) for task in todo), is_cancelled=is_cancelled):
                if ended is not None:
                    asked, outcome = ended
                    row = make_row(str(asked.key), outcome)
                    store.put(row)
                    tally.add(row)
                tally.workers = runner.size
                tally.report(tuple(str(key) for key in runner.running))
    return Report(dict(tally.counts), len(plan.tasks) - len(tally.rows))


def make_row(key: str, outcome: Outcome) -> dict[str, Any]:
    """The row of a problem: `answer` is the same in every run, `measured` is not."""
    answer: Mapping[str, Any] = outcome.answer or {}
    if outcome.end is not End.ANSWERED:
        status = Status.TIMEOUT if outcome.end is End.TIMEOUT else Status.FAILED
        answer = {"status": status.value, "reason": outcome.reason}
    measured = {
        "seconds": None if outcome.seconds is None else round(outcome.seconds, 4),
        "peak_mib": None if outcome.peak_mib is None else round(outcome.peak_mib, 1),
    }
    return {"key": key, "answer": EMPTY_ANSWER | dict(answer), "measured": measured}


class _Tally:
    """Counts what has ended, and reports it."""

    def __init__(
        self,
        plan: Plan,
        rows: dict[str, dict[str, Any]],
        workers: int,
        progress: Callable[[Advance], None] | None,
    ) -> None:
        self.tasks = {task.key: task for task in plan.tasks}
        self.rows, self.workers, self.progress = dict(rows), workers, progress
        self.counts = Counter(row["answer"]["status"] for row in rows.values())
        self.pace = Pace()
        self._left: float | None = None
        self._since = 0.0
        for key, row in rows.items():
            self.pace.add(self.tasks[key], row["measured"]["seconds"])

    def add(self, row: dict[str, Any]) -> None:
        self.rows[row["key"]] = row
        self.counts[row["answer"]["status"]] += 1
        self.pace.add(self.tasks[row["key"]], row["measured"]["seconds"])
        self._left = None

    def report(self, running: tuple[str, ...]) -> None:
        if self.progress is None:
            return
        if self._left is None:
            left = (task for key, task in self.tasks.items() if key not in self.rows)
            self._left, self._since = self.pace.seconds_left(left, self.workers), time.monotonic()
        seconds = None if self._left is None else max(0.0, self._left - (time.monotonic() - self._since))
        counts = {status.value: self.counts[status.value] for status in Status}
        self.progress(Advance(len(self.tasks), counts, running, seconds))


def _processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _runner(duty: Duty, workers: int, scheduler: str | None) -> Any:
    if scheduler is None or workers == 0:
        return Pool(duty, workers=workers)
    from .cluster import Cluster  # noqa: PLC0415 (an extra)

    return Cluster(duty, scheduler)


def _asked(plan: Plan, task: Task) -> Asked:
    return Asked(task.key, plan.question(task), Limits(task.seconds, task.memory_gib))
