"""Perturbations of a rectangle of pixels: its place, and what is wrong with it."""

from dataclasses import dataclass

import numpy as np

from .base import FloatArray, Ramp


@dataclass(frozen=True, kw_only=True)
class Rectangle(Ramp):
    """Columns x..x+w-1 and rows y..y+h-1; x counts from the left and y from the top, both from 0."""

    x: int
    y: int
    w: int
    h: int

    @property
    def place(self) -> str:
        """Size and place in words."""
        return f"{self.w}×{self.h} at ({self.x}, {self.y})"

    def check_fields(self) -> None:
        """Refuse a rectangle that no image has."""
        if self.w < 1 or self.h < 1:
            self.refuse(f"w={self.w}, h={self.h} holds no pixel; both must be at least 1")
        if self.x < 0 or self.y < 0:
            self.refuse(f"x={self.x}, y={self.y} lies outside the image; both count from 0 at its top left corner")

    def check(self, shape: tuple[int, int, int]) -> None:
        """Refuse a rectangle that leaves the image."""
        _, height, width = shape
        if self.x + self.w > width or self.y + self.h > height:
            self.refuse(
                f"columns {self.x} to {self.x + self.w - 1} and rows {self.y} to {self.y + self.h - 1} leave the "
                f"image, which has columns 0 to {width - 1} and rows 0 to {height - 1}; move it or make it smaller"
            )

    def inside(self, image: FloatArray) -> FloatArray:
        """Return 1 inside the rectangle and 0 outside, (H, W)."""
        mask = np.zeros(image.shape[-2:])
        mask[self.y : self.y + self.h, self.x : self.x + self.w] = 1.0
        return mask
