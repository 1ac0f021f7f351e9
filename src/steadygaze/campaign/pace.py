"""How long a campaign will take: from the seconds of the problems that have ended to the time that is left."""

from collections.abc import Hashable, Iterable

from .plan import Task


class Pace:
    """Mean seconds of problems of the same kind, where some have ended; else of less and less similar ones."""

    def __init__(self) -> None:
        self._seconds: dict[Hashable, tuple[float, int]] = {}

    def add(self, task: Task, seconds: float | None) -> None:
        """A problem has ended after so long, if that is known."""
        if seconds is None:
            return
        for kind in _kinds(task):
            total, count = self._seconds.get(kind, (0.0, 0))
            self._seconds[kind] = total + seconds, count + 1

    def seconds_left(self, tasks: Iterable[Task], workers: int) -> float | None:
        """Seconds that these problems will take on so many workers; None while nothing is known.

        At least as long as the longest of them, which no number of workers makes shorter.

        >>> Pace().seconds_left([], 2) is None
        True
        """
        if not self._seconds:
            return None
        means = {kind: total / count for kind, (total, count) in self._seconds.items()}
        expected = [next(means[kind] for kind in _kinds(task) if kind in means) for task in tasks]
        return max(sum(expected) / max(1, workers), max(expected, default=0.0))


def _kinds(task: Task) -> tuple[Hashable, ...]:
    """From the most similar problems to all of them."""
    return (
        (task.algorithm, task.model, task.combination),
        (task.algorithm, task.model),
        task.model,
        task.algorithm,
        None,
    )
