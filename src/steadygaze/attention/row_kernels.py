"""Compiled loops: sums of picked rows of a layer's matrix, which carry gradients from a layer to the one below."""

from ..compiling import compiled, compiled_fused, compiled_inline


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
def add_all(rows, layer, picks, factors, target):
    """target = Σ factors[k] · row k of the matrix into a layer, for the picked rows."""
    for i in range(target.shape[0]):
        target[i] = 0.0
    if rows.dense_start[layer] >= 0:
        _add_rows(rows.dense[rows.dense_start[layer] :], target.shape[0], picks, factors, target)
        return
    pointers = rows.pointers[rows.row_start[layer] :]
    for k in picks:
        columns, values = rows.columns[pointers[k] : pointers[k + 1]], rows.values[pointers[k] : pointers[k + 1]]
        factor = factors[k]
        for i in range(columns.shape[0]):
            target[columns[i]] += factor * values[i]


@compiled
def pull(rows, maps, layer, picks, weights):
    """Write the gradient of Σ weights[k] · input k of a layer with respect to the layer below to `vector`.

    Returns the number of entries listed in `support`, −1 for all.
    """
    below, first = rows.offsets[layer - 1], rows.offsets[layer]
    vector, pointers = maps.vector[below:first], rows.pointers[rows.row_start[layer] :]
    entries = 0
    for k in picks:
        entries += pointers[k + 1] - pointers[k]
    # If much of the layer is reached, or a part of it often, marking costs more than it saves.
    if rows.dense_start[layer] >= 0 or (picks.shape[0] > 1 and 4 * entries > vector.shape[0]):
        add_all(rows, layer, picks, weights, vector)
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
def step_down(rows, maps, layer, count, weights):
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
            if maps.active[start + i] and maps.vector[start + i] != 0.0:
                picks[picked] = i
                picked += 1
    return found, picked
