"""Finds the pairs of polytopes with signed cuts that touch along a facet.

Two polytopes touch if they have facets on the same cut with opposite signs, and these facets overlap. Vertices need not
match: a vertex of one side may lie inside a facet of the other. Polytopes that share only a vertex, or in three
dimensions only an edge, do not touch.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..compiling import compiled
from ..errors import InternalError
from ..tolerances import TOUCH
from .polygon_kernels import are_opposite
from .protocol import starts_of

if TYPE_CHECKING:
    from .polygons import Polygons
    from .polyhedra import Polyhedra


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Common facets of polytopes, in the order of their cuts.

    first and second (E,): the polytopes below and above the cut, whose facets carry it with − and +; cut (E,): the cut,
    numbered from 1; measure (E,): the length or area of the common facet; extent (E, 2, D): its two ends, or, in three
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


def touching_polygons(polygons: "Polygons") -> Adjacency:
    """All pairs of polygons with a common edge longer than the tolerance."""
    edges = np.flatnonzero(polygons.facet_sizes > TOUCH)
    edges = edges[_has_two_sides(polygons.facets[edges])]
    start, end = polygons.points[edges], polygons.points[polygons.following[edges]]
    cut = np.unique(np.abs(polygons.facets[edges]), return_inverse=True)[1]
    origin, direction = _lines(cut, start, end, polygons.facet_sizes[edges])
    along = np.stack([((point - origin[cut]) * direction[cut]).sum(axis=1) for point in (start, end)])
    low, high = along.min(axis=0), along.max(axis=0)
    is_above = polygons.facets[edges] > 0
    order = np.lexsort((low, is_above, cut))
    below, above = _find_overlaps(cut[order], is_above[order], low[order], high[order])
    below, above = order[below], order[above]
    ends = np.stack([np.maximum(low[below], low[above]), np.minimum(high[below], high[above])], axis=1)
    which = cut[below]
    return Adjacency(
        first=polygons.owner[edges[below]],
        second=polygons.owner[edges[above]],
        cut=np.abs(polygons.facets[edges[below]]),
        measure=ends[:, 1] - ends[:, 0],
        extent=origin[which, None] + ends[:, :, None] * direction[which, None],
    )


def touching_polyhedra(polyhedra: "Polyhedra") -> Adjacency:
    """All pairs of polyhedra with a common facet wider than the tolerance."""
    facets = np.flatnonzero(polyhedra.facet_sizes > TOUCH * TOUCH)
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
    starts = starts_of(sizes)
    bounds = _bounds(cut, is_above)
    scratch = np.zeros(len(facets)), np.zeros((4, 4 * int(sizes.max(initial=0)) + 8))
    for room in (4, 16, 64, 256, 1024):
        count = room * len(facets)
        below, above = np.zeros((2, count), dtype=np.int64)
        areas, extent = np.zeros(count), np.zeros((count, 2, 3))
        found = _common_facets(
            bounds, box, starts, x[places], y[places], planes, TOUCH, *scratch, below, above, areas, extent
        )
        if found >= 0:
            below, above = facets[below[:found]], facets[above[:found]]
            owner, number = polyhedra.facet_owner, np.abs(polyhedra.facets[below])
            return Adjacency(owner[below], owner[above], number, areas[:found].copy(), extent[:found].copy())
    raise InternalError("facets on the same side of a cut overlap: please report this model and image")


def _planes(
    cut: np.ndarray, is_above: np.ndarray, polyhedra: "Polyhedra", facets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A point and two unit vectors (C, 3, 3) of every cut's plane, from its largest facet; and a mask (F,) of facets
    that run counter-clockwise in these coordinates, which are those on the same side as the largest facet.
    """
    largest = _last_of_each(cut, polyhedra.facet_sizes[facets])
    normal = polyhedra.facet_vectors[facets[largest]] / polyhedra.facet_sizes[facets[largest], None]
    # The axis along which the normal is smallest is far from parallel to it.
    helper = np.eye(3)[np.argmin(np.abs(normal), axis=1)]
    across = np.cross(normal, helper)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    planes = np.stack([polyhedra.facet_centres[facets[largest]], across, np.cross(normal, across)], axis=1)
    return planes, is_above == is_above[largest][cut]


def _in_planes(
    polyhedra: "Polyhedra", facets: np.ndarray, planes: np.ndarray, faces_up: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The vertices of facets (F,) in coordinates of their planes (F, 3, 3), counter-clockwise, and their starts."""
    cycles, cycle_starts = polyhedra.cycles
    sizes = np.diff(cycle_starts)[facets]
    facet, place = np.repeat(np.arange(len(facets)), sizes), _counted(sizes)
    place = np.where(faces_up[facet], place, sizes[facet] - 1 - place)
    offset = polyhedra.points[cycles[cycle_starts[facets][facet] + place]] - planes[facet, 0]
    x, y = ((offset * planes[facet, axis]).sum(axis=1) for axis in (1, 2))
    return x, y, starts_of(sizes)


def _counted(sizes: np.ndarray) -> np.ndarray:
    """Count 0, 1, … within each of several runs.

    >>> _counted(np.array([2, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _has_two_sides(signed: np.ndarray) -> np.ndarray:
    """Whether the cut of each edge (signed, (E,)) occurs with both signs."""
    sides = np.zeros((2, np.abs(signed).max(initial=0) + 1), dtype=bool)
    sides[(signed > 0).astype(np.int64), np.abs(signed)] = True
    return (sides[0] & sides[1])[np.abs(signed)]


def _last_of_each(cut: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The index of the largest member of every cut (C,), for cuts numbered 0 … C−1 without gaps."""
    order = np.lexsort((size, cut))
    return order[np.append(np.diff(cut[order]), 1) > 0] if len(order) else order


def _lines(cut: np.ndarray, start: np.ndarray, end: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A point and a unit direction (C, 2) of every cut, from its longest edge."""
    longest = _last_of_each(cut, lengths)
    return start[longest], (end[longest] - start[longest]) / lengths[longest, None]


def _bounds(cut: np.ndarray, is_above: np.ndarray) -> np.ndarray:
    """For every cut (C, 3): the start of its members, the start of those above it, the end; members are sorted so."""
    if not len(cut):
        return np.zeros((0, 3), dtype=np.int64)
    first = np.flatnonzero(np.diff(cut, prepend=-1))
    middle = np.flatnonzero(is_above & (np.diff(2 * cut + is_above, prepend=-1) != 0))
    return np.stack([first, middle, np.append(first[1:], len(cut))], axis=1)


def _find_overlaps(
    cut: np.ndarray, is_above: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Indices (E,) of the intervals that overlap across a cut; intervals must be sorted by cut, side and low end."""
    bounds = _bounds(cut, is_above)
    for room in (2, 16, 256):
        below, above = np.zeros((2, room * len(cut)), dtype=np.int64)
        found = _overlaps(bounds, low, high, TOUCH, np.zeros(len(cut)), below, above)
        if found >= 0:
            return below[:found], above[:found]
    raise InternalError("edges on the same side of a cut overlap: please report this model and image")


@compiled
def _overlaps(
    bounds: np.ndarray, low: np.ndarray, high: np.ndarray, least: float, reach: np.ndarray, below: np.ndarray,
    above: np.ndarray,
) -> int:  # fmt: skip
    """Write all pairs of intervals on opposite sides of a cut that have more than `least` in common.

    bounds (C, 3): intervals bounds[c, 0] … bounds[c, 1] − 1 are below cut c, and those from there to bounds[c, 2] − 1
    above it, each run sorted by `low`. Intervals on one side hardly overlap, so the work is linear; if they do overlap,
    still no pair is missed. reach is scratch. Returns the number of pairs, or −1 if there is no room for them.
    """
    found = 0
    for c in range(bounds.shape[0]):
        first, middle, end = bounds[c, 0], bounds[c, 1], bounds[c, 2]
        for j in range(middle, end):
            reach[j] = high[j] if j == middle else max(reach[j - 1], high[j])
        start = middle
        for i in range(first, middle):
            # No interval before `start` reaches this interval or a later one.
            while start < end and reach[start] - low[i] <= least:
                start += 1
            for j in range(start, end):
                if high[i] - low[j] <= least:
                    break
                if min(high[i], high[j]) - max(low[i], low[j]) > least:
                    if found >= below.shape[0]:
                        return -1
                    below[found], above[found] = i, j
                    found += 1
    return found


@compiled
def _common_part(
    x: np.ndarray, y: np.ndarray, first: int, end: int, other: int, other_end: int, room: np.ndarray
) -> int:
    """Write the common part of two convex counter-clockwise polygons to room[:2]; return its number of vertices.

    The polygons are the vertices first … end and other … other_end of x, y; room (4, n) holds two polygons.
    """
    count = end - first
    for i in range(count):
        room[0, i], room[1, i] = x[first + i], y[first + i]
    for k in range(other, other_end):
        following = k + 1 if k + 1 < other_end else other
        along_x, along_y = x[following] - x[k], y[following] - y[k]
        found = 0
        for i in range(count):
            j = i + 1 if i + 1 < count else 0
            here = along_x * (room[1, i] - y[k]) - along_y * (room[0, i] - x[k])
            there = along_x * (room[1, j] - y[k]) - along_y * (room[0, j] - x[k])
            if here >= 0.0:
                room[2, found], room[3, found] = room[0, i], room[1, i]
                found += 1
            if are_opposite(here, there):
                share = here / (here - there)
                room[2, found] = room[0, i] + share * (room[0, j] - room[0, i])
                room[3, found] = room[1, i] + share * (room[1, j] - room[1, i])
                found += 1
        count = found
        for i in range(count):
            room[0, i], room[1, i] = room[2, i], room[3, i]
    return count


@compiled
def _common_facets(
    bounds: np.ndarray, box: np.ndarray, starts: np.ndarray, x: np.ndarray, y: np.ndarray, planes: np.ndarray,
    least: float, reach: np.ndarray, room: np.ndarray, below: np.ndarray, above: np.ndarray, areas: np.ndarray,
    extent: np.ndarray,
) -> int:  # fmt: skip
    """Write all pairs of facets on opposite sides of a cut whose common part is wider than `least`.

    bounds (C, 3) as for `_overlaps`; the facets of each side are sorted by box[:, 0]. x, y are the vertices of all
    facets in coordinates of their planes, counter-clockwise, starting at starts[f] for facet f; box (F, 4) holds low x,
    high x, low y, high y; planes (C, 3, 3) a point of the plane and its two unit vectors. reach and room are scratch.
    Also writes the area and bounding box of every common part. Returns the number of pairs, or −1 if there is no room.
    """
    found = 0
    for c in range(bounds.shape[0]):
        first, middle, end = bounds[c, 0], bounds[c, 1], bounds[c, 2]
        for j in range(middle, end):
            reach[j] = box[j, 1] if j == middle else max(reach[j - 1], box[j, 1])
        start = middle
        for i in range(first, middle):
            while start < end and reach[start] - box[i, 0] <= least:
                start += 1
            for j in range(start, end):
                if box[i, 1] - box[j, 0] <= least:
                    break
                wide = min(box[i, 1], box[j, 1]) - max(box[i, 0], box[j, 0])
                high = min(box[i, 3], box[j, 3]) - max(box[i, 2], box[j, 2])
                if wide <= least or high <= least:
                    continue
                count = _common_part(x, y, starts[i], starts[i + 1], starts[j], starts[j + 1], room)
                size, diameter = 0.0, 0.0
                for k in range(1, count):
                    ax, ay = room[0, k] - room[0, 0], room[1, k] - room[1, 0]
                    diameter = max(diameter, np.hypot(ax, ay))
                    if k + 1 < count:
                        size += 0.5 * (ax * (room[1, k + 1] - room[1, 0]) - ay * (room[0, k + 1] - room[0, 0]))
                if size <= least * diameter:
                    continue
                if found >= below.shape[0]:
                    return -1
                below[found], above[found], areas[found] = i, j, size
                for axis in range(3):
                    for k in range(count):
                        value = planes[c, 0, axis] + room[0, k] * planes[c, 1, axis] + room[1, k] * planes[c, 2, axis]
                        extent[found, 0, axis] = value if k == 0 else min(extent[found, 0, axis], value)
                        extent[found, 1, axis] = value if k == 0 else max(extent[found, 1, axis], value)
                found += 1
    return found
