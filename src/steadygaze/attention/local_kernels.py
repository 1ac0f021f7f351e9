"""Compiled loops: a flip changes the maps where it reaches, and nothing else is kept up to date.

For convolutions below at most one dense ReLU layer, whose neurons are the heads (without such a layer the logits are).
A neuron below the heads changes the maps by the product of its own gradient, found by going down to the pixels, and of
the gradient of the logits with respect to it, found by going up to the heads. A head changes them by its own gradient
with respect to the pixels: that row is computed when the head flips first, and kept up to date like the maps, because a
head that flips once flips again soon.
"""

import numpy as np

from ..compiling import compiled, compiled_reordered
from ..tolerances import MAX_ROWS_EACH
from .gradient_kernels import add_multiple, pull

ROOM = 48
"""Heads whose rows are kept; the one that flipped longest ago gives way."""


@compiled_reordered
def _dot(one, other):
    total = 0.0
    for i in range(one.shape[0]):
        total += one[i] * other[i]
    return total


@compiled
def _light(rows, maps):
    """Forget the rows of the heads, and note which heads are active."""
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
    """Compute the maps under the current pattern, for all classes together; the rows of the heads are forgotten."""
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
    """Gradient of the input of neuron k of a layer with respect to the pixels, into `vector`; returns how many entries
    are listed in `support`, −1 for all."""
    picks, support = maps.support[0], maps.support[1]
    weights = maps.vector[rows.offsets[layer] : rows.offsets[layer + 1]]
    weights[k] = 1.0
    picks[0] = k
    count, found = 1, 0
    for below in range(layer - 1, -1, -1):
        start, end = rows.offsets[below], rows.offsets[below + 1]
        found = pull(rows, maps, below + 1, picks[:count], weights)
        weights = maps.vector[start:end]
        count = 0
        if below > 0:
            for n in range(end - start if found < 0 else found):
                i = n if found < 0 else support[n]
                if maps.active[start + i]:
                    picks[count] = i
                    count += 1
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
    """The row of a head, computed if there is none; −1 if that has happened too often."""
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
    """Flip head k and update the maps; only the pattern where its row has been computed too often."""
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
    # After a head without a row the maps are computed from scratch, whatever else flips now.
    maps.state[0] = maps.state[0] + 1 if place >= 0 and maps.state[0] >= 0 else -1
