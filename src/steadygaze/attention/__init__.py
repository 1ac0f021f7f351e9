"""Attention maps: gradients with respect to the image, and their distance from the expected maps."""

import pkgutil
from collections.abc import Iterable
from importlib import import_module
from typing import TypeVar

from ..errors import InternalError

Kind = TypeVar("Kind")


def find_kinds(folder: Iterable[str], package: str, base: type[Kind]) -> dict[str, Kind]:
    """An instance of every subclass of `base` defined in a folder's files, by its `name`, in alphabetical order."""
    found: dict[str, Kind] = {}
    for info in pkgutil.iter_modules(folder):
        module = import_module(f"{package}.{info.name}")
        for kind in vars(module).values():
            # A file may import another class to build on it.
            if not (isinstance(kind, type) and issubclass(kind, base)) or kind.__module__ != module.__name__:
                continue
            name = getattr(kind, "name")  # noqa: B009 (every base declares it)
            if name in found:
                what = package.rpartition(".")[2].removesuffix("s")
                raise InternalError(f"{module.__name__}: another file already defines the {what} '{name}'")
            found[name] = kind()
    return dict(sorted(found.items()))
