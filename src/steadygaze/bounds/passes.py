"""From boxes of thetas to what neurons, margins and gradients can be on them: a pass forward, and one backward.

Forward, values are forms. Backward, gradients are intervals, and a ReLU of unknown sign has a derivative in [0, 1].
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..attention.filters import Intervals
from ..attention.options import Distance
from ..network.steps import Step
from ..perturbation import Perturbed
from ..tolerances import FLOOR, LEAST, LEAST_ROOT, UNIT, down, gamma, up
from . import box_kernels as kernels
from .forms import Corners, Forms, relax_clip, relax_relu, through

Segments = tuple[tuple[Step, ...], ...]


@dataclass(frozen=True, eq=False)
class Rows:
    """Linear functions row · h + constant of the last hidden values, (R, n) and (R,), each known up to its error."""

    row: np.ndarray
    row_error: np.ndarray
    constant: np.ndarray
    constant_error: np.ndarray

    @classmethod
    def of(cls, steps: Sequence[Step], targets: np.ndarray) -> "Rows":
        """The functions target · (the last steps applied to h), for targets (R, K) of whole numbers."""
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
        """Proved bounds (B, R) of the functions for values given as forms."""
        values, error = self._applied(forms)
        terms = up(sum(forms.forms.shape[1:]))
        reach = (np.abs(values[:, 1:]).sum(axis=1) + error + self.constant_error) * terms
        centre = values[:, 0] + self.constant
        slack = gamma(4) * (np.abs(values[:, 0]) + np.abs(self.constant) + reach) + LEAST
        low, high = centre - reach - slack, centre + reach + slack
        # Where a pass has overflowed, nothing is known.
        is_known = np.isfinite(centre) & np.isfinite(reach)
        return np.where(is_known, low, -np.inf), np.where(is_known, high, np.inf)

    def at_corners(self, forms: Forms, corners: Corners) -> tuple[np.ndarray, np.ndarray]:
        """Affine functions that the given ones are close to on polytopes: their values (B, V, R) at the corners.

        And how far (B, R) the given ones can be from these anywhere on the polytope; infinite where nothing is known.
        """
        values, error = self._applied(forms)
        reach = np.abs(values).sum(axis=1) + np.abs(self.constant)
        error += self.constant_error + gamma(values.shape[1] + 6) * reach + LEAST
        error += np.einsum("bk,bkr->br", corners.blur, np.abs(values[:, 1:]))
        at = np.einsum("bvk,bkr->bvr", corners.points, values[:, 1:]) + (values[:, :1] + self.constant)
        is_known = np.isfinite(at).all(axis=1) & np.isfinite(error)
        return at, np.where(is_known, error * up(sum(forms.forms.shape[1:])), np.inf)

    def _applied(self, forms: Forms) -> tuple[np.ndarray, np.ndarray]:
        """Forms (B, 1 + m, R) of the functions without their constants, and a bound (B, R) of what they leave out."""
        boxes, rows, size = forms.forms.shape
        values = (forms.forms.reshape(boxes * rows, size) @ self.row.T).reshape(boxes, rows, len(self.row))
        magnitude = np.abs(forms.forms[:, 0]) + forms.spread
        error = (forms.remainder + gamma(size + 2) * magnitude) @ np.abs(self.row).T
        error += ((magnitude + forms.remainder) * up(rows)) @ self.row_error.T
        return values, error


@dataclass(frozen=True, eq=False)
class Passed:
    """One pass: proved bounds (B, n) of the input of every ReLU layer, and the last hidden values.

    pull (B, d) adds up how much each parameter moves the neurons of unknown sign: only a hint where to split.
    """

    low: tuple[np.ndarray, ...]
    high: tuple[np.ndarray, ...]
    last: Forms
    pull: np.ndarray

    def take(self, chosen: np.ndarray) -> "Passed":
        """Some of the boxes."""
        low, high = (tuple(part[chosen] for part in ends) for ends in (self.low, self.high))
        corners = None if self.last.corners is None else self.last.corners.take(chosen)
        last = Forms(self.last.forms[chosen], self.last.remainder[chosen], corners)
        return Passed(low, high, last, self.pull[chosen])

    @property
    def unstable(self) -> np.ndarray:
        """Neurons of the classifier that may split the box (B,): those on both sides of zero by more than rounding."""
        counts = [is_split(low, high).sum(axis=1) for low, high in zip(self.low, self.high, strict=True)]
        return np.sum(counts, axis=0) if counts else np.zeros(len(self.last.forms), dtype=np.int64)


TOUCHING = 1e-9
"""Neurons that pass zero by less than this share of their range only touch it, as far as counting goes."""


def is_split(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Where bounds (B, n) lie on both sides of zero by more than rounding; no proof, used for counting alone."""
    least = TOUCHING * (high - low)
    return (low < -least) & (high > least)


def pixels(
    perturbed: Perturbed, cell: int, low: np.ndarray, high: np.ndarray, vertices: np.ndarray | None = None
) -> Forms:
    """The clipped pixels on boxes with corners low and high (B, d), in t, of one knot cell.

    With vertices (B, V, d) in the boxes: on their hulls alone, and as far around as the boxes reach.
    """
    domain, piece = perturbed.domain, perturbed.cells[cell]
    d = domain.dimension
    slope, base = piece.slope.reshape(d, -1), (perturbed.x0 + piece.offset).ravel()
    middle = 0.5 * (low + high)
    # Not less than either half, however the middle was rounded.
    half = np.maximum(high - middle, middle - low) * (1.0 + 4.0 * UNIT)
    thetas = domain.to_theta(middle)
    forms = np.empty((len(low), 1 + d, len(base)))
    forms[:, 0] = base + thetas @ slope
    forms[:, 1:] = (half * domain.widths)[:, :, None] * slope
    # A handful of roundings of numbers up to this size, those inside offset and slope of a moving image included.
    size = perturbed.magnitudes
    error = np.where(size > 0.0, gamma(16 + 4 * d) * size + LEAST, 0.0)
    corners = None
    if vertices is not None:
        # In the coordinates of their boxes; they reach as far beyond as the boxes do beyond them.
        points = (vertices - middle[:, None]) / half[:, None]
        around = np.maximum(vertices.min(axis=1) - low, high - vertices.max(axis=1))
        corners = Corners(points, around / half * (1.0 + 8.0 * UNIT) + 8.0 * UNIT * (1.0 + np.abs(middle) / half))
    unclipped = Forms(forms, np.tile(error, (len(low), 1)), corners)
    return relax_clip(*unclipped.bounds()).of(unclipped)


def forward(segments: Segments, image: Forms, parameters: int = 0, room: int = 0) -> Passed:
    """Carry values through the classifier up to its last hidden layer.

    The first coordinates of the forms are those of so many parameters; every layer may add `room` generators.
    """
    lows, highs = [], []
    values = image
    pull = np.zeros((len(image.forms), parameters))
    for steps in segments[:-1]:
        for step in steps:
            values = through(values, step)
        low, high = values.bounds()
        lows.append(low)
        highs.append(high)
        is_open = is_split(low, high).astype(np.float64)
        pull += np.einsum("bkn,bn->bk", np.abs(values.forms[:, 1 : 1 + parameters]), is_open)
        values = relax_relu(low, high).of(values, room)
    return Passed(tuple(lows), tuple(highs), values, pull)


def gradients(segments: Segments, passed: Passed, logits: Rows) -> Intervals:
    """Enclosures (B, R, pixels) of the gradients of the logits, given as rows over the last hidden values."""
    boxes, count = len(passed.last.forms), len(logits.row)
    centre, radius = (np.repeat(part[None], boxes, axis=0) for part in (logits.row, logits.row_error))
    layers = zip(segments[:-1], passed.low, passed.high, strict=True)
    for steps, low, high in reversed(list(layers)):
        kernels.relu_gradients(centre, radius, low, high, up(2))
        centre, radius = centre.reshape(boxes * count, -1), radius.reshape(boxes * count, -1)
        for step in reversed(steps):
            kernels.errors_above(centre, radius, gamma(step.backward_terms + 1), FLOOR)
            radius = np.ascontiguousarray(step.backward_abs(radius))
            kernels.lift_radii(radius, up(step.backward_terms), LEAST)
            centre = np.ascontiguousarray(step.backward(centre))
        centre, radius = centre.reshape(boxes, count, -1), radius.reshape(boxes, count, -1)
    return Intervals(centre, radius)


def inconsistencies(maps: Intervals, low: np.ndarray, high: np.ndarray, distance: Distance) -> np.ndarray:
    """Proved bounds (B, 2) of Σ_j dist(map_j, expected_j); maps (B, K, pixels), expected between low and high."""
    boxes, classes, size = maps.centre.shape
    sums = np.empty((boxes, classes, 2))
    kernels.map_distances(maps.centre, maps.radius, low, high, gamma(2), distance.value, sums)
    if distance is Distance.L2:
        # A sum of squares that overflows says nothing from below.
        sums[:, :, 0] = np.where(np.isfinite(sums[:, :, 0]), sums[:, :, 0], 0.0)
        sums = np.sqrt(sums)
    lower, upper = sums.sum(axis=1).T
    terms = classes + size + 8
    least, most = np.maximum(lower * down(terms) - classes * LEAST_ROOT, 0.0), upper * up(terms) + classes * LEAST_ROOT
    # Where a pass has overflowed, nothing is known.
    return np.stack([np.where(np.isfinite(least), least, 0.0), np.where(np.isnan(most), np.inf, most)], axis=1)
