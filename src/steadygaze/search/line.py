"""The search line: from zero to a corner of the domain, or to a theta; tilted by less than any rounding.

The plain diagonal runs through hundreds of vertices of a real map. Ties are broken as if the line were
zero + s (step + ε e_1 + ε² e_2 + …), so that it leaves every region through one facet.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import OptionError
from ..perturbation import Domain
from ..tolerances import DISTANCE, SLOW
from ..traversal import TraversedRegion


@dataclass(frozen=True, eq=False)
class Line:
    """A line in t from `start` (d,) to start + step; `widths` (d,) scale lengths back to theta."""

    start: np.ndarray
    step: np.ndarray
    widths: np.ndarray

    @classmethod
    def through(cls, domain: Domain, end: np.ndarray | None = None) -> "Line":
        """The line from zero to a theta of the domain, or to the vertex of the domain that is farthest from zero."""
        if not domain.contains_zero:
            raise OptionError(
                f"the domain from {domain.low.tolist()} to {domain.high.tolist()} does not contain zero, the "
                "unperturbed image, where the search starts; widen the ranges, or take --method map or bfs"
            )
        if end is None:
            end = np.where(np.abs(domain.low) > np.abs(domain.high), domain.low, domain.high)
        if len(end) != domain.dimension:
            raise OptionError(
                f"the line to {np.asarray(end).tolist()} has {len(end)} numbers for {domain.dimension} parameters "
                f"({', '.join(domain.names)}); give one for each"
            )
        if not domain.contains(end):
            raise OptionError(
                f"the line to {np.asarray(end).tolist()} leaves the domain from {domain.low.tolist()} to "
                f"{domain.high.tolist()}; give one number for each parameter, inside of its range"
            )
        if not np.any(end):
            raise OptionError("the line ends at zero, where it starts; give another theta, or corner")
        start = -domain.low / domain.widths
        return cls(start, (end - domain.low) / domain.widths - start, domain.widths)

    def point(self, share: float) -> np.ndarray:
        """The point (d,) at a share of the line, in t."""
        return self.start + share * self.step

    def distance(self, share: float) -> float:
        """‖θ‖₂ at a share of the line."""
        return float(np.linalg.norm(share * self.step * self.widths))

    def passage(self, region: TraversedRegion) -> tuple[float, float, int] | None:
        """Where the tilted line enters and leaves a region, and through which facet; None if it passes it by.

        A line that ends inside has the facet −1 and leaves at 1.
        """
        normals = region.halfspaces[:, :-1]
        gap = normals @ self.start + region.halfspaces[:, -1]
        speed = normals @ self.step
        is_slow = np.abs(speed) <= SLOW
        tilt = np.where(normals != 0.0, np.sign(normals), 0.0)
        first = tilt[np.arange(len(tilt)), np.argmax(tilt != 0.0, axis=1)]
        if (is_slow & ((gap < -DISTANCE) | ((gap <= DISTANCE) & (first < 0.0)))).any():
            return None
        moving = np.flatnonzero(~is_slow)
        shares = -gap[moving] / speed[moving]
        # How each share changes with the tilt, one order after the other.
        keys = np.column_stack([shares, -shares[:, None] * normals[moving] / speed[moving, None]])
        entering, leaving = np.flatnonzero(speed[moving] > 0.0), np.flatnonzero(speed[moving] < 0.0)
        enter = keys[_first(-keys, entering)] if len(entering) else np.full(keys.shape[1], -np.inf)
        last = _first(keys, leaving) if len(leaving) else -1
        leave = keys[last] if last >= 0 else np.full(keys.shape[1], np.inf)
        if leave[0] <= 0.0 and not _is_before(np.zeros(len(leave)), leave):
            return None
        if not _is_before(enter, leave) or enter[0] >= 1.0:
            return None
        if leave[0] >= 1.0 - DISTANCE:
            return max(float(enter[0]), 0.0), 1.0, -1
        return max(float(enter[0]), 0.0), float(leave[0]), int(moving[last])


def _first(keys: np.ndarray, chosen: np.ndarray) -> int:
    """The chosen row whose keys are smallest, ties within the tolerance going to the next key."""
    for column in keys.T:
        values = column[chosen]
        chosen = chosen[values <= values.min() + DISTANCE]
        if len(chosen) == 1:
            break
    return int(chosen[0])


def _is_before(one: np.ndarray, other: np.ndarray) -> bool:
    for a, b in zip(one, other, strict=True):
        if abs(a - b) > DISTANCE:
            return bool(a < b)
    return False
