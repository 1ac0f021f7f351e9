"""Compiled updates of the affine forms of all layers: the state of a walk, and `sync`.

`sync` updates the forms of a layer by adding the columns of the inputs that changed since the last update, so a single
flip costs a single column. Every layer lists the neurons whose form or activity may have changed since the next layer
read them, so `sync` skips most inputs.
"""

from typing import NamedTuple

import numpy as np

from ..accuracy import ADDITIONS, CHANGES
from ..compiling import compiled, compiled_apart, compiled_inline
from ..tolerances import MAX_ADDITIONS, MAX_SYNCS

ENTERED, FED_FROM, UPDATES = 0, 1, 2

VOLUME, SLIVERS, SKIPPED, GAP, HOLES = 0, 1, 2, 3, 4
"""Sums of both walks: volume written, sliver volume, shapes without a volume, depth and volume of gaps."""

EDGE, CORNER = 0, 1
"""The rows of `beside`: polytopes with several vertices beside a kink, and those with a single one."""

GROUP = 4
"""The number of dense columns that `_add_dense` adds up before it adds them to a form."""

LISTED = 4
"""A list of touched neurons is dropped once it holds more than one in this many of the layer's neurons."""


class Walk(NamedTuple):
    """The state of a walk: forms and pattern of the current polygon, and the stack of polygons to come."""

    forms: np.ndarray  # (3, N) of each neuron before its ReLU
    fed: np.ndarray  # (3, N) the output forms that the next layer's `forms` reflect
    versions: np.ndarray  # (3, L+1) of each layer: unused here (see `solid_forms`), −1 if it was never fed, updates
    active: np.ndarray  # (N, and zeros up to a multiple of eight) uint8
    packed: np.ndarray  # the same, packed
    unstable: np.ndarray  # (N,) the neurons of each layer that may change on the polygon that entered it: ReLUs from
    # the beginning of the layer's part, entries of windows up to its end
    unstable_count: np.ndarray  # (L+1,) ReLUs among them
    open_count: np.ndarray  # (L+1,) entries among them
    prints: np.ndarray  # uint64 fingerprints of lines and of all layers with windows (see `fingerprint_kernels`)
    fed_prints: np.ndarray  # uint64 the inputs that they reflect
    is_printed: np.ndarray  # (L+1,) uint8 whether they reflect the pattern below the polytope that entered a layer
    box: np.ndarray  # (3, 3) scratch: centre and half-widths of a box, and a point
    scratch: np.ndarray  # (3, widest layer)
    peak: np.ndarray  # (N,) the largest |a| + |b| + |c| of each neuron's form on any polygon that entered its layer
    missed: np.ndarray  # (N,) the largest |value| on a part that the tolerance left unsplit
    beside: np.ndarray  # (2, N) how much lies beside the kink of each neuron (see `Accuracy`)
    drift: np.ndarray  # (2, L+1) additions to the forms of each layer since they were computed from scratch; changes
    most_drift: np.ndarray  # (2, L+1) the largest drift so far
    columns: np.ndarray  # (2, widest layer) scratch lists
    code: np.ndarray  # as `active`: the state of each neuron on the polygon that entered last (see `kernels`)
    words: np.ndarray  # (2, N/8) uint64: the memory of `active` and of `code`, eight neurons each
    touched: np.ndarray  # (N,) int32 by layer, the neurons that the next layer must read at its next update
    touched_count: np.ndarray  # (L+1,) how many, −1 for all
    is_touched: np.ndarray  # (N,) uint8 whether they are listed
    doubts: np.ndarray  # (4, L+1) neurons of each layer whose values are rounding: stable ones, unstable ones; the same
    # for entries of windows that may be the winner
    stack: np.ndarray  # (height, 7) layer, first vertex, vertices, first candidate, candidates, origin, cuts before it
    x: np.ndarray
    y: np.ndarray
    edge: np.ndarray  # int64 signed cut of the edge from a vertex to the next
    candidates: np.ndarray  # int32
    here: np.ndarray  # (3, MAX_VERTICES) scratch: the current polygon, and a form on its vertices
    here_edge: np.ndarray
    counters: np.ndarray  # (7,) int64, see `kernels`
    sums: np.ndarray  # (5,) float64, see `kernels`


@compiled_apart
def _add_dense(weights, columns, da, db, dc, a, b, c):
    """Add the listed columns (rows of `weights`) times their changes da, db, dc to the forms a, b, c."""
    count = a.shape[0]
    n = 0
    while n + 4 <= columns.shape[0]:
        k0, k1, k2, k3 = columns[n], columns[n + 1], columns[n + 2], columns[n + 3]
        w0, w1 = weights[k0 * count : (k0 + 1) * count], weights[k1 * count : (k1 + 1) * count]
        w2, w3 = weights[k2 * count : (k2 + 1) * count], weights[k3 * count : (k3 + 1) * count]
        a0, a1, a2, a3 = da[k0], da[k1], da[k2], da[k3]
        b0, b1, b2, b3 = db[k0], db[k1], db[k2], db[k3]
        c0, c1, c2, c3 = dc[k0], dc[k1], dc[k2], dc[k3]
        for i in range(count):
            a[i] += w0[i] * a0 + w1[i] * a1 + w2[i] * a2 + w3[i] * a3
            b[i] += w0[i] * b0 + w1[i] * b1 + w2[i] * b2 + w3[i] * b3
            c[i] += w0[i] * c0 + w1[i] * c1 + w2[i] * c2 + w3[i] * c3
        n += 4
    while n < columns.shape[0]:
        k0 = columns[n]
        w0 = weights[k0 * count : (k0 + 1) * count]
        a0, b0, c0 = da[k0], db[k0], dc[k0]
        for i in range(count):
            a[i] += w0[i] * a0
            b[i] += w0[i] * b0
            c[i] += w0[i] * c0
        n += 1


@compiled
def _add_sparse(pointers, rows, values, columns, change, a, b, c):
    """Like `_add_dense`, for a matrix whose columns are `pointers`, `rows` and `values`."""
    for k in columns:
        da, db, dc = change[0, k], change[1, k], change[2, k]
        for i in range(pointers[k], pointers[k + 1]):
            row, weight = rows[i], values[i]
            a[row] += weight * da
            b[row] += weight * db
            c[row] += weight * dc


@compiled
def _add_and_touch(pointers, rows, values, columns, change, a, b, c, first, touched, is_touched, listed):
    """Like `_add_sparse`; also list the forms that change, and return the length of the list."""
    for k in columns:
        da, db, dc = change[0, k], change[1, k], change[2, k]
        for i in range(pointers[k], pointers[k + 1]):
            row, weight = rows[i], values[i]
            a[row] += weight * da
            b[row] += weight * db
            c[row] += weight * dc
            if not is_touched[row]:
                is_touched[row] = 1
                touched[listed] = first + row
                listed += 1
    return listed


@compiled
def _feed(forms, active, first, size, is_clip, fresh):
    """Write the output forms of a hidden layer into `fresh`; the clip's last layer gives the clipped pixels."""
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
    """List the inputs that changed and the nonzero inputs; return both counts, and how much more it costs to add the
    first than the second."""
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
def touch(k, first, touched, is_touched, touched_count):
    """List neuron k of the layer that starts at `first`, unless it is already listed."""
    if touched_count[0] >= 0 and not is_touched[k]:
        is_touched[k] = 1
        touched[first + touched_count[0]] = k
        touched_count[0] += 1


@compiled
def _listed_changes(forms, active, fed, touched, is_touched, first, largest, fresh, changed):
    """List the touched inputs whose output form changed, with the change; clear the list of touched inputs.

    Returns the number of changed inputs, and the sum of |change| · largest.
    """
    count, total = 0, 0.0
    for n in range(touched.shape[0]):
        k = touched[n]
        is_touched[k] = 0
        differs, change = False, 0.0
        for i in range(3):
            new = forms[i, k] if active[k] else 0.0
            fresh[i, k - first] = new - fed[i, k]
            change += abs(new - fed[i, k])
            differs |= new != fed[i, k]
            fed[i, k] = new
        if differs:
            changed[count] = k - first
            count += 1
            total += change * largest[k]
    return count, total


@compiled_apart
def _raise_peaks(a, b, c, peak):
    """Raise each peak to the sum of |coefficients|, which bounds rounding and every value; infinite after a NaN."""
    for k in range(a.shape[0]):
        size = abs(a[k]) + abs(b[k]) + abs(c[k])
        peak[k] = max(peak[k], size if size < np.inf else np.inf)


@compiled
def _most_change(fresh, largest, columns):
    """The largest |change| · largest of the listed inputs."""
    most = 0.0
    for k in columns:
        change = 0.0
        for i in range(fresh.shape[0]):
            change += abs(fresh[i, k])
        most = max(most, change * largest[k])
    return most


@compiled_inline
def _add_drift(total, fresh, largest, columns, terms, group, layer, drift, most_drift):
    """Add the bound on an update's rounding to the drift, given the sum of |change| · largest of all its inputs.

    Each group of `group` columns, and each column left over, is one addition to a form.
    """
    count = columns.shape[0]
    if count > terms:
        total = min(total, terms * _most_change(fresh, largest, columns))
    # A row has at most `terms` nonzero weights, each perhaps in another group.
    count = min(terms, count // group + count % group)
    additions = drift[ADDITIONS, layer] + count
    # An addition rounds the form at that moment: at most its peak plus the changes of this update.
    changes = drift[CHANGES, layer] + (count + 6) * total
    drift[ADDITIONS, layer], drift[CHANGES, layer] = additions, changes
    most_drift[ADDITIONS, layer] = max(most_drift[ADDITIONS, layer], additions)
    most_drift[CHANGES, layer] = max(most_drift[CHANGES, layer], changes)


@compiled
def note_drift(fresh, largest, columns, terms, is_scratch, layer, drift, most_drift):
    """Update the drift, which bounds the rounding of updates: additions to one form since it was computed from scratch,
    and the rounding that changes of its inputs can cause. `fresh` holds the changes; a form sums `terms` inputs."""
    if is_scratch:
        drift[ADDITIONS, layer], drift[CHANGES, layer] = 0.0, 0.0
        return
    total = 0.0
    for k in columns:
        change = 0.0
        for i in range(fresh.shape[0]):
            change += abs(fresh[i, k])
        total += change * largest[k]
    _add_drift(total, fresh, largest, columns, terms, 1, layer, drift, most_drift)


@compiled
def count_reached(program, fed, layer, zeros, reached):
    """Count the listed neurons of a layer, all with zero forms, that have a nonzero input or bias.

    The others are exactly zero if the pattern below is right. `fed` holds the inputs, `reached` is scratch.
    """
    source, first, end = program.offsets[layer - 1], program.offsets[layer], program.offsets[layer + 1]
    width, start = end - first, program.dense_start[layer]
    for k in zeros:
        reached[k - first] = 1 if program.bias[k] != 0.0 or program.is_folded[layer] else 0
    for i in range(first - source):
        is_zero = True
        for r in range(fed.shape[0]):
            is_zero = is_zero and fed[r, source + i] == 0.0
        if is_zero:
            continue
        if start >= 0:
            for k in zeros:
                if program.dense[start + i * width + k - first] != 0.0:
                    reached[k - first] = 1
        else:
            place = program.column_start[layer] + i
            for entry in range(program.columns[place], program.columns[place + 1]):
                reached[program.rows[entry]] = 1
    count = 0
    for k in zeros:
        count += reached[k - first]
    return count


@compiled
def copy_forms(program, walk, first, end):
    """Write the forms of those neurons among first … end − 1 that copy an output, without rounding."""
    for k in range(first, end):
        source = program.copied[k]
        if source >= 0:
            for r in range(walk.forms.shape[0]):
                form = 0.0
                # At most one entry of a window is active.
                for i in range(program.window_first[source], program.window_end[source]):
                    form += walk.fed[r, i]
                walk.forms[r, k] = form


@compiled_apart
def _feed_active(a, b, c, active, fed_a, fed_b, fed_c, is_touched, columns):
    """Write the output forms of a hidden layer, list its active neurons and return their number; mark none touched."""
    for k in range(a.shape[0]):
        is_active = active[k] != 0
        fed_a[k] = a[k] if is_active else 0.0
        fed_b[k] = b[k] if is_active else 0.0
        fed_c[k] = c[k] if is_active else 0.0
        is_touched[k] = 0
    count = 0
    for k in range(a.shape[0]):
        columns[count] = k
        count += active[k]
    return count


@compiled_apart
def _reset(bias, a, b, c):
    """Set the forms of a layer to its bias."""
    for k in range(a.shape[0]):
        a[k], b[k], c[k] = 0.0, 0.0, bias[k]


@compiled_inline
def _restart(program, walk, layer):
    """Compute the forms of a layer with a dense matrix from scratch."""
    source, first, end = program.offsets[layer - 1], program.offsets[layer], program.offsets[layer + 1]
    forms, fed = walk.forms, walk.fed
    a, b, c = forms[0, first:end], forms[1, first:end], forms[2, first:end]
    fed_a, fed_b, fed_c = fed[0, source:first], fed[1, source:first], fed[2, source:first]
    count = _feed_active(
        forms[0, source:first], forms[1, source:first], forms[2, source:first], walk.active[source:first], fed_a, fed_b,
        fed_c, walk.is_touched[source:first], walk.columns[0],
    )  # fmt: skip
    _reset(program.bias[first:end], a, b, c)
    _add_dense(program.dense[program.dense_start[layer] :], walk.columns[0, :count], fed_a, fed_b, fed_c, a, b, c)
    walk.versions[FED_FROM, layer], walk.versions[UPDATES, layer] = 0, 1
    walk.drift[ADDITIONS, layer], walk.drift[CHANGES, layer] = 0.0, 0.0
    walk.touched_count[layer - 1], walk.touched_count[layer] = 0, -1
    if program.has_copies[layer]:
        copy_forms(program, walk, first, end)
    _raise_peaks(a, b, c, walk.peak[first:end])


@compiled_inline
def _look_at_all(program, walk, layer, is_due):
    """Read all inputs of a layer and list the columns to add to its forms: all nonzero inputs (in `columns[1]`, with
    the forms reset to the bias) or the changed ones (in `columns[0]`), whichever is cheaper. Returns their number,
    whether they are all, and the sum of |change| · largest."""
    source, first, end = program.offsets[layer - 1], program.offsets[layer], program.offsets[layer + 1]
    size = first - source
    fresh, fed, forms, versions = walk.scratch, walk.fed[:, source:first], walk.forms, walk.versions
    pointers = program.columns[program.column_start[layer] :]
    is_dense = program.dense_start[layer] >= 0
    changed, used = walk.columns[0], walk.columns[1]
    _feed(forms, walk.active, source, size, program.clipped == 1 and layer == 2, fresh)
    count, count_used, balance = _differences(fresh, fed, pointers, is_dense, changed, used)
    is_scratch, total = is_due or balance > 0, 0.0
    if is_scratch:
        for k in range(first, end):
            forms[0, k], forms[1, k], forms[2, k] = 0.0, 0.0, program.bias[k]
        for k in range(size):
            fed[0, k], fed[1, k], fed[2, k] = fresh[0, k], fresh[1, k], fresh[2, k]
        versions[UPDATES, layer] = 0
        count = count_used
    else:
        for n in range(count):
            k = changed[n]
            change = 0.0
            for i in range(3):
                new = fresh[i, k]
                fresh[i, k] = new - fed[i, k]
                change += abs(new - fed[i, k])
                fed[i, k] = new
            total += change * program.largest[source + k]
    for k in range(source, first):
        walk.is_touched[k] = 0
    return count, is_scratch, total


@compiled_inline
def sync(program, walk, layer):
    """Bring the forms of a layer up to date with the outputs of the layer before it."""
    source, first, end = program.offsets[layer - 1], program.offsets[layer], program.offsets[layer + 1]
    size = first - source
    forms, versions, fresh, listed = walk.forms, walk.versions, walk.scratch, walk.touched_count
    a, b, c, peak = forms[0, first:end], forms[1, first:end], forms[2, first:end], walk.peak
    if program.clipped == 1 and layer == 1:
        _feed(forms, walk.active, source, size, False, fresh)
        for k in range(size):
            a[k], b[k], c[k] = -fresh[0, k], -fresh[1, k], 1.0 - fresh[2, k]
        _raise_peaks(a, b, c, peak[first:end])
        return
    is_scratch = (
        versions[FED_FROM, layer] < 0
        or versions[UPDATES, layer] >= MAX_SYNCS
        or walk.drift[ADDITIONS, layer] >= MAX_ADDITIONS
    )
    after_clip = program.clipped == 1 and layer == 2
    if program.dense_start[layer] >= 0 and not after_clip and (is_scratch or listed[layer - 1] < 0):
        # All forms below changed: an update would add as many columns.
        _restart(program, walk, layer)
        return
    if is_scratch or after_clip or listed[layer - 1] < 0 or LISTED * listed[layer - 1] > size:
        count, is_scratch, total = _look_at_all(program, walk, layer, is_scratch)
    else:
        touched = walk.touched[source : source + listed[layer - 1]]
        count, total = _listed_changes(
            forms, walk.active, walk.fed, touched, walk.is_touched, source, program.largest, fresh, walk.columns[0]
        )
    listed[layer - 1] = 0
    if count == 0 and not is_scratch:
        return
    columns = walk.columns[1 if is_scratch else 0, :count]
    versions[FED_FROM, layer] = 0
    versions[UPDATES, layer] += 1
    if is_scratch:
        walk.drift[ADDITIONS, layer], walk.drift[CHANGES, layer] = 0.0, 0.0
    elif not program.is_copy[layer]:
        group = GROUP if program.dense_start[layer] >= 0 else 1
        _add_drift(
            total, fresh, program.largest[source:first], columns, program.terms[layer], group, layer, walk.drift,
            walk.most_drift,
        )  # fmt: skip
    if program.dense_start[layer] >= 0:
        _add_dense(program.dense[program.dense_start[layer] :], columns, fresh[0], fresh[1], fresh[2], a, b, c)
        listed[layer] = -1
    else:
        pointers = program.columns[program.column_start[layer] :]
        if is_scratch or listed[layer] < 0:
            _add_sparse(pointers, program.rows, program.values, columns, fresh, a, b, c)
            listed[layer] = -1
        else:
            listed[layer] = _add_and_touch(
                pointers, program.rows, program.values, columns, fresh, a, b, c, first, walk.touched[first:end],
                walk.is_touched[first:end], listed[layer],
            )  # fmt: skip
    if program.has_copies[layer]:
        if listed[layer] < 0:
            copy_forms(program, walk, first, end)
        for n in range(listed[layer]):
            copy_forms(program, walk, walk.touched[first + n], walk.touched[first + n] + 1)
    if listed[layer] < 0:
        _raise_peaks(a, b, c, peak[first:end])
    for n in range(listed[layer]):
        k = walk.touched[first + n]
        size = abs(forms[0, k]) + abs(forms[1, k]) + abs(forms[2, k])
        peak[k] = max(peak[k], size if size < np.inf else np.inf)
