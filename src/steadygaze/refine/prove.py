"""Whether bounds prove that single thetas violate a property: what was found by trying becomes a fact."""

import numpy as np

from ..bounds.bounder import Bounder
from ..problem import Problem
from ..tolerances import UNIT
from .decide import Question


def proved_violations(problem: Problem, bounder: Bounder, question: Question, thetas: np.ndarray) -> np.ndarray:
    """Which thetas (N, d) violate the property, whatever the rounding: a boolean array (N,).

    Each is bounded on the smallest box around it that holds it however t was rounded; what cannot be proved so is not
    counted.
    """
    domain = problem.perturbed.domain
    is_proved = np.zeros(len(thetas), dtype=bool)
    for number, theta in enumerate(thetas):
        point = problem.compound.to_unit(theta[None])[:, : domain.dimension]
        around = 8.0 * UNIT * (np.abs(domain.low) + np.abs(domain.high)) / domain.widths + 8.0 * UNIT
        cell = problem.perturbed.cell_of(theta).index
        found = bounder.bound(cell, point - around, point + around, np.array([question.asks_attention]))
        is_proved[number] = question.is_violated(found.margin, found.inconsistency)[0]
    return is_proved
