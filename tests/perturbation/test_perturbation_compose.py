"""Sums of perturbations: domain, knot cells, images, transport, and refused combinations."""

import numpy as np
import pytest

from steadygaze.errors import ImageError, PerturbationError
from steadygaze.perturbation import Brightness, Darkness, Patch, Translate, compose

SMALL = np.array([[[0.0, 0.25, 0.5], [0.75, 1.0, 0.125]]])


def test_the_papers_combination():
    """clip(x0 + θ_T (shift(x0) − x0) + θ_B, 0, 1): translate first, then brighten, clip once at the end."""
    both = compose([Translate(dx=1), Brightness(range=(-1, 1))], SMALL)
    shifted = np.array([[[0.0, 0.0, 0.25], [0.0, 0.75, 1.0]]])
    for moved, added in ((0.5, 0.5), (0.25, -0.75), (1.0, 1.0), (0.0, 0.0)):
        expected = np.clip(SMALL + moved * (shifted - SMALL) + added, 0, 1)
        np.testing.assert_allclose(both.image([moved, added]), expected, atol=1e-15)
    assert both.moving_axis == 0
    assert both.domain.names == ("translation right [px]", "brightness")


def test_the_clip_comes_once_after_the_sum():
    both = compose([Brightness(), Darkness()], SMALL)
    np.testing.assert_allclose(both.image([1.0, 1.0]), SMALL, atol=1e-15)


def test_domain():
    domain = compose([Brightness(range=(-0.5, 0.25)), Patch(x=0, y=0, w=1, h=1)], SMALL).domain
    assert domain.dimension == 2
    np.testing.assert_array_equal(domain.low, [-0.5, 0])
    np.testing.assert_array_equal(domain.high, [0.25, 1])
    np.testing.assert_array_equal(domain.widths, [0.75, 1])
    assert domain.contains([-0.5, 1.0])
    assert domain.contains_zero
    assert not domain.contains([-0.5000001, 0.5])
    assert not domain.contains([float("nan"), 0.5])
    assert not compose([Brightness(range=(0.25, 0.5))], SMALL).domain.contains_zero
    with pytest.raises(PerturbationError, match="expected one number for each"):
        domain.contains([0.0])


def test_cells_tile_the_domain_in_order():
    both = compose([Brightness(), Translate(dx=3, range=(-1, 1.5))], SMALL)
    assert [tuple(cell.low) for cell in both.cells] == [(0, -1), (0, 0), (0, 1)]
    assert [tuple(cell.high) for cell in both.cells] == [(1, 0), (1, 1), (1, 1.5)]
    assert [cell.index for cell in both.cells] == [0, 1, 2]
    assert both.moving_axis == 1
    assert sum(np.prod(cell.high - cell.low) for cell in both.cells) == np.prod(both.domain.widths)
    assert both.cells[0].offset.shape == SMALL.shape
    assert both.cells[0].slope.shape == (2, *SMALL.shape)


def test_cell_of_takes_the_cell_above_a_knot_and_the_nearest_outside():
    both = compose([Translate(dx=3), Brightness()], SMALL)
    chosen = [both.cell_of([theta, 0.5]).index for theta in (0, 0.5, 1, 1.5, 2, 3, -1, 9)]
    assert chosen == [0, 0, 1, 1, 2, 2, 0, 2]


def test_one_parameter():
    one = compose([Translate(dy=2)], SMALL)
    assert (one.domain.dimension, len(one.cells), one.moving_axis) == (1, 2, 0)
    assert one.images([[0.5], [1.5]]).shape == (2, *SMALL.shape)


def test_kept_maps_have_no_transport():
    both = compose([Brightness(), Patch(x=0, y=0, w=1, h=1)], SMALL)
    assert both.moving_axis is None
    assert both.transport(np.ones((10, *SMALL.shape)), both.cells[0]) is None


def test_several_patches_are_parameters_of_their_own():
    left, right = Patch(x=0, y=0, w=1, h=2), Patch(x=2, y=0, w=1, h=2, tone=-1)
    image = compose([left, right], SMALL).image([0.25, 0.125])
    np.testing.assert_array_equal(image, [[[0.25, 0.25, 0.375], [1.0, 1.0, 0.0]]])


def test_parallel_directions_are_allowed_and_named_apart():
    assert len(compose([Brightness(), Darkness()], SMALL).cells) == 1
    twice = compose([Brightness(range=(0, 0.5)), Brightness(range=(0, 0.25))], SMALL)
    assert twice.domain.names == ("brightness", "brightness (2)")
    np.testing.assert_allclose(twice.image([0.125, 0.25]), np.clip(SMALL + 0.375, 0, 1))


def test_result_is_read_only_and_apart_from_the_image_given():
    image = SMALL.copy()
    both = compose([Brightness()], image)
    image[:] = 0.5
    np.testing.assert_array_equal(both.image([0.0]), SMALL)
    for array in (both.x0, both.domain.low, both.cells[0].slope, both.cells[0].offset):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize(
    ("perturbations", "what"),
    [
        ([], "no perturbation"),
        ([Brightness(), Brightness(range=(0, 1))], "brightness is given twice"),
        ([Patch(x=0, y=0, w=2, h=2), Patch(x=0, y=0, w=2, h=2)], "given twice"),
        ([Brightness(), Patch(x=2, y=0, w=2, h=1)], "leave the image"),
        ([Brightness(), Translate(dy=3)], "longer than the image"),
        (["brightness"], "'brightness' is not a perturbation"),
        ([Brightness], "is not a perturbation"),
    ],
)
def test_refused_together(perturbations, what):
    with pytest.raises(PerturbationError, match=what) as caught:
        compose(perturbations, SMALL)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("image", "what"),
    [
        (SMALL[0], "shape"),
        (np.zeros((1, 0, 3)), "shape"),
        (SMALL * 255, r"expected numbers in \[0, 1\]"),
        (np.full((1, 2, 3), np.nan), "NaN"),
        (np.full((1, 2, 3), -0.1), r"\[0, 1\]"),
        ("mnist:1", "not an array"),
    ],
)
def test_images_refused(image, what):
    with pytest.raises(ImageError, match=what):
        compose([Brightness()], image)


@pytest.mark.parametrize("thetas", [[[0.5]], [0.5, 0.5], [[0.5, float("nan")]], [[0.5, float("inf")]]])
def test_thetas_refused(thetas):
    with pytest.raises(PerturbationError, match="one finite number for each"):
        compose([Brightness(), Darkness()], SMALL).images(thetas)
    with pytest.raises(PerturbationError, match="one finite number for each"):
        compose([Brightness(), Darkness()], SMALL).cell_of([0.5])
