"""From the signs of neurons that are known on boxes to enclosures of the gradients there: one pass backward.

Intervals, kept as centre and radius; the derivative of a ReLU whose sign is not known lies in [0, 1].
"""

from dataclasses import dataclass

import numpy as np

from ..attention.distances import Distance
from ..attention.filters import Filter
from .forward import Passed, Rows, Segments
from .rounding import LEAST, LEAST_ROOT, down, gamma, up


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
    centre = np.broadcast_to(logits.row, (boxes, *logits.row.shape))
    radius = np.broadcast_to(logits.row_error, (boxes, *logits.row.shape))
    layers = zip(segments[:-1], passed.low, passed.high, strict=True)
    for steps, low, high in reversed(list(layers)):
        found = _through_relu(centre, radius, low, high)
        centre, radius = (part.reshape(boxes * count, -1) for part in (found.centre, found.radius))
        for step in reversed(steps):
            radius = step.backward_abs(radius + gamma(step.backward_terms + 1) * np.abs(centre))
            radius = radius * up(step.backward_terms) + LEAST
            centre = step.backward(centre)
        centre, radius = centre.reshape(boxes, count, -1), radius.reshape(boxes, count, -1)
    return Intervals(centre, radius)


def _through_relu(centre: np.ndarray, radius: np.ndarray, low: np.ndarray, high: np.ndarray) -> Intervals:
    """Gradients (B, R, n) times derivatives: 1 where low > 0, 0 where high ≤ 0 (B, n), else anything in [0, 1]."""
    is_on, is_open = (low > 0.0)[:, None], ((low <= 0.0) & (high > 0.0))[:, None]
    least, most = np.minimum(centre - radius, 0.0), np.maximum(centre + radius, 0.0)
    wide = up(2) * 0.5 * (most - least)
    return Intervals(
        np.where(is_open, 0.5 * (most + least), np.where(is_on, centre, 0.0)),
        np.where(is_open, wide, np.where(is_on, radius, 0.0)),
    )


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
    least, most = maps.ends
    near = np.maximum(np.maximum(least - high, low - most), 0.0)
    far = np.maximum(most - low, high - least)
    if distance is Distance.L2:
        sizes = [np.sqrt(np.einsum("bkp,bkp->bk", part, part)) for part in (near, far)]
    else:
        sizes = [part.sum(axis=2) for part in (near, far)]
    terms = near.shape[1] + near.shape[2] + 8
    lower, upper = (size.sum(axis=1) for size in sizes)
    return np.stack([np.maximum(lower * down(terms) - LEAST, 0.0), upper * up(terms) + LEAST_ROOT], axis=1)
