"""run_campaign(plan, out) -> Report: solves every problem without a row, and stores each row as soon as it ends.

Runs on worker processes of this machine, or on a Dask cluster (extra `cluster`), whose workers solve each problem in a
worker process with the same limits: a crashing problem does not end the Dask worker. Prints nothing.
"""

import contextlib
import logging
import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Self

from ..errors import OptionError, SteadygazeError, StoreError
from ..labels import Status
from . import columns, solving
from .stored_campaign import Plan, Store, Task, held
from .versions import made_by
from .worker_pool import GO_ON, LOOK_SECONDS, Asked, Duty, End, Pool, ProcessLimits, ProcessOutcome, WorkerProcess

CONNECT_SECONDS = 15
FETCH_SECONDS = 3  # to fetch an answer from a Dask worker; an answer that died with its worker takes longer
RETRIES = 2  # further attempts if a Dask worker could not even start a problem
COUNT_SECONDS = 2.0  # time between two counts of the workers of the cluster

_idle: list[tuple[Duty, WorkerProcess]] = []
_idle_lock = threading.Lock()


@dataclass(frozen=True)
class CampaignProgress:
    """The progress of a campaign: ended problems by status, keys of running ones, seconds left if known."""

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
    """The outcome of a run: problems by status, and how many have not ended because it was interrupted."""

    counts: Mapping[str, int]
    missing: int


def run_campaign(
    plan: Plan,
    out: str | Path,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[CampaignProgress], None] | None = None,
    cancelled: threading.Event | None = None,
    duty: Duty | None = None,
) -> Report:
    """Solve the problems of a plan that have no row in `out` yet.

    workers: processes on this machine, by default one for each processor; scheduler: the address of a Dask scheduler
    whose workers are used instead. A problem that fails, crashes, or exceeds its limits is a row like any other. After
    an interruption of any kind the same call continues: the rows are those of an undisturbed run, except for `seconds`
    and `peak_mib`. `duty` replaces the functions of the workers.
    """
    if workers is not None and workers < 1:
        raise OptionError(f"workers is {workers}; expected a whole number above 0")
    if workers is not None and scheduler is not None:
        raise OptionError("workers and a scheduler were given, but the cluster has its own workers: leave one out")
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = workers or processors
    duty = duty or Duty.of(solving.solve, solving.prepare, solving.needs(plan))
    is_cancelled = (cancelled or threading.Event()).is_set
    with held(out):
        store = Store.begin(out, plan)
        tally = _Tally(plan, store.rows(), count, progress)
        for key, reason in plan.misfits.items():
            if key not in tally.rows:
                store.put(row := make_row(key, ProcessOutcome(End.FAILED, None, reason, None, None)))
                tally.add(row)
        todo = [task for task in plan.tasks if task.key not in tally.rows]
        tally.report(())
        questions = (
            Asked(task.key, plan.question(task) | store.keeping(task), ProcessLimits(task.seconds, task.memory_gib))
            for task in todo
        )
        runner: Cluster | Pool = Cluster(duty, scheduler) if scheduler and todo else Pool(duty, workers=count)
        with runner:
            for ended in runner.run(questions, is_cancelled=is_cancelled):
                if ended is not None:
                    asked, outcome = ended
                    row = make_row(str(asked.key), outcome)
                    store.put(row)
                    tally.add(row)
                tally.workers = runner.size
                tally.report(tuple(str(key) for key in runner.running))
    return Report(dict(tally.counts), len(plan.tasks) - len(tally.rows))


def make_row(key: str, outcome: ProcessOutcome) -> dict[str, Any]:
    """The row of a problem: `answer` is the same in every run, `measured` is not."""
    answer: Mapping[str, Any] = outcome.answer or {}
    if outcome.end is not End.ANSWERED:
        status = Status.TIMEOUT if outcome.end is End.TIMEOUT else Status.FAILED
        answer = {"status": status.value, "reason": outcome.reason}
    measured = {
        "seconds": None if outcome.seconds is None else round(outcome.seconds, 4),
        "peak_mib": None if outcome.peak_mib is None else round(outcome.peak_mib, 1),
    }
    return {"key": key, "answer": columns.EMPTY_ANSWER | dict(answer), "measured": measured}


class Pace:
    """Estimates the time of problems by the mean seconds of the most similar ones that have ended."""

    def __init__(self) -> None:
        self._seconds: dict[Hashable, list[float]] = {}

    def add(self, task: Task, seconds: float | None) -> None:
        """Note that a problem has ended after some seconds, if known."""
        if seconds is not None:
            for kind in _kinds(task):
                self._seconds.setdefault(kind, []).append(seconds)

    def seconds_left(self, tasks: Iterable[Task], workers: int) -> float | None:
        """Estimated seconds for these problems on some workers; None while nothing is known.

        At least the time of the longest problem, which more workers do not shorten.

        >>> Pace().seconds_left([], 2) is None
        True
        """
        if not self._seconds:
            return None
        means = {kind: sum(known) / len(known) for kind, known in self._seconds.items()}
        expected = [next(means[kind] for kind in _kinds(task) if kind in means) for task in tasks]
        return max(sum(expected) / max(1, workers), max(expected, default=0.0))


def _kinds(task: Task) -> tuple[Hashable, ...]:
    """From the most similar problems to all of them."""
    own = task.algorithm, task.model
    return (*own, task.combination), own, task.model, task.algorithm, None


class _Tally:
    """Counts the problems that have ended, and reports progress."""

    def __init__(
        self,
        plan: Plan,
        rows: Mapping[str, dict[str, Any]],
        workers: int,
        progress: Callable[[CampaignProgress], None] | None,
    ) -> None:
        self.tasks = {task.key: task for task in plan.tasks}
        self.rows: dict[str, dict[str, Any]] = {}
        self.workers, self.progress = workers, progress
        self.counts: Counter[str] = Counter()
        self.pace = Pace()
        self._left: float | None = None
        self._since = 0.0
        for row in rows.values():
            self.add(row)

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
        self.progress(CampaignProgress(len(self.tasks), counts, running, seconds))


class Cluster:
    """The workers of a Dask cluster while the `with` block runs."""

    def __init__(self, duty: Duty, address: str) -> None:
        self.duty, self.address = duty, address
        self._client: Any = None
        self._counted: tuple[float, int] = (0.0, 1)

    def __enter__(self) -> Self:
        try:
            from distributed import Client  # noqa: PLC0415 (an extra)
        except ImportError:
            raise OptionError(
                "a Dask cluster needs packages that are not installed; install the extra `cluster` (.venv/bin/pip "
                "install -e '.[cluster]' in the clone)"
            ) from None
        # The errors of this module name the cause; Dask's logs would repeat it.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        try:
            self._client = Client(self.address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError, ImportError) as error:
            raise OptionError(
                f"--scheduler {self.address}: cannot be reached ({type(error).__name__}); expected the address of a "
                "Dask scheduler that is running, such as tcp://127.0.0.1:8786"
            ) from None
        return self

    def __exit__(self, *error: object) -> None:
        # The scheduler or a worker may be gone by now; the campaign no longer needs them.
        if self._is_connected:
            with contextlib.suppress(Exception):
                self._client.run(end_idle, on_error="ignore")
        with contextlib.suppress(Exception):
            self._client.close(timeout=2)

    @property
    def size(self) -> int:
        """How many problems the cluster solves at once, as counted a moment ago."""
        if time.monotonic() - self._counted[0] > COUNT_SECONDS:
            count = self._counted[1]
            with contextlib.suppress(Exception):  # `run` reports a missing scheduler
                workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
                count = sum(worker["nthreads"] for worker in workers)
            self._counted = time.monotonic(), count
        return max(1, self._counted[1])

    @property
    def running(self) -> tuple[Hashable, ...]:
        """Empty: only the scheduler knows which problems run."""
        return ()

    def run(
        self, questions: Iterable[Asked], *, is_cancelled: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[Asked, ProcessOutcome] | None]:
        """Like `Pool.run`; if a worker dies, another one gets its problem.

        A problem that ends several workers is Failed (how many: `allowed-failures` of the scheduler).
        """
        ended: queue.Queue[Any] = queue.Queue()
        waiting: dict[Any, tuple[Asked, Any]] = {}
        mine = made_by()
        for asked in questions:
            # The same question to the same versions has the same name: a resumed campaign finds it in the cluster.
            name = sha256(repr((asked.question, asked.limits, self.duty, sorted(mine.items()))).encode()).hexdigest()
            key = f"steadygaze-{name[:12]}-{asked.key}"
            future = self._client.submit(
                solve_remotely, key, asked.question, asked.limits, self.duty, mine, key=key, retries=RETRIES
            )
            waiting[future.key] = asked, future  # a future that nobody holds is cancelled
            future.add_done_callback(ended.put)
        try:
            while waiting and not is_cancelled():
                try:
                    future = ended.get(timeout=4 * LOOK_SECONDS)
                except queue.Empty:
                    if not self._is_connected:
                        raise self._gone(None) from None
                    yield None
                    continue
                outcome = self._outcome(future)
                if outcome is None:
                    future.add_done_callback(ended.put)
                    continue
                yield waiting.pop(future.key)[0], outcome
        finally:
            if waiting and self._is_connected:
                self._client.cancel([future for _, future in waiting.values()])

    def _outcome(self, future: Any) -> ProcessOutcome | None:
        """How a problem ended; None if its outcome was lost with its worker and it is being solved again."""
        from distributed import KilledWorker  # noqa: PLC0415 (an extra)

        if future.status in ("cancelled", "lost"):
            raise self._gone(None)
        try:
            if future.status != "error":
                return future.result(timeout=FETCH_SECONDS)
            error = future.exception(timeout=FETCH_SECONDS)
        except TimeoutError:
            return None
        except Exception as problem:
            error = problem
        if isinstance(error, KilledWorker):
            return ProcessOutcome(End.FAILED, None, "the workers of the cluster that had this problem died", None, None)
        if isinstance(error, SteadygazeError):
            raise error
        if not self._is_connected:
            raise self._gone(error)
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise StoreError(f"a worker of the cluster failed ({text}); {GO_ON}")

    @property
    def _is_connected(self) -> bool:
        return self._client.status == "running"

    def _gone(self, error: BaseException | None) -> StoreError:
        reason = "" if error is None else f" ({type(error).__name__})"
        return StoreError(f"--scheduler {self.address}: the scheduler is gone{reason}; run again to continue")


def solve_remotely(
    key: str, question: Mapping[str, Any], limits: ProcessLimits, duty: Duty, expected: Mapping[str, str]
) -> ProcessOutcome:
    """Solve one problem inside a Dask worker, whose versions must be those of the campaign."""
    mine = made_by()
    other = [f"{name} {mine.get(name)} (not {value})" for name, value in expected.items() if mine.get(name) != value]
    if other:
        raise StoreError(f"a worker of the cluster has {', '.join(other)}; install the same there")
    from distributed import Reschedule  # noqa: PLC0415 (an extra)

    process = _ready_process(duty)
    try:
        while not process.give(question, limits):
            process = _ready_process(duty)
        while (outcome := process.look()) is None:
            wait([process.connection], timeout=LOOK_SECONDS)
            if not _is_wanted(key):
                raise Reschedule  # has no effect, unless the same problem was submitted again at this moment
    except BaseException:
        process.kill()
        raise
    if process.is_alive:
        with _idle_lock:
            _idle.append((duty, process))
    return outcome


def end_idle() -> None:
    """End the worker processes that wait for problems."""
    with _idle_lock:
        while _idle:
            _idle.pop()[1].kill()


def _ready_process(duty: Duty) -> WorkerProcess:
    """A process that is ready: one that waits, or a new one."""
    with _idle_lock:
        while _idle:
            former, process = _idle.pop()
            if former == duty and process.is_alive:
                return process
            process.kill()
    process = WorkerProcess(duty)
    try:
        while not process.look_ready():
            wait([process.connection], timeout=LOOK_SECONDS)
    except BaseException:
        process.kill()
        raise
    return process


def _is_wanted(key: str) -> bool:
    """Whether the scheduler still wants the answer: not after Ctrl-C or the end of the campaign."""
    from distributed import get_worker  # noqa: PLC0415 (an extra)

    try:
        known = get_worker().state.tasks.get(key)
    except (ValueError, AttributeError):
        return True
    return known is not None and known.state in ("executing", "long-running", "resumed")
