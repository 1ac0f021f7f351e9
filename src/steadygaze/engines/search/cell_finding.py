"""Finds the knot cell that the traversal enters; a cell is a box of thetas, or half of one."""

from collections.abc import Sequence

import numpy as np

from ...compound import CellProgram
from ...tolerances import BEYOND, DISTANCE, SLOW


def cell_beyond(cells: Sequence[CellProgram], dimension: int, point: np.ndarray, direction: np.ndarray) -> int:
    """The number of the cell that a point (d,) enters when it moves in a direction, tilted by less than any rounding.

    The axes, with the signs of the direction, break ties, as they do for kinks in `traversal_kernels.settle`.
    """
    if len(cells) == 1:
        return 0
    step = direction / max(float(np.abs(direction).max()), 1e-300)
    signs = np.where(direction < 0.0, -1.0, 1.0)
    moved = point + BEYOND * np.where(np.abs(step) < 1e-6, 1e-3 * signs, step)
    low, high = (np.array([getattr(cell, end)[:dimension] for cell in cells]) for end in ("low", "high"))
    outside = np.maximum(low - moved, moved - high).max(axis=1)
    nearest = int(np.argmin(outside))
    is_same_box = (low == low[nearest]).all(axis=1) & (high == high[nearest]).all(axis=1)
    halves = np.flatnonzero(is_same_box).tolist()
    for row in cells[nearest].sides[:, [*range(dimension), -1]]:
        value = float(row[:-1] @ point + row[-1])
        if abs(value) <= DISTANCE * float(np.abs(row[:-1]).sum()):
            ways = [float(row[:-1] @ step), *(row[:-1] * signs)]
            value = next((way for way in ways if abs(way) > SLOW), 1.0)
        if value < 0.0:
            return next((half for half in halves if half != nearest), nearest)
    return nearest
