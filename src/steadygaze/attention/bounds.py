"""One bound of the error of attention maps for all patterns, and whether maps may be updated by flips at all.

A backward pass multiplies matrices; each product has an error of at most (number of terms) · 2⁻⁵³ · Σ|terms|, which
the remaining matrices carry on; products of absolute weights bound it. Updating maps by flips adds a rounding error for
every flip. Where the gradients of all layers are kept, the error of a neuron's gradient enters each time that neuron
flips: at most `MAX_FLIPS_EACH` times, so errors grow by that factor from a layer to the one below.

Where flips are local (`is_local`), nothing is kept but the maps and the rows of heads. With Π the product of all
absolute weights, F flips and c terms in the longest way through one neuron:

* From scratch the error is Σ (of each product) · Π, and F additions to the maps round off at most 4 F 2⁻⁵³ Π.
* Flipping a neuron x below the heads adds the product of two vectors, with an error of c 2⁻⁵³ times the weights of all
  paths through x. In the norm over a map's pixels these are at most Σ_k |L_jk| ν_k, where ν_k is the largest norm, over
  all x, of the absolute weights on the paths from head k through x to the pixels. (‖v‖₂² ≤ ‖v‖₁ · max v.)
* The same holds for the row of head k, with an error e_k(t) that changes by as much in total. Flipping k adds
  ±L_jk e_k(t); the signs alternate, so these add up to at most |L_jk| times the variation of e_k plus once e_k itself.
  Computing the row again changes e_k by twice its bound: 2 · MAX_ROWS_EACH in all.
"""

import numpy as np
from scipy.sparse import issparse

from ..network.lower import AffineMap, Chain
from ..tolerances import FLIP_ERROR, MAX_FLIPS, MAX_FLIPS_EACH, MAX_LOCAL_FLIPS, MAX_ROWS_EACH, UNIT
from .distances import Distance
from .options import AttentionOptions

WORTH_GOING_UP = 1 << 17
"""Multiplications on the way from a neuron of the first layer to the heads up to which flips are taken locally."""


def allowed_flips(chain: Chain, options: AttentionOptions, original: np.ndarray) -> int:
    """Up to how many flips maps may be updated where the error stays small, else 0 (always from scratch).

    Dense networks are computed for many patterns at once instead.
    """
    if not any(issparse(affine.matrix) for affine in chain.maps[:-1]):
        return 0
    size = sum(options.distance.size(part) for part in original)
    flips = MAX_LOCAL_FLIPS if is_local(chain.maps) else MAX_FLIPS
    return flips if coarse_error(chain, options, flips) <= FLIP_ERROR * size else 0


def is_local(maps: tuple[AffineMap, ...]) -> bool:
    """Whether flips are taken locally: sparse layers below at most one dense one, and not too many paths upward."""
    sparse = [affine.matrix for affine in maps[:-1] if issparse(affine.matrix)]
    is_sparse = [bool(issparse(affine.matrix)) for affine in maps[:-1]]
    if not sparse or is_sparse != sorted(is_sparse, reverse=True) or len(is_sparse) > len(sparse) + 1:
        return False
    return _reached(sparse) * maps[len(sparse)].matrix.shape[0] <= WORTH_GOING_UP


def coarse_error(chain: Chain, options: AttentionOptions, flips: int) -> float:
    """The bound for every pattern, with up to so many flips since the maps were computed from scratch."""
    product = _top(chain, options)
    if flips and is_local(chain.maps):
        return _local_error(chain, options, flips)
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


def _local_error(chain: Chain, options: AttentionOptions, flips: int) -> float:
    """The bound where flips are local; see the head of this module."""
    product = _top(chain, options)
    sparse = [abs(affine.matrix) for affine in chain.maps[:-1] if issparse(affine.matrix)]
    has_heads = len(chain.maps) - 1 > len(sparse)
    heads = abs(_dense(chain.maps[len(sparse)].matrix)) if has_heads else product
    weights = product.sum(axis=0) if has_heads else np.ones(len(heads))
    factor = 4.0 * flips * UNIT
    for affine in reversed(chain.maps[:-1]):
        product = (abs(affine.matrix).T @ product.T).T
        factor += relative_error(affine.matrix, 0)
    terms, norms = len(heads) + _reached(sparse) + 8, []
    down, largest = [np.ones(sparse[0].shape[1])], np.zeros(0)
    for number, matrix in enumerate(sparse):
        terms += int(np.diff(matrix.indptr).max(initial=0)) + 2
        largest = matrix @ largest if number else matrix.max(axis=1).toarray().ravel()
        down.append(matrix @ down[-1])
        norms.append(down[-1] if options.distance is Distance.L1 else np.sqrt(down[-1] * largest))
    through = (heads * norms[-1]).max(axis=1, initial=0.0)
    # From a neuron below the top sparse layer: its weight upward is at most the largest of a head times all paths.
    up = np.ones(sparse[-1].shape[0])
    for matrix, norm in zip(sparse[:0:-1], norms[-2::-1], strict=True):
        up = matrix.T @ up
        through = np.maximum(through, heads.max(axis=1, initial=0.0) * (up * norm).max(initial=0.0))
    paths = 1.01 * terms * flips * UNIT * float(weights @ through)
    return (2.0 * MAX_ROWS_EACH + 3.0) * (total_size(factor * product, options) + paths)


def _top(chain: Chain, options: AttentionOptions) -> np.ndarray:
    """Absolute weights of the chosen logits (K', n_L)."""
    last = _dense(chain.maps[-1].matrix)
    return np.abs(last[options.chosen(last.shape[0])])


def _dense(matrix: np.ndarray) -> np.ndarray:
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def _reached(sparse: list) -> int:
    """At most how many neurons of the top sparse layer depend on one neuron below it."""
    reached = 1
    for matrix in sparse[1:]:
        columns = np.bincount(matrix.indices, minlength=matrix.shape[1])
        reached = min(reached * int(columns.max(initial=0)), matrix.shape[0])
    return max(1, reached)
