"""Bounds at the edges of float64 and of the definitions: overflow, underflow, knots that t cannot name, no boxes."""

from fractions import Fraction

import numpy as np
import pytest

from steadygaze.bounds.forms import pixels
from steadygaze.errors import ModelError
from steadygaze.perturbation import compose, parse_spec
from support.networks.bound_cases import Case, random_case
from support.networks.layered_networks import make_graph
from support.oracles.attention_by_definition import Question
from support.oracles.exact_attention import exact_image
from support.readers.enclosures import violations


def brighter(layers: list, question: Question, low: float, high: float) -> Case:
    """One black pixel under brightness, a box from low to high."""
    perturbed = compose([parse_spec("brightness")], np.zeros((1, 1, 1)))
    ends = np.array([[low]]), np.array([[high]])
    return Case("one pixel", make_graph(layers, (1, 1, 1)), perturbed, 0, question, 0, *ends, 0)


@pytest.mark.parametrize("size", [1.6e-162, 1e-155, 1e-200, 1e-270, 1e100, 1e160, 1e300])
@pytest.mark.parametrize("dist", ["l1", "l2"])
def test_maps_whose_squares_are_no_floats(size: float, dist: str) -> None:
    """ReLU(x − 1/4) times a size: the map jumps from 0 to the size, whose square may round up, or be infinite."""
    root = float(np.sqrt(size))
    layers = [(np.array([[root]]), np.array([-0.25 * root])), (np.array([[root], [0.0]]), np.array([0.0, 1.0]))]
    assert violations(brighter(layers, Question("identity", dist), 0.5, 1.0)) == []


def test_a_neuron_whose_bounds_overflow_is_not_taken_for_inactive() -> None:
    """h = 1e200 · 1e200 · x has no float; the first logit, 1e−130 h + 1e−130 · 1e200 · x, has one."""
    layers = [
        (np.array([[1e200]]), np.zeros(1)),
        (np.array([[1e200], [1.0]]), np.zeros(2)),
        (np.array([[1e-130, 1e-130], [0.0, 0.0]]), np.array([0.0, 1.0])),
    ]
    case = brighter(layers, Question("identity", "l1"), 0.5, 0.75)
    with np.errstate(all="ignore"):
        broken = violations(case)
    # What is not a number claims nothing.
    assert [line for line in broken if "nan" not in line] == []


@pytest.mark.parametrize("weight", [1e-200, -5e-324])
def test_weights_whose_products_vanish_are_refused(weight: float) -> None:
    layers = [(np.array([[1.0]]), np.zeros(1)), (np.array([[weight], [0.0]]), np.array([0.0, 1.0]))]
    with pytest.raises(ModelError, match="set such weights to zero"):
        brighter(layers, Question(), 0.0, 1.0).bounder()


@pytest.mark.parametrize("ends", [(-24.02, 24.85), (-27.19, 11.54), (-27.91, 7.19), (-0.3, 0.7)])
@pytest.mark.parametrize("dist", ["l1", "l2"])
def test_an_expected_map_beside_zero_of_a_long_translation(ends: tuple[float, float], dist: str) -> None:
    """θ_T = low + t · width is off by roundings of its ends, not of itself; here the map moves by 1e12 per pixel."""
    weight = np.zeros((2, 28))
    weight[0, 10], weight[1, 11] = 1e12, 1.0
    layers = [(weight, np.array([1.0, -0.25])), (np.array([[1.0, 1.0], [0.0, 0.0]]), np.zeros(2))]
    image = np.zeros((1, 1, 28))
    image[0, 0, 10] = 0.5
    specs = [f"translate:dx=-28:{ends[0]}..{ends[1]}", "brightness"]
    perturbed = compose([parse_spec(spec) for spec in specs], image)
    cell = next(number for number, piece in enumerate(perturbed.cells) if piece.high[0] == 0.0)
    t = float(-perturbed.domain.low[0] / perturbed.domain.widths[0])
    low, high = np.array([[t, 0.9]]), np.array([[t, 1.0]])
    question = Question("identity", dist, (0,))
    case = Case(f"{ends}", make_graph(layers, image.shape), perturbed, 0, question, cell, low, high, 0)
    assert violations(case) == []


@pytest.mark.parametrize("length", [3, 7, 21, 27])
def test_pixels_where_a_rounded_knot_lets_a_box_reach_into_the_next_cell(length: int) -> None:
    """t = 18/21 in floats lies below the knot: the image there is the one of the cell before."""
    image = np.zeros((1, 1, 28))
    image[0, 0, ::3] = 1.0
    perturbed = compose([parse_spec(f"translate:dx={length}")], image)
    for number, piece in enumerate(perturbed.cells):
        low, high = ((end - perturbed.domain.low) / perturbed.domain.widths for end in (piece.low, piece.high))
        least, most = pixels(perturbed, number, low[None], high[None]).bounds()
        for t in (low, high):
            exact = exact_image(perturbed, [Fraction(float(t[0])) * length]).ravel()
            for value, bottom, top in zip(exact, least[0], most[0], strict=True):
                assert bottom <= value <= top


@pytest.mark.parametrize("kind", ["normal", "convolution", "pooled"])
def test_no_boxes_and_boxes_without_width(kind: str) -> None:
    case = random_case(5, kind=kind)
    bounder, d = case.bounder(), case.low.shape[1]
    found = bounder.bound(case.cell, np.zeros((0, d)), np.zeros((0, d)))
    assert found.margin.shape == found.inconsistency.shape == (0, 2)
    assert found.pull.shape == (0, d)
    assert len(found.unstable) == 0
    points = bounder.bound(case.cell, case.low, case.low)
    assert (points.margin[:, 0] <= points.margin[:, 1]).all()


def test_a_single_class_cannot_lose_its_label() -> None:
    layers = [(np.ones((1, 1)), np.zeros(1)), (np.ones((1, 1)), np.zeros(1))]
    case = brighter(layers, Question(), 0.0, 1.0)
    np.testing.assert_array_equal(case.bounder().bound(0, case.low, case.high).margin, [[np.inf, np.inf]])


def test_a_network_without_hidden_layers() -> None:
    for dist in ("l1", "l2"):
        layers = [(np.array([[0.1], [0.3], [-1e6]]), np.array([0.1, 0.0, 1e-6]))]
        case = brighter(layers, Question("abs", dist), 0.0, 0.3)
        assert violations(case) == []
        # The map is the same everywhere.
        assert case.bounder().bound(0, case.low, case.high).inconsistency[0, 1] < 1e-6
