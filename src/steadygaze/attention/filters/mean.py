"""The 3×3 mean: a pixel together with its neighbours."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...compiling import compiled
from ...tolerances import LEAST, gamma, up
from . import FilterStep, Intervals


@compiled
def _filter(target: np.ndarray, other: np.ndarray, shape: tuple[int, ...]) -> None:
    channels, height, width = shape
    for c in range(channels):
        for y in range(height):
            for x in range(width):
                total = 0.0
                for yy in range(max(y - 1, 0), min(y + 2, height)):
                    for xx in range(max(x - 1, 0), min(x + 2, width)):
                        total += target[(c * height + yy) * width + xx]
                other[(c * height + y) * width + x] = total / 9.0
    for i in range(target.shape[0]):
        target[i] = other[i]


class Mean3x3(FilterStep):
    """The sum over a pixel and its neighbours in the same channel, 0 beyond the border, divided by nine."""

    name: ClassVar[str] = "mean"
    is_linear: ClassVar[bool] = True

    def value(self, maps: np.ndarray) -> np.ndarray:
        padded = np.pad(maps, [(0, 0)] * (maps.ndim - 2) + [(1, 1), (1, 1)])
        return sliding_window_view(padded, (3, 3), axis=(-2, -1)).sum(axis=(-2, -1)) / 9.0

    def enclose(self, maps: Intervals) -> Intervals:
        radius = self.value(maps.radius + gamma(12) * np.abs(maps.centre)) * up(12) + LEAST
        return Intervals(self.value(maps.centre), radius)

    @property
    def kernel(self) -> Callable[[np.ndarray, np.ndarray, tuple[int, ...]], None]:
        return _filter

    def lipschitz(self, order: int) -> float:
        """1: the rows and the columns of its matrix sum to at most 1."""
        return 1.0

    def script(self) -> str:
        return """(map, [channels, height, width]) => {
    const mean = new Float64Array(map.length);
    for (let c = 0; c < channels; c++) {
      for (let y = 0; y < height; y++) {
        for (let x = 0; x < width; x++) {
          let sum = 0;
          for (let v = Math.max(0, y - 1); v <= Math.min(height - 1, y + 1); v++) {
            for (let u = Math.max(0, x - 1); u <= Math.min(width - 1, x + 1); u++) {
              sum += map[(c * height + v) * width + u];
            }
          }
          mean[(c * height + y) * width + x] = sum / 9;
        }
      }
    }
    return mean;
  }"""
