"""Ctrl-C and SIGTERM: the first asks the run to end with what it has, the second aborts it, the third kills it.

Turns signals into `budget.cancelled` and KeyboardInterrupt. Prints nothing: a handler may run in the middle of a write.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ..budget import Budget

ABORTED = 130
"""The exit code of shells for a program that Ctrl-C ended."""

_SHOW_CURSOR = b"\x1b[?25h"


@contextmanager
def stopping_on_signals(budget: Budget) -> Iterator[None]:
    """While inside, the first SIGINT or SIGTERM cancels the budget, and the second raises KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received = 0

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received == 1:
            budget.cancelled.set()
        elif received == 2:
            raise KeyboardInterrupt
        else:
            if sys.stderr.isatty():
                os.write(2, _SHOW_CURSOR)
            os._exit(ABORTED)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
