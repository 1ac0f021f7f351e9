"""What a refinement has done and what is left: counts, and the one place that says when it ends."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..budget import Budget
from .boxes import Boxes


@dataclass(frozen=True)
class Advance:
    """How far a run is: the share decided, boxes bounded and still open, regions of boxes that were handed over."""

    share: float
    boxes: int
    open: int
    regions: int


Progress = Callable[[Advance], None]


@dataclass
class Tally:
    """Counts of one run.

    until: the share that may stay open, 0 for none; ends_with_violation: whether the first violation ends the run.
    left: the share of the domain that is open, open: the number of open boxes, bounded: boxes that were bounded so far.
    """

    budget: Budget
    until: float
    ends_with_violation: bool
    progress: Progress | None
    left: float = 1.0
    open: int = 0
    bounded: int = 0
    regions: int = 0
    is_violated: bool = False
    stopped: str | None = field(default=None)

    def start(self, boxes: Boxes) -> None:
        """Begin with so many open boxes."""
        self.left, self.open = float(boxes.volumes.sum()), len(boxes)

    def decide(self, volumes: np.ndarray) -> None:
        """Boxes with these volumes (B,) are decided."""
        self.open -= len(volumes)
        # Nothing is left when no box is, whatever the rounding of the sum.
        self.left = max(self.left - float(volumes.sum()), 0.0) if self.open else 0.0

    def split(self, count: int) -> None:
        """So many boxes were halved."""
        self.open += count

    def is_done(self) -> bool:
        """Whether enough is decided, or a limit was reached."""
        if self.ends_with_violation and self.is_violated:
            return True
        if self.open == 0 or (self.until > 0.0 and self.left <= self.until):
            return True
        if self.stopped is None:
            self.stopped = self.budget.exhausted()
        return self.stopped is not None

    def tell(self) -> None:
        """Report how far the run is."""
        self.budget.regions = self.regions
        if self.progress is not None:
            self.progress(Advance(1.0 - self.left, self.bounded, self.open, self.regions))
