"""Compiled loops of the traversal: forms and pattern at a point, layer by layer, and 2-D regions by clipping.

One step moves the whole network to the pattern just beyond a point, by adding the columns of the changed inputs.
"""

from typing import NamedTuple

import numpy as np

from ...compiling import compiled, compiled_fused
from ...network.layers import RELU
from ...tolerances import DISTANCE, MAX_ADDITIONS, MAX_SYNCS
from .deciding_kernels import ALONE, bound, bound_noise, decide_mixed, is_on

SLIVERS = 0


class Standing(NamedTuple):
    """The state of the traversal in one knot cell: the forms and the pattern of the last region."""

    forms: np.ndarray  # (d+1, N) of each neuron before its ReLU
    outputs: np.ndarray  # (d+1, N) the output forms that the next layer's `forms` reflect
    active: np.ndarray  # (N,) uint8
    updates: np.ndarray  # (L+1,) since the forms of a layer were computed from scratch; −1: not yet
    change: np.ndarray  # (d+1, widest) scratch
    listed: np.ndarray  # (2, widest) scratch
    peak: np.ndarray  # (N,) largest sum of a form's absolute coefficients so far
    missed: np.ndarray  # (N,) largest |value| on a part left out by the tolerance
    sums: np.ndarray  # (1,) slivers
    drift: np.ndarray  # (2, L+1) additions to the forms of a layer since they were computed from scratch, and changes
    most_drift: np.ndarray  # (2, L+1) the largest values of both so far
    beside: np.ndarray  # (2, N) how much of all regions so far lies beside each neuron's kink, see `Accuracy`
    off: np.ndarray  # (N,) 1 for neurons that `settle` leaves inactive, whatever their values
    rival: np.ndarray  # (N,) for an entry, the winner of its window; for a carried neuron, itself; −1 for a ReLU
    noises: np.ndarray  # (widest,) scratch
    prints: np.ndarray  # uint64 fingerprints of lines and of all layers with windows, see `fingerprints`
    fed_prints: np.ndarray  # uint64 the inputs that `prints` reflects

    @classmethod
    def start(cls, program, root, d):
        """The state before the first step in a knot cell whose first layer has the forms `root`, in d dimensions."""
        neurons, layers = int(program.offsets[-1]), len(program.offsets) - 1
        widest = int(np.diff(program.offsets).max())
        forms, outputs = np.zeros((2, d + 1, neurons))
        forms[:d, : root.shape[1]], forms[d, : root.shape[1]] = root[:d], root[-1]
        active, updates = np.zeros(neurons, dtype=np.uint8), np.full(layers, -1)
        change, listed = np.zeros((d + 1, widest)), np.zeros((2, widest), dtype=np.int64)
        (peak, missed), (drift, most_drift) = np.zeros((2, neurons)), np.zeros((2, 2, layers))
        beside, off = np.zeros((2, neurons)), np.zeros(neurons, dtype=np.uint8)
        rival = np.where(program.kind == RELU, ALONE, np.arange(neurons))
        prints, fed_prints = program.prints.copy(), np.zeros(int(program.print_stages[:, 3].sum()), dtype=np.uint64)
        return cls(
            forms, outputs, active, updates, change, listed, peak, missed, np.zeros(1), drift, most_drift, beside, off,
            rival, np.zeros(widest), prints, fed_prints,
        )  # fmt: skip


@compiled
def _output(program, standing, layer, change):
    """Write the output forms of a hidden layer; the layer that ends the clip outputs the clipped pixels."""
    forms, active, offsets = standing.forms, standing.active, program.offsets
    first, size, last = offsets[layer], offsets[layer + 1] - offsets[layer], forms.shape[0] - 1
    ends_clip = program.clipped == 1 and layer == 1
    for k in range(size):
        source = k if ends_clip else first + k
        is_on = active[first + k] == 1 and (not ends_clip or active[k] == 1)
        for i in range(last + 1):
            change[i, k] = forms[i, source] if is_on else 0.0
        if ends_clip and active[first + k] == 0:
            change[last, k] = 1.0


@compiled_fused
def _add_column(weights, delta, row):
    for n in range(row.shape[0]):
        row[n] += weights[n] * delta


@compiled
def _add(program, standing, layer, columns):
    """Add the listed columns of the matrix into a layer, times the changes of their inputs."""
    forms, change, offsets = standing.forms, standing.change, program.offsets
    first, end, start = offsets[layer], offsets[layer + 1], program.dense_start[layer]
    width = end - first
    for n in range(columns.shape[0]):
        k = columns[n]
        if start >= 0:
            weights = program.dense[start + k * width : start + (k + 1) * width]
            for i in range(forms.shape[0]):
                if change[i, k] != 0.0:
                    _add_column(weights, change[i, k], forms[i, first:end])
        else:
            place = program.column_start[layer] + k
            for entry in range(program.columns[place], program.columns[place + 1]):
                for i in range(forms.shape[0]):
                    forms[i, first + program.rows[entry]] += program.values[entry] * change[i, k]


@compiled
def _copy(program, standing, layer):
    """Write the forms of all copies in a layer: outputs are copied bit by bit, so equal inputs stay equal."""
    forms, outputs = standing.forms, standing.outputs
    for k in range(program.offsets[layer], program.offsets[layer + 1]):
        source = program.copied[k]
        if source < 0:
            continue
        for i in range(forms.shape[0]):
            form = 0.0
            # At most one entry of a window is active.
            for n in range(program.window_first[source], program.window_end[source]):
                form += outputs[i, n]
            forms[i, k] = form


@compiled
def _refresh(program, standing, layer):
    """Update the forms of a layer to the pattern and the forms of the layer before it."""
    forms, outputs, change, offsets = standing.forms, standing.outputs, standing.change, program.offsets
    rows = forms.shape[0]
    first, end = offsets[layer], offsets[layer + 1]
    before, size = offsets[layer - 1], first - offsets[layer - 1]
    _output(program, standing, layer - 1, change)
    if program.clipped == 1 and layer == 1:
        for k in range(size):
            for i in range(rows):
                forms[i, first + k] = -change[i, k]
            forms[rows - 1, first + k] += 1.0
        return
    if program.is_copy[layer]:
        for k in range(size):
            for i in range(rows):
                outputs[i, before + k] = change[i, k]
        _copy(program, standing, layer)
        return
    changed, used = standing.listed[0], standing.listed[1]
    count, count_used = 0, 0
    for k in range(size):
        differs, counts = False, False
        for i in range(rows):
            differs = differs or change[i, k] != outputs[i, before + k]
            counts = counts or change[i, k] != 0.0
        if differs:
            changed[count] = k
            count += 1
        if counts:
            used[count_used] = k
            count_used += 1
    drift = standing.drift[:, layer]
    is_due = (
        standing.updates[layer] < 0
        or standing.updates[layer] >= MAX_SYNCS
        or drift[0] >= MAX_ADDITIONS
        or count > count_used
    )
    if is_due:
        drift[0], drift[1] = 0.0, 0.0
        for n in range(first, end):
            for i in range(rows - 1):
                forms[i, n] = 0.0
            forms[rows - 1, n] = program.bias[n]
        for k in range(size):
            for i in range(rows):
                outputs[i, before + k] = change[i, k]
        _add(program, standing, layer, used[:count_used])
        standing.updates[layer] = 0
    elif count > 0:
        for n in range(count):
            k = changed[n]
            for i in range(rows):
                fresh = change[i, k]
                change[i, k] = fresh - outputs[i, before + k]
                outputs[i, before + k] = fresh
                drift[1] += (count + 6) * abs(change[i, k]) * program.largest[before + k]
        drift[0] += min(count, program.terms[layer])
        for i in range(2):
            standing.most_drift[i, layer] = max(standing.most_drift[i, layer], drift[i])
        _add(program, standing, layer, changed[:count])
        standing.updates[layer] += 1
    if program.has_copies[layer]:
        _copy(program, standing, layer)


@compiled
def settle(program, standing, point, direction, packed):
    """Move to the pattern just beyond a point (d,) and pack it: at point + ε direction + ε² ±e_1 + ε³ ±e_2 + …

    The axes e_i, with the signs of the direction, break ties, as if the direction were tilted by less and less. Layer
    by layer, a neuron that vanishes at the point is decided by how its form changes; so are the entries of a window
    that share the largest value.
    """
    forms, offsets, noise = standing.forms, program.offsets, program.noise
    d, last = point.shape[0], offsets.shape[0] - 2
    for layer in range(last + 1):
        if layer > 0:
            _refresh(program, standing, layer)
        if not program.is_plain[layer]:
            decide_mixed(program, standing, layer, point, direction)
            continue
        for k in range(offsets[layer], offsets[layer + 1]):
            value, size = forms[d, k], 0.0
            for i in range(d):
                value += forms[i, k] * point[i]
                size += abs(forms[i, k])
            size_with_constant = size + abs(forms[d, k])
            standing.peak[k] = max(standing.peak[k], size_with_constant if size_with_constant < np.inf else np.inf)
            if layer < last:
                limit = max(DISTANCE * size, noise[k])
                on = is_on(forms, noise[k], limit, size, value, direction, k)
                standing.active[k] = on if standing.off[k] == 0 else np.uint8(0)
    _pack(program, standing.active, packed)


@compiled
def _pack(program, active, packed):
    """Write the pattern as bits; every layer starts a new byte."""
    for layer in range(program.offsets.shape[0] - 2):
        first, end, byte = program.offsets[layer], program.offsets[layer + 1], program.byte_start[layer]
        for n in range(0, end - first, 8):
            bits = 0
            for j in range(8):
                bits <<= 1
                if n + j < end - first and active[first + n + j] == 1:
                    bits |= 1
            packed[byte + (n >> 3)] = np.uint8(bits)


@compiled
def _keep(x, y, source, value, limit, count, maker, out_x, out_y, out_source):
    """The part of a polygon where value ≥ 0; vertices within the limit of 0 stay unchanged."""
    found = 0
    for i in range(count):
        j = i + 1 if i + 1 < count else 0
        here, there = value[i], value[j]
        if here >= -limit:
            out_x[found], out_y[found], out_source[found] = x[i], y[i], source[i]
            if there < -limit and here <= limit:
                out_source[found] = maker
            found += 1
        if (here > limit and there < -limit) or (here < -limit and there > limit):
            share = here / (here - there)
            out_x[found], out_y[found] = x[i] + share * (x[j] - x[i]), y[i] + share * (y[j] - y[i])
            out_source[found] = maker if here > 0.0 else source[i]
            found += 1
    return found


@compiled
def _ball(x, y, count):
    """A ball around a polygon: the mean of its vertices, and the largest distance from there to a vertex."""
    cx, cy = 0.0, 0.0
    for i in range(count):
        cx, cy = cx + x[i] / count, cy + y[i] / count
    square = 0.0
    for i in range(count):
        square = max(square, (x[i] - cx) ** 2 + (y[i] - cy) ** 2)
    return cx, cy, np.sqrt(square)


@compiled
def intersect_halfplanes(program, standing, low, high, sides, x, y, source, value):
    """Write the polygon where all neurons keep their activity (windows their winners), inside a knot cell.

    The cell is the part of the box from low to high where the forms `sides` (M, 3) are not negative; form m has source
    −5 − m. x, y and source are (2, room): the polygon ends up in row 0; `source[0, i]` is the source of the edge that
    starts at vertex i. Returns the number of vertices: 0 if no polygon with an inside remains, −1 if there is no room.
    Skips a half-plane that would cut less than its limit off the polygon, and adds the area to the slivers.
    """
    forms, active, noise, offsets = standing.forms, standing.active, program.noise, program.offsets
    for i in range(4):
        x[0, i] = high[0] if i in (1, 2) else low[0]
        y[0, i] = high[1] if i in (2, 3) else low[1]
    # Bottom, right, top, left: −1 − (2·axis + side).
    source[0, 0], source[0, 1], source[0, 2], source[0, 3] = -3, -2, -4, -1
    count = 4
    for m in range(sides.shape[0]):
        for i in range(count):
            value[i] = sides[m, 0] * x[0, i] + sides[m, 1] * y[0, i] + sides[m, 2]
        limit = DISTANCE * (abs(sides[m, 0]) + abs(sides[m, 1]))
        count = _keep(x[0], y[0], source[0], value, limit, count, -5 - m, x[1], y[1], source[1])
        for i in range(count):
            x[0, i], y[0, i], source[0, i] = x[1, i], y[1, i], source[1, i]
    cx, cy, radius = _ball(x[0], y[0], count)
    for layer in range(offsets.shape[0] - 2):
        is_plain = program.is_plain[layer]
        for k in range(offsets[layer], offsets[layer + 1]):
            if is_plain:
                sign = 1.0 if active[k] == 1 else -1.0
                a, b, c = sign * forms[0, k], sign * forms[1, k], sign * forms[2, k]
            else:
                a, b, c = bound(standing, 0, k), bound(standing, 1, k), bound(standing, 2, k)
            centre = a * cx + b * cy + c
            # Without squares, which may underflow.
            if centre >= 0.0 and centre >= (abs(a) + abs(b)) * radius:
                continue
            rounding = noise[k] if is_plain else bound_noise(noise, standing, k)
            limit = max(DISTANCE * (abs(a) + abs(b)), rounding)
            lowest, highest = np.inf, -np.inf
            for i in range(count):
                value[i] = a * x[0, i] + b * y[0, i] + c
                lowest, highest = min(lowest, value[i]), max(highest, value[i])
            if lowest >= 0.0:
                continue
            if lowest >= -limit:
                standing.missed[k] = max(standing.missed[k], -lowest)
                if highest > rounding and (a != 0.0 or b != 0.0):
                    standing.sums[SLIVERS] += -lowest / np.hypot(a, b) * 4.0 * radius
                continue
            if highest <= limit:
                return 0
            if count + 2 > x.shape[1]:
                return -1
            for i in range(count):
                if -limit <= value[i] < 0.0:
                    standing.missed[k] = max(standing.missed[k], -value[i])
            kept = _keep(x[0], y[0], source[0], value, limit, count, k, x[1], y[1], source[1])
            for i in range(kept):
                x[0, i], y[0, i], source[0, i] = x[1, i], y[1, i], source[1, i]
            count = kept
            cx, cy, radius = _ball(x[0], y[0], count)
    return count


@compiled
def outline(x, y, source, count, shortest, rows, makers, corners):
    """Write a polygon's corners, and the half-plane and centre of every edge longer than `shortest`; return how many.

    rows (room, 5): inward normal, offset, centre. makers (room,): the source of each. corners (room, 2).
    """
    found = 0
    for i in range(count):
        j = i + 1 if i + 1 < count else 0
        corners[i, 0], corners[i, 1] = x[i], y[i]
        dx, dy = x[j] - x[i], y[j] - y[i]
        length = np.sqrt(dx * dx + dy * dy)
        if length <= shortest:
            continue
        cx, cy = 0.5 * (x[i] + x[j]), 0.5 * (y[i] + y[j])
        rows[found, 0], rows[found, 1] = -dy / length, dx / length
        rows[found, 2] = -(rows[found, 0] * cx + rows[found, 1] * cy)
        rows[found, 3], rows[found, 4] = cx, cy
        makers[found] = source[i]
        found += 1
    return found
