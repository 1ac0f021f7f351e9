"""The affine families against definitions that share no code with them, alone and combined, and their bad inputs."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy import ndimage

from steadygaze.errors import PerturbationError
from steadygaze.perturbation import compose, parse_spec, without_names

SHAPE = (3, 6, 7)
RANDOM = np.random.default_rng(17)
COLOUR = np.round(RANDOM.random(SHAPE) * 255) / 255
OTHER = np.round(RANDOM.random(SHAPE) * 255) / 255
LAYERS = RANDOM.integers(0, 256, (6, 7, 4), dtype=np.uint8)
MASK = RANDOM.integers(0, 256, (6, 7), dtype=np.uint8)
FIELD = RANDOM.normal(size=(6, 7))
KERNEL = RANDOM.normal(size=(3, 5))
KERNEL += (1.0 - KERNEL.sum()) / KERNEL.size


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Files whose names need quotes."""
    place = tmp_path_factory.mktemp("a,b:c")
    np.save(place / "other.npy", OTHER)
    Image.fromarray(LAYERS).save(place / "layers.png")
    Image.fromarray(LAYERS[..., :3].copy()).save(place / "opaque.png")
    Image.fromarray(MASK).save(place / "mask.png")
    np.save(place / "field.npy", FIELD)
    np.save(place / "kernel.npy", KERNEL)
    np.save(place / "double.npy", 2 * KERNEL)
    np.save(place / "even.npy", np.full((2, 2), 0.25))
    np.save(place / "small.npy", np.zeros((3, 5, 5)))
    np.save(place / "huge.npy", np.full((6, 7), 2e3))
    np.save(place / "beyond.npy", np.full((6, 7), 1e300))
    np.save(place / "nan.npy", np.full((6, 7), np.nan))
    np.save(place / "words.npy", np.array(["a", "b"]))
    (place / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    return place


def slow_line(image, dx, dy, steps=40_000):
    """Motion blur by many thin steps along the line, for lines longer in x: the nearest column, two rows mixed."""
    total = np.zeros(image.shape)
    height, width = image.shape[1:]
    rows, columns = np.arange(height), np.arange(width)
    weights = {}
    for share in (np.arange(steps) + 0.5) / steps - 0.5:
        x, y = int(np.floor(share * dx + 0.5)), share * dy
        low, part = int(np.floor(y)), share * dy - np.floor(share * dy)
        weights[low, x] = weights.get((low, x), 0.0) + (1 - part) / steps
        weights[low + 1, x] = weights.get((low + 1, x), 0.0) + part / steps
    for (y, x), weight in weights.items():
        total += weight * image[:, np.clip(rows + y, 0, height - 1)][:, :, np.clip(columns + x, 0, width - 1)]
    return total


def along(count):
    return 2.0 * np.arange(count) / (count - 1) - 1.0


GREY = COLOUR[0] * 0.299 + COLOUR[1] * 0.587 + COLOUR[2] * 0.114
BLURRED = ndimage.gaussian_filter(COLOUR, (0, 1.5, 1.5), mode="nearest", truncate=4.0)
SHARP = ndimage.gaussian_filter(COLOUR, (0, 1, 1), mode="nearest", truncate=4.0)
RECTANGLE = np.zeros((6, 7))
RECTANGLE[1:3, 2:6] = 1
LEFT = np.array([1 if u < 0.35 else 0 if u > 0.45 else (0.45 - u) / 0.1 for u in (np.arange(7) + 0.5) / 7])
BOTTOM = np.array([0, 0, 0, 1, 1, 1.0])[:, None]
X, Y = along(7)[None], along(6)[:, None]
CHANNEL = np.array([0, 1, 0.0])[:, None, None]
SKY = np.array([0.8, 0.9, 1.0])[:, None, None]

DEFINITIONS = {
    "brightness:channel=g:-1..1": lambda x, t: x + t * CHANNEL,
    "brightness:channel=1": lambda x, t: x + t * CHANNEL,
    "contrast": lambda x, t: x * (1 + t),
    "contrast:pivot=0.5:-1..1": lambda x, t: 0.5 + (1 + t) * (x - 0.5),
    "contrast:pivot=mean:-1..0.5": lambda x, t: (1 + t) * x - t * np.mean(x),
    "haze": lambda x, t: (1 - t) * x + t,
    "haze:colour=0.8/0.9/1:0..0.7": lambda x, t: (1 - t) * x + t * SKY,
    "haze:colour=black": lambda x, t: (1 - t) * x,
    'blend:image="{}/other.npy"': lambda x, t: (1 - t) * x + t * OTHER,
    "occlude:x=2,y=1,w=4,h=2": lambda x, t: np.where(RECTANGLE > 0, (1 - t) * x + t * 0.5, x),
    "occlude:x=2,y=1,w=4,h=2,colour=0.8/0.9/1": lambda x, t: np.where(RECTANGLE > 0, (1 - t) * x + t * SKY, x),
    'overlay:image="{}/layers.png"': lambda x, t: (
        (1 - t * LAYERS[..., 3] / 255) * x + t * LAYERS[..., 3] / 255 * np.moveaxis(LAYERS[..., :3], 2, 0) / 255
    ),
    "shadow:side=left,at=0.4": lambda x, t: x * (1 - t * LEFT),
    "shadow:side=right,at=0.4": lambda x, t: x * (1 - t * (1 - LEFT)),
    "shadow:side=bottom,soft=0": lambda x, t: x * (1 - t * BOTTOM),
    "shadow:side=top,soft=0": lambda x, t: x * (1 - t * (1 - BOTTOM)),
    'shadow:image="{}/mask.png"': lambda x, t: x * (1 - t * MASK / 255),
    "field:kind=x:-1..1": lambda x, t: x + t * X,
    "field:kind=y,mode=times": lambda x, t: x * (1 + t * Y),
    "field:kind=xy": lambda x, t: x + t * X * Y,
    "field:kind=radial,mode=times:-1..1": lambda x, t: x * (1 + t * (X**2 + Y**2) / 2),
    "field:kind=x2": lambda x, t: x + t * X**2,
    "field:kind=y2": lambda x, t: x + t * Y**2,
    'field:file="{}/field.npy",mode=times:-1..1': lambda x, t: x * (1 + t * FIELD),
    "saturation": lambda x, t: GREY + (1 + t) * (x - GREY),
    "blur:sigma=1.5": lambda x, t: (1 - t) * x + t * BLURRED,
    "motion:dx=5,dy=0": lambda x, t: (1 - t) * x + t * ndimage.correlate(x, np.full((1, 1, 5), 0.2), mode="nearest"),
    "motion:dx=0,dy=3": lambda x, t: (1 - t) * x + t * ndimage.correlate(x, np.full((1, 3, 1), 1 / 3), mode="nearest"),
    "sharpen:sigma=1:0..5": lambda x, t: x + t * (x - SHARP),
    'kernel:file="{}/kernel.npy"': lambda x, t: (1 - t) * x + t * ndimage.correlate(x, KERNEL[None], mode="nearest"),
    'kernel:file="{}/double.npy",normalise=1': lambda x, t: (
        (1 - t) * x + t * ndimage.correlate(x, KERNEL[None], mode="nearest")
    ),
    'direction:file="{}/field.npy":-3..3': lambda x, t: x + t * FIELD,
}


@pytest.mark.parametrize("text", DEFINITIONS)
def test_family_is_its_definition_at_a_thousand_thetas(folder, text):
    one = parse_spec(text.format(folder))
    perturbed = compose([one], COLOUR)
    thetas = np.concatenate([RANDOM.uniform(one.low, one.high, 998), [one.low, one.high]])
    expected = np.clip([DEFINITIONS[text](COLOUR, theta) for theta in thetas], 0, 1)
    np.testing.assert_allclose(perturbed.images(thetas[:, None]), expected, atol=1e-13)
    (cell,) = perturbed.cells
    assert not cell.offset.any()
    forms = np.clip(perturbed.x0 + thetas[:, None, None, None] * cell.slope[0], 0, 1)
    np.testing.assert_allclose(forms, expected, atol=1e-13)
    assert not one.moves
    assert np.array_equal(perturbed.image([0.0]), COLOUR) or one.low > 0


@pytest.mark.parametrize("text", DEFINITIONS)
def test_specs_read_back_and_count_files_by_content(folder, text):
    one = parse_spec(text.format(folder))
    again = parse_spec(one.spec)
    assert again == one and again.spec == one.spec and hash(again) == hash(one)
    stored = parse_spec(without_names(one.spec), one.arrays)
    assert stored == one


@pytest.mark.parametrize("text", DEFINITIONS)
def test_reads_image_says_whether_the_slope_depends_on_it(folder, text):
    one = parse_spec(text.format(folder))
    slopes = [one.change(image, one.low, one.high)[1] for image in (COLOUR, OTHER)]
    assert one.reads_image == (not np.array_equal(*slopes))


@pytest.mark.parametrize(("dx", "dy"), [(4.5, 2.0), (3.0, 3.0), (2.0, -1.0)])
def test_slanted_motion_is_the_mean_along_the_line(dx, dy):
    one = parse_spec(f"motion:dx={dx},dy={dy}")
    np.testing.assert_allclose(compose([one], COLOUR).image([1.0]), slow_line(COLOUR, dx, dy), atol=2e-4)
    # The same line, seen with both axes exchanged.
    turned = compose([parse_spec(f"motion:dx={dy},dy={dx}")], COLOUR.transpose(0, 2, 1)).image([1.0])
    if abs(dx) != abs(dy):
        np.testing.assert_allclose(turned.transpose(0, 2, 1), slow_line(COLOUR, dx, dy), atol=2e-4)


@settings(max_examples=30, deadline=None)
@given(
    chosen=st.lists(
        st.sampled_from([text for text in DEFINITIONS if "{" not in text]), min_size=1, max_size=4, unique=True
    ),
    seed=st.integers(0, 2**32 - 1),
    is_flat=st.booleans(),
)
def test_combinations_add_up_and_are_clipped_once(chosen, seed, is_flat):
    random = np.random.default_rng(seed)
    ones = {one: text for one, text in ((parse_spec(text), text) for text in chosen)}
    perturbed = compose(list(ones), COLOUR)
    theta = np.array([random.uniform(one.low, one.high) for one in ones])
    total = COLOUR + sum(
        DEFINITIONS[text](COLOUR, value) - COLOUR for text, value in zip(ones.values(), theta, strict=True)
    )
    np.testing.assert_allclose(perturbed.image(theta), np.clip(total, 0, 1), atol=1e-13)
    if is_flat:  # a constant image: many slopes vanish
        flat = compose(list(ones), np.full(SHAPE, 0.25))
        assert np.isfinite(flat.image(theta)).all()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("contrast:pivot=1", "pivot is '1'; expected 0, 0.5 or mean"),
        ("contrast:-2..0", "leaves -1..1: theta is the change of the factor"),
        ("haze:-0.1..1", "leaves 0..1"),
        ("haze:colour=2", "colour is '2': expected a colour"),
        ("haze:colour=1/0", "expected a colour"),
        ("haze:colour=nan", "expected a colour"),
        ("blur:sigma=0", "expected pixels from"),
        ("blur", "sigma is missing"),
        ("blur:sigma=1:0..2", "leaves 0..1: theta is the share"),
        ("motion", "dx=0, dy=0"),
        ("motion:dx=1", "nothing is blurred"),
        ("sharpen:sigma=1:-1..1", "leaves 0..10"),
        ("shadow", "side is missing"),
        ("shadow:side=above", "side is 'above'"),
        ("shadow:side=left,at=2", "shares of the image's side"),
        ('shadow:side=left,image="{}/mask.png"', "cannot be combined with image"),
        ("field", "either kind or file"),
        ("field:kind=z", "kind is 'z'"),
        ("field:kind=x,mode=minus", "mode is 'minus'"),
        ("brightness:channel=x", "channel is 'x'"),
        ("blend", "image is missing"),
        ('blend:image=""', "image is empty"),
        ('blend:image="x', "not closed"),
        ('blend:image="{}/none.png"', "no such file"),
        ('blend:image="{}"', "is not a file"),
        ('blend:image="{}/broken.png"', "is not a PNG, JPEG or NPY image"),
        ('blend:image="{}/nan.npy"', "NaN"),
        ('blend:image="{}/other.npy#0123456789abcdef"', "the content has changed"),
        ('blend:image="#0123456789abcdef"', "has no file"),
        ('overlay:image="{}/opaque.png"', "no alpha channel"),
        ('overlay:image="{}/other.npy"', "is not a PNG"),
        ('kernel:file="{}/double.npy"', "sums to 2, expected 1; normalise=1 scales it"),
        ('kernel:file="{}/even.npy"', "odd sides"),
        ('kernel:file="{}/other.npy"', "odd sides"),
        ('kernel:file="{}/kernel.npy",normalise=2', "expected 0, or 1 to scale the kernel"),
        ('field:file="{}/words.npy"', "has type"),
        ('field:file="{}/mask.png"', "is not an NPY file"),
        ('direction:file="{}/nan.npy"', "NaN"),
    ],
)  # fmt: skip
def test_bad_specs_say_what_is_wrong_in_one_line(folder, text, what):
    with pytest.raises(PerturbationError, match=what) as caught:
        parse_spec(text.format(folder))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shape", "what"),
    [
        ('blend:image="{}/small.npy"', SHAPE, r"has shape \(3, 5, 5\)"),
        ('blend:image="{}/other.npy"', (1, 6, 7), "expected"),
        ('overlay:image="{}/layers.png"', (1, 6, 7), "expected"),
        ('shadow:image="{}/opaque.png"', SHAPE, "expected"),
        ('field:file="{}/kernel.npy"', SHAPE, r"has shape \(3, 5\)"),
        ('direction:file="{}/small.npy"', SHAPE, "expected"),
        ('direction:file="{}/huge.npy":-1000..1000', SHAPE, "numbers up to 2e.03, and theta goes up to 1000, .* 1e.06"),
        ('field:file="{}/beyond.npy":-0.5..0.5', SHAPE, "numbers up to 1e.300, .* scale the file"),
        ("saturation", (1, 6, 7), "only images with red, green and blue"),
        ("haze:colour=1/0.9/0.8", (1, 6, 7), "colour=1/0.9/0.8 has 3 channels"),
        ("brightness:channel=r", (1, 6, 7), "needs an RGB image"),
        ("brightness:channel=3", SHAPE, "channels 0 to 2"),
        ("occlude:x=5,y=0,w=3,h=1", SHAPE, "leave the image"),
    ],
)
def test_files_and_fields_that_do_not_fit_the_image(folder, text, shape, what):
    with pytest.raises(PerturbationError, match=what) as caught:
        compose([parse_spec(text.format(folder))], np.zeros(shape))
    assert "\n" not in str(caught.value)


def test_equal_contents_compare_equal_whatever_their_names(folder, tmp_path):
    np.save(tmp_path / "copy.npy", OTHER)
    first, second = parse_spec(f'blend:image="{folder}/other.npy"'), parse_spec(f"blend:image={tmp_path}/copy.npy")
    assert first == second
    assert without_names(first.spec) == without_names(second.spec)
    with pytest.raises(PerturbationError, match="given twice"):
        compose([first, second], COLOUR)
    np.save(tmp_path / "copy.npy", 1 - OTHER)
    changed = parse_spec(f"blend:image={tmp_path}/copy.npy")
    assert changed != first
    with pytest.raises(PerturbationError, match="the content has changed"):
        parse_spec(second.spec)


def test_sixteen_fields_make_sixteen_parameters():
    ones = [parse_spec(f"patch:x={n % 7},y={n // 7},w=1,h=1") for n in range(16)]
    assert compose(ones, COLOUR).domain.dimension == 16
