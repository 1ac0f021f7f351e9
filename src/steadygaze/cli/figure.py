"""`steadygaze figure`: a figure of one kind from stored results, as PNG, SVG or PDF. Computes no map."""

import json as json_text
import os
from pathlib import Path

from .. import api
from ..errors import OptionError
from ..problem import Delta
from ..report import FORMATS
from . import options as o
from .numbers import theta, whole_number

OTHER_FORMATS = ("bmp", "eps", "gif", "jpeg", "jpg", "ps", "tif", "tiff", "webp")
"""Suffixes that ask for a format which is not written; any other is part of a name."""


def figure(
    kind: o.KindOption,
    directories: o.DirectoriesOption,
    at: o.AtOption = None,
    along: o.AlongOption = None,
    steps: o.StepsOption = None,
    by: o.ByOption = None,
    delta: o.OtherDeltaOption = None,
    out: o.FigureOutOption = None,
    format: o.FormatOption = None,
    force: o.FigureForceOption = False,
    json: o.JsonOption = False,
    debug: o.DebugOption = False,
) -> int:
    """Draw a figure from stored results.

    map: classification, attention and both, with telling images. path: images and what the network says along a path
    of combinations. strip: images, actual and expected maps and inconsistency along one parameter. boundary: the
    outermost boundaries of label and attention side by side, with images. columns: maps of several networks, original
    (O) and under brightness (B), patch (P), translation (T). tiling: all regions with their edges (of maps,
    refinements and searches). visited: the regions that a search visited, by phase and label. The exit code is 0.
    """
    thetas = [theta("at", text) for text in at or ()]
    count = whole_number("steps", steps)
    formats = parse_formats(format, out)
    if delta is not None:
        Delta.parse(delta)  # refused before a large map is read
    folder = directories[0] if out is None else out
    # `out.is_dir()` fails for a name that is too long, which is refused below.
    path = folder / f"figure-{kind}" if out is None or os.path.isdir(out) else out  # noqa: PTH112
    files = api.draw(
        kind, directories, path, formats=formats, force=force, delta=delta, at=thetas, along=along, steps=count, by=by
    )
    if json:
        print(json_text.dumps({"kind": kind, "pictures": [str(file) for file in files]}, indent=2))
    else:
        for file in files:
            print(f"picture {file}")
    return 0


def parse_formats(given: list[str] | None, out: Path | None) -> tuple[str, ...]:
    """The formats as given, or that of the name of the file, or PNG.

    >>> parse_formats(["png,SVG", "pdf"], None), parse_formats(None, Path("a.pdf")), parse_formats(None, Path("a"))
    (('png', 'svg', 'pdf'), ('pdf',), ('png',))
    """
    if given is None:
        suffix = "" if out is None else out.suffix.lower().removeprefix(".")
        if suffix in OTHER_FORMATS:
            raise OptionError(f"--out {out}: {suffix} is not written; expected {', '.join(FORMATS)}")
        return (suffix if suffix in FORMATS else "png",)
    words = [word.strip().lower() for text in given for word in text.split(",")]
    for word in words:
        if word not in FORMATS:
            raise OptionError(f"--format {word!r} is not known; expected {', '.join(FORMATS)}, or several: png,pdf")
    return tuple(words)
