"""Special images and perturbations: constant images, changes without effect, odd ranges."""

import numpy as np
import pytest

from steadygaze.perturbation import Brightness, Darkness, Patch, Perturbation, Translate
from steadygaze.polytopes import Cut
from steadygaze.regions.subdivide import subdivide
from support.networks.layered_networks import dyadic_layers, make_compound
from support.readers.maps import assert_compound_map_is_exact, assert_true_map, clip_bits

SHAPE = (1, 2, 2)
ALL = {"x": 0, "y": 0, "w": 2, "h": 2}
ROW = {"x": 0, "y": 0, "w": 2, "h": 1}
COLUMN = {"x": 1, "y": 0, "w": 1, "h": 2}
COMBINATIONS: dict[str, list[Perturbation]] = {
    "brightness": [Brightness()],
    "darkness": [Darkness()],
    "patch": [Patch(**ROW)],
    "translate": [Translate(dx=1)],
    "far translate": [Translate(dy=-2)],
    "both ways": [Translate(dx=2, range=(-1.5, 1.5)), Brightness(range=(-0.5, 0.5))],
    "brightness, patch": [Brightness(), Patch(**ROW)],
    "translate, patch": [Translate(dx=1), Patch(**ROW)],
    "translate, brightness": [Translate(dx=2), Brightness()],
    "parallel": [Brightness(), Darkness()],
    "parallel with different ranges": [Brightness(range=(0.0, 0.5)), Darkness(range=(-0.25, 0.5))],
    "the same patch twice": [Patch(**ALL), Patch(**ALL, range=(0.0, 0.5))],
    "opposite patches": [Patch(**ALL), Patch(**ALL, tone=-1)],
    "overlapping patches": [Patch(**ROW), Patch(**COLUMN)],
    "brightness as a patch": [Brightness(), Patch(**ALL)],
    "negative": [Brightness(range=(-0.75, -0.25)), Patch(**ROW, range=(-1.0, 0.0))],
    "without zero": [Brightness(range=(0.25, 0.75)), Translate(dx=1, range=(0.5, 1.0))],
}


@pytest.mark.parametrize("chosen", COMBINATIONS)
@pytest.mark.parametrize("value", [0.0, 0.5, 1.0], ids=["black", "grey", "white"])
def test_constant_images(value: float, chosen: str) -> None:
    layers = dyadic_layers(np.random.default_rng(3), [4, 3, 3, 2])
    assert_compound_map_is_exact(layers, COMBINATIONS[chosen], np.full(SHAPE, value))


@pytest.mark.parametrize("chosen", COMBINATIONS)
def test_black_grey_and_white_side_by_side(chosen: str) -> None:
    image = np.array([0.0, 0.5, 1.0, 0.5]).reshape(SHAPE)
    for seed in range(3):
        assert_compound_map_is_exact(dyadic_layers(np.random.default_rng(seed), [4, 4, 2]), COMBINATIONS[chosen], image)


@pytest.mark.parametrize(
    ("value", "perturbations", "cells"),
    [
        (1.0, [Brightness()], 1),
        (1.0, [Patch(**ROW)], 1),
        (0.0, [Darkness()], 1),
        (0.0, [Patch(**ROW, tone=-1)], 1),
        (0.0, [Translate(dx=1)], 1),
        (0.0, [Translate(dx=2), Darkness()], 2),
        (1.0, [Brightness(), Patch(**COLUMN)], 1),
        (0.0, [Darkness(), Patch(**ALL, tone=-1)], 1),
    ],
)
def test_a_perturbation_that_does_nothing_has_one_region_in_every_knot_cell(
    value: float, perturbations: list[Perturbation], cells: int
) -> None:
    layers = dyadic_layers(np.random.default_rng(1), [4, 5, 3])
    image = np.full(SHAPE, value)
    regions = assert_compound_map_is_exact(layers, perturbations, image)
    assert len(regions) == cells
    expected = make_compound(layers, perturbations, image).graph.logits(image[None])[0]
    assert np.allclose(regions.logits[:, 2], expected) and not regions.logits[:, :2].any()


def test_a_hundred_black_pixels_leave_zero_on_one_line() -> None:
    """Every black pixel has its kink at θ = 0: around it the regions are those of one line, not of a hundred."""
    image = np.zeros((1, 10, 10))
    layers = [(np.ones((1, 100)), np.array([-50.0])), (np.ones((2, 1)), np.zeros(2))]
    compound = make_compound(layers, [Brightness(range=(-1.0, 1.0))], image)
    regions = subdivide(compound)
    # Below 0 all pixels are black; above, their sum 100·θ reaches 50 at θ = 1/2.
    assert sorted(regions.polytopes.volumes) == pytest.approx([0.25, 0.25, 0.5])
    kinds = {tuple(row) for row in clip_bits(compound, regions).astype(int).tolist()}
    assert kinds == {(0,) * 100 + (1,) * 100, (1,) * 200}
    assert_true_map(compound, regions)


def test_knots_split_also_where_the_image_does_not_bend() -> None:
    """A ramp that moves on has the same slope in both pixels of the way (but for the border): the knot stays a cut."""
    image = np.array([[[0.0, 0.0, 0.25, 0.5]]])
    layers = [(np.array([[0.0, 0.0, 0.0, 1.0]]), np.array([5.0])), (np.ones((1, 1)), np.zeros(1))]
    regions = assert_compound_map_is_exact(layers, [Translate(dx=2)], image)
    assert regions.cell.tolist() == [0, 1]
    assert np.allclose(regions.logits[0], regions.logits[1])
    knots = np.flatnonzero(regions.cuts[:, 0] == Cut.KNOT) + 1
    edges = regions.polytopes.facets
    assert sorted(edges[np.isin(np.abs(edges), knots)]) == [-knots[0], knots[0]]


@pytest.mark.parametrize("length", [2, 3, -3])
def test_translation_with_several_knots_and_a_second_parameter(length: int) -> None:
    image = np.array([0.0, 1.0, 0.25, 0.25, 1.0, 0.0, 0.5, 0.0]).reshape(1, 2, 4)
    layers = dyadic_layers(np.random.default_rng(8), [8, 3, 2])
    for second in (Brightness(range=(-0.25, 0.25)), Patch(x=1, y=0, w=2, h=2)):
        regions = assert_compound_map_is_exact(layers, [Translate(dx=length), second], image)
        assert set(regions.cell) == set(range(abs(length)))
        assert_compound_map_is_exact(layers, [second, Translate(dx=length, range=(-1.5, 1.5))], image)


@pytest.mark.parametrize("width", [1e-5, 1e-3])
@pytest.mark.parametrize("centre", [0.0, 0.25, 0.5, 0.75])
def test_narrow_domains(centre: float, width: float) -> None:
    """Clip kinks and a neuron's kink meet in the middle of a domain of this width."""
    image = np.array([0.25, 0.5, 0.5, 0.75]).reshape(SHAPE)
    narrow = (centre - width / 2, centre + width / 2)
    layers = [
        (np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0], [1.0, 1.0, -1.0, 0]]), np.array([-0.25 - centre, -1.0, -0.25])),
        (np.array([[1.0, 1.0, -1.0], [0.0, 1.0, 2.0]]), np.zeros(2)),
    ]
    assert_compound_map_is_exact(layers, [Brightness(range=narrow)], image)
    assert_compound_map_is_exact(layers, [Brightness(range=narrow), Patch(**ROW, range=(-0.5, 0.5))], image)
    assert_compound_map_is_exact(layers, [Brightness(range=narrow), Patch(**COLUMN, range=narrow)], image)


@pytest.mark.parametrize("length", [1, 2])
def test_one_parameter_does_not_depend_on_the_second_coordinate(length: int) -> None:
    image = np.array([[[0.0, 1.0, 0.25]]])
    regions = assert_compound_map_is_exact(
        dyadic_layers(np.random.default_rng(2), [3, 5, 4, 2]), [Translate(dx=length)], image
    )
    assert not regions.logits[:, 1].any()
    assert (np.diff(regions.polytopes.starts) == 4).all()
    for number in range(len(regions)):
        assert sorted(regions.polytopes[number][:, 1]) == [0, 0, 1, 1]


def test_colour_images() -> None:
    image = np.array([0.0, 0.5, 1.0, 0.5, 0.25, 0.0]).reshape(3, 1, 2)
    layers = dyadic_layers(np.random.default_rng(4), [6, 4, 2])
    assert_compound_map_is_exact(layers, [Translate(dx=1), Brightness(range=(-0.5, 0.5))], image)
    assert_compound_map_is_exact(layers, [Patch(x=1, y=0, w=1, h=1), Darkness()], image)
