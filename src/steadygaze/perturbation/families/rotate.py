"""Rotation about the centre: theta counts degrees, counter-clockwise. Moves the expected attention map."""

from dataclasses import dataclass
from math import ceil, floor
from typing import ClassVar

import numpy as np

from ..base import FloatArray
from ..movement import CurvedMovement, Matrix, linear
from ..scalar_forms import Box, Form, cosine


@dataclass(frozen=True, kw_only=True)
class Rotate(CurvedMovement):
    """Rotate by theta degrees counter-clockwise, by default for theta in -30..30; zero outside, or border=edge.

    >>> Rotate().spec, Rotate(range=(-5, 5), border="edge").spec
    ('rotate', 'rotate:border=edge:-5..5')
    """

    keyword: ClassVar[str] = "rotate"
    example: ClassVar[str] = "rotate:-30..30"
    name: ClassVar[str] = "rotation [°]"
    default_range: ClassVar[tuple[float, float]] = (-30.0, 30.0)
    widest_range: ClassVar[tuple[float, float]] = (-180.0, 180.0)
    why_no_wider: ClassVar[str] = "theta counts degrees, and beyond ±180 the images repeat"
    script: ClassVar[str] = (
        "(t) => { const a = t * Math.PI / 180, c = Math.cos(a), s = Math.sin(a); return [[c, -s, 0], [s, c, 0]]; }"
    )

    def knots(self) -> tuple[float, ...]:
        # Quarter turns map whole pixels to whole pixels, so all pixels have a kink there at once.
        first, last = floor(self.low / 90.0) + 1, ceil(self.high / 90.0)
        return tuple(90.0 * number for number in range(first, last))

    def source(self, thetas: FloatArray) -> FloatArray:
        turn = np.deg2rad(thetas)
        cos, sin, none = np.cos(turn), np.sin(turn), np.zeros(len(thetas))
        # Rows count downwards: a visibly counter-clockwise turn has the opposite sign in these coordinates.
        return np.stack([np.stack([cos, -sin, none], axis=1), np.stack([sin, cos, none], axis=1)], axis=1)

    def enclose_source(self, axis: int, box: Box) -> Matrix:
        cos, sin = cosine(axis, box), cosine(axis, box, quarter=1)
        return linear(box, cos, Form(-sin.coefficients, sin.radius), 0.0, sin, cos, 0.0)
