"""Occlusion: a rectangle fades to a colour, x + theta m (c − x). Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

from ..base import FloatArray, Mix, Rectangle
from ..fields import Colour

GREY = Colour((0.5,))


@dataclass(frozen=True, kw_only=True)
class Occlude(Rectangle, Mix):
    """Mix columns x..x+w-1 and rows y..y+h-1 with a colour, for theta in 0..1; at theta = 1 the colour covers them.

    >>> Occlude(x=2, y=3, w=4, h=4, colour="black").spec
    'occlude:x=2,y=3,w=4,h=4,colour=black'
    """

    keyword: ClassVar[str] = "occlude"
    example: ClassVar[str] = "occlude:x=12,y=12,w=4,h=4,colour=0.5"
    share_of: ClassVar[str] = "the colour"

    colour: Colour = GREY

    @property
    def name(self) -> str:
        return f"occlusion {self.place}"

    def check(self, shape: tuple[int, int, int]) -> None:
        super().check(shape)
        self.check_colour(self.colour, shape[0])

    def slope(self, image: FloatArray) -> FloatArray:
        return self.inside(image) * (self.colour.pixels - image)
