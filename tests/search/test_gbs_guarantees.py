"""What GBS promises, by definition: true labels, the boundary that the line meets, and no claim beyond the visits.

A region is S, V or B: the property holds everywhere on it, nowhere, or in part. Boundary regions are the B ones, and
the S and V ones that share a facet. Where the line first meets a boundary region, all boundary regions that hang
together with it through facets are visited; from the last of them on the line the search goes on, if the next is S.
"""

from fractions import Fraction

import numpy as np
import pytest
from test_bfs_agreement import threshold

from attention.by_definition import Question
from oracle.exact_boundary import Line, spread, walk
from oracle.exact_labels import ExactLabels
from oracle.reading_regions import exact_of
from oracle.small_problems import diamond, free_pixels, random_problem, shaped_problem, together
from steadygaze.api import explore, make_problem
from steadygaze.engines.search import SearchResult, search
from steadygaze.errors import OptionError, SteadygazeError
from steadygaze.labels import Status, Verdict
from steadygaze.question import Question as Problem

CASES = [(d, seed) for d, count in ((1, 24), (2, 60), (3, 24)) for seed in range(count)]


class Expected:
    """The truth about one problem, one property and one line; regions by their numbers in the exact map."""

    def __init__(self, truth: ExactLabels, property: str, delta: float, w_delta: float = 0.0) -> None:
        self.truth, self.property, self.delta, self.w_delta = truth, property, delta, w_delta
        self.kinds = [self._kind(number) for number in range(len(truth.map.regions))]

    def names(self, number: int) -> list[set[str]]:
        """The admitted labels of what is asked for."""
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
        """What has to be visited; where the line starts in a V region it never leaves R, and only that one is."""
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
        """What there is a reason to visit: the line, what is near the boundary, and the neighbours of that."""
        near = {number for number in range(len(self.kinds)) if self.is_near(number)}
        # What cannot be decided may be of either kind, so its neighbours may be near.
        unknown = {n for n in range(len(self.kinds)) if any("undecided" in names for names in self.names(n))}
        near |= {other for number in unknown for other in self.neighbours(number)}
        return set(line.regions) | near | {other for number in near for other in self.neighbours(number)}


def truth_of(problem: Problem) -> ExactLabels:
    return ExactLabels(problem.compound, problem.label, Question())


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


def assert_sound(result: SearchResult, expected: Expected) -> set[int]:
    """Every visited region is one of the map, visited once, with a true label; status and verdict follow from them."""
    truth, delta = expected.truth, expected.delta
    numbers = [exact_of(visited.region, truth.compound.programs, truth.map) for visited in result.visited]
    assert len(set(numbers)) == len(numbers)
    for number, visited in zip(numbers, result.visited, strict=True):
        if expected.property != "ar":
            assert visited.classification in truth.classification(number)
        if expected.property != "cr":
            assert visited.attention in truth.attention(number, delta)
    share = float(sum(truth.map.regions[number].polytope.volume for number in numbers))
    assert result.visited_share == pytest.approx(share, abs=1e-9)
    assert result.failures == 0
    kinds = {expected.kinds[number] for number in numbers if all("undecided" not in n for n in expected.names(number))}
    if kinds & {"V", "B"}:
        assert (result.status, result.verdict) == (Status.NOT_ROBUST, Verdict.NOT_ROBUST)
    if {expected.kinds[number] for number in numbers} == {"S"}:
        assert result.status in (Status.ROBUST, Status.FAILED)
        assert result.verdict is not Verdict.NOT_ROBUST
    if result.is_covering:
        assert set(expected.kinds) == {"S"} and len(numbers) == len(truth.map.regions)
    elif result.status is Status.ROBUST:
        assert len(numbers) < len(truth.map.regions)
    if result.status is Status.ROBUST:
        assert result.verdict is Verdict.UNDECIDED  # nothing confirmed it yet
    return set(numbers)


@pytest.mark.parametrize("property", ["cr", "ar", "both"])
@pytest.mark.parametrize(("dimension", "seed"), CASES)
def test_random_networks(dimension: int, seed: int, property: str) -> None:
    truth = truth_of(random_problem(seed, dimension))
    delta = threshold(truth)
    problem = random_problem(seed, dimension, property=property, delta=delta)
    w_delta = (0.0, 0.2)[seed % 2]
    expected = Expected(truth, property, delta, w_delta)
    chosen = plain_line(truth, seed)
    if chosen is None:
        pytest.skip("every line that was tried meets a vertex")
    theta, line = chosen
    result = search(problem, method="gbs", w_delta=w_delta, line=theta)
    visited = assert_sound(result, expected)
    assert expected.must(line) <= visited
    assert visited <= expected.may(line)
    searching = {
        exact_of(one.region, truth.compound.programs, truth.map) for one in result.visited if not one.is_following
    }
    assert line.regions[0] in searching
    assert searching <= set(line.regions)


def test_the_random_networks_are_worth_it() -> None:
    """The boundary is met often, by all kinds of facets, and most maps are not visited as a whole by right."""
    met = of_facets = 0
    for dimension, seed in CASES[::2]:
        truth = truth_of(random_problem(seed, dimension))
        chosen = plain_line(truth, seed)
        for property in ("cr", "ar"):
            expected = Expected(truth, property, threshold(truth))
            boundary = {n for n in expected.must(chosen[1]) if expected.is_boundary(n)} if chosen else set()
            met += bool(boundary)
            of_facets += any(expected.kinds[number] != "B" for number in boundary)
    assert met > 40
    assert of_facets > 10


@pytest.mark.parametrize(("dimension", "seed"), CASES[::3])
def test_the_line_to_the_corner(dimension: int, seed: int) -> None:
    """Through vertices the line has a choice, and only the soundness is promised by the definitions."""
    truth = truth_of(random_problem(seed, dimension))
    delta = threshold(truth)
    expected = Expected(truth, "both", delta)
    result = search(random_problem(seed, dimension, property="both", delta=delta), method="gbs", w_delta=0.0)
    visited = assert_sound(result, expected)
    line = corner_line(truth)
    if line.is_plain:
        assert expected.must(line) <= visited


SHAPES = {
    "an enclave on the line": (diamond([0.75, 0.5], 0.125), (0.5, 0.0625)),
    "a closed boundary": (diamond([0.5, 0.5], 0.25, outside=True), (0.5, 0.0625)),
    "beyond the enclave a corner": (together(diamond([0.6875, 0.625], 0.125), diamond([1, 1], 0.375)), (0.5, 0.4375)),
    "an enclave beside the line": (together(diamond([0.75, 0.25], 0.125), diamond([1, 1], 0.375)), (0.5, 0.4375)),
    "three dimensions": (diamond([0.75, 0.5, 0.5], 0.125), (0.5, 0.0625, 0.03125)),
    "a corner in three dimensions": (diamond([1, 1, 1], 0.5), (0.5, 0.46875, 0.4375)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: str) -> None:
    layers, theta = SHAPES[shape]
    problem = shaped_problem(layers, property="cr")
    truth = truth_of(problem)
    expected = Expected(truth, "cr", 0.0)
    line = walk(truth.map, [Fraction(1, 2)] * len(theta), [Fraction(1, 2) + Fraction(t) for t in theta])
    assert line.is_plain
    result = search(problem, method="gbs", line=np.array(theta))
    visited = assert_sound(result, expected)
    must = expected.must(line)
    assert must <= visited <= expected.may(line)
    assert any(expected.kinds[number] == "B" for number in must)
    assert len(visited) < len(truth.map.regions) or len(truth.map.regions) < 20


def test_beyond_an_enclave_the_search_goes_on() -> None:
    """The line first meets an enclave, and behind it the corner, whose boundary is found as well."""
    layers, theta = SHAPES["beyond the enclave a corner"]
    problem = shaped_problem(layers, property="cr")
    result = search(problem, method="gbs", line=np.array(theta))
    compound = problem.compound
    mixed = [one for one in result.visited if one.classification == "CB"]
    logits = [np.append(one.region.inside, 1.0) @ one.region.logits for one in mixed]
    assert {1, 2} <= {int(values[1:].argmax()) + 1 for values in logits}
    assert compound.domain.contains(theta)


def test_an_undecided_region_beside_a_violated_one() -> None:
    """t ∈ [0,1]: the margin falls to 0 at 1/2, is 0 up to 3/4, and rises; ai is 0, 5 and 4.5, δ = 4.75.

    The regions at both ends keep the label inside, but their margins touch 0, which floats leave undecided. The one in
    the middle violates both properties, and the boundary on its far side hangs together with the one on its near side.
    """
    layers = [
        (np.array([[1.0], [0.5], [-2.0]]), np.array([-0.75, -0.375, 1.0])),
        (np.array([[0.0, -1.0, -2.0], [1.0, 0.0, -0.5]]), np.array([0.0, 0.0])),
    ]
    model, image, specs = free_pixels(layers, in_middle=False)
    problem = make_problem(model, image, list(specs), property="both", delta=4.75)
    truth = truth_of(problem)
    expected = Expected(truth, "both", 4.75)
    line = walk(truth.map, [Fraction(0)], [Fraction(1)])
    assert [expected.kinds[number] for number in line.regions] == ["S", "V", "S"]
    assert assert_sound(search(problem, method="gbs", w_delta=0.0), expected) == set(line.regions)


def test_robust_without_a_proof() -> None:
    """Class 1 leads in a corner that the line does not meet: only robust regions are visited, and nothing is proved."""
    problem = shaped_problem(diamond([0, 0], 0.25), property="cr")
    result = search(problem, method="gbs", line=np.array([0.5, 0.4375]))
    assert result.status is Status.ROBUST
    assert result.visited_share < 1.0
    assert result.verdict is Verdict.UNDECIDED


def test_robust_with_a_proof() -> None:
    """One region, label kept: what was visited is the whole domain."""
    layers = [(np.eye(2), np.zeros(2)), (np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([1.0, 0.0]))]
    model, image, specs = free_pixels(layers, in_middle=True)
    problem = make_problem(model, image, list(specs), property="cr")
    result = explore(problem, method="gbs", w_delta=0.2, line="corner")
    assert (result.status, result.verdict, result.visited_share) == (Status.ROBUST, Verdict.ROBUST, 1.0)


def test_a_domain_without_zero_is_refused() -> None:
    layers = [(np.eye(2), np.zeros(2)), (np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([1.0, 0.0]))]
    model, image, _ = free_pixels(layers, in_middle=False)
    specs = ["patch:x=0,y=0,w=1,h=1:0.25..1", "patch:x=1,y=0,w=1,h=1"]
    for method in ("gbs", "boundary"):
        with pytest.raises(SteadygazeError):
            search(make_problem(model, image, specs), method=method)
    assert search(make_problem(model, image, specs), method="bfs").visited_share == 1.0


@pytest.mark.parametrize(
    "options", [{"w_delta": -0.1}, {"w_delta": float("nan")}, {"line": [2.0, 0.0]}, {"line": [0.1]}]
)
def test_bad_options_are_refused(options: dict) -> None:
    with pytest.raises(OptionError):
        search(shaped_problem(diamond([0, 0], 0.25)), method="gbs", **options)
