"""The second opinion on a claim at one theta: proved bounds of margin and inconsistency, whatever the rounding.

Bounds over a box without extent, so nothing is shared with regions, their patterns or their error bounds. Says nothing
about other thetas.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..bounds.bounder import Bounder
from ..errors import ModelError
from ..problem import Problem

UNKNOWN = (-np.inf, np.inf)


@dataclass(frozen=True)
class Enclosed:
    """Proved bounds (low, high) of the margin and of the inconsistency at a theta; infinite ends say nothing."""

    margin: tuple[float, float]
    inconsistency: tuple[float, float]


class Enclosing:
    """Encloses single thetas of one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def at(self, theta: np.ndarray, *, has_attention: bool) -> Enclosed:
        """Bounds at theta (d,); those of the inconsistency only if wanted."""
        if self._bounder is None:
            return Enclosed(UNKNOWN, UNKNOWN)
        compound = self.problem.compound
        # Back and forth between theta and t costs a few roundings; the bounds of the pixels allow for more than that.
        place = compound.to_unit(theta[None])[:, : compound.domain.dimension]
        cell = self.problem.perturbed.cell_of(theta).index
        found = self._bounder.bound(cell, place, place, np.array([has_attention]))
        return Enclosed(_ends(found.margin[0]), _ends(found.inconsistency[0]))

    @cached_property
    def _bounder(self) -> Bounder | None:
        problem = self.problem
        try:
            return Bounder(problem.model.graph, problem.perturbed, problem.label, problem.attention)
        except ModelError:  # weights so small that products with them vanish
            return None


def _ends(bounds: np.ndarray) -> tuple[float, float]:
    """Bounds as numbers; where an end is not a number, nothing is known."""
    low, high = (float(end) for end in bounds)
    return (low, high) if low <= high else UNKNOWN
