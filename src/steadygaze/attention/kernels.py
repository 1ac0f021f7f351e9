"""Compiled loops: attention maps of one pattern after another, each from the one before by its flips.

Flipping neuron k adds to the map of class j the product of two vectors: the gradient of logit j with respect to k's
output, and the gradient of k's input with respect to the pixels. The latter is local for a convolution. The maps are
computed from scratch where that is cheaper, and now and then in any case.
"""

from typing import NamedTuple

import numpy as np

from ..compiling import compiled, compiled_fused, compiled_reordered
from ..tolerances import MAX_FLIPS_EACH


class Rows(NamedTuple):
    """The classifier's maps by rows. Layer 0 is the pixels, layers 1 … L the ReLU layers."""

    offsets: np.ndarray  # (L+2,) values of layer l are offsets[l]:offsets[l+1]
    dense_start: np.ndarray  # (L+1,) where the matrix into layer l starts in `dense`, −1 if it is sparse
    dense: np.ndarray  # matrices (n_out, n_in), row-major
    row_start: np.ndarray  # (L+1,) where the rows of the matrix into layer l start in `pointers`
    pointers: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    logits: np.ndarray  # (K, n_L) gradient of the logits with respect to the last layer
    flip_cost: np.ndarray  # (L+1,) of a flip in layer l, in multiplications
    full_cost: float  # of computing everything from scratch
    max_flips: int  # updates before everything is computed from scratch; 0: always
    byte_start: np.ndarray  # (L+2,) where the packed bits of layer l ≥ 1 start


class Maps(NamedTuple):
    """Gradients under the pattern at hand."""

    gradient: np.ndarray  # (K, N) with respect to every layer's output, the pixels first
    active: np.ndarray  # (N,)
    packed: np.ndarray  # the same, packed
    vector: np.ndarray  # (N,) scratch: gradient of one neuron
    support: np.ndarray  # (2, widest) scratch: where it is not zero
    mark: np.ndarray  # (N,) scratch
    flips: np.ndarray  # (N,) how often each neuron was flipped since scratch
    state: np.ndarray  # (2,) flips since scratch (−1: never, or one neuron too often), stamp


@compiled_fused
def _add_multiple(target, factor, source):
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
        _add_multiple(target, factors[k0], weights[k0 * count : (k0 + 1) * count])
        n += 1


@compiled
def _from_scratch(rows, maps):
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
            target, factors = gradient[j, below:first], gradient[j, first:end]
            for i in range(target.shape[0]):
                target[i] = 0.0
            if rows.dense_start[layer] >= 0:
                _add_rows(rows.dense[rows.dense_start[layer] :], first - below, picks[:found], factors, target)
            else:
                pointers = rows.pointers[rows.row_start[layer] :]
                for n in range(found):
                    k = picks[n]
                    for i in range(pointers[k], pointers[k + 1]):
                        target[rows.columns[i]] += factors[k] * rows.values[i]
    for k in range(maps.flips.shape[0]):
        maps.flips[k] = 0
    maps.state[0] = 0


@compiled
def _pull(rows, maps, layer, picks, weights):
    """Gradient of Σ weights[k] · input k of a layer with respect to the layer below, into `vector`; returns how many
    entries are listed in `support`, −1 for all."""
    below, first = rows.offsets[layer - 1], rows.offsets[layer]
    vector = maps.vector[below:first]
    if rows.dense_start[layer] >= 0:
        for i in range(vector.shape[0]):
            vector[i] = 0.0
        _add_rows(rows.dense[rows.dense_start[layer] :], first - below, picks, weights, vector)
        return -1
    pointers = rows.pointers[rows.row_start[layer] :]
    if 8 * picks.shape[0] > rows.offsets[layer + 1] - first:
        # Nearly everything is reached: marking where would cost more than it saves.
        for i in range(vector.shape[0]):
            vector[i] = 0.0
        for n in range(picks.shape[0]):
            k = picks[n]
            for i in range(pointers[k], pointers[k + 1]):
                vector[rows.columns[i]] += weights[k] * rows.values[i]
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


@compiled
def _flip(rows, maps, layer, k):
    """Flip neuron k of a layer and update the gradients of everything below it."""
    first = rows.offsets[layer]
    gradient, picks, support = maps.gradient, maps.support[0], maps.support[1]
    sign = -1.0 if maps.active[first + k] else 1.0
    maps.active[first + k] ^= np.uint8(1)
    maps.flips[first + k] += 1
    weights = maps.vector[first : rows.offsets[layer + 1]]
    weights[k] = 1.0
    picks[0] = k
    count = 1
    for below in range(layer - 1, -1, -1):
        start, end = rows.offsets[below], rows.offsets[below + 1]
        found = _pull(rows, maps, below + 1, picks[:count], weights)
        weights = maps.vector[start:end]
        for j in range(gradient.shape[0]):
            factor = sign * gradient[j, first + k]
            if found < 0:
                _add_multiple(gradient[j, start:end], factor, weights)
            else:
                for n in range(found):
                    gradient[j, start + support[n]] += factor * weights[support[n]]
        count = 0
        if below > 0:
            for n in range(end - start if found < 0 else found):
                i = n if found < 0 else support[n]
                if maps.active[start + i]:
                    picks[count] = i
                    count += 1
    maps.state[0] = maps.state[0] + 1 if maps.flips[first + k] < MAX_FLIPS_EACH else -1


@compiled
def move_to(rows, maps, packed):
    """Bring the gradients to another pattern, given as packed bits."""
    last = rows.offsets.shape[0] - 2
    cost = 0.0
    for layer in range(1, last + 1):
        flips = 0
        for byte in range(rows.byte_start[layer], rows.byte_start[layer + 1]):
            difference = np.int64(maps.packed[byte] ^ packed[byte])
            while difference:
                difference &= difference - 1
                flips += 1
        cost += flips * rows.flip_cost[layer]
    from_scratch = maps.state[0] < 0 or maps.state[0] >= rows.max_flips or cost > rows.full_cost
    for layer in range(last, 0, -1):
        first, start = rows.offsets[layer], rows.byte_start[layer]
        for byte in range(start, rows.byte_start[layer + 1]):
            difference = np.int64(maps.packed[byte] ^ packed[byte])
            if difference:
                for bit in range(8):
                    if difference & (128 >> bit):
                        k = 8 * (byte - start) + bit
                        if from_scratch:
                            maps.active[first + k] ^= np.uint8(1)
                        else:
                            _flip(rows, maps, layer, k)
                maps.packed[byte] = packed[byte]
    if from_scratch:
        _from_scratch(rows, maps)


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
def distances(rows, maps, packed, first, end, steps, shape, norm, expected, slope, scratch, out):
    """Sums for the patterns packed[first:end]: out (P, K, 2) gets Σ|u| or Σu², and Σ u·slope, of u = map − expected.

    expected, slope: (K, pixels); slope is (K, 0) where the expected map does not move. scratch: (2, pixels).
    """
    pixels = rows.offsets[1]
    for p in range(first, end):
        move_to(rows, maps, packed[p])
        for n in range(expected.shape[0]):
            here = maps.gradient[n, :pixels]
            if steps.shape[0] > 0:
                filter_map(here, scratch[0], scratch[1], shape, steps)
                here = scratch[0]
            out[p, n, 0] = _absolute_sum(here, expected[n]) if norm == 1 else _square_sum(here, expected[n])
            out[p, n, 1] = _mixed_sum(here, expected[n], slope[n])


@compiled
def breakpoints(
    rows, maps, packed, first, end, ranges, steps, shape, expected, slope, scratch, start, places, jumps, counts
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
        move_to(rows, maps, packed[p])
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
