"""`method="boundary"` against the definition of the outermost boundary, by flood fill over exact pieces.

A component of the outermost boundary is what lies between C0 (the reachable part of R) and one component of its
complement that touches the border of the domain; it is compared by the regions along it, on either side. Where the
definition leaves a choice (zero lies between pieces of both kinds, or the border is touched in a point only), nothing
is compared.
"""

from collections import Counter
from functools import cache

import numpy as np
import pytest

from steadygaze.question import Question as Problem
from steadygaze.question import make_question
from steadygaze.results.result import Result
from support.networks.layered_networks import FloatLayer
from support.networks.search_problems import (
    diamond,
    free_pixels,
    random_problem,
    search_alone,
    shaped_problem,
    together,
)
from support.oracles.exact_boundary import ExactBoundary, make_boundary
from support.oracles.exact_labels import ExactLabels, threshold
from support.oracles.expected_visits import Expected, random_truth, truth_of
from support.readers.visited_regions import assert_sound, key_of

Sides = tuple[frozenset[int], frozenset[int]]

CASES = [(d, seed) for d, count in ((1, 24), (2, 60), (3, 24)) for seed in range(count)]


def expected_sides(found: ExactBoundary) -> Counter[Sides]:
    """Per component of the outermost boundary the regions on its inner and on its outer side; two may share them."""
    return Counter(
        (
            frozenset(found.pieces[ours].region for ours, _ in component.faces),
            frozenset(found.pieces[theirs].region for _, theirs in component.faces),
        )
        for component in found.outermost
    )


def found_sides(result: Result, truth: ExactLabels) -> Counter[Sides]:
    """The same from the result; every key is that of a visited region."""
    assert result.tiling.components is not None
    numbers = {
        visited.region.key: truth.map.by_key[key_of(visited.region, truth.compound.programs)]
        for visited in result.tiling.visited
    }
    return Counter(
        (frozenset(numbers[key] for key in part.inner), frozenset(numbers[key] for key in part.outer))
        for part in result.tiling.components
    )


def assert_boundary(problem: Problem, truth: ExactLabels, property: str, delta: float, **options: object) -> int:
    """Compare; the number of components."""
    return assert_agrees(make_boundary(truth, property, delta), problem, truth, property, delta, **options)


def assert_agrees(
    exact: ExactBoundary, problem: Problem, truth: ExactLabels, property: str, delta: float, **options: object
) -> int:
    """Compare with a boundary that is known; the number of components."""
    result = search_alone(problem, method="boundary", **options)  # type: ignore[arg-type]
    assert_sound(result, Expected(truth, property, delta))
    expected = expected_sides(exact) if exact.inner else Counter()
    if exact.is_clear:
        assert found_sides(result, truth) == expected
    return expected.total()


@cache
def random_boundary(seed: int, dimension: int, property: str) -> ExactBoundary:
    truth = random_truth(seed, dimension)
    return make_boundary(truth, property, threshold(truth))


@pytest.mark.parametrize("property", ["cr", "ar", "both"])
@pytest.mark.parametrize(("dimension", "seed"), CASES)
def test_random_networks(dimension: int, seed: int, property: str) -> None:
    truth = random_truth(seed, dimension)
    delta = threshold(truth)
    problem = random_problem(seed, dimension, property=property, delta=delta)
    assert_agrees(random_boundary(seed, dimension, property), problem, truth, property, delta)


def test_the_random_networks_are_worth_it() -> None:
    """Several have two components or more, some have enclaves, and in most the definition leaves no choice."""
    several = clear = some = 0
    for dimension, seed in CASES[::2]:
        for property in ("cr", "ar"):
            exact = random_boundary(seed, dimension, property)
            clear += exact.is_clear
            some += exact.is_clear and len(exact.outermost) > 0
            several += exact.is_clear and len(exact.outermost) > 1
    assert clear > 60
    assert some > 30
    assert several > 3


def ring(dimension: int) -> list[FloatLayer]:
    """Logits (1/8, s − 2·ReLU(s − 3/16)) with s = Σ|x_i − 1/2|: class 1 leads for 1/8 < s < 1/4, class 0 beyond."""
    eye = np.eye(dimension)
    first = (np.vstack([eye, -eye]), np.repeat([-0.5, 0.5], dimension))
    second = (np.ones((2, 2 * dimension)), np.array([0.0, -0.1875]))
    return [first, second, (np.array([[0.0, 0.0], [1.0, -2.0]]), np.array([0.125, 0.0]))]


def strips(*places: float) -> list[FloatLayer]:
    """Class 1 leads where |x_1 − place| < 1/16 for one of the places; nothing depends on x_2."""
    rows = np.array([[sign, 0.0] for _ in places for sign in (1.0, -1.0)])
    bias = np.array([sign * -place for place in places for sign in (1.0, -1.0)])
    second = np.zeros((len(places), len(rows)))
    for number in range(len(places)):
        second[number, 2 * number : 2 * number + 2] = -1.0
    last = np.vstack([np.zeros((1, len(places))), np.ones((1, len(places)))])
    return [(rows, bias), (second, np.full(len(places), 0.125)), (last, np.array([0.0625, 0.0]))]


SHAPES: dict[str, tuple[list[FloatLayer], int]] = {
    "an enclave": (diamond([0.75, 0.5], 0.125), 0),
    "an enclave in three dimensions": (diamond([0.75, 0.5, 0.5], 0.125), 0),
    "a violation that cuts an interval": (diamond([0.75], 0.125), 1),
    "a closed boundary around zero": (diamond([0.5, 0.5], 0.25, outside=True), 1),
    "a closed boundary around zero in three dimensions": (diamond([0.5] * 3, 0.25, outside=True), 1),
    "both sides of an interval": (diamond([0.5], 0.25, outside=True), 2),
    "a corner": (diamond([1, 1], 0.375), 1),
    "two corners": (together(diamond([1, 1], 0.375), diamond([0, 0], 0.25)), 2),
    "two corners and an enclave": (
        together(diamond([0, 0], 0.25), diamond([1, 1], 0.375), diamond([0.75, 0.25], 0.125)),
        2,
    ),
    "a bay on every side": (
        together(diamond([0, 0.5], 0.25), diamond([1, 0.5], 0.25), diamond([0.5, 0], 0.25), diamond([0.5, 1], 0.25)),
        4,
    ),
    "two opposite corners in three dimensions": (together(diamond([0, 0, 0], 0.5), diamond([1, 1, 1], 0.25)), 2),
    "an enclave beside a corner in three dimensions": (
        together(diamond([0.25, 0.5, 0.5], 0.125), diamond([1, 1, 1], 0.5)),
        1,
    ),
    "an island behind a ring": (ring(2), 1),
    "an island behind a shell": (ring(3), 1),
    "an island behind strips": (strips(0.25, 0.8125), 2),
    "strips behind a strip": (strips(0.75, 0.9375), 1),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: str) -> None:
    layers, count = SHAPES[shape]
    problem = shaped_problem(layers, property="cr")
    truth = truth_of(problem)
    exact = make_boundary(truth, "cr")
    assert exact.is_clear and len(exact.outermost) == count
    assert assert_boundary(problem, truth, "cr", 0.0) == count


def test_a_boundary_along_facets_that_crosses_another_line() -> None:
    """Lines y = 3/8 (in no logit), 2x + y = 1 and y = 2x; ai jumps on the last two, left of (1/4, 1/2).

    The boundary leaves the border at (0, 0), crosses y = 3/8, turns at (1/4, 1/2) and comes back to the border at
    (0, 1). Three regions are inside, among them the triangle between the three lines; two are outside.
    """
    layers = [
        (np.array([[0.0, 1.0], [-2.0, -1.0], [2.0, -1.0]]), np.array([-0.375, 1.0, 0.0])),
        (np.array([[0.0, 0.0, 0.0], [0.0, -2.0, -1.0]]), np.array([0.0, -0.0625])),
    ]
    problem = shaped_problem(layers, property="ar", delta=5.25)
    truth = truth_of(problem)
    ((inner, outer),) = expected_sides(make_boundary(truth, "ar", 5.25))
    assert (len(inner), len(outer)) == (3, 2)
    assert_boundary(problem, truth, "ar", 5.25)


def test_a_boundary_through_a_vertex() -> None:
    """From (0, 11/24) on the border through (3/16, 5/8), where four regions meet, to (3/8, 1) on the border."""
    layers = [
        (np.array([[0.0, -0.5], [-2.0, 2.0], [-2.0, 1.0]]), np.array([0.3125, -0.75, 1.125])),
        (np.array([[-2.0, 0.0, 1.0], [-0.5, 0.0, 0.0], [0.0, 0.0, -0.5]]), np.array([-0.5, 0.0625, 0.4375])),
        (np.array([[-2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), np.array([0.875, -0.8125])),
    ]
    problem = shaped_problem(layers, property="cr")
    assert assert_boundary(problem, truth_of(problem), "cr", 0.0) == 1


def test_two_components_in_the_same_regions() -> None:
    """Class 1 leads left of x = 1/4 + 1/40, class 2 at the lower right: both pass through the same two regions."""
    layers = [
        (np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]]), np.array([-0.25, -1.25, -1.25])),
        (np.array([[0.5, 2.0, 2.0], [-2.0, 1.0, -1.0], [2.0, 0.0, 0.0]]), np.array([-0.0625, 0.0, -1.0])),
    ]
    problem = shaped_problem(layers, property="cr")
    truth = truth_of(problem)
    assert assert_boundary(problem, truth, "cr", 0.0) == 2
    assert len(expected_sides(make_boundary(truth, "cr"))) == 1


@pytest.mark.parametrize("theta", [(0.5, 0.4375), (-0.5, 0.125), (0.0625, -0.5), (0.25, 0.25)])
def test_the_line_does_not_matter(theta: tuple[float, float]) -> None:
    """Every component that reaches the border of the domain is found, wherever the line leads."""
    layers, count = SHAPES["two corners and an enclave"]
    problem = shaped_problem(layers, property="cr")
    assert assert_boundary(problem, truth_of(problem), "cr", 0.0, line=np.array(theta)) == count


def test_w_delta_does_not_matter() -> None:
    for seed in range(6):
        truth = random_truth(seed, 2)
        delta = threshold(truth)
        problem = random_problem(seed, 2, property="ar", delta=delta)
        if make_boundary(truth, "ar", delta).is_clear:
            sides = [found_sides(search_alone(problem, method="boundary", w_delta=w), truth) for w in (0.0, 0.2, 5.0)]
            assert sides[0] == sides[1] == sides[2]


def test_nothing_to_follow() -> None:
    """The label is kept everywhere: no component."""
    layers = [(np.eye(2), np.zeros(2)), (np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([1.0, 0.0]))]
    model, image, specs = free_pixels(layers, in_middle=True)
    problem = make_question(model, image, list(specs), property="cr")
    assert list(search_alone(problem, method="boundary").tiling.components or ()) == []
