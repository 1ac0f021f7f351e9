"""Worker processes of this machine, each with one question at a time: questions in, outcomes out as they end.

Starts processes, kills those that exceed their time or memory, replaces those that died, and ends them all. Does not
interpret questions. Stores nothing and prints nothing.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Self

from ..errors import StoreError

SCRIPT = Path(__file__).with_name("worker_script.py")
PREPARE_SECONDS = 1800.0  # preparing compiles everything once, which takes minutes on a busy machine
TAKE_SECONDS = 10.0
"""A waiting process receives a question within a millisecond; after this time it counts as lost."""
SETTLE_SECONDS = 0.3
"""A user who kills all processes of a campaign may reach this one last: wait this long before believing a death."""
LOOK_SECONDS = 0.05  # time between two checks of the limits; an answer is noticed at once
STARTS = 3  # processes in a row that may die before they are ready
RETRY_SECONDS = 1.0  # pause after the system could start no process
GO_ON = "fix this and run again to continue"
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


@dataclass(frozen=True)
class Duty:
    """The work of worker processes: functions by `module:function`; `prepare` runs first, with `needs`."""

    solve: str
    prepare: str | None = None
    needs: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, solve: Callable[..., Any], prepare: Callable[..., Any] | None = None, needs: Sequence[str] = ()
    ) -> "Duty":
        """The duty for functions of importable modules."""
        first, second = (each and f"{each.__module__}:{each.__qualname__}" for each in (solve, prepare))
        return cls(str(first), second, tuple(needs))


@dataclass(frozen=True)
class ProcessLimits:
    """The limits of one question."""

    seconds: float
    memory_gib: float


class End(Enum):
    """How a question ended."""

    ANSWERED = "answered"
    TIMEOUT = "timeout"
    FAILED = "failed"


@dataclass(frozen=True)
class ProcessOutcome:
    """How one question ended: its `answer`, or the `reason` for none; time and memory, if known."""

    end: End
    answer: dict[str, Any] | None
    reason: str | None
    seconds: float | None
    peak_mib: float | None


@dataclass(frozen=True)
class Asked:
    """A question with its key and limits."""

    key: Hashable
    question: Mapping[str, Any]
    limits: ProcessLimits


class WorkerProcess:
    """A process that answers questions; call everything from one thread at a time.

    `connection` becomes readable when `look` has news. A process that has died or was killed stays dead.
    """

    def __init__(self, duty: Duty) -> None:
        self.is_ready = False
        self._started = time.monotonic()
        self._limits: ProcessLimits | None = None
        self._peak_mib = 0.0
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self.connection, other = Pipe()
        lifeline, self._lifeline = os.pipe()
        is_main = threading.current_thread() is threading.main_thread()
        words = [other.fileno(), lifeline, os.getpid(), int(is_main)]
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(SCRIPT), *(str(word) for word in words)],
                env=os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
                pass_fds=(other.fileno(), lifeline),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                start_new_session=True,  # Ctrl-C in a terminal is for the parent alone
            )
            os.close(lifeline)
        self.pid = self._process.pid
        _send(self.connection, {"solve": duty.solve, "prepare": duty.prepare, "needs": duty.needs})

    @property
    def is_alive(self) -> bool:
        """Whether the process can still answer a question."""
        return self._process.poll() is None

    def look_ready(self) -> bool:
        """Whether the process is prepared; StoreError if that failed or takes too long."""
        if not self.is_ready and (self.connection.poll() or not self.is_alive):
            if _receive(self.connection) is None:
                self._process.kill()
                self._process.wait()
                raise StoreError(f"a worker process ended before it was ready: {self._last_words()}; {GO_ON}")
            self.is_ready = True
        if not self.is_ready and time.monotonic() - self._started > PREPARE_SECONDS:
            raise StoreError(f"a worker process was not ready after {PREPARE_SECONDS:g} s; {GO_ON}")
        return self.is_ready

    def give(self, question: Mapping[str, Any], limits: ProcessLimits) -> bool:
        """Send a question; the clock starts when the process receives it. False if the process died while waiting.

        `is_alive` does not show that: the system calls a process alive until the last of its threads has ended.
        """
        _send(self.connection, question)
        is_taken = self.connection.poll(TAKE_SECONDS) and _receive(self.connection) is not None
        if is_taken:
            self._limits, self._started, self._peak_mib = limits, time.monotonic(), 0.0
        else:
            self.kill()
        return is_taken

    def look(self) -> ProcessOutcome | None:
        """How the question ended, or None while it is being answered within its limits."""
        limits = self._limits
        if limits is None:
            return None
        seconds = time.monotonic() - self._started
        if not self.connection.poll():
            self._peak_mib = max(self._peak_mib, resident_mib(self.pid))
            exceeded = _exceeded(limits, seconds, self._peak_mib)
            return None if exceeded is None else self._stopped(*exceeded, seconds)
        message = _receive(self.connection)
        if message is None:
            code = self._process.wait()
            if code == -signal.SIGKILL:
                time.sleep(SETTLE_SECONDS)
            return self._stopped(End.FAILED, _death_text(code), seconds)
        self._limits = None
        measured = message["seconds"], message["peak_mib"] or self._peak_mib or None
        # The limits also hold for the measurements of the process, which catch an excess between two checks.
        exceeded = _exceeded(limits, *measured)
        if exceeded is not None:
            return ProcessOutcome(exceeded[0], None, exceeded[1], *measured)
        if "answer" not in message:
            return ProcessOutcome(End.FAILED, None, message["reason"], *measured)
        return ProcessOutcome(End.ANSWERED, message["answer"], None, *measured)

    def kill(self) -> None:
        """End the process at once and free its resources; may be called twice."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self._limits = None
        self.connection.close()
        self._said.close()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def _stopped(self, end: End, reason: str, seconds: float) -> ProcessOutcome:
        self.kill()
        return ProcessOutcome(end, None, reason, seconds, self._peak_mib or None)

    def _last_words(self) -> str:
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.returncode}"


class Pool:
    """Worker processes that live until the `with` block ends.

    The first one prepares alone (compiled code stays on disk), the others follow when it is ready.
    """

    def __init__(self, duty: Duty, *, workers: int) -> None:
        self.duty, self.size = duty, workers
        self._idle: list[WorkerProcess] = []
        self._starting: list[WorkerProcess] = []
        self._busy: dict[WorkerProcess, Asked] = {}
        self._failed_starts = 0
        self._was_ready = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for process in (*self._idle, *self._starting, *self._busy):
            process.kill()
        self._idle, self._starting, self._busy = [], [], {}

    @property
    def running(self) -> tuple[Hashable, ...]:
        """Keys of the questions that are being answered now."""
        return tuple(asked.key for asked in self._busy.values())

    @property
    def ready(self) -> tuple[int, ...]:
        """The ids of the processes that are alive."""
        return tuple(process.pid for process in (*self._idle, *self._busy) if process.is_alive)

    def run(
        self, questions: Iterable[Asked], *, is_cancelled: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[Asked, ProcessOutcome] | None]:
        """Answer all questions, in any order; yields None now and then while nothing has ended.

        Ends early once `is_cancelled`; a question not yielded by then has not ended.
        """
        waiting = deque(questions)
        while (waiting or self._busy) and not is_cancelled():
            self._start(len(waiting))
            while waiting and self._idle:
                process = self._idle.pop()
                if process.give(waiting[0].question, waiting[0].limits):
                    self._busy[process] = waiting.popleft()
            wait([process.connection for process in (*self._busy, *self._starting)], timeout=LOOK_SECONDS)
            self._look_at_starting()
            ended = [(process, process.look()) for process in self._busy]
            # A death that coincides with a cancellation may be part of it.
            if is_cancelled():
                return
            for process, outcome in ended:
                if outcome is not None:
                    asked = self._busy.pop(process)
                    self._idle += [process] if process.is_alive else []
                    yield asked, outcome
            yield None

    def _start(self, waiting: int) -> None:
        """Start processes for the questions that wait; only one until it is ready."""
        size = self.size if self._was_ready else 1
        free = len(self._idle) + len(self._starting)
        missing = min(size - len(self._busy), waiting) - free
        for _ in range(missing):
            try:
                self._starting.append(WorkerProcess(self.duty))
            except OSError as error:  # no memory, no processes, or no room for temporary files, perhaps for a moment
                self._failed(StoreError(f"a worker process cannot be started ({error.strerror}); {GO_ON}"))
                time.sleep(RETRY_SECONDS)
                return

    def _look_at_starting(self) -> None:
        for process in list(self._starting):
            try:
                if not process.look_ready():
                    continue
            except StoreError as error:
                process.kill()
                self._starting.remove(process)
                self._failed(error)
                continue
            self._was_ready, self._failed_starts = True, 0
            self._starting.remove(process)
            self._idle.append(process)

    def _failed(self, error: StoreError) -> None:
        self._failed_starts += 1
        if self._failed_starts >= STARTS:
            raise error


def resident_mib(pid: int) -> float:
    """Memory that a process holds now, in MiB; 0 if unknown."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _exceeded(limits: ProcessLimits, seconds: float, peak_mib: float | None) -> tuple[End, str] | None:
    if peak_mib is not None and peak_mib > 1024.0 * limits.memory_gib:
        return End.FAILED, f"memory limit of {limits.memory_gib:g} GiB"
    if seconds > limits.seconds:
        return End.TIMEOUT, f"time limit of {limits.seconds:g} s"
    return None


def _death_text(code: int) -> str:
    """The reason why a process ended, in words that do not depend on the run.

    >>> _death_text(-11), _death_text(3)
    ('the process was ended by SIGSEGV', 'the process ended with exit code 3')
    """
    if code >= 0:
        return f"the process ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    guess = ", as the system does when memory runs out" if name == "SIGKILL" else ""
    return f"the process was ended by {name}{guess}"


def _send(connection: Connection, message: Mapping[str, Any]) -> None:
    # The wait for its answer notices a process that has just died.
    with contextlib.suppress(OSError):
        connection.send_bytes(json.dumps(message).encode())


def _receive(connection: Connection) -> dict[str, Any] | None:
    """The next message; None from a process that has died."""
    try:
        return json.loads(connection.recv_bytes())
    except (EOFError, OSError):
        return None
