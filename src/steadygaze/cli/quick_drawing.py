"""matplotlib without its help texts: commands draw pictures, and nobody asks them for `help()`.

matplotlib writes a list of settings into the documentation of every class while it is imported, which takes as long as
the rest of the import. A program that imports steadygaze keeps these texts: only commands call this module.
"""

import sys
from importlib import import_module


def import_matplotlib() -> None:
    """Import what figures need of matplotlib, unless it is imported already; classes made later have their texts."""
    if "matplotlib.figure" in sys.modules:
        return
    from matplotlib import artist  # noqa: PLC0415 (slow to import)

    make_text = artist.kwdoc
    artist.kwdoc = lambda artist: ""
    try:
        import_module("matplotlib.figure")
    finally:
        artist.kwdoc = make_text
