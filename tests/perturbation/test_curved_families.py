"""Rotation, scale, shear and hue against their definitions in plain numpy, against scipy, and with bad input."""

import numpy as np
import pytest
from scipy import ndimage

from steadygaze.errors import PerturbationError
from steadygaze.perturbation import compose, parse_spec

IMAGE = np.random.default_rng(1).random((2, 7, 9))
COLOUR = np.random.default_rng(2).random((3, 5, 4))


def sample(image: np.ndarray, x: float, y: float, *, is_edge: bool) -> np.ndarray:
    """The bilinear look-up of one place, in pixels from the top left, straight from the formula."""
    _, height, width = image.shape
    if is_edge:
        x, y = min(max(x, 0.0), width - 1.0), min(max(y, 0.0), height - 1.0)
    total = np.zeros(len(image))
    for row in range(height):
        for column in range(width):
            total += max(0.0, 1.0 - abs(x - column)) * max(0.0, 1.0 - abs(y - row)) * image[:, row, column]
    return total


def moved_by(image: np.ndarray, inverse, *, is_edge: bool = False) -> np.ndarray:
    """The image whose pixel at (x, y), x to the right and y up from the centre, is that of inverse(x, y)."""
    _, height, width = image.shape
    moved = np.empty(image.shape)
    for row in range(height):
        for column in range(width):
            x, y = inverse(column - (width - 1) / 2, (height - 1) / 2 - row)
            moved[:, row, column] = sample(image, x + (width - 1) / 2, (height - 1) / 2 - y, is_edge=is_edge)
    return moved


def turned(degrees: float):
    t = np.pi * degrees / 180
    return lambda x, y: (x * np.cos(t) + y * np.sin(t), -x * np.sin(t) + y * np.cos(t))


CASES = {
    "rotate:-170..170": turned,
    "scale:0.4..2": lambda theta: lambda x, y: (x / (1 + theta), y / (1 + theta)),
    "shear:-0.9..0.9": lambda theta: lambda x, y: (x - theta * y, y),
    "shear:axis=y:-0.9..0.9": lambda theta: lambda x, y: (x, y - theta * x),
}


@pytest.mark.parametrize("spec", CASES)
@pytest.mark.parametrize("border", ["zero", "edge"])
def test_images_follow_the_definition(spec: str, border: str) -> None:
    keyword, *settings, ends = spec.split(":")
    full = f"{keyword}:{','.join([*settings, f'border={border}'])}:{ends}"
    perturbed = compose([parse_spec(full)], IMAGE)
    for theta in np.random.default_rng(3).uniform(perturbed.domain.low, perturbed.domain.high, (12, 1)):
        wanted = moved_by(IMAGE, CASES[spec](theta[0]), is_edge=border == "edge")
        np.testing.assert_allclose(perturbed.image(theta), wanted, atol=1e-12)


@pytest.mark.parametrize("spec", [*CASES, "rotate:border=edge:-5..5"])
def test_zero_is_the_unperturbed_image(spec: str) -> None:
    np.testing.assert_allclose(compose([parse_spec(spec)], IMAGE).image([0.0]), IMAGE, atol=1e-15)


def test_a_quarter_turn_is_counter_clockwise() -> None:
    square = IMAGE[:, :, :7]
    np.testing.assert_allclose(
        compose([parse_spec("rotate:0..90")], square).image([90.0]), np.rot90(square, axes=(1, 2)), atol=1e-12
    )


def test_rotation_is_that_of_scipy() -> None:
    # "grid-constant" interpolates with the zeros outside, as here.
    for degrees in (-31.0, 4.5, 88.0):
        wanted = ndimage.rotate(IMAGE[0], degrees, reshape=False, order=1, mode="grid-constant")
        np.testing.assert_allclose(
            compose([parse_spec("rotate:-90..90")], IMAGE).image([degrees])[0], wanted, atol=1e-9
        )


def test_movements_compose_in_the_order_given_with_one_look_up() -> None:
    turn, shift = parse_spec("rotate:-40..40"), parse_spec("translate:dx=3")
    first, second = (compose(order, IMAGE) for order in ([turn, shift], [shift, turn]))
    there, back = turned(30.0), lambda x, y: (x - 1.25, y)
    wanted = moved_by(IMAGE, lambda x, y: there(*back(x, y)))
    np.testing.assert_allclose(first.image([30.0, 1.25]), wanted, atol=1e-12)
    other = moved_by(IMAGE, lambda x, y: back(*there(x, y)))
    np.testing.assert_allclose(second.image([1.25, 30.0]), other, atol=1e-12)
    assert np.abs(wanted - other).max() > 0.1


def test_light_follows_movement_and_one_clip_comes_last() -> None:
    turn, light, colours = (parse_spec(spec) for spec in ("rotate:-40..40", "brightness:-1..1", "hue:-90..90"))
    theta = np.array([0.75, 35.0, 60.0])
    moved = moved_by(COLOUR, turned(35.0))
    turned_hue = compose([colours], moved.clip(0, 1)).unclipped([[60.0]])[0]
    wanted = np.clip(turned_hue + 0.75, 0.0, 1.0)
    np.testing.assert_allclose(compose([light, turn, colours], COLOUR).image(theta), wanted, atol=1e-12)


def test_hue_keeps_luma_and_turns_chroma() -> None:
    perturbed = compose([parse_spec("hue:-180..180")], COLOUR)
    before, after = COLOUR.reshape(3, -1), perturbed.unclipped([[50.0]])[0].reshape(3, -1)
    yiq = np.array([[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])
    (y, i, q), (luma, first, second) = yiq @ before, yiq @ after
    t = np.deg2rad(50.0)
    np.testing.assert_allclose(luma, y, atol=1e-12)
    np.testing.assert_allclose(first, i * np.cos(t) - q * np.sin(t), atol=1e-12)
    np.testing.assert_allclose(second, i * np.sin(t) + q * np.cos(t), atol=1e-12)


def test_expected_maps_move_with_the_image() -> None:
    perturbed = compose([parse_spec("rotate:-40..40"), parse_spec("brightness")], IMAGE)
    maps = np.random.default_rng(4).normal(size=(3, 2, 7, 9))
    moved = perturbed.expected(maps, np.array([20.0, 0.5]))
    for given, found in zip(maps, moved, strict=True):
        np.testing.assert_allclose(found, moved_by(given, turned(20.0)), atol=1e-12)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("scale:-0.5..1.1", "factor of zero"),
        ("scale:0..1", "factor of zero"),
        ("rotate:-200..10", "beyond ±180"),
        ("rotate:border=wrap", "border=wrap"),
        ("shear:axis=z", "axis=z"),
        ("shear:-2..2", "45°"),
    ],
)
def test_bad_specs_are_refused_in_one_line(spec: str, words: str) -> None:
    with pytest.raises(PerturbationError, match=words) as refusal:
        parse_spec(spec)
    assert "\n" not in str(refusal.value)


def test_hue_of_a_grey_image_and_mixed_borders_are_refused() -> None:
    with pytest.raises(PerturbationError, match="red, green and blue"):
        compose([parse_spec("hue")], IMAGE[:1])
    with pytest.raises(PerturbationError, match="same border"):
        compose([parse_spec("rotate:border=edge"), parse_spec("scale")], IMAGE)


@pytest.mark.parametrize("spec", ["rotate:border=edge:-5..5", "scale:0.5..1.25", "shear:axis=y", "hue:0..90"])
def test_specs_are_written_as_they_are_read(spec: str) -> None:
    assert parse_spec(spec).spec == spec
    assert parse_spec(parse_spec(spec).spec) == parse_spec(spec)
