"""Darkness: subtracts theta from every pixel, the paper's g_b = ReLU(x - theta). Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..base import FloatArray, Perturbation


@dataclass(frozen=True, kw_only=True)
class Darkness(Perturbation):
    """Subtract theta from every pixel, by default for theta in 0..1; negative thetas brighten.

    >>> Darkness(range=(0, 0.3)).spec
    'darkness:0..0.3'
    """

    keyword: ClassVar[str] = "darkness"
    example: ClassVar[str] = "darkness:0..0.3"

    def apply(self, image: FloatArray, thetas: FloatArray) -> FloatArray:
        return image - thetas[:, None, None, None]

    def change(self, image: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
        return np.zeros(image.shape), -np.ones(image.shape)
