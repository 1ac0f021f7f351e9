"""The families of perturbations: every file in this folder that defines one is found, so a new one is one new file.

Turns the folder into a table from keyword to class; registers nothing by hand and keeps no state.
"""

import pkgutil
from importlib import import_module

from ...errors import InternalError
from ..base import Perturbation


def find_families() -> dict[str, type[Perturbation]]:
    """Return every family of this folder by its keyword, in alphabetical order of the keywords.

    >>> list(find_families())
    ['brightness', 'darkness', 'patch', 'translate']
    """
    found: dict[str, type[Perturbation]] = {}
    for module_info in pkgutil.iter_modules(__path__):
        module = import_module(f"{__name__}.{module_info.name}")
        for family in vars(module).values():
            if not (isinstance(family, type) and issubclass(family, Perturbation)):
                continue
            # A file may import another family to build on it; only what it defines itself counts.
            if family.__module__ != module.__name__ or family.__abstractmethods__:
                continue
            if family.keyword in found:
                other = found[family.keyword].__module__
                raise InternalError(f"{module.__name__}: the keyword '{family.keyword}' is already that of {other}")
            found[family.keyword] = family
    return dict(sorted(found.items()))
