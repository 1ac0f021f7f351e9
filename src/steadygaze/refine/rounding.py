"""How far the numbers of a plain pass can be from those of the real-valued network, at single thetas.

A sum of n products is off by at most about n·2⁻⁵³·Σ|products|. Carried on by absolute weights that bounds every neuron
of a network with few layers, whatever the rounding. On deep networks such products say nothing; there the errors are
taken as independent, as in the usual random model of rounding, and carried on by signed weights (see `SPREAD`). What a
neuron whose sign is then not certain can do counts in full. Nothing here speaks of other thetas.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..tolerances import UNIT
from .plain import Plain, Trace

PIXEL_SHARE = 64.0 * UNIT
"""How far a computed pixel can be from the real one, as a share of what is added up to it: a sum of at most four
changes, each made by at most five operations."""

SAYS_NOTHING = 0.005
"""Share of neurons without a certain sign from which on worst cases are not worth anything."""

WORTH_MORE = 1e-3
"""A worst case of the inconsistency above this share of the original maps' size is replaced likewise."""

PROBES = 8
"""Error vectors with random signs that are carried through the network in place of worst cases."""

SPREAD = 4.0
"""Largest error in units of the root mean square over the probes. The probes carry the worst case n·2⁻⁵³ of every
single sum, about √n times what rounding errors with random signs add up to, so this is far beyond four deviations."""

SEED = 20242


@dataclass(frozen=True, eq=False)
class Rounding:
    """Errors of the pixels (B, n), and layer by layer of the ReLUs' inputs and, last, of the logits (B, n).

    `local` are those that the steps into a layer make themselves; `total` has those carried on from below as well.
    """

    pixels: np.ndarray
    local: list[np.ndarray]
    total: list[np.ndarray]


def bound_rounding(plain: Plain, thetas: np.ndarray, trace: Trace) -> Rounding:
    """Bound the errors of the trace of thetas (B, d)."""
    pixels = np.stack([_pixel_errors(plain, theta) for theta in thetas])
    inputs, carried = trace.pixels, pixels
    local, total = [], []
    for segment, values in zip(plain.segments, [*trace.values, trace.logits], strict=True):
        own, current = np.zeros_like(inputs), inputs
        for step in segment:
            share = _share(step.terms)
            own = step.forward_abs(share * np.abs(current) + (1.0 + share) * own) + share * step.bias_size
            carried = step.forward_abs((1.0 + share) * carried)
            current = step.forward(current) + step.bias
        local.append(own)
        total.append(carried + own)
        inputs = np.maximum(values, 0.0)
        # Where both the computed and the real value are negative, nothing of the error passes.
        carried = np.where(values < -total[-1], 0.0, total[-1])
    plain.count(3 * len(thetas))
    doubts = sum(is_doubtful(value, error).sum(axis=1) for value, error in zip(trace.values, total, strict=False))
    if np.max(doubts, initial=0.0) > SAYS_NOTHING * sum(value.shape[1] for value in trace.values):
        total = [np.minimum(a, b) for a, b in zip(total, _spread(plain, trace, pixels, local), strict=True)]
    return Rounding(pixels, local, total)


def margin_slack(plain: Plain, trace: Trace, rounding: Rounding, rows: np.ndarray) -> np.ndarray:
    """Bounds (B, R) of the error of rows (B, R, K) times the logits.

    The errors that each layer makes, times the gradient under the pattern of the trace; where the sign of a neuron is
    not certain, its whole error counts as well.
    """
    slack = _against(rows, rounding.local[-1])
    *layers, pixels = plain.backward(rows, trace)
    for gradient, value, local, total in zip(
        layers, reversed(trace.values), rounding.local[-2::-1], rounding.total[-2::-1], strict=True
    ):
        doubt = np.where(value > 0.0, local, 0.0) + np.where(is_doubtful(value, total), total, 0.0)
        slack += _against(gradient, doubt)
    # Twice: the gradients are rounded as well, by a share of themselves that is small for the same reason.
    return 2.0 * (slack + _against(pixels, rounding.pixels))


@dataclass(frozen=True, eq=False)
class Measured:
    """Margins (B,) and inconsistencies (B,) at thetas, each with a bound (B,) of its rounding error.

    Where attention was not asked for, inconsistencies are NaN; where the map is not certain, their bound is infinite.
    """

    margin: np.ndarray
    margin_slack: np.ndarray
    inconsistency: np.ndarray
    inconsistency_slack: np.ndarray


class Measuring:
    """Measures thetas of one problem, with bounds of the rounding errors."""

    def __init__(self, plain: Plain) -> None:
        self.plain = plain

    def at(self, thetas: np.ndarray, *, has_attention: bool) -> Measured:
        """Margins, and inconsistencies if wanted, at thetas (B, d)."""
        plain, count = self.plain, len(thetas)
        table = np.full((4, count), np.nan)
        table[3] = np.inf
        for part in plain.batches(count, 2 * len(plain.classes) if has_attention else PROBES):
            trace = plain.trace(thetas[part])
            rounding = bound_rounding(plain, thetas[part], trace)
            table[0, part] = plain.margins_of(trace.logits)
            table[1, part] = margin_slack(plain, trace, rounding, plain.against_rival(trace.logits)[:, None])[:, 0]
            if has_attention:
                table[2, part] = plain.distances(thetas[part], plain.maps(trace))
                table[3, part] = self._inconsistency_slack(trace, rounding, table[2, part])
        return Measured(*table)

    def _inconsistency_slack(self, trace: Trace, rounding: Rounding, values: np.ndarray) -> np.ndarray:
        """Bounds (B,) of the error of the inconsistencies `values` (B,).

        Moving a map does not enlarge an error. The maps of the unperturbed image count as well.
        """
        plain = self.plain
        errors = _map_errors(plain, trace, self._size) + self._original_error
        # Rounding of the differences and of the sums in the norms.
        errors += 4.0 * (plain.perturbed.x0.size + len(plain.classes) + 8) * UNIT * (values + 2.0 * self._size)
        for value, total in zip(trace.values, rounding.total, strict=False):
            errors[is_doubtful(value, total).any(axis=1)] = np.inf
        return errors

    @cached_property
    def _size(self) -> float:
        return float(self.plain.size(self.plain.original).sum())

    @cached_property
    def _original_error(self) -> float:
        return float(_map_errors(self.plain, self.plain.unperturbed, self._size)[0])


def is_doubtful(value: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Whether an error may change the sign of a value; a value without any error is certain, 0 too."""
    return (np.abs(value) <= error) & (error > 0.0)


def _map_errors(plain: Plain, trace: Trace, size: float) -> np.ndarray:
    """Bounds (B,) of what errors of the maps add to an inconsistency, for a fixed pattern."""
    options = plain.problem.attention
    enlarged = options.filter.lipschitz(options.distance.value)
    worst = enlarged * plain.size(_carried_back(plain, trace, are_signed=False)).sum(axis=1)
    if worst.max() <= WORTH_MORE * size:
        return worst
    likely = enlarged * SPREAD * plain.size(_carried_back(plain, trace, are_signed=True)).sum(axis=1)
    return np.minimum(worst, likely)


def _carried_back(plain: Plain, trace: Trace, *, are_signed: bool) -> np.ndarray:
    """Errors (B, K', C, H, W) of the maps: each product's own, carried on by absolute weights or with random signs."""
    batch, classes = len(trace.logits), len(plain.classes)
    rows = plain.class_rows(batch).reshape(batch * classes, -1)
    errors, generator = np.zeros_like(rows), np.random.default_rng(SEED)
    for number, segment in enumerate(reversed(plain.segments)):
        for step in reversed(segment):
            own = _share(step.backward_terms) * np.abs(rows)
            if are_signed:
                # One draw for all thetas, so that what is found for one does not depend on the others.
                signs = np.tile(_signs(generator, (classes, step.sizes[0])), (batch, 1))
                errors = step.backward(errors) + signs * step.backward_abs(own)
            else:
                errors = step.backward_abs(own + (1.0 + _share(step.backward_terms)) * errors)
            rows = step.backward(rows)
        if number < len(trace.values):
            mask = np.repeat((trace.values[-1 - number] > 0.0).astype(np.float64), classes, axis=0)
            rows, errors = rows * mask, errors * mask
    plain.count((3 if are_signed else 2) * len(rows))
    return errors.reshape(batch, classes, *plain.perturbed.x0.shape)


def _spread(plain: Plain, trace: Trace, pixels: np.ndarray, local: list[np.ndarray]) -> list[np.ndarray]:
    """As `Rounding.total`, with random signs in place of worst cases."""
    generator, batch = np.random.default_rng(SEED), len(pixels)
    errors = (pixels[:, None] * _signs(generator, (PROBES, pixels.shape[1]))).reshape(batch * PROBES, -1)
    spread = []
    for number, (segment, own) in enumerate(zip(plain.segments, local, strict=True)):
        for step in segment:
            errors = step.forward(errors)
        errors = errors.reshape(batch, PROBES, -1) + own[:, None] * _signs(generator, (PROBES, own.shape[1]))
        deviation = np.sqrt((errors * errors).mean(axis=1))
        # A few probes may miss a neuron by chance; the mean of its layer is not missed.
        spread.append(own + SPREAD * np.maximum(deviation, deviation.mean(axis=1, keepdims=True)))
        if number < len(trace.values):
            errors = errors * (trace.values[number] > 0.0).astype(np.float64)[:, None]
        errors = errors.reshape(batch * PROBES, -1)
    plain.count(batch * PROBES)
    return spread


def _signs(generator: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return 2.0 * generator.integers(0, 2, size=shape) - 1.0


def _pixel_errors(plain: Plain, theta: np.ndarray) -> np.ndarray:
    """Errors (pixels,) of an image: none where the clip decides, or no perturbation changes the pixel."""
    image, slope = plain.unclipped(theta)
    is_moved = (slope != 0.0).any(axis=0) | (plain.perturbed.cell_of(theta).offset.ravel() != 0.0)
    error = PIXEL_SHARE * plain.perturbed.magnitudes
    is_clipped = (image < -error) | (image > 1.0 + error)
    return np.where(is_moved & ~is_clipped, error, 0.0)


def _share(terms: int) -> float:
    """Relative error of a sum of so many products and a bias, rounded up."""
    return 1.01 * (terms + 2) * UNIT


def _against(rows: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """|rows| (B, R, n) times errors (B, n): (B, R)."""
    return np.einsum("brn,bn->br", np.abs(rows), errors)
