"""The outermost boundary of hand-drawn shapes with known components."""

from fractions import Fraction

import numpy as np
import pytest

from steadygaze.question import Question as Problem
from support.networks.layered_networks import FloatLayer
from support.networks.search_problems import diamond, random_problem, shaped_problem, together
from support.oracles.attention_by_definition import Question
from support.oracles.exact_boundary import ExactBoundary, make_boundary, walk
from support.oracles.exact_labels import ExactLabels

HALF = Fraction(1, 2)


def truth_of(problem: Problem) -> ExactLabels:
    return ExactLabels(problem.compound, problem.label, Question())


def boundary_of(layers: list[FloatLayer]) -> tuple[ExactBoundary, ExactLabels]:
    truth = truth_of(shaped_problem(layers, property="cr"))
    assert truth.label == 0
    return make_boundary(truth, "cr"), truth


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_an_enclave_is_no_outermost_boundary(dimension: int) -> None:
    """In one dimension it cuts the domain in two, and what lies beyond is not reached."""
    found, _ = boundary_of(diamond([0.75] + [0.5] * (dimension - 1), 0.125))
    assert found.is_clear
    assert [component.is_enclave for component in found.components] == [dimension > 1]
    assert len(found.outermost) == (1 if dimension == 1 else 0)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_a_closed_boundary_around_zero(dimension: int) -> None:
    found, _ = boundary_of(diamond([0.5] * dimension, 0.25, outside=True))
    assert found.is_clear
    assert len(found.outermost) == (2 if dimension == 1 else 1)
    assert not any(component.is_enclave for component in found.components)
    inside = sum(found.pieces[number].polytope.volume for number in found.inner)
    assert inside == {1: HALF, 2: Fraction(1, 8), 3: Fraction(1, 48)}[dimension]


def test_two_corners_and_an_enclave() -> None:
    found, _ = boundary_of(together(diamond([0, 0], 0.25), diamond([1, 1], 0.375), diamond([0.75, 0.25], 0.125)))
    assert found.is_clear
    assert len(found.outermost) == 2
    assert len(found.components) == 3
    volumes = sorted(
        sum(found.pieces[number].polytope.volume for number in component.pieces) for component in found.components
    )
    assert volumes == [Fraction(1, 32), Fraction(1, 32), Fraction(9, 128)]


def test_a_ring_hides_what_lies_beyond() -> None:
    """Class 1 leads where 1/8 < |x − c| < 1/4 (L1): the ring and all that lies outside of it is one component."""
    d = 2
    first = (np.vstack([np.eye(d), -np.eye(d)]), np.array([-0.5, -0.5, 0.5, 0.5]))
    # b = s − 2·ReLU(s − 3/16) is above 1/8 for 1/8 < s < 1/4, and falls from 3/16 on.
    second = (np.ones((2, 2 * d)), np.array([0.0, -0.1875]))
    last = (np.array([[0.0, 0.0], [1.0, -2.0]]), np.array([0.125, 0.0]))
    found, _ = boundary_of([first, second, last])
    assert found.is_clear
    (component,) = found.components
    assert not component.is_enclave
    assert {found.pieces[number].holds for number in component.pieces} == {True, False}
    assert sum(found.pieces[number].polytope.volume for number in found.inner) == Fraction(1, 32)


def test_violations_that_meet_the_border_in_a_point_are_not_clear() -> None:
    found, _ = boundary_of(diamond([0.8125, 0.5], 0.1875))
    assert not found.is_clear


def test_a_line_through_an_enclave() -> None:
    found, truth = boundary_of(diamond([0.75, 0.5], 0.125))
    line = walk(truth.map, (HALF, HALF), (Fraction(1), Fraction(9, 16)))
    assert line.regions[0] in truth.map.at((HALF, HALF))
    mixed = [number for number, (low, up) in enumerate(truth.margins) if low < 0 < up]
    assert {found.pieces[n].region for c in found.components for f in c.faces for n in f} == set(mixed)
    assert set(line.regions) & set(mixed)
    assert not walk(truth.map, (HALF, HALF), (Fraction(1), HALF)).is_plain  # along a kink


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3, 7))
def test_random_pieces_tile_the_domain(seed: int, dimension: int) -> None:
    problem = random_problem(seed, dimension)
    truth = truth_of(problem)
    for property in ("cr", "ar", "both"):
        values = sorted(float(up) for _, up in truth.inconsistencies)
        found = make_boundary(truth, property, values[len(values) // 2] + 0.01)
        assert sum(piece.polytope.volume for piece in found.pieces) == 1
        assert sum(region.polytope.volume for region in truth.map.regions) == 1
        for number, links in enumerate(found.links):
            assert all(number in found.links[other] for other in links)
        for component in found.components:
            assert not component.pieces & found.inner
