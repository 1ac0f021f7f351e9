"""The figure of a tiling: all regions with their edges, coloured by label or by pattern; of a refinement also boxes."""

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from ..engines.search import SearchResult
from ..results.domain_result import DomainResult
from .colours import BOX_INK, INK, PAPER
from .extent import extent_text
from .files import finish
from .searches import write_search_header
from .sheet import ROW, Sheet, name_axis
from .tiles import add_lines, add_not_reached, add_pieces, pixel_owners, set_limits
from .tilings import Tiling, make_tiling
from .titles import HEADER, delta_text, subject_text, write_header
from .wording import number

LEFT, RIGHT, GAP, WIDE_GAP = 0.85, 0.35, 0.5, 0.75
PANEL, NARROW_PANEL, BAND, BAND_WIDTH = 6.4, 3.7, 0.8, 10.5
TABLE, TITLE, AXIS, SECTION_TITLE = 3.5, 0.3, 0.6, 0.22
EDGE = 0.5
FINEST_EDGE = 0.06
"""Widths of edges in points: where tiles are large, and at the least."""


BRIGHTENED = 0.2
"""Edges that are wider than this have a bright rim."""


def tiling_figure(result: DomainResult | SearchResult, by: str) -> Figure:
    """The tiling of a map, a refinement or a search, coloured by "cr", "ar", "both" or "pattern"."""
    tiling = make_tiling(result, by)
    sections = tiling.sections
    is_line, is_single = sections[0].domain.dimension == 1, len(sections) == 1
    width = BAND_WIDTH if is_line else PANEL if is_single else NARROW_PANEL
    height = BAND if is_line else width
    panels = len(sections) * width + (len(sections) - 1) * WIDE_GAP
    is_beside = is_single and not is_line
    top = HEADER + TITLE + (0.0 if is_single else SECTION_TITLE)
    below = top + height + AXIS
    table = ROW * len(tiling.rows)
    total = LEFT + panels + RIGHT + (GAP + TABLE if is_beside else 0.0)
    sheet = Sheet(total, max(below, HEADER + TITLE + table) if is_beside else below + table + 0.2)
    if isinstance(result, SearchResult):
        write_search_header(sheet, result)
    else:
        facts = [extent_text(result)]
        if result.is_measured:
            facts.append(delta_text(result))
        write_header(sheet, f"{subject_text(result.problem)}: the tiling", facts)
    sheet.write(LEFT, HEADER + 0.05, tiling.title, size=11, weight="bold", width=panels)
    for place in range(len(sections)):
        _draw_section(sheet, tiling, place, (LEFT + place * (width + WIDE_GAP), top), (width, height))
    sheet.table(*((LEFT + panels + GAP, HEADER + TITLE) if is_beside else (LEFT, below)), TABLE, tiling.rows)
    return finish(sheet.figure)


def _draw_section(
    sheet: Sheet, tiling: Tiling, place: int, corner: tuple[float, float], size: tuple[float, float]
) -> None:
    section = tiling.sections[place]
    names = section.domain.names
    if section.held is not None:
        axis, value = section.held
        text = f"at {names[axis]} = {number(value)}"
        sheet.write(corner[0], corner[1] - 0.12, text, size=9.5, weight="bold", width=size[0])
    axes = sheet.axes(*corner, *size)
    if tiling.has_gaps:
        add_not_reached(axes, section)
    add_pieces(axes, section, tiling.colours, pixel_owners(section), is_hatched=tiling.is_hatched)
    width = edge_width(len(np.unique(section.piece)), size, is_line=section.domain.dimension == 1)
    edges = section.positions(section.outlines)
    if width > BRIGHTENED:
        # Dark edges alone would be lost between dark tiles.
        add_lines(axes, edges, to_rgba(PAPER, 0.4), 2.2 * width, zorder=1)
    add_lines(axes, edges, to_rgba(INK, 0.75), width, zorder=2)
    add_lines(axes, section.positions(tiling.box_edges[place]), to_rgba(BOX_INK, 0.85), 1.4 * width, zorder=3)
    set_limits(axes, section)
    name_axis(axes, names[section.axes[0]], is_below=True)
    if section.domain.dimension == 1:
        axes.set_yticks([])
    else:
        name_axis(axes, names[section.axes[1]], is_below=False)


def edge_width(tiles: int, size: tuple[float, float], *, is_line: bool) -> float:
    """Width of edges in points: a small part of the side of a tile of average size, so that colours stay visible.

    >>> edge_width(10, (6.0, 6.0), is_line=False), edge_width(10**6, (6.0, 6.0), is_line=False)
    (0.5, 0.06)
    """
    side = 72.0 * (size[0] / max(tiles, 1) if is_line else (size[0] * size[1] / max(tiles, 1)) ** 0.5)
    return float(np.clip(0.06 * side, FINEST_EDGE, EDGE))
