"""Overlay: a picture fades in according to its alpha, x + theta m (c − x). Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

from ..base import FloatArray, Mix
from ..fields import Layers


@dataclass(frozen=True, kw_only=True)
class Overlay(Mix):
    """Lay a picture with transparency over the image, for theta in 0..1; theta = 1 is the overlay of an image editor.

    image: a PNG with an alpha channel, of the same size as the image; alpha is the mask.

    >>> import numpy as np
    >>> Overlay(image=np.ones((2, 4, 4))).name
    'overlay array'
    """

    keyword: ClassVar[str] = "overlay"
    example: ClassVar[str] = 'overlay:image="dirt.png"'
    share_of: ClassVar[str] = "the picture"

    image: Layers

    @property
    def name(self) -> str:
        return f"overlay {self.image.short}"

    def check(self, shape: tuple[int, int, int]) -> None:
        colours = self.image.values[:-1]
        self.check_size("image", self.image.short, colours.shape, shape)

    def slope(self, image: FloatArray) -> FloatArray:
        return self.image.values[-1] * (self.image.values[:-1] - image)
