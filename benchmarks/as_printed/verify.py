"""The questions about one region: solveCR, solveMR, solveAR, solveIR of Algorithm 3, calcRange of Algorithm 2.

Filter identity, distance L2, all classes, as in the paper's runs.
"""

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from .problem import Problem, gradients
from .region import LinearPrograms, Region


def solve_cr(problem: Problem, eta: Region, lp: LinearPrograms) -> bool:
    """solveCR: min over j and θ of f_label − f_j is > 0."""
    return all(_minimum(margin, eta, lp) > 0 for margin in _margins(problem, eta))


def solve_mr(problem: Problem, eta: Region, lp: LinearPrograms) -> bool:
    """solveMR: f_label "cannot be greater than the outputs of any other labels", every f_j − f_label stays > 0."""
    return all(_minimum(-margin, eta, lp) > 0 for margin in _margins(problem, eta))


def solve_ar(problem: Problem, eta: Region, lp: LinearPrograms) -> bool:
    """solveAR: max of ai ≤ δ, one sample when the map is kept, else "the values at both ends" (of θ_T)."""
    actual = _actual_maps(problem, eta)
    return all(_inconsistency(problem, actual, moved) <= problem.delta for moved in _ends(problem, eta, lp))


def solve_ir(problem: Problem, eta: Region, lp: LinearPrograms) -> bool:
    """solveIR: min of ai > δ, one sample when the map is kept, else by scipy.optimize.minimize."""
    return bool(_lowest(problem, _actual_maps(problem, eta), _ends(problem, eta, lp)) > problem.delta)


def calc_range_ar(problem: Problem, eta: Region, lp: LinearPrograms) -> tuple[float, float]:
    """calcRange for AR/IR: the range of ai, NaN when the solver calls the region empty."""
    actual, ends = _actual_maps(problem, eta), _ends(problem, eta, lp)
    return _lowest(problem, actual, ends), max(_inconsistency(problem, actual, moved) for moved in ends)


def calc_range_cr(problem: Problem, eta: Region, lp: LinearPrograms) -> tuple[float, float]:
    """calcRange for CR/MR, so read that Algorithm 2 with δ = 0 makes sense: the range of max_j f_j − f_label."""
    leads = -np.array(_margins(problem, eta))  # f_j − f_label
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


def calc_range_cr_literal(problem: Problem, eta: Region, lp: LinearPrograms) -> tuple[float, float]:
    """calcRange for CR/MR word by word: the range of f_label − f_j over θ and j. Algorithm 2 then swaps CR and MR."""
    margins = _margins(problem, eta)
    return min(_minimum(m, eta, lp) for m in margins), max(-_minimum(-m, eta, lp) for m in margins)


def _margins(problem: Problem, eta: Region) -> list[np.ndarray]:
    """f_label − f_j for every other class, as affine forms (d + 1,)."""
    others = [j for j in range(len(eta.outputs)) if j != problem.label]
    return [eta.outputs[problem.label] - eta.outputs[j] for j in others]


def _minimum(form: np.ndarray, eta: Region, lp: LinearPrograms) -> float:
    """Encoding (c). NaN when the solver calls the region empty: then nothing is satisfied."""
    solution = lp.minimum(form[:-1], eta)
    return np.nan if solution is None else solution[0] + form[-1]


def _lowest(problem: Problem, actual: np.ndarray, ends: list[float]) -> float:
    """The minimum of ai: the one sample when the map is kept, else by scipy.optimize.minimize."""
    lowest = min(_inconsistency(problem, actual, moved) for moved in ends)
    if problem.translation is not None and np.isfinite(lowest):
        solution = minimize(
            lambda moved: _inconsistency(problem, actual, moved[0]), [np.mean(ends)], bounds=[(min(ends), max(ends))]
        )
        lowest = min(lowest, float(solution.fun))
    return lowest


def _ends(problem: Problem, eta: Region, lp: LinearPrograms) -> list[float]:
    """The values of θ_T at which ai has to be known for its maximum; one of no meaning when the map is kept."""
    if problem.translation is None:
        return [0.0]
    direction = np.eye(len(eta.bounds))[problem.translation.axis]
    return [sign * _minimum(np.append(sign * direction, 0.0), eta, lp) for sign in (1.0, -1.0)]


def _actual_maps(problem: Problem, eta: Region) -> np.ndarray:
    """map_j(g(θ)) for every class: the gradients under f's part of the pattern, (K, N)."""
    neurons = sum(len(bias) for _, bias in problem.classifier[:-1])
    return gradients(problem.classifier, eta.pattern[len(eta.pattern) - neurons :])


def _inconsistency(problem: Problem, actual: np.ndarray, moved: float) -> float:
    """ai = Σ_j ‖map_j(g(θ)) − g̃(θ, map_j(x0))‖_2 for θ_T = moved."""
    expected = problem.expected
    if problem.translation is not None:
        source = problem.translation.source
        target = np.where(source >= 0, expected[:, source], 0.0)
        expected = expected + moved * (target - expected)
    return float(np.linalg.norm(actual - expected, axis=1).sum())
