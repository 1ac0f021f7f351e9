"""How far the computed logits of a region can be from those of the real-valued network.

Rounding errors of every neuron, and what the tolerance left unsplit, times the region's own signed gradients. Products
of absolute weights, which bound all regions at once, are tried first by the callers: `coarse_logit_error`.
"""

import numpy as np

from ..attention.maps import sensitivities
from ..compound import Compound
from ..network.lower import Chain
from ..tolerances import MAX_SYNCS, UNIT
from .pattern import unpack
from .region import RegionSet

BATCH = 128


def rounding_factor(matrix: np.ndarray) -> float:
    """Bound of the relative error of one affine map, as computed by the engine (with its updates) and plainly."""
    return 2.0 * (matrix.shape[1] + MAX_SYNCS + 8) * UNIT


def coarse_logit_error(chain: Chain) -> float:
    """One bound for all images in [0,1]: products of absolute weights. Good for shallow networks."""
    pixels = chain.maps[0].matrix.shape[1]
    error, size = np.full(pixels, 8.0 * UNIT), np.ones(pixels)
    for affine in chain.maps:
        weights = abs(affine.matrix)
        scale = weights @ size + np.abs(affine.bias)
        error = weights @ error + rounding_factor(affine.matrix) * scale
        size = scale
    return float(error.max())


def logit_errors(compound: Compound, regions: RegionSet, chosen: np.ndarray) -> np.ndarray:
    """Bounds (S, K) of the error of the logits anywhere on the chosen regions (indices (S,))."""
    blocks = [_errors(compound, regions, chosen[i : i + BATCH]) for i in range(0, len(chosen), BATCH)]
    return np.concatenate(blocks) if blocks else np.zeros((0, regions.logits.shape[2]))


def _errors(compound: Compound, regions: RegionSet, chosen: np.ndarray) -> np.ndarray:
    chain = compound.chain
    polygons = regions.polygons.take(chosen)
    first = polygons.starts[:-1]
    thetas = compound.to_theta(polygons.points)
    images = compound.perturbed.images(thetas).reshape(len(thetas), -1)
    bits = unpack(regions.patterns[regions.pattern[chosen]], compound.hidden)
    gradients = sensitivities(chain, bits) if bits else [np.repeat(sensitivities(chain, [])[0], len(chosen), axis=0)]
    pixel_error = 8.0 * UNIT + np.maximum.reduceat(_clip_mismatch(compound, regions, chosen, images), first)
    total = np.einsum("bkn,bn->bk", np.abs(gradients[0]), pixel_error)
    values = images
    for layer, affine in enumerate(chain.maps):
        scale = (abs(affine.matrix) @ values.T).T + np.abs(affine.bias)
        local = rounding_factor(affine.matrix) * np.maximum.reduceat(scale, first)
        before = affine.apply(values)
        if layer == len(chain.maps) - 1:
            return total + local
        # Positive where a vertex lies beyond the neuron's line: what the tolerance left unsplit.
        beyond = np.where(bits[layer][polygons.owner], -before, before)
        local += np.maximum.reduceat(np.maximum(beyond, 0.0), first)
        total += np.einsum("bkn,bn->bk", np.abs(gradients[layer + 1]), local)
        values = np.maximum(before, 0.0)
    return total


def _clip_mismatch(compound: Compound, regions: RegionSet, chosen: np.ndarray, images: np.ndarray) -> np.ndarray:
    """|pixel of the region's own form − pixel of the image| at every vertex of the chosen regions."""
    polygons = regions.polygons.take(chosen)
    mismatch = np.zeros_like(images)
    for number in np.unique(regions.cell[chosen]):
        cell = compound.programs[number]
        lines = cell.root.shape[1]
        inside = np.flatnonzero(regions.cell[chosen] == number)
        places = np.isin(polygons.owner, inside)
        above_zero, below_one = unpack(regions.clips[regions.clip[chosen]], (lines, lines))
        owner = polygons.owner[places]
        points = polygons.points[places]
        values = points @ cell.root[:2] + cell.root[2]
        values = np.where(below_one[owner], np.where(above_zero[owner], values, 0.0), 1.0)
        moving = cell.line_of >= 0
        form = np.where(moving, values[:, cell.line_of], cell.constant)
        mismatch[places] = np.abs(form - images[places])
    return mismatch
