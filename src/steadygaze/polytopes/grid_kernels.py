"""A compiled loop over polygons that finds the polygon of every point of a grid."""

import numpy as np

from ..compiling import compiled


@compiled
def fill_owners(points, starts, low, high, grid):
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
