"""Compiled loops over the curves ai(τ): their sums, values, lowest points, and crossings of a level.

`flip_kernels` computes the maps; values of curves have bounds on their rounding errors.
"""

import numpy as np

from ..compiling import compiled, compiled_reordered
from ..tolerances import UNIT
from .filters import apply_step
from .flip_kernels import move_to


@compiled_reordered
def _absolute_sum(here, expected):
    total = 0.0
    for i in range(here.shape[0]):
        total += abs(here[i] - expected[i])
    return total


@compiled_reordered
def _square_sum(here, expected):
    total = 0.0
    for i in range(here.shape[0]):
        total += (here[i] - expected[i]) * (here[i] - expected[i])
    return total


@compiled_reordered
def _mixed_sum(here, expected, slope):
    total = 0.0
    for i in range(slope.shape[0]):
        total += (here[i] - expected[i]) * slope[i]
    return total


@compiled
def _filter_map(source, target, other, shape, steps):
    """Apply the steps of a filter, given by number, to a flattened map (C·H·W); `other` is scratch."""
    for i in range(target.shape[0]):
        target[i] = source[i]
    for step in steps:
        apply_step(step, target, other, shape)


@compiled
def distances(rows, maps, packed, words, first, end, steps, shape, norm, expected, slope, scratch, out):
    """For the patterns packed[first:end], write Σ|u| or Σu², and Σ u·slope, of u = map − expected, to out (P, K, 2).

    expected, slope: (K, pixels); slope is (K, 0) if the expected map does not move. scratch: (2, pixels).
    """
    pixels = rows.offsets[1]
    for p in range(first, end):
        move_to(rows, maps, packed[p], words[p])
        for n in range(expected.shape[0]):
            here = maps.gradient[n, :pixels]
            if steps.shape[0] > 0:
                _filter_map(here, scratch[0], scratch[1], shape, steps)
                here = scratch[0]
            out[p, n, 0] = _absolute_sum(here, expected[n]) if norm == 1 else _square_sum(here, expected[n])
            out[p, n, 1] = _mixed_sum(here, expected[n], slope[n])


@compiled
def collect_maps(rows, maps, packed, words, first, end, steps, shape, scratch, out):
    """Write the filtered maps of patterns packed[first:end] to out (end − first, K, pixels). scratch: (2, pixels)."""
    pixels = rows.offsets[1]
    for p in range(first, end):
        move_to(rows, maps, packed[p], words[p])
        for n in range(out.shape[1]):
            here, target = maps.gradient[n, :pixels], out[p - first, n]
            if steps.shape[0] > 0:
                _filter_map(here, scratch[0], scratch[1], shape, steps)
                here = scratch[0]
            for i in range(pixels):
                target[i] = here[i]


@compiled
def breakpoints(
    rows, maps, packed, words, first, end, ranges, steps, shape, expected, slope, scratch, start, places, jumps, counts
):
    """For L1 and moving maps: ai(τ) = Σ|u − τ·slope| on ranges[p] = [τ_low, τ_high], for packed[first:end].

    start (P, 2) gets value and right slope at τ_low; places and jumps get the breakpoints inside and the growth of the
    slope there; counts[p] is their number. Returns the next pattern if the buffers are full.
    """
    pixels = rows.offsets[1]
    used = 0
    for p in range(first, end):
        if used + expected.shape[0] * pixels > places.shape[0]:
            return p
        move_to(rows, maps, packed[p], words[p])
        low, high = ranges[p, 0], ranges[p, 1]
        value, rise, found = 0.0, 0.0, 0
        for n in range(expected.shape[0]):
            here = maps.gradient[n, :pixels]
            if steps.shape[0] > 0:
                _filter_map(here, scratch[0], scratch[1], shape, steps)
                here = scratch[0]
            for i in range(pixels):
                u, v = here[i] - expected[n, i], slope[n, i]
                at_low = u - low * v
                value += abs(at_low)
                if at_low == 0.0:
                    rise += abs(v)
                else:
                    rise += -v if at_low > 0.0 else v
                    # The sign puts the break ahead, but the quotient may round to the start itself.
                    is_ahead = v > 0.0 if at_low > 0.0 else v < 0.0
                    place = max(low, u / v) if is_ahead else high
                    if place < high:
                        places[used + found], jumps[used + found] = place, 2.0 * abs(v)
                        found += 1
        start[p, 0], start[p, 1], counts[p] = value, rise, found
        used += found
    return end


@compiled
def _quadratic_value(form, tau, rounding):
    """Σ_j √(α − 2 β τ + γ τ²), its derivative, and a bound on the rounding error of the value."""
    value, rise, error = 0.0, 0.0, 0.0
    for j in range(form.shape[0]):
        square = form[j, 0] - 2.0 * form[j, 1] * tau + form[j, 2] * tau * tau
        doubt = rounding * (form[j, 0] + 2.0 * abs(form[j, 1] * tau) + form[j, 2] * tau * tau)
        size = np.sqrt(max(square, 0.0))
        value += size
        if size > 0.0:
            rise += (form[j, 2] * tau - form[j, 1]) / size
        error += 1.5 * doubt / np.sqrt(max(square, doubt)) if doubt > 0.0 else 0.0
    return value, rise, error


@compiled
def _broken_value(start, places, jumps, tau, rounding):
    """Value and right derivative of a convex broken line at τ, and a bound on the rounding error of the value."""
    value, slope, at = start[0], start[1], start[2]
    size = abs(value)
    for k in range(places.shape[0]):
        if places[k] >= tau:
            break
        value += slope * (places[k] - at)
        size += abs(slope * (places[k] - at))
        at, slope = places[k], slope + jumps[k]
    value += slope * (tau - at)
    return value, slope, (rounding + 4.0 * UNIT * places.shape[0]) * (size + abs(slope * (tau - at)))


@compiled
def curve_value(quadratic, start, places, jumps, tau, rounding):
    """Value, right derivative and rounding error of a curve at τ: the sum of the parts with nonempty arrays."""
    if quadratic.shape[0] == 0:
        return _broken_value(start, places, jumps, tau, rounding)
    value, rise, error = _quadratic_value(quadratic, tau, rounding)
    if start.shape[0] > 0:
        other, slope, doubt = _broken_value(start, places, jumps, tau, rounding)
        value, rise, error = value + other, rise + slope, error + doubt + 4.0 * UNIT * (abs(value) + abs(other))
    return value, rise, error


@compiled
def _lowest(quadratic, start, places, jumps, low, high, rounding):
    """A bracket of the lowest point of a curve on [low, high], halved down to the width of rounding."""
    for _ in range(60):
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            break
        _, rise, _ = curve_value(quadratic, start, places, jumps, middle, rounding)
        if rise < 0.0:
            low = middle
        else:
            high = middle
    return low, high


@compiled
def _crossing(quadratic, start, places, jumps, inside, outside, level, margin, rounding):
    """Between a τ inside {ai ≤ level} and one outside: a last τ that is surely inside, and a first surely outside.

    Both are found by halving; `margin` is the error of the maps behind the values.
    """
    sure_in, open_in = inside, outside
    sure_out, open_out = outside, inside
    for _ in range(60):
        middle = 0.5 * (sure_in + open_in)
        value, _, error = curve_value(quadratic, start, places, jumps, middle, rounding)
        if value + error + margin <= level:
            sure_in = middle
        else:
            open_in = middle
        middle = 0.5 * (sure_out + open_out)
        value, _, error = curve_value(quadratic, start, places, jumps, middle, rounding)
        if value - error - margin > level:
            sure_out = middle
        else:
            open_out = middle
    return sure_in, sure_out


@compiled
def slabs(quadratic, start, breaks, places, jumps, curve, taus, level, slack, rounding, out, reach):
    """Find where ai ≤ level for every region, given its curve and its range of τ.

    out (R, 4): ai ≤ level surely on [out0, out1], ai > level surely outside [out2, out3]; an empty interval is (1, 0).
    reach (R, 2): bounds on the smallest and largest ai, rounded outward. slack (Q,): the error of the maps behind a
    curve; rounding: the relative error of its sums.
    """
    for r in range(curve.shape[0]):
        q = curve[r]
        low, high, margin = taus[r, 0], taus[r, 1], slack[q]
        quad = quadratic[q] if quadratic.shape[0] > 0 else quadratic[:0, 0]
        line = start[q] if start.shape[0] > 0 else start[:, 0]
        at = places[breaks[q] : breaks[q + 1]] if start.shape[0] > 0 else places[:0]
        jump = jumps[breaks[q] : breaks[q + 1]] if start.shape[0] > 0 else jumps[:0]
        v_low, rise_low, e_low = curve_value(quad, line, at, jump, low, rounding)
        v_high, _, e_high = curve_value(quad, line, at, jump, high, rounding)
        bottom, v_bottom, e_bottom, sure_bottom = low, v_low, e_low, v_low - e_low
        if rise_low < 0.0:
            first, second = _lowest(quad, line, at, jump, low, high, rounding)
            v_first, rise_first, e_first = curve_value(quad, line, at, jump, first, rounding)
            v_second, _, e_second = curve_value(quad, line, at, jump, second, rounding)
            # By convexity, the curve between the two lies above the tangent at the first.
            sure_bottom = v_first - e_first + min(0.0, rise_first * 1.000001) * (second - first)
            sure_bottom = min(sure_bottom, v_second - e_second)
            bottom, v_bottom, e_bottom = (
                (first, v_first, e_first) if v_first < v_second else (second, v_second, e_second)
            )
        top = max(v_low + e_low, v_high + e_high)
        reach[r, 0], reach[r, 1] = sure_bottom - margin, top + margin
        if not np.isfinite(v_low + v_high + v_bottom + sure_bottom + top + margin):
            # After an overflow, nothing is known.
            reach[r, 0], reach[r, 1] = 0.0, np.inf
            out[r, 0], out[r, 1], out[r, 2], out[r, 3] = 1.0, 0.0, low, high
        elif top + margin <= level:
            out[r, 0], out[r, 1], out[r, 2], out[r, 3] = low, high, low, high
        elif sure_bottom - margin > level:
            out[r, 0], out[r, 1], out[r, 2], out[r, 3] = 1.0, 0.0, 1.0, 0.0
        else:
            out[r, 0], out[r, 1], out[r, 2], out[r, 3] = low, high, low, high
            if v_bottom + e_bottom + margin > level:
                out[r, 0], out[r, 1] = 1.0, 0.0
                if v_low - e_low - margin > level and bottom > low:
                    _, out[r, 2] = _crossing(quad, line, at, jump, bottom, low, level, margin, rounding)
                if v_high - e_high - margin > level and bottom < high:
                    _, out[r, 3] = _crossing(quad, line, at, jump, bottom, high, level, margin, rounding)
            else:
                if v_low + e_low + margin > level:
                    out[r, 0], out[r, 2] = _crossing(quad, line, at, jump, bottom, low, level, margin, rounding)
                if v_high + e_high + margin > level:
                    out[r, 1], out[r, 3] = _crossing(quad, line, at, jump, bottom, high, level, margin, rounding)
