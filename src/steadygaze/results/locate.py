"""Which shape of a map contains a point. Looks at all of them: for single points, not for thousands."""

import numpy as np

from ..properties.shapes import Polytopes
from ..regions.polyhedra import Polyhedra
from ..regions.region import Polygons

OUTSIDE = 1e-9
"""How far outside of a shape a point may lie and still belong to it: the rounding of vertices and of the point."""

SMALLEST_FACET = 1e-18
"""Facets of a smaller area have no direction that could be trusted; they only cut off a corner."""


def deepest(polytopes: Polytopes, point: np.ndarray) -> int | None:
    """The shape in which a point (D,) lies deepest, None if it is outside of all."""
    if not len(polytopes):
        return None
    if isinstance(polytopes, Polyhedra):
        chosen, depth = _depth_in_polyhedra(polytopes, point)
    else:
        chosen, depth = np.arange(len(polytopes)), _depth_in_polygons(polytopes, point)
    if not len(chosen):
        return None
    best = int(np.argmax(depth))
    return int(chosen[best]) if depth[best] >= -OUTSIDE else None


def _depth_in_polygons(polygons: Polygons, point: np.ndarray) -> np.ndarray:
    """The distance (R,) of a point to the nearest edge line of every polygon, negative outside."""
    start, following = polygons.points, polygons.points[polygons.following]
    edge = following - start
    side = edge[:, 0] * (point[1] - start[:, 1]) - edge[:, 1] * (point[0] - start[:, 0])
    depth = side / np.maximum(np.hypot(edge[:, 0], edge[:, 1]), 1e-300)
    return np.minimum.reduceat(depth, polygons.starts[:-1])


def _depth_in_polyhedra(polyhedra: Polyhedra, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The polyhedra (S,) with the point in their bounding box, and its distance (S,) to the nearest facet plane."""
    is_near = np.ones(len(polyhedra), dtype=bool)
    for axis in range(3):
        low, high = polyhedra.extent(axis)
        is_near &= (low - OUTSIDE <= point[axis]) & (point[axis] <= high + OUTSIDE)
    chosen = np.flatnonzero(is_near)
    if not len(chosen):
        return chosen, np.zeros(0)
    near = polyhedra.take(chosen)
    inward = ((near.facet_centres - point) * near.area_vectors).sum(axis=1) / np.maximum(near.areas, SMALLEST_FACET)
    depth = np.where(near.areas > SMALLEST_FACET, inward, np.inf)
    return chosen, np.minimum.reduceat(depth, near.facet_starts[:-1])
