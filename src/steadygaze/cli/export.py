"""`steadygaze export`: the regions of a stored result as a file for other programs. Computes no map."""

from pathlib import Path

from .. import api
from ..problem import Delta
from ..results import store
from ..results.directory import check_file
from ..results.export import check_what
from ..results.export_files import ENDINGS, check_format
from . import options as o


def export(
    directory: o.DirectoryOption,
    format: o.ExportFormatOption = "csv",
    what: o.WhatOption = "regions",
    delta: o.OtherDeltaOption = None,
    out: o.ExportOutOption = None,
    force: o.ForceFilesOption = False,
    debug: o.DebugOption = False,
) -> int:
    """Write the regions of a stored result with labels, bounds and shares to a file.

    Of a map: all regions, or their pieces. Of a refinement: boxes that were decided by bounds, and exact regions. Of a
    search: the regions visited. docs/export.md has the columns. The exit code is 0.
    """
    check_what(what)
    if delta is not None:
        Delta.parse(delta)  # refused, as the rest, before a large map is read
    summary = store.read_summary(directory)
    check_format(format, len(summary["domain"]["names"]))
    name = directory.resolve().name or "result"
    path = Path(f"{name}-{what}{ENDINGS[format]}") if out is None else out
    check_file(path, force=force)
    count = api.export(directory, path, format=format, what=what, delta=delta, force=force)
    print(f"{count:,} {what} written to {path}")
    return 0
