"""From polytopes with signed cuts to the pairs of them that touch along a facet.

Two polytopes touch when they carry the same cut with opposite signs and their facets on it overlap. No vertices are
matched: a vertex of one side may lie inside a facet of the other. What has no more than a vertex (in three dimensions:
an edge) in common does not touch.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import InternalError
from ..tolerances import TOUCH
from . import adjacency_kernels as kernels
from .polyhedra import Polyhedra
from .region import Cut, Polygons, Polytopes


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Common facets of polytopes, in the order of their cuts.

    first and second (E,): the polytopes below and above the cut (those that carry it with − and with +); cut (E,),
    numbered from 1; measure (E,): length or area of the common facet; extent (E, 2, D): its two ends, or, in three
    dimensions, two corners of its bounding box.
    """

    first: np.ndarray
    second: np.ndarray
    cut: np.ndarray
    measure: np.ndarray
    extent: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    def take(self, chosen: np.ndarray) -> "Adjacency":
        """The chosen facets (an index or boolean array)."""
        return Adjacency(
            self.first[chosen], self.second[chosen], self.cut[chosen], self.measure[chosen], self.extent[chosen]
        )


def touching(polytopes: Polytopes) -> Adjacency:
    """All pairs of polygons (polyhedra) with a common edge (facet) wider than the tolerance. Exact up to that.

    >>> points = np.array([[0, 0], [0.5, 0], [0.5, 1], [0, 1], [0.5, 0], [1, 0], [1, 1], [0.5, 1.0]])
    >>> halves = Polygons(points, np.array([0, 4, 8]), np.array([1, 5, 3, 4, 1, 2, 3, -5]))
    >>> found = touching(halves)
    >>> found.first, found.second, found.cut, found.measure
    (array([1]), array([0]), array([5]), array([1.]))
    """
    return _touching_polygons(polytopes) if isinstance(polytopes, Polygons) else _touching_polyhedra(polytopes)


def _touching_polygons(polygons: Polygons) -> Adjacency:
    edges = np.flatnonzero(polygons.lengths > TOUCH)
    edges = edges[_has_two_sides(polygons.edges[edges])]
    start, end = polygons.points[edges], polygons.points[polygons.following[edges]]
    cut = np.unique(np.abs(polygons.edges[edges]), return_inverse=True)[1]
    origin, direction = _lines(cut, start, end, polygons.lengths[edges])
    along = np.stack([((point - origin[cut]) * direction[cut]).sum(axis=1) for point in (start, end)])
    low, high = along.min(axis=0), along.max(axis=0)
    is_above = polygons.edges[edges] > 0
    order = np.lexsort((low, is_above, cut))
    below, above = _overlaps(cut[order], is_above[order], low[order], high[order])
    below, above = order[below], order[above]
    ends = np.stack([np.maximum(low[below], low[above]), np.minimum(high[below], high[above])], axis=1)
    which = cut[below]
    return Adjacency(
        first=polygons.owner[edges[below]],
        second=polygons.owner[edges[above]],
        cut=np.abs(polygons.edges[edges[below]]),
        measure=ends[:, 1] - ends[:, 0],
        extent=origin[which, None] + ends[:, :, None] * direction[which, None],
    )


def on_border(polytopes: Polytopes, cuts: np.ndarray, dimension: int) -> np.ndarray:
    """Which polytopes (R,) have a facet on the border of the domain, given the table of cuts (E, 3).

    With a single parameter only the first axis has a border: nothing depends on the second coordinate.
    """
    if isinstance(polytopes, Polygons):
        signed, owner, is_wide = polytopes.edges, polytopes.owner, polytopes.lengths > TOUCH
    else:
        signed, owner, is_wide = polytopes.facets, polytopes.facet_owner, polytopes.areas > TOUCH * TOUCH
    kind, axis, _ = cuts[np.abs(signed) - 1].T
    is_border = (kind == Cut.BORDER) & (axis < dimension) & is_wide
    return np.bincount(owner[is_border], minlength=len(polytopes)) > 0


def _touching_polyhedra(polyhedra: Polyhedra) -> Adjacency:
    facets = np.flatnonzero(polyhedra.areas > TOUCH * TOUCH)
    facets = facets[_has_two_sides(polyhedra.facets[facets])]
    cut = np.unique(np.abs(polyhedra.facets[facets]), return_inverse=True)[1]
    is_above = polyhedra.facets[facets] > 0
    planes, faces_up = _planes(cut, is_above, polyhedra, facets)
    x, y, starts = _in_planes(polyhedra, facets, planes[cut], faces_up)
    sides = [end.reduceat(along, starts[:-1]) for along in (x, y) for end in (np.minimum, np.maximum)] if len(x) else []
    box = np.stack(sides, axis=1) if sides else np.zeros((0, 4))
    order = np.lexsort((box[:, 0], is_above, cut))
    facets, cut, is_above, box = facets[order], cut[order], is_above[order], box[order]
    sizes = np.diff(starts)[order]
    places = np.repeat(starts[:-1][order], sizes) + _counted(sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    bounds = _bounds(cut, is_above)
    scratch = np.zeros(len(facets)), np.zeros((4, 4 * int(sizes.max(initial=0)) + 8))
    for room in (4, 16, 64, 256, 1024):
        count = room * len(facets)
        below, above = np.zeros((2, count), dtype=np.int64)
        areas, extent = np.zeros(count), np.zeros((count, 2, 3))
        found = kernels.common_facets(
            bounds, box, starts, x[places], y[places], planes, TOUCH, *scratch, below, above, areas, extent
        )
        if found >= 0:
            below, above = facets[below[:found]], facets[above[:found]]
            owner, number = polyhedra.facet_owner, np.abs(polyhedra.facets[below])
            return Adjacency(owner[below], owner[above], number, areas[:found].copy(), extent[:found].copy())
    raise InternalError("facets on one side of a cut lie above each other: please report this model and image")


def _planes(
    cut: np.ndarray, is_above: np.ndarray, polyhedra: Polyhedra, facets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A point and two unit vectors (C, 3, 3) of every cut's plane, from its largest facet; and which facets (F,) run
    counter-clockwise in these coordinates: those on the same side as that one.
    """
    largest = _last_of_each(cut, polyhedra.areas[facets])
    normal = polyhedra.area_vectors[facets[largest]] / polyhedra.areas[facets[largest], None]
    # The axis that is least along the normal is far from parallel to it.
    helper = np.eye(3)[np.argmin(np.abs(normal), axis=1)]
    across = np.cross(normal, helper)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    planes = np.stack([polyhedra.facet_centres[facets[largest]], across, np.cross(normal, across)], axis=1)
    return planes, is_above == is_above[largest][cut]


def _in_planes(
    polyhedra: Polyhedra, facets: np.ndarray, planes: np.ndarray, faces_up: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The vertices of facets (F,) in coordinates of their planes (F, 3, 3), counter-clockwise, and their starts."""
    cycles, cycle_starts = polyhedra.cycles
    sizes = np.diff(cycle_starts)[facets]
    facet, place = np.repeat(np.arange(len(facets)), sizes), _counted(sizes)
    place = np.where(faces_up[facet], place, sizes[facet] - 1 - place)
    offset = polyhedra.points[cycles[cycle_starts[facets][facet] + place]] - planes[facet, 0]
    x, y = ((offset * planes[facet, axis]).sum(axis=1) for axis in (1, 2))
    return x, y, np.concatenate([[0], np.cumsum(sizes)])


def _counted(sizes: np.ndarray) -> np.ndarray:
    """0, 1, … for each of several runs, one after the other.

    >>> _counted(np.array([2, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _has_two_sides(signed: np.ndarray) -> np.ndarray:
    """Whether the cut of each edge (signed, (E,)) is carried with both signs by some of them."""
    sides = np.zeros((2, np.abs(signed).max(initial=0) + 1), dtype=bool)
    sides[(signed > 0).astype(np.int64), np.abs(signed)] = True
    return (sides[0] & sides[1])[np.abs(signed)]


def _last_of_each(cut: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The place of the largest member of every cut (C,), for cuts numbered 0 … C−1 without a gap."""
    order = np.lexsort((size, cut))
    return order[np.append(np.diff(cut[order]), 1) > 0] if len(order) else order


def _lines(cut: np.ndarray, start: np.ndarray, end: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A point and a unit direction (C, 2) of every cut, from its longest edge."""
    longest = _last_of_each(cut, lengths)
    return start[longest], (end[longest] - start[longest]) / lengths[longest, None]


def _bounds(cut: np.ndarray, is_above: np.ndarray) -> np.ndarray:
    """Where the members of every cut begin, those above it begin, and they end (C, 3); given by cut, then side."""
    if not len(cut):
        return np.zeros((0, 3), dtype=np.int64)
    first = np.flatnonzero(np.diff(cut, prepend=-1))
    middle = np.flatnonzero(is_above & (np.diff(2 * cut + is_above, prepend=-1) != 0))
    return np.stack([first, middle, np.append(first[1:], len(cut))], axis=1)


def _overlaps(
    cut: np.ndarray, is_above: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Places (E,) of the intervals that overlap across a cut; given by cut, then side, then low end."""
    bounds = _bounds(cut, is_above)
    for room in (2, 16, 256):
        below, above = np.zeros((2, room * len(cut)), dtype=np.int64)
        found = kernels.overlaps(bounds, low, high, TOUCH, np.zeros(len(cut)), below, above)
        if found >= 0:
            return below[:found], above[:found]
    raise InternalError("edges on one side of a cut lie above each other: please report this model and image")
