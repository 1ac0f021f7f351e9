"""Compiled loop over polyhedra: the polygon in which a plane across one axis meets each."""

import numpy as np

from ..compiling import compiled

SAME = 1e-12
"""Corners of a section that are nearer to each other are one: rounding is well below."""


@compiled
def _is_edge(incidence, first, end, i, j, shared):
    """Whether two vertices span an edge: at least two common facets, and no third vertex on all of these."""
    count = 0
    for w in range(shared.shape[0]):
        shared[w] = incidence[i, w] & incidence[j, w]
        rest = shared[w]
        while rest != np.uint64(0):
            rest &= rest - np.uint64(1)
            count += 1
    if count < 2:
        return False
    for k in range(first, end):
        if k not in (i, j):
            is_on_all = True
            for w in range(shared.shape[0]):
                is_on_all &= (incidence[k, w] & shared[w]) == shared[w]
            if is_on_all:
                return False
    return True


@compiled
def _common_cut(mine, other, facets, first):
    """The cut of the first facet that two points share, 0 if there is none."""
    for w in range(mine.shape[0]):
        both = mine[w] & other[w]
        for b in range(64):
            if (both >> np.uint64(b)) & np.uint64(1):
                return facets[first + 64 * w + b]
    return 0


@compiled
def _is_new(crossing, on, last):
    """Whether the last crossing is none of the others; one that is gives its facets to that other.

    The plane may run through a vertex, where several edges are crossed at once.
    """
    for i in range(last):
        if max(abs(crossing[i, 0] - crossing[last, 0]), abs(crossing[i, 1] - crossing[last, 1])) <= SAME:
            for w in range(on.shape[1]):
                on[i, w] |= on[last, w]
            return False
    return True


@compiled
def _by_angle(crossing, count, on):
    """Sort crossings (x, y, angle) counter-clockwise around their mean; `on` goes with them."""
    x, y = 0.0, 0.0
    for i in range(count):
        x, y = x + crossing[i, 0] / count, y + crossing[i, 1] / count
    for i in range(count):
        crossing[i, 2] = np.arctan2(crossing[i, 1] - y, crossing[i, 0] - x)
        j = i
        while j > 0 and crossing[j - 1, 2] > crossing[j, 2]:
            for k in range(3):
                crossing[j - 1, k], crossing[j, k] = crossing[j, k], crossing[j - 1, k]
            for w in range(on.shape[1]):
                on[j - 1, w], on[j, w] = on[j, w], on[j - 1, w]
            j -= 1


@compiled
def cut_polyhedra(
    points, starts, facets, facet_starts, incidence, chosen, axis, at, crossing, on, out_points, out_edges, out_starts
):
    """Write the sections of the chosen polyhedra where t[axis] = at; polygons have the other two coordinates.

    crossing (N, 3) and on (N, words) are scratch, with room for every pair of a vertex below and one above. A polygon
    that has more corners than its polyhedron has facets is damaged and left out.
    """
    across, up = (1, 2) if axis == 0 else (0, 2) if axis == 1 else (0, 1)
    used = 0
    out_starts[0] = 0
    for n in range(chosen.shape[0]):
        p = chosen[n]
        first, end = starts[p], starts[p + 1]
        count = 0
        for i in range(first, end):
            if points[i, axis] > at:
                continue
            for j in range(first, end):
                if points[j, axis] <= at or not _is_edge(incidence, first, end, i, j, on[count]):
                    continue
                share = (at - points[i, axis]) / (points[j, axis] - points[i, axis])
                crossing[count, 0] = points[i, across] + share * (points[j, across] - points[i, across])
                crossing[count, 1] = points[i, up] + share * (points[j, up] - points[i, up])
                count += _is_new(crossing, on, count)
        if 3 <= count <= facet_starts[p + 1] - facet_starts[p]:
            _by_angle(crossing, count, on)
            for i in range(count):
                k = i + 1 if i + 1 < count else 0
                out_points[used, 0], out_points[used, 1] = crossing[i, 0], crossing[i, 1]
                out_edges[used] = _common_cut(on[i], on[k], facets, facet_starts[p])
                used += 1
        out_starts[n + 1] = used
