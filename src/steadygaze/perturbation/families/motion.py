"""Motion blur: x + theta (K∗x − x), where K is a line. Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

from ..base import FloatArray, Mix
from ..correlation import correlate, line_kernel

LONGEST = 200
"""The longest line in pixels."""


@dataclass(frozen=True, kw_only=True)
class Motion(Mix):
    """Mix the image with its blur along a centred line, for theta in 0..1; at theta = 1 only the blur is left.

    dx, dy: length and direction of the line in pixels, y down. Edge pixels are repeated beyond the image.

    >>> Motion(dx=5).spec, Motion(dx=3, dy=-3).name
    ('motion:dx=5', 'motion blur (3, -3) px')
    """

    keyword: ClassVar[str] = "motion"
    example: ClassVar[str] = "motion:dx=5,dy=0"
    share_of: ClassVar[str] = "the blurred image"

    dx: float = 0.0
    dy: float = 0.0

    @property
    def name(self) -> str:
        return f"motion blur ({self.dx:g}, {self.dy:g}) px"

    def check_fields(self) -> None:
        longest = max(abs(self.dx), abs(self.dy))
        if not 1.0 < longest <= LONGEST:
            self.refuse(
                f"dx={self.dx:g}, dy={self.dy:g}; the longer one must exceed 1 pixel, else nothing is blurred, and be "
                f"at most {LONGEST}, for example motion:dx=5"
            )

    def slope(self, image: FloatArray) -> FloatArray:
        return correlate(image, line_kernel(self.dx, self.dy)) - image
