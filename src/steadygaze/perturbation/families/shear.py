"""Shear about the centre: rows (or columns) slide past each other. Moves the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..base import FloatArray
from ..movement import CurvedMovement, Matrix, linear
from ..scalar_forms import Box, parameter


@dataclass(frozen=True, kw_only=True)
class Shear(CurvedMovement):
    """Move every row right by theta times its height above the centre, by default for theta in -0.2..0.2.

    With axis=y, every column moves up by theta times its distance right of the centre. Zero outside, or border=edge.

    >>> Shear(axis="y", range=(0, 0.1)).spec
    'shear:axis=y:0..0.1'
    """

    keyword: ClassVar[str] = "shear"
    example: ClassVar[str] = "shear:axis=x:-0.2..0.2"
    default_range: ClassVar[tuple[float, float]] = (-0.2, 0.2)
    why_no_wider: ClassVar[str] = "beyond ±1 rows or columns slide by more than 45°"

    axis: str = "x"

    @property
    def name(self) -> str:
        return f"shear along {self.axis}"

    def check_fields(self) -> None:
        super().check_fields()
        if self.axis not in ("x", "y"):
            self.refuse(f"axis={self.axis}; expected x (rows slide) or y (columns slide)")

    def source(self, thetas: FloatArray) -> FloatArray:
        one, none = np.ones(len(thetas)), np.zeros(len(thetas))
        # Rows count downwards, so a row's height above the centre is minus its coordinate.
        first, second = ([one, thetas, none], [none, one, none])
        if self.axis == "y":
            first, second = [one, none, none], [thetas, one, none]
        return np.stack([np.stack(first, axis=1), np.stack(second, axis=1)], axis=1)

    @property
    def script(self) -> str:
        return "(t) => [[1, t, 0], [0, 1, 0]]" if self.axis == "x" else "(t) => [[1, 0, 0], [t, 1, 0]]"

    def enclose_source(self, axis: int, box: Box) -> Matrix:
        theta = parameter(axis, box)
        if self.axis == "y":
            return linear(box, 1.0, 0.0, 0.0, theta, 1.0, 0.0)
        return linear(box, 1.0, theta, 0.0, 0.0, 1.0, 0.0)
