"""How far the computed logits of a region can be from those of the real-valued network.

The rounding error of every neuron, and what the tolerance left unsplit of it, times the signed gradient of the logits
with respect to its output under the region's own pattern (inactive neurons count: that is how parts are missed).
Products of absolute weights bound all patterns at once: they are tried first (`coarse_logit_error`).
"""

from typing import Protocol

import numpy as np

from ..attention.maps import output_sensitivities
from ..compound import Compound
from ..network.lower import AffineMap
from ..regions.pattern import unpack
from ..regions.pattern_table import PatternTable
from ..tolerances import MAX_SYNCS, UNIT

BATCH, BATCH_BYTES = 256, 2**26
"""Patterns looked at together: so many, and so much for the gradients of all their neurons."""


class Regions(Protocol):
    """What is needed of regions, however they were found: see `RegionSet` for the meaning of each."""

    @property
    def patterns(self) -> PatternTable | np.ndarray: ...  # noqa: D102 (see above)
    @property
    def peaks(self) -> np.ndarray: ...  # noqa: D102
    @property
    def missed(self) -> np.ndarray: ...  # noqa: D102
    @property
    def pixels_missed(self) -> float: ...  # noqa: D102


def coarse_logit_error(compound: Compound, regions: Regions) -> float:
    """One bound for all regions; good for shallow networks."""
    pixels, *layers = _weights(compound, regions)
    error = pixels
    for affine, local in zip(compound.chain.maps, layers, strict=True):
        error = abs(affine.matrix) @ error + local
    return float(error.max())


def logit_errors(compound: Compound, regions: Regions, patterns: np.ndarray) -> np.ndarray:
    """Bounds (S, K) of the error of the logits anywhere on the regions that have the given patterns (numbers (S,))."""
    weights = _weights(compound, regions)
    classes = compound.graph.classes
    blocks = [np.zeros((0, classes))]
    step = max(1, min(BATCH, BATCH_BYTES // (8 * classes * sum(map(len, weights)))))
    for start in range(0, len(patterns), step):
        bits = unpack(regions.patterns[patterns[start : start + step]], compound.hidden)
        gradients = output_sensitivities(compound.chain, bits)
        total = sum(np.abs(part) @ weight for part, weight in zip(gradients, weights[:-1], strict=True))
        blocks.append(np.broadcast_to(total + weights[-1], (len(bits[0]) if bits else 1, classes)))
    return np.concatenate(blocks)


def _weights(compound: Compound, regions: Regions) -> list[np.ndarray]:
    """Error of every pixel, of every neuron's input, and of the logits themselves, each as one local step."""
    hidden = np.cumsum(compound.hidden)[:-1]
    peaks, missed = np.split(regions.peaks, hidden), np.split(regions.missed, hidden)
    # Coefficients of the pixels' forms on any knot cell; their values are at most 1, but rounding follows the former.
    largest = max(float(np.abs(cell.root).sum(axis=0).max(initial=1.0)) for cell in compound.programs)
    size = np.full(compound.perturbed.x0.size, max(largest, 1.0))
    weights = [8.0 * UNIT * size + regions.pixels_missed]
    for affine, peak, left in zip(compound.chain.maps[:-1], peaks, missed, strict=False):
        weights.append(_rounding(affine, size) + left)
        size = peak
    weights.append(_rounding(compound.chain.maps[-1], size))
    return weights


def _rounding(affine: AffineMap, size: np.ndarray) -> np.ndarray:
    """Rounding error of one affine map for inputs up to `size`, as computed by the engine with its updates."""
    scale = abs(affine.matrix) @ size + np.abs(affine.bias)
    return 2.0 * (affine.matrix.shape[1] + MAX_SYNCS + 8) * UNIT * scale
