"""Compiled loops of a program's thresholds: scales of neurons → what counts as rounding, and as beside a kink."""

import numpy as np

from .compiling import compiled
from .tolerances import NEAR


@compiled
def near_zero(scale: np.ndarray) -> float:
    """The largest |value| that counts as beside a kink, for a whole layer with the given scales."""
    largest = 0.0
    for k in range(scale.shape[0]):
        if scale[k] > largest or np.isnan(scale[k]):
            largest = scale[k]
    return NEAR * (largest if largest > 0.0 else 1.0)


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
    """Raise the scale of every neuron of a dense layer that only passes one input on to what it inherits from it."""
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
    """As `_passed_on`, for a matrix whose columns are `pointers`, `rows` and `values`; `count` is scratch."""
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


@compiled
def set_thresholds(
    offsets: np.ndarray, first: int, dense_start: np.ndarray, dense: np.ndarray, column_start: np.ndarray,
    columns: np.ndarray, rows: np.ndarray, values: np.ndarray, bias: np.ndarray, shares: np.ndarray, noise: np.ndarray,
    near: np.ndarray, largest: np.ndarray,
) -> None:  # fmt: skip
    """Fill `noise`, `near` and `largest` of a program (see `Program`) whose maps lead to the layers from `first` on.

    `noise` holds the largest sum of |weight · input| of every neuron on sample points, or the scale itself before layer
    `first`. A neuron that only passes one input on (a ReLU after a ReLU) inherits its scale, errors included. A layer's
    noise is its share of the scales.
    """
    layers = offsets.shape[0] - 1
    for k in range(offsets[first - 1]):
        largest[k] = 1.0
    for layer in range(first, layers):
        start, middle, end = offsets[layer - 1], offsets[layer], offsets[layer + 1]
        below, scale = noise[start:middle], noise[middle:end]
        for k in range(middle, end):
            noise[k] += abs(bias[k])
        if dense_start[layer] >= 0:
            weights = dense[dense_start[layer] :]
            _passed_on(weights, below, scale)
            _largest_weights(weights, end - middle, largest[start:middle])
        else:
            pointers = columns[column_start[layer] :]
            _passed_on_sparse(pointers, rows, values, below, near[middle:end], scale)
            for i in range(middle - start):
                most = 0.0
                for entry in range(pointers[i], pointers[i + 1]):
                    most = max(most, abs(values[entry]))
                largest[start + i] = most
    for k in range(offsets[layers - 1], offsets[layers]):
        largest[k] = 0.0
    for layer in range(layers):
        close = near_zero(noise[offsets[layer] : offsets[layer + 1]])
        for k in range(offsets[layer], offsets[layer + 1]):
            near[k] = close
            noise[k] *= shares[layer]
