"""The guarantees of GBS: true labels, the boundary that the line meets, and no claim beyond the visits."""

from fractions import Fraction

import numpy as np
import pytest

from steadygaze.engines import run
from steadygaze.errors import OptionError, SteadygazeError
from steadygaze.labels import Status, Verdict
from steadygaze.question import make_question
from support.networks.search_problems import (
    diamond,
    free_pixels,
    random_problem,
    search_alone,
    shaped_problem,
    together,
)
from support.oracles.exact_boundary import walk
from support.oracles.exact_labels import threshold
from support.oracles.expected_visits import Expected, corner_line, random_line, random_truth, truth_of
from support.readers.visited_regions import assert_sound, exact_of

CASES = [(d, seed) for d, count in ((1, 24), (2, 60), (3, 24)) for seed in range(count)]


@pytest.mark.parametrize("property", ["cr", "ar", "both"])
@pytest.mark.parametrize(("dimension", "seed"), CASES)
def test_random_networks(dimension: int, seed: int, property: str) -> None:
    truth = random_truth(seed, dimension)
    delta = threshold(truth)
    problem = random_problem(seed, dimension, property=property, delta=delta)
    w_delta = (0.0, 0.2)[seed % 2]
    expected = Expected(truth, property, delta, w_delta)
    chosen = random_line(seed, dimension)
    if chosen is None:
        pytest.skip("every line that was tried meets a vertex")
    theta, line = chosen
    result = search_alone(problem, method="gbs", w_delta=w_delta, line=theta)
    visited = assert_sound(result, expected)
    assert expected.must(line) <= visited
    assert visited <= expected.may(line)
    searching = {
        exact_of(one.region, truth.compound.programs, truth.map)
        for one in result.tiling.visited
        if not one.is_following
    }
    assert line.regions[0] in searching
    assert searching <= set(line.regions)


def test_the_random_networks_are_worth_it() -> None:
    """The boundary is met often, by all kinds of facets, and most maps are not visited as a whole by right."""
    met = of_facets = 0
    for dimension, seed in CASES[::2]:
        truth = random_truth(seed, dimension)
        chosen = random_line(seed, dimension)
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
    truth = random_truth(seed, dimension)
    delta = threshold(truth)
    expected = Expected(truth, "both", delta)
    result = search_alone(random_problem(seed, dimension, property="both", delta=delta), method="gbs", w_delta=0.0)
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
    result = search_alone(problem, method="gbs", line=np.array(theta))
    visited = assert_sound(result, expected)
    must = expected.must(line)
    assert must <= visited <= expected.may(line)
    assert any(expected.kinds[number] == "B" for number in must)
    assert len(visited) < len(truth.map.regions) or len(truth.map.regions) < 20


def test_beyond_an_enclave_the_search_goes_on() -> None:
    """The line first meets an enclave, and behind it the corner, whose boundary is found as well."""
    layers, theta = SHAPES["beyond the enclave a corner"]
    problem = shaped_problem(layers, property="cr")
    result = search_alone(problem, method="gbs", line=np.array(theta))
    compound = problem.compound
    mixed = [one for one in result.tiling.visited if one.classification == "CB"]
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
    problem = make_question(model, image, list(specs), property="both", delta=4.75)
    truth = truth_of(problem)
    expected = Expected(truth, "both", 4.75)
    line = walk(truth.map, [Fraction(0)], [Fraction(1)])
    assert [expected.kinds[number] for number in line.regions] == ["S", "V", "S"]
    assert assert_sound(search_alone(problem, method="gbs", w_delta=0.0), expected) == set(line.regions)


def test_robust_without_a_proof() -> None:
    """Class 1 leads in a corner that the line does not meet: only robust regions are visited, and nothing is proved."""
    problem = shaped_problem(diamond([0, 0], 0.25), property="cr")
    result = search_alone(problem, method="gbs", line=np.array([0.5, 0.4375]))
    assert result.status is Status.ROBUST
    assert result.coverage < 1.0
    assert result.verdict is Verdict.UNDECIDED


def test_robust_with_a_proof() -> None:
    """One region, label kept: the visited part is the whole domain."""
    layers = [(np.eye(2), np.zeros(2)), (np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([1.0, 0.0]))]
    model, image, specs = free_pixels(layers, in_middle=True)
    problem = make_question(model, image, list(specs), property="cr")
    result = run(problem, method="gbs", line="corner")
    assert (result.status, result.verdict, result.coverage) == (Status.ROBUST, Verdict.ROBUST, 1.0)


def test_a_domain_without_zero_is_refused() -> None:
    layers = [(np.eye(2), np.zeros(2)), (np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([1.0, 0.0]))]
    model, image, _ = free_pixels(layers, in_middle=False)
    specs = ["patch:x=0,y=0,w=1,h=1:0.25..1", "patch:x=1,y=0,w=1,h=1"]
    for method in ("gbs", "boundary"):
        with pytest.raises(SteadygazeError):
            run(make_question(model, image, specs), method=method)
    assert run(make_question(model, image, specs), method="bfs").coverage == 1.0


@pytest.mark.parametrize(
    "options", [{"w_delta": -0.1}, {"w_delta": float("nan")}, {"line": [2.0, 0.0]}, {"line": [0.1]}]
)
def test_bad_options_are_refused(options: dict) -> None:
    with pytest.raises(OptionError):
        search_alone(shaped_problem(diamond([0, 0], 0.25)), method="gbs", **options)
