"""Direction: x + theta d, where d comes from a file. Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

from ..base import FloatArray, Ramp
from ..fields import NumberFile


@dataclass(frozen=True, kw_only=True)
class Direction(Ramp):
    """Add theta times an array, by default for theta in 0..1.

    file: an NPY array (H, W) or (C, H, W).

    >>> import numpy as np
    >>> Direction(file=np.eye(2), range=(-3, 3)).name
    'direction array'
    """

    keyword: ClassVar[str] = "direction"
    example: ClassVar[str] = 'direction:file="D.npy":-1..1'
    widest_range: ClassVar[tuple[float, float]] = (-1000.0, 1000.0)
    why_no_wider: ClassVar[str] = "larger multiples leave too few digits; scale the file instead"

    file: NumberFile

    @property
    def name(self) -> str:
        return f"direction {self.file.short}"

    def check(self, shape: tuple[int, int, int]) -> None:
        self.check_size("file", self.file.short, self.file.values.shape, shape)
        self.check_reach("file", self.file.short, self.file.values)

    def slope(self, image: FloatArray) -> FloatArray:
        return self.file.values
