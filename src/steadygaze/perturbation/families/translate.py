"""Translation along one axis: theta counts pixels; between whole pixels the image is interpolated linearly.

The expected attention map moves in the same way; vacated pixels of both are zero. A translation by one pixel is the
paper's x0 + theta * (shift(x0) - x0), with its zero padding.
"""

from dataclasses import dataclass
from math import ceil, floor
from typing import ClassVar

import numpy as np

from ...errors import InternalError
from ..base import FloatArray
from ..movement import Matrix, Movement, linear
from ..scalar_forms import Box, Form, parameter

# The ends of a range snap to a whole pixel within this distance: 30 * 0.1 must not leave a sliver beyond the knot at 3.
SNAP = 1e-6

BILINEAR, TRIANGLE = "bilinear", "triangle"
"""Interpolation of two translations at once: by the product of both, or affinely on two triangles of a unit cell."""


@dataclass(frozen=True, kw_only=True)
class Translate(Movement):
    """Move by theta pixels right (dx > 0), left (dx < 0), down (dy > 0) or up (dy < 0); by default 0..|dx or dy|.

    Negative thetas move the other way, by at most the same length. Linear interpolation is represented exactly, with a
    knot at every whole pixel inside the range. interp chooses the interpolation together with a translation along the
    other axis; alone, both are linear.

    >>> Translate(dx=-3).knots(), Translate(dy=2, range=(-1, 1.5)).knots()
    ((1.0, 2.0), (0.0, 1.0))
    """

    keyword: ClassVar[str] = "translate"
    example: ClassVar[str] = "translate:dy=1"

    dx: int = 0
    dy: int = 0
    interp: str = BILINEAR

    @property
    def length(self) -> int:
        """The most pixels by which it moves the image."""
        return abs(self.dx or self.dy)

    @property
    def name(self) -> str:
        words = ("right", "left") if self.dx else ("down", "up")
        return f"translation {words[(self.dx or self.dy) < 0]} [px]"

    @property
    def default_range(self) -> tuple[float, float]:
        return 0.0, float(self.length)

    @property
    def widest_range(self) -> tuple[float, float]:
        return -float(self.length), float(self.length)

    @property
    def why_no_wider(self) -> str:
        return f"theta counts pixels and {'dx' if self.dx else 'dy'}={self.dx or self.dy} bounds them"

    def snap(self, end: float) -> float:
        return float(round(end)) if abs(end - round(end)) <= SNAP else end

    def check_fields(self) -> None:
        if not self.dx and not self.dy:
            self.refuse("moves nowhere; give dx or dy, whole pixels other than 0, for example translate:dx=3")
        if self.dx and self.dy:
            self.refuse(f"dx={self.dx} and dy={self.dy} at once; a translation runs along one axis: give one of them")
        if self.interp not in (BILINEAR, TRIANGLE):
            self.refuse(f"interp={self.interp} is not known; give {BILINEAR} or {TRIANGLE}")

    def check(self, shape: tuple[int, int, int]) -> None:
        side = shape[2] if self.dx else shape[1]
        if self.length > side:
            key, word = ("dx", "wide") if self.dx else ("dy", "high")
            self.refuse(
                f"{key}={self.dx or self.dy} is longer than the image, which is {side} pixels {word}; "
                f"give at most {side}, which moves the whole image out"
            )

    def knots(self) -> tuple[float, ...]:
        return tuple(float(whole) for whole in range(floor(self.low) + 1, ceil(self.high)))

    def source(self, thetas: FloatArray) -> FloatArray:
        maps = np.tile(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), (len(thetas), 1, 1))
        maps[:, 0 if self.dx else 1, 2] = -self.direction * thetas
        return maps

    @property
    def script(self) -> str:
        back = f"{-self.direction} * t"
        across, down = (back, "0") if self.dx else ("0", back)
        return f"(t) => [[1, 0, {across}], [0, 1, {down}]]"

    def enclose_source(self, axis: int, box: Box) -> Matrix:
        theta = parameter(axis, box)
        back = Form(-self.direction * theta.coefficients, theta.radius)
        constants = (back, 0.0) if self.dx else (0.0, back)
        return linear(box, 1.0, 0.0, constants[0], 0.0, 1.0, constants[1])

    @property
    def direction(self) -> int:
        """1 if it moves right or down, -1 if left or up."""
        return 1 if self.dx + self.dy > 0 else -1

    def shift(self, pixels: FloatArray, steps: int) -> FloatArray:
        """Return an array (..., H, W) moved by a whole number of steps in this direction, zero where vacated."""
        distance = steps * self.direction
        axis = -1 if self.dx else -2
        side = pixels.shape[axis]
        moved = np.zeros(pixels.shape)
        if abs(distance) < side:
            source, target = np.moveaxis(pixels, axis, 0), np.moveaxis(moved, axis, 0)
            target[max(distance, 0) : side + min(distance, 0)] = source[max(-distance, 0) : side - max(distance, 0)]
        return moved

    def apply(self, image: FloatArray, thetas: FloatArray) -> FloatArray:
        images = np.empty((len(thetas), *image.shape))
        steps = np.floor(thetas)
        for step in np.unique(steps):
            chosen = steps == step
            share = (thetas[chosen] - step)[:, None, None, None]
            images[chosen] = (1 - share) * self.shift(image, int(step)) + share * self.shift(image, int(step) + 1)
        return images

    def transport(self, maps: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
        """Return offset and slope of the expected maps (..., C, H, W): they move exactly like the image."""
        return self.change(maps, low, high)

    def change(self, image: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
        step = floor(low)
        if not low < high <= step + 1:
            raise InternalError(f"{self.spec}: [{low}, {high}] is not inside one whole pixel")
        slope = self.shift(image, step + 1) - self.shift(image, step)
        # Anchor at the end nearer to 0: next to 0 the offset is exactly zero on both sides.
        anchor = step if step >= 0 else step + 1
        return self.shift(image, anchor) - anchor * slope - image, slope
