"""How long a campaign will take: from the seconds of the problems that have ended to the time that is left."""

from collections.abc import Hashable, Iterable
from statistics import fmean

from .plan import Task


class Pace:
    """Mean seconds of problems of the same kind, where some have ended; else of less and less similar ones."""

    def __init__(self) -> None:
        self._seconds: dict[Hashable, list[float]] = {}

    def add(self, task: Task, seconds: float | None) -> None:
        """A problem has ended after so long, if that is known."""
        if seconds is None:
            return
        for kind in _kinds(task):
            self._seconds.setdefault(kind, []).append(seconds)

    def seconds_left(self, tasks: Iterable[Task], workers: int) -> float | None:
        """Seconds that these problems will take on so many workers; None while nothing is known.

        >>> Pace().seconds_left([], 2) is None
        True
        """
        if not self._seconds:
            return None
        means = {kind: fmean(values) for kind, values in self._seconds.items()}
        total = sum(next(means[kind] for kind in _kinds(task) if kind in means) for task in tasks)
        return total / max(1, workers)


def _kinds(task: Task) -> tuple[Hashable, ...]:
    """From the most similar problems to all of them."""
    return (
        (task.algorithm, task.model, task.combination),
        (task.algorithm, task.model),
        task.model,
        task.algorithm,
        None,
    )
