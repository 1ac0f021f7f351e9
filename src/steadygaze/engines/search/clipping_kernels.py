"""Compiled loops of the traversal in three dimensions: a convex polyhedron cut by one half-space after another.

A polyhedron is a list of vertices and, for every face, the loop of its vertices, counter-clockwise seen from outside. A
cut clips each loop; the edges that the loops gain along the plane, followed backwards, are the loop of the new face.
"""

from typing import NamedTuple

import numpy as np

from ...compiling import compiled
from ...tolerances import DISTANCE
from .deciding_kernels import bound, bound_noise
from .traversal_kernels import SLIVERS

EMPTY, NO_ROOM, TROUBLE = 0, -1, -2
"""Codes of a cut: no part with an inside remains; a buffer is too small; rounding left loops that do not close."""

VERTICES, FACES = 0, 1


class Solid(NamedTuple):
    """A convex polyhedron in buffers: `counts` has the numbers of vertices and faces; row 0 of the others has faces."""

    points: np.ndarray  # (room, 3)
    loops: np.ndarray  # (2, 6 room) vertices of all faces
    starts: np.ndarray  # (2, room + 1) where the loop of each face begins
    sources: np.ndarray  # (2, room) what made each face
    value: np.ndarray  # (room,) scratch: the form at every vertex
    place: np.ndarray  # (room,) scratch: the new number of a vertex
    edges: np.ndarray  # (3, room) scratch: edges that the plane crosses, and their new vertices
    rim: np.ndarray  # (2, room) scratch: edges of the faces along the plane
    counts: np.ndarray  # (2,)

    @classmethod
    def make(cls, room):
        """Empty buffers for `room` vertices and as many faces."""
        numbers = np.zeros((room, 3)), np.zeros((2, 6 * room), dtype=np.int64), np.zeros((2, room + 1), dtype=np.int64)
        scratch = np.zeros(room), np.zeros(room, dtype=np.int64), np.zeros((3, room), dtype=np.int64)
        rim, counts = np.zeros((2, room), dtype=np.int64), np.zeros(2, dtype=np.int64)
        return cls(*numbers, np.zeros((2, room), dtype=np.int64), *scratch, rim, counts)


@compiled
def _set_box(solid, low, high):
    """Make the polyhedron the box from low to high; the source of a side is −1 − (2·axis + side)."""
    for n in range(8):
        for i in range(3):
            solid.points[n, i] = high[i] if (n >> i) & 1 else low[i]
    for axis in range(3):
        one, two = 1 << ((axis + 1) % 3), 1 << ((axis + 2) % 3)
        for side in range(2):
            face = 2 * axis + side
            first, last = (one, two) if side == 1 else (two, one)
            start, base = 4 * face, side << axis
            solid.loops[0, start], solid.loops[0, start + 1] = base, base + first
            solid.loops[0, start + 2], solid.loops[0, start + 3] = base + one + two, base + last
            solid.starts[0, face] = start
            solid.sources[0, face] = -1 - face
    solid.starts[0, 6] = 24
    solid.counts[VERTICES], solid.counts[FACES] = 8, 6


@compiled
def set_solid(solid, points, loops, starts, sources):
    """Copy a polyhedron into the buffers: vertices (V, 3), loops of all faces, starts (F+1,) and sources (F,)."""
    for n in range(points.shape[0]):
        for i in range(3):
            solid.points[n, i] = points[n, i]
    for n in range(loops.shape[0]):
        solid.loops[0, n] = loops[n]
    for f in range(starts.shape[0]):
        solid.starts[0, f] = starts[f]
    for f in range(sources.shape[0]):
        solid.sources[0, f] = sources[f]
    solid.counts[VERTICES], solid.counts[FACES] = points.shape[0], sources.shape[0]


@compiled
def _crossing(solid, count, here, there):
    """The vertex where the plane meets an edge, made for the first of its two faces; also the number of such edges."""
    low, high = min(here, there), max(here, there)
    for n in range(count):
        if solid.edges[0, n] == low and solid.edges[1, n] == high:
            return solid.edges[2, n], count
    new = solid.counts[VERTICES]
    share = solid.value[low] / (solid.value[low] - solid.value[high])
    for i in range(3):
        start = solid.points[low, i]
        solid.points[new, i] = start + share * (solid.points[high, i] - start)
    solid.value[new] = 0.0
    solid.edges[0, count], solid.edges[1, count], solid.edges[2, count] = low, high, new
    solid.counts[VERTICES] = new + 1
    return new, count + 1


@compiled
def _clip_faces(solid, limit):
    """Clip all loops to value ≥ 0 into row 1; vertices within the limit of 0 stay. Returns faces and loop entries."""
    value, old, new = solid.value, solid.loops[0], solid.loops[1]
    crossed, faces, used = 0, 0, 0
    for f in range(solid.counts[FACES]):
        start, end = solid.starts[0, f], solid.starts[0, f + 1]
        has_inside = False
        for n in range(start, end):
            has_inside = has_inside or value[old[n]] > limit
        if not has_inside:
            continue
        solid.starts[1, faces], solid.sources[1, faces] = used, solid.sources[0, f]
        for n in range(start, end):
            here, there = old[n], old[n + 1 if n + 1 < end else start]
            if value[here] >= -limit:
                new[used] = here
                used += 1
            is_leaving = value[here] > limit and value[there] < -limit
            if is_leaving or (value[here] < -limit and value[there] > limit):
                new[used], crossed = _crossing(solid, crossed, here, there)
                used += 1
        faces += 1
    solid.starts[1, faces] = used
    return faces, used


@compiled
def _rim(solid, faces, limit):
    """Write the edges of the clipped faces that lie on the plane and belong to one face only; return their number."""
    rim, count = solid.rim, 0
    for f in range(faces):
        start, end = solid.starts[1, f], solid.starts[1, f + 1]
        for n in range(start, end):
            here, there = solid.loops[1, n], solid.loops[1, n + 1 if n + 1 < end else start]
            if abs(solid.value[here]) > limit or abs(solid.value[there]) > limit:
                continue
            twin = -1
            for m in range(count):
                if rim[0, m] == there and rim[1, m] == here:
                    twin = m
            if twin >= 0:
                count -= 1
                rim[0, twin], rim[1, twin] = rim[0, count], rim[1, count]
            elif count < rim.shape[1]:
                rim[0, count], rim[1, count] = here, there
                count += 1
            else:
                return NO_ROOM
    return count


@compiled
def _close(solid, faces, used, rim, maker):
    """Add the new face: the rim backwards. Returns False if the rim is not a single loop."""
    if rim < 3:
        return False
    at = solid.rim[1, 0]
    for n in range(rim):
        solid.loops[1, used + n] = at
        following, ways = -1, 0
        for m in range(rim):
            if solid.rim[1, m] == at:
                following, ways = solid.rim[0, m], ways + 1
        if ways != 1:
            return False
        at = following
        if at == solid.rim[1, 0] and n + 1 < rim:
            return False
    solid.sources[1, faces] = maker
    solid.starts[1, faces + 1] = used + rim
    return at == solid.rim[1, 0]


@compiled
def _compact(solid, faces):
    """Move the faces of row 1 to row 0 and drop vertices that belong to no face."""
    count = solid.counts[VERTICES]
    for n in range(count):
        solid.place[n] = -1
    for n in range(solid.starts[1, faces]):
        solid.place[solid.loops[1, n]] = 0
    kept = 0
    for n in range(count):
        if solid.place[n] >= 0:
            solid.place[n] = kept
            for i in range(3):
                solid.points[kept, i] = solid.points[n, i]
            kept += 1
    for n in range(solid.starts[1, faces]):
        solid.loops[0, n] = solid.place[solid.loops[1, n]]
    for f in range(faces):
        solid.starts[0, f], solid.sources[0, f] = solid.starts[1, f], solid.sources[1, f]
    solid.starts[0, faces] = solid.starts[1, faces]
    solid.counts[VERTICES], solid.counts[FACES] = kept, faces


@compiled
def _evaluate(solid, a, b, c, constant):
    """Write a form's value at every vertex; return the lowest and the highest."""
    lowest, highest = np.inf, -np.inf
    for n in range(solid.counts[VERTICES]):
        v = a * solid.points[n, 0] + b * solid.points[n, 1] + c * solid.points[n, 2] + constant
        solid.value[n] = v
        lowest, highest = min(lowest, v), max(highest, v)
    return lowest, highest


@compiled
def _cut(solid, limit, maker):
    """Keep the part where the evaluated form is not negative (it has both signs beyond the limit); returns a code."""
    count, faces = solid.counts[VERTICES], solid.counts[FACES]
    room, size = solid.points.shape[0], solid.starts[0, faces]
    # Every edge belongs to two faces and gains at most one vertex, even if rounding has bent a face.
    if count + size // 2 + 1 > room or faces + 2 > room or 2 * size + count > solid.loops.shape[1]:
        return NO_ROOM
    kept, used = _clip_faces(solid, limit)
    rim = _rim(solid, kept, limit)
    if rim < 0 or used + rim > solid.loops.shape[1]:
        return NO_ROOM
    if not _close(solid, kept, used, rim, maker):
        return TROUBLE
    _compact(solid, kept + 1)
    return 1


@compiled
def _ball(points, count):
    """A ball around vertices: their mean, and the largest distance from there to a vertex."""
    x, y, z = 0.0, 0.0, 0.0
    for n in range(count):
        x, y, z = x + points[n, 0] / count, y + points[n, 1] / count, z + points[n, 2] / count
    square = 0.0
    for n in range(count):
        square = max(square, (points[n, 0] - x) ** 2 + (points[n, 1] - y) ** 2 + (points[n, 2] - z) ** 2)
    return x, y, z, np.sqrt(square)


@compiled
def make_region(program, standing, low, high, sides, narrowest, solid, rows, centres, chosen, inside, sizes):
    """Write the region where all neurons keep their activity (windows their winners), inside a knot cell.

    The cell is the part of the box from low to high where the forms `sides` (M, 4), with unit normals, are not
    negative; form m has source −7 − m. Writes `inside` and `sizes` as `measure` does, and the facets as
    `_outline_faces` does; returns the number of facets, or a code.
    """
    code = _intersect_halfspaces(program, standing, low, high, sides, solid)
    if code <= 0:
        return code
    if solid.counts[FACES] > rows.shape[0]:
        return NO_ROOM
    measure(solid, inside, sizes)
    return _outline_faces(standing, sides, solid, narrowest, rows, centres, chosen)


@compiled
def _intersect_halfspaces(program, standing, low, high, sides, solid):
    """Write the polyhedron of a pattern to the buffers; returns a code.

    Skips a half-space that would cut less than its limit off the polyhedron.
    """
    forms, active, noise, offsets = standing.forms, standing.active, program.noise, program.offsets
    _set_box(solid, low, high)
    for m in range(sides.shape[0]):
        _evaluate(solid, sides[m, 0], sides[m, 1], sides[m, 2], sides[m, 3])
        code = _cut(solid, DISTANCE * (abs(sides[m, 0]) + abs(sides[m, 1]) + abs(sides[m, 2])), -7 - m)
        if code <= 0:
            return code
    x, y, z, radius = _ball(solid.points, solid.counts[VERTICES])
    for layer in range(offsets.shape[0] - 2):
        is_plain = program.is_plain[layer]
        for k in range(offsets[layer], offsets[layer + 1]):
            if is_plain:
                sign = 1.0 if active[k] == 1 else -1.0
                a, b, c, constant = sign * forms[0, k], sign * forms[1, k], sign * forms[2, k], sign * forms[3, k]
            else:
                a, b, c = bound(standing, 0, k), bound(standing, 1, k), bound(standing, 2, k)
                constant = bound(standing, 3, k)
            centre, size = a * x + b * y + c * z + constant, abs(a) + abs(b) + abs(c)
            # Without squares, which may underflow.
            if centre >= 0.0 and centre >= size * radius:
                continue
            lowest, highest = _evaluate(solid, a, b, c, constant)
            if lowest >= 0.0:
                continue
            rounding = noise[k] if is_plain else bound_noise(noise, standing, k)
            limit = max(DISTANCE * size, rounding)
            if lowest >= -limit:
                standing.missed[k] = max(standing.missed[k], -lowest)
                if highest > rounding and size > 0.0:
                    # The 2-norm of a slope is at least its 1-norm / √3; a section has less than the area of a disc.
                    standing.sums[SLIVERS] += -lowest / size * 1.7320508075688774 * 3.2 * radius * radius
                continue
            if not highest > limit:
                return EMPTY
            for n in range(solid.counts[VERTICES]):
                if -limit <= solid.value[n] < 0.0:
                    standing.missed[k] = max(standing.missed[k], -solid.value[n])
            code = _cut(solid, limit, k)
            if code <= 0:
                return code
            x, y, z, radius = _ball(solid.points, solid.counts[VERTICES])
    return 1


@compiled
def clip(solid, rows):
    """Cut the polyhedron to rows (M, 4) ≥ 0, without tolerance; returns a code. The face of row m has source m."""
    for m in range(rows.shape[0]):
        lowest, highest = _evaluate(solid, rows[m, 0], rows[m, 1], rows[m, 2], rows[m, 3])
        if lowest >= 0.0:
            continue
        if not highest > 0.0:
            return EMPTY
        code = _cut(solid, 0.0, m)
        if code <= 0:
            return code
    return 1


@compiled
def _face_vector(solid, f):
    """Half the sum of the cross products along a face's loop: its normal times its area."""
    start, end, points = solid.starts[0, f], solid.starts[0, f + 1], solid.points
    o = solid.loops[0, start]
    nx, ny, nz = 0.0, 0.0, 0.0
    for n in range(start + 1, end - 1):
        p, q = solid.loops[0, n], solid.loops[0, n + 1]
        ux, uy, uz = points[p, 0] - points[o, 0], points[p, 1] - points[o, 1], points[p, 2] - points[o, 2]
        vx, vy, vz = points[q, 0] - points[o, 0], points[q, 1] - points[o, 1], points[q, 2] - points[o, 2]
        nx, ny, nz = nx + 0.5 * (uy * vz - uz * vy), ny + 0.5 * (uz * vx - ux * vz), nz + 0.5 * (ux * vy - uy * vx)
    return nx, ny, nz


@compiled
def measure(solid, inside, sizes):
    """Write the mean of the vertices, and to `sizes` (2,) the volume and a bound on how much bent faces change it."""
    count, points = solid.counts[VERTICES], solid.points
    for i in range(3):
        inside[i] = 0.0
        for n in range(count):
            inside[i] += points[n, i] / count
    sizes[0], sizes[1] = 0.0, 0.0
    for f in range(solid.counts[FACES]):
        start, end = solid.starts[0, f], solid.starts[0, f + 1]
        nx, ny, nz = _face_vector(solid, f)
        o = solid.loops[0, start]
        height = nx * (points[o, 0] - inside[0]) + ny * (points[o, 1] - inside[1]) + nz * (points[o, 2] - inside[2])
        sizes[0] += height / 3.0
        for n in range(start + 1, end):
            p = solid.loops[0, n]
            off = nx * (points[p, 0] - points[o, 0]) + ny * (points[p, 1] - points[o, 1])
            sizes[1] += abs(off + nz * (points[p, 2] - points[o, 2]))


@compiled
def _outline_faces(standing, sides, solid, narrowest, rows, centres, chosen):
    """Write the half-space and the centre of every face wider than `narrowest`, and its number; return how many."""
    points, found = solid.points, 0
    for f in range(solid.counts[FACES]):
        start, end = solid.starts[0, f], solid.starts[0, f + 1]
        nx, ny, nz = _face_vector(solid, f)
        area, longest = np.sqrt(nx * nx + ny * ny + nz * nz), 0.0
        for i in range(3):
            centres[found, i], low, high = 0.0, np.inf, -np.inf
            for n in range(start, end):
                p = points[solid.loops[0, n], i]
                centres[found, i] += p / (end - start)
                low, high = min(low, p), max(high, p)
            longest = max(longest, high - low)
        if not area > narrowest * longest:
            continue
        k = solid.sources[0, f]
        if k >= 0:
            a, b, c = bound(standing, 0, k), bound(standing, 1, k), bound(standing, 2, k)
            # Scaled first: squares may underflow.
            largest = max(abs(a), abs(b), abs(c))
            a, b, c = a / largest, b / largest, c / largest
            size = np.sqrt(a * a + b * b + c * c)
            rows[found, 0], rows[found, 1], rows[found, 2] = a / size, b / size, c / size
        elif k < -6:
            for i in range(3):
                rows[found, i] = sides[-7 - k, i]
        else:
            axis, side = (-1 - k) >> 1, (-1 - k) & 1
            for i in range(3):
                rows[found, i] = 0.0
            rows[found, axis] = 1.0 - 2.0 * side
        rows[found, 3] = 0.0
        for i in range(3):
            rows[found, 3] -= rows[found, i] * centres[found, i]
        chosen[found] = f
        found += 1
    return found


@compiled
def clipped_width(loop, rows, room):
    """A lower bound on the width of the part of a convex polygon in space, a loop (V, 3), where rows (M, 4) are ≥ 0.

    The bound is the part's area divided by its diameter; 0 if the part is empty. room: (2, V + M, 3).
    """
    count, here, there = loop.shape[0], room[0], room[1]
    for n in range(count):
        for i in range(3):
            here[n, i] = loop[n, i]
    for m in range(rows.shape[0]):
        kept = 0
        for n in range(count):
            p, q = here[n], here[n + 1 if n + 1 < count else 0]
            a = rows[m, 0] * p[0] + rows[m, 1] * p[1] + rows[m, 2] * p[2] + rows[m, 3]
            b = rows[m, 0] * q[0] + rows[m, 1] * q[1] + rows[m, 2] * q[2] + rows[m, 3]
            if a >= 0.0:
                for i in range(3):
                    there[kept, i] = p[i]
                kept += 1
            if ((a < 0.0 and b > 0.0) or (a > 0.0 and b < 0.0)) and kept < there.shape[0]:
                for i in range(3):
                    there[kept, i] = p[i] + a / (a - b) * (q[i] - p[i])
                kept += 1
        here, there, count = there, here, kept
    if count < 3:
        return 0.0
    nx, ny, nz, longest = 0.0, 0.0, 0.0, 0.0
    for n in range(1, count - 1):
        ux, uy, uz = here[n, 0] - here[0, 0], here[n, 1] - here[0, 1], here[n, 2] - here[0, 2]
        vx, vy, vz = here[n + 1, 0] - here[0, 0], here[n + 1, 1] - here[0, 1], here[n + 1, 2] - here[0, 2]
        nx, ny, nz = nx + uy * vz - uz * vy, ny + uz * vx - ux * vz, nz + ux * vy - uy * vx
    for i in range(3):
        low, high = np.inf, -np.inf
        for n in range(count):
            low, high = min(low, here[n, i]), max(high, here[n, i])
        longest = max(longest, high - low)
    return 0.5 * np.sqrt(nx * nx + ny * ny + nz * nz) / longest if longest > 0.0 else 0.0
