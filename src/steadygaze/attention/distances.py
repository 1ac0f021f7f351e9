"""Norms of the difference of two maps."""

from enum import Enum

import numpy as np

from ..errors import OptionError, did_you_mean
from ..tolerances import LEAST_ROOT


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
            raise OptionError(
                f"distance {text!r} is not known; expected l1 or l2.{did_you_mean(text, ('l1', 'l2'))}"
            ) from None

    def size(self, difference: np.ndarray) -> float:
        """The norm of one difference (C, H, W)."""
        flat = difference.ravel()
        with np.errstate(over="ignore"):
            found = float(np.linalg.norm(flat, ord=self.value))
        largest = float(np.abs(flat).max(initial=0.0))
        if LEAST_ROOT < found < np.inf or not 0.0 < largest < np.inf:
            return found
        # Scale, because the squares underflow or overflow.
        return float(np.linalg.norm(flat / largest, ord=self.value)) * largest
