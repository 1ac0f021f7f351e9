"""Saturation: x + theta (x − grey(x)). Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...words import counted
from ..base import FloatArray, Ramp

GREY = np.array([0.299, 0.587, 0.114])
"""The shares of red, green and blue in the grey of a colour."""


@dataclass(frozen=True, kw_only=True)
class Saturation(Ramp):
    """Multiply the distance of every colour from its grey by 1 + theta, by default for theta in -1..1; -1 gives grey.

    The grey of r, g, b is 0.299 r + 0.587 g + 0.114 b. Only for images with three channels.

    >>> Saturation(range=(-1, 0)).spec
    'saturation:-1..0'
    """

    keyword: ClassVar[str] = "saturation"
    example: ClassVar[str] = "saturation:-1..0.5"
    reads_image: ClassVar[bool] = True
    default_range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    why_no_wider: ClassVar[str] = "theta is the change of the factor, from -1 (grey) to 1 (doubled)"

    def check(self, shape: tuple[int, int, int]) -> None:
        if shape[0] != len(GREY):
            self.refuse(
                f"the image has {counted(shape[0], 'channel')}; only images with red, green and blue have a saturation"
            )

    def slope(self, image: FloatArray) -> FloatArray:
        return image - np.tensordot(GREY, image, axes=1)
