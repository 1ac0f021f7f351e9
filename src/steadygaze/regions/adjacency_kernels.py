"""Compiled loops that find which edges on the two sides of a cut overlap."""

import numpy as np

from ..compiling import compiled


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
