"""The regions that a boundary search along a line must visit and may visit, by definition, and the claims it may make.

A region is S, V or B: the property holds everywhere on it, nowhere, or in part. Boundary regions are the B ones, and
the S and V ones that share a facet. Where the line first meets a boundary region, all boundary regions that hang
together with it through facets are visited; from the last of them on the line the search goes on, if the next is S.
"""

from fractions import Fraction
from functools import cache

import numpy as np

from steadygaze.question import Question as Problem
from support.networks.search_problems import random_problem
from support.oracles.attention_by_definition import Question
from support.oracles.exact_boundary import Line, spread, walk
from support.oracles.exact_labels import ExactLabels


class Expected:
    """The truth about one problem, one property and one line; regions by their numbers in the exact map."""

    def __init__(self, truth: ExactLabels, property: str, delta: float, w_delta: float = 0.0) -> None:
        self.truth, self.property, self.delta, self.w_delta = truth, property, delta, w_delta
        self.kinds = [self._kind(number) for number in range(len(truth.map.regions))]

    def names(self, number: int) -> list[set[str]]:
        """The admitted labels of the property."""
        asked = [self.truth.classification(number)] * (self.property != "ar")
        return asked + [self.truth.attention(number, self.delta)] * (self.property != "cr")

    def _kind(self, number: int) -> str:
        own = set().union(*self.names(number)) - {"undecided"}
        # A region that is tied as a whole has no label, and R does not contain it.
        if own & {"MR", "IR"} or {"undecided"} in self.names(number):
            return "V"
        return "B" if own & {"CB", "AB"} else "S"

    def neighbours(self, number: int) -> set[int]:
        return {other for other in self.truth.map.neighbours[number] if other is not None}

    def is_boundary(self, number: int) -> bool:
        own = self.kinds[number]
        if own == "B":
            return True
        return any(self.kinds[other] == {"S": "V", "V": "S"}[own] for other in self.neighbours(number))

    def is_near(self, number: int) -> bool:
        """A boundary region, or one that may have been taken for one: it touches a threshold, or is within w^δ."""
        if self.is_boundary(number) or any("undecided" in names for names in self.names(number)):
            return True
        if self.property == "cr":
            return False
        ends = (float(end) for end in self.truth.inconsistencies[number])
        return any(abs(end - self.delta) <= self.w_delta + 1e-6 for end in ends)

    def must(self, line: Line) -> set[int]:
        """The regions that a search must visit. If the line starts in a V region, that region alone."""
        if self.kinds[line.regions[0]] == "V":
            return {line.regions[0]}
        found: set[int] = set()
        place = 0
        while place < len(line.regions):
            region = line.regions[place]
            if self.is_boundary(region):
                joined = spread([region], lambda n: {m for m in self.neighbours(n) if self.is_boundary(m)})
                found |= joined
                place = max(i for i, other in enumerate(line.regions) if other in joined) + 1
                if place < len(line.regions) and self.kinds[line.regions[place]] == "V":
                    break
            else:
                found.add(region)
                place += 1
        return found

    def may(self, line: Line) -> set[int]:
        """The regions that a search may visit: the line, regions near the boundary, and their neighbours."""
        near = {number for number in range(len(self.kinds)) if self.is_near(number)}
        # An undecided region may be of either kind, so its neighbours may be near.
        unknown = {n for n in range(len(self.kinds)) if any("undecided" in names for names in self.names(n))}
        near |= {other for number in unknown for other in self.neighbours(number)}
        return set(line.regions) | near | {other for number in near for other in self.neighbours(number)}


def truth_of(problem: Problem) -> ExactLabels:
    return ExactLabels(problem.compound, problem.label, Question())


@cache
def random_truth(seed: int, dimension: int) -> ExactLabels:
    """The truth about a random problem, computed once for all tests of a process."""
    return truth_of(random_problem(seed, dimension))


@cache
def random_line(seed: int, dimension: int) -> tuple[np.ndarray, Line] | None:
    """`plain_line` for a random problem, looked for once for all tests of a process."""
    return plain_line(random_truth(seed, dimension), seed)


def plain_line(truth: ExactLabels, seed: int) -> tuple[np.ndarray, Line] | None:
    """A theta on the border of the domain such that the line to it meets facets only inside them."""
    domain = truth.compound.domain
    d = domain.dimension
    rng = np.random.default_rng([seed, 31])
    low, width = ([Fraction(float(x)) for x in values] for values in (domain.low, domain.widths))
    zero = [-a / w for a, w in zip(low, width, strict=True)]
    for _ in range(30):
        end = [Fraction(int(n), 1024) for n in rng.integers(1, 1024, size=d)]
        axis = int(rng.integers(d))
        end[axis] = Fraction(1) if zero[axis] < 1 else Fraction(0)
        line = walk(truth.map, zero, end)
        if line.is_plain:
            return np.array([float(a + t * w) for a, t, w in zip(low, end, width, strict=True)]), line
    return None


def corner_line(truth: ExactLabels) -> Line:
    """From zero to the farthest vertex of the domain, the first in lexicographic order of equal ones."""
    domain = truth.compound.domain
    low, high = domain.low, domain.high
    zero = [Fraction(float(-a)) / Fraction(float(w)) for a, w in zip(low, domain.widths, strict=True)]
    return walk(truth.map, zero, [Fraction(int(abs(b) >= abs(a))) for a, b in zip(low, high, strict=True)])
