"""The progress line of a terminal: a spinner, the current step, a bar, and numbers."""

from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task
from rich.table import Column
from rich.text import Text

from ..budget import Budget


def progress_line(budget: Budget, *, growing: Sequence[str]) -> Progress:
    """A line on stderr that is redrawn, and wiped at the end; `growing` are the states with a bar."""
    columns = (SpinnerColumn(), _State(budget), _Bar(growing), _Text(table_column=Column(no_wrap=True)))
    return Progress(*columns, console=Console(stderr=True), transient=True)


class _State(ProgressColumn):
    """The current step, or that the run is being stopped."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self.budget = budget

    def render(self, task: Task) -> Text:
        if self.budget.cancelled.is_set():
            return Text("stopping (Ctrl-C again aborts)", style="yellow")
        return Text(task.description)


class _Bar(BarColumn):
    """The finished share as a bar, shown only while it grows."""

    def __init__(self, growing: Sequence[str]) -> None:
        super().__init__(bar_width=16)
        self.growing = growing

    def render(self, task: Task) -> Text:  # type: ignore[override]
        return super().render(task) if task.description in self.growing else Text("")  # type: ignore[return-value]


class _Text(ProgressColumn):
    """The numbers of the last report."""

    def render(self, task: Task) -> Text:
        return Text(task.fields["text"])
