"""Finds the polygon, or the shape in a plane, that contains each point of a grid over the unit square."""

import numpy as np

from ..compiling import compiled
from .polygons import Polygons
from .protocol import Polytopes


@compiled
def fill_owners(points: np.ndarray, starts: np.ndarray, low: np.ndarray, high: np.ndarray, grid: np.ndarray) -> None:
    """Write the number of the convex polygon around every whole point (column, row) into `grid` (rows, columns).

    `points` are in units of pixels; edges include their lower end only. `low` and `high` (rows,) are scratch.
    """
    rows, columns = grid.shape
    for polygon in range(starts.shape[0] - 1):
        start, end = starts[polygon], starts[polygon + 1]
        bottom, top = rows, 0
        for i in range(start, end):
            row = min(max(np.ceil(points[i, 1]), 0.0), float(rows))
            bottom, top = min(bottom, int(row)), max(top, int(row))
        for row in range(bottom, top):
            low[row], high[row] = np.inf, -np.inf
        for i in range(start, end):
            j = i + 1 if i + 1 < end else start
            rise, run = points[j, 1] - points[i, 1], points[j, 0] - points[i, 0]
            first = int(min(max(np.ceil(min(points[i, 1], points[j, 1])), 0.0), float(rows)))
            last = int(min(max(np.ceil(max(points[i, 1], points[j, 1])), 0.0), float(rows)))
            for row in range(first, last):
                across = points[i, 0] + (row - points[i, 1]) / rise * run
                low[row], high[row] = min(low[row], across), max(high[row], across)
        for row in range(bottom, top):
            left = int(min(max(np.ceil(low[row]), 0.0), float(columns)))
            right = int(min(max(np.ceil(high[row]), 0.0), float(columns)))
            for column in range(left, right):
                grid[row, column] = polygon


ASIDE = np.array([2.0**-0.5, 3.0**-0.5])
"""The point inside a pixel that is looked up. It is not the centre: lines with simple slopes run exactly through
centres, and with rounding some centres would belong to neither neighbour."""


def owners_on_grid(polygons: Polygons, side: int) -> np.ndarray:
    """The polygon (side, side) near every pixel centre of the unit square, −1 for none; rows count upwards.

    >>> triangle = Polygons(np.array([[0.0, 0], [1, 0], [0, 1]]), np.array([0, 3]), np.array([1, 2, 3]))
    >>> owners_on_grid(triangle, 3).tolist()
    [[0, 0, -1], [0, -1, -1], [-1, -1, -1]]
    """
    grid = np.full((side, side), -1, dtype=np.int32)
    # In units of pixels, shifted so that the points looked up are whole numbers.
    fill_owners(polygons.points * side - ASIDE, polygons.starts, np.empty(side), np.empty(side), grid)
    return grid


def shapes_on_grid(shapes: Polytopes, axis: int | None, at: float, side: int) -> np.ndarray:
    """The shape (side, side) at every point of the plane t[axis] = at, −1 for none (see `Polytopes.section`)."""
    polygons, shape = shapes.section(axis, at)
    return np.append(shape, -1)[owners_on_grid(polygons, side)]
