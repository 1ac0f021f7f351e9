"""Algorithm 3 of the paper (appendix, "Algorithm BFS") as printed, line by line, including its errors.

The comments give the paper's lines. Deliberately kept: the start at the pattern of θ = 0 (line 3), OBS filled before
the face is tested (line 16), FS holding only faces towards new patterns (line 19). README.md describes the
consequences.
"""

import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from .question import Pattern, Question, forward
from .region import (
    LinearPrograms,
    OutOfTime,
    Region,
    calc_interior_point_on_face,
    construct_activation_region,
    flipped,
    is_stable,
    simplified,
)
from .verify import solve_ar, solve_cr, solve_ir, solve_mr


@dataclass(frozen=True)
class Outcome:
    """Findings and costs of the search; `popped` includes the pattern that the time limit interrupted."""

    found: dict[str, list[Region]]  # H^CR, H^MR, H^CB, H^AR, H^IR, H^AB: simplified regions
    popped: int
    queued: int  # patterns still in Q at the end
    face_checks: int
    linear_programs: int
    seconds: float
    finished: bool


def bfs(question: Question, limit_seconds: float, *, limit_patterns: int | None = None) -> Outcome:
    """Search Θ from θ = 0, pattern by pattern, until Q is empty or a limit is reached."""
    lp = LinearPrograms(limit_seconds)
    popped = face_checks = 0
    finished = False
    H: dict[str, list[Region]] = {name: [] for name in ("CR", "MR", "CB", "AR", "IR", "AB")}  # line 1
    # line 2: g is curried with x0 in the problem
    Q: deque[Pattern] = deque([forward(question.layers, np.zeros(len(question.low)))[0]])  # line 3: ap(0)
    OBS: set[Pattern] = set()  # line 4
    with suppress(OutOfTime):
        while Q and popped != limit_patterns:  # line 5
            p = Q.popleft()  # line 6
            popped += 1
            OBS.add(p)  # line 7
            eta = construct_activation_region(question, p)  # line 8

            FS: list[int] = []  # line 11
            for k, (_l, _n) in enumerate(question.neurons):  # line 12: row k of η belongs to neuron (l, n)
                if is_stable(p, eta, k, question.vertices):  # line 13
                    continue
                neighbour = flipped(p, k)  # line 14: p'
                if neighbour in OBS:  # line 15
                    continue
                OBS.add(neighbour)  # line 16
                face_checks += 1
                if calc_interior_point_on_face(eta, k, lp) is None:  # lines 17 and 18
                    continue
                FS.append(k)  # line 19
                Q.append(neighbour)  # line 20

            simple = simplified(eta, FS)  # line 24: η~
            if solve_cr(question, simple, lp):  # lines 25 to 31
                H["CR"].append(simple)
            elif solve_mr(question, simple, lp):
                H["MR"].append(simple)
            else:
                H["CB"].append(simple)

            if solve_ar(question, simple, lp):  # lines 32 to 38
                H["AR"].append(simple)
            elif solve_ir(question, simple, lp):
                H["IR"].append(simple)
            else:
                H["AB"].append(simple)
        finished = not Q
    seconds = time.perf_counter() - lp.started
    return Outcome(H, popped, len(Q), face_checks, lp.count, seconds, finished)  # line 40
