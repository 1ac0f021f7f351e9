"""Bounds on the rounding errors of maps that follow local flips (see `local_kernels`).

Outputs and tail neurons are targets. Let Π_τ be the absolute weights of all paths from target τ to the pixels, and A_τm
those of all paths from the output of tail neuron m up to τ. Let there be F flips since the maps were computed from
scratch. Errors are norms over the pixels.

* Computing a row or map from scratch rounds by at most s_τ: Σ (terms of each product) · 2⁻⁵³ · Π_τ. Rounding in the
  matrices themselves is the same for all rows at all times: the bound for maps from scratch includes it, so it counts
  once.
* Further rounding in the row or map of τ is at most r_τ in total. F additions round by at most 4 F 2⁻⁵³ Π_τ. The flip
  of a neuron x adds the product of two vectors. If x lies below the heads, both are computed from the weights, with c
  terms on the longest path: the error is c 2⁻⁵³ times the weights of all paths from τ through x. (‖v‖₂² ≤ ‖v‖₁ · max v
  bounds their norm.) If x is in the tail, the second vector is its row, whose error follows below, and c counts
  the terms above x. In the layer next to the outputs, or next to τ, the first vector is exact.
* The flip of tail neuron m adds ±(gradient of τ by m) · (row of m), and with it the row's error E_m. Write all errors
  as E_τ = f_τ + Σ_m (gradient of τ by m, 0 if m is inactive) · f_m, over all m below τ. Without rounding, flips would
  change the errors as they change the gradients, and leave every f unchanged. So f_τ changes only where τ is rounded,
  where the row of τ is computed, and, to compensate a change Δ of some f_m below, by at most A_τm |Δ|. A row just
  computed has |f_τ| ≤ s_τ + Σ A_τm |f_m|. With at most R = MAX_ROWS_EACH ≥ 2 computations of a row, all changes of
  f_τ, starting from 0, add up to at most v_τ = 2 (r_τ + Σ A_τm v_m) + (2R − 1) (s_τ + Σ A_τm |f_m|), and always
  |f_τ| ≤ s_τ + r_τ + Σ A_τm (v_m + |f_m|). Maps are computed once: their f changes by s_j + r_j + Σ A_jm v_m.
* Summed over one layer, Σ_m A_jm Π_m = Π_j, and every flip adds to Σ_m A_jm r_m at most the paths from j through x. So
  Σ_m A_jm (s_m + r_m) is at most the bound on s_j + r_j, whatever the layer, and `row_growth` solves the inequalities
  layer by layer in units of that bound.
"""

from typing import Any

import numpy as np

from ..compound import row_terms
from ..lazily import is_sparse
from ..network.graph import AffineMap, Chain
from ..tolerances import MAX_ROWS_EACH
from .distances import Distance
from .rows import dense, most_reached


def tail_layers(chain: Chain) -> int:
    """The number of dense ReLU layers."""
    return sum(not is_sparse(affine.matrix) for affine in chain.maps[:-1])


def row_growth(layers: int) -> float:
    """The error of the maps in units of the rounding of one target, with so many layers in the tail.

    >>> [row_growth(layers) for layers in range(4)]
    [1.0, 5.0, 22.0, 95.0]
    """
    changes, sizes, computed = 0.0, 0.0, 2.0 * MAX_ROWS_EACH - 1.0
    for _ in range(layers):
        change, size = computed + 2.0 * changes + computed * sizes, 1.0 + changes + sizes
        changes, sizes = changes + change, sizes + size
    return 1.0 + changes + sizes


def product_error(chain: Chain) -> float:
    """The error of a gradient computed from scratch, in units of 2⁻⁵³ and of the absolute weights of all paths.

    Each product has at most as many terms as there are neurons in the next layer that read one input.
    """
    terms = [_most_read(affine) if is_sparse(affine.matrix) else len(affine.bias) for affine in chain.maps[:-1]]
    return 2.0 * sum(count + 8 for count in terms)


def path_error(chain: Chain, distance: Distance) -> float:
    """The largest error of the product of vectors that one flip adds to all outputs together, in units of 2⁻⁵³."""
    maps, most = chain.maps[:-1], 0.0
    terms, up = len(chain.maps[-1].bias) + 8, np.abs(dense(chain.maps[-1].matrix)).sum(axis=0)
    norms = path_norms(chain, distance)
    whole = _most_terms(chain)
    for number in range(len(maps) - 1, -1, -1):
        affine, heaviest = maps[number], float((up * norms[number]).max(initial=0.0))
        if is_sparse(affine.matrix):
            most = max(most, whole * heaviest)
        elif number < len(maps) - 1:
            most = max(most, terms * heaviest)
        terms += len(affine.bias)
        up = affine.absolute.T @ up
    # The weights of paths are rounded sums, too.
    return 1.01 * most


def path_norms(chain: Chain, distance: Distance) -> list[np.ndarray]:
    """For every neuron of the ReLU layers, a bound on the norm of the absolute weights of all paths to the pixels."""
    first = chain.maps[0].absolute
    total, largest = np.ones(first.shape[1]), np.zeros(0)
    norms = []
    for number, affine in enumerate(chain.maps[:-1]):
        total = affine.absolute @ total
        largest = affine.absolute @ largest if number else np.asarray(dense(first.max(axis=1))).ravel()
        norms.append(total if distance is Distance.L1 else np.sqrt(total * largest))
    return norms


def _most_terms(chain: Chain) -> int:
    """The terms of all sums on the longest path from an output through a neuron of a sparse layer to the pixels."""
    sparse = [affine for affine in chain.maps[:-1] if is_sparse(affine.matrix)]
    terms = sum(len(affine.bias) for affine in chain.maps[len(sparse) :])
    terms += most_reached([affine.matrix for affine in sparse]) + 8
    return terms + sum(max(row_terms(affine), _most_read(affine)) + 2 for affine in sparse)


def _most_read(affine: AffineMap) -> int:
    """The most neurons of a sparse layer that read the same input."""
    matrix: Any = affine.matrix
    return int(np.bincount(matrix.indices, minlength=1).max())
