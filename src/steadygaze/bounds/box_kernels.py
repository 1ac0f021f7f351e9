"""Compiled loops over the forms of many boxes: one pass over memory per step. `passes` explains the forms.

Bounds on differences decide which entries of a window can win on a box, because the entries move together. `decisions`
explains how the largest one is enclosed.
"""

import numpy as np

from ..compiling import compiled

OFF, ON, OPEN = 0, 1, 2  # the bit of a neuron on a box: known to be 0, known to be 1, or unknown


@compiled
def spreads(forms, spread):
    """Write Σ_k |coefficient_k| of forms (B, 1 + m, n) into spread (B, n)."""
    boxes, rows, size = forms.shape
    for b in range(boxes):
        for i in range(size):
            spread[b, i] = 0.0
        for k in range(1, rows):
            for i in range(size):
                spread[b, i] += abs(forms[b, k, i])


@compiled
def errors_before(forms, spread, remainder, factor, floor, before):
    """Write remainder + factor · (|centre| + spread), at least `floor` unless the value is exactly zero, (B, n)."""
    boxes, size = remainder.shape
    for b in range(boxes):
        for i in range(size):
            magnitude = abs(forms[b, 0, i]) + spread[b, i]
            error = remainder[b, i] + factor * magnitude
            # The order matters: max keeps a NaN only as its first argument.
            before[b, i] = 0.0 if magnitude + remainder[b, i] == 0.0 else max(error, floor)


@compiled
def finish_step(forms, remainder, bias, bias_size, unit, lift, least):
    """Add the bias to the centres, and its errors unit · bias_size to the remainders; lift these; keep exact zeros."""
    boxes, size = remainder.shape
    for b in range(boxes):
        for i in range(size):
            forms[b, 0, i] += bias[i]
            error = remainder[b, i] + unit * bias_size[i]
            remainder[b, i] = 0.0 if remainder[b, i] == 0.0 and bias_size[i] == 0.0 else error * lift + least


@compiled
def ends(forms, spread, remainder, factor, least, low, high):
    """Write proved bounds (B, n) on the values; a value that is exactly zero has the bounds 0 and 0."""
    boxes, size = remainder.shape
    for b in range(boxes):
        for i in range(size):
            centre, reach = forms[b, 0, i], spread[b, i] + remainder[b, i]
            slack = factor * (reach + abs(centre)) + least
            slack = 0.0 if reach == 0.0 and centre == 0.0 else slack
            # After an overflow, nothing is known.
            is_known = np.isfinite(centre) and np.isfinite(reach)
            low[b, i] = centre - reach - slack if is_known else -np.inf
            high[b, i] = centre + reach + slack if is_known else np.inf


@compiled
def corner_ends(forms, points, blur, spread, remainder, factor, least, low, high):
    """Like `ends`, on the hulls of points (B, V, m), enlarged by blur (B, m) along every axis."""
    boxes, size = remainder.shape
    for b in range(boxes):
        for i in range(size):
            bottom, top = np.inf, -np.inf
            for v in range(points.shape[1]):
                value = forms[b, 0, i]
                for k in range(points.shape[2]):
                    value += forms[b, 1 + k, i] * points[b, v, k]
                bottom, top = min(bottom, value), max(top, value)
            reach = remainder[b, i]
            for k in range(points.shape[2]):
                reach += abs(forms[b, 1 + k, i]) * blur[b, k]
            magnitude = abs(forms[b, 0, i]) + spread[b, i] + reach
            slack = 0.0 if magnitude == 0.0 else reach + factor * magnitude + least
            # After an overflow, nothing is known.
            low[b, i] = bottom - slack if np.isfinite(magnitude) else -np.inf
            high[b, i] = top + slack if np.isfinite(magnitude) else np.inf


@compiled
def relax(forms, remainder, slope, shift, factor):
    """Replace forms and remainders by slope · value + shift, including rounding; exact zeros stay exact."""
    boxes, rows, size = forms.shape
    for b in range(boxes):
        for i in range(size):
            remainder[b, i] = 0.0 if slope[b, i] == 0.0 else remainder[b, i] * slope[b, i]
        for k in range(rows):
            for i in range(size):
                value = 0.0 if slope[b, i] == 0.0 else forms[b, k, i] * slope[b, i]
                value += shift[b, i] if k == 0 else 0.0
                forms[b, k, i] = value
                rounding = factor * (abs(value) + (abs(shift[b, i]) if k == 0 else 0.0))
                # An unchanged value and a constant have no rounding.
                is_plain = (slope[b, i] == 1.0 and shift[b, i] == 0.0) or slope[b, i] == 0.0
                remainder[b, i] += 0.0 if is_plain else rounding


@compiled
def relu_bits(low, high, bits):
    """Decide ReLUs by bounds (B, n): on if low > 0, off if high ≤ 0; open otherwise, also if NaN."""
    boxes, size = low.shape
    for b in range(boxes):
        for i in range(size):
            bits[b, i] = ON if low[b, i] > 0.0 else (OFF if high[b, i] <= 0.0 else OPEN)


@compiled
def bit_gradients(centre, radius, bits, lift):
    """Multiply gradients (B, R, n), in place, by the derivatives of neurons with bits (B, n): [0, 1] if open."""
    boxes, rows, size = centre.shape
    for b in range(boxes):
        for r in range(rows):
            for i in range(size):
                middle, spread = centre[b, r, i], radius[b, r, i]
                least, most = min(middle - spread, 0.0), max(middle + spread, 0.0)
                is_on, is_off = bits[b, i] == ON, bits[b, i] == OFF
                wide = lift * 0.5 * (most - least)
                is_known = np.isfinite(middle) and np.isfinite(spread)
                centre[b, r, i] = middle if is_on else (0.0 if is_off or not is_known else 0.5 * (most + least))
                radius[b, r, i] = spread if is_on else (0.0 if is_off else (wide if is_known else np.inf))


@compiled
def errors_above(centre, radius, factor, floor):
    """Add factor · |centre| to every radius (N, n), at least `floor` unless both are exactly zero, in place."""
    count, size = centre.shape
    for k in range(count):
        for i in range(size):
            error = radius[k, i] + factor * abs(centre[k, i])
            radius[k, i] = 0.0 if radius[k, i] == 0.0 and centre[k, i] == 0.0 else max(error, floor)


@compiled
def lift_radii(radius, lift, least):
    """Multiply every radius (N, n) by a factor and add a little, unless it is exactly zero, in place."""
    count, size = radius.shape
    for k in range(count):
        for i in range(size):
            radius[k, i] = 0.0 if radius[k, i] == 0.0 else radius[k, i] * lift + least


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
