"""Scale about the centre: the image grows by a factor 1 + theta. Moves the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...words import FACTOR
from ..base import FloatArray
from ..movement import CurvedMovement, Matrix, linear
from ..scalar_forms import Box, reciprocal


@dataclass(frozen=True, kw_only=True)
class Scale(CurvedMovement):
    """Enlarge by a factor, by default 0.9..1.1; zero outside, or border=edge. The range is given for the factor.

    Theta is the factor minus 1: zero is the unperturbed image, as for every family.

    >>> Scale(range=(0.5, 1.25)).spec, Scale(range=(0.5, 1.25)).low
    ('scale:0.5..1.25', -0.5)
    """

    keyword: ClassVar[str] = "scale"
    example: ClassVar[str] = "scale:0.9..1.1"
    name: ClassVar[str] = f"scale [{FACTOR}]"
    default_range: ClassVar[tuple[float, float]] = (0.9, 1.1)
    widest_range: ClassVar[tuple[float, float]] = (0.1, 10.0)
    why_no_wider: ClassVar[str] = "below 0.1 or above 10 hardly anything of the image is left"
    script: ClassVar[str] = "(t) => [[1 / (1 + t), 0, 0], [0, 1 / (1 + t), 0]]"

    @property
    def low(self) -> float:
        return (self.range or self.default_range)[0] - 1.0

    @property
    def high(self) -> float:
        return (self.range or self.default_range)[1] - 1.0

    def source(self, thetas: FloatArray) -> FloatArray:
        factor, none = 1.0 / (1.0 + thetas), np.zeros(len(thetas))
        return np.stack([np.stack([factor, none, none], axis=1), np.stack([none, factor, none], axis=1)], axis=1)

    def enclose_source(self, axis: int, box: Box) -> Matrix:
        factor = reciprocal(axis, box)
        return linear(box, factor, 0.0, 0.0, 0.0, factor, 0.0)
