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

    @property
    def name(self) -> str:
        return "rotation [°]"

    @property
    def default_range(self) -> tuple[float, float]:
        return -30.0, 30.0

    @property
    def widest_range(self) -> tuple[float, float]:
        return -180.0, 180.0

    @property
    def why_no_wider(self) -> str:
        return "theta counts degrees, and beyond ±180 the images repeat"

    def knots(self) -> tuple[float, ...]:
        # Quarter turns map whole pixels to whole pixels, so all pixels have a kink there at once.
        first, last = floor(self.low / 90.0) + 1, ceil(self.high / 90.0)
        return tuple(90.0 * number for number in range(first, last))

    def source(self, thetas: FloatArray) -> FloatArray:
        turn = np.deg2rad(thetas)
        cos, sin, none = np.cos(turn), np.sin(turn), np.zeros(len(thetas))
        # Rows count downwards: a visibly counter-clockwise turn has the opposite sign in these coordinates.
        return np.stack([np.stack([cos, -sin, none], axis=1), np.stack([sin, cos, none], axis=1)], axis=1)

    @property
    def script(self) -> str:
        return (
            "(t) => { const a = t * Math.PI / 180, c = Math.cos(a), s = Math.sin(a); return [[c, -s, 0], [s, c, 0]]; }"
        )

    def enclose_source(self, axis: int, box: Box) -> Matrix:
        cos, sin = cosine(axis, box), cosine(axis, box, quarter=1)
        return linear(box, cos, Form(-sin.coefficients, sin.radius), 0.0, sin, cos, 0.0)
