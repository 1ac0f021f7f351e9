"""Encloses neurons, margins and gradients on boxes of thetas, by a forward and a backward pass.

Forward, values are affine forms (`forms`), and bounds decide as many bits of every layer as they can (`decisions`).
Backward, gradients are intervals, and a neuron with an unknown bit has a derivative in [0, 1].
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..attention.filters import Intervals
from ..network.layers import Layer
from ..network.steps import Step
from ..tolerances import FLOOR, LEAST, gamma, up
from . import box_kernels as kernels
from .decisions import OPEN, DecidedLayer, decide
from .deep import ABOVE
from .forms import Forms, HullCorners, through, unknown

Segments = tuple[tuple[Step, ...], ...]

NUMBERS = 2**25
"""The most numbers in one array of forms that generators may fill: a quarter of a GiB."""

HOPELESS = 0.5
"""If a layer of a deep network has a larger share of undecided neurons, the pass ends: nothing is known above."""


@dataclass(frozen=True, eq=False)
class Readout:
    """Linear functions row · h + constant of the last hidden values h, (R, n) and (R,), each known up to its error."""

    row: np.ndarray
    row_error: np.ndarray
    constant: np.ndarray
    constant_error: np.ndarray

    @classmethod
    def of(cls, steps: Sequence[Step], targets: np.ndarray) -> "Readout":
        """The functions target · (the last steps applied to h), for targets (R, K)."""
        row, error = targets.astype(np.float64), np.zeros(targets.shape)
        constant, slack = np.zeros(len(row)), np.zeros(len(row))
        for step in reversed(steps):
            size, terms = step.bias_size, step.sizes[1] + step.roundings
            slack += (error @ size + gamma(terms + 2) * (np.abs(row) @ size)) * up(terms)
            constant = constant + row @ step.bias
            slack += gamma(1) * np.abs(constant)
            above = error + gamma(step.backward_terms + 1) * np.abs(row)
            row = step.backward(row)
            error = step.backward_abs(above) * up(step.backward_terms) + LEAST
        return cls(row, error, constant, slack * up(4) + LEAST)

    def bounds(self, forms: Forms) -> tuple[np.ndarray, np.ndarray]:
        """Proved bounds (B, R) on the functions, given the values as forms."""
        values, error = self.applied(forms)
        terms = up(sum(forms.forms.shape[1:]))
        reach = (np.abs(values[:, 1:]).sum(axis=1) + error + self.constant_error) * terms
        centre = values[:, 0] + self.constant
        slack = gamma(4) * (np.abs(values[:, 0]) + np.abs(self.constant) + reach) + LEAST
        low, high = centre - reach - slack, centre + reach + slack
        # After an overflow, nothing is known.
        is_known = np.isfinite(centre) & np.isfinite(reach)
        return np.where(is_known, low, -np.inf), np.where(is_known, high, np.inf)

    def moves(self, forms: Forms, parameters: int) -> np.ndarray:
        """How much each parameter moves the affine parts of the functions, (B, parameters, R); an estimate."""
        boxes = len(forms.forms)
        own = np.ascontiguousarray(forms.forms[:, 1 : 1 + parameters]).reshape(boxes * parameters, -1)
        return np.abs(own @ self.row.T).reshape(boxes, parameters, -1)

    def planes(self, forms: Forms, parameters: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Affine functions close to the given ones: slopes (B, R, parameters), offsets (B, R), and bounds (B, R).

        Each bound holds for the distance between the two functions anywhere on the box; it is infinite if unknown.
        """
        values, error = self.applied(forms)
        generators = np.abs(values[:, 1 + parameters :]).sum(axis=1)
        offset = values[:, 0] + self.constant
        slack = (generators + error + self.constant_error) * up(sum(forms.forms.shape[1:]))
        slack += gamma(4) * (np.abs(values[:, 0]) + np.abs(self.constant) + slack) + LEAST
        slopes = np.moveaxis(values[:, 1 : 1 + parameters], 1, 2)
        is_known = np.isfinite(offset) & np.isfinite(slack) & np.isfinite(slopes).all(axis=2)
        return slopes, offset, np.where(is_known, slack, np.inf)

    def at_corners(self, forms: Forms, corners: HullCorners) -> tuple[np.ndarray, np.ndarray]:
        """Values (B, V, R) at the corners of polytopes, of affine functions close to the given ones.

        Also bounds (B, R) on the distance between the two functions anywhere on the polytope; infinite if unknown.
        """
        values, error = self.applied(forms)
        reach = np.abs(values).sum(axis=1) + np.abs(self.constant)
        error += self.constant_error + gamma(values.shape[1] + 6) * reach + LEAST
        error += np.einsum("bk,bkr->br", corners.blur, np.abs(values[:, 1:]))
        at = np.einsum("bvk,bkr->bvr", corners.points, values[:, 1:]) + (values[:, :1] + self.constant)
        is_known = np.isfinite(at).all(axis=1) & np.isfinite(error)
        return at, np.where(is_known, error * up(sum(forms.forms.shape[1:])), np.inf)

    def applied(self, forms: Forms) -> tuple[np.ndarray, np.ndarray]:
        """Forms (B, 1 + m, R) of the functions without their constants, and bounds (B, R) on their errors."""
        boxes, rows, size = forms.forms.shape
        values = (forms.forms.reshape(boxes * rows, size) @ self.row.T).reshape(boxes, rows, len(self.row))
        magnitude = np.abs(forms.forms[:, 0]) + forms.spread
        error = (forms.remainder + gamma(size + 2) * magnitude) @ np.abs(self.row).T
        error += ((magnitude + forms.rest) * up(rows)) @ self.row_error.T
        if forms.norms is not None:
            error += forms.norms.total[:, None] * np.linalg.norm(self.row, axis=1) * ABOVE
        return values, error


@dataclass(frozen=True, eq=False)
class Passed:
    """A forward pass: the known bits (B, n) of every layer (see `decisions`), and the last hidden values.

    unstable (B,) counts the ReLUs and windows that may split each box, by more than rounding. pull (B, d) sums how much
    each parameter moves them, as a hint where to split. kept: the output of another layer, if requested.
    """

    bits: tuple[np.ndarray, ...]
    last: Forms
    unstable: np.ndarray
    pull: np.ndarray
    kept: Forms | None = None

    def take(self, chosen: np.ndarray) -> "Passed":
        """The chosen boxes."""
        bits, last = tuple(part[chosen] for part in self.bits), self.last.take_boxes(chosen)
        kept = None if self.kept is None else self.kept.take_boxes(chosen)
        return Passed(bits, last, self.unstable[chosen], self.pull[chosen], kept)


def decide_layers(
    segments: Segments, layers: Sequence[Layer], image: Forms, parameters: int = 0, room: int = 0,
    weights: Sequence[np.ndarray] | None = None,
) -> Iterator[DecidedLayer]:  # fmt: skip
    """Carry values through the classifier, layer by layer.

    The first `parameters` coordinates of the forms are those of theta; every layer may add `room` generators.
    `weights`: for every layer, the weights (n,) of its neurons in the pull.
    """
    values, own = image, room
    for number, (steps, layer) in enumerate(zip(segments[:-1], layers, strict=True)):
        for step in steps:
            values = through(values, step)
        if room and image.norms is not None:
            own = _affordable_room(segments[number:], values, room)
        found = decide(layer, values, parameters, own, None if weights is None else weights[number])
        values = found.output
        yield found


def _affordable_room(segments: Segments, values: Forms, room: int) -> int:
    """How many generators a layer of a deep network may add, for no later array to exceed NUMBERS numbers."""
    boxes, rows, size = values.forms.shape
    widest = max([size, *(max(step.sizes) for steps in segments[1:] for step in steps)])
    return max(0, min(room, NUMBERS // (boxes * widest) - rows))


def reaches(segments: Segments, rows: np.ndarray) -> list[np.ndarray]:
    """How much the outputs (n,) of each layer can move functions of the last hidden values, given as rows (R, n).

    An estimate for hints: it sums over the rows, and treats every neuron above as active.
    """
    reach = np.abs(rows).sum(axis=0)
    found = [reach]
    for steps in reversed(segments[1:-1]):
        row = reach[None]
        for step in reversed(steps):
            row = step.backward_abs(row)
        reach = row[0]
        found.append(reach)
    return found[::-1]


def forward(
    segments: Segments, layers: Sequence[Layer], image: Forms, parameters: int = 0, room: int = 0,
    weights: Sequence[np.ndarray] | None = None, keep: int | None = None,
) -> Passed:  # fmt: skip
    """Carry values through the classifier up to its last hidden layer; see `decide_layers`.

    keep: a layer whose output is returned as well.
    """
    bits, last, kept = [], image, None
    unstable, pull = np.zeros(len(image.forms), dtype=np.int64), np.zeros((len(image.forms), parameters))
    for layer, found in zip(layers, decide_layers(segments, layers, image, parameters, room, weights), strict=True):
        bits.append(found.bits)
        unstable += found.unstable
        pull += found.pull
        last = found.output
        if len(bits) - 1 == keep:
            kept = last
        if image.norms is not None and (found.bits == OPEN).sum() > HOPELESS * len(image.forms) * layer.decided:
            # Nothing would be known in the end, and carrying all generators there would be expensive.
            bits += [np.full((len(image.forms), len(above)), OPEN, dtype=np.uint8) for above in layers[len(bits) :]]
            last = unknown(len(image.forms), 1 + parameters, len(layers[-1]))
            if keep is not None and kept is None:
                kept = unknown(len(image.forms), 1 + parameters, len(layers[keep]))
            break
    return Passed(tuple(bits), last, unstable, pull, kept)


def gradients(segments: Segments, passed: Passed, logits: Readout, *, at: int | None = None) -> Intervals:
    """Enclosures (B, R, pixels) of the gradients of linear functions of the last hidden values.

    at: a layer; if given, the gradients (B, R, n) are with respect to its output.
    """
    boxes, count = len(passed.last.forms), len(logits.row)
    centre, radius = (np.repeat(part[None], boxes, axis=0) for part in (logits.row, logits.row_error))
    above = 0 if at is None else at + 1
    for steps, bits in zip(reversed(segments[above:-1]), reversed(passed.bits[above:]), strict=True):
        kernels.bit_gradients(centre, radius, bits, up(2))
        centre, radius = centre.reshape(boxes * count, -1), radius.reshape(boxes * count, -1)
        for step in reversed(steps):
            kernels.errors_above(centre, radius, gamma(step.backward_terms + 1), FLOOR)
            radius = np.ascontiguousarray(step.backward_abs(radius))
            kernels.lift_radii(radius, up(step.backward_terms), LEAST)
            centre = np.ascontiguousarray(step.backward(centre))
        centre, radius = centre.reshape(boxes, count, -1), radius.reshape(boxes, count, -1)
    return Intervals(centre, radius)
