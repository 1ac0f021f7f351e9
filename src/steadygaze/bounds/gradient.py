"""From the signs of neurons that are known on boxes to enclosures of the gradients there: one pass backward.

Intervals, kept as centre and radius; the derivative of a ReLU whose sign is not known lies in [0, 1].
"""

from dataclasses import dataclass

import numpy as np

from ..attention.distances import Distance
from ..attention.filters import Filter
from ..rounding import FLOOR, LEAST, LEAST_ROOT, down, gamma, up
from . import kernels
from .forward import Passed, Rows, Segments


@dataclass(frozen=True, eq=False)
class Intervals:
    """Numbers known up to a radius; both (..., n)."""

    centre: np.ndarray
    radius: np.ndarray

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Proved lower and upper ends."""
        slack = gamma(2) * (np.abs(self.centre) + self.radius)
        return self.centre - self.radius - slack, self.centre + self.radius + slack

    @classmethod
    def between(cls, low: np.ndarray, high: np.ndarray) -> "Intervals":
        """The smallest intervals that hold low and high."""
        centre = 0.5 * (low + high)
        return cls(centre, np.maximum(high - centre, centre - low) * up(1))


def gradients(segments: Segments, passed: Passed, logits: Rows) -> Intervals:
    """Enclosures (B, R, pixels) of the gradients of the logits, given as rows over the last hidden values."""
    boxes, count = len(passed.last.forms), len(logits.row)
    centre, radius = (np.repeat(part[None], boxes, axis=0) for part in (logits.row, logits.row_error))
    layers = zip(segments[:-1], passed.low, passed.high, strict=True)
    for steps, low, high in reversed(list(layers)):
        kernels.relu_gradients(centre, radius, low, high, up(2))
        centre, radius = centre.reshape(boxes * count, -1), radius.reshape(boxes * count, -1)
        for step in reversed(steps):
            kernels.errors_above(centre, radius, gamma(step.backward_terms + 1), FLOOR)
            radius = np.ascontiguousarray(step.backward_abs(radius))
            kernels.lift_radii(radius, up(step.backward_terms), LEAST)
            centre = np.ascontiguousarray(step.backward(centre))
        centre, radius = centre.reshape(boxes, count, -1), radius.reshape(boxes, count, -1)
    return Intervals(centre, radius)


def filtered(maps: Intervals, steps: Filter) -> Intervals:
    """The maps (…, C, H, W) after a filter."""
    for step in steps.steps:
        single = Filter((step,))
        if step == "abs":
            low, high = maps.ends
            least = np.where((low < 0.0) & (high > 0.0), 0.0, np.minimum(np.abs(low), np.abs(high)))
            maps = Intervals.between(least, np.maximum(np.abs(low), np.abs(high)))
        else:
            centre = single(maps.centre)
            radius = single(maps.radius + gamma(12) * np.abs(maps.centre)) * up(12) + LEAST
            maps = Intervals(centre, radius)
    return maps


def inconsistencies(maps: Intervals, low: np.ndarray, high: np.ndarray, distance: Distance) -> np.ndarray:
    """Proved bounds (B, 2) of Σ_j dist(map_j, expected_j); maps (B, K, pixels), expected between low and high."""
    boxes, classes, size = maps.centre.shape
    sums = np.empty((boxes, classes, 2))
    kernels.map_distances(maps.centre, maps.radius, low, high, gamma(2), distance.value, sums)
    if distance is Distance.L2:
        # A sum of squares that overflows says nothing from below.
        sums[:, :, 0] = np.where(np.isfinite(sums[:, :, 0]), sums[:, :, 0], 0.0)
        sums = np.sqrt(sums)
    lower, upper = sums.sum(axis=1).T
    terms = classes + size + 8
    least, most = np.maximum(lower * down(terms) - classes * LEAST_ROOT, 0.0), upper * up(terms) + classes * LEAST_ROOT
    # Where a pass has overflowed, nothing is known.
    return np.stack([np.where(np.isfinite(least), least, 0.0), np.where(np.isnan(most), np.inf, most)], axis=1)
