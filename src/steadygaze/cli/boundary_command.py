"""`steadygaze boundary`: describes and draws the outermost boundary of a stored result. Computes no map."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OptionError, StoreError
from . import command_options as o
from .quick_drawing import import_matplotlib
from .verify_command import choose_formats

if TYPE_CHECKING:
    from ..boundary import Boundary
    from ..results.result import Result

PICTURES = "boundary"
"""Name of the pictures inside a result's directory, without ending."""


def boundary(
    directory: o.DirectoryOption,
    property: o.OtherPropertyOption = None,
    delta: o.OtherDeltaOption = None,
    tau: o.OtherTauOption = None,
    gamma: o.OtherGammaOption = None,
    top: o.OtherTopOption = None,
    pictures: o.BoundaryPicturesOption = None,
    exit_code: o.ExitCodeOption = False,
    json: o.JsonOption = False,
    debug: o.DebugOption = False,
) -> int:
    """Find the outermost boundary of a stored map or refinement: how far from zero a property is kept.

    Shows how much of the domain the unperturbed image can reach while the property is kept, and which parts the
    boundary encloses (enclaves). Draws boundary.png beside the map. The domain must contain zero, and
    a map must be complete; undecided boxes of a refinement count as not kept. The exit code is 0, or with
    --exit-code that of the verdict for this property.
    """
    from ..results.summary import summarise_boundary  # noqa: PLC0415 (slow to import)
    from .boundary_text import describe_boundary  # noqa: PLC0415 (slow to import)
    from .printing import load_at, print_json  # noqa: PLC0415 (slow to import)

    result = load_at(directory, {"delta": delta, "tau": tau, "gamma": gamma, "top": top})
    try:
        found = result.boundary(property)
    except OptionError as error:
        raise OptionError(f"{directory}: {error}") from None
    drawn = _draw(result, found, directory, choose_formats(pictures, is_read=not json))
    summary = summarise_boundary(result, found)
    if json:
        print_json(summary.plain() | {"output": {"pictures": [str(path) for path in drawn]}})
    else:
        describe_boundary(summary.cautious(result.areas), pictures=drawn)
    return summary.verdict.exit_code if exit_code else 0


def _draw(result: "Result", found: "Boundary", directory: Path, formats: Sequence[str]) -> list[Path]:
    """Draw the boundary; if the pictures cannot be written, the answer is printed all the same."""
    if not formats:
        return []
    import_matplotlib()
    from ..report.figures.boundary import draw_boundary  # noqa: PLC0415 (slow to import)
    from .printing import print_notes  # noqa: PLC0415 (slow to import)

    try:
        return draw_boundary(result, found, directory / PICTURES, formats=formats)
    except StoreError as error:
        print_notes([str(error)])
        return []
