"""Exact arithmetic where float64 cannot decide the label on a small polytope of the domain.

Turns a compound network and a polytope into a `LabelOutcome` that is proved in rational arithmetic (python-flint).
"""

from .settle import Bounds, ExactLabels, LabelOutcome, LabelShares, Settlement

__all__ = ["Bounds", "ExactLabels", "LabelOutcome", "LabelShares", "Settlement"]
