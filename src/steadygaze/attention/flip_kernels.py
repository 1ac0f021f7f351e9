"""Compiled loops: gradients of the logits under one pattern after another, from scratch and by flips.

Flipping neuron k adds to the map of class j the product of two vectors: the gradient of logit j with respect to k's
output, and the gradient of k's input with respect to the pixels. `move_to` flips neurons to reach the next pattern, or
computes everything from scratch if that is cheaper, and regularly in any case.

With convolutions below at most one dense ReLU layer, flips are local: only the maps are kept up to date. The neurons of
that layer (or else the logits) are the heads. A neuron below the heads changes the maps by its own gradient, found by
going down to the pixels, times the gradient of the logits with respect to it, found by going up to the heads. A head
changes them by its own gradient with respect to the pixels: its first flip computes that row, which is then kept up to
date like the maps, because a head that flips once flips again soon. Other networks keep the gradients of all layers.
"""

import numpy as np

from ..compiling import compiled, compiled_fused, compiled_inline, compiled_reordered
from ..tolerances import MAX_FLIPS_EACH, MAX_ROWS_EACH


@compiled_fused
def add_multiple(target, factor, source):
    """target += factor · source."""
    for i in range(target.shape[0]):
        target[i] += factor * source[i]


@compiled_fused
def _add_rows(weights, count, picks, factors, target):
    """target += Σ factors[k] · row k, for the picked rows, four at a time."""
    n = 0
    while n + 4 <= picks.shape[0]:
        k0, k1, k2, k3 = picks[n], picks[n + 1], picks[n + 2], picks[n + 3]
        w0, w1 = weights[k0 * count : (k0 + 1) * count], weights[k1 * count : (k1 + 1) * count]
        w2, w3 = weights[k2 * count : (k2 + 1) * count], weights[k3 * count : (k3 + 1) * count]
        f0, f1, f2, f3 = factors[k0], factors[k1], factors[k2], factors[k3]
        for i in range(count):
            target[i] += f0 * w0[i] + f1 * w1[i] + f2 * w2[i] + f3 * w3[i]
        n += 4
    while n < picks.shape[0]:
        k0 = picks[n]
        add_multiple(target, factors[k0], weights[k0 * count : (k0 + 1) * count])
        n += 1


@compiled_inline
def _add_all(rows, layer, picks, factors, target):
    """target = Σ factors[k] · row k of the matrix into a layer, for the picked rows."""
    for i in range(target.shape[0]):
        target[i] = 0.0
    if rows.dense_start[layer] >= 0:
        _add_rows(rows.dense[rows.dense_start[layer] :], target.shape[0], picks, factors, target)
        return
    pointers = rows.pointers[rows.row_start[layer] :]
    for n in range(picks.shape[0]):
        k = picks[n]
        for i in range(pointers[k], pointers[k + 1]):
            target[rows.columns[i]] += factors[k] * rows.values[i]


@compiled
def from_scratch(rows, maps):
    """Compute all gradients under the current pattern."""
    last = rows.offsets.shape[0] - 2
    gradient, picks = maps.gradient, maps.support[0]
    for j in range(gradient.shape[0]):
        top = gradient[j, rows.offsets[last] : rows.offsets[last + 1]]
        for k in range(top.shape[0]):
            top[k] = rows.logits[j, k]
    for layer in range(last, 0, -1):
        below, first, end = rows.offsets[layer - 1], rows.offsets[layer], rows.offsets[layer + 1]
        found = 0
        for k in range(first, end):
            if maps.active[k]:
                picks[found] = k - first
                found += 1
        for j in range(gradient.shape[0]):
            _add_all(rows, layer, picks[:found], gradient[j, first:end], gradient[j, below:first])
    for k in range(maps.flips.shape[0]):
        maps.flips[k] = 0
    maps.state[0] = 0


@compiled
def pull(rows, maps, layer, picks, weights):
    """Gradient of Σ weights[k] · input k of a layer with respect to the layer below, into `vector`; returns the number
    of entries listed in `support`, −1 for all."""
    below, first = rows.offsets[layer - 1], rows.offsets[layer]
    vector, pointers = maps.vector[below:first], rows.pointers[rows.row_start[layer] :]
    # If nearly everything is reached, marking it costs more than it saves.
    if rows.dense_start[layer] >= 0 or 8 * picks.shape[0] > rows.offsets[layer + 1] - first:
        _add_all(rows, layer, picks, weights, vector)
        return -1
    support, mark = maps.support[1], maps.mark[below:first]
    maps.state[1] += 1
    stamp = maps.state[1]
    found = 0
    for n in range(picks.shape[0]):
        k = picks[n]
        for i in range(pointers[k], pointers[k + 1]):
            column = rows.columns[i]
            if mark[column] != stamp:
                mark[column] = stamp
                vector[column] = 0.0
                support[found] = column
                found += 1
            vector[column] += weights[k] * rows.values[i]
    return found


@compiled_inline
def _step_down(rows, maps, layer, count, weights):
    """Pull the first `count` picks of a layer into the layer below, and pick the active neurons reached there.

    Returns the result of `pull`, and the number of neurons now picked.
    """
    picks, support = maps.support[0], maps.support[1]
    found = pull(rows, maps, layer, picks[:count], weights)
    start = rows.offsets[layer - 1]
    picked = 0
    if layer > 1:
        for n in range(rows.offsets[layer] - start if found < 0 else found):
            i = n if found < 0 else support[n]
            if maps.active[start + i]:
                picks[picked] = i
                picked += 1
    return found, picked


@compiled
def flip(rows, maps, layer, k):
    """Flip neuron k of a layer and update all gradients below it."""
    first = rows.offsets[layer]
    gradient, support = maps.gradient, maps.support[1]
    sign = -1.0 if maps.active[first + k] else 1.0
    maps.active[first + k] ^= np.uint8(1)
    maps.flips[first + k] += 1
    weights = maps.vector[first : rows.offsets[layer + 1]]
    weights[k] = 1.0
    maps.support[0, 0] = k
    count = 1
    for below in range(layer - 1, -1, -1):
        start, end = rows.offsets[below], rows.offsets[below + 1]
        found, count = _step_down(rows, maps, below + 1, count, weights)
        weights = maps.vector[start:end]
        for j in range(gradient.shape[0]):
            factor = sign * gradient[j, first + k]
            if found < 0:
                add_multiple(gradient[j, start:end], factor, weights)
            else:
                for n in range(found):
                    gradient[j, start + support[n]] += factor * weights[support[n]]
    maps.state[0] = maps.state[0] + 1 if maps.flips[first + k] < MAX_FLIPS_EACH else -1


@compiled_reordered
def _dot(one, other):
    total = 0.0
    for i in range(one.shape[0]):
        total += one[i] * other[i]
    return total


@compiled
def _light(rows, maps):
    """Discard the rows of the heads, and record which heads are active."""
    maps.state[0], maps.state[2] = 0, 0
    for k in range(maps.place_of.shape[0]):
        maps.place_of[k], maps.computed[k] = -1, 0
    if rows.heads == rows.offsets.shape[0] - 2:
        first = rows.offsets[rows.heads]
        for j in range(maps.lit.shape[0]):
            for k in range(maps.lit.shape[1]):
                maps.lit[j, k] = rows.logits[j, k] if maps.active[first + k] else 0.0


@compiled
def scratch_locally(rows, maps):
    """Compute the maps under the current pattern, for all classes together; discards the rows of the heads."""
    _light(rows, maps)
    wide, classes, width = maps.wide, maps.gradient.shape[0], maps.unit.shape[0]
    has_heads = rows.heads == rows.offsets.shape[0] - 2
    first, end = rows.offsets[rows.heads - 1], rows.offsets[rows.heads]
    for k in range(first, end):
        if maps.active[k]:
            weights = rows.top[(k - first) * width : (k - first + 1) * width]
            for j in range(classes):
                wide[k, j] = _dot(maps.lit[j], weights) if has_heads else weights[j]
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
def _go_down(rows, maps, layer, k):
    """Gradient of the input of neuron k of a layer with respect to the pixels, into `vector`; returns the number of
    entries listed in `support`, −1 for all."""
    weights = maps.vector[rows.offsets[layer] : rows.offsets[layer + 1]]
    weights[k] = 1.0
    maps.support[0, 0] = k
    count, found = 1, 0
    for below in range(layer - 1, -1, -1):
        found, count = _step_down(rows, maps, below + 1, count, weights)
        weights = maps.vector[rows.offsets[below] : rows.offsets[below + 1]]
    return found


@compiled
def _go_up(rows, maps, layer, k):
    """Gradient of the heads' inputs with respect to the output of neuron k of a layer below, into `unit`."""
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
    unit = maps.unit
    width = unit.shape[0]
    for i in range(width):
        unit[i] = 0.0
    for n in range(count):
        i = picks[n]
        add_multiple(unit, weights[i], rows.top[i * width : (i + 1) * width])


@compiled
def flip_locally(rows, maps, layer, k):
    """Flip neuron k of a layer below the heads and update the maps and the rows of the heads."""
    place = rows.offsets[layer] + k
    sign = -1.0 if maps.active[place] else 1.0
    maps.active[place] ^= np.uint8(1)
    maps.state[0] += maps.state[0] >= 0
    classes, used = maps.gradient.shape[0], maps.state[2]
    factor = maps.factor
    _go_up(rows, maps, layer, k)
    for j in range(classes):
        factor[j] = sign * (maps.unit[j] if rows.heads == rows.offsets.shape[0] - 1 else _dot(maps.lit[j], maps.unit))
    for n in range(used):
        factor[classes + n] = sign * maps.unit[maps.head_of[n]]
    found = _go_down(rows, maps, layer, k)
    pixels = rows.offsets[1]
    vector, support = maps.vector[:pixels], maps.support[1]
    for j in range(classes + used):
        row = maps.gradient[j, :pixels] if j < classes else maps.head_rows[j - classes]
        if found < 0:
            add_multiple(row, factor[j], vector)
        else:
            for n in range(found):
                row[support[n]] += factor[j] * vector[support[n]]


@compiled
def _place(rows, maps, k):
    """The place of a head's row, computed if missing; −1 once it was computed MAX_ROWS_EACH times."""
    place = maps.place_of[k]
    maps.state[3] += 1
    if place < 0:
        maps.computed[k] += 1
        if maps.computed[k] > MAX_ROWS_EACH:
            return place
        place = maps.state[2]
        if place < maps.head_rows.shape[0]:
            maps.state[2] += 1
        else:
            place = 0
            for n in range(1, maps.head_rows.shape[0]):
                if maps.last_use[n] < maps.last_use[place]:
                    place = n
            maps.place_of[maps.head_of[place]] = -1
        maps.place_of[k], maps.head_of[place] = place, k
        found = _go_down(rows, maps, rows.heads, k)
        row, vector, support = maps.head_rows[place], maps.vector, maps.support[1]
        for i in range(row.shape[0]):
            row[i] = vector[i] if found < 0 else 0.0
        for n in range(found):
            row[support[n]] = vector[support[n]]
    maps.last_use[place] = maps.state[3]
    return place


@compiled
def flip_head(rows, maps, k):
    """Flip head k and update the maps; without a row (see `_place`) only the pattern changes."""
    first, pixels = rows.offsets[rows.heads], rows.offsets[1]
    is_on = maps.active[first + k] == 0
    maps.active[first + k] ^= np.uint8(1)
    place = _place(rows, maps, k)
    for j in range(maps.lit.shape[0]):
        maps.lit[j, k] = rows.logits[j, k] if is_on else 0.0
        if place >= 0:
            add_multiple(
                maps.gradient[j, :pixels], rows.logits[j, k] if is_on else -rows.logits[j, k], maps.head_rows[place]
            )
    # After a head without a row, `move_to` computes the maps from scratch.
    maps.state[0] = maps.state[0] + 1 if place >= 0 and maps.state[0] >= 0 else -1


@compiled
def _list_changes(maps, packed, words):
    """List the bytes that differ between a pattern and the current one; `words` are the same bits, eight bytes each."""
    found = 0
    for word in range(words.shape[0]):
        if words[word] != maps.words[word]:
            for byte in range(8 * word, 8 * word + 8):
                if packed[byte] != maps.packed[byte]:
                    maps.changes[found] = byte
                    found += 1
    return found


@compiled
def move_to(rows, maps, packed, words):
    """Move the maps to another pattern, given as packed bits and as the same bits in words."""
    changed = _list_changes(maps, packed, words)
    cost, total = 0.0, 0
    layer = 1
    for n in range(changed):
        byte = maps.changes[n]
        while byte >= rows.byte_start[layer + 1]:
            layer += 1
        difference = np.int64(maps.packed[byte] ^ packed[byte])
        while difference:
            difference &= difference - 1
            cost += rows.flip_cost[layer]
            total += 1
    is_due = maps.state[0] < 0 or maps.state[0] + total > rows.max_flips or cost > rows.full_cost
    # From the top layer down: a flip depends on the new pattern above it, and on the old one below.
    layer = rows.offsets.shape[0] - 2
    for n in range(changed - 1, -1, -1):
        byte = maps.changes[n]
        while byte < rows.byte_start[layer]:
            layer -= 1
        difference = np.int64(maps.packed[byte] ^ packed[byte])
        for bit in range(8):
            if difference & (128 >> bit):
                k = 8 * (byte - rows.byte_start[layer]) + bit
                if is_due:
                    maps.active[rows.offsets[layer] + k] ^= np.uint8(1)
                elif rows.heads == 0:
                    flip(rows, maps, layer, k)
                elif layer == rows.heads:
                    flip_head(rows, maps, k)
                else:
                    flip_locally(rows, maps, layer, k)
        maps.packed[byte] = packed[byte]
    if rows.heads > 0 and (is_due or maps.state[0] < 0):
        # Also after a head without a row: its flip changed only the pattern.
        scratch_locally(rows, maps)
    elif is_due:
        from_scratch(rows, maps)
