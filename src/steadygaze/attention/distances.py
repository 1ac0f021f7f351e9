"""Distances between attention maps: L1 and L2 over all pixels and channels."""

from enum import Enum

import numpy as np

from ..errors import OptionError


class Distance(Enum):
    """A norm of the difference of two maps.

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
        return float(np.linalg.norm(difference.ravel(), ord=self.value))
