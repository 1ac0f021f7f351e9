"""Finds the polygon that contains each point of a grid over the unit square."""

import numpy as np

from . import grid_kernels
from .polygons import Polygons

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
    grid_kernels.fill_owners(polygons.points * side - ASIDE, polygons.starts, np.empty(side), np.empty(side), grid)
    return grid
