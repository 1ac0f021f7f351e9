"""Attention maps: explanations of the classifier at an image, and the loss that compares them to expected maps."""

import pkgutil
from collections.abc import Iterable
from importlib import import_module
from typing import TypeVar

from ..errors import InternalError

Kind = TypeVar("Kind")


def find_kinds(folder: Iterable[str], package: str, base: type[Kind]) -> dict[str, Kind]:
    """An instance of every subclass of `base` that a folder's files define, by its `name`, in alphabetical order."""
    found: dict[str, Kind] = {}
    for info in pkgutil.iter_modules(folder):
        module = import_module(f"{package}.{info.name}")
        for kind in vars(module).values():
            # Skip classes that a file merely imports.
            if not (isinstance(kind, type) and issubclass(kind, base)) or kind.__module__ != module.__name__:
                continue
            name = getattr(kind, "name")  # noqa: B009 (every base declares it)
            if name in found:
                what = package.rpartition(".")[2].removesuffix("s")
                raise InternalError(f"{module.__name__}: another file already defines the {what} '{name}'; rename one")
            found[name] = kind()
    return dict(sorted(found.items()))
