"""The progress of a run on stderr: share of the domain done, regions, rate, time left.

Turns the engine's reports into one line that is redrawn and wiped at the end. Silent where stderr is not a terminal.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from ..budget import Budget
from ..regions.subdivide import Progress as Report


@contextmanager
def showing_progress(budget: Budget, *, is_wanted: bool) -> Iterator[Report | None]:
    """Give the callback that the engine reports to, or None where nothing is shown."""
    if not is_wanted or not sys.stderr.isatty():
        yield None
        return
    columns = (
        SpinnerColumn(),
        _State(budget),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:.1f} %"),
        _Regions(),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=1.0, regions=0, first=None)

        def report(area: float, regions: int) -> None:
            # The rate is that of the engine: it does not count the time before the first report.
            first = progress.tasks[task].fields["first"] or (time.monotonic(), regions)
            progress.update(task, completed=min(area, 1.0), regions=regions, first=first)

        yield report


class _State(ProgressColumn):
    """What is going on now."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self.budget = budget

    def render(self, task: Task) -> Text:
        if self.budget.cancelled.is_set():
            return Text("stopping (Ctrl-C again aborts)", style="yellow")
        if task.fields["first"] is None:
            return Text("reading (the first run compiles)")
        return Text("attention and self-checks" if task.percentage >= 100.0 - 1e-7 else "mapping")


class _Regions(ProgressColumn):
    """Regions so far and regions a second."""

    def render(self, task: Task) -> Text:
        regions, first = task.fields["regions"], task.fields["first"]
        if first is None:
            return Text("")
        seconds = time.monotonic() - first[0]
        rate = f", {(regions - first[1]) / seconds:,.0f}/s" if seconds > 0.2 and task.percentage < 100.0 - 1e-7 else ""
        return Text(f"{regions:,} regions{rate}")
