"""Compiled loops over polyhedra: volumes, facets, plane sections, splits along the argmax and by slabs, clipped parts.

`Room` is scratch space for the parts of one polyhedron. If they do not fit, a loop returns a negative number, and the
caller starts again with more room.
"""

from typing import NamedTuple

import numpy as np

from ..compiling import compiled
from ..tolerances import DISTANCE
from .polyhedron_kernels import (
    NEED_ROOM,
    SPLIT,
    area_vector,
    copy_polyhedron,
    facet_cycle,
    reach,
    split_polyhedron,
    volume,
)

SAME = 1e-12
"""Corners of a section closer than this are the same corner; rounding stays well below."""


class Room(NamedTuple):
    """Scratch: consecutive parts of one polyhedron, a copy of the current part, and arrays for cutting it."""

    points: np.ndarray  # (N, 3)
    incidence: np.ndarray  # (N, words)
    facets: np.ndarray  # (M,)
    stack: np.ndarray  # (S, 4): first vertex, vertices, first facet, facets
    here_points: np.ndarray
    here_incidence: np.ndarray
    here_facets: np.ndarray
    value: np.ndarray
    rank: np.ndarray
    pairs: np.ndarray


class Solids(NamedTuple):
    """The arrays of polyhedra, as input or as output (see `Polyhedra`)."""

    points: np.ndarray
    starts: np.ndarray
    facets: np.ndarray
    facet_starts: np.ndarray
    incidence: np.ndarray


@compiled
def _enter(solids, number, room):
    """Copy polyhedron `number` to the start of the room; return its vertex and facet counts, −1 if it does not fit."""
    first, vertices = solids.starts[number], solids.starts[number + 1] - solids.starts[number]
    facet, count = solids.facet_starts[number], solids.facet_starts[number + 1] - solids.facet_starts[number]
    if vertices > room.here_points.shape[0] or count > room.here_facets.shape[0]:
        return -1, -1
    copy_polyhedron(
        solids.points, solids.incidence, solids.facets, first, vertices, facet, count,
        room.points, room.incidence, room.facets, 0, 0,
    )  # fmt: skip
    return vertices, count


@compiled
def _deliver(room, first, vertices, facet, count, out, pieces):
    """Append a part to the output as piece number `pieces`; return whether there was room."""
    at, at_facet = out.starts[pieces], out.facet_starts[pieces]
    if (
        pieces + 1 >= out.starts.shape[0]
        or at + vertices > out.points.shape[0]
        or at_facet + count > out.facets.shape[0]
    ):
        return False
    copy_polyhedron(
        room.points, room.incidence, room.facets, first, vertices, facet, count,
        out.points, out.incidence, out.facets, at, at_facet,
    )  # fmt: skip
    out.starts[pieces + 1], out.facet_starts[pieces + 1] = at + vertices, at_facet + count
    return True


@compiled
def _cut(a, b, c, d, limit, cut, room, first, vertices, facet, count):
    """Split the part at `first` in place: write the negative, then the positive part from there on."""
    if vertices > room.here_points.shape[0] or count > room.here_facets.shape[0]:
        return NEED_ROOM, 0, 0, 0, 0
    copy_polyhedron(
        room.points, room.incidence, room.facets, first, vertices, facet, count,
        room.here_points, room.here_incidence, room.here_facets, 0, 0,
    )  # fmt: skip
    code, left, left_facets, right, right_facets, _ = split_polyhedron(
        a, b, c, d, limit, cut, room.here_points, room.here_incidence, room.here_facets, vertices, count,
        room.points, room.incidence, room.facets, first, facet, room.value, room.rank, room.pairs,
    )  # fmt: skip
    return code, left, left_facets, right, right_facets


@compiled
def _beaten(form, noise, points, first, vertices, winner):
    """The class that exceeds `winner` most at a vertex, by more than the tolerance, and whether `winner` exceeds this
    class elsewhere by more than the tolerance."""
    best, excess, is_split = winner, 0.0, False
    for j in range(form.shape[1]):
        a, b, c = form[0, j] - form[0, winner], form[1, j] - form[1, winner], form[2, j] - form[2, winner]
        low, high = reach(a, b, c, form[3, j] - form[3, winner], points[first:], vertices)
        limit = max(DISTANCE * (abs(a) + abs(b) + abs(c)), noise)
        if high > limit and high > excess:
            best, excess, is_split = j, high, low < -limit
    return best, is_split


@compiled
def _find_rival(form, noise, points, first, vertices):
    """Two classes that each win somewhere by more than the tolerance; twice the same class if it wins everywhere."""
    w = 0
    for _ in range(2 * form.shape[1]):
        j, is_split = _beaten(form, noise, points, first, vertices, w)
        if j == w:
            break
        if is_split:
            return w, j
        w = j
    return w, w


@compiled
def split_by_argmax(logits, noise, solids, base, room, out, origin, winner, pairs):
    """Split every polyhedron into pieces on which one class wins (ties within `noise` go to any of the tied classes).

    Writes the pieces, the polyhedron and the winner of each, and the two classes of every cut (numbered from base + 1).
    Returns the numbers of pieces and cuts, or −1 if an array is too small.
    """
    pieces, cuts = 0, 0
    out.starts[0], out.facet_starts[0] = 0, 0
    stack = room.stack
    for r in range(logits.shape[0]):
        stack[0, 0], stack[0, 2] = 0, 0
        stack[0, 1], stack[0, 3] = _enter(solids, r, room)
        if stack[0, 1] < 0:
            return -1, -1
        height = 1
        while height > 0:
            height -= 1
            first, vertices, facet, count = stack[height, 0], stack[height, 1], stack[height, 2], stack[height, 3]
            w, j = _find_rival(logits[r], noise, room.points, first, vertices)
            if w == j:
                if not _deliver(room, first, vertices, facet, count, out, pieces):
                    return -1, -1
                winner[pieces], origin[pieces] = w, r
                pieces += 1
                continue
            if cuts >= pairs.shape[0] or height + 2 > stack.shape[0]:
                return -1, -1
            a, b = logits[r, 0, j] - logits[r, 0, w], logits[r, 1, j] - logits[r, 1, w]
            c, d = logits[r, 2, j] - logits[r, 2, w], logits[r, 3, j] - logits[r, 3, w]
            limit = max(DISTANCE * (abs(a) + abs(b) + abs(c)), noise)
            pairs[cuts, 0], pairs[cuts, 1] = w, j
            cuts += 1
            code, left, left_facets, right, right_facets = _cut(
                a, b, c, d, limit, base + cuts, room, first, vertices, facet, count
            )
            if code != SPLIT:
                return -1, -1
            stack[height, 0], stack[height, 1] = first, left
            stack[height, 2], stack[height, 3] = facet, left_facets
            stack[height + 1, 0], stack[height + 1, 1] = first + left, right
            stack[height + 1, 2], stack[height + 1, 3] = facet + left_facets, right_facets
            height += 2
    return pieces, cuts


@compiled
def split_by_slab(slab, along, solids, base, room, out, origin, inside):
    """Cut every polyhedron at t · along = slab0 and slab1 if these lie inside it; along (R, 3) holds unit vectors.

    inside[p]: whether a piece lies between the two. Returns the numbers of pieces and of cuts (numbered from base + 1),
    or −1 if an array is too small.
    """
    pieces, cuts = 0, 0
    out.starts[0], out.facet_starts[0] = 0, 0
    for r in range(slab.shape[0]):
        first, facet = 0, 0
        a, b, c = along[r, 0], along[r, 1], along[r, 2]
        vertices, count = _enter(solids, r, room)
        if vertices < 0:
            return -1, -1
        for side in range(3):
            size, size_facets, rest, rest_facets = vertices, count, 0, 0
            if side < 2:
                low, high = reach(a, b, c, 0.0, room.points[first:], vertices)
                at = slab[r, side]
                if low + DISTANCE < at < high - DISTANCE:
                    cuts += 1
                    code, size, size_facets, rest, rest_facets = _cut(
                        a, b, c, -at, 0.0, base + cuts, room, first, vertices, facet, count
                    )
                    if code != SPLIT:
                        return -1, -1
                elif at <= 0.5 * (low + high):
                    # The slab's face is too close to an end of the polyhedron to cut: the centre decides its side.
                    continue
            if not _deliver(room, first, size, facet, size_facets, out, pieces):
                return -1, -1
            origin[pieces], inside[pieces] = r, np.uint8(side == 1 and slab[r, 0] <= slab[r, 1])
            pieces += 1
            if rest == 0:
                break
            first, vertices = first + size, rest
            facet, count = facet + size_facets, rest_facets
    return pieces, cuts


@compiled
def _clipped_volume(solids, number, forms, room):
    """The volume of the part of a polyhedron where all forms (N, 4) are at least 0; −1 without enough room."""
    first, facet = 0, 0
    vertices, count = _enter(solids, number, room)
    if vertices < 0:
        return -1.0
    for n in range(forms.shape[0]):
        a, b, c, d = forms[n, 0], forms[n, 1], forms[n, 2], forms[n, 3]
        low, high = reach(a, b, c, d, room.points[first:], vertices)
        if high <= 0.0:
            return 0.0
        if low >= 0.0:
            continue
        code, left, left_facets, vertices, count = _cut(a, b, c, d, 0.0, 1, room, first, vertices, facet, count)
        if code != SPLIT:
            return -1.0
        first, facet = first + left, facet + left_facets
    if vertices > room.value.shape[0]:
        return -1.0
    return volume(room.points[first:], room.incidence[first:], vertices, count, room.pairs[0], room.value)


@compiled
def clipped_volumes(solids, chosen, forms, room, out):
    """Write the volumes of the parts of the chosen polyhedra where each of their forms (S, N, 4) is at least 0; return
    whether all had enough room."""
    for n in range(chosen.shape[0]):
        out[n] = _clipped_volume(solids, chosen[n], forms[n], room)
        if out[n] < 0.0:
            return False
    return True


@compiled
def volumes(points, incidence, starts, facet_starts, out, order, angle):
    """Write the volume of every polyhedron."""
    for r in range(out.shape[0]):
        first, vertices = starts[r], starts[r + 1] - starts[r]
        count = facet_starts[r + 1] - facet_starts[r]
        out[r] = volume(points[first:], incidence[first:], vertices, count, order, angle)


@compiled
def cycles(points, incidence, starts, facet_starts, out, out_starts, order, angle):
    """Write the vertices (indices into `points`) of every facet in order, counter-clockwise seen from outside."""
    place = 0
    for r in range(starts.shape[0] - 1):
        first, vertices = starts[r], starts[r + 1] - starts[r]
        own, owner = points[first:], incidence[first:]
        x, y, z = 0.0, 0.0, 0.0
        for i in range(vertices):
            x, y, z = x + own[i, 0] / vertices, y + own[i, 1] / vertices, z + own[i, 2] / vertices
        for f in range(facet_starts[r + 1] - facet_starts[r]):
            size = facet_cycle(own, owner, vertices, f, order, angle)
            ax, ay, az = area_vector(own, order, size)
            o = order[0]
            is_outward = ax * (own[o, 0] - x) + ay * (own[o, 1] - y) + az * (own[o, 2] - z) >= 0.0
            for n in range(size):
                out[place + n] = first + order[n if is_outward else size - 1 - n]
            place += size
            out_starts[facet_starts[r] + f + 1] = place


@compiled
def _is_edge(incidence, first, end, i, j, shared):
    """Whether two vertices span an edge: they share at least two facets, and no third vertex lies on all of these."""
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
    """Whether the last crossing is new; otherwise its facets are added to the equal crossing.

    Where the plane runs through a vertex, it crosses several edges at once.
    """
    for i in range(last):
        if max(abs(crossing[i, 0] - crossing[last, 0]), abs(crossing[i, 1] - crossing[last, 1])) <= SAME:
            for w in range(on.shape[1]):
                on[i, w] |= on[last, w]
            return False
    return True


@compiled
def _by_angle(crossing, count, on):
    """Sort crossings (x, y, angle) and their rows of `on` counter-clockwise around their mean."""
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
def sections(solids, chosen, axis, at, crossing, on, out_points, out_edges, out_starts):
    """Write the sections of the chosen polyhedra where t[axis] = at; polygons have the other two coordinates.

    crossing (N, 3) and on (N, words) are scratch, with room for every pair of a vertex below and a vertex above. Skips
    polygons with more corners than their polyhedron has facets, which only damaged polyhedra have.
    """
    points, starts, facet_starts = solids.points, solids.starts, solids.facet_starts
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
                if points[j, axis] <= at or not _is_edge(solids.incidence, first, end, i, j, on[count]):
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
                out_edges[used] = _common_cut(on[i], on[k], solids.facets, facet_starts[p])
                used += 1
        out_starts[n + 1] = used
