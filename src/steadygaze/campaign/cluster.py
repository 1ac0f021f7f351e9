"""Problems on a Dask cluster: questions in, outcomes out as they end, as `pool` does on one machine.

A Dask worker solves a problem in a worker process of its own, with the same limits from outside as everywhere, so that
a problem that crashes does not take the Dask worker down. Needs the extra `cluster`.
"""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from hashlib import sha256
from multiprocessing.connection import wait
from typing import Any, Self

from ..errors import OptionError, SteadygazeError, StoreError
from .origin import made_by
from .pool import LOOK_SECONDS, Asked
from .process import GO_ON, Duty, End, Limits, Outcome, WorkerProcess

CONNECT_SECONDS = 15
FETCH_SECONDS = 3
"""For an answer that a worker has; one that died with its worker takes longer."""
RETRIES = 2
"""How often a problem is given out again when a worker could not even begin with it."""
COUNT_SECONDS = 2.0
"""How often the workers of the cluster are counted."""

_idle: list[tuple[Duty, WorkerProcess]] = []
_idle_lock = threading.Lock()


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
                "a Dask cluster needs more packages; install them: pip install 'steadygaze[cluster]'"
            ) from None
        # What goes wrong is told once, by us.
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
        # The scheduler, or a worker, may be gone at any moment: the campaign has what it needs.
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
            with contextlib.suppress(Exception):  # a scheduler that is gone is told elsewhere
                workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
                count = sum(worker["nthreads"] for worker in workers)
            self._counted = time.monotonic(), count
        return max(1, self._counted[1])

    @property
    def running(self) -> tuple[Hashable, ...]:
        """Which problems run is known to the scheduler alone."""
        return ()

    def run(
        self, questions: Iterable[Asked], *, is_cancelled: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[Asked, Outcome] | None]:
        """As `Pool.run`; a worker that dies is survived, and its problem given to another.

        A problem that takes several workers with it is Failed (how many: `allowed-failures` of the scheduler).
        """
        ended: queue.Queue[Any] = queue.Queue()
        waiting: dict[Any, tuple[Asked, Any]] = {}
        mine = made_by()
        for asked in questions:
            key = f"steadygaze-{_digest(asked, self.duty, mine)}-{asked.key}"
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

    def _outcome(self, future: Any) -> Outcome | None:
        """What became of a problem; None where that went down with its worker, and it is being solved again."""
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
            return Outcome(End.FAILED, None, "the workers of the cluster that had this problem died", None, None)
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
        what = "" if error is None else f" ({type(error).__name__})"
        return StoreError(f"--scheduler {self.address}: the scheduler is gone{what}; run again to go on")


def solve_remotely(
    key: str, question: Mapping[str, Any], limits: Limits, duty: Duty, expected: Mapping[str, str]
) -> Outcome:
    """Solve one problem; called inside a Dask worker, whose versions must be those of the campaign."""
    mine = made_by()
    other = [f"{name} {mine.get(name)} (not {value})" for name, value in expected.items() if mine.get(name) != value]
    if other:
        raise StoreError(f"a worker of the cluster has {', '.join(other)}; install the same there")
    from distributed import Reschedule  # noqa: PLC0415 (an extra)

    is_wanted = _asker(key)
    process = _take(duty)
    try:
        while not process.give(question, limits):
            process = _take(duty)
        while True:
            wait([process.connection], timeout=LOOK_SECONDS)
            outcome = process.look()
            if outcome is not None:
                break
            if not is_wanted():
                process.kill()
                raise Reschedule  # nobody hears it, unless the same problem was asked for again this very moment
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
        for _, process in _idle:
            process.kill()
        _idle.clear()


def _take(duty: Duty) -> WorkerProcess:
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


def _asker(key: str) -> Callable[[], bool]:
    """Whether the scheduler still wants the answer: after Ctrl-C, or the end of the campaign's process, it does not."""
    from distributed import get_worker  # noqa: PLC0415 (an extra)

    try:
        tasks = get_worker().state.tasks
    except (ValueError, AttributeError):
        return lambda: True

    def is_wanted() -> bool:
        known = tasks.get(key)
        return known is not None and known.state in ("executing", "long-running", "resumed")

    return is_wanted


def _digest(asked: Asked, duty: Duty, made: Mapping[str, str]) -> str:
    """The same for the same question to the same make: a campaign that goes on finds what is being solved for it."""
    return sha256(repr((asked.question, asked.limits, duty, sorted(made.items()))).encode()).hexdigest()[:12]
