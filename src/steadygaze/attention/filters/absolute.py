"""Absolute values: how much a pixel matters, whatever its sign."""

from typing import ClassVar

import numpy as np

from ...compiling import compiled
from . import FilterStep, Intervals


@compiled
def _fill(maps: np.ndarray, out: np.ndarray) -> None:
    source, target = maps.reshape(maps.size), out.reshape(out.size)
    for i in range(source.shape[0]):
        target[i] = abs(source[i])


class Absolute(FilterStep):
    """The absolute value of every entry."""

    name: ClassVar[str] = "abs"

    def value(self, maps: np.ndarray) -> np.ndarray:
        return np.abs(maps)

    def enclose(self, maps: Intervals) -> Intervals:
        low, high = maps.ends
        least = np.where((low < 0.0) & (high > 0.0), 0.0, np.minimum(np.abs(low), np.abs(high)))
        return Intervals.between(least, np.maximum(np.abs(low), np.abs(high)))

    def fill(self, maps: np.ndarray, out: np.ndarray) -> None:
        _fill(maps, out)

    def lipschitz(self, order: int) -> float:
        """1: ||a| − |b|| ≤ |a − b|."""
        return 1.0

    def script(self) -> str:
        return "(map) => map.map(Math.abs)"
