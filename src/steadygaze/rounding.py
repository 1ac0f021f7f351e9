"""How far float64 results can be from real numbers: factors that turn a computed number into a proved bound.

A sum of n products, added in any order and with or without fused operations, has an error of at most
γ(n) · Σ|terms|, where γ(n) = n u / (1 − n u) and u = 2⁻⁵³ (Higham, Accuracy and Stability of Numerical Algorithms).
"""

from .tolerances import UNIT

LEAST = 1e-290
"""Added to every bound that is not exactly zero: more than underflow can lose in a sum of fewer than 10²⁰ products."""

FLOOR = 1e-150
"""Errors of values that are not exactly zero are at least this large, so that a product with any weight does not
underflow (see SMALLEST_WEIGHT): where a sum of errors comes out as zero, all of its terms are zero."""

SMALLEST_WEIGHT = 1e-140
"""Weights other than zero must not be smaller than this. No float32 number is."""

LEAST_ROOT = 1e-140
"""The same for the root of such a sum."""


def gamma(terms: int) -> float:
    """The relative error of a sum of so many products, twice as large as proved, so that its own rounding is covered.

    >>> gamma(0), gamma(3) > 3 * 2.0**-53
    (0.0, True)
    """
    return 2.0 * terms * UNIT


def up(terms: int) -> float:
    """A factor that lifts a computed sum of so many non-negative products above the exact one."""
    return 1.0 + 2.0 * gamma(terms + 4)


def down(terms: int) -> float:
    """A factor that brings a computed sum of so many non-negative products below the exact one."""
    return 1.0 - 2.0 * gamma(terms + 4)
