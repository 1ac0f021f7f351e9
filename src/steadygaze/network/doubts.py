"""Errors of computed values at the kinks of a layer: which bits they may change, and how much of them passes on.

values and errors are (B, n): the computed inputs of a layer, and how far each may be from the real one. A ReLU is in
doubt if its error reaches zero. A window is in doubt if an entry other than the computed winner may be the largest.
Values without any error are certain, even at 0 and in a tie.
"""

import numpy as np

from ..tolerances import NOISE
from .graph import Graph
from .layers import ENTRY, RELU, Layer
from .steps import magnitude, upwards


def doubtful_bits(layer: Layer, values: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """The bits (B, n) that errors may change.

    >>> doubtful_bits(Layer.relus(3), np.array([[0.1, -0.1, 0.0]]), np.array([[0.2, 0.01, 0.0]]))
    array([[ True, False, False]])
    """
    found = (np.abs(values) <= errors) & (errors > 0.0)
    if not layer.is_plain:
        found[:, layer.carried] = False
    if len(layer.entries):
        own, error = values[:, layer.entries], errors[:, layer.entries]
        is_winner = layer.bits(values)[:, layer.entries]
        largest, least = (_spread(layer, np.where(is_winner, part, 0.0), np.add) for part in (own, error))
        # The comparisons are negated, so NaN counts as in doubt.
        rivals = ~(largest - own > least + error) & ~(least + error == 0.0) & ~is_winner
        found[:, layer.entries] = rivals | (is_winner & _spread(layer, rivals, np.logical_or))
    return found


def is_on_kink(layer: Layer, values: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """The neurons (B, n) that may be on their kink, including ReLUs that are exactly zero."""
    return doubtful_bits(layer, values, errors) | ((values == 0.0) & (layer.kind == RELU))


def count_kinks(graph: Graph, pixels: np.ndarray) -> tuple[int, int]:
    """The number of ReLUs at zero, and of windows tied at a nonzero value, for an image (C·H·W,), up to rounding.

    Entries that tie at zero are usually dead ReLUs: no gradient passes, whichever of them wins.
    """
    close, tied, values = 0, 0, pixels[None]
    for segment, layer in zip(graph.steps, graph.layers, strict=False):
        scale, inputs = magnitude(segment, np.abs(values)), upwards(segment, values)
        close += int(((np.abs(inputs) <= NOISE * scale) & (layer.kind == RELU)).sum())
        if len(layer.entries):
            is_tied = doubtful_bits(layer, inputs, NOISE * scale) & layer.bits(inputs) & (layer.kind == ENTRY)
            tied += int((is_tied & (inputs != 0.0)).sum())
        values = layer.apply(inputs)
    return close, tied


def spread_over_windows(layer: Layer, chosen: np.ndarray) -> np.ndarray:
    """The chosen neurons (B, n), and all entries of a window if one of them is chosen."""
    if not len(layer.entries):
        return chosen
    found = chosen.copy()
    found[:, layer.entries] = _spread(layer, chosen[:, layer.entries], np.logical_or)
    return found


def kink_functions(
    layer: Layer, bits: np.ndarray, values: np.ndarray, errors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The functions (B, n) that vanish where bits (1, n) change, and their errors; inputs are linear, with errors.

    The functions are the value of a ReLU, and the winner of a window minus each other entry. They are 0 for carried
    neurons and for the winner itself, whose bits cannot change.
    """
    if layer.is_plain:
        return values, errors
    changes = np.where(layer.carried, 0.0, values), np.where(layer.carried, 0.0, errors)
    if len(layer.entries):
        own = bits[:, layer.entries]
        for part, target, sign in zip((values, errors), changes, (-1.0, 1.0), strict=True):
            entries = part[:, layer.entries]
            winner = _spread(layer, np.where(own, entries, 0.0), np.add)
            target[:, layer.entries] = np.where(own, 0.0, winner + sign * entries)
    return changes


def passed_errors(layer: Layer, values: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """How far the outputs (B, n) of a layer may be off; the error of a whole window is given to its winner."""
    # If the computed and the real value are both negative, no error passes.
    passed = np.where(values < -errors, 0.0, errors)
    if not layer.is_plain:
        passed[:, layer.carried] = errors[:, layer.carried]
    if len(layer.entries):
        counts = layer.bits(values) | doubtful_bits(layer, values, errors)
        passed[:, layer.entries] = _at_winners(layer, values, np.where(counts, errors, 0.0))
    return passed


def pattern_errors(layer: Layer, values: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """How far the real inputs, under the computed pattern, may be from the real outputs: (B, n), 0 for certain bits."""
    bent = np.where(doubtful_bits(layer, values, errors), errors, 0.0)
    if len(layer.entries):
        # The winner may be too small by its own error and that of the real winner.
        is_winner = layer.bits(values)
        own = np.where(is_winner, bent, 0.0)[:, layer.entries]
        bent[:, layer.entries] = own + _at_winners(layer, values, np.where(is_winner, 0.0, bent))
    return bent


def _at_winners(layer: Layer, values: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """The largest error (B, entries) of each window at the place of its winner, 0 elsewhere."""
    largest = _spread(layer, errors[:, layer.entries], np.maximum)
    return np.where(layer.bits(values)[:, layer.entries], largest, 0.0)


def _spread(layer: Layer, parts: np.ndarray, operation: np.ufunc) -> np.ndarray:
    """Reduce the entries (B, entries) of every window, and repeat the result for each entry."""
    sizes = np.diff(layer.starts, append=parts.shape[1])
    return np.repeat(operation.reduceat(parts, layer.starts, axis=1), sizes, axis=1)
