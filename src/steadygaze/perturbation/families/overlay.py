"""Overlay: a picture fades in where its alpha says, x + theta m (c − x). Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

from ..base import FloatArray, Ramp
from ..fields import Layers


@dataclass(frozen=True, kw_only=True)
class Overlay(Ramp):
    """Lay a picture with transparency over the image, for theta in 0..1; at theta = 1 as an image editor would.

    image: a PNG with an alpha channel, of the size of the image; alpha is the mask.

    >>> import numpy as np
    >>> Overlay(image=np.ones((2, 4, 4))).name
    'overlay array'
    """

    keyword: ClassVar[str] = "overlay"
    example: ClassVar[str] = 'overlay:image="dirt.png"'

    image: Layers

    @property
    def name(self) -> str:
        return f"overlay {self.image.short}"

    @property
    def reads_image(self) -> bool:
        return True

    @property
    def widest_range(self) -> tuple[float, float]:
        return 0.0, 1.0

    @property
    def why_no_wider(self) -> str:
        return "theta is the share of the picture"

    def check(self, shape: tuple[int, int, int]) -> None:
        colours = self.image.values[:-1]
        self.check_size("image", self.image.short, colours.shape, shape)

    def slope(self, image: FloatArray) -> FloatArray:
        return self.image.values[-1] * (self.image.values[:-1] - image)
