"""Bounds the rounding of passes at single thetas: of neurons, margins, maps and pixels.

A sum of n products is off by at most about n·2⁻⁵³·Σ|products|. Absolute weights propagate these errors, which bounds
every neuron of a network with few layers, whatever the rounding. On deep networks such worst cases become useless.
There the errors count as independent, as in the usual random model of rounding, and signed weights propagate them (see
`SPREAD`).
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...network.doubts import doubtful_bits, passed_errors, pattern_errors
from ...tolerances import UNIT

if TYPE_CHECKING:
    from .pointwise import PointPasses, Trace

# The error of a pixel relative to its terms, for each of at least four added changes: up to five operations each.
CHANGE_SHARE = 16.0 * UNIT
MOST_DOUBTS = 0.005  # if more than this share of neurons has an uncertain sign, random signs replace worst cases
MOST_MAP_ERROR = 1e-3  # the largest worst case of the inconsistency, as a share of the size of the original maps
PROBES = 8  # error vectors with random signs that pass through the network instead of worst cases
# The largest error in units of the root mean square over the probes. The probes carry the worst case n·2⁻⁵³ of every
# single sum, about √n times the sum of rounding errors with random signs, so this is far beyond four deviations.
SPREAD = 4.0
SEED = 20242


class Rounding(NamedTuple):
    """Errors (B, n) of the pixels, then, layer by layer, of the ReLUs' inputs and finally of the logits."""

    pixels: np.ndarray
    local: list[np.ndarray]  # from the steps into a layer alone
    total: list[np.ndarray]  # including the errors of the layers below


def bound_rounding(passes: "PointPasses", thetas: np.ndarray, trace: "Trace") -> Rounding:
    """Bound the errors of the trace of thetas (B, d)."""
    pixels = np.stack([pixel_errors(passes, theta) for theta in thetas])
    inputs, carried = trace.pixels, pixels
    local, total = [], []
    for segment, layer, values in zip(
        passes.segments, [*passes.layers, None], [*trace.values, trace.logits], strict=True
    ):
        own, current = np.zeros_like(inputs), inputs
        for step in segment:
            share = _share(step.terms)
            own = step.forward_abs(share * np.abs(current) + (1.0 + share) * own) + share * step.bias_size
            carried = step.forward_abs((1.0 + share) * carried)
            current = step.forward(current) + step.bias
        local.append(own)
        total.append(carried + own)
        if layer is not None:
            inputs, carried = layer.apply(values), passed_errors(layer, values, total[-1])
    passes.multiplications += 3 * len(thetas) * passes.work
    doubts = sum(
        doubtful_bits(layer, value, error).sum(axis=1)
        for layer, value, error in zip(passes.layers, trace.values, total, strict=False)
    )
    if np.max(doubts, initial=0.0) > MOST_DOUBTS * sum(value.shape[1] for value in trace.values):
        total = [np.minimum(a, b) for a, b in zip(total, _spread(passes, trace, pixels, local), strict=True)]
    return Rounding(pixels, local, total)


def margin_slack(passes: "PointPasses", trace: "Trace", rounding: Rounding, rows: np.ndarray) -> np.ndarray:
    """Bounds (B, R) on the error of rows (B, R, K) times the logits."""
    # The errors of each layer times the gradient under the pattern of the trace.
    slack = _against(rows, rounding.local[-1])
    *layers, pixels = passes.backward(rows, trace)
    for gradient, layer, value, local, total in zip(
        layers,
        reversed(passes.layers),
        reversed(trace.values),
        rounding.local[-2::-1],
        rounding.total[-2::-1],
        strict=True,
    ):
        # A neuron with an uncertain bit adds its whole error.
        doubt = np.where(layer.bits(value), local, 0.0) + pattern_errors(layer, value, total)
        slack += _against(gradient, doubt)
    # Twice: the gradients are rounded as well, by a relative error that is small for the same reason.
    return 2.0 * (slack + _against(pixels, rounding.pixels))


def map_errors(passes: "PointPasses", trace: "Trace", *, is_expected: bool = False) -> np.ndarray:
    """Bounds (B,) on how much errors of the maps add to an inconsistency, for a fixed pattern.

    is_expected: bound the maps expected at any theta instead, given the trace of the unperturbed image.
    """
    options = passes.question.attention
    enlarged = options.filter.lipschitz(options.distance.value)
    worst = enlarged * passes.size(_carried_back(passes, trace, is_expected, are_signed=False)).sum(axis=1)
    if worst.max() <= MOST_MAP_ERROR * passes.map_size:
        return worst
    likely = enlarged * SPREAD * passes.size(_carried_back(passes, trace, is_expected, are_signed=True)).sum(axis=1)
    return np.minimum(worst, likely)


def _carried_back(passes: "PointPasses", trace: "Trace", is_expected: bool, *, are_signed: bool) -> np.ndarray:
    """Errors (B, K', C, H, W) of the maps: those of each product, propagated by absolute weights or random signs."""
    batch, classes = len(trace.logits), len(passes.classes)
    rows = passes.class_rows(batch).reshape(batch * classes, -1)
    errors, generator = np.zeros_like(rows), np.random.default_rng(SEED)
    for segment, active in zip(reversed(passes.aimed), [*passes.active(trace)[::-1], None], strict=True):
        for step in reversed(segment):
            own = _share(step.backward_terms) * np.abs(rows)
            if are_signed:
                # One draw for all thetas: then the bound for a theta does not depend on the others.
                signs = np.tile(_signs(generator, (classes, step.sizes[0])), (batch, 1))
                errors = step.backward(errors) + signs * step.backward_abs(own)
            else:
                errors = step.backward_abs(own + (1.0 + _share(step.backward_terms)) * errors)
            rows = step.backward(rows)
        if active is not None:
            mask = np.repeat(active, classes, axis=0)
            rows, errors = rows * mask, errors * mask
    passes.multiplications += (3 if are_signed else 2) * len(rows) * passes.work
    baseline = passes.question.attention.method.factor_baseline
    if baseline is not None:
        # Errors of the gradients, of the pixels, and of the product.
        factor = np.repeat(np.abs(trace.pixels - baseline), classes, axis=0)
        factor = np.full_like(factor, passes.question.attention.largest_factor) if is_expected else factor
        pixels = _sum_errors(passes) + 4.0 * UNIT * (factor + abs(baseline))
        errors = np.abs(errors) * factor + np.abs(rows) * pixels
    return errors.reshape(batch, classes, *passes.perturbed.x0.shape)


def _spread(passes: "PointPasses", trace: "Trace", pixels: np.ndarray, local: list[np.ndarray]) -> list[np.ndarray]:
    """Like `Rounding.total`, with random signs instead of worst cases."""
    generator, batch = np.random.default_rng(SEED), len(pixels)
    errors = (pixels[:, None] * _signs(generator, (PROBES, pixels.shape[1]))).reshape(batch * PROBES, -1)
    spread = []
    for segment, own, active in zip(passes.segments, local, [*passes.active(trace), None], strict=True):
        for step in segment:
            errors = step.forward(errors)
        errors = errors.reshape(batch, PROBES, -1) + own[:, None] * _signs(generator, (PROBES, own.shape[1]))
        deviation = np.sqrt((errors * errors).mean(axis=1))
        # A few probes may miss a neuron by chance, but not the mean of its layer.
        spread.append(own + SPREAD * np.maximum(deviation, deviation.mean(axis=1, keepdims=True)))
        if active is not None:
            errors = errors * active[:, None]
        errors = errors.reshape(batch * PROBES, -1)
    passes.multiplications += batch * PROBES * passes.work
    return spread


def _signs(generator: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return 2.0 * generator.integers(0, 2, size=shape) - 1.0


def pixel_errors(passes: "PointPasses", theta: np.ndarray) -> np.ndarray:
    """Errors (pixels,) of an image: zero if the clip decides, or no perturbation changes the pixel."""
    if passes.perturbed.is_curved:
        image, is_moved = passes.perturbed.unclipped(theta[None]).ravel(), True
    else:
        image, slope = passes.unclipped(theta)
        is_moved = (slope != 0.0).any(axis=0) | (passes.perturbed.cell_of(theta).offset.ravel() != 0.0)
    error = _sum_errors(passes)
    is_clipped = (image < -error) | (image > 1.0 + error)
    return np.where(is_moved & ~is_clipped, error, 0.0)


def _share(terms: int) -> float:
    """Relative error of a sum of `terms` products and a bias, rounded up."""
    return 1.01 * (terms + 2) * UNIT


def _against(rows: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """|rows| (B, R, n) times errors (B, n): (B, R)."""
    return np.einsum("brn,bn->br", np.abs(rows), errors)


def _sum_errors(passes: "PointPasses") -> np.ndarray:
    """Bounds (pixels,) on the rounding errors of all pixels at any theta, before the clip."""
    return CHANGE_SHARE * max(4, passes.perturbed.domain.dimension) * passes.perturbed.magnitudes
