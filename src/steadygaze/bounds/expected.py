"""Encloses, over boxes, the arrays that move with the image: expected maps, and the weights of a mask."""

from functools import cached_property

import numpy as np

from ..attention.filters import Intervals
from ..perturbation import Perturbed
from ..tolerances import LEAST, UNIT, gamma
from .forms import Forms

Ends = tuple[np.ndarray, np.ndarray]


class MovedAlong:
    """Arrays (N, …, H, W) that move with the image; at the unperturbed image they are known up to a radius."""

    def __init__(self, perturbed: Perturbed, original: Intervals) -> None:
        self.perturbed, self.original = perturbed, original

    def ends(self, cell: int, low: np.ndarray, high: np.ndarray) -> Ends:
        """Lower and upper ends over boxes with corners low and high (B, d) in t, (B or 1, N, pixels) each."""
        axis, count = self.perturbed.moving_axis, len(self.original.centre)
        if axis is None:
            least, most = self.original.ends
            return least.reshape(1, count, -1), most.reshape(1, count, -1)
        if self.perturbed.has_enclosed_maps:
            return self._ends_of_curves(low, high)
        domain = self.perturbed.domain
        ends = []
        for corner in (low, high):
            theta = domain.to_theta(corner[:, axis], axis)[:, None, None]
            base, offset, slope, error = self._transports[cell]
            centre = base + offset + theta * slope
            ends.append((centre - error, centre + error))
        return np.minimum(ends[0][0], ends[1][0]), np.maximum(ends[0][1], ends[1][1])

    def _ends_of_curves(self, low: np.ndarray, high: np.ndarray) -> Ends:
        """Like `ends`, if moved arrays are enclosed over boxes: interpolation mixes values and their errors alike."""
        centre, radius = self.original.centre, self.original.radius
        count, size = len(centre), centre[0].size
        both = np.concatenate([centre, radius]).reshape(-1, *centre.shape[-2:])
        moved = self.perturbed.enclose_maps(both, low, high)
        boxes, rows = moved.coefficients.shape[:2]
        values = Forms(moved.coefficients.reshape(boxes, rows, -1), moved.radius.reshape(boxes, -1))
        least, most = (part.reshape(boxes, 2 * count, size) for part in values.bounds())
        around = np.maximum(most[:, count:], 0.0) * (1.0 + 4.0 * UNIT)
        sizes = np.maximum(np.abs(least), np.abs(most))[:, :count] + around
        error = around + gamma(2) * sizes + LEAST
        return least[:, :count] - error, most[:, :count] + error

    @cached_property
    def _transports(self) -> list[tuple[np.ndarray, ...]]:
        """For every knot cell, the arrays as base + offset + θ_T · slope, and a bound on their error.

        Each is (N, pixels). The error uses the largest terms on any cell, because rounding may push the corner of a
        box beyond a knot, into the next cell.
        """
        maps, radius, axis = self.original.centre, self.original.radius, self.perturbed.moving_axis
        domain, cells = self.perturbed.domain, self.perturbed.cells
        farthest = float(max(abs(domain.low[axis]), abs(domain.high[axis])))
        moved = [part for cell in cells if (part := self.perturbed.transport(maps, cell)) is not None]
        spread = [part for cell in cells if (part := self.perturbed.transport(radius, cell)) is not None]
        # An expected map mixes two shifted maps; its error mixes their errors.
        ends = [
            np.abs(radius + offset + end[axis] * slope)
            for cell, (offset, slope) in zip(cells, spread, strict=True)
            for end in (cell.low, cell.high)
        ]
        sizes = [np.abs(offset) + farthest * np.abs(slope) for offset, slope in (*moved, *spread)]
        error = np.max(ends, axis=0) * (1.0 + 1e-9)
        error = error + gamma(32) * (np.abs(maps) + radius + np.max(sizes, axis=0)) + LEAST
        return [tuple(part.reshape(len(maps), -1) for part in (maps, offset, slope, error)) for offset, slope in moved]
