"""Darkness: subtracts theta from every pixel, the paper's g_b = ReLU(x - theta). Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..base import FloatArray, Ramp


@dataclass(frozen=True, kw_only=True)
class Darkness(Ramp):
    """Subtract theta from every pixel, by default for theta in 0..1; negative thetas brighten.

    >>> Darkness(range=(0, 0.3)).spec
    'darkness:0..0.3'
    """

    keyword: ClassVar[str] = "darkness"
    example: ClassVar[str] = "darkness:0..0.3"

    def slope(self, image: FloatArray) -> FloatArray:
        return -np.ones(image.shape)
