"""Patch: adds theta (its density) to a rectangle of pixels, or subtracts it. Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..base import FloatArray, Perturbation


@dataclass(frozen=True, kw_only=True)
class Patch(Perturbation):
    """Add tone * theta to columns x..x+w-1 and rows y..y+h-1 of every channel, by default for theta in 0..1.

    x counts columns from the left and y rows from the top, both from 0; tone is +1 (a white patch) or -1 (a black one).

    >>> Patch(x=12, y=12, w=4, h=4).spec
    'patch:x=12,y=12,w=4,h=4'
    """

    keyword: ClassVar[str] = "patch"
    example: ClassVar[str] = "patch:x=12,y=12,w=4,h=4"

    x: int
    y: int
    w: int
    h: int
    tone: int = 1

    @property
    def name(self) -> str:
        return f"{'' if self.tone > 0 else 'dark '}patch {self.w}×{self.h} at ({self.x}, {self.y})"

    def check_fields(self) -> None:
        if self.w < 1 or self.h < 1:
            self.refuse(f"w={self.w}, h={self.h} holds no pixel; both must be at least 1")
        if self.x < 0 or self.y < 0:
            self.refuse(f"x={self.x}, y={self.y} lies outside the image; both count from 0 at its top left corner")
        if self.tone not in (1, -1):
            self.refuse(f"tone={self.tone} is neither 1 (adds the density) nor -1 (subtracts it)")

    def check(self, shape: tuple[int, int, int]) -> None:
        _, height, width = shape
        if self.x + self.w > width or self.y + self.h > height:
            self.refuse(
                f"columns {self.x} to {self.x + self.w - 1} and rows {self.y} to {self.y + self.h - 1} leave the "
                f"image, which has columns 0 to {width - 1} and rows 0 to {height - 1}; move it or make it smaller"
            )

    def apply(self, image: FloatArray, thetas: FloatArray) -> FloatArray:
        images = np.empty((len(thetas), *image.shape))
        images[:] = image
        images[:, :, self.y : self.y + self.h, self.x : self.x + self.w] += self.tone * thetas[:, None, None, None]
        return images

    def change(self, image: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
        rows, columns = np.arange(image.shape[-2]), np.arange(image.shape[-1])
        is_inside = ((rows >= self.y) & (rows < self.y + self.h))[:, None] & (
            (columns >= self.x) & (columns < self.x + self.w)
        )
        return np.zeros(image.shape), np.broadcast_to(np.where(is_inside, float(self.tone), 0.0), image.shape).copy()
