"""Compiled loops over one region: the margin at its points, and where the search line passes through it."""

import numpy as np

from ...compiling import compiled
from ...tolerances import DISTANCE, SLOW

ENTERS, LEAVES, FACET = 0, 1, 2


@compiled
def lead_ranges(logits, label, points, tops):
    """The range of the margin f_label − max of the others at points (P, d), for logits (d+1, K): lowest, highest.

    Raises tops (K,) to the largest lead over each class.
    """
    d, classes = logits.shape[0] - 1, logits.shape[1]
    lowest, highest = np.inf, -np.inf
    for n in range(points.shape[0]):
        margin = np.inf
        for j in range(classes):
            if j == label:
                continue
            lead = logits[d, label] - logits[d, j]
            for i in range(d):
                lead += points[n, i] * (logits[i, label] - logits[i, j])
            if not lead >= margin:
                margin = lead  # NaN too
            if not lead <= tops[j]:
                tops[j] = lead
        if not margin >= lowest:
            lowest = margin
        if not margin <= highest:
            highest = margin
    return lowest, highest


@compiled
def _key(halfspaces, f, gap, speed, column):
    """Where the tilted line meets a facet, as a share of the line: column 0 without the tilt, then order by order."""
    share = -gap[f] / speed[f]
    return share if column == 0 else -share * halfspaces[f, column - 1] / speed[f]


@compiled
def _first(halfspaces, gap, speed, sign, chosen):
    """Among the facets with a speed of the given sign, the one met last (sign 1) or first (sign −1); −1 if none.

    Ties within the tolerance are broken by the next order of `_key`.
    """
    count, columns, found = halfspaces.shape[0], halfspaces.shape[1], -1
    for f in range(count):
        chosen[f] = 1.0 if abs(speed[f]) > SLOW and speed[f] * sign > 0.0 else 0.0
    for column in range(columns):
        least, left = np.inf, 0
        for f in range(count):
            if chosen[f] > 0.0:
                least = min(least, -sign * _key(halfspaces, f, gap, speed, column))
        for f in range(count):
            if chosen[f] > 0.0:
                if -sign * _key(halfspaces, f, gap, speed, column) <= least + DISTANCE:
                    found = f if left == 0 else found
                    left += 1
                else:
                    chosen[f] = 0.0
        if left <= 1:
            break
    return found


@compiled
def pass_region(halfspaces, start, step, scratch, found):
    """Find where the tilted line from start to start + step enters and leaves a region, and the facet where it leaves.

    Writes these to `found` (3,); a line that ends inside leaves at 1, by facet −1. scratch: (3, F). Returns False if
    the line misses the region. `walker.SearchLine` explains the tilt.
    """
    count, d = halfspaces.shape[0], start.shape[0]
    gap, speed, chosen = scratch[0], scratch[1], scratch[2]
    for f in range(count):
        gap[f], speed[f] = halfspaces[f, d], 0.0
        for i in range(d):
            gap[f] += halfspaces[f, i] * start[i]
            speed[f] += halfspaces[f, i] * step[i]
        if abs(speed[f]) <= SLOW:
            tilt = 0.0
            for i in range(d):
                if tilt == 0.0:
                    tilt = halfspaces[f, i]
            if gap[f] < -DISTANCE or (gap[f] <= DISTANCE and tilt < 0.0):
                return False
    enters, leaves = _first(halfspaces, gap, speed, 1.0, chosen), _first(halfspaces, gap, speed, -1.0, chosen)
    is_ahead, is_before = leaves < 0, leaves < 0 or enters < 0
    for column in range(d + 1):
        leave = _key(halfspaces, leaves, gap, speed, column) if leaves >= 0 else np.inf
        enter = _key(halfspaces, enters, gap, speed, column) if enters >= 0 else -np.inf
        if column == 0:
            found[ENTERS], found[LEAVES], found[FACET] = max(enter, 0.0), leave, float(leaves)
            is_ahead = is_ahead or leave > SLOW  # a line that starts on the facet may leave a rounding later
            if enter >= 1.0:
                return False
        if not is_ahead and abs(leave) > DISTANCE:
            if leave < 0.0:
                return False
            is_ahead = True
        if not is_before and abs(enter - leave) > DISTANCE:
            if enter > leave:
                return False
            is_before = True
    if leaves < 0 or found[LEAVES] >= 1.0 - DISTANCE:
        found[LEAVES], found[FACET] = 1.0, -1.0
    return is_ahead and is_before
