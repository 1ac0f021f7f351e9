"""Compiled loops over the forms of many boxes: one pass over memory per step. `passes` explains the forms."""

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
