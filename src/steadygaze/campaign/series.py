"""From the records of a campaign to what its figures show: one series per algorithm, and the values of each.

A series is an algorithm, with those settings that the plan has several of. Draws nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import rankdata

from ..verdict import Status
from .plan import Plan, Task
from .table import Record, settings_of

ENDED = (Status.ROBUST.value, Status.NOT_ROBUST.value)
"""Statuses of problems that came to an answer."""
TIMED = (*ENDED, Status.TIMEOUT.value)
"""Statuses of problems whose time says something; those that failed ended early."""
SEARCHES = ("bfs", "gbs", "boundary")
_SETTINGS = {
    "delta": "δ = {}",
    "filter": "{}",
    "dist": "{}",
    "classes": "classes {}",
    "until": "until {}",
    "w_delta": "w^δ = {}",
}


@dataclass(frozen=True)
class Series:
    """The problems of one algorithm: how many there are by number of neurons, and the records of those that ended.

    `asked` is the property: cr, ar or both.
    """

    name: str
    method: str
    asked: str
    planned: dict[int, int]
    records: tuple[Record, ...] = field(repr=False)

    @property
    def is_search(self) -> bool:
        """Whether facets are looked across, so that face checks are counted."""
        return self.method in SEARCHES

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of neurons, from the smallest."""
        return tuple(sorted(self.planned))


def make_series(plan: Plan, records: Sequence[Record]) -> tuple[Series, ...]:
    """The series of a campaign in the order of the plan."""
    extra = settings_of(plan)
    by_key = {record["key"]: record for record in records}
    groups: dict[tuple[Any, ...], list[Task]] = {}
    for task in plan.tasks:
        groups.setdefault((task.algorithm, *(getattr(task, name) for name in extra)), []).append(task)
    series = []
    for (algorithm, *values), tasks in groups.items():
        named = [_SETTINGS[name].format(value) for name, value in zip(extra, values, strict=True) if value is not None]
        neurons = [plan.models[task.model].neurons for task in tasks]
        planned = {size: neurons.count(size) for size in sorted(set(neurons))}
        own = tuple(by_key[task.key] for task in tasks if task.key in by_key)
        series.append(Series(", ".join([algorithm, *named]), tasks[0].method, tasks[0].property, planned, own))
    return tuple(series)


def count_of_regions(record: Record) -> int | None:
    """Regions that were found or visited; of a refinement with its boxes, which stand for many regions each."""
    if record["regions"] is None:
        return None
    return int(record["regions"]) + int(record["boxes"] or 0)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's ρ of paired values; None where there are fewer than three, or all are equal.

    >>> rank_correlation([1, 2, 30], [1, 4, 9]), rank_correlation([1, 2, 3], [5, 5, 5])
    (1.0, None)
    """
    if len(first) < 3:
        return None
    ranks = rankdata(first), rankdata(second)
    if any(np.ptp(each) == 0.0 for each in ranks):
        return None
    return round(float(np.corrcoef(*ranks)[0, 1]), 12)
