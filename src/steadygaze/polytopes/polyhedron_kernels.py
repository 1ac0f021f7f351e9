"""Compiled operations on one convex polyhedron: bounds of an affine form, volume, facets, and cutting it along a plane.

A polyhedron is `vertices` points (rows x, y, z), `count` facets with the signed cut that made each, and the incidence:
bit f % 64 of word f // 64 of a vertex is set if the vertex lies on facet f. Edges are not stored: two vertices with two
common facets lie on one. The number of facets is limited only by the number of words. The kernels allocate no memory.
"""

import numpy as np

from ..compiling import compiled, compiled_inline

SPLIT, UNCUT, NEED_ROOM, NEED_WORDS = 0, 1, 2, 3
"""Return codes of `split_polyhedron`: both parts written; nothing to cut; no room in an array; too few words."""


_ONE, _TWO, _FOUR, _TOP_BYTE = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)
_PAIRS, _NIBBLES = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_BYTES, _EVERY_BYTE = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)


@compiled_inline
def _lowest_bit(word):
    """The number of the lowest bit that is set in a word (uint64, not zero): counts the bits below it in parallel."""
    bits = ~word & (word - _ONE)
    bits = bits - ((bits >> _ONE) & _PAIRS)
    bits = (bits & _NIBBLES) + ((bits >> _TWO) & _NIBBLES)
    bits = (bits + (bits >> _FOUR)) & _BYTES
    return np.int64((bits * _EVERY_BYTE) >> _TOP_BYTE)


@compiled
def bounding_box(points, vertices):
    """Centre and half-widths of the bounding box of a polyhedron."""
    x_low, y_low, z_low = points[0, 0], points[0, 1], points[0, 2]
    x_high, y_high, z_high = x_low, y_low, z_low
    for i in range(1, vertices):
        x_low, x_high = min(x_low, points[i, 0]), max(x_high, points[i, 0])
        y_low, y_high = min(y_low, points[i, 1]), max(y_high, points[i, 1])
        z_low, z_high = min(z_low, points[i, 2]), max(z_high, points[i, 2])
    return (
        0.5 * (x_low + x_high), 0.5 * (y_low + y_high), 0.5 * (z_low + z_high),
        0.5 * (x_high - x_low), 0.5 * (y_high - y_low), 0.5 * (z_high - z_low),
    )  # fmt: skip


@compiled
def reach(a, b, c, d, points, vertices):
    """The smallest and largest value of the form a x + b y + c z + d on the vertices."""
    low = a * points[0, 0] + b * points[0, 1] + c * points[0, 2] + d
    high = low
    for i in range(1, vertices):
        value = a * points[i, 0] + b * points[i, 1] + c * points[i, 2] + d
        low = min(low, value)
        high = max(high, value)
    return low, high


@compiled
def copy_polyhedron(
    points, incidence, facets, vertex, vertices, facet, count, to_points, to_incidence, to_facets, at, at_facet
):
    """Copy a polyhedron; rows of the incidence may become longer."""
    for i in range(vertices):
        for k in range(3):
            to_points[at + i, k] = points[vertex + i, k]
        for w in range(to_incidence.shape[1]):
            to_incidence[at + i, w] = incidence[vertex + i, w] if w < incidence.shape[1] else np.uint64(0)
    for f in range(count):
        to_facets[at_facet + f] = facets[facet + f]


@compiled_inline
def lies_on(incidence, vertex, facet):
    """Whether a vertex lies on a facet."""
    return (incidence[vertex, facet >> 6] >> np.uint64(facet & 63)) & np.uint64(1) != np.uint64(0)


@compiled_inline
def _share_two(incidence, i, j):
    """Whether two vertices lie on at least two common facets."""
    none, one = np.uint64(0), np.uint64(1)
    is_one = False
    for w in range(incidence.shape[1]):
        both = incidence[i, w] & incidence[j, w]
        if both != none:
            if is_one or (both & (both - one)) != none:
                return True
            is_one = True
    return False


@compiled_inline
def _crosses(incidence, value, i, j, vertices):
    """Whether a negative and a positive vertex are the ends of an edge: neighbours on the common line of two facets.

    If vertices were snapped to a plane, three or more may share two facets. The last negative and the first positive of
    these are neighbours, unless one lies on the cutting plane.
    """
    if not _share_two(incidence, i, j):
        return False
    for k in range(vertices):
        if not value[i] <= value[k] <= value[j] or k in (i, j):
            continue
        if (value[k] == value[i] and k > i) or (value[k] == value[j] and k > j):
            continue
        is_beside = True
        for w in range(incidence.shape[1]):
            both = incidence[i, w] & incidence[j, w]
            if both & incidence[k, w] != both:
                is_beside = False
                break
        if is_beside:
            return False
    return True


@compiled_inline
def _evaluate(a, b, c, d, limit, points, vertices, value):
    """Write the values of a form on the vertices; values within `limit` count as 0.

    Returns the numbers of negative and positive values, and the largest value that counted as 0.
    """
    snapped = 0.0
    negative, positive = 0, 0
    for i in range(vertices):
        v = a * points[i, 0] + b * points[i, 1] + c * points[i, 2] + d
        if abs(v) <= limit:
            snapped = max(snapped, abs(v))
            v = 0.0
        negative += v < 0.0
        positive += v > 0.0
        value[i] = v
    return negative, positive, snapped


@compiled
def _settle(incidence, value, limit, vertices):
    """Give a sign to the vertices with value 0 that are not between a negative and a positive neighbour.

    If a plane cuts a polyhedron at a vertex, the vertex has neighbours on both sides. If the plane nearly coincides
    with a facet, further vertices get the value 0, and the triangles between them would belong to both facets. Returns
    the new numbers of negative and positive vertices.
    """
    has_changed = True
    while has_changed:
        has_changed = False
        for k in range(vertices):
            if value[k] != 0.0:
                continue
            has_negative, has_positive = False, False
            for i in range(vertices):
                if value[i] != 0.0 and _share_two(incidence, i, k):
                    has_negative |= value[i] < 0.0
                    has_positive |= value[i] > 0.0
            if has_negative != has_positive:
                value[k] = -max(limit, 1e-300) if has_negative else max(limit, 1e-300)
                has_changed = True
    negative, positive = 0, 0
    for i in range(vertices):
        negative += value[i] < 0.0
        positive += value[i] > 0.0
    return negative, positive


@compiled_inline
def _rank(incidence, value, vertices, count, rank):
    """Number the facets that have a vertex strictly inside the negative part (0) and the positive part (1)."""
    for f in range(count):
        rank[0, f], rank[1, f] = -1, -1
    for i in range(vertices):
        if value[i] != 0.0:
            side = 0 if value[i] < 0.0 else 1
            for w in range(incidence.shape[1]):
                left = incidence[i, w]
                while left != np.uint64(0):
                    rank[side, 64 * w + _lowest_bit(left)] = 0
                    left &= left - np.uint64(1)
    below, above = 0, 0
    for f in range(count):
        if rank[0, f] == 0:
            rank[0, f] = below
            below += 1
        if rank[1, f] == 0:
            rank[1, f] = above
            above += 1
    return below, above


@compiled_inline
def _mark(incidence, i, j, rank, new, out, place):
    """Write the incidence of a vertex of a part: `new`, and the common facets of vertices i and j that it keeps."""
    for w in range(out.shape[1]):
        out[place, w] = np.uint64(0)
    for w in range(incidence.shape[1]):
        left = incidence[i, w] & incidence[j, w]
        while left != np.uint64(0):
            number = rank[64 * w + _lowest_bit(left)]
            left &= left - np.uint64(1)
            if number >= 0:
                out[place, number >> 6] |= np.uint64(1) << np.uint64(number & 63)
    if new >= 0:
        out[place, new >> 6] |= np.uint64(1) << np.uint64(new & 63)


@compiled_inline
def _crossings(incidence, value, vertices, pairs):
    """List the crossed edges as pairs of vertices, the negative one first; return −1 if there is no room."""
    found = 0
    for i in range(vertices):
        if value[i] >= 0.0:
            continue
        for j in range(vertices):
            if value[j] > 0.0 and _crosses(incidence, value, i, j, vertices):
                if found >= pairs.shape[1]:
                    return -1
                pairs[0, found], pairs[1, found] = i, j
                found += 1
    return found


@compiled_inline
def _write_part(sign, points, incidence, vertices, value, rank, pairs, new, out_points, out_incidence, place):
    """Write the vertices of one part from `place` on: those on its side, those on the plane, and the new ones."""
    for i in range(vertices):
        if value[i] * sign >= 0.0:
            out_points[place, 0], out_points[place, 1], out_points[place, 2] = points[i, 0], points[i, 1], points[i, 2]
            _mark(incidence, i, i, rank, new if value[i] == 0.0 else -1, out_incidence, place)
            place += 1
    for n in range(pairs.shape[1]):
        i, j = pairs[0, n], pairs[1, n]
        share = value[i] / (value[i] - value[j])
        for axis in range(3):
            out_points[place, axis] = points[i, axis] + share * (points[j, axis] - points[i, axis])
        _mark(incidence, i, j, rank, new, out_incidence, place)
        place += 1


@compiled
def split_polyhedron(
    a, b, c, d, limit, cut, points, incidence, facets, vertices, count,
    out_points, out_incidence, out_facets, first, first_facet, value, rank, pairs,
):  # fmt: skip
    """Cut a polyhedron along a x + b y + c z + d = 0; write the negative, then the positive part.

    Vertices go to `out_points` and `out_incidence` from `first` on, facets to `out_facets` from `first_facet` on; the
    outputs must not overlap the inputs. Vertices closer to the plane than `limit` in value count as lying on it and
    belong to both parts, if they are between neighbours on either side. A facet stays with a part that has one of its
    vertices strictly inside. The new facet comes last, marked −cut in the negative and +cut in the positive part.
    Scratch: value (≥ vertices,), rank (2, ≥ count), pairs (2, ≥ new vertices). Returns SPLIT (or another code, with
    nothing written), the numbers of vertices and facets of the negative part, those of the positive part, and the
    largest value that counted as 0.
    """
    negative, positive, snapped = _evaluate(a, b, c, d, limit, points, vertices, value)
    if negative == 0 or positive == 0:
        return UNCUT, 0, 0, 0, 0, snapped
    if negative + positive < vertices:
        negative, positive = _settle(incidence, value, limit, vertices)
    new = _crossings(incidence, value, vertices, pairs)
    if new < 0:
        return NEED_ROOM, 0, 0, 0, 0, snapped
    below, above = _rank(incidence, value, vertices, count, rank)
    if max(below, above) >= 64 * out_incidence.shape[1]:
        return NEED_WORDS, 0, 0, 0, 0, snapped
    left, right = vertices - positive + new, vertices - negative + new
    if first + left + right > out_points.shape[0] or first_facet + below + above + 2 > out_facets.shape[0]:
        return NEED_ROOM, 0, 0, 0, 0, snapped
    edges = pairs[:, :new]
    _write_part(
        -1.0, points, incidence, vertices, value, rank[0], edges, below, out_points, out_incidence, first
    )  # fmt: skip
    _write_part(
        1.0, points, incidence, vertices, value, rank[1], edges, above, out_points, out_incidence, first + left
    )  # fmt: skip
    middle = first_facet + below + 1
    for f in range(count):
        if rank[0, f] >= 0:
            out_facets[first_facet + rank[0, f]] = facets[f]
        if rank[1, f] >= 0:
            out_facets[middle + rank[1, f]] = facets[f]
    out_facets[middle - 1], out_facets[middle + above] = -cut, cut
    return SPLIT, left, below + 1, right, above + 1, snapped


@compiled
def _distance_to_ring(x, y, z, points, order, size):
    """The distance of a point from the closed line through the listed vertices."""
    nearest = np.inf
    for n in range(size):
        o, q = order[n], order[(n + 1) % size]
        ex, ey, ez = points[q, 0] - points[o, 0], points[q, 1] - points[o, 1], points[q, 2] - points[o, 2]
        vx, vy, vz = x - points[o, 0], y - points[o, 1], z - points[o, 2]
        square = ex * ex + ey * ey + ez * ez
        along = min(1.0, max(0.0, (ex * vx + ey * vy + ez * vz) / square)) if square > 0.0 else 0.0
        wx, wy, wz = vx - along * ex, vy - along * ey, vz - along * ez
        nearest = min(nearest, np.sqrt(wx * wx + wy * wy + wz * wz))
    return nearest


@compiled
def gap(a, b, c, d, points, value, vertices, part, part_incidence, part_vertices, facet, order, angle):
    """The largest depth of the gaps between the two parts of a polyhedron, up to a few units of rounding.

    `value` holds the form a x + b y + c z + d on the vertices as the split used it; `facet` is the new facet of a part.
    Every point of the polyhedron is a convex combination of its vertices. Pairing negative with positive vertices until
    one kind is used up expresses the point by the vertices of one part and by points between a negative and a positive
    vertex. So the gaps are at most as deep as the distance of such points from the hull of the new facet.
    """
    size = facet_cycle(part, part_incidence, part_vertices, facet, order, angle)
    largest = max(abs(a), abs(b), abs(c))
    if size < 3 or not 0.0 < largest < np.inf:
        return np.inf
    # Scale first: squares may underflow.
    nx, ny, nz, offset = a / largest, b / largest, c / largest, d / largest
    length = np.sqrt(nx * nx + ny * ny + nz * nz)
    nx, ny, nz, offset = nx / length, ny / length, nz / length, offset / length
    low, high = np.inf, -np.inf
    for n in range(size):
        o = order[n]
        height = nx * part[o, 0] + ny * part[o, 1] + nz * part[o, 2] + offset
        low, high = min(low, height), max(high, height)
    x, y, z = area_vector(part, order, size)
    side = 1.0 if x * nx + y * ny + z * nz >= 0.0 else -1.0
    deepest = 0.0
    for i in range(vertices):
        if value[i] >= 0.0:
            continue
        for j in range(vertices):
            if value[j] <= 0.0:
                continue
            share = value[i] / (value[i] - value[j])
            px = points[i, 0] + share * (points[j, 0] - points[i, 0])
            py = points[i, 1] + share * (points[j, 1] - points[i, 1])
            pz = points[i, 2] + share * (points[j, 2] - points[i, 2])
            is_outside = False
            for n in range(size):
                o, q = order[n], order[(n + 1) % size]
                ex, ey, ez = part[q, 0] - part[o, 0], part[q, 1] - part[o, 1], part[q, 2] - part[o, 2]
                vx, vy, vz = px - part[o, 0], py - part[o, 1], pz - part[o, 2]
                turn = (ny * ez - nz * ey) * vx + (nz * ex - nx * ez) * vy + (nx * ey - ny * ex) * vz
                is_outside |= side * turn < 0.0
            if is_outside:
                away = _distance_to_ring(px, py, pz, part, order, size)
            else:
                height = nx * px + ny * py + nz * pz + offset
                away = max(height - low, high - height)
            # NaN counts as an infinite depth.
            deepest = max(deepest, away) if away < np.inf else np.inf
    return deepest


@compiled
def facet_cycle(points, incidence, vertices, facet, order, angle):
    """List the vertices of a facet in order around it (either sense) in `order`; return how many. `angle` is scratch.

    The axes are scaled to the facet's own length and width, so thin facets are ordered correctly too.
    """
    size = 0
    x, y, z = 0.0, 0.0, 0.0
    for i in range(vertices):
        if lies_on(incidence, i, facet):
            order[size] = i
            size += 1
            x, y, z = x + points[i, 0], y + points[i, 1], z + points[i, 2]
    if size < 3:
        return size
    x, y, z = x / size, y / size, z / size
    ux, uy, uz, longest = 0.0, 0.0, 0.0, 0.0
    for n in range(size):
        px, py, pz = points[order[n], 0] - x, points[order[n], 1] - y, points[order[n], 2] - z
        length = px * px + py * py + pz * pz
        if length > longest:
            ux, uy, uz, longest = px, py, pz, length
    wx, wy, wz, widest = 0.0, 0.0, 0.0, 0.0
    for n in range(size):
        px, py, pz = points[order[n], 0] - x, points[order[n], 1] - y, points[order[n], 2] - z
        along = (px * ux + py * uy + pz * uz) / max(longest, 1e-300)
        px, py, pz = px - along * ux, py - along * uy, pz - along * uz
        width = px * px + py * py + pz * pz
        if width > widest:
            wx, wy, wz, widest = px, py, pz, width
    for n in range(size):
        px, py, pz = points[order[n], 0] - x, points[order[n], 1] - y, points[order[n], 2] - z
        u = (px * ux + py * uy + pz * uz) / max(longest, 1e-300)
        w = (px * wx + py * wy + pz * wz) / max(widest, 1e-300)
        angle[n] = _turn(u, w)
    for n in range(1, size):
        vertex, here = order[n], angle[n]
        m = n
        while m > 0 and angle[m - 1] > here:
            order[m], angle[m] = order[m - 1], angle[m - 1]
            m -= 1
        order[m], angle[m] = vertex, here
    return size


@compiled_inline
def _turn(u, w):
    """A number that grows with the angle of (u, w), from 0 to 4."""
    total = abs(u) + abs(w)
    if total == 0.0:
        return 0.0
    if w >= 0.0:
        return 1.0 - u / total
    return 3.0 + u / total


@compiled
def area_vector(points, order, size):
    """The normal of the polygon with the listed vertices, with the polygon's area as its length."""
    x, y, z = 0.0, 0.0, 0.0
    if size < 3:
        return x, y, z
    o = order[0]
    for n in range(1, size - 1):
        i, j = order[n], order[n + 1]
        px, py, pz = points[i, 0] - points[o, 0], points[i, 1] - points[o, 1], points[i, 2] - points[o, 2]
        qx, qy, qz = points[j, 0] - points[o, 0], points[j, 1] - points[o, 1], points[j, 2] - points[o, 2]
        x += py * qz - pz * qy
        y += pz * qx - px * qz
        z += px * qy - py * qx
    return 0.5 * x, 0.5 * y, 0.5 * z


@compiled
def volume(points, incidence, vertices, count, order, angle):
    """The volume of a polyhedron: the sum of pyramids over its facets with the first vertex as apex."""
    total = 0.0
    for f in range(count):
        if lies_on(incidence, 0, f):
            continue
        size = facet_cycle(points, incidence, vertices, f, order, angle)
        if size < 3:
            continue
        x, y, z = area_vector(points, order, size)
        o = order[0]
        height = (
            x * (points[o, 0] - points[0, 0]) + y * (points[o, 1] - points[0, 1]) + z * (points[o, 2] - points[0, 2])
        )
        total += abs(height)
    return total / 3.0
