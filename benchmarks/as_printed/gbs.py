"""Algorithms 1 and 2 of the paper ("Geometric Boundary Search") as printed, line by line, including their errors.

The comments give the paper's lines: 1:14 is line 14 of Algorithm 1. Deliberately kept: the start at the pattern of θ =
0 (1:3), OBS filled before the face is tested (1:14), FS holding only faces towards new patterns (1:17), one neuron
flipped for each face (1:13), every neighbour pushed while searching (1:25), "near" as δ ± w^δ (2:4). README.md
describes the consequences, and the choices where the text is ambiguous.
"""

import heapq
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from .bfs import Outcome
from .question import Pattern, Question, forward
from .region import (
    LinearPrograms,
    OutOfTime,
    Region,
    calc_interior_point_on_face,
    calc_interior_point_on_line,
    construct_activation_region,
    flipped,
    is_stable,
    simplified,
)
from .verify import calc_range_ar, calc_range_cr

Kind = Literal["CR", "AR", "CRAR"]  # gbs-CR, gbs-AR, gbs-CRAR
Side = Literal["robust", "violated", "boundary"]
CLASSIFICATION: dict[Side, str] = {"robust": "CR", "violated": "MR", "boundary": "CB"}
ATTENTION: dict[Side, str] = {"robust": "AR", "violated": "IR", "boundary": "AB"}


class Element(NamedTuple):
    """q ∈ Q: what p(q), isFollowing(q) and lineDistance(q) return."""

    p: Pattern
    is_following: bool
    line_distance: float


class Judgement(NamedTuple):
    """On which side of δ a region lies, and whether Algorithm 2 calls it near the boundary."""

    side: Side
    near_boundary: bool


@dataclass(frozen=True)
class Search(Outcome):
    """An `Outcome` with the elements taken from Q, in order, including the one that the time limit interrupted."""

    visited: tuple[Element, ...]


class Queue:
    """Q, which gives the element farthest along the line, and the first of equal ones."""

    def __init__(self, first: Element) -> None:
        self._heap: list[tuple[float, int, Element]] = []
        self._pushed = 0
        self.push([first])

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, elements: list[Element]) -> None:
        """Q ∪ Q': no pattern is ever pushed twice, because OBS holds it."""
        for q in elements:
            heapq.heappush(self._heap, (-q.line_distance, self._pushed, q))
            self._pushed += 1

    def pop_max_line_distance(self) -> Element:
        return heapq.heappop(self._heap)[2]


def gbs(
    question: Question, limit_seconds: float, *, kind: Kind = "AR", w: float = 0.2, limit_patterns: int | None = None
) -> Search:
    """Search Θ from θ = 0 along the line and along the boundary, until Q is empty or a limit is reached.

    `w` is w^δ, which gbs-CR does not use. The sets of a property that is not searched stay empty.
    """
    lp = LinearPrograms(limit_seconds)
    line = question.vertices[np.argmax(np.linalg.norm(question.vertices, axis=1))]  # its far end; the near one is 0
    visited: list[Element] = []
    faces = Faces(question, line, lp)
    finished = False
    H: dict[str, list[Region]] = {name: [] for name in ("CR", "MR", "CB", "AR", "IR", "AB")}  # 1:1
    # 1:2: g is curried with x0 in the problem
    start = forward(question.layers, np.zeros(len(question.low)))[0]
    Q = Queue(Element(start, False, 0.0))  # 1:3; 1:4: OBS is in `faces`
    with suppress(OutOfTime):
        while len(Q) and len(visited) != limit_patterns:  # 1:5
            q = Q.pop_max_line_distance()  # 1:6
            visited.append(q)
            faces.OBS.add(q.p)
            eta = construct_activation_region(question, q.p)  # 1:7
            q, FS, local = faces.of(eta, q)  # 1:8 to 1:27; `local` is Q'
            local = verify(question, simplified(eta, FS), q, local, kind, w, H, lp)  # 1:28 and 2:2
            Q.push(local)  # 1:29
        finished = not len(Q)
    seconds = time.perf_counter() - lp.started
    return Search(H, len(visited), len(Q), faces.checks, lp.count, seconds, finished, tuple(visited))


class Faces:
    """The loop over the neurons of one region (1:11 to 1:27), with OBS, which outlives it."""

    def __init__(self, question: Question, line: np.ndarray, lp: LinearPrograms) -> None:
        self.question, self.line, self.lp = question, line, lp
        self.OBS: set[Pattern] = set()  # 1:4
        self.checks = 0

    def of(self, eta: Region, q: Element) -> tuple[Element, list[int], list[Element]]:
        """The element q (searching again if it meets the line farther out), FS and Q' of a region."""
        FS: list[int] = []  # 1:8
        local: list[Element] = []  # 1:9: Q'
        for k, (_l, _n) in enumerate(self.question.neurons):  # 1:11: row k of η belongs to neuron (l, n)
            if is_stable(q.p, eta, k, self.question.vertices):  # 1:12
                continue
            neighbour = flipped(q.p, k)  # 1:13: p'
            if neighbour in self.OBS:  # 1:14
                continue
            self.OBS.add(neighbour)
            self.checks += 1
            if calc_interior_point_on_face(eta, k, self.lp) is None:  # 1:15 and 1:16
                continue
            FS.append(k)  # 1:17
            on_line = calc_interior_point_on_line(eta, k, self.line)  # 1:18: θ^L
            distance = None if on_line is None else float(np.linalg.norm(on_line))
            if q.is_following and distance is not None and distance > q.line_distance:  # 1:19
                q = Element(q.p, False, q.line_distance)  # 1:20: re-found the line in boundary-following
            if not q.is_following and distance is not None:  # 1:22
                local.append(Element(neighbour, False, distance))  # 1:23: continue line-search
            else:
                local.append(Element(neighbour, q.is_following, q.line_distance))  # 1:25: continue current
        return q, FS, local


def verify(
    question: Question,
    simple: Region,
    q: Element,
    local: list[Element],
    kind: Kind,
    w: float,
    H: dict[str, list[Region]],
    lp: LinearPrograms,
) -> list[Element]:
    """Algorithm 2 for η~ = `simple`: enters it into H and returns the rest of Q'."""
    judgements: list[Judgement] = []
    if kind != "AR":
        one = judge(*calc_range_cr(question, simple, lp), delta=0.0, w=0.0)  # 2:3 and 2:4, δ = 0 and w^δ = 0
        H[CLASSIFICATION[one.side]].append(simple)  # 2:6, 2:9, 2:12
        judgements.append(one)
    if kind != "CR":
        one = judge(*calc_range_ar(question, simple, lp), delta=question.delta, w=w)  # 2:3 and 2:4
        H[ATTENTION[one.side]].append(simple)  # 2:6, 2:9, 2:12
        judgements.append(one)
    side, near_boundary = together(judgements)
    if (side == "robust" and q.is_following and not near_boundary) or (  # 2:7: no traversing connected regions
        side == "violated" and not near_boundary  # 2:10: no traversing connected regions
    ):
        local = []
    if not q.is_following and near_boundary:  # 2:14
        local = [Element(p, True, distance) for p, _, distance in local]  # 2:15: switch to boundary-following
    return local


def judge(lo: float, up: float, *, delta: float, w: float) -> Judgement:
    """The conditions of Algorithm 2 on the range [lo, up] of a region.

    >>> judge(1.0, 1.0, delta=3.0, w=0.2), judge(5.0, 5.0, delta=3.0, w=0.2)
    (Judgement(side='robust', near_boundary=False), Judgement(side='violated', near_boundary=False))
    """
    near = lo <= delta <= up or delta - w <= lo <= delta + w or delta - w <= up <= delta + w  # 2:4
    if lo <= up <= delta:  # 2:5
        return Judgement("robust", near)
    if delta < lo <= up:  # 2:8
        return Judgement("violated", near)
    return Judgement("boundary", near)  # 2:11; also where the solver calls η~ empty and the range is NaN


def together(judgements: list[Judgement]) -> Judgement:
    """The judgement about "the regions satisfying both CR and AR"; of one judgement, that one.

    A region is violated if it violates one of them. It is near the common boundary if it is near one of the two
    boundaries and not beyond the other.
    """
    sides = {one.side for one in judgements}
    side: Side = "violated" if "violated" in sides else "boundary" if "boundary" in sides else "robust"
    is_beyond = any(one.side == "violated" and not one.near_boundary for one in judgements)
    return Judgement(side, any(one.near_boundary for one in judgements) and not is_beyond)
