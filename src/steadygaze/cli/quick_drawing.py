"""matplotlib without what commands never use: they draw pictures, and nobody asks them for `help()`.

matplotlib lists the settings of every class, in its documentation and in a signature, while it is imported, which takes
as long as the rest of the import; and it imports readers of dates and of TeX. A program that imports steadygaze keeps
all of this: only commands call this module.
"""

import sys
from importlib import import_module
from importlib.util import LazyLoader, find_spec, module_from_spec
from typing import Any

LATER = ("dateutil.parser", "matplotlib.dviread")
"""Modules that matplotlib imports by name alone; they are loaded when one of their attributes is read."""


def import_matplotlib() -> None:
    """Import what figures need of matplotlib, unless it is imported already; classes made later have their texts."""
    if "matplotlib.figure" in sys.modules:
        return
    from matplotlib import artist  # noqa: PLC0415 (slow to import)

    for name in LATER:
        _import_later(name)
    inspector: Any = artist.ArtistInspector
    make_text, find_settings = artist.kwdoc, inspector.get_setters
    artist.kwdoc, inspector.get_setters = lambda artist: "", lambda inspector: []
    try:
        import_module("matplotlib.figure")
    finally:
        artist.kwdoc, inspector.get_setters = make_text, find_settings


def _import_later(name: str) -> None:
    """Stand in for a module until it is used; a module that is missing, or imported already, stays as it is."""
    spec = None if name in sys.modules else find_spec(name)
    if spec is None or spec.loader is None:
        return
    spec.loader = LazyLoader(spec.loader)
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    parent, _, own = name.rpartition(".")
    setattr(sys.modules[parent], own, module)
