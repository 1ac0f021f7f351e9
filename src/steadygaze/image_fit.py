"""Adapts images of other sizes and colours to a model by Pillow, only at the caller's request.

An 8-bit image stays one: every pixel of the result is v/255. Pillow resizes other numbers in float32.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from .errors import ImageError, OptionError, did_you_mean

FITS = {
    "resize": "stretched to",
    "crop": "scaled to cover, and cut at its centre to",
    "pad": "scaled to lie within, and padded with black to",
}
"""The ways to fit an image to the size of a model's input, and the words for notes."""
GREY, RGB = "grey", "rgb"
CHANNELS = {GREY: 1, RGB: 3}
LUMA = np.array([299.0, 587.0, 114.0]) / 1000.0
"""The weights of red, green and blue in a grey value, as in Pillow (ITU-R 601-2)."""

_SIZE = re.compile(r"(\d{1,5})x(\d{1,5})")

Pixels = NDArray[np.float64]


@dataclass(frozen=True)
class ImageFit:
    """The preparation of an image before it is verified: `how` to resize it, if at all, and to which `colours`.

    size: width and height; None for the size of the model's input.

    >>> ImageFit.of("crop", grey=True).words
    ['--fit', 'crop', '--grey']
    >>> ImageFit.of("resize:32x24").size
    (32, 24)
    """

    how: str = ""
    size: tuple[int, int] | None = None
    colours: str = ""

    @classmethod
    def of(cls, fit: str | None = None, *, grey: object = False, rgb: object = False) -> "ImageFit":
        """Read the options; raises OptionError for other texts, and for grey and rgb at once."""
        if grey and rgb:
            raise OptionError("--grey and --rgb exclude each other; leave one out")
        colours = GREY if grey else RGB if rgb else ""
        if not fit:
            return cls(colours=colours)
        how, colon, text = str(fit).partition(":")
        size = _SIZE.fullmatch(text)
        if how not in FITS or bool(colon) != (size is not None):
            guess = "" if how in FITS else did_you_mean(how, FITS)
            raise OptionError(
                f"--fit is {fit!r}.{guess} Expected {', '.join(FITS)}; or with a size in pixels, such as resize:28x28"
            )
        sides = None if size is None else (int(size[1]), int(size[2]))
        if sides is not None and 0 in sides:
            raise OptionError(f"--fit is {fit!r}; expected a width and a height of at least one pixel")
        return cls(how, sides, colours)

    @property
    def text(self) -> str:
        """The option --fit; empty if the size stays."""
        return self.how if self.size is None else f"{self.how}:{self.size[0]}x{self.size[1]}"

    @property
    def words(self) -> list[str]:
        """The words of the command line."""
        return [*(["--fit", self.text] if self.how else []), *([f"--{self.colours}"] if self.colours else [])]

    @property
    def needs_size(self) -> bool:
        """Whether the image is resized to the model's input."""
        return bool(self.how) and self.size is None

    def prepare(self, pixels: Pixels, name: str) -> tuple[Pixels, tuple[str, ...]]:
        """The pixels (C, H, W) in the requested colours, and in the requested size if it is given; with notes."""
        found, notes = self._recolour(pixels, name)
        if self.size is None:
            return found, notes
        resized, more = self._resize(found, self.size)
        return resized, notes + more

    def finish(self, pixels: Pixels, input_shape: tuple[int, int, int]) -> tuple[Pixels, tuple[str, ...]]:
        """The pixels (C, H, W), resized to a model's input (C, H, W) if --fit requests it; with notes."""
        if not self.needs_size:
            return pixels, ()
        return self._resize(pixels, (input_shape[2], input_shape[1]))

    def _recolour(self, pixels: Pixels, name: str) -> tuple[Pixels, tuple[str, ...]]:
        channels = len(pixels)
        if not self.colours or channels == CHANNELS[self.colours]:
            return pixels, ()
        if channels not in CHANNELS.values():
            raise ImageError(f"{name}: has {channels} channels; --{self.colours} needs an image with 1 or 3 channels")
        if self.colours == RGB:
            return np.repeat(pixels, 3, axis=0), ("the image's grey values are used for red, green and blue (--rgb)",)
        note = ("the image is converted to grey by Pillow, 0.299 red + 0.587 green + 0.114 blue (--grey)",)
        if _is_eight_bit(pixels):
            return _values(_picture(pixels).convert("L")), note
        return np.tensordot(LUMA, pixels, axes=1)[None], note

    def _resize(self, pixels: Pixels, size: tuple[int, int]) -> tuple[Pixels, tuple[str, ...]]:
        height, width = pixels.shape[1:]
        if (width, height) == size:
            return pixels, ()
        if _is_eight_bit(pixels) and len(pixels) in CHANNELS.values():
            found = _values(_fitted(_picture(pixels), self.how, size))
        else:
            layers = [Image.fromarray(layer.astype(np.float32)) for layer in pixels]
            found = np.stack([np.asarray(_fitted(layer, self.how, size), dtype=np.float64) for layer in layers])
        note = (
            f"the image is {width} × {height} pixels, {FITS[self.how]} {size[0]} × {size[1]} by Pillow, bilinear "
            f"(--fit {self.text})"
        )
        return np.clip(found, 0.0, 1.0), (note,)


UNFITTED = ImageFit()
"""The image stays unchanged."""


def _is_eight_bit(pixels: Pixels) -> bool:
    return bool((np.round(pixels * 255.0) / 255.0 == pixels).all())


def _picture(pixels: Pixels) -> Image.Image:
    """8-bit pixels (1 or 3, H, W) as a picture."""
    values = np.round(pixels * 255.0).astype(np.uint8)
    return Image.fromarray(values[0] if len(values) == 1 else np.ascontiguousarray(np.moveaxis(values, 0, 2)))


def _values(picture: Image.Image) -> Pixels:
    values = np.asarray(picture) / 255.0
    return np.ascontiguousarray(values[None] if values.ndim == 2 else np.moveaxis(values, 2, 0))


def _fitted(picture: Image.Image, how: str, size: tuple[int, int]) -> Image.Image:
    smooth = Image.Resampling.BILINEAR
    if how == "resize":
        return picture.resize(size, smooth)
    return ImageOps.fit(picture, size, smooth) if how == "crop" else ImageOps.pad(picture, size, smooth)
