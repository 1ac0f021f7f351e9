"""The progress of a campaign on stderr: problems that ended, how, and the time left.

A line that is redrawn and wiped at the end on a terminal; elsewhere a plain line now and then.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task
from rich.table import Column
from rich.text import Text

from ..budget import Budget
from ..campaign.run import CampaignProgress
from .progress import StateColumn

LINE_SECONDS = 10.0
"""Time between two plain lines."""
STARTING = "starting workers (the first run compiles)"


@contextmanager
def showing_campaign(budget: Budget, *, is_wanted: bool) -> Iterator[Callable[[CampaignProgress], None]]:
    """Show how far a campaign is; gives the function to be told."""
    if not is_wanted:
        yield lambda advance: None
        return
    if not sys.stderr.isatty():
        yield _Lines().tell
        return
    numbers = _Numbers(table_column=Column(no_wrap=True))
    columns = (SpinnerColumn(), StateColumn(budget), BarColumn(bar_width=16), numbers)
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(STARTING, total=1.0, told=None)

        def tell(now: CampaignProgress) -> None:
            state = "solving" if now.running or now.done else STARTING
            progress.update(task, description=state, completed=now.done, total=now.total, told=now)

        yield tell


def describe_advance(advance: CampaignProgress) -> str:
    """How far a campaign is, in one line.

    >>> describe_advance(CampaignProgress(300, {"Robust": 2, "NotRobust": 5, "Timeout": 1}, (), 250.4))
    '8 of 300 problems, 0:04:10 left, 2 Robust, 5 NotRobust, 1 Timeout'
    """
    parts = [f"{advance.done:,} of {advance.total:,} problems"]
    if advance.seconds_left is not None and advance.done < advance.total:
        parts.append(f"{timedelta(seconds=round(advance.seconds_left))} left")
    return ", ".join([*parts, *(f"{count:,} {status}" for status, count in advance.counts.items() if count)])


class _Lines:
    """Plain lines: the first report, one every few seconds, and the last."""

    def __init__(self) -> None:
        self.last = 0.0
        self.told = -1

    def tell(self, advance: CampaignProgress) -> None:
        now = time.monotonic()
        is_due = now - self.last >= LINE_SECONDS or advance.done == advance.total
        if advance.done != self.told and (is_due or self.told < 0):
            self.last, self.told = now, advance.done
            print(describe_advance(advance), file=sys.stderr, flush=True)


class _Numbers(ProgressColumn):
    """Problems that ended, and the time left."""

    def render(self, task: Task) -> Text:
        told = task.fields.get("told")
        return Text("" if told is None else describe_advance(told))
