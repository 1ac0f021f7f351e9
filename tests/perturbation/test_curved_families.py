"""Rotation, scale, shear and hue against their definitions in plain numpy, against scipy, and with bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from steadygaze.errors import PerturbationError
from steadygaze.perturbation import compose, parse_spec, parse_specs
from support.oracles.movements_by_definition import moved

IMAGE = np.random.default_rng(1).random((2, 7, 9))
COLOUR = np.random.default_rng(2).random((3, 5, 4))


MOVEMENTS = (
    "rotate:-170..170", "rotate:border=edge:-40..40", "scale:0.4..2", "scale:border=edge:0.4..2", "shear:-0.9..0.9",
    "shear:axis=y:-0.9..0.9", "shear:border=edge:-0.9..0.9",
)  # fmt: skip
LIGHTS = {
    "brightness:-1..1": lambda x, t: t + 0.0 * x,
    "contrast:-1..1": lambda x, t: t * x,
    "contrast:pivot=mean:-1..1": lambda x, t: t * (x - x.mean()),
    "haze:colour=0.25": lambda x, t: t * (0.25 - x),
    "occlude:x=1,y=2,w=2,h=2,colour=0.75": lambda x, t: t * on_rectangle(x) * (0.75 - x),
    "field:kind=x,mode=times:-1..1": lambda x, t: t * x * np.linspace(-1, 1, x.shape[2]),
    "saturation:-1..1": lambda x, t: t * (x - np.tensordot([0.299, 0.587, 0.114], x, axes=1)),
    "blur:sigma=0.7": lambda x, t: t * (np.stack([gaussian(part) for part in x]) - x),
    "hue:-90..90": lambda x, t: np.tensordot(hue_turn(t) - np.eye(3), x, axes=1),
}
"""What each light adds to an image, in plain numpy."""


def on_rectangle(x: np.ndarray) -> np.ndarray:
    inside = np.zeros(x.shape[1:])
    inside[2:4, 1:3] = 1.0
    return inside


def gaussian(x: np.ndarray) -> np.ndarray:
    """A Gaussian blur with sigma 0.7 that repeats edge pixels."""
    return ndimage.gaussian_filter(x, 0.7, mode="nearest", truncate=4.0)


def hue_turn(degrees: float) -> np.ndarray:
    yiq = np.array([[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    return np.linalg.inv(yiq) @ np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]]) @ yiq


def by_definition(image: np.ndarray, specs: list[str], theta: np.ndarray) -> np.ndarray:
    """First all movements with one look-up, then what every light adds to the moved image, then one clip."""
    start = moved(image, parse_specs(specs), theta)
    added = [LIGHTS[spec](start, own) for spec, own in zip(specs, theta, strict=True) if spec in LIGHTS]
    return np.clip(start + sum(added), 0.0, 1.0)


@pytest.mark.parametrize("spec", [*MOVEMENTS, *LIGHTS])
def test_a_family_is_its_definition_at_a_thousand_thetas(spec: str) -> None:
    perturbed = compose(parse_specs([spec]), COLOUR)
    thetas = np.random.default_rng(3).uniform(perturbed.domain.low, perturbed.domain.high, (1000, 1))
    thetas[:2] = np.stack([perturbed.domain.low, perturbed.domain.high])
    images = perturbed.images(thetas)
    for theta, image in zip(thetas, images, strict=True):
        np.testing.assert_allclose(image, by_definition(COLOUR, [spec], theta), atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(MOVEMENTS), max_size=2, unique=True),
    st.lists(st.sampled_from(sorted(LIGHTS)), max_size=3, unique=True),
    st.randoms(use_true_random=False),
    st.integers(0, 10**6),
)
def test_any_combination_moves_first_then_adds_light_then_clips_once(movements, lights, random, seed) -> None:
    specs = [spec for spec in movements if "border" not in spec] + lights
    random.shuffle(specs)
    if not specs:
        return
    generator = np.random.default_rng(seed)
    image = generator.integers(0, 4, (3, *generator.integers(4, 7, 2))) / 3.0
    perturbed = compose(parse_specs(specs), image)
    for theta in generator.uniform(perturbed.domain.low, perturbed.domain.high, (5, len(specs))):
        np.testing.assert_allclose(perturbed.image(theta), by_definition(image, specs, theta), atol=1e-11)


def test_light_before_movement_would_be_noticed() -> None:
    specs, theta = ["rotate:-170..170", "brightness:-1..1"], np.array([30.0, 0.5])
    wrong = moved(np.clip(COLOUR + 0.5, 0.0, 1.0), parse_specs(specs), theta)
    assert np.abs(wrong - by_definition(COLOUR, specs, theta)).max() > 0.1


@pytest.mark.parametrize("spec", MOVEMENTS)
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


def test_scale_and_shear_are_those_of_scipy() -> None:
    middle = (np.array(IMAGE.shape[1:]) - 1) / 2
    for spec, theta, matrix in (
        ("scale:0.5..2", 0.6, np.eye(2) / 1.6),
        ("shear:-0.5..0.5", 0.3, np.array([[1.0, 0.0], [0.3, 1.0]])),
        ("shear:axis=y:-0.5..0.5", 0.3, np.array([[1.0, 0.3], [0.0, 1.0]])),
    ):
        wanted = ndimage.affine_transform(
            IMAGE[0], matrix, offset=middle - matrix @ middle, order=1, mode="grid-constant"
        )
        np.testing.assert_allclose(compose([parse_spec(spec)], IMAGE).image([theta])[0], wanted, atol=1e-12)


def test_movements_compose_in_the_order_given_with_one_look_up() -> None:
    turn, shift = parse_spec("rotate:-40..40"), parse_spec("translate:dx=3")
    there, back = moved(IMAGE, [turn, shift], [30.0, 1.25]), moved(IMAGE, [shift, turn], [1.25, 30.0])
    np.testing.assert_allclose(compose([turn, shift], IMAGE).image([30.0, 1.25]), there, atol=1e-12)
    np.testing.assert_allclose(compose([shift, turn], IMAGE).image([1.25, 30.0]), back, atol=1e-12)
    assert np.abs(there - back).max() > 0.1


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
    found = perturbed.expected(maps, np.array([20.0, 0.5]))
    np.testing.assert_allclose(found, moved(maps, perturbed.perturbations, [20.0, 0.5]), atol=1e-12)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("scale:-0.5..1.1", "hardly anything of the image"),
        ("scale:0..1", "hardly anything of the image"),
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


def test_large_images_keep_still_under_light_that_depends_on_pixels() -> None:
    large = np.random.default_rng(5).random((3, 80, 80))
    with pytest.raises(PerturbationError, match=r"haze depends on the pixels of a moving image.*19,200 pixels"):
        compose(parse_specs(["rotate", "haze"]), large)
    with pytest.raises(PerturbationError, match="too large"):
        compose(parse_specs(["rotate", "contrast:pivot=mean"]), large[:1, :70])
    still = compose(parse_specs(["hue", "contrast:pivot=mean"]), large)
    assert still.curve is not None
    found = still.curve.enclose(still.box(np.full((1, 2), 0.5), np.full((1, 2), 0.5)))
    image = still.unclipped(still.domain.to_theta(np.full((1, 2), 0.5))).ravel()
    assert (np.abs(found.coefficients[0, 0] - image) <= found.radius[0] + 1e-15).all()


@pytest.mark.parametrize("spec", ["rotate:border=edge:-5..5", "scale:0.5..1.25", "shear:axis=y", "hue:0..90"])
def test_specs_are_written_as_they_are_read(spec: str) -> None:
    assert parse_spec(spec).spec == spec
    assert parse_spec(parse_spec(spec).spec) == parse_spec(spec)
