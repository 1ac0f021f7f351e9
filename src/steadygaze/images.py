"""Turns an image file or array into canonical pixels: float64 (C, H, W) in [0,1], 8-bit values v as v/255.

Reads PNG and JPEG through Pillow, and NPY arrays; for perturbations also pictures with an alpha channel, and arrays of
any numbers. It never resizes an image or converts colour to grey (`image_fit` does so on demand). If an image does not
fit the model, the error says how to adapt it.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps

from .errors import ImageError
from .words import counted

# Far beyond the input of any network that can be mapped; 400 MB as float64 RGB.
MAX_PIXELS = 2**24

MOST_CHANNELS = 4
NPY_MAGIC = b"\x93NUMPY"
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
PNG_DEPTH_OFFSET = 24  # signature, length and name of the header chunk, width, height
SIXTEEN_BIT_MODES = ("I;16", "I;16B", "I;16L", "I;16N", "I")


@dataclass(frozen=True, eq=False)
class ImageFile:
    """Pixels (C, H, W) in [0,1], and notes for the user."""

    pixels: NDArray[np.float64]
    notes: tuple[str, ...] = ()


def read_image(path: str | Path) -> ImageFile:
    """Read a PNG, JPEG or NPY file; grey gives one channel, colour three; raises ImageError.

    Exact: an 8-bit value v becomes v/255 in float64, a 16-bit grey value v/65535. Transparent images are composited on
    black, with a note.
    """
    path = Path(path)
    with _refusing(path):
        start = _first_bytes(path)
        if not start.startswith(NPY_MAGIC):
            return _read_picture(path, start)
        return image_from_array(_mapped(path), path.name)


def read_layers(path: str | Path) -> NDArray[np.float64]:
    """Read a PNG with an alpha channel: colours and alpha (2 or 4, H, W) in [0,1], alpha last; raises ImageError."""
    path = Path(path)
    with _refusing(path):
        if not _first_bytes(path).startswith(PNG_MAGIC):
            raise ImageError(f"{path.name}: is not a PNG; save it as PNG with an alpha channel")
        with _opened(path) as picture:
            layers = _with_alpha(picture)
            if layers.mode not in ("LA", "RGBA"):
                raise ImageError(f"{path.name}: has no alpha channel; save it as PNG with transparency")
            return np.ascontiguousarray(np.moveaxis(np.asarray(layers), 2, 0) / 255.0)


def read_numbers(path: str | Path) -> NDArray[np.float64]:
    """Read an NPY array of one to three axes with finite numbers, as float64; raises ImageError."""
    path = Path(path)
    with _refusing(path):
        if not _first_bytes(path).startswith(NPY_MAGIC):
            raise ImageError(f"{path.name}: is not an NPY file; save the array with numpy.save")
        values = _mapped(path)
        if values.dtype.kind not in "fiu" or not 1 <= values.ndim <= 3 or not 0 < values.size <= 4 * MAX_PIXELS:
            raise ImageError(
                f"{path.name}: has type {values.dtype} and shape {values.shape}; expected one to three axes of numbers"
            )
        numbers = np.array(values, dtype=np.float64)
        if not np.isfinite(numbers).all():
            raise ImageError(f"{path.name}: holds NaN or infinity; all numbers must be finite")
        return numbers


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn any error while a file is read into an ImageError that names it."""
    try:
        yield
    except ImageError:
        raise
    except Exception as error:  # Pillow and numpy raise many kinds for damaged files
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ImageError(f"{path.name}: cannot be read ({reason}); save it again as PNG or NPY") from None


def _first_bytes(path: Path) -> bytes:
    if not path.exists():
        raise ImageError(f"{path}: no such file; check the path of the image")
    if not path.is_file():
        raise ImageError(f"{path}: is not a file; give a PNG, JPEG or NPY image")
    with path.open("rb") as stream:
        start = stream.read(PNG_DEPTH_OFFSET + 1)
    if not start:
        raise ImageError(f"{path.name}: is empty; save the image again")
    return start


def _mapped(path: Path) -> NDArray:
    # Memory-mapped: a header that claims more data than the file holds fails before any allocation.
    return np.load(path, mmap_mode="r", allow_pickle=False)


def image_from_array(values: NDArray, name: str = "array") -> ImageFile:
    """Canonical pixels of an array: uint8 0..255 or float 0..1, of shape (H, W), (H, W, C) or (C, H, W).

    >>> image_from_array(np.array([[0, 255]], dtype=np.uint8)).pixels
    array([[[0., 1.]]])
    """
    notes = []
    if values.size > MOST_CHANNELS * MAX_PIXELS:
        raise ImageError(f"{name}: has {values.size:.3g} numbers; at most {MAX_PIXELS:.3g} pixels are supported")
    if values.dtype == np.uint8:
        pixels = np.asarray(values) / 255.0
    elif np.issubdtype(values.dtype, np.floating):
        pixels = np.array(values, dtype=np.float64)
        _check_range(pixels, name)
        exact = _eight_bit(pixels)
        if exact is not None:
            pixels = exact
            notes.append("pixels are v/255 rounded to float32: read as exactly v/255")
    else:
        raise ImageError(f"{name}: has type {values.dtype}; save it as uint8 in 0..255 or as float in 0..1")
    if pixels.ndim == 2:
        pixels = pixels[None]
    if pixels.ndim != 3 or 0 in pixels.shape:
        raise ImageError(f"{name}: has shape {values.shape}; expected (H, W), (H, W, C) or (C, H, W)")
    is_first, is_last = pixels.shape[0] <= MOST_CHANNELS, pixels.shape[2] <= MOST_CHANNELS
    if not is_first and not is_last:
        raise ImageError(f"{name}: has shape {values.shape}, without an axis of 1 to {MOST_CHANNELS} channels")
    if is_first and is_last and values.ndim == 3:
        notes.append(f"shape {values.shape} is read as (channels, height, width)")
    if not is_first:
        pixels = np.moveaxis(pixels, 2, 0)
    return ImageFile(np.ascontiguousarray(pixels), tuple(notes))


def fit_image(
    pixels: NDArray[np.float64], input_shape: tuple[int, int, int], path: str | Path = "image"
) -> NDArray[np.float64]:
    """Return the pixels (C, H, W) if they fit a model's input shape; otherwise raise ImageError with advice."""
    name = Path(path).name
    if pixels.ndim != 3:
        raise ImageError(f"{name}: has shape {pixels.shape}; expected (channels, height, width)")
    channels, height, width = input_shape
    if pixels.shape[0] != channels:
        kinds = {1: "grey", 3: "RGB"}
        found = f"{kinds.get(pixels.shape[0], 'an image')} with {counted(pixels.shape[0], 'channel')}"
        taken = f"{kinds.get(channels, 'images')} with {channels}"
        advice = "give an array with that many channels"
        if channels in kinds:
            flag, other = ("--grey", "colour") if channels == 1 else ("--rgb", "grey images")
            advice = f"convert it with {flag}, or use a model for {other}"
        raise ImageError(f"{name}: is {found}, but the model expects {taken}; {advice}")
    if pixels.shape[1:] != (height, width):
        raise ImageError(
            f"{name}: is {pixels.shape[2]} wide and {pixels.shape[1]} high, but the model expects {width} × {height} "
            "(width × height); adapt it with --fit resize, crop or pad"
        )
    _check_range(pixels, name)
    return np.ascontiguousarray(pixels, dtype=np.float64)


def _opened(path: Path) -> Image.Image:
    """A picture of moderate size, not yet decoded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the size is checked below
        try:
            picture = Image.open(path, formats=["PNG", "JPEG"])
        except Image.UnidentifiedImageError:
            raise ImageError(f"{path.name}: is not a PNG, JPEG or NPY image; convert it to PNG") from None
    if picture.width * picture.height > MAX_PIXELS:
        picture.close()
        raise ImageError(
            f"{path.name}: is {picture.width} × {picture.height}; at most {MAX_PIXELS:.3g} pixels are supported: "
            "resize it to the model's input first"
        )
    return picture


def _read_picture(path: Path, start: bytes) -> ImageFile:
    notes: list[str] = []
    with _opened(path) as picture:
        if getattr(picture, "n_frames", 1) > 1:
            notes.append("the image has several frames: the first one is used")
        picture.load()
        if picture.getexif().get(ExifTags.Base.Orientation, 1) != 1:
            notes.append("the image is rotated according to its orientation tag")
        upright = ImageOps.exif_transpose(picture)
        if start.startswith(PNG_MAGIC) and start[PNG_DEPTH_OFFSET] == 16 and upright.mode not in SIXTEEN_BIT_MODES:
            notes.append("16-bit colours are cut to 8 bits; save as a float NPY array to keep them")
        pixels = _pixels(upright, path.name, notes)
    return ImageFile(np.ascontiguousarray(pixels), tuple(notes))


def _with_alpha(picture: Image.Image) -> Image.Image:
    """The picture, with an alpha channel if it marks transparent pixels in another way."""
    if "transparency" in picture.info or picture.mode == "PA":
        return picture.convert("LA" if picture.mode in ("L", "1") else "RGBA")
    return picture


def _pixels(picture: Image.Image, name: str, notes: list[str]) -> NDArray[np.float64]:
    is_palette = picture.mode in ("P", "PA")
    picture = _with_alpha(picture)
    if picture.mode == "P":
        picture = picture.convert("RGB")
    values = np.asarray(picture)
    if picture.mode in ("1", "L", *SIXTEEN_BIT_MODES):
        return values.astype(np.float64)[None] / {"1": 1.0, "L": 255.0}.get(picture.mode, 65535.0)
    if picture.mode not in ("RGB", "LA", "RGBA"):
        raise ImageError(f"{name}: has the colour mode {picture.mode}; convert it to RGB or grey PNG")
    layers = np.moveaxis(values, 2, 0)
    if picture.mode == "RGB":
        colours = layers / 255.0
    else:
        colours = layers[:-1] / 255.0 * (layers[-1] / 255.0)
        is_opaque = bool((layers[-1] == 255).all())
        opaque, transparent = (
            "the image's alpha channel is opaque: dropped",
            "the image is transparent: composited on black",
        )
        notes.append(opaque if is_opaque else transparent)
    # Only the palette entries show whether the image is grey.
    if is_palette and (colours == colours[0]).all():
        return colours[:1]
    return colours


def _check_range(pixels: NDArray[np.float64], name: str) -> None:
    if not np.isfinite(pixels).all():
        raise ImageError(f"{name}: holds NaN or infinity; pixels must be numbers in 0..1")
    if pixels.size and (pixels.min() < 0.0 or pixels.max() > 1.0):
        raise ImageError(
            f"{name}: has values from {pixels.min():g} to {pixels.max():g}; floats must be in 0..1 "
            "(save 0..255 as uint8, and pass mean and std as options of the model)"
        )


def _eight_bit(pixels: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """The exact v/255 if every pixel is v/255 rounded to float32, and not all are exact already; otherwise None.

    Rounded pixels would separate coinciding lines and create spurious regions.
    """
    exact = np.round(pixels * 255.0) / 255.0
    is_rounded = (exact.astype(np.float32) == pixels).all() and (exact != pixels).any()
    return exact if is_rounded else None
