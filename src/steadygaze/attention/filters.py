"""Filters on attention maps: identity, absolute value, 3×3 mean (zero-padded sum / 9, per channel), compositions."""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..errors import OptionError

_STEPS = {"abs": 1, "mean": 2}


@dataclass(frozen=True)
class Filter:
    """A composition of steps, applied from left to right: `abs+mean` takes absolute values, then means.

    >>> Filter.parse("abs+mean").steps
    ('abs', 'mean')
    >>> Filter.parse("identity")(np.array([[[-1.0]]]))
    array([[[-1.]]])
    """

    steps: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Filter":
        """Read `identity`, `abs`, `mean` or steps joined by `+`."""
        if text == "identity":
            return cls(())
        steps = tuple(text.split("+"))
        if not all(step in _STEPS for step in steps):
            raise OptionError(f"filter {text!r} is not known; expected identity, abs, mean or a sum such as abs+mean")
        return cls(steps)

    @property
    def name(self) -> str:
        """The text that `parse` reads."""
        return "+".join(self.steps) or "identity"

    @property
    def codes(self) -> np.ndarray:
        """The steps as numbers, for compiled loops."""
        return np.array([_STEPS[step] for step in self.steps], dtype=np.int64)

    def __call__(self, maps: np.ndarray) -> np.ndarray:
        """Filter maps (…, C, H, W)."""
        for step in self.steps:
            if step == "abs":
                maps = np.abs(maps)
            else:
                padded = np.pad(maps, [(0, 0)] * (maps.ndim - 2) + [(1, 1), (1, 1)])
                maps = sliding_window_view(padded, (3, 3), axis=(-2, -1)).sum(axis=(-2, -1)) / 9.0
        return maps


IDENTITY = Filter(())
