"""Brightness: adds theta to every pixel. Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..base import FloatArray, Perturbation


@dataclass(frozen=True, kw_only=True)
class Brightness(Perturbation):
    """Add theta to every pixel, by default for theta in 0..1; negative thetas darken.

    >>> Brightness().spec, Brightness(range=(-0.2, 0.5)).spec
    ('brightness', 'brightness:-0.2..0.5')
    """

    keyword: ClassVar[str] = "brightness"
    example: ClassVar[str] = "brightness:-0.2..0.5"

    def apply(self, image: FloatArray, thetas: FloatArray) -> FloatArray:
        return image + thetas[:, None, None, None]

    def change(self, image: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
        return np.zeros(image.shape), np.ones(image.shape)
