"""One worker process seen from its parent: it is started, given a question at a time, watched, and ended.

Time and memory are limited from outside, by killing it. What a question is, is not known here.
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ..errors import StoreError

CHILD = Path(__file__).with_name("child.py")
PREPARE_SECONDS = 1800.0
"""Preparing compiles everything once, on a busy machine in minutes."""
TAKE_SECONDS = 10.0
"""A process that waits takes a question in less than a millisecond; one that takes none for so long is lost."""
GO_ON = "mend that, and run again to go on"
SETTLE_SECONDS = 0.3
"""Whoever kills all processes of a campaign one by one may reach this one last: until then no death is believed."""
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


@dataclass(frozen=True)
class Duty:
    """What worker processes do: functions by `module:function`; `prepare` goes before all and is given `needs`."""

    solve: str
    prepare: str | None = None
    needs: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, solve: Callable[..., Any], prepare: Callable[..., Any] | None = None, needs: Sequence[str] = ()
    ) -> "Duty":
        """The duty for functions of modules, which another process can import."""
        return cls(_name(solve), None if prepare is None else _name(prepare), tuple(needs))


@dataclass(frozen=True)
class Limits:
    """What one question may use."""

    seconds: float
    memory_gib: float


class End(Enum):
    """How a question ended."""

    ANSWERED = "answered"
    TIMEOUT = "timeout"
    FAILED = "failed"


@dataclass(frozen=True)
class Outcome:
    """What became of one question: its `answer`, or the `reason` why there is none, and what it took, if known."""

    end: End
    answer: dict[str, Any] | None
    reason: str | None
    seconds: float | None
    peak_mib: float | None


class WorkerProcess:
    """A process that answers questions; call everything from one thread at a time.

    `connection` becomes readable when `look` has something to tell. A process that has died or was killed stays so.
    """

    def __init__(self, duty: Duty) -> None:
        self.is_ready = False
        self._started = time.monotonic()
        self._limits: Limits | None = None
        self._peak_mib = 0.0
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self.connection, other = Pipe()
        lifeline, self._lifeline = os.pipe()
        is_main = threading.current_thread() is threading.main_thread()
        words = [other.fileno(), lifeline, os.getpid(), int(is_main)]
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(CHILD), *(str(word) for word in words)],
                env=os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
                pass_fds=(other.fileno(), lifeline),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                start_new_session=True,  # Ctrl-C in a terminal is for the parent alone
            )
            os.close(lifeline)
        _send(self.connection, {"solve": duty.solve, "prepare": duty.prepare, "needs": duty.needs})

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can still be given a question."""
        return self._process.poll() is None

    def look_ready(self) -> bool:
        """Whether it is prepared; StoreError when it could not be, or takes far too long."""
        if not self.is_ready and (self.connection.poll() or not self.is_alive):
            if _receive(self.connection) is None:
                self._process.kill()
                self._process.wait()
                raise StoreError(f"a worker process ended before it was ready: {self._last_words()}; {GO_ON}")
            self.is_ready = True
        if not self.is_ready and time.monotonic() - self._started > PREPARE_SECONDS:
            raise StoreError(f"a worker process was not ready after {PREPARE_SECONDS:g} s; {GO_ON}")
        return self.is_ready

    def give(self, question: Mapping[str, Any], limits: Limits) -> bool:
        """Ask; the clock runs once the question is taken. False when nobody took it: the process has died waiting.

        Its being alive would not tell: the system calls a process alive until the last of its threads has ended.
        """
        _send(self.connection, question)
        is_taken = self.connection.poll(TAKE_SECONDS) and _receive(self.connection) is not None
        if is_taken:
            self._limits, self._started, self._peak_mib = limits, time.monotonic(), 0.0
        else:
            self.kill()
        return is_taken

    def look(self) -> Outcome | None:
        """What became of the question, or None while it is being answered within its limits."""
        limits = self._limits
        if limits is None:
            return None
        seconds = time.monotonic() - self._started
        if self.connection.poll():
            return self._ended(_receive(self.connection), limits, seconds)
        self._peak_mib = max(self._peak_mib, resident_mib(self.pid))
        if self._peak_mib > 1024.0 * limits.memory_gib:
            return self._stopped(End.FAILED, _memory_text(limits), seconds)
        if seconds > limits.seconds:
            return self._stopped(End.TIMEOUT, _time_text(limits), seconds)
        return None

    def kill(self) -> None:
        """End the process at once and give back what it held; may be called twice."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self._limits = None
        self.connection.close()
        self._said.close()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def _ended(self, message: dict[str, Any] | None, limits: Limits, seconds: float) -> Outcome:
        if message is None:
            code = self._process.wait()
            if code == -signal.SIGKILL:
                time.sleep(SETTLE_SECONDS)
            return self._stopped(End.FAILED, _death_text(code), seconds)
        self._limits = None
        peak = message["peak_mib"] if message["peak_mib"] is not None else self._peak_mib or None
        seconds = message["seconds"]
        # What the process measured counts, too, so that what lies between two looks is not a matter of luck.
        if peak is not None and peak > 1024.0 * limits.memory_gib:
            return Outcome(End.FAILED, None, _memory_text(limits), seconds, peak)
        if seconds > limits.seconds:
            return Outcome(End.TIMEOUT, None, _time_text(limits), seconds, peak)
        if "answer" not in message:
            return Outcome(End.FAILED, None, message["reason"], seconds, peak)
        return Outcome(End.ANSWERED, message["answer"], None, seconds, peak)

    def _stopped(self, end: End, reason: str, seconds: float) -> Outcome:
        self.kill()
        return Outcome(end, None, reason, seconds, self._peak_mib or None)

    def _last_words(self) -> str:
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.returncode}"


def resident_mib(pid: int) -> float:
    """Memory that a process holds now, in MiB; 0 where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _memory_text(limits: Limits) -> str:
    return f"memory limit of {limits.memory_gib:g} GiB"


def _time_text(limits: Limits) -> str:
    return f"time limit of {limits.seconds:g} s"


def _death_text(code: int) -> str:
    """Why a process ended by itself, in words that do not depend on the run.

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


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}:{function.__qualname__}"


def _send(connection: Connection, message: Mapping[str, Any]) -> None:
    # A process that has just died is noticed when its answer is looked for.
    with contextlib.suppress(OSError):
        connection.send_bytes(json.dumps(message).encode())


def _receive(connection: Connection) -> dict[str, Any] | None:
    """The next message; None from a process that has died."""
    try:
        return json.loads(connection.recv_bytes())
    except (EOFError, OSError):
        return None
