"""What properties ask of the shapes of a map, whatever its dimension: splitting, clipping, distances.

The only place that tells polygons from polyhedra: `planes` drives the loops over the former, `solids` over the latter.
"""

import numpy as np

from ..regions.polyhedra import Polyhedra
from ..regions.region import Polygons
from . import planes, solids

Polytopes = Polygons | Polyhedra


def split_by_argmax(
    polytopes: Polytopes, logits: np.ndarray, noise: float, base: int
) -> tuple[Polytopes, np.ndarray, np.ndarray, np.ndarray]:
    """Split every shape into pieces on which one of its logits (R, D+1, K) wins; ties within `noise` go to any.

    Returns the pieces, the shape that each comes from (P,), its winner (P,), and the two classes (N, 2) of every cut;
    cuts are numbered from base + 1.
    """
    found: tuple[Polytopes, np.ndarray, np.ndarray, np.ndarray]
    if isinstance(polytopes, Polyhedra):
        found = solids.split_by_argmax(polytopes, logits, noise, base)
    else:
        found = planes.split_by_argmax(polytopes, logits, noise, base)
    pieces, origin, winner, pairs = found
    # Where nothing was split, the shapes need not be held twice.
    return (pieces if len(pairs) else polytopes), origin, winner, pairs


def margins(polytopes: Polytopes, logits: np.ndarray, region: np.ndarray, label: int) -> np.ndarray:
    """The smallest and largest f_label − max of the other logits on the vertices of every piece (P, 2)."""
    if isinstance(polytopes, Polyhedra):
        return solids.margins(polytopes, logits, region, label)
    return planes.margins(polytopes, logits, region, label)


def decided_volumes(
    polytopes: Polytopes,
    logits: np.ndarray,
    label: int,
    region: np.ndarray,
    winner: np.ndarray,
    slack: np.ndarray,
    chosen: np.ndarray,
) -> np.ndarray:
    """Volumes (S,) of the parts of the chosen pieces (S,) where the winner beats its rivals by the slack (P,)."""
    if isinstance(polytopes, Polyhedra):
        return solids.decided_volumes(polytopes, logits, label, region, winner, slack, chosen)
    return planes.decided_volumes(polytopes, logits, label, region, winner, slack, chosen)


def split_by_slab(
    polytopes: Polytopes, slab: np.ndarray, axis: int, base: int
) -> tuple[Polytopes, np.ndarray, np.ndarray, int]:
    """Cut every shape at t[axis] = slab0 and slab1 (P, 2), where these lie inside it.

    Returns the pieces, the shape that each comes from, whether it lies between the two, and the number of cuts.
    """
    if isinstance(polytopes, Polyhedra):
        return solids.split_by_slab(polytopes, slab, axis, base)
    return planes.split_by_slab(polytopes, slab, axis, base)


def slab_volumes(polytopes: Polytopes, chosen: np.ndarray, slab: np.ndarray, axis: int) -> np.ndarray:
    """Volumes (S,) of the parts of the chosen shapes where slab0 ≤ t[axis] ≤ slab1, one slab (S, 2) for each."""
    if isinstance(polytopes, Polyhedra):
        return solids.slab_volumes(polytopes, chosen, slab, axis)
    return planes.slab_volumes(polytopes, chosen, slab, axis)


def nearest_points(point: np.ndarray, polytopes: Polytopes, chosen: np.ndarray) -> np.ndarray:
    """Squared distance and the nearest point of each of the chosen shapes to a point (D,): (S, 1 + D)."""
    return _nearest_of(point, polytopes.points, polytopes.starts, chosen)


def distance(point: np.ndarray, vertices: np.ndarray) -> float:
    """The distance from a point (D,) to the convex hull of vertices (V, D), counter-clockwise in the plane."""
    found = _nearest_of(point, vertices, np.array([0, len(vertices)]), np.zeros(1, dtype=np.int64))
    return float(np.sqrt(found[0, 0]))


def clip(vertices: np.ndarray, form: np.ndarray) -> np.ndarray:
    """Points (N, D) whose hull is the part of the hull of vertices (V, D) where the form (D+1,) is at least 0."""
    return (solids if vertices.shape[1] == 3 else planes).clip(vertices, form)


def _nearest_of(point: np.ndarray, points: np.ndarray, starts: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    return (solids if points.shape[1] == 3 else planes).nearest_points(point, points, starts, chosen)
