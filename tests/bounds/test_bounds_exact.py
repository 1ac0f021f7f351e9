"""Bounds over boxes against exact rationals: every claim holds at every theta, with no tolerance at all."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from steadygaze.perturbation import Perturbed, compose, parse_spec
from support.networks.bound_cases import FILTERS, KINDS, SPECS, Case, random_boxes, random_case
from support.networks.hand_solved import IMAGES
from support.networks.layered_networks import make_graph
from support.oracles.attention_by_definition import Question
from support.readers.enclosures import compare_roots, violations

PER_KIND = 8
# What the map of three parameters never has, and what `SPECS` leaves out there.
ALL_SPECS = {**SPECS, 3: (*SPECS[3], ("brightness:-0.3..0.6", "darkness", "patch:x=0,y=0,w=1,h=2:-0.5..0.5"))}


@pytest.mark.parametrize("kind", KINDS)
def test_random_networks_and_boxes(kind: str) -> None:
    for seed in range(PER_KIND):
        assert violations(random_case(seed, kind=kind), points=4) == []


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
@pytest.mark.parametrize("moves", [False, True])
def test_every_filter_and_distance_for_kept_and_moving_maps(dimension: int, moves: bool) -> None:
    fitting = [specs for specs in ALL_SPECS[dimension] if moves == any("translate" in spec for spec in specs)]
    for number, (words, dist) in enumerate(product(FILTERS, ("l1", "l2"))):
        case = random_case(100 + number, specs=fitting[number % len(fitting)])
        assert (case.perturbed.moving_axis is not None) == moves
        assert violations(replace(case, question=Question(words, dist)), points=3) == []


def test_a_box_is_bounded_in_the_same_way_in_any_company() -> None:
    """Up to rounding: one box at a time, or many; with the attention of some of them left out."""
    case = random_case(3, dimension=2)
    bounder, count = case.bounder(), 40
    low, high = random_boxes(np.random.default_rng(1), case.perturbed, case.cell, count)
    together = bounder.bound(case.cell, low, high)
    wanted = np.arange(count) % 3 == 0
    some = bounder.bound(case.cell, low, high, wanted)
    for box in range(count):
        alone = bounder.bound(case.cell, low[box : box + 1], high[box : box + 1])
        np.testing.assert_allclose(together.margin[box], alone.margin[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(together.inconsistency[box], alone.inconsistency[0], rtol=1e-9, atol=1e-9)
        assert together.unstable[box] == alone.unstable[0]
    np.testing.assert_array_equal(some.margin, together.margin)
    np.testing.assert_array_equal(some.inconsistency[wanted], together.inconsistency[wanted])
    np.testing.assert_array_equal(some.inconsistency[~wanted], np.tile([0.0, np.inf], (count - wanted.sum(), 1)))


@pytest.mark.parametrize("room", [0, 2])
def test_images_solved_by_hand(room: int) -> None:
    for image in IMAGES:
        case = hand_case(image, room)
        assert violations(case, points=8) == []


def hand_case(image, room: int) -> Case:
    """A network of `oracle.networks` as a question: brightness, and a patch on its first pixel as second parameter."""
    layers = [(np.array(w, dtype=float), np.array(b, dtype=float)) for w, b in image.chain]
    pixels = np.array(image.offset, dtype=float).reshape(1, 1, -1)
    specs = ["brightness", "patch:x=0,y=0,w=1,h=1"][: len(image.slope)]
    perturbed: Perturbed = compose([parse_spec(spec) for spec in specs], pixels)
    low, high = random_boxes(np.random.default_rng(2), perturbed, 0, 12)
    return Case(image.name, make_graph(layers, pixels.shape), perturbed, image.label, Question(), 0, low, high, room)


def test_a_neuron_that_is_zero_on_a_set_with_volume_is_not_active_there() -> None:
    """h = ReLU(x1 − x2) with x1 = x2 under brightness: zero everywhere, so the map of class 0 is zero on the whole box.

    The bounds cannot tell zero from its neighbourhood: both the map with h and that without it must be admitted.
    """
    layers = [(np.array([[1.0, -1.0]]), np.zeros(1)), (np.array([[1.0], [0.0]]), np.array([0.0, 1.0]))]
    perturbed = compose([parse_spec("brightness")], np.array([[[0.25, 0.25]]]))
    low, high = np.array([[0.0], [0.25], [0.5]]), np.array([[1.0], [0.25], [0.75]])
    for words in FILTERS:
        case = Case("zero", make_graph(layers, (1, 1, 2)), perturbed, 1, Question(words), 0, low, high, 0)
        assert violations(case, points=8) == []
        np.testing.assert_array_equal(case.bounder().bound(0, low, high).inconsistency[:, 0], 0.0)


def test_roots_are_compared_exactly() -> None:
    third = Fraction(1, 9)
    assert compare_roots([third, 4 * third], 1.0) == 0
    assert compare_roots([Fraction(2)], float(np.sqrt(2.0))) == (-1 if np.sqrt(2.0) ** 2 > 2.0 else 1)
    assert compare_roots([Fraction(2), Fraction(1, 10**80)], float("inf")) == -1
    assert compare_roots([Fraction(2)], float("nan")) == 1
