"""The progress of a run on stderr: share of the domain done, regions, rate, time left, and what follows.

Turns the engine's reports into one line that is redrawn and wiped at the end. Silent where stderr is not a terminal.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task
from rich.text import Text

from ..budget import Budget
from ..engines.refine.run_refinement import RefineProgress

READING = "reading (the first run compiles)"
MAPPING = "mapping"
REFINING = "refining"
SEARCHING = "searching"
CHECKING = "attention and self-checks"
WRITING = "storing and drawing"


class Display:
    """What a run tells while it goes on; every method may be called from any thread."""

    def report(self, area: float, regions: int) -> None:
        """The engine has mapped this share of the domain, into so many regions."""

    def advance(self, done: RefineProgress) -> None:
        """A refinement has decided this share of the domain; so many boxes are open."""

    def count(self, visited: int) -> None:
        """A search has visited so many regions; how many there are is not known."""

    def say_writing(self) -> None:
        """The result is there and is being written."""


@contextmanager
def showing_progress(budget: Budget, *, is_wanted: bool) -> Iterator[Display]:
    """Show the progress of a run; where nobody looks, nothing happens."""
    if not is_wanted or not sys.stderr.isatty():
        yield Display()
        return
    columns = (SpinnerColumn(), StateColumn(budget), _Bar(bar_width=24), _Numbers())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield _LiveDisplay(progress)


class _LiveDisplay(Display):
    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.started = 0.0
        self.task = progress.add_task(READING, total=1.0, regions=0, seconds=0.0, open=0)

    def report(self, area: float, regions: int) -> None:
        self._update(MAPPING if area < 1.0 - 1e-9 else CHECKING, area, regions)

    def advance(self, done: RefineProgress) -> None:
        self.progress.update(self.task, open=done.open)
        self._update(REFINING, done.share, done.regions)

    def count(self, visited: int) -> None:
        self._update(SEARCHING, 0.0, visited)

    def _update(self, state: str, area: float, regions: int) -> None:
        # The time before the first report went into reading and compiling, and says nothing about the rate.
        now = time.monotonic()
        self.started = self.started or now
        self.progress.update(self.task, description=state, completed=area, regions=regions, seconds=now - self.started)

    def say_writing(self) -> None:
        self.progress.update(self.task, description=WRITING)


class StateColumn(ProgressColumn):
    """What is going on now, or that it is being stopped."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self.budget = budget

    def render(self, task: Task) -> Text:
        """The task's description, until it is cancelled."""
        if self.budget.cancelled.is_set():
            return Text("stopping (Ctrl-C again aborts)", style="yellow")
        return Text(task.description)


class _Bar(BarColumn):
    """The share of the domain as a bar; only while it grows."""

    def render(self, task: Task) -> Text:  # type: ignore[override]
        is_growing = task.description in (MAPPING, REFINING)
        return super().render(task) if is_growing else Text("")  # type: ignore[return-value]


class _Numbers(ProgressColumn):
    """Share, regions, rate and time left; only what is known."""

    def render(self, task: Task) -> Text:
        regions, seconds = task.fields["regions"], task.fields["seconds"]
        if task.description == READING:
            return Text("")
        if task.description == REFINING:
            exact = [f"{regions:,} regions"] if regions else []
            return Text(", ".join([f"{task.percentage:.2f} % proved", f"{task.fields['open']:,} boxes open", *exact]))
        if task.description not in (MAPPING, SEARCHING):
            return Text(f"{regions:,} regions")
        if task.description == SEARCHING:
            rate = [f"{regions / seconds:,.0f}/s"] if seconds > 0.2 else []
            return Text(", ".join([f"{regions:,} regions visited", *rate]))
        parts = [f"{task.percentage:.1f} %", f"{regions:,} regions"]
        if seconds > 0.2 and task.completed > 0.0:
            left = timedelta(seconds=round(seconds * (1.0 - task.completed) / task.completed))
            parts += [f"{regions / seconds:,.0f}/s", f"{left} left"]
        return Text(", ".join(parts))
