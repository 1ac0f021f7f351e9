"""Computes gradients under a pattern by matrix products, and bounds their rounding errors.

The outputs of `AimedChain` are the functions whose gradients an attention method uses as maps. `gradient_maps` is the
definition, and the reference for faster code. `maps_under` needs no matrices of whole layers.

**One bound on the rounding error for all patterns.** A backward pass multiplies matrices. Each product has an error of
at most (number of terms) · 2⁻⁵³ · Σ|terms|, which the remaining matrices propagate; products of absolute weights bound
it. Updating maps by flips adds a rounding error for every flip. If the gradients of all layers are kept, the error of a
neuron's gradient enters each time that neuron flips: at most `MAX_FLIPS_EACH` times, so errors grow by that factor from
each layer to the one below.

If flips are local (`is_local`), errors do not grow that way: see `local_errors`.

**A bound for one pattern** uses its own signed gradients, and is smaller by orders of magnitude on deep networks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..lazily import is_sparse
from ..network.graph import AffineMap, Chain, Graph, gradients, patterns, preactivations
from ..network.operators import Matrix
from ..tolerances import FLIP_ERROR, LEAST, LEAST_FLIPS, MAX_FLIPS, MAX_FLIPS_EACH, MAX_LOCAL_FLIPS, UNIT
from .local_errors import path_error, product_error, row_growth, tail_layers
from .options import AttentionOptions
from .rows import dense, is_local

Bits = list[np.ndarray]  # patterns of the classifier: one boolean array (B, n) per layer


@dataclass(frozen=True, eq=False)
class AimedChain(Chain):
    """A chain whose outputs are linear functions of the aims; top_error (K', n) bounds the error of its last matrix.

    >>> chain = Chain((AffineMap(np.eye(2), np.zeros(2)),))
    >>> AimedChain.of(chain, np.array([[1.0, -1.0]])).maps[-1].matrix
    array([[ 1., -1.]])
    """

    top_error: np.ndarray

    @classmethod
    def of(cls, chain: Chain, targets: np.ndarray) -> "AimedChain":
        """Aim a chain at the functions targets @ aims, with targets (K', A)."""
        maps, last = chain.maps[:-1], chain.aim
        matrix = dense(last.matrix)
        if (targets == (targets != 0.0)).all() and (targets.sum(axis=1) == 1.0).all():
            chosen = targets.argmax(axis=1)  # choosing logits involves no rounding
            return cls((*maps, AffineMap(matrix[chosen], last.bias[chosen])), np.zeros((len(chosen), matrix.shape[1])))
        error = 2.0 * (len(matrix) + 8) * UNIT * (np.abs(targets) @ np.abs(matrix)) + LEAST
        return cls((*maps, AffineMap(targets @ matrix, targets @ last.bias)), error)


def pattern_at(graph: Graph, pixels: np.ndarray) -> Bits:
    """The classifier's pattern at flattened images (B, pixels)."""
    return patterns(graph, preactivations(graph, pixels)[:-1])


def gradient_maps(chain: Chain, bits: Bits) -> np.ndarray:
    """Gradients of the outputs with respect to the pixels, (B, K, pixels)."""
    *_, gradient = _backward(chain, bits)
    return gradient


def sensitivities(chain: Chain, bits: Bits) -> list[np.ndarray]:
    """Gradients of the outputs under given patterns: with respect to the pixels, then to every ReLU layer's input.

    Returns arrays (B, K, pixels), (B, K, n_1), …, (B, K, n_L); the gradient with respect to an inactive neuron is 0.
    """
    return list(_backward(chain, bits))[::-1]


def _backward(chain: Chain, bits: Bits) -> Iterator[np.ndarray]:
    """The gradients with respect to the input of every ReLU layer, the last first; then to the pixels."""
    batch = len(bits[0]) if bits else 1
    gradient = np.repeat(dense(chain.maps[-1].matrix)[None], batch, axis=0)
    for affine, layer in zip(reversed(chain.maps[:-1]), reversed(bits), strict=True):
        # Floats: numpy converts booleans piece by piece, which takes longer than the product.
        masked = gradient * layer.astype(np.float64)[:, None, :]
        yield masked
        flat = masked.reshape(-1, masked.shape[2])
        # Dense matrices multiply from the right, which keeps the result contiguous; scipy's sparse ones from the left.
        product = flat @ affine.matrix if isinstance(affine.matrix, np.ndarray) else (affine.matrix.T @ flat.T).T
        gradient = np.ascontiguousarray(product).reshape(batch, gradient.shape[1], -1)
    yield gradient


def maps_under(graph: Graph, bits: Bits, targets: np.ndarray | None = None) -> np.ndarray:
    """Gradients (K', pixels) of targets @ aims (of all logits by default) under one pattern, by linear steps."""
    *_, maps = gradients(graph, [layer[0] for layer in bits], targets)
    return maps


def allowed_flips(chain: AimedChain, options: AttentionOptions, original: np.ndarray) -> int:
    """The most flips that keep the error of updated maps small; 0 for dense networks."""
    if not any(is_sparse(affine.matrix) for affine in chain.maps[:-1]):
        return 0
    most = FLIP_ERROR * options.size(original)
    flips = MAX_LOCAL_FLIPS if is_local(chain.maps) else MAX_FLIPS
    while flips >= LEAST_FLIPS and not coarse_error(chain, options, flips) <= most:
        flips //= 2
    return flips if flips >= LEAST_FLIPS else 0


@lru_cache(maxsize=16)
def coarse_error(chain: AimedChain, options: AttentionOptions, flips: int) -> float:
    """A bound for the maps of every pattern, after the filter and summed, up to `flips` flips after a fresh start."""
    if flips and is_local(chain.maps):
        return _local_error(chain, options, flips)
    growth, factor = MAX_FLIPS_EACH if flips else 1, 0.0
    for affine in reversed(chain.maps[:-1]):
        factor = growth * factor + _relative_error(affine.matrix, flips)
    return _error_of_paths(chain, options, factor)


def _error_of_paths(chain: AimedChain, options: AttentionOptions, factor: float) -> float:
    """`factor` times the absolute weights of all paths, plus the error of the last matrix; after the filter, summed."""
    error = factor * _weigh(chain, chain.maps[-1].matrix)
    return options.total_size(error + _weigh(chain, chain.top_error) if chain.top_error.any() else error)


def _weigh(chain: AimedChain, rows: np.ndarray) -> np.ndarray:
    """|rows| (K', n_L) times the absolute weights of all layers below the outputs, (K', pixels)."""
    product = np.abs(rows)
    for affine in reversed(chain.maps[:-1]):
        product = (affine.absolute.T @ product.T).T
    return product


def underflow_error(chain: AimedChain, options: AttentionOptions) -> float:
    """The effect of underflow on every map: a little at every layer, propagated by absolute weights."""
    lost = np.full(chain.top_error.shape, LEAST)
    for affine in reversed(chain.maps[:-1]):
        lost = (affine.absolute.T @ lost.T).T + LEAST
    return options.total_size(lost)


def vanishes(chain: AimedChain, bits: Bits) -> bool:
    """Whether no path of nonzero weights and active neurons leads from a pixel to one of the outputs."""
    reached = ((chain.maps[-1].matrix != 0.0) | (chain.top_error > 0.0)).any(axis=0)
    for affine, layer in zip(reversed(chain.maps[:-1]), reversed(bits), strict=True):
        reached = np.asarray((affine.matrix[reached & layer[0]] != 0.0).sum(axis=0)).ravel() > 0
    return not reached.any()


def _relative_error(matrix: np.ndarray, flips: int) -> float:
    """The relative error of one product with a matrix from the left, or of `flips` updates, including compression."""
    return 2.0 * (matrix.shape[0] + matrix.shape[1] + 3 * flips + 8) * UNIT


def _local_error(chain: AimedChain, options: AttentionOptions, flips: int) -> float:
    """The bound for local flips; see `local_errors`."""
    factor = (product_error(chain) + 4.0 * flips) * UNIT
    paths = flips * UNIT * path_error(chain, options.distance) * options.filter.lipschitz(options.distance.value)
    rounded = row_growth(tail_layers(chain)) * (_error_of_paths(chain, options, factor) + paths)
    return coarse_error(chain, options, 0) + rounded


def pattern_error(chain: AimedChain, options: AttentionOptions, bits: Bits) -> float:
    """The bound for one pattern, from scratch: the errors of each product, propagated by the signed gradients below."""
    if not bits:
        return options.total_size(chain.top_error)
    found = [part[0] for part in sensitivities(chain, bits)]
    errors = [
        _relative_error(affine.matrix, 0) * (affine.absolute.T @ np.abs(gradient).T).T
        for affine, gradient in zip(chain.maps, found[1:], strict=False)
    ]
    if chain.top_error.any():
        errors[-1] += (abs(chain.maps[-2].matrix).T @ (chain.top_error * bits[-1][0]).T).T
    if len(errors) == 1:
        return options.total_size(errors[0])
    carried = errors[1] * bits[0][0]
    for error, prefix in zip(errors[2:], _prefixes(chain, bits), strict=True):
        carried = carried + error @ abs(prefix)
    return options.total_size(errors[0] + (abs(chain.maps[0].matrix).T @ carried.T).T)


def _prefixes(chain: Chain, bits: Bits) -> Iterator[Matrix]:
    """Gradients (n_l, n_1) of the outputs of ReLU layers 2 to L − 1 with respect to the inputs of the first layer."""
    prefix = None
    for affine, below, layer in zip(chain.maps[1:-2], bits, bits[1:], strict=False):
        masked = _masked(affine.matrix, below[0], layer[0])
        prefix = masked if prefix is None else masked @ prefix
        yield prefix


def _masked(matrix: Matrix, columns: np.ndarray, rows: np.ndarray) -> Matrix:
    """A matrix with zeros outside of the given columns and rows (boolean)."""
    if isinstance(matrix, np.ndarray):
        return matrix * columns * rows[:, None]
    kept = columns[matrix.indices] & np.repeat(rows, np.diff(matrix.indptr))
    return type(matrix)((matrix.data * kept, matrix.indices, matrix.indptr), shape=matrix.shape)
