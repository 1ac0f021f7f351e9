"""Compiled decisions of the traversal: which neurons are active just beyond a point, and which half-spaces they set.

Every neuron has at most one half-space: a ReLU keeps its sign; an entry that loses its window stays below the winner;
winners and carried neurons bound nothing.
"""

import numpy as np

from ...compiling import compiled, compiled_inline
from ...network.layers import CARRIED, RELU
from ...tolerances import DISTANCE

ALONE = -1
"""The rival of a ReLU, which is compared with zero."""

SHARE = 1e-9
"""A change along a direction below this share of the slope counts as rounding."""


@compiled
def value_at(forms, k, point):
    """The value of a neuron's form at a point (d,)."""
    d = point.shape[0]
    value = forms[d, k]
    for i in range(d):
        value += forms[i, k] * point[i]
    return value


@compiled_inline
def bound(standing, i, k):
    """Coefficient i of the half-space (≥ 0) of neuron k under the pattern; all are 0 if the neuron bounds nothing."""
    forms, rival = standing.forms, standing.rival[k]
    if rival >= 0:
        return forms[i, rival] - forms[i, k]
    return forms[i, k] if standing.active[k] == 1 else -forms[i, k]


@compiled_inline
def bound_noise(noise, standing, k):
    """The size up to which values of neuron k's half-space count as rounding."""
    rival = standing.rival[k]
    return noise[k] + noise[rival] if rival >= 0 else noise[k]


@compiled_inline
def bound_at(standing, k, point):
    """The value of neuron k's half-space at a point (d,)."""
    d = point.shape[0]
    value = bound(standing, d, k)
    for i in range(d):
        value += bound(standing, i, k) * point[i]
    return value


@compiled
def is_on(forms, noise, limit, size, value, direction, k):
    """Whether a ReLU is active just beyond a point; the direction decides, then the axes with the direction's signs."""
    if abs(value) > limit:
        return np.uint8(value > 0.0)
    rise, least = 0.0, max(noise, SHARE * size)
    for i in range(direction.shape[0]):
        rise += forms[i, k] * direction[i]
    if abs(rise) > least:
        return np.uint8(rise > 0.0)
    for i in range(direction.shape[0]):
        rise = -forms[i, k] if direction[i] < 0.0 else forms[i, k]
        if abs(rise) > least:
            return np.uint8(rise > 0.0)
    return np.uint8(0)


@compiled
def decide_mixed(program, standing, layer, point, direction):
    """Decide a layer that has carried neurons or windows; see `traversal_kernels.settle`."""
    forms, noise, d = standing.forms, program.noise, point.shape[0]
    first, end = program.offsets[layer], program.offsets[layer + 1]
    values, sizes = standing.change[0], standing.change[1]
    for k in range(first, end):
        value, size = value_at(forms, k, point), 0.0
        for i in range(d):
            size += abs(forms[i, k])
        whole = size + abs(forms[d, k])
        standing.peak[k] = max(standing.peak[k], whole if whole < np.inf else np.inf)
        values[k - first], sizes[k - first] = value, size
        if program.kind[k] == RELU:
            limit = max(DISTANCE * size, noise[k])
            on = is_on(forms, noise[k], limit, size, value, direction, k)
            standing.active[k] = on if standing.off[k] == 0 else np.uint8(0)
        elif program.kind[k] == CARRIED:
            standing.active[k] = np.uint8(1)
        elif k + 1 == program.window_end[k]:
            start = program.window_first[k]
            best = _winner(standing, noise, start, k + 1, values, sizes, first, direction)
            for n in range(start, k + 1):
                standing.active[n], standing.rival[n] = np.uint8(n == best), best


@compiled
def _winner(standing, noise, start, end, values, sizes, first, direction):
    """The largest entry of a window just beyond a point; among entries that differ by rounding alone, the first.

    The value decides, then the rise along the direction, then along the axes with the direction's signs.
    """
    best = -1
    for k in range(start, end):
        if standing.off[k] == 0 and (best < 0 or values[k - first] > values[best - first]):
            best = k
    left, count = standing.listed[0], 0
    for k in range(start, end):
        if standing.off[k] == 1:
            continue
        gap = values[best - first] - values[k - first]
        noises, size = noise[best] + noise[k], sizes[best - first] + sizes[k - first]
        if k == best or (gap <= DISTANCE * size + noises and gap <= _limit(standing.forms, noises, best, k)):
            left[count] = k
            count += 1
    for order in range(direction.shape[0] + 1):
        if count == 1:
            break
        count = _fastest(standing.forms, noise, left, count, direction, order)
    return left[0]


@compiled
def _distance(forms, one, other):
    """The sum of the absolute differences between the slopes of two neurons."""
    size = 0.0
    for i in range(forms.shape[0] - 1):
        size += abs(forms[i, one] - forms[i, other])
    return size


@compiled
def _limit(forms, noises, one, other):
    """The largest difference between two entries at a point that still counts as their common kink."""
    return max(DISTANCE * _distance(forms, one, other), noises)


@compiled
def _rise(forms, one, other, direction, order):
    """How much faster one neuron grows than another: along the direction (order 0), or along axis order − 1."""
    if order > 0:
        rise = forms[order - 1, one] - forms[order - 1, other]
        return -rise if direction[order - 1] < 0.0 else rise
    rise = 0.0
    for i in range(direction.shape[0]):
        rise += (forms[i, one] - forms[i, other]) * direction[i]
    return rise


@compiled
def _fastest(forms, noise, left, count, direction, order):
    """Keep, among the listed neurons, the one that grows fastest and those that differ from it by rounding alone."""
    best = left[0]
    for n in range(1, count):
        if _rise(forms, left[n], best, direction, order) > 0.0:
            best = left[n]
    kept = 0
    for n in range(count):
        k = left[n]
        least = max(noise[best] + noise[k], SHARE * _distance(forms, best, k))
        if k == best or _rise(forms, best, k, direction, order) <= least:
            left[kept] = k
            kept += 1
    return kept
