"""Shadow: x (1 − theta m), where the mask m is 1 beyond a line, or comes from a file. Keeps the expected map."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..base import FloatArray, Mix
from ..fields import Picture

SIDES = ("left", "right", "top", "bottom")


@dataclass(frozen=True, kw_only=True)
class Shadow(Mix):
    """Darken one side of the image, or the white part of a mask, for theta in 0..1; at theta = 1 the shadow is black.

    side: left, right, top or bottom. at: where the shadow ends, as a share of the width or height from the left or top.
    soft: the width of its edge, in the same unit; the mask falls linearly from 1 to 0. image: a grey mask instead.

    >>> Shadow(side="left").slope(np.ones((1, 1, 4)))
    array([[[-1., -1., -0., -0.]]])
    """

    keyword: ClassVar[str] = "shadow"
    example: ClassVar[str] = "shadow:side=left,at=0.5,soft=0.1"
    share_of: ClassVar[str] = "light that the shadow takes away"

    side: str = ""
    at: float = 0.5
    soft: float = 0.1
    image: Picture | None = None

    @property
    def name(self) -> str:
        return f"shadow {self.side}" if self.image is None else f"shadow {self.image.short}"

    def check_fields(self) -> None:
        if self.image is not None:
            if self.side or self.at != 0.5 or self.soft != 0.1:
                self.refuse("side, at and soft cannot be combined with image; give a side or an image")
            return
        if self.side not in SIDES:
            given = f"is {self.side[:80]!r}" if self.side else "is missing"
            self.refuse(f"side {given}; expected one of {', '.join(SIDES)}, or image=FILE")
        if not 0.0 <= self.at <= 1.0 or not 0.0 <= self.soft <= 1.0:
            self.refuse(f"at={self.at:g}, soft={self.soft:g}; both are shares of the image's side, from 0 to 1")

    def check(self, shape: tuple[int, int, int]) -> None:
        if self.image is not None:
            self.check_size("image", self.image.short, self.image.values.shape, (1, *shape[1:]))

    def slope(self, image: FloatArray) -> FloatArray:
        return -self._mask(image) * image

    def _mask(self, image: FloatArray) -> FloatArray:
        """The shadow, 1 where it is full: (1 or C, H, W) or broadcast to it."""
        if self.image is not None:
            return self.image.values
        is_across = self.side in ("left", "right")
        count = image.shape[-1] if is_across else image.shape[-2]
        places = (np.arange(count) + 0.5) / count
        inside = (self.at - places) if self.side in ("left", "top") else (places - self.at)
        mask = np.clip(inside / self.soft + 0.5, 0.0, 1.0) if self.soft > 0.0 else (inside > 0.0).astype(np.float64)
        return mask if is_across else mask[:, None]
