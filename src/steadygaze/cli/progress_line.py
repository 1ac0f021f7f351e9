"""The progress line of a terminal: a spinner, the current step, a bar, and numbers."""

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task
from rich.table import Column
from rich.text import Text

from ..budget import Budget
from ..compiling.kernel import is_compiling

COMPILING = "compiling loops (in the first run only)"


def progress_line(budget: Budget, *, growing: Sequence[str], phases: Mapping[str, str] | None = None) -> Progress:
    """A line on stderr that is redrawn, and wiped at the end.

    `growing` are the states with a bar; in one of the `phases` of a run, its words replace the last report.
    """
    now = _Now(budget, phases or {})
    columns = (SpinnerColumn(), _State(now), _Bar(now, growing), _Text(now, table_column=Column(no_wrap=True)))
    return Progress(*columns, console=Console(stderr=True), transient=True)


class _Now:
    """The current phase of a run in words, or None if its own reports say more."""

    def __init__(self, budget: Budget, phases: Mapping[str, str]) -> None:
        self.budget, self.phases = budget, phases

    @property
    def phase(self) -> str | None:
        return self.phases.get(self.budget.clock.current)


class _State(ProgressColumn):
    """The current step, that loops are being compiled, or that the run is being stopped."""

    def __init__(self, now: _Now) -> None:
        super().__init__()
        self.now = now

    def render(self, task: Task) -> Text:
        if self.now.budget.cancelled.is_set():
            return Text("stopping (Ctrl-C again aborts)", style="yellow")
        return Text(COMPILING if is_compiling() else self.now.phase or task.description)


class _Bar(BarColumn):
    """The finished share as a bar, shown only while it grows."""

    def __init__(self, now: _Now, growing: Sequence[str]) -> None:
        super().__init__(bar_width=16)
        self.now, self.growing = now, growing

    def render(self, task: Task) -> Text:  # type: ignore[override]
        is_growing = self.now.phase is None and task.description in self.growing
        return super().render(task) if is_growing else Text("")  # type: ignore[return-value]


class _Text(ProgressColumn):
    """The numbers of the last report, and the time until the limit if they do not say how much is left."""

    def __init__(self, now: _Now, *, table_column: Column) -> None:
        super().__init__(table_column)
        self.now = now

    def render(self, task: Task) -> Text:
        words = [task.fields["text"]] if self.now.phase is None else []
        left = self.now.budget.seconds_left()
        if math.isfinite(left) and not (words and task.fields["tells_time"]):
            words.append(f"{timedelta(seconds=round(left))} until the time limit")
        return Text(", ".join(words))
