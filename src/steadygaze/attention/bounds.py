"""One bound of the error of attention maps for all patterns, and whether maps may be updated by flips at all.

A backward pass multiplies matrices; each product has an error of at most (number of terms) · 2⁻⁵³ · Σ|terms|, which
the remaining matrices carry on; products of absolute weights bound it. Updating maps by flips adds a rounding error for
every flip, and repeats the error of a neuron's gradient each time that neuron flips: at most `MAX_FLIPS_EACH` times, so
errors grow by that factor from a layer to the one below.
"""

import numpy as np
from scipy.sparse import issparse

from ..network.lower import Chain
from ..tolerances import FLIP_ERROR, MAX_FLIPS, MAX_FLIPS_EACH, UNIT
from .distances import Distance
from .options import AttentionOptions


def allowed_flips(chain: Chain, options: AttentionOptions, original: np.ndarray) -> int:
    """Up to how many flips maps may be updated: MAX_FLIPS where the error stays small, else 0 (always from scratch).

    Dense networks are computed for many patterns at once instead.
    """
    if not any(issparse(affine.matrix) for affine in chain.maps[:-1]):
        return 0
    size = sum(options.distance.size(part) for part in original)
    return MAX_FLIPS if coarse_error(chain, options, MAX_FLIPS) <= FLIP_ERROR * size else 0


def coarse_error(chain: Chain, options: AttentionOptions, flips: int) -> float:
    """The bound for every pattern, with up to so many flips since the maps were computed from scratch."""
    last = chain.maps[-1].matrix
    product = abs((last if isinstance(last, np.ndarray) else last.toarray())[options.chosen(last.shape[0])])
    growth = MAX_FLIPS_EACH if flips else 1
    factor = 0.0
    for affine in reversed(chain.maps[:-1]):
        product = (abs(affine.matrix).T @ product.T).T
        factor = growth * factor + relative_error(affine.matrix, flips)
    return total_size(factor * product, options)


def relative_error(matrix: np.ndarray, flips: int) -> float:
    """Relative error of one product with a matrix from the left, or of so many updates; compression included."""
    return 2.0 * (matrix.shape[0] + matrix.shape[1] + 3 * flips + 8) * UNIT


def total_size(error: np.ndarray, options: AttentionOptions) -> float:
    """The sum over the classes of the norm of an error (K', pixels), rounded up."""
    order = 1 if options.distance is Distance.L1 else 2
    return float(np.linalg.norm(error, ord=order, axis=1).sum() * (1.0 + 1e-9))
