"""Blur: x + theta (K∗x − x), where K is a Gaussian. Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

from ..base import FloatArray, Mix
from ..correlation import blurred, check_sigma


@dataclass(frozen=True, kw_only=True)
class Blur(Mix):
    """Mix the image with its Gaussian blur, for theta in 0..1; at theta = 1 only the blur is left.

    sigma: the width of the Gaussian in pixels; it is cut at four sigma. Edge pixels are repeated beyond the image.

    >>> Blur(sigma=1.5).spec, Blur(sigma=2, range=(0, 0.5)).name
    ('blur:sigma=1.5', 'blur of 2 px')
    """

    keyword: ClassVar[str] = "blur"
    example: ClassVar[str] = "blur:sigma=1.5"
    share_of: ClassVar[str] = "the blurred image"

    sigma: float

    @property
    def name(self) -> str:
        return f"blur of {self.sigma:g} px"

    def check_fields(self) -> None:
        check_sigma(self, self.sigma)

    def slope(self, image: FloatArray) -> FloatArray:
        return blurred(image, self.sigma) - image
