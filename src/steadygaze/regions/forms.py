"""Compiled bookkeeping of the affine forms of all layers: what is walked, where the walk stands, and `sync`.

`sync` brings the forms of a layer up to date by adding the columns of the inputs that changed since the last time, so a
single flip costs a single column. Polygons are not looked at here.
"""

from typing import NamedTuple

import numpy as np

from ..compiling import compiled, compiled_fused, compiled_inline
from ..tolerances import MAX_SYNCS

ENTERED, FED_FROM, UPDATES = 0, 1, 2


class Walk(NamedTuple):
    """Where the walk stands: forms and pattern of the polygon at hand, and the stack of polygons to come."""

    forms: np.ndarray  # (3, N) of each neuron before its ReLU
    fed: np.ndarray  # (3, N) the output forms that the next layer's `forms` reflect
    fed_active: np.ndarray  # (N,) the pattern that the next layer's `forms` reflect
    versions: np.ndarray  # (3, L+1) of each layer: polygons that entered it, the one that it was fed from, updates
    active: np.ndarray  # (N,) uint8
    packed: np.ndarray  # the same, packed
    unstable: np.ndarray  # (N,) the neurons of each layer that may change sign on the polygon that entered it
    unstable_count: np.ndarray  # (L+1,)
    scratch: np.ndarray  # (3, widest layer)
    peak: np.ndarray  # (N,) the largest |a| + |b| + |c| of each neuron's form on any polygon that entered its layer
    missed: np.ndarray  # (N,) the largest |value| on a part that the tolerance left unsplit
    columns: np.ndarray  # (2, widest layer) scratch lists
    doubts: np.ndarray  # (2, L+1) neurons of each layer whose values are rounding: among the stable, the unstable ones
    stack: np.ndarray  # (depth, 6) layer, first vertex, vertices, first candidate, candidates, origin
    x: np.ndarray
    y: np.ndarray
    edge: np.ndarray  # int64 signed cut of the edge from a vertex to the next
    candidates: np.ndarray  # int32
    here: np.ndarray  # (3, MAX_VERTICES) scratch: the polygon at hand, and a form on its vertices
    here_edge: np.ndarray
    counters: (
        np.ndarray
    )  # int64: stack height, cuts made, regions in the output, vertices in the output, number before the first cut
    sums: np.ndarray  # float64: area delivered, sliver area


@compiled_fused
def _add_dense(weights, columns, change, a, b, c):
    """Add the listed columns (rows of `weights`) times their changes to the forms a, b, c."""
    count = a.shape[0]
    n = 0
    while n + 4 <= columns.shape[0]:
        k0, k1, k2, k3 = columns[n], columns[n + 1], columns[n + 2], columns[n + 3]
        w0, w1 = weights[k0 * count : (k0 + 1) * count], weights[k1 * count : (k1 + 1) * count]
        w2, w3 = weights[k2 * count : (k2 + 1) * count], weights[k3 * count : (k3 + 1) * count]
        a0, a1, a2, a3 = change[0, k0], change[0, k1], change[0, k2], change[0, k3]
        b0, b1, b2, b3 = change[1, k0], change[1, k1], change[1, k2], change[1, k3]
        c0, c1, c2, c3 = change[2, k0], change[2, k1], change[2, k2], change[2, k3]
        for i in range(count):
            a[i] += w0[i] * a0 + w1[i] * a1 + w2[i] * a2 + w3[i] * a3
            b[i] += w0[i] * b0 + w1[i] * b1 + w2[i] * b2 + w3[i] * b3
            c[i] += w0[i] * c0 + w1[i] * c1 + w2[i] * c2 + w3[i] * c3
        n += 4
    while n < columns.shape[0]:
        k0 = columns[n]
        w0 = weights[k0 * count : (k0 + 1) * count]
        a0, b0, c0 = change[0, k0], change[1, k0], change[2, k0]
        for i in range(count):
            a[i] += w0[i] * a0
            b[i] += w0[i] * b0
            c[i] += w0[i] * c0
        n += 1


@compiled
def _add_sparse(pointers, rows, values, columns, change, a, b, c):
    """As `_add_dense`, for a matrix whose columns are `pointers`, `rows` and `values`."""
    for k in columns:
        da, db, dc = change[0, k], change[1, k], change[2, k]
        for i in range(pointers[k], pointers[k + 1]):
            row, weight = rows[i], values[i]
            a[row] += weight * da
            b[row] += weight * db
            c[row] += weight * dc


@compiled
def _feed(forms, active, first, size, is_clip, fresh):
    """Write the output forms of a hidden layer into `fresh`; the layer that ends the clip gives the clipped pixels."""
    if is_clip:
        for k in range(size):
            kept = 1.0 if active[first + k] and active[first - size + k] else 0.0
            fresh[0, k] = kept * forms[0, first - size + k]
            fresh[1, k] = kept * forms[1, first - size + k]
            fresh[2, k] = kept * forms[2, first - size + k] if active[first + k] else 1.0
    else:
        for k in range(size):
            kept = 1.0 if active[first + k] else 0.0
            fresh[0, k] = kept * forms[0, first + k]
            fresh[1, k] = kept * forms[1, first + k]
            fresh[2, k] = kept * forms[2, first + k]


@compiled
def _differences(fresh, fed, pointers, is_dense, changed, used):
    """List the inputs that changed and those that are not zero; returns both counts and the cost of the first less
    that of the second."""
    count, count_used, balance = 0, 0, 0
    for k in range(fed.shape[1]):
        differs = fresh[0, k] != fed[0, k] or fresh[1, k] != fed[1, k] or fresh[2, k] != fed[2, k]
        counts = fresh[0, k] != 0.0 or fresh[1, k] != 0.0 or fresh[2, k] != 0.0
        if differs or counts:
            cost = 1 if is_dense else pointers[k + 1] - pointers[k]
            if differs:
                changed[count] = k
                count += 1
                balance += cost
            if counts:
                used[count_used] = k
                count_used += 1
                balance -= cost
    return count, count_used, balance


@compiled
def _flips(forms, active, fed_active, unstable, first, fresh, changed):
    """List the inputs whose activity changed, with the change of their output form, where the forms are the same."""
    count = 0
    for n in range(unstable.shape[0]):
        k = unstable[n]
        if active[k] != fed_active[k]:
            sign = 1.0 if active[k] else -1.0
            i = k - first
            fresh[0, i], fresh[1, i], fresh[2, i] = sign * forms[0, k], sign * forms[1, k], sign * forms[2, k]
            changed[count] = i
            count += 1
    return count


@compiled_inline
def sync(program, walk, layer):
    """Bring the forms of a layer up to date with the outputs of the layer before it."""
    source, first, end = program.offsets[layer - 1], program.offsets[layer], program.offsets[layer + 1]
    size = first - source
    forms, versions, fresh = walk.forms, walk.versions, walk.scratch
    a, b, c = forms[0, first:end], forms[1, first:end], forms[2, first:end]
    if program.clipped == 1 and layer == 1:
        _feed(forms, walk.active, source, size, False, fresh)
        for k in range(size):
            a[k], b[k], c[k] = -fresh[0, k], -fresh[1, k], 1.0 - fresh[2, k]
        return
    after_clip = program.clipped == 1 and layer == 2
    is_dense = program.dense_start[layer] >= 0
    pointers = program.columns[program.column_start[layer] :]
    changed, used = walk.columns[0], walk.columns[1]
    fed_active, active = walk.fed_active[source:first], walk.active[source:first]
    scratch_is_due = versions[FED_FROM, layer] < 0 or versions[UPDATES, layer] >= MAX_SYNCS
    same_polygon = versions[FED_FROM, layer] == versions[ENTERED, layer - 1] and not after_clip
    if same_polygon and not scratch_is_due:
        # The polygon at hand is a part of the one that entered: only neurons that were unstable there can have flipped.
        unstable = walk.unstable[source : source + walk.unstable_count[layer - 1]]
        count = _flips(forms, walk.active, walk.fed_active, unstable, source, fresh, changed)
        columns = changed[:count]
        for k in columns:
            fed_active[k] = active[k]
            walk.fed[0, source + k] += fresh[0, k]
            walk.fed[1, source + k] += fresh[1, k]
            walk.fed[2, source + k] += fresh[2, k]
        if count == 0:
            return
    else:
        fed = walk.fed[:, source:first]
        _feed(forms, walk.active, source, size, after_clip, fresh)
        count, count_used, balance = _differences(fresh, fed, pointers, is_dense, changed, used)
        scratch_is_due = scratch_is_due or balance > 0
        columns = used[:count_used] if scratch_is_due else changed[:count]
        if scratch_is_due:
            for k in range(end - first):
                a[k], b[k], c[k] = 0.0, 0.0, program.bias[first + k]
            for k in range(size):
                fed[0, k], fed[1, k], fed[2, k] = fresh[0, k], fresh[1, k], fresh[2, k]
            versions[UPDATES, layer] = 0
        else:
            for k in columns:
                for i in range(3):
                    new = fresh[i, k]
                    fresh[i, k] = new - fed[i, k]
                    fed[i, k] = new
        for k in range(size):
            fed_active[k] = active[k]
    versions[FED_FROM, layer] = versions[ENTERED, layer - 1]
    versions[UPDATES, layer] += 1
    if is_dense:
        _add_dense(program.dense[program.dense_start[layer] :], columns, fresh, a, b, c)
    else:
        _add_sparse(pointers, program.rows, program.values, columns, fresh, a, b, c)
