"""The progress of a run on stderr, and the effect of Ctrl-C and SIGTERM.

Turns the reports of engines and campaigns into one line that is redrawn and wiped at the end, and signals into
`budget.cancelled` and KeyboardInterrupt. If stderr is not a terminal, a campaign prints a plain line now and then.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import TYPE_CHECKING

from ..budget import Budget
from ..engines.contract import Progress as RunProgress
from ..words import counted, share_text
from . import ABORTED

if TYPE_CHECKING:
    from rich.progress import Progress

    from ..campaign.run import CampaignProgress

PHASES = {
    "read": "reading (the first run compiles)",
    "check model": "checking the model",
    "plan": "planning",
    "prepare": "preparing",
    "falsify": "looking for violations",
    "attention": "measuring attention",
    "labels": "labelling",
    "self-check": "self-check",
    "summary": "summary",
    "pictures": "drawing",
    "store": "storing",
}
"""Words for the phases of a run that report no progress of their own."""

MAPPING = "mapping"
REFINING = "refining"
SEARCHING = "searching"
STARTING = "starting workers (the first run compiles)"
SOLVING = "solving"
REPORTING = "full reports"

LINE_SECONDS = 10.0
"""Time between two plain lines."""

SETTLED, SMALLEST_SHARE = 0.2, 1e-6
"""The seconds and the finished share after which speeds mean something."""

_SHOW_CURSOR = b"\x1b[?25h"


@contextmanager
def stopping_on_signals(budget: Budget) -> Iterator[None]:
    """The first SIGINT or SIGTERM cancels the budget, the second raises KeyboardInterrupt, the third kills the process.

    Prints nothing: a handler may run in the middle of a write.
    """
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


class Display:
    """The progress of one run; every method may be called from any thread. Without a terminal it shows nothing."""

    def __init__(self, progress: "Progress | None" = None) -> None:
        self.progress = progress
        self.started = 0.0
        if progress is not None:
            self.task = progress.add_task(PHASES["read"], total=1.0, text="", tells_time=False)

    def advance(self, done: RunProgress) -> None:
        """Show the progress of an engine."""
        if done.share is None:
            self._count(done.regions)
        elif done.boxes is None:
            self._report(done.share, done.regions)
        else:
            exact = [counted(done.regions, "region")] if done.regions else []
            share = min(done.share, 1.0)  # sums of shares carry rounding errors
            texts = f"{share_text(share)} proved", f"{done.open:,} boxes open", *exact
            # Large boxes are decided first, so the rest takes longer.
            self._show(REFINING, share, *texts, left=self._left(share, "at least "))

    def _report(self, area: float, regions: int) -> None:
        """A map covers this share of the domain with this many regions."""
        self._show(
            MAPPING, area, share_text(area), counted(regions, "region"), *self._rate(regions), left=self._left(area)
        )

    def _count(self, visited: int) -> None:
        """A search has visited this many regions of an unknown number."""
        self._show(SEARCHING, 0.0, f"{counted(visited, 'region')} visited", *self._rate(visited))

    def _rate(self, regions: int) -> list[str]:
        seconds = self._seconds()
        return [f"{regions / seconds:,.0f}/s"] if seconds > SETTLED else []

    def _left(self, share: float, prefix: str = "") -> str:
        """The time that the rest takes at the speed so far; nothing if that is not known yet."""
        seconds = self._seconds()
        if seconds <= SETTLED or share < SMALLEST_SHARE:
            return ""
        return f"{prefix}{timedelta(seconds=round(seconds * (1.0 - share) / share))} left"

    def _seconds(self) -> float:
        """The time since the first report: it excludes reading and compiling, which say nothing about the rate."""
        now = time.monotonic()
        self.started = self.started or now
        return now - self.started

    def _show(self, state: str, share: float, *texts: str, left: str = "") -> None:
        if self.progress is not None:
            text = ", ".join([*texts, left] if left else texts)
            self.progress.update(self.task, description=state, completed=share, text=text, tells_time=bool(left))


@contextmanager
def showing_progress(budget: Budget, *, is_wanted: bool) -> Iterator[Display]:
    """Show the progress of a run if it is wanted and stderr is a terminal."""
    if is_wanted and sys.stderr.isatty():
        from .progress_line import progress_line  # noqa: PLC0415 (only terminals need it)

        with progress_line(budget, growing=(MAPPING, REFINING), phases=PHASES) as progress:
            yield Display(progress)
    else:
        yield Display()


@contextmanager
def showing_campaign(budget: Budget, *, is_wanted: bool) -> "Iterator[Callable[[CampaignProgress], None]]":
    """Show the progress of a campaign; yields the function that receives its reports."""
    if not is_wanted:
        yield lambda advance: None
    elif not sys.stderr.isatty():
        yield _PlainLines().tell
    else:
        from .progress_line import progress_line  # noqa: PLC0415 (only terminals need it)

        with progress_line(budget, growing=(STARTING, SOLVING)) as progress:
            task = progress.add_task(STARTING, total=1.0, text="", tells_time=True)

            def tell(now: "CampaignProgress") -> None:
                state, text = SOLVING if now.running or now.done else STARTING, describe_advance(now)
                progress.update(task, description=state, completed=now.done, total=now.total, text=text)

            yield tell


@contextmanager
def showing_reports(*, is_wanted: bool) -> "Iterator[Callable[[int, int, str], None]]":
    """Show which full report of a campaign is made; yields the function that receives the advance."""
    if not is_wanted:
        yield lambda done, total, name: None
    elif not sys.stderr.isatty():
        yield _ReportLines().tell
    else:
        from .progress_line import progress_line  # noqa: PLC0415 (only terminals need it)

        with progress_line(Budget(), growing=(REPORTING,)) as progress:
            task = progress.add_task(REPORTING, total=1.0, text="", tells_time=True)

            def tell(done: int, total: int, name: str) -> None:
                progress.update(task, completed=done, total=total, text=f"{done + 1:,} of {total:,}: {name}")

            yield tell


def describe_advance(advance: "CampaignProgress") -> str:
    """The progress of a campaign in one line.

    >>> from steadygaze.campaign.run import CampaignProgress
    >>> describe_advance(CampaignProgress(300, {"Robust": 2, "NotRobust": 5, "Timeout": 1}, (), 250.4))
    '8 of 300 problems, 0:04:10 left, 2 Robust, 5 NotRobust, 1 Timeout'
    """
    parts = [f"{advance.done:,} of {advance.total:,} problems"]
    if advance.seconds_left is not None and advance.done < advance.total:
        parts.append(f"{timedelta(seconds=round(advance.seconds_left))} left")
    return ", ".join([*parts, *(f"{count:,} {status}" for status, count in advance.counts.items() if count)])


class _PlainLines:
    """Plain lines: the first report, one every few seconds, and the last."""

    def __init__(self) -> None:
        self.last = 0.0
        self.told = -1

    def tell(self, advance: "CampaignProgress") -> None:
        now = time.monotonic()
        is_due = now - self.last >= LINE_SECONDS or advance.done == advance.total
        if advance.done != self.told and (is_due or self.told < 0):
            self.last, self.told = now, advance.done
            start = "" if advance.running or advance.done else f"; {STARTING}"
            print(f"{describe_advance(advance)}{start}", file=sys.stderr, flush=True)


class _ReportLines:
    """Plain lines for full reports: the first one, and one every few seconds."""

    def __init__(self) -> None:
        self.last = -LINE_SECONDS

    def tell(self, done: int, total: int, name: str) -> None:
        now = time.monotonic()
        if now - self.last >= LINE_SECONDS:
            self.last = now
            print(f"full report {done + 1:,} of {total:,}: {name}", file=sys.stderr, flush=True)
