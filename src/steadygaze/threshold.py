"""A threshold of the question: a value, a unit (absolute, or relative to the original map) and a direction."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from .errors import OptionError
from .labels import Kept


class ThresholdDirection(Enum):
    """The side of a threshold on which a property holds; the value is the printed sign."""

    AT_MOST = "≤"
    AT_LEAST = "≥"


@dataclass(frozen=True)
class Threshold:
    """A threshold: absolute, or relative to the size of the original map. `parse` reads its text back unchanged.

    >>> Threshold.parse("25%").value(8.0), Threshold.parse("3.0").value(8.0)
    (2.0, 3.0)
    >>> str(Threshold.parse("25%")), str(Threshold.parse("3.0")), str(Threshold.parse(0.1234567891))
    ('25%', '3', '0.1234567891')
    """

    number: float
    is_relative: bool
    direction: ThresholdDirection = ThresholdDirection.AT_MOST

    @classmethod
    def parse(cls, text: str | float, *, direction: ThresholdDirection = ThresholdDirection.AT_MOST) -> "Threshold":
        """Read `25%` or a number; raises OptionError."""
        words = str(text).strip()
        try:
            number = float(words.removesuffix("%"))
        except ValueError:
            number = float("nan")
        if not 0.0 <= number < float("inf"):
            raise OptionError(
                f"delta {words!r} is not a threshold; expected a number such as 3.0, or a percentage such as 25%"
            )
        return cls(number / 100.0 if words.endswith("%") else number, words.endswith("%"), direction)

    def stored(self) -> dict[str, Any]:
        """The threshold as plain data."""
        return {"number": self.number, "is_relative": self.is_relative, "direction": self.direction.value}

    @classmethod
    def restore(cls, data: Mapping[str, Any]) -> "Threshold":
        """The threshold in plain data; earlier versions stored no direction."""
        direction = ThresholdDirection(data.get("direction", ThresholdDirection.AT_MOST.value))
        return cls(float(data["number"]), bool(data["is_relative"]), direction)

    def value(self, size: float) -> float:
        """The absolute threshold for an original map of the given size."""
        return self.number * size if self.is_relative else self.number

    def __str__(self) -> str:
        number, mark = (100.0 * self.number, "%") if self.is_relative else (self.number, "")
        texts = [f"{number:.{digits}g}{mark}" for digits in range(6, 18)]
        return next((text for text in texts if Threshold.parse(text, direction=self.direction) == self), texts[-1])


def kept_codes(low: np.ndarray, high: np.ndarray, limit: float) -> np.ndarray:
    """`Kept` codes (N,) for losses between bounds (N,), which may be at most the limit; UNKNOWN for NaN bounds.

    >>> kept_codes(np.array([0.0, 2.0, 4.0, np.nan]), np.array([1.0, 4.0, 5.0, 1.0]), 3.0).tolist()
    [0, 1, 2, 1]
    """
    is_known = ~(np.isnan(low) | np.isnan(high))
    return np.where(is_known & (high <= limit), Kept.YES, np.where(is_known & (low > limit), Kept.NO, Kept.UNKNOWN))


def sharpened(
    found: Mapping[str, tuple[float, float]], limits: Mapping[str, float], limit: float, share: tuple[float, float]
) -> dict[str, tuple[float, float]]:
    """Bounds of the share of AR at several limits, sharpened by those at one limit, which was settled with more work.

    A larger limit keeps at least as much.

    >>> sharpened({"low": (0.2, 0.9), "high": (0.3, 1.0)}, {"low": 1.0, "high": 3.0}, 2.0, (0.5, 0.6))
    {'low': (0.2, 0.6), 'high': (0.5, 1.0)}
    """
    return {
        name: (
            max(low, share[0]) if limits[name] >= limit else low,
            min(high, share[1]) if limits[name] <= limit else high,
        )
        for name, (low, high) in found.items()
    }
