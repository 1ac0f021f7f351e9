"""Attention methods, one file each: every file of this folder that defines a `Method` is found.

The map of a class is the gradient of a linear function of the logits with respect to the image, so it is constant on a
region. A method defines the functions; passes, updates, error bounds and enclosures serve all methods (`gradients`).
"""

from abc import ABC, abstractmethod
from functools import cache
from typing import ClassVar

import numpy as np

from ...errors import OptionError
from .. import find_kinds


class Method(ABC):
    """An attention method whose maps are constant on every region."""

    name: ClassVar[str]
    """Its word in questions."""

    @abstractmethod
    def targets(self, classes: int) -> np.ndarray:
        """Weights (K, K) of the logits: the map of class c is the gradient of row c times the logits."""

    @staticmethod
    def parse(text: str) -> "Method":
        """Read the name of a method."""
        known = find_methods()
        if text not in known:
            raise OptionError(f"attention {text!r} is not known; expected {', '.join(known)}")
        return known[text]


@cache
def find_methods() -> dict[str, Method]:
    """Every method of this folder by its name, in alphabetical order.

    >>> list(find_methods())
    ['gradient']
    """
    return find_kinds(__path__, __name__, Method)  # type: ignore[type-abstract]


GRADIENT = Method.parse("gradient")
