"""Several worker processes, each with one question at a time: questions in, outcomes out as they end.

Starts processes, replaces those that died, and ends them all. Stores nothing and prints nothing.
"""

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any, Self

from ..errors import StoreError
from .process import GO_ON, Duty, Limits, Outcome, WorkerProcess

LOOK_SECONDS = 0.05
"""How often limits are looked at; an answer is noticed at once."""
STARTS = 3
"""How often in a row a process may die before it is ready."""
RETRY_SECONDS = 1.0
"""Time that a system that could start no process is given."""


@dataclass(frozen=True)
class Asked:
    """A question with its limits, and a key to know it by."""

    key: Hashable
    question: Mapping[str, Any]
    limits: Limits


class Pool:
    """Worker processes that live until the `with` block ends.

    The first one prepares alone (what it compiles is kept on disk), the others follow when it is ready.
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
        for process in self._processes():
            process.kill()
        self._idle, self._starting, self._busy = [], [], {}

    @property
    def running(self) -> tuple[Hashable, ...]:
        """Keys of the questions that are being answered now."""
        return tuple(asked.key for asked in self._busy.values())

    @property
    def ready(self) -> tuple[int, ...]:
        """Numbers of the processes that answer, or could."""
        return tuple(process.pid for process in (*self._idle, *self._busy) if process.is_alive)

    def run(
        self, questions: Iterable[Asked], *, is_cancelled: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[Asked, Outcome] | None]:
        """Answer all questions, in any order; None is yielded now and then while nothing has ended.

        Ends early once `is_cancelled`; what was not yielded until then has not ended.
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
            # A death that came with the wish to stop may be part of it.
            if is_cancelled():
                return
            for process, outcome in ended:
                if outcome is not None:
                    asked = self._busy.pop(process)
                    self._idle += [process] if process.is_alive else []
                    yield asked, outcome
            yield None

    def _start(self, waiting: int) -> None:
        """Start processes for what waits; until one was ready, a single one."""
        size = self.size if self._was_ready else 1
        missing = min(size - len(self._processes()), waiting - len(self._idle) - len(self._starting))
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
                is_ready = process.look_ready()
            except StoreError as error:
                process.kill()
                self._starting.remove(process)
                self._failed(error)
                continue
            if is_ready:
                self._was_ready, self._failed_starts = True, 0
                self._starting.remove(process)
                self._idle.append(process)

    def _failed(self, error: StoreError) -> None:
        self._failed_starts += 1
        if self._failed_starts >= STARTS:
            raise error

    def _processes(self) -> list[WorkerProcess]:
        return [*self._idle, *self._starting, *self._busy]
