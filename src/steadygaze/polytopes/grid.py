"""Which polygon lies under every point of a grid over the unit square."""

import numpy as np

from .polygons import Polygons

ASIDE = np.array([2.0**-0.5, 3.0**-0.5])
"""The point inside a pixel that is looked up. Centres do not work: lines with simple slopes run exactly through them,
and rounding then leaves some centres to neither neighbour."""


def owners_on_grid(polygons: Polygons, side: int) -> np.ndarray:
    """The polygon (side, side) near every pixel centre of the unit square, −1 for none; rows count upwards.

    >>> triangle = Polygons(np.array([[0.0, 0], [1, 0], [0, 1]]), np.array([0, 3]), np.array([1, 2, 3]))
    >>> owners_on_grid(triangle, 3).tolist()
    [[0, 0, -1], [0, -1, -1], [-1, -1, -1]]
    """
    # In units of pixels; the points looked up are whole numbers.
    start = polygons.points * side - ASIDE
    end = start[polygons.following]
    first, last = (
        np.clip(np.ceil(rows), 0, side).astype(np.int64)
        for rows in (np.minimum(start[:, 1], end[:, 1]), np.maximum(start[:, 1], end[:, 1]))
    )
    counts = last - first
    edge = np.repeat(np.arange(len(start)), counts)
    row = np.arange(len(edge)) - np.repeat(np.cumsum(counts) - counts, counts) + first[edge]
    rise = end[edge, 1] - start[edge, 1]
    across = start[edge, 0] + (row - start[edge, 1]) / rise * (end[edge, 0] - start[edge, 0])
    owner = polygons.owner[edge]
    # A row meets a convex polygon in two edges, or in none: edges include their lower end only.
    order = np.lexsort((across, row, owner))
    left, right = np.clip(np.ceil(across[order].reshape(-1, 2)), 0, side).astype(np.int64).T
    row, owner = row[order][::2], owner[order][::2]
    widths = right - left
    column = np.arange(widths.sum()) - np.repeat(np.cumsum(widths) - widths - left, widths)
    grid = np.full((side, side), -1, dtype=np.int32)
    grid[np.repeat(row, widths), column] = np.repeat(owner, widths)
    return grid
