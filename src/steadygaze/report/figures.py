"""The kinds of figures by name."""

from pathlib import Path

from ..refine.merged import MOST_DRAWN
from ..results.domain_result import DomainResult
from .files import write_figure
from .map_figure import map_figure


def draw_map(result: DomainResult, path: str | Path) -> list[Path]:
    """Write the figure of a map to PATH.png and PATH.svg (a suffix .png or .svg of path is dropped); return both.

    From four parameters on there is no picture, and nothing is written or returned.
    """
    if result.problem.perturbed.domain.dimension > MOST_DRAWN:
        return []
    return write_figure(lambda: map_figure(result), path)
