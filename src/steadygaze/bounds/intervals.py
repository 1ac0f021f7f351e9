"""Arithmetic of intervals that holds whatever the rounding."""

import numpy as np

from ..attention.filters import Intervals
from ..tolerances import LEAST, gamma, up


def product(left: Intervals, right: Intervals) -> Intervals:
    """Intervals with all products of two numbers, with broadcasting.

    >>> found = product(Intervals(np.array([2.0]), np.array([1.0])), Intervals(np.array([0.0]), np.array([0.5])))
    >>> float(found.centre[0]), float(found.radius[0]) >= 1.5
    (0.0, True)
    """
    sizes = np.abs(left.centre), np.abs(right.centre)
    radius = sizes[0] * right.radius + left.radius * (sizes[1] + right.radius)
    is_zero = (sizes[0] + left.radius == 0.0) | (sizes[1] + right.radius == 0.0)
    radius = (radius + gamma(2) * sizes[0] * sizes[1]) * up(6) + LEAST
    return Intervals(left.centre * right.centre, np.where(is_zero, 0.0, radius))


def difference(found: Intervals, ends: tuple[np.ndarray, np.ndarray]) -> Intervals:
    """Intervals with all differences between numbers of intervals and numbers between two ends."""
    other = Intervals.between(*ends)
    size = np.abs(found.centre) + np.abs(other.centre) + found.radius + other.radius
    radius = (found.radius + other.radius + gamma(2) * size) * up(4) + LEAST
    return Intervals(found.centre - other.centre, np.where(size == 0.0, 0.0, radius))
