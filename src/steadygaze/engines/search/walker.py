"""The base of all searches: a walker that finds and labels regions within a budget, the search line, and the check."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.spatial import QhullError

from ...accuracy import Accuracy
from ...budget import Budget
from ...errors import OptionError
from ...labels import Property, Stop
from ...perturbation import Domain
from ...question import Question
from ...regions.check import PlainPass
from .form_kernels import pass_region
from .halfspaces import LinearProgramTroubleError
from .labeller import Labeller
from .solids import BrokenSolidError
from .traversal import LostRegionError, Traversal
from .visited import TraversedRegion, Visited

ASK_EVERY = 0.02  # seconds between two checks of the budget
GRACE = 0.5  # seconds, after a limit, for the shares and the self-check of a partial result
MOST_CHECKED = 2_000  # the most visited regions compared with a plain pass
AT_ONCE = 64  # visited regions compared in one batch: a late run checks no more
Found = TypeVar("Found")


class Walker:
    """Finds and labels the regions of one problem within a budget; counts the regions it lost."""

    def __init__(
        self,
        question: Question,
        delta: float,
        budget: Budget,
        *,
        asks_everything: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.question, self.budget, self.progress = question, budget, progress
        self.property = question.property
        self.traversal = Traversal.of(question.compound)
        self.labeller = Labeller(
            question,
            self.traversal,
            delta,
            asks_label=asks_everything or self.property is not Property.AR,
            asks_attention=(asks_everything and not question.maps_change_in_regions)
            or self.property is not Property.CR,
            seconds_left=self._seconds_left,
        )
        self.lost = 0
        self.regions = 0
        self._asked = -np.inf
        self.stopped: Stop | None = None

    def goes_on(self, visited: int | None = None) -> bool:
        """Whether the budget allows another region, or a step without a new region; `stopped` has the reason if not."""
        self.regions = self.regions if visited is None else visited
        self.budget.regions = 0 if visited is None else visited  # the limit on regions does not end other steps
        most, now = self.budget.limits.max_regions, time.monotonic()
        is_full = most is not None and self.budget.regions >= most
        if self.stopped is None and (is_full or now - self._asked >= ASK_EVERY):
            self._asked = now
            self.stopped = self.budget.exhausted()
            if self.progress is not None:
                self.progress(self.regions)
        self.budget.regions = self.regions
        return self.stopped is None

    def is_late(self) -> bool:
        """Whether a limit ended the search, and GRACE is over too."""
        return self.stopped is not None and time.monotonic() - self._asked > GRACE

    def _seconds_left(self) -> float:
        limit = self.budget.limits.timeout_seconds
        return np.inf if limit is None else limit - self.budget.seconds()

    def attempt(self, find: Callable[..., Found], *arguments: object) -> Found | None:
        """Call a function; None, and one more failure, if it loses a region or a linear program has no answer."""
        try:
            return find(*arguments)
        except (LostRegionError, LinearProgramTroubleError, QhullError, BrokenSolidError):
            self.lost += 1
            return None

    def cross(self, region: TraversedRegion, facet: int) -> TraversedRegion | None:
        """The region beyond a facet; None at the border, or, counted as a failure, if no region is found."""
        return self.attempt(self.traversal.cross, region, facet)

    def key_beyond(self, region: TraversedRegion, facet: int) -> bytes | None:
        """The key of the region beyond a facet; None at the border, or, counted as a failure, if it is uncertain."""
        return self.attempt(self.traversal.key_beyond, region, facet)

    @property
    def failures(self) -> int:
        """Lost regions, facets with a sliver beyond, and linear programs without an answer."""
        return self.lost + self.traversal.fallbacks + self.traversal.programs.failures


@dataclass(frozen=True, eq=False)
class SearchLine:
    """The search line in t, from zero at `start` (d,) to start + step; `widths` (d,) scale lengths back to theta.

    On real maps, the plain diagonal runs through hundreds of vertices. Ties are broken as if the line were
    zero + s (step + ε e_1 + ε² e_2 + …), which leaves every region through exactly one facet.
    """

    start: np.ndarray
    step: np.ndarray
    widths: np.ndarray

    @classmethod
    def through(cls, domain: Domain, end: np.ndarray | None = None) -> "SearchLine":
        """The line from zero to a theta of the domain; by default to the vertex of the domain farthest from zero."""
        bounds = f"the domain from {domain.low.tolist()} to {domain.high.tolist()}"
        if not domain.contains_zero:
            raise OptionError(
                f"{bounds} does not contain zero, the unperturbed image, where the search starts; widen the ranges, or "
                "use --method map or bfs"
            )
        if end is None:
            end = np.where(np.abs(domain.low) > np.abs(domain.high), domain.low, domain.high)
        line = f"the line to {np.asarray(end).tolist()}"
        if len(end) != domain.dimension:
            raise OptionError(
                f"{line} has {len(end)} numbers for {domain.dimension} parameters ({', '.join(domain.names)}); give "
                "one for each"
            )
        if not domain.contains(end):
            raise OptionError(f"{line} leaves {bounds}; give one number for each parameter, inside its range")
        if not np.any(end):
            raise OptionError("the line ends at zero, where it starts; give another theta, or corner")
        start = domain.zero_in_t
        return cls(start, domain.to_unit(end) - start, domain.widths)

    def distance(self, share: float) -> float:
        """‖θ‖₂ at a share of the line."""
        return float(np.linalg.norm(share * self.step * self.widths))

    def passage(self, region: TraversedRegion) -> tuple[float, float, int] | None:
        """Where the tilted line enters and leaves a region, and the facet where it leaves; None if it misses it.

        A line that ends inside leaves at 1, by facet −1.
        """
        found, scratch = np.empty(3), np.empty((3, len(region.halfspaces)))
        rows = np.ascontiguousarray(region.halfspaces)
        if not pass_region(rows, self.start, self.step, scratch, found):
            return None
        enters_at, leaves_at, facet = found.tolist()
        return enters_at, leaves_at, int(facet)


def check_visited(
    question: Question, visited: list[Visited], accuracy: Accuracy, is_late: Callable[[], bool] = lambda: False
) -> None:
    """Compare pattern and logits of visited regions, or of a fixed sample, with a plain pass at a point inside each.

    `accuracy` bounds the errors of the traversal, which shares only the images with the plain pass. A late run checks
    one batch. Raises InternalError.
    """
    compound, count = question.compound, len(visited)
    chosen = range(count) if count <= MOST_CHECKED else np.linspace(0, count - 1, MOST_CHECKED).astype(np.int64)
    plain = PlainPass(compound, accuracy, question.model_name)
    for start in range(0, len(chosen), AT_ONCE):
        if start and is_late():
            return
        regions = [visited[i].region for i in chosen[start : start + AT_ONCE]]
        inside, forms = (np.array([getattr(region, name) for region in regions]) for name in ("inside", "logits"))
        images = compound.perturbed.images(compound.domain.to_theta(inside))
        packed = np.stack([np.frombuffer(region.pattern, dtype=np.uint8) for region in regions])
        plain.compare(images, inside, packed, forms, ["inside a visited region"] * len(regions))
