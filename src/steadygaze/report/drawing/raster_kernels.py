"""Compiled loops over pixels: polygons → the polygon of every pixel → averaged colours."""

import numpy as np

from ...compiling import compiled


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


@compiled
def average_colours(owners, table, block, picture):
    """Write the mean colour of every block of pixels into `picture` (n, n, 4); the last row of `table` is for −1.

    Colours of the table are multiplied by their opacity; those of the picture are not.
    """
    none = table.shape[0] - 1
    count = float(block * block)
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            for channel in range(4):
                picture[row, column, channel] = 0.0
            for y in range(block):
                for x in range(block):
                    owner = owners[row * block + y, column * block + x]
                    for channel in range(4):
                        picture[row, column, channel] += table[owner if owner >= 0 else none, channel]
            for channel in range(4):
                picture[row, column, channel] /= count
            opacity = max(picture[row, column, 3], 1e-9)
            for channel in range(3):
                picture[row, column, channel] = min(max(picture[row, column, channel] / opacity, 0.0), 1.0)
            picture[row, column, 3] = min(max(picture[row, column, 3], 0.0), 1.0)
