"""Compiled loops that count the pixels that packed sets have in common."""

import numpy as np

from ...compiling import compiled


@compiled
def _bits(word):
    """The number of one bits in a number below 2³²."""
    count = np.uint64(0)
    while word:
        word &= word - np.uint64(1)
        count += np.uint64(1)
    return np.int64(count)


@compiled
def _common(first, second):
    count = 0
    for i in range(first.shape[0]):
        count += _bits(first[i] & second[i])
    return count


@compiled
def overlaps(tops, sure, likely, out):
    """Count the pixels of sets tops (N, W) that are in sets sure and likely (N, W), into out (N, 2)."""
    for n in range(tops.shape[0]):
        out[n, 0], out[n, 1] = _common(tops[n], sure[n]), _common(tops[n], likely[n])


@compiled
def segment_slabs(tops, unsure, curve, taus, ends, sure, likely, k, limit, largest, out):
    """Write the slabs and reach of losses that are constant on segments of τ to out (R, 6): inner, outer, reach.

    tops (Q, W): the k strongest pixels of each curve; unsure (Q,): how many of them are uncertain, −1 if unknown.
    curve (R,) and taus (R, 2): curve and range of τ of every region. ends (J + 1,), sure and likely (J, W): see
    `Strongest`. largest: the largest loss, also of maps without attention.
    """
    for r in range(curve.shape[0]):
        q, low, high = curve[r], taus[r, 0], taus[r, 1]
        if unsure[q] < 0:
            out[r, 0], out[r, 1], out[r, 2], out[r, 3] = 1.0, 0.0, low, high
            out[r, 4], out[r, 5] = 0.0, largest
            continue
        best_start, best_end, start = 1.0, 0.0, low
        outer_start, outer_end = 1.0, 0.0
        bottom, top = largest, 0.0
        is_running = False
        j = max(np.searchsorted(ends, low, "right") - 1, 0)
        # A range that begins at the end of a segment touches the one before.
        if j > 0 and ends[j] >= low:
            j -= 1
        while j < sure.shape[0] and ends[j] <= high:
            least = max(_common(tops[q], sure[j]) - unsure[q], 0)
            most = min(_common(tops[q], likely[j]) + unsure[q], k)
            loss_low, loss_high = 1.0 - most / k, 1.0 - least / k
            bottom, top = min(bottom, loss_low), max(top, loss_high)
            first, last = max(ends[j], low), min(ends[j + 1], high)
            if loss_high <= limit:
                start = start if is_running else first
                is_running = True
                if last - start >= best_end - best_start:
                    best_start, best_end = start, last
            else:
                is_running = False
            if loss_low <= limit:
                outer_start = first if outer_start > outer_end else outer_start
                outer_end = last
            j += 1
        out[r, 0], out[r, 1], out[r, 2], out[r, 3] = best_start, best_end, outer_start, outer_end
        out[r, 4], out[r, 5] = bottom, top
