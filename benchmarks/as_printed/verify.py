"""The questions about one region: solveCR, solveMR, solveAR, solveIR of Algorithm 3, calcRange of Algorithm 2.

Filter identity, distance L2, all classes, as in the paper's runs.
"""

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from .question import Question, gradients
from .region import LinearPrograms, Region


def solve_cr(question: Question, eta: Region, lp: LinearPrograms) -> bool:
    """solveCR: min over j and θ of f_label − f_j is > 0."""
    return all(_minimum(margin, eta, lp) > 0 for margin in _margins(question, eta))


def solve_mr(question: Question, eta: Region, lp: LinearPrograms) -> bool:
    """solveMR: f_label "cannot be greater than the outputs of any other labels", every f_j − f_label stays > 0."""
    return all(_minimum(-margin, eta, lp) > 0 for margin in _margins(question, eta))


def solve_ar(question: Question, eta: Region, lp: LinearPrograms) -> bool:
    """solveAR: max of ai ≤ δ, one sample if the map stays, otherwise "the values at both ends" (of θ_T)."""
    actual = _actual_maps(question, eta)
    return all(_inconsistency(question, actual, moved) <= question.delta for moved in _ends(question, eta, lp))


def solve_ir(question: Question, eta: Region, lp: LinearPrograms) -> bool:
    """solveIR: min of ai > δ, one sample if the map stays, otherwise by scipy.optimize.minimize."""
    return bool(_lowest(question, _actual_maps(question, eta), _ends(question, eta, lp)) > question.delta)


def calc_range_ar(question: Question, eta: Region, lp: LinearPrograms) -> tuple[float, float]:
    """calcRange for AR/IR: the range of ai, NaN when the solver calls the region empty."""
    actual, ends = _actual_maps(question, eta), _ends(question, eta, lp)
    return _lowest(question, actual, ends), max(_inconsistency(question, actual, moved) for moved in ends)


def calc_range_cr(question: Question, eta: Region, lp: LinearPrograms) -> tuple[float, float]:
    """calcRange for CR/MR, read so that Algorithm 2 with δ = 0 makes sense: the range of max_j f_j − f_label."""
    leads = -np.array(_margins(question, eta))  # f_j − f_label
    # The least of a maximum: min s with f_j − f_label ≤ s, one more unknown than θ.
    above = replace(
        eta,
        A=np.vstack(
            [np.hstack([eta.A, np.zeros((len(eta.A), 1))]), np.hstack([leads[:, :-1], -np.ones((len(leads), 1))])]
        ),
        b=np.concatenate([eta.b, -leads[:, -1]]),
        bounds=np.vstack([eta.bounds, [-np.inf, np.inf]]),
    )
    lo = _minimum(np.append(np.zeros(len(eta.bounds)), [1.0, 0.0]), above, lp)
    return lo, max(-_minimum(-lead, eta, lp) for lead in leads)


def calc_range_cr_literal(question: Question, eta: Region, lp: LinearPrograms) -> tuple[float, float]:
    """calcRange for CR/MR read literally: the range of f_label − f_j over θ and j. Algorithm 2 then swaps CR and MR."""
    margins = _margins(question, eta)
    return min(_minimum(m, eta, lp) for m in margins), max(-_minimum(-m, eta, lp) for m in margins)


def _margins(question: Question, eta: Region) -> list[np.ndarray]:
    """f_label − f_j for every other class, as affine forms (d + 1,)."""
    others = [j for j in range(len(eta.outputs)) if j != question.label]
    return [eta.outputs[question.label] - eta.outputs[j] for j in others]


def _minimum(form: np.ndarray, eta: Region, lp: LinearPrograms) -> float:
    """Encoding (c). NaN when the solver calls the region empty: then nothing is satisfied."""
    solution = lp.minimum(form[:-1], eta)
    return np.nan if solution is None else solution[0] + form[-1]


def _lowest(question: Question, actual: np.ndarray, ends: list[float]) -> float:
    """The minimum of ai: one sample if the map stays, otherwise by scipy.optimize.minimize."""
    lowest = min(_inconsistency(question, actual, moved) for moved in ends)
    if question.translation is not None and np.isfinite(lowest):
        solution = minimize(
            lambda moved: _inconsistency(question, actual, moved[0]), [np.mean(ends)], bounds=[(min(ends), max(ends))]
        )
        lowest = min(lowest, float(solution.fun))
    return lowest


def _ends(question: Question, eta: Region, lp: LinearPrograms) -> list[float]:
    """The values of θ_T at which ai may have its maximum; one arbitrary value if the map stays."""
    if question.translation is None:
        return [0.0]
    direction = np.eye(len(eta.bounds))[question.translation.axis]
    return [sign * _minimum(np.append(sign * direction, 0.0), eta, lp) for sign in (1.0, -1.0)]


def _actual_maps(question: Question, eta: Region) -> np.ndarray:
    """map_j(g(θ)) for every class: the gradients under f's part of the pattern, (K, N)."""
    neurons = sum(len(bias) for _, bias in question.classifier[:-1])
    return gradients(question.classifier, eta.pattern[len(eta.pattern) - neurons :])


def _inconsistency(question: Question, actual: np.ndarray, moved: float) -> float:
    """ai = Σ_j ‖map_j(g(θ)) − g̃(θ, map_j(x0))‖_2 for θ_T = moved."""
    expected = question.expected
    if question.translation is not None:
        source = question.translation.source
        target = np.where(source >= 0, expected[:, source], 0.0)
        expected = expected + moved * (target - expected)
    return float(np.linalg.norm(actual - expected, axis=1).sum())
