"""From a tiling to a picture of it: which polygon the centre of every pixel lies in.

Drawing tens of thousands of polygons one by one is slow, and antialiasing leaves seams between neighbours; colours
looked up by polygon and then averaged over blocks of pixels have neither fault. Only for pictures: areas are computed
from the polygons.
"""

import numpy as np

from ..regions.region import Polygons

BLOCK = 2
"""Pixels along each side of a block that is averaged into one pixel of the picture."""

HATCH_PERIOD, HATCH_WIDTH, HATCH_DARKENING = 16, 3, 0.55
"""Distance and width of hatching lines in pixels of the picture, and how much they darken it."""

ASIDE = np.array([2.0**-0.5, 3.0**-0.5])
"""Where a pixel is looked at, in pixels: beside the centre, because pixel values make lines with simple slopes run
exactly through centres, and rounding then leaves some of them to neither neighbour."""


def owners_on_grid(polygons: Polygons, side: int) -> np.ndarray:
    """The polygon (side, side) near every pixel centre of the unit square, −1 where there is none; rows count upwards.

    >>> triangle = Polygons(np.array([[0.0, 0], [1, 0], [0, 1]]), np.array([0, 3]), np.array([1, 2, 3]))
    >>> owners_on_grid(triangle, 3).tolist()
    [[0, 0, -1], [0, -1, -1], [-1, -1, -1]]
    """
    # In units of pixels, with the points that are looked at on whole numbers.
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


def colour_grid(owners: np.ndarray, colours: np.ndarray) -> np.ndarray:
    """RGBA (n, n, 4) of a grid of owners (n · BLOCK, …), averaged over blocks; colours (P, 4), transparent where −1."""
    table = np.vstack([colours, np.zeros((1, 4))])
    table[:, :3] *= table[:, 3:]
    side = len(owners) // BLOCK
    sums = np.zeros((side, side, 4))
    for y in range(BLOCK):
        for x in range(BLOCK):
            sums += table[owners[y::BLOCK, x::BLOCK]]
    sums /= BLOCK**2
    sums[..., :3] /= np.maximum(sums[..., 3:], 1e-9)
    return np.clip(sums, 0.0, 1.0)


def hatch_grid(picture: np.ndarray, owners: np.ndarray, chosen: np.ndarray, *, is_rising: bool) -> None:
    """Lay thin dark lines, rising or falling, over the chosen polygons (P,) of a picture from `colour_grid`."""
    inside = np.append(chosen, False)[owners[::BLOCK, ::BLOCK]]
    row, column = np.indices(inside.shape)
    is_line = inside & ((column - row if is_rising else column + row) % HATCH_PERIOD < HATCH_WIDTH)
    picture[is_line, :3] *= HATCH_DARKENING
