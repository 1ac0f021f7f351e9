"""Exact arithmetic where float64 cannot decide the label on a small polytope of the domain.

Turns a compound network and a polytope into an `Outcome` that is proved in rationals (python-flint).
"""

from .settle import Bounds, ExactLabels, LabelShares, Outcome, Settlement

__all__ = ["Bounds", "ExactLabels", "LabelShares", "Outcome", "Settlement"]
