"""Perturbations of an image: families, their spec texts, and the map from theta to the perturbed image.

The package also exports the class of every new file in `families`.
"""

from .base import Perturbation, Ramp
from .compose import Domain, KnotCell, Perturbed, compose
from .families import find_families, parse_spec, parse_specs
from .families.blend import Blend
from .families.blur import Blur
from .families.brightness import Brightness
from .families.contrast import Contrast
from .families.darkness import Darkness
from .families.direction import Direction
from .families.field import Field
from .families.haze import Haze
from .families.hue import Hue
from .families.kernel import Kernel
from .families.motion import Motion
from .families.occlude import Occlude
from .families.overlay import Overlay
from .families.patch import Patch
from .families.rotate import Rotate
from .families.saturation import Saturation
from .families.scale import Scale
from .families.shadow import Shadow
from .families.sharpen import Sharpen
from .families.shear import Shear
from .families.shift import Shift
from .families.translate import Translate
from .fields import file_digests, without_names

__all__ = [
    "Blend",
    "Blur",
    "Brightness",
    "Contrast",
    "Darkness",
    "Direction",
    "Domain",
    "Field",
    "Haze",
    "Hue",
    "Kernel",
    "KnotCell",
    "Motion",
    "Occlude",
    "Overlay",
    "Patch",
    "Perturbation",
    "Perturbed",
    "Ramp",
    "Rotate",
    "Saturation",
    "Scale",
    "Shadow",
    "Sharpen",
    "Shear",
    "Shift",
    "Translate",
    "compose",
    "file_digests",
    "find_families",
    "parse_spec",
    "parse_specs",
    "without_names",
]


def __getattr__(name: str) -> type[Perturbation]:
    # Called only for names missing above: families in new files. Names with a leading underscore (__path__ and the
    # like) are looked up by Python itself, often before this package is fully imported.
    if not name.startswith("_"):
        for family in find_families().values():
            if family.__name__ == name:
                return family
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
