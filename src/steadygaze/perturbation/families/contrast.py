"""Contrast: x + theta (x − pivot). Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

from ..base import FloatArray, Ramp


@dataclass(frozen=True, kw_only=True)
class Contrast(Ramp):
    """Multiply the distance of every pixel from the pivot by 1 + theta, by default for theta in 0..1.

    pivot: 0, 0.5, or mean, the mean of all pixels and channels of the image. At theta = -1 all pixels equal the pivot.

    >>> Contrast(pivot="mean", range=(-0.5, 0.5)).spec, Contrast(pivot=0).spec
    ('contrast:pivot=mean:-0.5..0.5', 'contrast')
    """

    keyword: ClassVar[str] = "contrast"
    example: ClassVar[str] = "contrast:pivot=mean:-0.5..0.5"
    reads_image: ClassVar[bool] = True
    why_no_wider: ClassVar[str] = "theta is the change of the factor, from -1 (flat) to 1 (doubled)"

    pivot: str = "0"

    @property
    def name(self) -> str:
        return "contrast" if self.pivot == "0" else f"contrast around {self.pivot}"

    def check_fields(self) -> None:
        if self.pivot not in ("0", "0.5", "mean"):
            self.refuse(f"pivot is {self.pivot[:80]!r}; expected 0, 0.5 or mean")

    def slope(self, image: FloatArray) -> FloatArray:
        return image - (image.mean() if self.pivot == "mean" else float(self.pivot))
