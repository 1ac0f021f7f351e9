"""Patch: adds theta (its density) to a rectangle of pixels, or subtracts it. Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

from ..base import FloatArray, Rectangle


@dataclass(frozen=True, kw_only=True)
class Patch(Rectangle):
    """Add tone * theta to columns x..x+w-1 and rows y..y+h-1 of every channel, by default for theta in 0..1.

    x counts columns from the left and y rows from the top, both from 0; tone is +1 (a white patch) or -1 (a black one).

    >>> Patch(x=12, y=12, w=4, h=4).spec
    'patch:x=12,y=12,w=4,h=4'
    """

    keyword: ClassVar[str] = "patch"
    example: ClassVar[str] = "patch:x=12,y=12,w=4,h=4"

    tone: int = 1

    @property
    def name(self) -> str:
        return f"{'' if self.tone > 0 else 'dark '}patch {self.place}"

    def check_fields(self) -> None:
        super().check_fields()
        if self.tone not in (1, -1):
            self.refuse(f"tone={self.tone}; expected 1 (adds the density) or -1 (subtracts it)")

    def slope(self, image: FloatArray) -> FloatArray:
        return self.tone * self.inside(image)
