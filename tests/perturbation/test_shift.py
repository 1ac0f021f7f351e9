"""A shift along both axes: two parameters in one spec, bilinear between whole pixels."""

import numpy as np
import pytest
from scipy import ndimage

from steadygaze.errors import PerturbationError
from steadygaze.perturbation import Translate, compose, parse_spec, parse_specs

IMAGE = np.random.default_rng(1).random((2, 6, 7))


@pytest.mark.parametrize(
    ("spec", "first", "second"),
    [
        ("shift:dx=2,dy=3", (-2, 2), (-3, 3)),
        ("shift:dx=-2,dy=3", (-2, 2), (-3, 3)),
        ("shift:dx=2,dy=2:-1..0.5", (-1, 0.5), (-1, 0.5)),
        ("shift:dy=2,dx=3:0..3/-2..1", (0, 3), (-2, 1)),
    ],
)
def test_one_spec_gives_two_translations(spec: str, first: tuple, second: tuple) -> None:
    right, down = parse_specs([spec])
    assert isinstance(right, Translate)
    assert isinstance(down, Translate)
    assert (right.dy, down.dx, (right.low, right.high), (down.low, down.high)) == (0, 0, first, second)
    assert parse_specs([right.spec, down.spec]) == [right, down]


def test_images_are_those_of_scipy_at_a_thousand_thetas() -> None:
    perturbed = compose(parse_specs(["shift:dx=3,dy=2"]), IMAGE)
    assert perturbed.is_curved
    thetas = np.random.default_rng(2).uniform(perturbed.domain.low, perturbed.domain.high, (1000, 2))
    thetas[:3] = [[0, 0], [3, -2], [1, 0.5]]
    for theta, image in zip(thetas, perturbed.images(thetas), strict=True):
        wanted = ndimage.shift(IMAGE, (0, theta[1], theta[0]), order=1, mode="grid-constant")
        np.testing.assert_allclose(image, wanted, atol=1e-12)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("shift:dx=0,dy=2", "dx=0 moves along one axis only; give translate:dy=2"),
        ("shift:dx=2,dy=0", "dy=0 moves along one axis only; give translate:dx=2"),
        ("shift:dx=2", "dy is missing"),
        ("shift", "dx, dy are missing"),
        ("shift:dx=1.5,dy=2", "expected a whole number"),
        ("shift:dx=9999999,dy=2", "too large"),
        ("shift:dx=2,dy=2:0..3", "leaves -2..2"),
        ("shift:dx=2,dy=2:0..1/1..0", "inverted"),
        ("shift:dx=2,dy=2:0..1/0..1/0..1", "has 3 ranges"),
        ("shift:dx=2,dy=2:0..1/", "the range starts with ''"),
        ("shift:dx=2,dy=2,interp=spline", "interp=spline is not known; give bilinear or triangle"),
        ("shift:dx=2,dy=2,interp=", "interp is empty"),
        ("shift:dx=0,dy=2,interp=triangle", "dx=0 moves along one axis only; give translate:dy=2"),
    ],
)
def test_bad_specs_are_refused_in_one_line(spec: str, words: str) -> None:
    with pytest.raises(PerturbationError, match=words) as refusal:
        parse_specs([spec])
    assert str(refusal.value).count("perturbation") == 1
    assert "\n" not in str(refusal.value)


def test_a_shift_beyond_the_image_and_one_as_a_single_parameter_are_refused() -> None:
    with pytest.raises(PerturbationError, match="longer than the image"):
        compose(parse_specs(["shift:dx=8,dy=2"]), IMAGE)
    with pytest.raises(PerturbationError, match="two parameters"):
        parse_spec("shift:dx=2,dy=2")


def test_a_shift_that_does_not_fit_is_called_a_shift() -> None:
    with pytest.raises(PerturbationError, match=r"dx=99 is longer than the image.*translations of a shift"):
        compose(parse_specs(["shift:dx=99,dy=2"]), IMAGE)
    with pytest.raises(PerturbationError, match=r"7 pixels wide.*whole image out$"):
        compose(parse_specs(["translate:dx=99"]), IMAGE)
    assert compose(parse_specs(["shift:dx=1,dy=1"]), IMAGE).why_curved.endswith("at once (a shift) are curved")


def test_a_border_beside_a_translation_is_refused_with_the_remedy() -> None:
    with pytest.raises(PerturbationError, match="translate has no border=edge, so leave border=edge out"):
        compose(parse_specs(["rotate:border=edge:-1..1", "translate:dx=1"]), IMAGE[:1])
