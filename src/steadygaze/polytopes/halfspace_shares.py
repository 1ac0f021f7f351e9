"""Proved bounds of the share of a box that lies in a half-space, in any number of dimensions.

The share of [0, 1]^m with w · x ≤ k, all w_i > 0, is Σ_v (−1)^|v| max(k − w · v, 0)^m / (m! Π w_i) over the corners v.
Rounding makes this sum useless if some w_i are far smaller than others. Leaving out a coordinate moves k by at most its
w_i. So the sum is taken over the m largest coordinates, for every m up to MOST_COORDINATES, and the best bounds are
kept.
"""

from itertools import product
from math import factorial

import numpy as np

from ..tolerances import UNIT

MOST_COORDINATES = 6


def halfspace_shares(slopes: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Proved bounds (N,) of the shares of boxes e ∈ [−1, 1]^d where slopes (N, d) · e + offsets (N,) > 0.

    If all slopes are 0, the share is 0 or 1; NaN gives the bounds 0 and 1.

    >>> low, high = halfspace_shares(np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([1.0, 2.0]))
    >>> [round(float(value), 9) for value in (*low, *high)]
    [0.875, 1.0, 0.875, 1.0]
    """
    weights = np.abs(slopes)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.maximum(weights.max(axis=1, initial=0.0), np.abs(offsets))
        known = np.isfinite(scale) & (scale > 0.0)
        weights = -np.sort(-np.where(known[:, None], weights / scale[:, None], 0.0), axis=1)
        middle = np.where(known, offsets / scale, 0.0)
    low, high = np.zeros(len(offsets)), np.ones(len(offsets))
    # By symmetry in the sign of each coordinate, this equals the share where w · e < middle.
    rest = weights.sum(axis=1)
    for count in range(min(weights.shape[1], MOST_COORDINATES) + 1):
        own = weights[:, :count]
        left_out = weights[:, count:].sum(axis=1)
        least, most = (_share_below(own, middle + sign * left_out) for sign in (-1.0, 1.0))
        low, high = np.maximum(low, least[0]), np.minimum(high, most[1])
    # If the whole box lies on one side by far more than rounding, the share is 0 or 1 without any sum.
    clear = 64.0 * (weights.shape[1] + 4) * UNIT
    low = np.where(middle > rest + clear, 1.0, low)
    high = np.where(middle < -rest - clear, 0.0, high)
    return np.where(known, low, 0.0), np.where(known, np.maximum(high, low), 1.0)


def _share_below(weights: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (N,) of the shares of e ∈ [−1, 1]^m with weights (N, m) · e < ends (N,); weights are at most 1.

    `ends` may be off by a few roundings, which covers the rounding of all sums before.
    """
    count = weights.shape[1]
    blur = 64.0 * (count + 16) * UNIT * (1.0 + np.abs(ends))
    if not count:
        return (ends - blur > 0.0).astype(np.float64), (ends + blur >= 0.0).astype(np.float64)
    corners = np.array(list(product((0.0, 1.0), repeat=count)))
    signs = (-1.0) ** corners.sum(axis=1)
    # In x = (e + 1) / 2 the half-space is 2 w · x < end + Σ w.
    reach = weights.sum(axis=1)
    found = []
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        volume = factorial(count) * np.prod(2.0 * weights, axis=1)
        for direction in (-1.0, 1.0):
            top = np.clip(ends + direction * blur + reach, 0.0, 2.0 * reach)
            terms = np.maximum(top[:, None] - 2.0 * (weights @ corners.T), 0.0) ** count
            value = terms @ signs / volume
            # Every term is a power of a rounded difference of numbers up to 2 · reach, and 2^m terms are summed.
            error = (
                16.0 * (count + 4) * (len(corners) + count) * UNIT * np.maximum(2.0 * reach, 1e-300) ** count / volume
            )
            found.append(value + direction * error)
    low, high = found
    is_known = np.isfinite(low) & np.isfinite(high) & (volume > 0.0)
    return np.where(is_known, np.clip(low, 0.0, 1.0), 0.0), np.where(is_known, np.clip(high, 0.0, 1.0), 1.0)
