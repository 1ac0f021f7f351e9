"""Compiled loops: the attention maps of one pattern after another, and their distances from the expected ones.

The maps of a pattern come from those of the one before by its flips: where the layers allow it locally
(`local_kernels`), else through the gradients of all layers (`gradient_kernels`). They are computed from scratch where
that is cheaper, and now and then in any case.
"""

import numpy as np

from ..compiling import compiled, compiled_reordered
from .gradient_kernels import flip, from_scratch
from .local_kernels import flip_head, flip_locally, scratch_locally


@compiled
def _list_changes(maps, packed, words):
    """List the bytes in which a pattern differs from the one at hand; `words` are the same bits, eight bytes each."""
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
    """Bring the maps to another pattern, given as packed bits, and as the same bits in words."""
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
    # From the top layer down: what a flip adds depends on the new pattern above it, and on the old one below.
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
        # Also after a head whose row was computed too often: then the maps are not those of the pattern.
        scratch_locally(rows, maps)
    elif is_due:
        from_scratch(rows, maps)


@compiled
def filter_map(source, target, other, shape, steps):
    """Apply filter steps (1: absolute value, 2: 3×3 mean) to a flattened map (C·H·W); `other` is scratch."""
    for i in range(target.shape[0]):
        target[i] = source[i]
    for step in steps:
        if step == 1:
            for i in range(target.shape[0]):
                target[i] = abs(target[i])
        else:
            channels, height, width = shape
            for c in range(channels):
                for y in range(height):
                    for x in range(width):
                        total = 0.0
                        for yy in range(max(y - 1, 0), min(y + 2, height)):
                            for xx in range(max(x - 1, 0), min(x + 2, width)):
                                total += target[(c * height + yy) * width + xx]
                        other[(c * height + y) * width + x] = total / 9.0
            for i in range(target.shape[0]):
                target[i] = other[i]


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
def distances(rows, maps, packed, words, first, end, steps, shape, norm, expected, slope, scratch, out):
    """Sums for the patterns packed[first:end]: out (P, K, 2) gets Σ|u| or Σu², and Σ u·slope, of u = map − expected.

    expected, slope: (K, pixels); slope is (K, 0) where the expected map does not move. scratch: (2, pixels).
    """
    pixels = rows.offsets[1]
    for p in range(first, end):
        move_to(rows, maps, packed[p], words[p])
        for n in range(expected.shape[0]):
            here = maps.gradient[n, :pixels]
            if steps.shape[0] > 0:
                filter_map(here, scratch[0], scratch[1], shape, steps)
                here = scratch[0]
            out[p, n, 0] = _absolute_sum(here, expected[n]) if norm == 1 else _square_sum(here, expected[n])
            out[p, n, 1] = _mixed_sum(here, expected[n], slope[n])


@compiled
def breakpoints(
    rows, maps, packed, words, first, end, ranges, steps, shape, expected, slope, scratch, start, places, jumps, counts
):
    """For L1 and moving maps: ai(τ) = Σ|u − τ·slope| on ranges[p] = [τ_low, τ_high], for packed[first:end].

    start (P, 2) gets value and right slope at τ_low; places and jumps the breakpoints inside and by how much the
    slope grows there, counts[p] how many. Returns the next pattern, where the buffers are full.
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
                filter_map(here, scratch[0], scratch[1], shape, steps)
                here = scratch[0]
            for i in range(pixels):
                u, v = here[i] - expected[n, i], slope[n, i]
                at_low = u - low * v
                value += abs(at_low)
                if at_low == 0.0:
                    rise += abs(v)
                else:
                    rise += -v if at_low > 0.0 else v
                    # The sign says that the break is ahead; the quotient may round to the start itself.
                    place = max(low, u / v) if at_low * v > 0.0 else high
                    if place < high:
                        places[used + found], jumps[used + found] = place, 2.0 * abs(v)
                        found += 1
        start[p, 0], start[p, 1], counts[p] = value, rise, found
        used += found
    return end
