"""Perturbations of an image: families, their spec texts, and the piecewise affine map theta -> image of their sum.

The package also exports the class of any new file in `families`.
"""

from .base import Perturbation
from .compose import Domain, KnotCell, Perturbed, compose
from .families import find_families, parse_spec
from .families.brightness import Brightness
from .families.darkness import Darkness
from .families.patch import Patch
from .families.translate import Translate

__all__ = [
    "Brightness",
    "Darkness",
    "Domain",
    "KnotCell",
    "Patch",
    "Perturbation",
    "Perturbed",
    "Translate",
    "compose",
    "find_families",
    "parse_spec",
]


def __getattr__(name: str) -> type[Perturbation]:
    # Called only for names missing above: families in new files. Python itself looks up names with an underscore
    # (__path__ and the like), often before this package is complete.
    if not name.startswith("_"):
        for family in find_families().values():
            if family.__name__ == name:
                return family
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
