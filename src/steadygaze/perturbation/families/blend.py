"""Blend: x + theta (c − x), where c is a second image. Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

from ..base import FloatArray, Mix
from ..fields import Picture


@dataclass(frozen=True, kw_only=True)
class Blend(Mix):
    """Mix the image with another one of the same size, for theta in 0..1; at theta = 1 only the other one is left.

    image: a PNG, JPEG or NPY file, grey or with as many channels as the image.

    >>> import numpy as np
    >>> Blend(image=np.zeros((1, 2, 2))).name
    'blend with array'
    """

    keyword: ClassVar[str] = "blend"
    example: ClassVar[str] = 'blend:image="clouds.png"'
    share_of: ClassVar[str] = "the other image"

    image: Picture

    @property
    def name(self) -> str:
        return f"blend with {self.image.short}"

    def check(self, shape: tuple[int, int, int]) -> None:
        self.check_size("image", self.image.short, self.image.values.shape, shape)

    def slope(self, image: FloatArray) -> FloatArray:
        return self.image.values - image
