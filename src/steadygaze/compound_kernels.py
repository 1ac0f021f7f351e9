"""Compiled loops that compute the thresholds of a program from the scales of neurons at sample points: below which
values count as rounding, and which are close to a kink."""

from typing import Any

import numpy as np

from .compiling import compiled, compiled_apart
from .network.layers import ENTRY, RELU
from .tolerances import NEAR


@compiled
def near_zero(scale: np.ndarray) -> float:
    """The largest |value| that counts as close to a kink, for a whole layer with the given scales."""
    largest = 0.0
    for k in range(scale.shape[0]):
        if scale[k] > largest or np.isnan(scale[k]):
            largest = scale[k]
    return NEAR * (largest if largest > 0.0 else 1.0)


@compiled
def store_map(
    weight: np.ndarray, bias: np.ndarray, start: int, first: int, dense: np.ndarray, biases: np.ndarray
) -> None:
    """Write a matrix (n_out, n_in), transposed, to `dense[start:]`, and its bias to `biases[first:]`."""
    outputs, inputs = weight.shape
    for k in range(outputs):
        biases[first + k] = bias[k]
        for i in range(inputs):
            dense[start + i * outputs + k] = weight[k, i]


@compiled
def _largest_weights(weights: np.ndarray, outputs: int, largest: np.ndarray) -> None:
    """The largest |weight| of every input of a dense layer, whose rows of `weights` are the inputs."""
    for i in range(largest.shape[0]):
        most = 0.0
        for k in range(outputs):
            most = max(most, abs(weights[i * outputs + k]))
        largest[i] = most


@compiled
def _passed_on(weights: np.ndarray, below: np.ndarray, scale: np.ndarray) -> None:
    """If a neuron of a dense layer only passes one input on, raise its scale to the one inherited from the input."""
    outputs = scale.shape[0]
    for k in range(outputs):
        count, only = 0, 0
        for i in range(below.shape[0]):
            if weights[i * outputs + k] != 0.0:
                count, only = count + 1, i
                if count > 1:
                    break
        if count == 1:
            inherited = abs(weights[only * outputs + k]) * below[only]
            if inherited > scale[k] or np.isnan(inherited):
                scale[k] = inherited


@compiled
def _passed_on_sparse(
    pointers: np.ndarray, rows: np.ndarray, values: np.ndarray, below: np.ndarray, count: np.ndarray, scale: np.ndarray
) -> None:
    """Like `_passed_on`, for a matrix whose columns are `pointers`, `rows` and `values`; `count` is scratch."""
    for k in range(scale.shape[0]):
        count[k] = 0.0
    for entry in range(pointers[0], pointers[below.shape[0]]):
        count[rows[entry]] += 1.0
    for i in range(below.shape[0]):
        for entry in range(pointers[i], pointers[i + 1]):
            row = rows[entry]
            if count[row] == 1.0:
                inherited = abs(values[entry]) * below[i]
                if inherited > scale[row] or np.isnan(inherited):
                    scale[row] = inherited


@compiled_apart
def _add_products(weights: np.ndarray, stride: int, values: np.ndarray, sums: np.ndarray, sizes: np.ndarray) -> None:
    """Add the rows of values (n, P) times weights[0], weights[stride], … to sums (P,), and times |weights| to sizes."""
    count, i = values.shape[0], 0
    while i + 4 <= count:
        w0, w1 = weights[i * stride], weights[(i + 1) * stride]
        w2, w3 = weights[(i + 2) * stride], weights[(i + 3) * stride]
        v0, v1, v2, v3 = values[i], values[i + 1], values[i + 2], values[i + 3]
        for p in range(sums.shape[0]):
            sums[p] += w0 * v0[p] + w1 * v1[p] + w2 * v2[p] + w3 * v3[p]
            sizes[p] += abs(w0) * v0[p] + abs(w1) * v1[p] + abs(w2) * v2[p] + abs(w3) * v3[p]
        i += 4
    while i < count:
        w0, v0 = weights[i * stride], values[i]
        for p in range(sums.shape[0]):
            sums[p] += w0 * v0[p]
            sizes[p] += abs(w0) * v0[p]
        i += 1


@compiled_apart
def _add_column(rows: np.ndarray, weights: np.ndarray, value: np.ndarray, sums: np.ndarray, sizes: np.ndarray) -> None:
    """Like `_add_products`, for one input (P,) of a sparse matrix and all its outputs (n, P)."""
    for entry in range(rows.shape[0]):
        weight, to, size = weights[entry], sums[rows[entry]], sizes[rows[entry]]
        for p in range(value.shape[0]):
            to[p] += weight * value[p]
            size[p] += abs(weight) * value[p]


@compiled
def _add_layer(program: Any, layer: int, values: np.ndarray, sums: np.ndarray, sizes: np.ndarray) -> None:
    """Set the sums of weight · input of every neuron of a layer (n, P) at sample points, and the sums of
    |weight| · input, given its inputs `values`."""
    inputs = program.offsets[layer] - program.offsets[layer - 1]
    outputs = program.offsets[layer + 1] - program.offsets[layer]
    for k in range(outputs):
        for p in range(sums.shape[1]):
            sums[k, p], sizes[k, p] = 0.0, 0.0
    start = program.dense_start[layer]
    if start >= 0:
        for k in range(outputs):
            _add_products(program.dense[start + k :], outputs, values[:inputs], sums[k], sizes[k])
        return
    pointers = program.columns[program.column_start[layer] :]
    for i in range(inputs):
        own = slice(pointers[i], pointers[i + 1])
        _add_column(program.rows[own], program.values[own], values[i], sums, sizes)


@compiled
def _largest(row: np.ndarray) -> float:
    """The largest of several numbers; NaN if one of them is NaN."""
    most = row[0]
    for p in range(1, row.shape[0]):
        if row[p] > most or np.isnan(row[p]):
            most = row[p]
    return most


@compiled
def _add_bias_and_decide(program: Any, layer: int, values: np.ndarray) -> None:
    """Turn the sums of a layer (n, P) into its outputs; NaN stays NaN."""
    first, end = program.offsets[layer], program.offsets[layer + 1]
    for k in range(first, end):
        for p in range(values.shape[1]):
            value = values[k - first, p] + program.bias[k]
            values[k - first, p] = 0.0 if value <= 0.0 and program.kind[k] == RELU else value
    if program.is_plain[layer]:
        return
    for k in range(first, end):
        if program.kind[k] != ENTRY or program.window_first[k] != k:
            continue
        for p in range(values.shape[1]):
            winner = k
            for i in range(k, program.window_end[k]):
                if values[i - first, p] > values[winner - first, p]:
                    winner = i
            for i in range(k, program.window_end[k]):
                if i != winner and not np.isnan(values[i - first, p]):
                    values[i - first, p] = 0.0


@compiled
def _set_sums(program: Any, first: int, root: np.ndarray, points: np.ndarray, room: np.ndarray) -> None:
    """Set the noise of a program to the largest sum of |weight| · input of every neuron at sample points (D+1, P), and
    to the sum of |coefficients| of the root (D+1, n); `room` (3, widest layer, P) is scratch."""
    noise, offsets, layers = program.noise, program.offsets, program.offsets.shape[0] - 1
    values, sums, sizes = room[0], room[1], room[2]
    for k in range(root.shape[1]):
        size = 0.0
        for r in range(root.shape[0]):
            size += abs(root[r, k])
        noise[k] = size
        for p in range(points.shape[1]):
            value = 0.0
            for r in range(root.shape[0]):
                value += root[r, k] * points[r, p]
            value = 0.0 if value <= 0.0 else value
            values[k, p] = 1.0 if program.clipped == 1 and value > 1.0 else value
        if program.clipped == 1:
            noise[offsets[1] + k] = 1.0 + size
    for layer in range(first, layers):
        _add_layer(program, layer, values, sums, sizes)
        for k in range(offsets[layer], offsets[layer + 1]):
            noise[k] = _largest(sizes[k - offsets[layer]])
        if layer + 1 < layers:
            _add_bias_and_decide(program, layer, sums)
            values, sums = sums, values


@compiled
def set_thresholds(
    program: Any, first: int, shares: np.ndarray, root: np.ndarray, points: np.ndarray, room: np.ndarray
) -> None:
    """Fill `noise`, `near` and `largest` of a program (see `Program`) whose maps lead to the layers from `first` on.

    The scale of a neuron is its largest sum of |weight| · input at sample points plus its |bias| (see `_set_sums` for
    the other arguments). A neuron that only passes one input on (a ReLU after a ReLU) inherits the scale of the input,
    because it inherits its errors. The noise of a neuron is the layer's share of its scale.
    """
    _set_sums(program, first, root, points, room)
    offsets, noise, near, largest = program.offsets, program.noise, program.near, program.largest
    layers = offsets.shape[0] - 1
    for k in range(offsets[first - 1]):
        largest[k] = 1.0
    for layer in range(first, layers):
        start, middle, end = offsets[layer - 1], offsets[layer], offsets[layer + 1]
        below, scale = noise[start:middle], noise[middle:end]
        for k in range(middle, end):
            noise[k] += abs(program.bias[k])
        if program.dense_start[layer] >= 0:
            weights = program.dense[program.dense_start[layer] :]
            _passed_on(weights, below, scale)
            _largest_weights(weights, end - middle, largest[start:middle])
        else:
            pointers = program.columns[program.column_start[layer] :]
            _passed_on_sparse(pointers, program.rows, program.values, below, near[middle:end], scale)
            for i in range(middle - start):
                most = 0.0
                for entry in range(pointers[i], pointers[i + 1]):
                    most = max(most, abs(program.values[entry]))
                largest[start + i] = most
    for k in range(offsets[layers - 1], offsets[layers]):
        largest[k] = 0.0
    for layer in range(layers):
        close = near_zero(noise[offsets[layer] : offsets[layer + 1]])
        for k in range(offsets[layer], offsets[layer + 1]):
            near[k] = close
            noise[k] *= shares[layer]
