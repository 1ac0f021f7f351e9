"""Hue: rotates colours in the chroma plane of YIQ by theta degrees. Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...words import counted
from ..base import FloatArray
from ..curved import CurvedLight
from ..scalar_forms import Box, Form, cosine

YIQ = np.array([[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])
"""The matrix from red, green and blue to luma Y and chroma I and Q."""
CHROMA = np.linalg.inv(YIQ) @ np.diag([0.0, 1.0, 1.0]) @ YIQ
"""The matrix from a pixel to its chroma part, in red, green and blue."""
QUARTER = np.linalg.inv(YIQ) @ np.array([[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]) @ YIQ
"""The matrix from a pixel to its chroma part after a quarter turn."""


@dataclass(frozen=True, kw_only=True)
class Hue(CurvedLight):
    """Rotate hues by theta degrees, by default for theta in -20..20; luma stays the same.

    >>> Hue(range=(0, 90)).spec
    'hue:0..90'
    """

    keyword: ClassVar[str] = "hue"
    example: ClassVar[str] = "hue:-20..20"
    name: ClassVar[str] = "hue [°]"
    reads_image: ClassVar[bool] = True
    default_range: ClassVar[tuple[float, float]] = (-20.0, 20.0)
    widest_range: ClassVar[tuple[float, float]] = (-180.0, 180.0)
    why_no_wider: ClassVar[str] = "theta counts degrees, and beyond ±180 the colours repeat"
    script: ClassVar[str] = "(t) => [Math.cos(t * Math.PI / 180) - 1, Math.sin(t * Math.PI / 180)]"

    def check(self, shape: tuple[int, int, int]) -> None:
        if shape[0] != 3:
            self.refuse(f"the image has {counted(shape[0], 'channel')}; only images with red, green and blue have hues")

    def apply(self, image: FloatArray, thetas: FloatArray) -> FloatArray:
        turn = np.deg2rad(thetas)[:, None, None, None]
        chroma, quarter = self.parts(image)
        return image + (np.cos(turn) - 1.0) * chroma + np.sin(turn) * quarter

    def parts(self, image: FloatArray) -> FloatArray:
        return np.stack([np.einsum("ij,jhw->ihw", matrix, image) for matrix in (CHROMA, QUARTER)])

    def factors(self, axis: int, box: Box) -> tuple[Form, ...]:
        return cosine(axis, box) + Form.constant(-1.0, box), cosine(axis, box, quarter=1)
