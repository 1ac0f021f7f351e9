"""Compiled updates of affine forms with four rows, for three dimensions: the state of a walk, and `sync`.

`forms` does the same in two dimensions, unrolled for three rows.
"""

from typing import NamedTuple

import numpy as np

from ..accuracy import ADDITIONS
from ..compiling import compiled, compiled_apart, compiled_inline
from ..tolerances import MAX_ADDITIONS, MAX_SYNCS
from .forms import ENTERED, FED_FROM, UPDATES, copy_forms, note_drift

ROWS = 4


class SolidState(NamedTuple):
    """The state of a walk: forms and pattern of the current polyhedron, and the stack of polyhedra to come."""

    forms: np.ndarray  # (4, N) of each neuron before its ReLU
    fed: np.ndarray  # (4, N) the output forms that the next layer's `forms` reflect
    fed_active: np.ndarray  # (N,) the pattern that the next layer's `forms` reflect
    versions: np.ndarray  # (3, L+1) of each layer: polyhedra that entered it, the one that it was fed from, updates
    active: np.ndarray  # (N,) uint8
    packed: np.ndarray  # the same, packed
    unstable: np.ndarray  # (N,) as for polygons
    unstable_count: np.ndarray  # (L+1,)
    open_count: np.ndarray  # (L+1,)
    prints: np.ndarray  # as for polygons
    fed_prints: np.ndarray
    is_printed: np.ndarray  # (L+1,) uint8 whether they reflect the pattern below the polytope that entered a layer
    box: np.ndarray  # (3, 3) scratch
    code: np.ndarray  # (N,) uint8 scratch: the activity of carried neurons and entries
    scratch: np.ndarray  # (4, widest layer)
    peak: np.ndarray  # (N,) the largest sum of |coefficients| of each neuron's form on any polyhedron in its layer
    missed: np.ndarray  # (N,) the largest |value| on a part that the tolerance left unsplit
    beside: np.ndarray  # (2, N) how much lies beside the kink of each neuron (see `Accuracy`)
    drift: np.ndarray  # (2, L+1) additions to the forms of each layer since they were computed from scratch; changes
    most_drift: np.ndarray  # (2, L+1) the largest drift so far
    columns: np.ndarray  # (2, widest layer) scratch lists
    doubts: np.ndarray  # (4, L+1) as for polygons
    stack: np.ndarray  # (height, 9) the columns of `forms.Walk.stack`, then first facet, facets
    points: np.ndarray  # (room, 3)
    incidence: np.ndarray  # (room, words)
    facets: np.ndarray  # (room,) int64 signed cuts
    candidates: np.ndarray  # int32
    here: np.ndarray  # (most vertices, 3) scratch: the current polyhedron
    here_incidence: np.ndarray  # (most vertices, words)
    here_facets: np.ndarray  # (most facets,)
    value: np.ndarray  # (most vertices,) scratch: a form on the vertices
    order: np.ndarray  # (most vertices,) scratch
    angle: np.ndarray  # (most vertices,) scratch
    rank: np.ndarray  # (2, most facets) scratch
    pairs: np.ndarray  # (2, most facets) scratch
    counters: np.ndarray  # (7,) int64, see `kernels`
    sums: np.ndarray  # (5,) float64, see `kernels`


@compiled_apart
def _add_dense(weights, columns, change, forms, first, end):
    """Add the listed columns (rows of `weights`) times their changes to the forms first … end − 1."""
    count = end - first
    n = 0
    while n + 4 <= columns.shape[0]:
        k0, k1, k2, k3 = columns[n], columns[n + 1], columns[n + 2], columns[n + 3]
        w0, w1 = weights[k0 * count : (k0 + 1) * count], weights[k1 * count : (k1 + 1) * count]
        w2, w3 = weights[k2 * count : (k2 + 1) * count], weights[k3 * count : (k3 + 1) * count]
        for r in range(ROWS):
            row = forms[r, first:end]
            c0, c1, c2, c3 = change[r, k0], change[r, k1], change[r, k2], change[r, k3]
            for i in range(count):
                row[i] += w0[i] * c0 + w1[i] * c1 + w2[i] * c2 + w3[i] * c3
        n += 4
    while n < columns.shape[0]:
        k0 = columns[n]
        w0 = weights[k0 * count : (k0 + 1) * count]
        for r in range(ROWS):
            row = forms[r, first:end]
            c0 = change[r, k0]
            for i in range(count):
                row[i] += w0[i] * c0
        n += 1


@compiled
def _add_sparse(pointers, rows, values, columns, change, forms, first):
    """Like `_add_dense`, for a matrix whose columns are `pointers`, `rows` and `values`."""
    for k in columns:
        for i in range(pointers[k], pointers[k + 1]):
            for r in range(ROWS):
                forms[r, first + rows[i]] += values[i] * change[r, k]


@compiled
def _feed(forms, active, first, size, is_clip, fresh):
    """Write the output forms of a hidden layer into `fresh`; the clip's last layer gives the clipped pixels."""
    source = first - size if is_clip else first
    for k in range(size):
        kept = 1.0 if active[first + k] and active[source + k] else 0.0
        for r in range(ROWS):
            fresh[r, k] = kept * forms[r, source + k]
        if is_clip and not active[first + k]:
            fresh[ROWS - 1, k] = 1.0


@compiled
def _turn_over(forms, active, first, size):
    """Write the forms of the clip's second layer: 1 − ReLU of the first."""
    for k in range(first, first + size):
        for r in range(ROWS):
            forms[r, k + size] = -forms[r, k] if active[k] else 0.0
        forms[ROWS - 1, k + size] += 1.0


@compiled
def _differences(fresh, fed, source, size, pointers, is_dense, changed, used):
    """List the inputs that changed and the nonzero inputs; return both counts, and how much more it costs to add the
    first than the second."""
    count, count_used, balance = 0, 0, 0
    for k in range(size):
        differs, counts = False, False
        for r in range(ROWS):
            differs |= fresh[r, k] != fed[r, source + k]
            counts |= fresh[r, k] != 0.0
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
def _flips(forms, active, fed, fed_active, unstable, first, fresh, changed, count):
    """Append to a list of `count` changed inputs those whose activity changed while their forms stayed the same, with
    the change of the output form; returns the new length of the list."""
    for n in range(unstable.shape[0]):
        k = unstable[n]
        if active[k] != fed_active[k]:
            sign = 1.0 if active[k] else -1.0
            for r in range(ROWS):
                fresh[r, k - first] = sign * forms[r, k]
                fed[r, k] += sign * forms[r, k]
            fed_active[k] = active[k]
            changed[count] = k - first
            count += 1
    return count


@compiled
def _restart(forms, bias, first, end, fresh, fed, source):
    """Reset the forms of a layer to its bias and record the inputs to add."""
    for k in range(first, end):
        for r in range(ROWS - 1):
            forms[r, k] = 0.0
        forms[ROWS - 1, k] = bias[k]
    for k in range(first - source):
        for r in range(ROWS):
            fed[r, source + k] = fresh[r, k]


@compiled_inline
def sync(program, walk, layer):
    """Bring the forms of a layer up to date with the outputs of the layer before it."""
    source, first, end = program.offsets[layer - 1], program.offsets[layer], program.offsets[layer + 1]
    size = first - source
    forms, versions, fresh, fed = walk.forms, walk.versions, walk.scratch, walk.fed
    if program.clipped == 1 and layer == 1:
        _turn_over(forms, walk.active, source, size)
        return
    after_clip = program.clipped == 1 and layer == 2
    is_dense = program.dense_start[layer] >= 0
    pointers = program.columns[program.column_start[layer] :]
    changed, used = walk.columns[0], walk.columns[1]
    scratch_is_due = (
        versions[FED_FROM, layer] < 0
        or versions[UPDATES, layer] >= MAX_SYNCS
        or walk.drift[ADDITIONS, layer] >= MAX_ADDITIONS
    )
    same_polyhedron = versions[FED_FROM, layer] == versions[ENTERED, layer - 1] and not after_clip
    if same_polyhedron and not scratch_is_due:
        # The current polyhedron is a part of the one that entered: only neurons unstable there can have flipped.
        unstable = walk.unstable[source : source + walk.unstable_count[layer - 1]]
        count = _flips(forms, walk.active, fed, walk.fed_active, unstable, source, fresh, changed, 0)
        if not program.is_plain[layer - 1]:
            entries = walk.unstable[first - walk.open_count[layer - 1] : first]
            count = _flips(forms, walk.active, fed, walk.fed_active, entries, source, fresh, changed, count)
        columns = changed[:count]
        if count == 0:
            return
    else:
        _feed(forms, walk.active, source, size, after_clip, fresh)
        count, count_used, balance = _differences(fresh, fed, source, size, pointers, is_dense, changed, used)
        scratch_is_due = scratch_is_due or balance > 0
        columns = used[:count_used] if scratch_is_due else changed[:count]
        if scratch_is_due:
            _restart(forms, program.bias, first, end, fresh, fed, source)
            versions[UPDATES, layer] = 0
        else:
            for k in columns:
                for r in range(ROWS):
                    new = fresh[r, k]
                    fresh[r, k] = new - fed[r, source + k]
                    fed[r, source + k] = new
        for k in range(source, first):
            walk.fed_active[k] = walk.active[k]
    versions[FED_FROM, layer] = versions[ENTERED, layer - 1]
    versions[UPDATES, layer] += 1
    if not program.is_copy[layer]:
        note_drift(
            fresh, program.largest[source:first], columns, program.terms[layer], scratch_is_due, layer, walk.drift,
            walk.most_drift,
        )  # fmt: skip
    if is_dense:
        _add_dense(program.dense[program.dense_start[layer] :], columns, fresh, forms, first, end)
    else:
        _add_sparse(pointers, program.rows, program.values, columns, fresh, forms, first)
    if program.has_copies[layer]:
        copy_forms(program, walk, first, end)
