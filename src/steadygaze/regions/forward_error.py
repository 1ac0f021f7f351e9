"""Bounds the error of the computed forms of a set of regions for every neuron, active or not.

A region here is the hull of its vertices plus all points within `coverage` of it: splits round vertices, so the hulls
alone may leave gaps. For every such point, with z the true input of a neuron of layer l and F its computed form, the
error of a layer obeys

    z_l − F_l = W_l (h_{l−1} − ĥ_{l−1}) + ε_l,     |h − ĥ| ≤ |z − F| + missed,

where h = max(z, 0) and ĥ is F or 0, according to the pattern. The ReLU increases no difference, and if the pattern has
the wrong sign, |F| ≤ `missed`. So errors pass through every neuron, active or not, and no sign must be certain.
Carried neurons pass their errors on unchanged. The largest of several entries is off by at most the largest of their
errors; the pattern's winner is below the largest entry by at most `missed`. The next layer sums the entries of a
window, so the error of a window counts once (`of_windows`).
ε holds the errors of the layer itself: the rounding of sums, of updates and of values at vertices, the folding of
several linear operators into one matrix, and the coverage. Two bounds are combined: one for each neuron, by absolute
weights, and one for the length of the whole vector, by spectral norms. The second is smaller by orders of magnitude on
deep networks.
"""

from collections.abc import Sequence
from functools import lru_cache
from weakref import WeakKeyDictionary, ref

import numpy as np

from ..accuracy import ADDITIONS, CHANGES, Accuracy
from ..compound import Compound, row_terms
from ..errors import ModelError
from ..network.graph import AffineMap
from ..network.layers import Layer
from ..network.steps import Step, is_folded, magnitude
from ..tolerances import LEAST, NEAR, OWN, UNIT, gamma

_KNOWN: WeakKeyDictionary[Accuracy, tuple[ref[Compound], list[np.ndarray]]] = WeakKeyDictionary()

LARGEST_SPECTRAL = 1024
"""The spectral norm of a dense matrix is bounded only up to this side: larger ones would take too long."""

SQUARINGS = 6
"""How often a Gram matrix is squared: the bound is at most n^(1/128) times the spectral norm."""


def coverage(depth: int, gap: float = 0.0) -> float:
    """The largest distance, along every axis of t, from a point of the domain to the nearest region.

    A new vertex is off its edge by at most 4 · 2⁻⁵³ along an axis: the rounding of a difference, a product and a sum of
    numbers up to 1. So at each of the `depth` cuts, the two parts of a polygon leave gaps of at most that depth. If
    vertices were snapped to a plane, the parts of a polyhedron leave deeper gaps, by at most `gap`, which is measured
    at every cut (`polyhedron_kernels.gap`), with a few roundings of its own.
    """
    return (4.0 * UNIT + (gap + 16.0 * UNIT if gap > 0.0 else 0.0)) * (depth + 4)


def region_coverage(accuracy: Accuracy, more_cuts: int = 0) -> float:
    """The `coverage` of regions, or of their parts after `more_cuts` further cuts."""
    return coverage(accuracy.depth + more_cuts, accuracy.gap)


def forward_errors(compound: Compound, accuracy: Accuracy) -> list[np.ndarray]:
    """Bounds on |z − F| for every neuron of the classifier, layer by layer, and for the logits; infinite if unknown.

    The bounds hold on every region and within `coverage` of it. Labels, attention and the self-check share them.
    """
    known = _KNOWN.get(accuracy)
    if known is None or known[0]() is not compound:
        with np.errstate(over="ignore", invalid="ignore"):
            errors = [np.where(np.isfinite(error), error, np.inf) for error in _propagate(compound, accuracy)]
        for error in errors:
            error.setflags(write=False)
        known = _KNOWN[accuracy] = ref(compound), errors
    return list(known[1])


def kink_share(compound: Compound, accuracy: Accuracy, errors: list[np.ndarray]) -> float:
    """A bound on the share of the domain where the sign of some neuron of the classifier is not certain.

    A kink is as wide as error over slope: there the pattern of a region, and with it the attention map, may be wrong.
    Regions that are `doubtful`, because some neuron is only rounding on the whole region, are not included.
    """
    if not errors[:-1]:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        return _kink_share(compound, accuracy, errors)


def _kink_share(compound: Compound, accuracy: Accuracy, errors: list[np.ndarray]) -> float:
    missed = by_layer(compound, accuracy.missed)
    error = np.concatenate(
        [kink_errors(layer, *both) for layer, *both in zip(compound.graph.layers, errors, missed, strict=False)]
    )
    pixel = float(pixel_errors(compound, accuracy).max())
    near = np.min([cell.program.near[-len(error) - compound.graph.classes :] for cell in compound.programs], axis=0)
    # In the clip's second layer, the scales of pixels are at least 1; in the first, they are not needed.
    if not (error < near[: len(error)]).all() or not pixel < NEAR:
        return 1.0
    edges, corners = accuracy.beside
    share = compound.coordinates * float(error @ edges) + float(error @ (error * corners))
    share += accuracy.slivers + _beside_pixels(compound, accuracy, pixel)
    return min(1.0, float(share) * OWN) if np.isfinite(share) else 1.0


def pixel_kinks(compound: Compound, accuracy: Accuracy) -> float:
    """A bound on the share of the domain where a pixel is as close to an end of its clip as its error."""
    pixel = float(pixel_errors(compound, accuracy).max())
    near = min(
        float(program.near[: program.offsets[1]].min(initial=NEAR))
        for program in (cell.program for cell in compound.programs)
    )
    share = _beside_pixels(compound, accuracy, pixel) * OWN
    return min(1.0, share) if pixel < near and np.isfinite(share) else 1.0


def _beside_pixels(compound: Compound, accuracy: Accuracy, error: float) -> float:
    edges, corners = accuracy.pixels_beside
    return float(compound.coordinates * error * edges + error * error * corners)


def kink_errors(layer: Layer, error: np.ndarray, missed: np.ndarray) -> np.ndarray:
    """The largest |value| (n,), or lead over another entry, at which the bit of a neuron is not certain.

    For two entries of a window this is the sum of their errors; carried neurons are always certain.
    """
    error = error + missed
    if layer.is_plain:
        return error
    if len(layer.entries):
        largest = np.maximum.reduceat(error[layer.entries], layer.starts)
        error[layer.entries] += np.repeat(largest, window_sizes(layer))
    error[layer.carried] = 0.0
    return error


def window_sizes(layer: Layer) -> np.ndarray:
    """The number of entries of each window of a layer."""
    return np.diff(layer.starts, append=len(layer.entries))


def of_windows(layer: Layer, values: np.ndarray) -> np.ndarray:
    """Values (n,) of a layer with the largest of each window at its first entry, and zero at the others."""
    if not len(layer.entries):
        return values
    values = values.copy()
    largest = np.maximum.reduceat(values[layer.entries], layer.starts)
    values[layer.entries] = 0.0
    values[layer.entries[layer.starts]] = largest
    return values


def plain_errors(compound: Compound, accuracy: Accuracy) -> list[np.ndarray]:
    """Like `forward_errors`, for a plain forward pass of the graph at a theta of any of the regions."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = gamma(32) * compound.perturbed.magnitudes * OWN
        length = _length(error)
        size, errors = np.maximum(error, 1.0), []
        peaks, layers = [*by_layer(compound, accuracy.peaks), None], [*compound.graph.layers, None]
        for affine, segment, peak, layer in zip(compound.chain.maps, compound.graph.steps, peaks, layers, strict=True):
            own = _folding(segment, size + error) + LEAST
            error = np.minimum(affine.absolute @ error, (affine.row_norms * OWN + LEAST) * length) + own
            length = min(_spectral(affine, length, own), _length(error))
            error = np.minimum(error, length) * OWN
            errors.append(np.where(np.isfinite(error), error, np.inf))
            if peak is not None and layer is not None:
                error = of_windows(layer, error)
                size = of_windows(layer, peak) + error
        return errors


def _propagate(compound: Compound, accuracy: Accuracy) -> list[np.ndarray]:
    peaks, missed = (by_layer(compound, values) for values in (accuracy.peaks, accuracy.missed))
    around = region_coverage(accuracy)
    size = np.maximum(_pixel_sizes(compound), 1.0)
    error = pixel_errors(compound, accuracy)
    length = _length(error)
    errors = []
    for number, (affine, segment) in enumerate(zip(compound.chain.maps, compound.graph.steps, strict=True)):
        scale = affine.absolute @ size + np.abs(affine.bias)
        # The coefficients of the logits are not recorded; no form exceeds its scale.
        peak = peaks[number] if number < len(peaks) else scale
        terms = row_terms(affine)
        # Dense columns are added four at a time.
        own = ((terms / 4 if isinstance(affine.matrix, np.ndarray) else terms) + 16) * UNIT * scale
        if number == 0:
            # The weights of pixels on one line were added up; those of constant pixels became part of the bias.
            own += (2.0 * UNIT + 2 * terms * float(np.finfo(np.longdouble).eps)) * scale
        if is_folded(segment):
            own += _folding(segment, size + error)
        additions, changes = accuracy.drift[ADDITIONS, number], accuracy.drift[CHANGES, number]
        own += UNIT * (additions * peak + changes)
        own += (around + 8.0 * UNIT) * peak + LEAST
        error = np.minimum(affine.absolute @ error, (affine.row_norms * OWN + LEAST) * length) + own
        length = min(_spectral(affine, length, own), _length(error))
        error = np.minimum(error, length) * OWN
        errors.append(error)
        if number < len(missed):
            layer = compound.graph.layers[number]
            left = of_windows(layer, missed[number])
            error = of_windows(layer, error) + left
            length = (length + _length(left)) * OWN
            size = of_windows(layer, peak)
    return errors


def refuse_overflow(name: str, compound: Compound, *values: np.ndarray) -> None:
    """Raise ModelError with the first layer that can overflow, unless all values of a model are finite."""
    if all(np.isfinite(part).all() for part in values):
        return
    size, where = np.maximum(_pixel_sizes(compound), 1.0), "the logits overflow"
    with np.errstate(over="ignore", invalid="ignore"):
        for number, affine in enumerate(compound.chain.maps[:-1], start=1):
            size = affine.absolute @ size + np.abs(affine.bias)
            if not np.isfinite(size).all():
                where = f"ReLU layer {number} overflows"
                break
    raise ModelError(f"{name}: {where} float64 in the domain; scale down the weights of the model")


def by_layer(compound: Compound, values: np.ndarray) -> list[np.ndarray]:
    """Split values of all neurons of the classifier by layer."""
    return np.split(values, np.cumsum(compound.hidden)[:-1]) if compound.hidden else []


def _folding(segment: Sequence[Step], size: np.ndarray) -> np.ndarray:
    """The error, for values up to `size` (n_in,), due to rounded constants of steps and to joining the steps.

    `terms` counts the products of a step and the roundings of its constants; the extra eight cover adding the bias.
    """
    return gamma(sum(step.terms + 8 for step in segment)) * magnitude(segment, size[None])[0]


def pixel_errors(compound: Compound, accuracy: Accuracy) -> np.ndarray:
    """Bounds (pixels,) on the errors of the pixels' forms before and after the clip."""
    rounding = gamma(16 + 4 * compound.domain.dimension) * compound.perturbed.magnitudes
    around = region_coverage(accuracy) + 8.0 * UNIT
    return (rounding + accuracy.pixels_missed + around * np.maximum(_pixel_sizes(compound), 1.0)) * OWN


def _pixel_sizes(compound: Compound) -> np.ndarray:
    """The largest sum of |coefficients| of every pixel's form in t, on any knot cell."""
    low, widths, d = compound.domain.low, compound.domain.widths, compound.domain.dimension
    sizes = []
    for cell in compound.cells:
        slope = cell.slope.reshape(d, -1)
        sizes.append(widths @ np.abs(slope) + np.abs((compound.perturbed.x0 + cell.offset).ravel() + low @ slope))
    return np.max(sizes, axis=0) * OWN


def _length(error: np.ndarray) -> float:
    return float(np.linalg.norm(error)) * OWN + LEAST


def _spectral(affine: AffineMap, length: float, own: np.ndarray) -> float:
    """The length of the errors after an affine map, by its spectral norm; infinite if the norm is not bounded."""
    matrix = affine.matrix
    if not isinstance(matrix, np.ndarray) or max(matrix.shape) > LARGEST_SPECTRAL:
        return np.inf
    return (spectral_bound(affine) * length + _length(own)) * OWN


@lru_cache(maxsize=64)
def spectral_bound(affine: AffineMap) -> float:
    """A proved upper bound on the spectral norm of a dense affine map's matrix.

    λ(G) ≤ c₀ √c₁ ⁴√c₂ … for G = W Wᵀ, where c₀ bounds the absolute row sums of G, c₁ those of (G/c₀)² and so on; each
    includes the errors of the products. (No eigenvalue of a symmetric matrix exceeds the largest absolute row sum.)

    >>> bound = spectral_bound(AffineMap(np.diag([3.0, 1.0]), np.zeros(2)))
    >>> 3.0 <= bound < 3.1
    True
    """
    matrix = affine.matrix if affine.matrix.shape[0] <= affine.matrix.shape[1] else affine.matrix.T
    rows, terms = matrix.shape
    if not matrix.size:
        return 0.0
    gram, absolute = matrix @ matrix.T, np.abs(matrix)
    off = gamma(terms + 2) * float((absolute @ absolute.sum(axis=0)).max())
    bound, power = 1.0, 1.0
    for _ in range(SQUARINGS + 1):
        row_sum = (float(np.abs(gram).sum(axis=1).max()) + off) * OWN + LEAST
        bound *= row_sum**power
        power *= 0.5
        gram, off = gram / row_sum, (off / row_sum + UNIT) * OWN
        gram, off = gram @ gram, 2.0 * off + off * off + gamma(rows + 2)
    return float(np.sqrt(bound)) * OWN
