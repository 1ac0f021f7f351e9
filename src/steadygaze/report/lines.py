"""A straight line through a map, along one parameter: which pieces it meets, and from where to where.

Turns the pieces of an answer into intervals of one coordinate of t, exactly. Labels and values are not known here.
"""

from dataclasses import dataclass

import numpy as np

from ..regions.polyhedra import Polyhedra
from ..regions.region import Polygons
from ..results.answer import DeltaAnswer
from ..tolerances import BESIDE
from .sections import cut_at


@dataclass(frozen=True, eq=False)
class Line:
    """The pieces (N,) that a line meets, sorted along it, from low (N,) to high (N,) of t[axis].

    point (D,) is a point of the line in t, beside the borders of the domain.
    """

    axis: int
    point: np.ndarray
    low: np.ndarray
    high: np.ndarray
    piece: np.ndarray

    def points(self, along: np.ndarray) -> np.ndarray:
        """Points (N, D) of the line in t, where t[axis] has the given values (N,)."""
        points = np.tile(self.point, (len(along), 1))
        points[:, self.axis] = along
        return points


def line_through(answer: DeltaAnswer, axis: int, theta: np.ndarray) -> Line:
    """The line along a parameter through a theta (d,), of maps of up to three parameters."""
    point = answer.compound.to_unit(np.asarray(theta, dtype=np.float64)[None])[0]
    # Zero is often a border of the domain or a knot, where regions end.
    point = np.where(point < 0.5, point + BESIDE, point - BESIDE)
    polytopes = answer.joint.polytopes
    if isinstance(polytopes, Polyhedra):
        held = max({0, 1, 2} - {axis})
        polygons, piece = cut_at(polytopes, held, float(point[held]))
        rest = [other for other in range(3) if other != held]
        low, high, which = row_of(polygons, rest.index(axis), float(point[rest[1 - rest.index(axis)]]))
        piece = piece[which]
    else:
        low, high, piece = row_of(polytopes, axis, float(point[1 - axis]))
    order = np.argsort(low, kind="stable")
    return Line(axis, point, low[order], high[order], piece[order])


def row_of(polygons: Polygons, axis: int, at: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the line t[1 − axis] = at meets polygons: from low (N,) to high (N,) of t[axis], and the polygons (N,).

    >>> triangle = Polygons(np.array([[0.0, 0], [1, 0], [0, 1]]), np.array([0, 3]), np.array([1, 2, 3]))
    >>> [part.tolist() for part in row_of(triangle, 0, 0.25)], len(row_of(triangle, 0, 2.0)[0])
    ([[0.0], [0.75], [0]], 0)
    """
    start, end = polygons.points, polygons.points[polygons.following]
    across = 1 - axis
    # An edge includes its lower end only, so a line meets a convex polygon in two edges, or in none.
    chosen = np.flatnonzero((start[:, across] < at) != (end[:, across] < at))
    first, last = start[chosen], end[chosen]
    share = (at - first[:, across]) / (last[:, across] - first[:, across])
    along = (first[:, axis] + share * (last[:, axis] - first[:, axis])).reshape(-1, 2)
    return along.min(axis=1), along.max(axis=1), polygons.owner[chosen][::2]
