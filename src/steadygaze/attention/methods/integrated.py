"""Integrated gradients by the midpoint rule: (image − baseline) times the mean gradient on the line between the two.

Gradients are taken at baseline + s (image − baseline) for the midpoints s of equal steps. s, 1/(steps · s) and the
baseline's share (1 − s) · baseline are float64 numbers: maps are defined, and proved, with these numbers.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...errors import OptionError
from ...network.rewrites import Copies
from . import GradientMethod

MOST_STEPS = 1000
"""The most steps: each is a copy of the classifier."""


@dataclass(frozen=True)
class Integrated(GradientMethod):
    """Integrated gradients of every logit; every pixel of the baseline image has the same value."""

    name: ClassVar[str] = "integrated"

    steps: int = 8
    baseline: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.steps <= MOST_STEPS:
            raise OptionError(f"integrated: steps is {self.steps}; expected a whole number from 1 to {MOST_STEPS}")

    @property
    def middles(self) -> np.ndarray:
        """The places (steps,) between the baseline (0) and the image (1) where gradients are taken."""
        return (np.arange(self.steps) + 0.5) / self.steps

    @property
    def factor_baseline(self) -> float | None:
        return self.baseline

    def copies(self, shape: tuple[int, int, int]) -> Copies | None:
        middles = self.middles.reshape(-1, 1, 1, 1)
        return Copies(middles, (1.0 - middles) * self.baseline)

    def targets(self, classes: int) -> np.ndarray:
        # A copy that reads s · image passes on s times its gradient.
        return np.kron(1.0 / (self.steps * self.middles), np.eye(classes))
