"""What the searches share: the traversal, the labels, the budget, and the count of what was lost."""

from collections.abc import Callable

import numpy as np

from ..budget import Budget
from ..problem import Problem
from ..traversal import Traversal, TraversedRegion
from ..traversal.traverse import LostRegionError
from ..verdict import Property
from .labels import Labeller
from .outcome import Visited

ASK_EVERY = 16
"""Steps between two questions to the budget: some milliseconds."""


class Walker:
    """Finds and labels the regions of one problem, each once, within a budget."""

    def __init__(
        self,
        problem: Problem,
        delta: float,
        budget: Budget,
        *,
        asks_everything: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.problem, self.budget, self.progress = problem, budget, progress
        self.property = problem.property
        self.traversal = Traversal.of(problem.compound)
        self.labeller = Labeller(
            problem,
            self.traversal,
            delta,
            asks_label=asks_everything or self.property is not Property.AR,
            asks_attention=asks_everything or self.property is not Property.CR,
            seconds_left=self._seconds_left,
        )
        self.lost = 0
        self._asked = 0
        self.stopped: str | None = None

    def goes_on(self, visited: int) -> bool:
        """Whether the budget allows another region; if not, `stopped` says why."""
        self.budget.regions = visited
        self._asked += 1
        most = self.budget.limits.max_regions
        if self._asked % ASK_EVERY == 1 or (most is not None and visited >= most):
            self.stopped = self.budget.exhausted()
            if self.progress is not None:
                self.progress(visited)
        return self.stopped is None

    def _seconds_left(self) -> float:
        limit = self.budget.limits.timeout_seconds
        return np.inf if limit is None else limit - self.budget.seconds()

    def region_at(self, point: np.ndarray) -> TraversedRegion | None:
        """The region at a point of the unit cube; None (and a failure) where none with volume is found."""
        try:
            return self.traversal.region_at(point)
        except LostRegionError:
            self.lost += 1
            return None

    def cross(self, region: TraversedRegion, facet: int) -> TraversedRegion | None:
        """The region beyond a facet; None at the border, or (and a failure) where none with volume is found."""
        try:
            return self.traversal.cross(region, facet)
        except LostRegionError:
            self.lost += 1
            return None

    def key_beyond(self, region: TraversedRegion, facet: int) -> bytes | None:
        """The key of the region beyond a facet; None at the border, or (and a failure) where it cannot be told."""
        try:
            return self.traversal.key_beyond(region, facet)
        except LostRegionError:
            self.lost += 1
            return None

    @property
    def failures(self) -> int:
        """Regions that were lost, facets with a sliver beyond, and linear programs without an answer."""
        return self.lost + self.traversal.fallbacks + self.traversal.programs.failures

    def label(self, region: TraversedRegion, *, is_following: bool = False) -> Visited:
        """The region with its labels."""
        return self.labeller.label(region, is_following=is_following)
