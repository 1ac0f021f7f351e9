"""The subroutines of Algorithms 1 and 3 that work on one activation region: half-spaces, faces, linear programs.

As in the paper, half-spaces are closed and a region may have no volume.
"""

import time
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog

from .question import Pattern, Question

FEASIBLE = 1e-7
"""How far the solver lets a point violate a half-space (its default); the same for points on the line."""


class OutOfTime(Exception):  # noqa: N818 - not an error: the search ends with what it has
    """The time limit of the search is reached."""


class LinearPrograms:
    """`scipy.optimize.linprog(method="highs")`, counted, until the deadline."""

    def __init__(self, limit_seconds: float) -> None:
        self.count = 0
        self.started = time.perf_counter()
        self.deadline = self.started + limit_seconds

    def minimum(
        self, objective: np.ndarray, region: "Region", face: int | None = None
    ) -> tuple[float, np.ndarray] | None:
        """min objective·θ s.t. A''θ ≤ b'' (and A''_face θ = b''_face) in Θ: (value, θ), None when infeasible."""
        if time.perf_counter() > self.deadline:
            raise OutOfTime
        self.count += 1
        solution = linprog(
            objective,
            A_ub=region.A,
            b_ub=region.b,
            A_eq=None if face is None else region.A[[face]],
            b_eq=None if face is None else region.b[[face]],
            bounds=region.bounds,
            method="highs",
        )
        return (float(solution.fun), solution.x) if solution.status == 0 else None


@dataclass(frozen=True)
class Region:
    """η = HConvex(θ; p): A''θ ≤ b'' (Eq. 1) inside Θ, with the affine outputs f_j(g(θ)) = outputs[j]·(θ, 1)."""

    pattern: Pattern
    A: np.ndarray  # (half-spaces, d)
    b: np.ndarray  # (half-spaces,)
    outputs: np.ndarray  # (K, d + 1)
    bounds: np.ndarray  # (d, 2)


def construct_activation_region(question: Question, p: Pattern) -> Region:
    """constructActivationRegion: one half-space per neuron, row k for the k-th of `problem.neurons`."""
    active = np.frombuffer(p, dtype=np.uint8)
    d = len(question.low)
    forms = np.eye(d + 1)[:d]  # (n, d + 1): values of the current layer, affine in theta
    rows, start = [], 0
    for matrix, bias in question.layers[:-1]:
        forms = matrix @ forms
        forms[:, d] += bias
        rows.append(forms)
        forms = forms * active[start : start + len(bias), None]
        start += len(bias)
    matrix, bias = question.layers[-1]
    outputs = matrix @ forms
    outputs[:, d] += bias
    # Active: form ≥ 0, so −form ≤ 0. Inactive: form ≤ 0.
    signed = np.vstack(rows) * np.where(active, -1.0, 1.0)[:, None] if rows else np.empty((0, d + 1))
    return Region(p, signed[:, :d], -signed[:, d], outputs, np.column_stack([question.low, question.high]))


def is_stable(p: Pattern, eta: Region, k: int, vertices: np.ndarray) -> bool:
    """isStable: neuron k, under p, has one activity on all of Θ, seen from the few vertices of Θ."""
    violation = vertices @ eta.A[k] - eta.b[k]  # ≤ 0 where the activity of p holds
    return bool((violation < 0).all() if p[k] else (violation <= 0).all())


def flipped(p: Pattern, k: int) -> Pattern:
    """flipped: the same pattern with the other activity of neuron k."""
    return p[:k] + bytes([1 - p[k]]) + p[k + 1 :]


def calc_interior_point_on_face(eta: Region, k: int, lp: LinearPrograms) -> np.ndarray | None:
    """calcInteriorPointOnFace: a point of η with A''_k θ = b''_k, by the LP of encoding (b); None if there is none."""
    solution = lp.minimum(np.zeros(len(eta.bounds)), eta, face=k)
    return None if solution is None else solution[1]


def calc_interior_point_on_line(eta: Region, k: int, line: np.ndarray) -> np.ndarray | None:
    """calcInteriorPointOnLine: a point of the face k of η on the segment from 0 to `line` (d,); None if there is none.

    In closed form, θ = s·line: one unknown needs no program. If the segment runs inside the face, its middle.
    """
    slopes = eta.A @ line  # A''θ ≤ b'' becomes slopes·s ≤ b''
    if slopes[k] != 0.0:
        s = eta.b[k] / slopes[k]
        is_inside = -FEASIBLE <= s <= 1.0 + FEASIBLE and (slopes * s <= eta.b + FEASIBLE).all()
        return np.clip(s, 0.0, 1.0) * line if is_inside else None
    if eta.b[k] != 0.0 or (eta.b[slopes == 0.0] < -FEASIBLE).any():
        return None
    up, down = slopes > 0.0, slopes < 0.0
    first = max(0.0, (eta.b[down] / slopes[down]).max(initial=0.0))
    last = min(1.0, (eta.b[up] / slopes[up]).min(initial=1.0))
    return 0.5 * (first + last) * line if first <= last else None


def simplified(eta: Region, faces: list[int]) -> Region:
    """simplified: limit the constraints on η to FS."""
    return replace(eta, A=eta.A[faces], b=eta.b[faces])
