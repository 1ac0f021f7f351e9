"""What is compared: which filter, which distance, which classes."""

from dataclasses import dataclass

import numpy as np

from .distances import Distance
from .filters import IDENTITY, Filter


@dataclass(frozen=True)
class AttentionOptions:
    """Which maps are compared and how: filter, distance, and the classes summed over (None: all)."""

    filter: Filter = IDENTITY
    distance: Distance = Distance.L2
    classes: tuple[int, ...] | None = None

    def chosen(self, count: int) -> np.ndarray:
        """The classes as an index array, for a network with `count` logits."""
        return np.arange(count) if self.classes is None else np.array(self.classes)
