"""Compiled operations on convex polygons: bounds of an affine form, areas, cuts along lines, clips, distances.

A polygon is `count` vertices x, y in counter-clockwise order; `edge[i]` is the signed cut behind the edge from vertex i
to the next. The kernels allocate no memory.
"""

import numpy as np

from ..compiling import compiled, compiled_inline
from ..tolerances import DISTANCE


@compiled
def bounding_box(x, y, count):
    """Centre and half-widths of the bounding box of a polygon."""
    x_low, x_high, y_low, y_high = x[0], x[0], y[0], y[0]
    for i in range(1, count):
        x_low, x_high = min(x_low, x[i]), max(x_high, x[i])
        y_low, y_high = min(y_low, y[i]), max(y_high, y[i])
    return 0.5 * (x_low + x_high), 0.5 * (y_low + y_high), 0.5 * (x_high - x_low), 0.5 * (y_high - y_low)


@compiled
def reach(a, b, c, x, y, count):
    """The smallest and largest value of a form on the vertices."""
    low = a * x[0] + b * y[0] + c
    high = low
    for i in range(1, count):
        value = a * x[i] + b * y[i] + c
        low = min(low, value)
        high = max(high, value)
    return low, high


@compiled
def half_perimeter(x, y, count):
    """Half of the perimeter of a polygon: no chord is longer."""
    total = 0.0
    for i in range(count):
        j = i + 1 if i + 1 < count else 0
        total += np.hypot(x[j] - x[i], y[j] - y[i])
    return 0.5 * total


@compiled
def area(x, y, count):
    """The area of a polygon whose vertices run counter-clockwise."""
    total = 0.0
    for i in range(1, count - 1):
        total += (x[i] - x[0]) * (y[i + 1] - y[0]) - (x[i + 1] - x[0]) * (y[i] - y[0])
    return 0.5 * total


@compiled_inline
def are_opposite(here, there):
    """Whether two values have opposite signs, without a product, which may underflow to 0."""
    return here < 0.0 < there or there < 0.0 < here


@compiled
def split_polygon(a, b, c, limit, cut, x, y, edge, count, out_x, out_y, out_edge, first, value):
    """Cut a polygon along a x + b y + c = 0; write the negative, then the positive part from `first` on.

    Vertices closer to the line than `limit` count as lying on it and belong to both parts. The new edge is marked −cut
    in the negative and +cut in the positive part. `value` is scratch. Returns the numbers of vertices of the two parts,
    and the largest value that counted as 0.
    """
    negative = 0
    snapped = 0.0
    for i in range(count):
        value[i] = a * x[i] + b * y[i] + c
        if abs(value[i]) <= limit:
            snapped = max(snapped, abs(value[i]))
            value[i] = 0.0
    for i in range(count):
        here, there = value[i], value[i + 1 if i + 1 < count else 0]
        negative += (here <= 0.0) + are_opposite(here, there)
    below, above = first, first + negative
    for i in range(count):
        j = i + 1 if i + 1 < count else 0
        here, there = value[i], value[j]
        if here <= 0.0:
            out_x[below], out_y[below] = x[i], y[i]
            out_edge[below] = -cut if here == 0.0 and there > 0.0 else edge[i]
            below += 1
        if here >= 0.0:
            out_x[above], out_y[above] = x[i], y[i]
            out_edge[above] = cut if here == 0.0 and there < 0.0 else edge[i]
            above += 1
        if are_opposite(here, there):
            share = here / (here - there)
            out_x[below] = out_x[above] = x[i] + share * (x[j] - x[i])
            out_y[below] = out_y[above] = y[i] + share * (y[j] - y[i])
            out_edge[below] = -cut if here < 0.0 else edge[i]
            out_edge[above] = cut if here > 0.0 else edge[i]
            below += 1
            above += 1
    return negative, above - first - negative, snapped


@compiled
def areas(x, y, starts, out):
    """Write the area of every polygon."""
    for r in range(out.shape[0]):
        out[r] = area(x[starts[r] :], y[starts[r] :], starts[r + 1] - starts[r])


@compiled
def shared_area(x, y, first, count, other_x, other_y, other_first, other_count, base):
    """The common area of two polygons; both lie above y = base.

    The area of a polygon is the signed sum of the areas between its edges and the base, so the common area is a sum
    over pairs of edges. Unlike clipping, this never lengthens an edge: it tolerates edges about as short as the
    rounding of their ends, and polygons that are not quite convex.
    """
    total = 0.0
    for i in range(first, first + count):
        j = i + 1 if i + 1 < first + count else first
        if x[i] == x[j]:
            continue
        left, right = min(x[i], x[j]), max(x[i], x[j])
        for k in range(other_first, other_first + other_count):
            m = k + 1 if k + 1 < other_first + other_count else other_first
            low, high = max(left, min(other_x[k], other_x[m])), min(right, max(other_x[k], other_x[m]))
            if low >= high:
                continue
            # Use shares of an edge instead of slopes: steep edges cannot overflow.
            rise, other_rise = y[j] - y[i], other_y[m] - other_y[k]
            width, other_width = x[j] - x[i], other_x[m] - other_x[k]
            here_low = y[i] + (low - x[i]) / width * rise - base
            here_high = y[i] + (high - x[i]) / width * rise - base
            there_low = other_y[k] + (low - other_x[k]) / other_width * other_rise - base
            there_high = other_y[k] + (high - other_x[k]) / other_width * other_rise - base
            area_below = 0.5 * (min(here_low, there_low) + min(here_high, there_high)) * (high - low)
            before, after = here_low - there_low, here_high - there_high
            if are_opposite(before, after):
                # The minimum of two crossing lines lies above the chord between its ends.
                at = before / (before - after)
                crossing = here_low + at * (here_high - here_low)
                chord = (1.0 - at) * min(here_low, there_low) + at * min(here_high, there_high)
                area_below += 0.5 * (crossing - chord) * (high - low)
            total += area_below if (x[i] < x[j]) == (other_x[k] < other_x[m]) else -area_below
    return total


@compiled
def _beaten(logits, noise, x, y, first, count, winner):
    """The class that exceeds `winner` most at a vertex, by more than the tolerance, and whether `winner` exceeds this
    class elsewhere by more than the tolerance."""
    best, excess, is_split = winner, 0.0, False
    for j in range(logits.shape[1]):
        a, b, c = logits[0, j] - logits[0, winner], logits[1, j] - logits[1, winner], logits[2, j] - logits[2, winner]
        low = high = a * x[first] + b * y[first] + c
        for i in range(first + 1, first + count):
            value = a * x[i] + b * y[i] + c
            low, high = min(low, value), max(high, value)
        if high > excess:
            limit = max(DISTANCE * (abs(a) + abs(b)), noise)
            if high > limit:
                best, excess, is_split = j, high, low < -limit
    return best, is_split


@compiled
def split_by_argmax(
    logits, noise, x, y, edge, starts, base, room, out_x, out_y, out_edge, out_starts, origin, winner, pairs
):
    """Split every polygon into pieces on which one class wins (ties within `noise` go to any of the tied classes).

    `room` is scratch for one polygon's pieces: x, y, edge, value, and a stack. Writes the pieces, the polygon and the
    winner of each, and the two classes of every cut (numbered from base + 1). Returns the numbers of pieces and cuts,
    or −1 if the output is too small.
    """
    room_x, room_y, room_edge, value, stack, here_x, here_y, here_edge = room
    pieces, vertices, cuts = 0, 0, 0
    out_starts[0] = 0
    for r in range(logits.shape[0]):
        count = starts[r + 1] - starts[r]
        for i in range(count):
            room_x[i], room_y[i], room_edge[i] = x[starts[r] + i], y[starts[r] + i], edge[starts[r] + i]
        height = 1
        stack[0, 0], stack[0, 1] = 0, count
        while height > 0:
            height -= 1
            first, count = stack[height, 0], stack[height, 1]
            w = 0
            is_split = False
            for _ in range(2 * logits.shape[2]):
                j, is_split = _beaten(logits[r], noise, room_x, room_y, first, count, w)
                if j == w or is_split:
                    break
                w = j
            if is_split:
                if cuts >= pairs.shape[0] or height + 2 > stack.shape[0] or first + 2 * count + 4 > room_x.shape[0]:
                    return -1, -1
                for i in range(count):
                    here_x[i], here_y[i], here_edge[i] = room_x[first + i], room_y[first + i], room_edge[first + i]
                a, b, c = (
                    logits[r, 0, j] - logits[r, 0, w], logits[r, 1, j] - logits[r, 1, w],
                    logits[r, 2, j] - logits[r, 2, w],
                )  # fmt: skip
                limit = max(DISTANCE * (abs(a) + abs(b)), noise)
                pairs[cuts, 0], pairs[cuts, 1] = w, j
                cuts += 1
                negative, positive, _ = split_polygon(
                    a, b, c, limit, base + cuts, here_x, here_y, here_edge, count,
                    room_x, room_y, room_edge, first, value,
                )  # fmt: skip
                stack[height, 0], stack[height, 1] = first, negative
                stack[height + 1, 0], stack[height + 1, 1] = first + negative, positive
                height += 2
            else:
                if pieces >= winner.shape[0] or vertices + count > out_x.shape[0]:
                    return -1, -1
                for i in range(count):
                    out_x[vertices + i], out_y[vertices + i] = room_x[first + i], room_y[first + i]
                    out_edge[vertices + i] = room_edge[first + i]
                winner[pieces], origin[pieces] = w, r
                vertices += count
                pieces += 1
                out_starts[pieces] = vertices
    return pieces, cuts


@compiled
def _clipped_area(x, y, count, forms, room_x, room_y, room_edge, value):
    """The area of the part of a polygon where each of the forms (N, 3) is at least 0.

    The room arrays hold two polygons: 2 (count + N) vertices.
    """
    half = room_x.shape[0] // 2
    for i in range(count):
        room_x[i], room_y[i] = x[i], y[i]
    for n in range(forms.shape[0]):
        a, b, c = forms[n, 0], forms[n, 1], forms[n, 2]
        low, high = reach(a, b, c, room_x, room_y, count)
        if high <= 0.0:
            return 0.0
        if low >= 0.0:
            continue
        negative, positive, _ = split_polygon(
            a, b, c, 0.0, 0, room_x, room_y, room_edge, count, room_x, room_y, room_edge, half, value
        )
        for i in range(positive):
            room_x[i], room_y[i] = room_x[half + negative + i], room_y[half + negative + i]
        count = positive
    return area(room_x, room_y, count)


@compiled
def clipped_areas(x, y, starts, chosen, forms, room, room_edge, out):
    """Write the areas of the parts of the chosen polygons where each of their forms (S, N, 3) is at least 0."""
    for n in range(chosen.shape[0]):
        first, size = starts[chosen[n]], starts[chosen[n] + 1] - starts[chosen[n]]
        out[n] = _clipped_area(x[first:], y[first:], size, forms[n], room[0], room[1], room_edge, room[2])


@compiled
def split_by_slab(slab, along, x, y, edge, starts, base, room, out_x, out_y, out_edge, out_starts, origin, inside):
    """Cut every polygon at t · along = slab0 and slab1 if these lie inside it; along (R, 2) holds unit vectors.

    inside[p]: whether a piece lies between the two. Returns the numbers of pieces and of cuts (numbered from base + 1),
    or −1 if the output is too small.
    """
    room_x, room_y, room_edge, value = room
    pieces, vertices, cuts = 0, 0, 0
    out_starts[0] = 0
    half = room_x.shape[0] // 2
    for r in range(slab.shape[0]):
        count = starts[r + 1] - starts[r]
        for i in range(count):
            room_x[i], room_y[i], room_edge[i] = x[starts[r] + i], y[starts[r] + i], edge[starts[r] + i]
        a, b = along[r, 0], along[r, 1]
        for side in range(3):
            low, high = np.inf, -np.inf
            for i in range(count):
                at = a * room_x[i] + b * room_y[i]
                low, high = min(low, at), max(high, at)
            at = slab[r, side] if side < 2 else np.inf
            first, size, rest = 0, count, 0
            if side < 2 and low + DISTANCE < at < high - DISTANCE:
                cuts += 1
                size, rest, _ = split_polygon(
                    a, b, -at, 0.0, base + cuts, room_x, room_y, room_edge, count,
                    room_x, room_y, room_edge, half, value,
                )  # fmt: skip
                first = half
            elif side < 2 and at <= 0.5 * (low + high):
                # The slab's face is too close to an end of the polygon to cut: the centre decides its side.
                continue
            if pieces >= origin.shape[0] or vertices + size > out_x.shape[0]:
                return -1, -1
            for i in range(first, first + size):
                out_x[vertices], out_y[vertices], out_edge[vertices] = room_x[i], room_y[i], room_edge[i]
                vertices += 1
            origin[pieces], inside[pieces] = r, np.uint8(side == 1 and slab[r, 0] <= slab[r, 1])
            pieces += 1
            out_starts[pieces] = vertices
            if rest == 0:
                break
            for i in range(rest):
                room_x[i], room_y[i] = room_x[half + size + i], room_y[half + size + i]
                room_edge[i] = room_edge[half + size + i]
            count = rest
    return pieces, cuts


@compiled
def distances_to(px, py, x, y, starts, chosen, out):
    """Write the squared distance and the nearest point of each chosen polygon to (px, py): (S, 3)."""
    for n in range(chosen.shape[0]):
        first, end = starts[chosen[n]], starts[chosen[n] + 1]
        best = np.inf
        is_inside = True
        for i in range(first, end):
            j = i + 1 if i + 1 < end else first
            ex, ey = x[j] - x[i], y[j] - y[i]
            if ex * (py - y[i]) - ey * (px - x[i]) < 0.0:
                is_inside = False
            length = ex * ex + ey * ey
            share = 0.0
            if length > 0.0:
                share = min(1.0, max(0.0, ((px - x[i]) * ex + (py - y[i]) * ey) / length))
            qx, qy = x[i] + share * ex, y[i] + share * ey
            distance = (px - qx) ** 2 + (py - qy) ** 2
            if distance < best:
                best = distance
                out[n, 0], out[n, 1], out[n, 2] = distance, qx, qy
        if is_inside:
            out[n, 0], out[n, 1], out[n, 2] = 0.0, px, py
