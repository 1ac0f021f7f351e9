"""Brightness: adds theta to every pixel, or to the pixels of one channel. Keeps the expected attention map."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...words import counted
from ..base import LARGEST_WHOLE_NUMBER, FloatArray, Ramp

CHANNELS = {"r": 0, "g": 1, "b": 2}
"""The numbers of the channels of colour images, by name."""


@dataclass(frozen=True, kw_only=True)
class Brightness(Ramp):
    """Add theta to every pixel, by default for theta in 0..1; negative thetas darken.

    channel: all, r, g or b of a colour image, or the number of a channel from 0.

    >>> Brightness().spec, Brightness(range=(-0.2, 0.5)).spec, Brightness(channel="r").name
    ('brightness', 'brightness:-0.2..0.5', 'brightness of channel r')
    """

    keyword: ClassVar[str] = "brightness"
    example: ClassVar[str] = "brightness:-0.2..0.5"

    channel: str = "all"

    @property
    def name(self) -> str:
        return self.keyword if self.channel == "all" else f"{self.keyword} of channel {self.channel}"

    def check_fields(self) -> None:
        is_number = self.channel.isascii() and self.channel.isdecimal() and int(self.channel) <= LARGEST_WHOLE_NUMBER
        if self.channel != "all" and self.channel not in CHANNELS and not is_number:
            self.refuse(f"channel is {self.channel[:80]!r}; expected all, r, g, b, or a number from 0")

    def check(self, shape: tuple[int, int, int]) -> None:
        if self.channel in CHANNELS and shape[0] != len(CHANNELS):
            found = counted(shape[0], "channel")
            self.refuse(f"channel={self.channel} needs an RGB image, but this one has {found}; give a number")
        if self.channel != "all" and self._number >= shape[0]:
            self.refuse(f"channel={self.channel}, but the image has the channels 0 to {shape[0] - 1}; give one of them")

    @property
    def _number(self) -> int:
        return CHANNELS[self.channel] if self.channel in CHANNELS else int(self.channel)

    def slope(self, image: FloatArray) -> FloatArray:
        if self.channel == "all":
            return np.ones(image.shape)
        slope = np.zeros(image.shape)
        slope[self._number] = 1.0
        return slope
