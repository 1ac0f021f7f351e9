"""Haze: x + theta (c − x), where c is a colour. Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

from ..base import FloatArray, Mix
from ..fields import Colour

WHITE = Colour((1.0,))


@dataclass(frozen=True, kw_only=True)
class Haze(Mix):
    """Mix every pixel with a colour, by default white, for theta in 0..1; at theta = 1 only the colour is left.

    >>> Haze().spec, Haze(colour="0.8/0.8/1", range=(0, 0.5)).spec
    ('haze', 'haze:colour=0.8/0.8/1:0..0.5')
    """

    keyword: ClassVar[str] = "haze"
    example: ClassVar[str] = "haze:colour=white:0..0.5"
    share_of: ClassVar[str] = "the colour"

    colour: Colour = WHITE

    @property
    def name(self) -> str:
        return "haze" if self.colour == WHITE else f"haze of colour {self.colour.text}"

    def check(self, shape: tuple[int, int, int]) -> None:
        self.check_colour(self.colour, shape[0])

    def slope(self, image: FloatArray) -> FloatArray:
        return self.colour.pixels - image
