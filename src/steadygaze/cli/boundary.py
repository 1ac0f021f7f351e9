"""`steadygaze boundary`: the outermost boundary of a stored result, told and drawn. Computes no map."""

import json as json_text
from pathlib import Path

from .. import api
from ..boundary import Boundary
from ..errors import StoreError
from ..problem import Delta
from ..results.boundary_summary import summarise_boundary
from ..results.domain_result import DomainResult
from ..verdict import Property, Verdict
from . import options as o
from .boundary_text import describe_boundary
from .deliver import print_notes

PICTURES = "boundary"
"""Name of the pictures inside a result's directory, without ending."""


def boundary(
    directory: o.DirectoryOption,
    property: o.OtherPropertyOption = None,
    delta: o.OtherDeltaOption = None,
    json: o.JsonOption = False,
    debug: o.DebugOption = False,
) -> int:
    """Find the outermost boundary of a stored map or refinement: how far from zero a property is kept.

    Tells what can be reached from the unperturbed image without leaving what satisfies the property, which parts of the
    domain that encloses (enclaves), and draws boundary.png and boundary.svg beside the map. Needs a domain that
    contains zero, and of maps full ones; boxes of a refinement that are undecided count as not kept. The exit code is
    that of the verdict for the property asked, as for show.
    """
    wanted = None if property is None else Property.parse(property)  # both refused before a large map is read
    if delta is not None:
        Delta.parse(delta)
    result = api.load(directory)
    if delta is not None:
        result = result.with_delta(delta)
    found = result.boundary(wanted)
    pictures = _draw(result, found, directory)
    summary = summarise_boundary(result, found)
    if json:
        print(json_text.dumps(summary | {"output": {"pictures": [str(path) for path in pictures]}}, indent=2))
    else:
        describe_boundary(summary, pictures=pictures)
    return Verdict(summary["verdict"]).exit_code


def _draw(result: DomainResult, found: Boundary, directory: Path) -> list[Path]:
    """Draw the boundary; where the pictures cannot be written, the answer is still worth telling."""
    from ..report.figures.boundary import draw_boundary  # noqa: PLC0415 (matplotlib is slow to import)

    try:
        return draw_boundary(result, found, directory / PICTURES)
    except StoreError as error:
        print_notes([str(error)])
        return []
