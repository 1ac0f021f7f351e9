"""Compiled loops: gradients of the logits under one pattern after another, from scratch and by flips.

Flipping neuron k adds to the map of class j the product of two vectors: the gradient of logit j with respect to k's
output, and the gradient of k's input with respect to the pixels. `move_to` flips neurons to reach the next pattern, or
computes everything from scratch: if that is cheaper, and at regular intervals.

Networks with convolutions below dense layers keep only the maps up to date (`local_kernels`). Other networks keep the
gradients of all layers.
"""

import numpy as np

from ..compiling import compiled
from ..tolerances import MAX_FLIPS_EACH
from .local_kernels import flip_locally, flip_tail, scratch_locally
from .row_kernels import add_all, add_multiple, step_down


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
            add_all(rows, layer, picks[:found], gradient[j, first:end], gradient[j, below:first])
    for k in range(maps.flips.shape[0]):
        maps.flips[k] = 0
    maps.state[0] = 0


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
        found, count = step_down(rows, maps, below + 1, count, weights)
        weights = maps.vector[start:end]
        for j in range(gradient.shape[0]):
            factor = sign * gradient[j, first + k]
            if found < 0:
                add_multiple(gradient[j, start:end], factor, weights)
            else:
                for n in range(found):
                    gradient[j, start + support[n]] += factor * weights[support[n]]
    maps.state[0] = maps.state[0] + 1 if maps.flips[first + k] < MAX_FLIPS_EACH else -1


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
                elif layer >= rows.heads:
                    flip_tail(rows, maps, layer, k)
                else:
                    flip_locally(rows, maps, layer, k)
        maps.packed[byte] = packed[byte]
    if rows.heads > 0 and (is_due or maps.state[0] < 0):
        # Also after the flip of a tail neuron without a row, which changed only the pattern.
        scratch_locally(rows, maps)
    elif is_due:
        from_scratch(rows, maps)
