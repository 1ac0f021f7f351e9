"""Sharpening: x + theta (x − K∗x), where K is a Gaussian. Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

from ..base import FloatArray, Ramp
from ..correlation import blurred, check_sigma


@dataclass(frozen=True, kw_only=True)
class Sharpen(Ramp):
    """Add theta times the difference from the Gaussian blur (an unsharp mask), by default for theta in 0..1.

    sigma: the width of the Gaussian in pixels, as for blur. Edge pixels are repeated beyond the image.

    >>> Sharpen(sigma=1).spec, Sharpen(sigma=1, range=(0, 3)).spec
    ('sharpen:sigma=1', 'sharpen:sigma=1:0..3')
    """

    keyword: ClassVar[str] = "sharpen"
    example: ClassVar[str] = "sharpen:sigma=1"
    reads_image: ClassVar[bool] = True
    widest_range: ClassVar[tuple[float, float]] = (0.0, 10.0)
    why_no_wider: ClassVar[str] = "theta is the strength; use blur instead of a negative one"

    sigma: float

    @property
    def name(self) -> str:
        return f"sharpening of {self.sigma:g} px"

    def check_fields(self) -> None:
        check_sigma(self, self.sigma)

    def slope(self, image: FloatArray) -> FloatArray:
        return image - blurred(image, self.sigma)
