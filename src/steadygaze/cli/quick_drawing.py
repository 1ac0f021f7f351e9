"""matplotlib without what commands never use: they draw pictures, and nobody asks them for `help()`.

matplotlib lists the settings of every class, in its documentation and in a signature, while it is imported, which takes
as long as the rest of the import; and it imports axes in space. A program that imports steadygaze keeps all of this:
only commands call this module.
"""

import sys
import warnings
from importlib import import_module
from typing import Any

SPACE = "mpl_toolkits.mplot3d"
"""A module that matplotlib does without, with a warning, if it is missing."""


def import_matplotlib() -> None:
    """Import what figures need of matplotlib, unless it is imported already; classes made later have their texts."""
    if "matplotlib.figure" in sys.modules:
        return
    from matplotlib import artist  # noqa: PLC0415 (slow to import)

    inspector: Any = artist.ArtistInspector
    make_text, find_settings = artist.kwdoc, inspector.get_setters
    artist.kwdoc, inspector.get_setters = lambda artist: "", lambda inspector: []
    modules: dict[str, Any] = sys.modules
    modules.setdefault(SPACE, None)  # as if it were missing
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import_module("matplotlib.figure")
    finally:
        artist.kwdoc, inspector.get_setters = make_text, find_settings
        if modules[SPACE] is None:
            del modules[SPACE]
