"""Losses between two lines in τ: where they are surely below a limit, and where they may be."""

import numpy as np

from ...tolerances import UNIT
from . import NO_ATTENTION, Slabs

NOTHING = np.array([1.0, 0.0])
"""An empty interval."""


def slabs_between(low: np.ndarray, high: np.ndarray, taus: np.ndarray, limit: float) -> Slabs:
    """The slabs of losses between two lines, given by their values (R, 2) at the ends of the ranges taus (R, 2).

    Where a value is not finite, nothing is known.

    >>> taus, line = np.array([[0.0, 1.0]]), np.array([[0.25, 0.75]])
    >>> slabs_between(line - 0.25, line + 0.25, taus, 0.5).outer.round(9).tolist()
    [[0.0, 1.0]]
    >>> slabs_between(line, line, taus, 0.5).inner.round(9).tolist()
    [[0.0, 0.5]]
    """
    is_known = np.isfinite(low).all(axis=1) & np.isfinite(high).all(axis=1)
    low, high = np.where(is_known[:, None], low, 0.0), np.where(is_known[:, None], high, NO_ATTENTION)
    inner, outer = _below(high, taus, limit, -1.0), _below(low, taus, limit, 1.0)
    reach = np.stack([np.maximum(low.min(axis=1), 0.0), high.max(axis=1)], axis=1)
    return Slabs(np.where(is_known[:, None], inner, NOTHING), np.where(is_known[:, None], outer, taus), reach)


def _below(values: np.ndarray, taus: np.ndarray, limit: float, side: float) -> np.ndarray:
    """Where (R, 2) lines are at most a limit, rounded outward (side 1) or inward (side −1)."""
    is_below = values <= limit
    first, last = taus.T
    rise = values[:, 1] - values[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip((limit - values[:, 0]) / rise, 0.0, 1.0)
    crossing = first + share * (last - first)
    # The rounding of the share, of the product and of the sum.
    off = side * 16.0 * UNIT * (np.abs(first) + np.abs(last))
    begins, ends = is_below[:, 0] & ~is_below[:, 1], ~is_below[:, 0] & is_below[:, 1]
    start = np.where(ends, np.clip(crossing - off, first, last), first)
    stop = np.where(begins, np.clip(crossing + off, first, last), last)
    # An inward rounding may leave nothing but an end, which is below by its own value.
    return np.where((is_below[:, 0] | is_below[:, 1])[:, None], np.stack([start, stop], axis=1), NOTHING)
