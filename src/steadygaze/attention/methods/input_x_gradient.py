"""Input×gradient: the gradient of a logit times the image, pixel by pixel."""

from dataclasses import dataclass
from typing import ClassVar

from .gradient import Gradient


@dataclass(frozen=True)
class InputXGradient(Gradient):
    """The gradient of every logit times the image."""

    name: ClassVar[str] = "input-x-gradient"

    @property
    def factor_baseline(self) -> float | None:
        return 0.0
