"""Absolute values: how much a pixel matters, regardless of sign."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from ...compiling import compiled
from . import FilterStep, Intervals


@compiled
def _filter(target: np.ndarray, other: np.ndarray, shape: tuple[int, ...]) -> None:
    for i in range(target.shape[0]):
        target[i] = abs(target[i])


class Absolute(FilterStep):
    """The absolute value of every entry."""

    name: ClassVar[str] = "abs"
    is_pixelwise: ClassVar[bool] = True

    def value(self, maps: np.ndarray) -> np.ndarray:
        return np.abs(maps)

    def enclose(self, maps: Intervals) -> Intervals:
        low, high = maps.ends
        least = np.where((low < 0.0) & (high > 0.0), 0.0, np.minimum(np.abs(low), np.abs(high)))
        return Intervals.between(least, np.maximum(np.abs(low), np.abs(high)))

    @property
    def kernel(self) -> Callable[[np.ndarray, np.ndarray, tuple[int, ...]], None]:
        return _filter

    def lipschitz(self, order: int) -> float:
        """1: ||a| − |b|| ≤ |a − b|."""
        return 1.0

    def script(self) -> str:
        return "(map) => map.map(Math.abs)"
