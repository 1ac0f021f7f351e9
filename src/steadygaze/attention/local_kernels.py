"""Compiled loops: attention maps of networks with convolutions below dense layers, updated by flips.

Only the maps are kept up to date, and the gradients of some dense neurons with respect to the pixels. The dense layers
are the tail; its lowest layer (or, without one, the logits) are the heads. Outputs, and tail neurons whose row is kept,
are targets. `tail` holds the gradient of every target with respect to the outputs of the tail neurons below it. It is
recomputed whenever the pattern above changes, which is cheap, because the tail is narrow.

A neuron below the heads changes every target by its own gradient, found by going down to the pixels, times the gradient
of the target with respect to it, found by going up to the heads. A tail neuron changes the targets above it by its row.
Its first flip computes that row, which is then kept up to date like the maps, because a neuron that flips once tends to
flip again soon.
"""

import numpy as np

from ..compiling import compiled, compiled_fused, compiled_reordered
from ..tolerances import MAX_ROWS_EACH
from .row_kernels import add_all, add_multiple, step_down


@compiled_reordered
def _dot(one, other):
    total = 0.0
    for i in range(one.shape[0]):
        total += one[i] * other[i]
    return total


@compiled
def _pick_active(rows, maps, layer):
    """List the active neurons of a layer in `support[0]`; returns their number."""
    first, picks = rows.offsets[layer], maps.support[0]
    found = 0
    for k in range(rows.offsets[layer + 1] - first):
        if maps.active[first + k]:
            picks[found] = k
            found += 1
    return found


@compiled
def _light(rows, maps, target, layer):
    """Compute the gradient of a target with respect to the tail below a layer, given that by the layer's outputs."""
    start, tail = rows.offsets[rows.heads], maps.tail[target]
    for above in range(layer, rows.heads, -1):
        below, first, end = rows.offsets[above - 1], rows.offsets[above], rows.offsets[above + 1]
        count = _pick_active(rows, maps, above)
        factors = tail[first - start : end - start]
        add_all(rows, above, maps.support[0, :count], factors, tail[below - start : first - start])


@compiled
def _forget(rows, maps):
    """Discard the rows of the tail, and compute the gradients of the outputs with respect to it."""
    maps.state[0], maps.state[2] = 0, 0
    for k in range(maps.place_of.shape[0]):
        maps.place_of[k], maps.computed[k] = -1, 0
    last = rows.offsets.shape[0] - 2
    if rows.heads <= last:
        top = maps.tail[:, rows.offsets[last] - rows.offsets[rows.heads] :]
        for j in range(maps.gradient.shape[0]):
            for k in range(top.shape[1]):
                top[j, k] = rows.logits[j, k]
            _light(rows, maps, j, last)


@compiled
def scratch_locally(rows, maps):
    """Compute the maps under the current pattern, for all classes together; discards the rows of the tail."""
    _forget(rows, maps)
    wide, classes = maps.wide, maps.gradient.shape[0]
    has_tail = rows.heads <= rows.offsets.shape[0] - 2
    first, end = rows.offsets[rows.heads - 1], rows.offsets[rows.heads]
    count = _pick_active(rows, maps, rows.heads) if has_tail else 0
    for j in range(classes):
        seed = rows.logits[j]
        if has_tail:
            seed = maps.vector[first:end]
            add_all(rows, rows.heads, maps.support[0, :count], maps.tail[j], seed)
        for k in range(first, end):
            wide[k, j] = seed[k - first]
    for layer in range(rows.heads - 1, 0, -1):
        below, first, end = rows.offsets[layer - 1], rows.offsets[layer], rows.offsets[layer + 1]
        for i in range(below, first):
            for j in range(classes):
                wide[i, j] = 0.0
        pointers = rows.pointers[rows.row_start[layer] :]
        for k in range(first, end):
            if maps.active[k]:
                for entry in range(pointers[k - first], pointers[k - first + 1]):
                    add_multiple(wide[below + rows.columns[entry]], rows.values[entry], wide[k])
    for i in range(rows.offsets[1]):
        for j in range(classes):
            maps.gradient[j, i] = wide[i, j]


@compiled
def _go_down(rows, maps, layer, count, weights):
    """Write the gradient of Σ weights[k] · input k of a layer with respect to the pixels to `vector`.

    The sum has the first `count` picks of `support[0]`. Returns the number of entries listed in `support[1]`, −1 for
    all.
    """
    found = 0
    for below in range(layer - 1, -1, -1):
        found, count = step_down(rows, maps, below + 1, count, weights)
        weights = maps.vector[rows.offsets[below] : rows.offsets[below + 1]]
    return found


@compiled
def _go_up(rows, maps, layer, k):
    """Write the gradient of the heads' inputs with respect to the output of neuron k of a layer below to `unit[0]`.

    `unit[1]` gets the same with zeros for inactive heads.
    """
    picks, support = maps.support[0], maps.support[1]
    weights = maps.vector[rows.offsets[layer] : rows.offsets[layer + 1]]
    weights[k] = 1.0
    picks[0] = k
    count = 1
    for above in range(layer + 1, rows.heads):
        start, end = rows.offsets[above], rows.offsets[above + 1]
        pointers = rows.up_pointers[rows.up_start[above] :]
        vector, mark = maps.vector[start:end], maps.mark[start:end]
        maps.state[1] += 1
        stamp = maps.state[1]
        found = 0
        for n in range(count):
            i = picks[n]
            for entry in range(pointers[i], pointers[i + 1]):
                row = rows.up_rows[entry]
                if maps.active[start + row]:
                    if mark[row] != stamp:
                        mark[row] = stamp
                        vector[row] = 0.0
                        support[found] = row
                        found += 1
                    vector[row] += weights[i] * rows.up_values[entry]
        weights, count = vector, found
        for n in range(found):
            picks[n] = support[n]
    unit, lit = maps.unit[0], maps.unit[1]
    width, first = unit.shape[0], rows.offsets[rows.heads]
    for i in range(width):
        unit[i] = 0.0
    for n in range(count):
        i = picks[n]
        add_multiple(unit, weights[i], rows.top[i * width : (i + 1) * width])
    if maps.tail.shape[1] > 0:
        for i in range(width):
            lit[i] = unit[i] if maps.active[first + i] else 0.0


@compiled
def flip_locally(rows, maps, layer, k):
    """Flip neuron k of a layer below the heads and update the maps and the rows of the tail."""
    place = rows.offsets[layer] + k
    sign = -1.0 if maps.active[place] else 1.0
    maps.active[place] ^= np.uint8(1)
    maps.state[0] += maps.state[0] >= 0
    classes, used = maps.gradient.shape[0], maps.state[2]
    factor, width = maps.factor, maps.unit.shape[1]
    _go_up(rows, maps, layer, k)
    has_tail = maps.tail.shape[1] > 0
    for j in range(classes):
        factor[j] = sign * (_dot(maps.tail[j, :width], maps.unit[1]) if has_tail else maps.unit[0, j])
    for n in range(used):
        target = maps.row_of[n]
        if target < width:
            factor[classes + n] = sign * maps.unit[0, target]
        else:
            factor[classes + n] = sign * _dot(maps.tail[classes + n, :width], maps.unit[1])
    maps.vector[place] = 1.0
    maps.support[0, 0] = k
    found = _go_down(rows, maps, layer, 1, maps.vector[rows.offsets[layer] : rows.offsets[layer + 1]])
    vector, support = maps.vector[: rows.offsets[1]], maps.support[1]
    if found < 0:
        starts = support[: _list_blocks(vector, support)]
        _add_blocks(maps.gradient, factor[:classes], vector, starts)
        _add_blocks(maps.tail_rows, factor[classes : classes + used], vector, starts)
    else:
        _add_listed(maps.gradient, factor[:classes], vector, support[:found])
        _add_listed(maps.tail_rows, factor[classes : classes + used], vector, support[:found])


@compiled
def _add_listed(targets, factors, vector, support):
    """targets[j] += factors[j] · vector, on the listed entries."""
    for j in range(factors.shape[0]):
        factor = factors[j]
        for i in support:
            targets[j, i] += factor * vector[i]


@compiled
def _list_blocks(vector, starts):
    """List where the blocks of eight entries that are not all zero start in a vector; returns their number."""
    found = 0
    for start in range(0, vector.shape[0] - 7, 8):
        is_zero = True
        for i in range(start, start + 8):
            is_zero &= vector[i] == 0.0
        starts[found] = start
        found += not is_zero
    return found


@compiled_fused
def _add_blocks(targets, factors, vector, starts):
    """targets[j] += factors[j] · vector, on the blocks that start at `starts` and after the last whole block."""
    for start in starts:
        v0, v1, v2, v3 = vector[start], vector[start + 1], vector[start + 2], vector[start + 3]
        v4, v5, v6, v7 = vector[start + 4], vector[start + 5], vector[start + 6], vector[start + 7]
        for j in range(factors.shape[0]):
            factor, row = factors[j], targets[j, start : start + 8]
            row[0] += factor * v0
            row[1] += factor * v1
            row[2] += factor * v2
            row[3] += factor * v3
            row[4] += factor * v4
            row[5] += factor * v5
            row[6] += factor * v6
            row[7] += factor * v7
    for i in range(vector.shape[0] // 8 * 8, vector.shape[0]):
        for j in range(factors.shape[0]):
            targets[j, i] += factors[j] * vector[i]


@compiled
def _compute_row(rows, maps, layer, k, slot):
    """Compute the gradient of the input of neuron k of a tail layer, and its gradients with respect to the tail."""
    tail, start = maps.tail[maps.gradient.shape[0] + slot], rows.offsets[rows.heads]
    if layer == rows.heads:
        weights = maps.vector[start : rows.offsets[layer + 1]]
        weights[k] = 1.0
        maps.support[0, 0] = k
        found = _go_down(rows, maps, layer, 1, weights)
    else:
        below, first = rows.offsets[layer - 1], rows.offsets[layer]
        width, entry = first - below, rows.dense_start[layer] + k * (first - below)
        for i in range(width):
            tail[below - start + i] = rows.dense[entry + i]
        _light(rows, maps, maps.gradient.shape[0] + slot, layer - 1)
        found = _go_down(rows, maps, rows.heads, _pick_active(rows, maps, rows.heads), tail)
    row, vector, support = maps.tail_rows[slot], maps.vector, maps.support[1]
    for i in range(rows.offsets[1]):
        row[i] = vector[i] if found < 0 else 0.0
    for n in range(found):
        row[support[n]] = vector[support[n]]


@compiled
def _place(rows, maps, layer, k):
    """The place of the row of neuron k of a tail layer; a missing row is computed.

    −1 once it was computed MAX_ROWS_EACH times.
    """
    number = rows.offsets[layer] - rows.offsets[rows.heads] + k
    place = maps.place_of[number]
    maps.state[3] += 1
    if place < 0:
        maps.computed[number] += 1
        if maps.computed[number] > MAX_ROWS_EACH:
            return place
        place = maps.state[2]
        if place < maps.tail_rows.shape[0]:
            maps.state[2] += 1
        else:
            place = 0
            for n in range(1, maps.tail_rows.shape[0]):
                if maps.last_use[n] < maps.last_use[place]:
                    place = n
            maps.place_of[maps.row_of[place]] = -1
        maps.place_of[number], maps.row_of[place] = place, number
        _compute_row(rows, maps, layer, k, place)
    maps.last_use[place] = maps.state[3]
    return place


@compiled
def flip_tail(rows, maps, layer, k):
    """Flip neuron k of a tail layer and update the targets above.

    Without a row (see `_place`), only the pattern changes.
    """
    start, classes = rows.offsets[rows.heads], maps.gradient.shape[0]
    place = _place(rows, maps, layer, k)
    number = rows.offsets[layer] - start + k
    sign = -1.0 if maps.active[start + number] else 1.0
    maps.active[start + number] ^= np.uint8(1)
    if place < 0:
        # `move_to` then computes the maps from scratch.
        maps.state[0] = -1
        return
    end = rows.offsets[layer + 1] - start
    for j in range(classes + maps.state[2]):
        if j < classes or maps.row_of[j - classes] >= end:
            row = maps.gradient[j] if j < classes else maps.tail_rows[j - classes]
            add_multiple(row, sign * maps.tail[j, number], maps.tail_rows[place])
            _light(rows, maps, j, layer)
    maps.state[0] += maps.state[0] >= 0
