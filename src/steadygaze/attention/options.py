"""How maps are compared: attention method, filter, distance, classes."""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from ..errors import OptionError
from ..tolerances import LEAST_ROOT
from .filters import IDENTITY, Filter
from .methods import GRADIENT, Method


class Distance(Enum):
    """A norm of the difference of two maps, over all pixels and channels.

    >>> Distance.parse("l2").size(np.array([[[3.0, 4.0]]]))
    5.0
    """

    L1 = 1
    L2 = 2

    @classmethod
    def parse(cls, text: str) -> "Distance":
        """Read `l1` or `l2`."""
        try:
            return cls[text.upper()]
        except KeyError:
            raise OptionError(f"distance {text!r} is not known; expected l1 or l2") from None

    def size(self, difference: np.ndarray) -> float:
        """The norm of one difference (C, H, W)."""
        flat = difference.ravel()
        with np.errstate(over="ignore"):
            found = float(np.linalg.norm(flat, ord=self.value))
        largest = float(np.abs(flat).max(initial=0.0))
        if LEAST_ROOT < found < np.inf or not 0.0 < largest < np.inf:
            return found
        # The squares underflow or overflow.
        return float(np.linalg.norm(flat / largest, ord=self.value)) * largest


@dataclass(frozen=True)
class AttentionOptions:
    """Which maps are compared and how: filter, distance, the classes to sum over (None: all), and the method."""

    filter: Filter = IDENTITY
    distance: Distance = Distance.L2
    classes: tuple[int, ...] | None = None
    method: Method = GRADIENT

    def chosen(self, count: int) -> np.ndarray:
        """The classes as an index array, for a network with `count` logits."""
        return np.arange(count) if self.classes is None else np.array(self.classes)

    def size(self, maps: np.ndarray) -> float:
        """The norms of filtered maps (K', C, H, W), summed over the classes: the size of the original map, or ai."""
        return float(sum(self.distance.size(part) for part in maps))

    def targets(self, count: int) -> np.ndarray:
        """Weights (K', K) of `count` logits: the compared maps are the gradients of targets @ logits."""
        return self.method.targets(count)[self.chosen(count)]

    def total_size(self, error: np.ndarray) -> float:
        """A bound on an error of maps (K', pixels) after the filter, summed over the classes."""
        order, largest = self.distance.value, float(np.abs(error).max(initial=0.0))
        if largest == 0.0:
            return 0.0
        if not np.isfinite(largest):
            return np.inf
        # Scaled first: squares may underflow or overflow.
        sizes = np.linalg.norm(error / largest, ord=order, axis=1).sum() * (1.0 + 1e-9)
        return float(sizes) * largest * self.filter.lipschitz(order)
