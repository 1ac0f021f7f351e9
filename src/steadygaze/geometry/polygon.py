"""Compiled operations on one convex polygon: bounds of an affine form, area, cutting it along a line; and on two.

A polygon is `count` vertices x, y in counter-clockwise order; `edge[i]` names what made the edge from vertex i to the
next. Nothing is allocated here.
"""

import numpy as np

from ..compiling import compiled, compiled_inline


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
    """Half of the circumference of a polygon: no chord is longer."""
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
    """Whether two values have opposite signs; their product may underflow to 0."""
    return here < 0.0 < there or there < 0.0 < here


@compiled
def split_polygon(a, b, c, limit, cut, x, y, edge, count, out_x, out_y, out_edge, first, value):
    """Cut a polygon along a x + b y + c = 0; write the negative, then the positive part from `first` on.

    Vertices closer to the line than `limit` count as lying on it and belong to both parts. The new edge is marked −cut
    in the negative and +cut in the positive part. `value` is scratch. Returns the numbers of vertices of the two parts,
    and the largest value that was taken for 0.
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
    """The area that two polygons have in common; all of both lies above y = base.

    A polygon is the sum of what lies below its edges, down to the base, with a sign for each edge; so the common area
    is a sum over pairs of edges. Unlike clipping, nothing is made longer than it is: edges whose length is of the order
    of the rounding of their ends, and polygons that are not quite convex, do no harm.
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
            # Shares of an edge, not slopes: however steep it is, nothing overflows.
            rise, other_rise = y[j] - y[i], other_y[m] - other_y[k]
            width, other_width = x[j] - x[i], other_x[m] - other_x[k]
            here_low = y[i] + (low - x[i]) / width * rise - base
            here_high = y[i] + (high - x[i]) / width * rise - base
            there_low = other_y[k] + (low - other_x[k]) / other_width * other_rise - base
            there_high = other_y[k] + (high - other_x[k]) / other_width * other_rise - base
            area_below = 0.5 * (min(here_low, there_low) + min(here_high, there_high)) * (high - low)
            before, after = here_low - there_low, here_high - there_high
            if are_opposite(before, after):
                # The lower of two lines that cross rises above the chord between its ends.
                at = before / (before - after)
                crossing = here_low + at * (here_high - here_low)
                chord = (1.0 - at) * min(here_low, there_low) + at * min(here_high, there_high)
                area_below += 0.5 * (crossing - chord) * (high - low)
            total += area_below if (x[i] < x[j]) == (other_x[k] < other_x[m]) else -area_below
    return total
