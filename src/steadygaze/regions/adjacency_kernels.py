"""Compiled loops that find which edges on the two sides of a cut overlap."""

import numpy as np

from ..compiling import compiled
from ..geometry.polygon import are_opposite


@compiled
def overlaps(
    bounds: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    least: float,
    reach: np.ndarray,
    below: np.ndarray,
    above: np.ndarray,
) -> int:
    """Write all pairs of intervals on opposite sides of a cut that have more than `least` in common.

    bounds (C, 3): the intervals of cut c are bounds[c, 0] … bounds[c, 1] below it and from there to bounds[c, 2] above
    it, each run in the order of `low`. On one side they hardly overlap each other, so the work is linear; where they
    do, nothing is missed. reach is scratch. Returns the number of pairs, or −1 when there is no room for them.
    """
    found = 0
    for c in range(bounds.shape[0]):
        first, middle, end = bounds[c, 0], bounds[c, 1], bounds[c, 2]
        for j in range(middle, end):
            reach[j] = high[j] if j == middle else max(reach[j - 1], high[j])
        start = middle
        for i in range(first, middle):
            # No interval before `start` reaches this one, nor any later one.
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
    """Write the common part of two convex polygons, both counter-clockwise, to room[:2]; returns its vertices.

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
def common_facets(
    bounds: np.ndarray,
    box: np.ndarray,
    starts: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    planes: np.ndarray,
    least: float,
    reach: np.ndarray,
    room: np.ndarray,
    below: np.ndarray,
    above: np.ndarray,
    areas: np.ndarray,
    extent: np.ndarray,
) -> int:
    """Write all pairs of facets on opposite sides of a cut whose common part is wider than `least`.

    bounds (C, 3) as for `overlaps`, the facets of a side in the order of box[:, 0]. x, y are the vertices of all facets
    in coordinates of their planes, counter-clockwise, those of facet f from starts[f] on; box (F, 4) holds low x, high
    x, low y, high y; planes (C, 3, 3) a point of the plane and its two unit vectors. reach and room are scratch.
    Writes area and bounding box of every common part too; returns the number of pairs, or −1 without room for them.
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
