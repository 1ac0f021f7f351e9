"""Image files become exact pixels; any other file is refused in one line."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from steadygaze.errors import ImageError
from steadygaze.images import fit_image, image_from_array, read_image

VALUES = np.arange(256, dtype=np.uint8).reshape(16, 16)


@pytest.fixture
def picture(tmp_path):
    """Save an array or a Pillow image and return its path."""

    def picture(image, name="image.png", **options):
        path = tmp_path / name
        (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(path, **options)
        return path

    return picture


@pytest.fixture
def array(tmp_path):
    def array(values, name="image.npy"):
        path = tmp_path / name
        np.save(path, values)
        return path

    return array


def refusal(path):
    with pytest.raises(ImageError) as caught:
        read_image(path)
    message = str(caught.value)
    assert "\n" not in message and path.name in message
    return message


def test_grey_png_is_exact(picture):
    image = read_image(picture(VALUES))
    np.testing.assert_array_equal(image.pixels, VALUES[None] / 255.0)
    assert image.pixels.dtype == np.float64 and image.notes == ()


def test_rgb_png_is_exact(picture):
    colours = np.stack([VALUES, VALUES[::-1], VALUES.T], axis=2)
    image = read_image(picture(colours))
    np.testing.assert_array_equal(image.pixels, colours.transpose(2, 0, 1) / 255.0)
    assert image.notes == ()


def test_jpeg(picture):
    grey = read_image(picture(np.full((8, 8), 100, np.uint8), "grey.jpg", quality=100))
    np.testing.assert_allclose(grey.pixels, np.full((1, 8, 8), 100 / 255))
    red = read_image(picture(np.full((8, 8, 3), (200, 0, 0), np.uint8), "red.jpeg", quality=100))
    assert red.pixels.shape == (3, 8, 8)
    np.testing.assert_allclose(red.pixels[0], 200 / 255, atol=0.02)


def test_one_bit_png(picture):
    image = read_image(picture(Image.fromarray(VALUES > 100)))
    np.testing.assert_array_equal(image.pixels, (VALUES > 100).astype(float)[None])


def test_sixteen_bit_grey(picture):
    values = (np.arange(256, dtype=np.uint16) * 257 + 3).clip(0, 65535).astype(np.uint16).reshape(16, 16)
    image = read_image(picture(values))
    np.testing.assert_array_equal(image.pixels, values[None] / 65535.0)


def png(depth, kind, rows):
    """PNG of raw rows (bytes each), written by hand."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    width = len(rows[0]) // (depth // 8 * {2: 3, 0: 1}[kind])
    header = struct.pack(">IIBBBBB", width, len(rows), depth, kind, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def test_sixteen_bit_colour_is_cut_and_says_so(tmp_path):
    path = tmp_path / "deep.png"
    path.write_bytes(png(16, 2, [struct.pack(">6H", 65535, 0, 32768, 256, 0, 65280)]))
    image = read_image(path)
    np.testing.assert_array_equal(image.pixels[:, 0, 0], np.array([255, 0, 128]) / 255)
    assert "16-bit colours are cut to 8 bits" in image.notes[0]


def test_palette(picture):
    colour = Image.fromarray(np.array([[0, 1]], np.uint8), mode="P")
    colour.putpalette([255, 0, 0, 0, 0, 51])
    np.testing.assert_array_equal(read_image(picture(colour)).pixels[:, 0], [[1, 0], [0, 0], [0, 0.2]])
    grey = Image.fromarray(np.array([[0, 1]], np.uint8), mode="P")
    grey.putpalette([255, 255, 255, 51, 51, 51])
    np.testing.assert_array_equal(read_image(picture(grey)).pixels, [[[1, 0.2]]])


def test_palette_with_transparency(picture):
    colour = Image.fromarray(np.array([[0, 1]], np.uint8), mode="P")
    colour.putpalette([255, 0, 0, 0, 0, 255])
    image = read_image(picture(colour, transparency=0))
    np.testing.assert_array_equal(image.pixels[:, 0], [[0, 0], [0, 0], [0, 1]])
    assert "composited on black" in image.notes[0]


def test_alpha_is_composited_on_black(picture):
    values = np.array([[[255, 51, 0, 51], [255, 255, 255, 0]]], np.uint8)
    image = read_image(picture(values))
    np.testing.assert_allclose(image.pixels[:, 0], [[0.2, 0], [0.04, 0], [0, 0]], rtol=1e-15)
    assert image.notes == ("the image is transparent: composited on black",)
    values[..., 3] = 255
    image = read_image(picture(values))
    np.testing.assert_array_equal(image.pixels[:, 0, 0], [1, 0.2, 0])
    assert "opaque" in image.notes[0]


def test_grey_with_alpha(picture):
    image = read_image(picture(Image.fromarray(np.array([[[255, 51]]], np.uint8), mode="LA")))
    np.testing.assert_allclose(image.pixels, [[[0.2]]])
    assert "composited on black" in image.notes[0]


def test_a_transparent_colour_without_alpha(picture):
    image = read_image(picture(np.array([[[255, 0, 0], [0, 255, 0]]], np.uint8), transparency=(255, 0, 0)))
    np.testing.assert_array_equal(image.pixels[:, 0], [[0, 0], [0, 1], [0, 0]])
    image = read_image(picture(np.array([[255, 51]], np.uint8), transparency=255))
    np.testing.assert_array_equal(image.pixels, [[[0, 0.2]]])


def test_orientation_tag(picture):
    values = np.zeros((8, 16), np.uint8)
    values[:, 8:] = 255
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise
    image = read_image(picture(values, "turned.jpg", exif=exif))
    assert image.pixels.shape == (1, 16, 8)
    assert image.pixels[0, 15, 0] > 0.9 and image.pixels[0, 0, 0] < 0.1
    assert "orientation" in image.notes[0]


def test_cmyk_is_refused(picture):
    assert "colour mode CMYK" in refusal(picture(Image.new("CMYK", (4, 4)), "print.jpg"))


@pytest.mark.parametrize("shape", [(5, 6), (1, 5, 6), (5, 6, 1)])
def test_npy_grey(array, shape):
    values = np.arange(30, dtype=np.uint8).reshape(shape)
    np.testing.assert_array_equal(read_image(array(values)).pixels, values.reshape(1, 5, 6) / 255.0)


def test_npy_colour_in_both_orders(array):
    values = np.random.default_rng(0).random((3, 5, 6))
    np.testing.assert_array_equal(read_image(array(values)).pixels, values)
    np.testing.assert_array_equal(read_image(array(values.transpose(1, 2, 0))).pixels, values)
    np.testing.assert_array_equal(read_image(array(values.astype(">f8"))).pixels, values)
    np.testing.assert_array_equal(read_image(array(np.asfortranarray(values))).pixels, values)


def test_an_ambiguous_array_says_how_it_is_read(array):
    image = read_image(array(np.zeros((3, 2, 3))))
    assert image.pixels.shape == (3, 2, 3) and "(channels, height, width)" in image.notes[0]


def test_float32_of_eight_bit_values_is_exact_again(array):
    """Equal pixels must stay on coincident lines, also after a detour through float32."""
    image = read_image(array((VALUES / np.float32(255)).astype(np.float32)))
    np.testing.assert_array_equal(image.pixels[0], VALUES / 255.0)
    assert "exactly v/255" in image.notes[0]
    other = np.random.default_rng(0).random((4, 4)).astype(np.float32)
    image = read_image(array(other))
    np.testing.assert_array_equal(image.pixels[0], other.astype(np.float64))
    assert image.notes == ()
    assert read_image(array(VALUES / 255.0)).notes == ()


@pytest.mark.parametrize(
    "values,words",
    [
        (np.full((4, 4), np.nan), "NaN or infinity"),
        (np.full((4, 4), np.inf), "NaN or infinity"),
        (np.full((4, 4), 1.5), "floats must be in 0..1"),
        (np.full((4, 4), -1e-9), "floats must be in 0..1"),
        (np.ones((4, 4), np.int64), "has type int64"),
        (np.ones((4, 4), complex), "has type complex128"),
        (np.ones((4, 4), [("a", "f8")]), "has type"),
        (np.ones(16), "expected (H, W)"),
        (np.ones((1, 1, 4, 4)), "expected (H, W)"),
        (np.ones((5, 6, 7)), "without an axis of 1 to 4 channels"),
        (np.ones((0, 4)), ""),
    ],
)
def test_arrays_that_are_not_images(array, values, words):
    assert words in refusal(array(values))


def test_objects_are_never_unpickled(tmp_path):
    path = tmp_path / "objects.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert "cannot be read" in refusal(path)


def test_an_npy_header_that_claims_too_much(tmp_path):
    path = tmp_path / "huge.npy"
    stream = io.BytesIO()
    header = {"descr": "|u1", "fortran_order": False, "shape": (10**6, 10**6)}
    np.lib.format.write_array_header_1_0(stream, header)
    path.write_bytes(stream.getvalue() + bytes(100))
    refusal(path)


def test_files_that_are_no_images(tmp_path, picture):
    empty = tmp_path / "empty.png"
    empty.write_bytes(b"")
    assert "is empty" in refusal(empty)
    text = tmp_path / "text.png"
    text.write_text("no image")
    assert "not a PNG, JPEG or NPY image" in refusal(text)
    assert "no such file" in refusal(tmp_path / "missing.png")
    assert "is not a file" in refusal(tmp_path)
    assert "not a PNG, JPEG or NPY image" in refusal(picture(VALUES, "image.gif"))
    archive = tmp_path / "archive.npz"
    np.savez(archive, a=VALUES)
    assert "not a PNG, JPEG or NPY image" in refusal(archive)


@pytest.mark.parametrize("name", ["image.png", "image.jpg"])
def test_truncated_files(picture, name):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64), dtype=np.uint8)
    path = picture(noise, name)
    whole = path.read_bytes()
    for length in (9, 40, len(whole) // 2):
        path.write_bytes(whole[:length])
        refusal(path)


@pytest.mark.parametrize("side", [5000, 30000])
def test_decompression_bombs(tmp_path, side, recwarn):
    row = bytes(side)
    path = tmp_path / "bomb.png"
    content = bytearray(png(8, 0, [row]))
    content[20:24] = struct.pack(">I", side)
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    path.write_bytes(content)
    refusal(path)
    assert not recwarn.list


def test_damaged_bytes_never_give_anything_but_one_line(picture, tmp_path):
    whole = picture(np.stack([VALUES] * 3, axis=2)).read_bytes()
    path = tmp_path / "flipped.png"
    generator = np.random.default_rng(1)
    for _ in range(100):
        changed = bytearray(whole)
        for place in generator.integers(0, len(whole), 3):
            changed[place] = generator.integers(256)
        path.write_bytes(changed)
        try:
            read_image(path)
        except ImageError as error:
            assert "\n" not in str(error)


def test_images_that_fit():
    pixels = np.random.default_rng(0).random((3, 4, 5))
    np.testing.assert_array_equal(fit_image(pixels, (3, 4, 5), "a.png"), pixels)


@pytest.mark.parametrize(
    "shape,taken,words",
    [
        ((1, 4, 4), (3, 4, 4), "is grey with 1 channel, but the model expects RGB with 3; convert it with --rgb"),
        ((3, 4, 4), (1, 4, 4), "is RGB with 3 channels, but the model expects grey with 1; convert it with --grey"),
        ((3, 4, 4), (2, 4, 4), "expects images with 2"),
        ((1, 4, 6), (1, 4, 4), "is 6 wide and 4 high, but the model expects 4 × 4 (width × height); adapt it"),
        ((4, 4), (1, 4, 4), "expected (channels, height, width)"),
    ],
)
def test_images_that_do_not_fit(shape, taken, words):
    with pytest.raises(ImageError) as caught:
        fit_image(np.zeros(shape), taken, "folder/a.png")
    assert str(caught.value).startswith("a.png: ") and words in str(caught.value)


@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.1])
def test_pixels_outside_of_the_range_do_not_fit(bad):
    with pytest.raises(ImageError):
        fit_image(np.full((1, 2, 2), bad), (1, 2, 2))


def test_an_array_in_memory():
    assert image_from_array(np.zeros((28, 28), np.uint8)).pixels.shape == (1, 28, 28)
    with pytest.raises(ImageError, match="array: has type"):
        image_from_array(np.zeros((28, 28), np.int32))
