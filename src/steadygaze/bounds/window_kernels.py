"""Compiled loops over windows: find the entries that can win on a box, and enclose the largest one.

Bounds on differences decide, because the entries of a window move together. `decisions` explains the enclosure.
"""

import numpy as np

from ..compiling import compiled
from .box_kernels import OFF, ON, OPEN


@compiled
def _top(row, points, blur):
    """The largest value of a form (1 + m,) on the box; with points (V, m), on their hull widened by blur (m,)."""
    size = row.shape[0] - 1
    if points.shape[0] == 0:
        total = row[0]
        for k in range(size):
            total += abs(row[1 + k])
        return total
    best = -np.inf
    for v in range(points.shape[0]):
        value = row[0]
        for k in range(size):
            value += row[1 + k] * points[v, k]
        best = max(best, value)
    for k in range(size):
        best += abs(row[1 + k]) * blur[k]
    return best


@compiled
def _lead(forms, spread, remainder, i, j, points, blur, factor, least, row):
    """An upper bound on entry i minus entry j on one box; exactly 0 if both are exactly equal."""
    is_same = remainder[i] == 0.0 and remainder[j] == 0.0
    for k in range(forms.shape[0]):
        row[k] = forms[k, i] - forms[k, j]
        is_same = is_same and row[k] == 0.0
    if is_same:
        return 0.0
    reach = remainder[i] + remainder[j]
    magnitude = abs(forms[0, i]) + spread[i] + abs(forms[0, j]) + spread[j] + reach
    return _top(row, points, blur) + reach + factor * magnitude + least


@compiled
def _is_beaten(forms, spread, remainder, low, high, i, j, points, blur, factor, least, row):
    """Whether entry j surely beats entry i everywhere on one box; in a tie, the first wins."""
    if high[i] < low[j] or (high[i] == low[j] and j < i):
        return True
    if low[i] > high[j]:
        return False
    lead = _lead(forms, spread, remainder, i, j, points, blur, factor, least, row)
    return lead < 0.0 or (lead == 0.0 and j < i)


@compiled
def find_candidates(
    forms, spread, remainder, low, high, points, blur, first, end, factor, least, bits, row
):  # fmt: skip
    """Write which entries of windows win, or may win, on each box to bits (B, n).

    first and end (W,): the entries of each window. points (B or 1, V, m) and blur (B or 1, m): the corners of
    polytopes; none for boxes. row (1 + m,) is scratch.
    """
    for b in range(forms.shape[0]):
        p = b if points.shape[0] > 1 else 0
        for w in range(first.shape[0]):
            leader, is_known = first[w], True
            for i in range(first[w], end[w]):
                bits[b, i] = OPEN
                is_known = is_known and np.isfinite(low[b, i]) and np.isfinite(high[b, i])
                if forms[b, 0, i] > forms[b, 0, leader]:
                    leader = i
            count = end[w] - first[w]
            if is_known and count > 1:
                for i in range(first[w], end[w]):
                    if i != leader and _is_beaten(
                        forms[b], spread[b], remainder[b], low[b], high[b], i, leader, points[p], blur[p], factor,
                        least, row,
                    ):  # fmt: skip
                        bits[b, i] = OFF
                        count -= 1
                for i in range(first[w], end[w]):
                    for j in range(first[w], end[w]):
                        # At least one entry is left: nothing beats the largest at the middle of the box.
                        if count > 1 and i != j and bits[b, i] == OPEN and bits[b, j] == OPEN and _is_beaten(
                            forms[b], spread[b], remainder[b], low[b], high[b], i, j, points[p], blur[p], factor,
                            least, row,
                        ):  # fmt: skip
                            bits[b, i] = OFF
                            count -= 1
            if count == 1:
                for i in range(first[w], end[w]):
                    bits[b, i] = ON if bits[b, i] == OPEN else OFF


@compiled
def _mix(forms, spread, remainder, points, blur, first, end, factor, least, bits, weight, mix, row):
    """Write weights (places,) for the candidates of a window on one box: each joins those before it like a ReLU."""
    is_first = True
    for i in range(first, end):
        weight[i - first] = 0.0
        if bits[i] == OFF:
            continue
        if is_first:
            is_first = False
            weight[i - first] = 1.0
            for k in range(forms.shape[0]):
                mix[k] = forms[k, i]
            continue
        rest = remainder[i]
        for j in range(first, i):
            rest += weight[j - first] * remainder[j]
        for k in range(forms.shape[0]):
            row[k] = forms[k, i] - mix[k]
        above = _top(row, points, blur) + rest
        for k in range(forms.shape[0]):
            row[k] = mix[k] - forms[k, i]
        below = _top(row, points, blur) + rest
        # max(a, b) = a + ReLU(b − a), and the chord of this ReLU has the slope above / (above + below).
        share = above / (above + below) if above > 0.0 and below > 0.0 else (1.0 if above > 0.0 else 0.0)
        for j in range(first, i):
            weight[j - first] *= 1.0 - share
        weight[i - first] = share
        for k in range(forms.shape[0]):
            mix[k] = (1.0 - share) * mix[k] + share * forms[k, i]


@compiled
def _excess(forms, spread, remainder, points, blur, first, end, factor, least, bits, weight, row):
    """A bound on how far a window's largest candidate exceeds the weighted mean on one box; and the rounding."""
    most, slack = 0.0, 0.0
    for i in range(first, end):
        if bits[i] == OFF:
            continue
        for k in range(forms.shape[0]):
            row[k] = forms[k, i]
        rest, magnitude = 0.0, abs(forms[0, i]) + spread[i] + remainder[i]
        for j in range(first, end):
            share = weight[j - first]
            if share > 0.0:
                rest += share * remainder[j] if j != i else 0.0
                magnitude += share * (abs(forms[0, j]) + spread[j] + remainder[j])
                for k in range(forms.shape[0]):
                    row[k] -= share * forms[k, j]
        rest += abs(1.0 - weight[i - first]) * remainder[i]
        slack = max(slack, factor * magnitude + least)
        most = max(most, _top(row, points, blur) + rest)
    return most, slack


@compiled
def relax_windows(
    forms, spread, remainder, points, blur, first, end, factor, least, bits, slope, shift, radius, weight, mix, row
):  # fmt: skip
    """Write the enclosure of every window's largest entry: slope, shift and radius (B, n) of its entries.

    Over a window, the sum of slope · entry + shift differs from the largest entry by at most the sum of the radii.
    weight (places,), mix and row (1 + m,) are scratch.
    """
    for b in range(forms.shape[0]):
        p = b if points.shape[0] > 1 else 0
        for w in range(first.shape[0]):
            leader, count, is_known = -1, 0, True
            for i in range(first[w], end[w]):
                slope[b, i] = 0.0 if bits[b, i] == OFF else 1.0
                shift[b, i] = 0.0
                radius[b, i] = 0.0
                is_known = is_known and np.isfinite(forms[b, 0, i]) and np.isfinite(spread[b, i] + remainder[b, i])
                if bits[b, i] != OFF:
                    count += 1
                    leader = i if leader < 0 or forms[b, 0, i] > forms[b, 0, leader] else leader
            if count == 1:
                continue
            if not is_known:
                # After an overflow, nothing is known.
                for i in range(first[w], end[w]):
                    slope[b, i] = 0.0
                radius[b, first[w]] = np.inf
                continue
            _mix(
                forms[b], spread[b], remainder[b], points[p], blur[p], first[w], end[w], factor, least, bits[b], weight,
                mix, row,
            )  # fmt: skip
            mixed, slack = _excess(
                forms[b], spread[b], remainder[b], points[p], blur[p], first[w], end[w], factor, least, bits[b], weight,
                row,
            )  # fmt: skip
            for i in range(first[w], end[w]):
                slope[b, i] = weight[i - first[w]]
                weight[i - first[w]] = 1.0 if i == leader else 0.0
            single, rounding = _excess(
                forms[b], spread[b], remainder[b], points[p], blur[p], first[w], end[w], factor, least, bits[b], weight,
                row,
            )  # fmt: skip
            if single <= mixed:
                mixed, slack = single, rounding
                for i in range(first[w], end[w]):
                    slope[b, i] = weight[i - first[w]]
            shift[b, leader] = 0.5 * mixed
            radius[b, leader] = 0.5 * mixed + slack


@compiled
def count_windows(
    forms, spread, remainder, points, blur, first, end, factor, least, touching, bits, unstable, pull, moves, row
):  # fmt: skip
    """Count windows with several candidates in unstable (B,), unless they merely touch; add their moves to pull (B, d).

    moves (d,) and row (1 + m,) are scratch.
    """
    for b in range(forms.shape[0]):
        p = b if points.shape[0] > 1 else 0
        for w in range(first.shape[0]):
            leader, is_split = -1, False
            for i in range(first[w], end[w]):
                if bits[b, i] == OPEN and (leader < 0 or forms[b, 0, i] > forms[b, 0, leader]):
                    leader = i
            moves[:] = 0.0
            for i in range(first[w], end[w]):
                if leader < 0 or i == leader or bits[b, i] != OPEN:
                    continue
                above = _lead(forms[b], spread[b], remainder[b], i, leader, points[p], blur[p], factor, least, row)
                below = _lead(forms[b], spread[b], remainder[b], leader, i, points[p], blur[p], factor, least, row)
                # The order matters: NaN counts as split.
                is_split = is_split or not (min(above, below) <= touching * (above + below))
                for k in range(pull.shape[1]):
                    moves[k] = max(moves[k], abs(forms[b, 1 + k, i] - forms[b, 1 + k, leader]))
            if is_split:
                unstable[b] += 1
                for k in range(pull.shape[1]):
                    pull[b, k] += moves[k]


@compiled
def near_winners(forms, remainder, at, slack, first, end, together, near):
    """Write which entries may be within `together` of the largest of their window, at each corner, to near (B, V, n).

    at (B, V, n): the values at the corners, up to slack (B, n). An entry that is alone, or equals an earlier one, does
    not count.
    """
    for b in range(at.shape[0]):
        for w in range(first.shape[0]):
            for v in range(at.shape[1]):
                largest, count = -np.inf, 0
                for i in range(first[w], end[w]):
                    largest = max(largest, at[b, v, i] - slack[b, i])
                for i in range(first[w], end[w]):
                    # NaN counts as near.
                    is_near = not at[b, v, i] + slack[b, i] + together < largest
                    for j in range(first[w], i):
                        is_same = remainder[b, i] == 0.0 and remainder[b, j] == 0.0
                        for k in range(forms.shape[1]):
                            is_same = is_same and forms[b, k, i] == forms[b, k, j]
                        is_near = is_near and not is_same
                    near[b, v, i] = is_near
                    count += is_near
                if count == 1:
                    for i in range(first[w], end[w]):
                        near[b, v, i] = False
