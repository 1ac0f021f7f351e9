"""Decides the bits of a layer on boxes by bounds, and encloses its output.

The sign of its input decides a ReLU. A carried neuron is always on. Bounds on the differences between the entries of a
window decide its winner. Entries that are equal on the whole box are decided, too: the first one wins.

An undecided ReLU lies between its chord and a parallel. A weighted mean of several candidates encloses the largest
candidate, which exceeds the mean by at least 0, and by at most the largest difference between a candidate and the mean.
With two candidates and the right weights, this is the enclosure of a + ReLU(b − a).
"""

from dataclasses import dataclass

import numpy as np

from ..network.layers import RELU, Layer
from ..tolerances import LEAST, gamma
from . import box_kernels as kernels
from .box_kernels import OFF, ON, OPEN, relu_bits
from .forms import Forms, Relaxed, relax_relu

__all__ = ["OFF", "ON", "OPEN", "DecidedLayer", "decide", "is_split", "near_kinks"]

TOUCHING = 1e-9  # a neuron that crosses zero by less than this share of its range merely touches it


@dataclass(frozen=True, eq=False)
class DecidedLayer:
    """A layer on B boxes: its inputs and their bounds (B, n), its bits (B, n), OFF, ON or OPEN, and its output.

    unstable (B,) counts the ReLUs and windows that may split a box. pull (B, d) sums how much each parameter moves
    them.
    """

    inputs: Forms
    low: np.ndarray
    high: np.ndarray
    bits: np.ndarray
    unstable: np.ndarray
    pull: np.ndarray
    output: Forms


def decide(
    layer: Layer, inputs: Forms, parameters: int = 0, room: int = 0, weights: np.ndarray | None = None
) -> DecidedLayer:
    """Decide the bits of a layer, given its inputs.

    The first `parameters` coordinates are those of theta; up to `room` open neurons become new generators. `weights`
    (n,): the weights of the neurons in the pull, by default 1.
    """
    low, high = inputs.bounds()
    bits = np.empty(low.shape, dtype=np.uint8)
    relu_bits(low, high, bits)
    relaxed, is_open = relax_relu(low, high), is_split(low, high)
    if not layer.is_plain:
        is_open &= layer.kind == RELU
        bits[:, layer.carried] = ON
        for part, value in ((relaxed.slope, 1.0), (relaxed.shift, 0.0), (relaxed.radius, 0.0)):
            part[:, layer.carried] = value
    unstable = is_open.sum(axis=1)
    counted = is_open.astype(np.float64) if weights is None else is_open * weights
    pull = np.einsum("bkn,bn->bk", np.abs(inputs.forms[:, 1 : 1 + parameters]), counted)
    if len(layer.entries):
        _Windows(layer, inputs).decide(low, high, bits, relaxed, unstable, pull)
    return DecidedLayer(inputs, low, high, bits, unstable, pull, relaxed.of(inputs, room))


def is_split(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Where bounds (B, n) lie on both sides of zero by more than rounding; for counts, not for proofs."""
    least = TOUCHING * (high - low)
    return (low < -least) & (high > least)


def near_kinks(layer: Layer, inputs: Forms, together: float) -> np.ndarray:
    """Which neurons (B, V, n) may be on their kink at the corners of polytopes; see `Bounder.near_zero`."""
    forms, corners = inputs.forms, inputs.corners
    assert corners is not None
    at = np.einsum("bvk,bkn->bvn", corners.points, forms[:, 1:]) + forms[:, :1]
    slack = inputs.rest + np.einsum("bk,bkn->bn", corners.blur, np.abs(forms[:, 1:]))
    slack += gamma(forms.shape[1] + 4) * np.abs(forms).sum(axis=1)
    slack *= 1.01
    # NaN counts as near.
    near = ~(np.abs(at) > (together + slack)[:, None])
    if not layer.is_plain:
        near[:, :, layer.carried] = False
    if len(layer.entries):
        windows = _Windows(layer, inputs)
        kernels.near_winners(forms, inputs.rest, at, slack, *windows.where[2:], together, near)
    return near


class _Windows:
    """The windows of a layer on boxes or polytopes, as arguments of the compiled loops."""

    def __init__(self, layer: Layer, inputs: Forms) -> None:
        rows = inputs.forms.shape[1]
        first = layer.entries[layer.starts]
        end = first + np.diff(layer.starts, append=len(layer.entries))
        self.places, self.row = int((end - first).max()), np.empty(rows)
        points, blur = np.zeros((1, 0, rows - 1)), np.zeros((1, rows - 1))
        if inputs.corners is not None:
            points, blur = inputs.corners.points, inputs.corners.blur
        self.forms = inputs.forms, inputs.spread, inputs.rest
        self.where = points, blur, first, end
        # Covers sums of all rows, and of the entries' weights, each rounded a few times.
        self.rounding = gamma(rows + 8 + 4 * self.places), LEAST

    def decide(
        self, low: np.ndarray, high: np.ndarray, bits: np.ndarray, relaxed: Relaxed, unstable: np.ndarray,
        pull: np.ndarray,
    ) -> None:  # fmt: skip
        """Write the bits of all entries and the enclosure of each window's largest entry; count the open windows."""
        kernels.find_candidates(*self.forms, low, high, *self.where, *self.rounding, bits, self.row)
        kernels.relax_windows(
            *self.forms, *self.where, *self.rounding, bits, relaxed.slope, relaxed.shift, relaxed.radius,
            np.empty(self.places), np.empty(len(self.row)), self.row,
        )  # fmt: skip
        moves = np.empty(pull.shape[1])
        kernels.count_windows(
            *self.forms, *self.where, *self.rounding, TOUCHING, bits, unstable, pull, moves, self.row
        )  # fmt: skip
