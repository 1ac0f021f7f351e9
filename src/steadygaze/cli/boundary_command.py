"""`steadygaze boundary`: describes and draws the outermost boundary of a stored result. Computes no map."""

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OptionError, StoreError
from . import command_options as o

if TYPE_CHECKING:
    from ..boundary import Boundary
    from ..results.result import Result

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

    Shows how much of the domain the unperturbed image can reach while the property is kept, and which parts the
    boundary encloses (enclaves). Draws boundary.png and boundary.svg beside the map. The domain must contain zero, and
    a map must be complete; undecided boxes of a refinement count as not kept. The exit code is that of the verdict for
    this property, as for show.
    """
    from ..results.summary import summarise_boundary  # noqa: PLC0415 (slow to import)
    from .boundary_text import describe_boundary  # noqa: PLC0415 (slow to import)
    from .printing import load_at, print_json  # noqa: PLC0415 (slow to import)

    result = load_at(directory, delta)
    try:
        found = result.boundary(property)
    except OptionError as error:
        raise OptionError(f"{directory}: {error}") from None
    pictures = _draw(result, found, directory)
    summary = summarise_boundary(result, found)
    if json:
        print_json(summary.plain() | {"output": {"pictures": [str(path) for path in pictures]}})
    else:
        describe_boundary(summary.cautious(result.areas), pictures=pictures)
    return summary.verdict.exit_code


def _draw(result: "Result", found: "Boundary", directory: Path) -> list[Path]:
    """Draw the boundary; if the pictures cannot be written, the answer is printed all the same."""
    from ..report.figures.boundary import draw_boundary  # noqa: PLC0415 (slow to import)
    from .printing import print_notes  # noqa: PLC0415 (slow to import)

    try:
        return draw_boundary(result, found, directory / PICTURES)
    except StoreError as error:
        print_notes([str(error)])
        return []
