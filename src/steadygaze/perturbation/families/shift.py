"""A shift along both axes at once: the spec of two translations, one for each parameter."""

from dataclasses import dataclass
from typing import ClassVar

from ...errors import PerturbationError
from ..base import LARGEST_WHOLE_NUMBER
from .translate import BILINEAR, Translate

Ends = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Shift:
    """Move by theta_x pixels right and theta_y pixels down, by default -|dx|..|dx| and -|dy|..|dy|.

    By default the image is interpolated bilinearly, as by image libraries; such images are curved, and only a
    refinement takes them. With interp=triangle it is affine on the two triangles of every unit cell, and every engine
    takes it. A range after the keys holds for both parameters, `low..high`, or gives one for each,
    `lowx..highx/lowy..highy`.

    >>> [one.spec for one in Shift(dx=2, dy=1).parts]
    ['translate:dx=2:-2..2', 'translate:dy=1:-1..1']
    """

    keyword: ClassVar[str] = "shift"
    example: ClassVar[str] = "shift:dx=2,dy=2:-1..1/0..2"

    dx: int
    dy: int
    interp: str = BILINEAR
    range: tuple[Ends, Ends] | None = None

    def __post_init__(self) -> None:
        for key, other in (("dx", "dy"), ("dy", "dx")):
            pixels = getattr(self, key)
            if not pixels:
                raise PerturbationError(f"{key}=0 moves along one axis only; give translate:{other}=2 instead")
            if abs(pixels) > LARGEST_WHOLE_NUMBER:
                raise PerturbationError(f"{key}={pixels} is too large; give at most {LARGEST_WHOLE_NUMBER}")

    def check(self) -> None:
        """Refuse a wrong range of either parameter."""
        _ = self.parts

    @property
    def parts(self) -> tuple[Translate, Translate]:
        """The translation to the right and the one downwards."""
        across, down = abs(self.dx), abs(self.dy)
        first, second = self.range or ((-float(across), float(across)), (-float(down), float(down)))
        return (
            Translate(dx=across, interp=self.interp, range=first),
            Translate(dy=down, interp=self.interp, range=second),
        )
