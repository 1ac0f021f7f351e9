"""Compiled loops: gradients of the logits with respect to every layer, from scratch, and after a flip.

Flipping neuron k adds to the map of class j the product of two vectors: the gradient of logit j with respect to k's
output, and the gradient of k's input with respect to the pixels. The latter is local for a convolution. Which patterns
are met, and what is measured on their maps, is not decided here.
"""

from typing import NamedTuple

import numpy as np

from ..compiling import compiled, compiled_fused
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
    heads: int  # the layer on top of the sparse ones, L+1 for the logits; 0 where flips are not taken locally
    top: np.ndarray  # the matrix into the heads, transposed, row-major (n_in, n_out)
    up_start: np.ndarray  # (L+1,) where the columns of the matrix into layer l start in `up_pointers`
    up_pointers: np.ndarray
    up_rows: np.ndarray
    up_values: np.ndarray


class Maps(NamedTuple):
    """Gradients under the pattern at hand."""

    gradient: np.ndarray  # (K, N) with respect to every layer's output, the pixels first; else of the pixels alone
    wide: np.ndarray  # (N, K) scratch: the same from scratch, where flips are local
    active: np.ndarray  # (N,)
    packed: np.ndarray  # the same, packed, and zeros up to a multiple of eight bytes
    words: np.ndarray  # the same memory, eight bytes each
    changes: np.ndarray  # scratch: bytes of the pattern that change
    vector: np.ndarray  # (N,) scratch: gradient of one neuron
    support: np.ndarray  # (2, widest) scratch: where it is not zero
    mark: np.ndarray  # (N,) scratch
    flips: np.ndarray  # (N,) how often each neuron was flipped since scratch
    state: np.ndarray  # (4,) flips since scratch (−1: never, or one neuron too often), stamp, rows in use, uses so far
    lit: np.ndarray  # (K, heads) gradient with respect to the heads' inputs: 0 where they are inactive
    head_rows: np.ndarray  # (ROOM, pixels) gradient of the input of some heads
    head_of: np.ndarray  # (ROOM,) which heads
    last_use: np.ndarray  # (ROOM,) and when they flipped last
    place_of: np.ndarray  # (heads,) the row of each head, −1 if it has none
    computed: np.ndarray  # (heads,) how often a row of each head was computed since scratch
    unit: np.ndarray  # (heads,) scratch: gradient of the heads' inputs with respect to one neuron
    factor: np.ndarray  # (K + ROOM,) scratch


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
def pull(rows, maps, layer, picks, weights):
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
def flip(rows, maps, layer, k):
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
        found = pull(rows, maps, below + 1, picks[:count], weights)
        weights = maps.vector[start:end]
        for j in range(gradient.shape[0]):
            factor = sign * gradient[j, first + k]
            if found < 0:
                add_multiple(gradient[j, start:end], factor, weights)
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
