"""steadygaze: proved maps of where a classifier keeps its label and its attention. These names are the public ones.

A name is imported from its module when it is first used, so `import steadygaze` takes no time.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import compare, draw, export, load, search, verify, verify_preset
    from .budget import Budget, Limits
    from .compare.comparison import Comparison
    from .errors import (
        ImageError,
        InternalError,
        ModelError,
        OptionError,
        PerturbationError,
        SteadygazeError,
        StoreError,
    )
    from .labels import Property, Status, Verdict
    from .network.model import Model, read_model
    from .perturbation import Brightness, Darkness, Patch, Perturbation, Translate, parse_spec
    from .presets.answering import PresetAnswer, PresetResult
    from .results.point import Point
    from .results.result import Result

_PLACES = {
    "api": ("compare", "draw", "export", "load", "search", "verify", "verify_preset"),
    "budget": ("Budget", "Limits"),
    "compare.comparison": ("Comparison",),
    "errors": (
        "ImageError",
        "InternalError",
        "ModelError",
        "OptionError",
        "PerturbationError",
        "SteadygazeError",
        "StoreError",
    ),
    "labels": ("Property", "Status", "Verdict"),
    "network.model": ("Model", "read_model"),
    "perturbation": ("Brightness", "Darkness", "Patch", "Perturbation", "Translate", "parse_spec"),
    "presets.answering": ("PresetAnswer", "PresetResult"),
    "results.point": ("Point",),
    "results.result": ("Result",),
}
"""The module of every public name."""

_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "Brightness",
    "Budget",
    "Comparison",
    "Darkness",
    "ImageError",
    "InternalError",
    "Limits",
    "Model",
    "ModelError",
    "OptionError",
    "Patch",
    "Perturbation",
    "PerturbationError",
    "Point",
    "PresetAnswer",
    "PresetResult",
    "Property",
    "Result",
    "Status",
    "SteadygazeError",
    "StoreError",
    "Translate",
    "Verdict",
    "compare",
    "draw",
    "export",
    "load",
    "parse_spec",
    "read_model",
    "search",
    "verify",
    "verify_preset",
]


class _Package(ModuleType):
    """This module: importing the part `compare` does not hide the public function of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _MODULES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """A public name, or the version."""
    if name == "__version__":
        from .installed import installed_version  # noqa: PLC0415 (every name is imported when it is used)

        value: Any = installed_version("steadygaze")
    elif name in _MODULES:
        value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, imported or not."""
    return sorted({*globals(), *__all__, "__version__"})
