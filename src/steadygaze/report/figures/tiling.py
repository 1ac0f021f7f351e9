"""The figure of a tiling: all regions with their edges, coloured by label or by pattern; for a refinement also boxes.

Draws maps, refinements and searches. Every label comes from the result.
"""

from dataclasses import replace

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from ...engines.refine.boxes import State
from ...errors import OptionError
from ...polytopes import Cut
from ...results.result import Result
from ...results.tiling import TileLabels
from ...words import counted, percent_up, share_text
from ..drawing.colours import (
    BOX_INK,
    INK,
    PAPER,
    PATTERN_SHADES,
    Row,
    View,
    make_tile_view,
)
from ..drawing.plane_sections import Section, edge_segments, make_sections
from ..drawing.raster import add_lines, add_not_reached, add_pieces, name_axes, pixel_owners, set_limits
from ..drawing.sheet import HEADER, ROW, Sheet, write_header
from ..titles import delta_text, extent_text, share_not_reached, subject_text
from .visited import not_visited_rows, write_search_header

LEFT, RIGHT, GAP, WIDE_GAP = 0.85, 0.35, 0.5, 0.75
PANEL, NARROW_PANEL, BAND, BAND_WIDTH = 6.4, 3.7, 0.8, 10.5
TABLE, TITLE, AXIS, SECTION_TITLE = 3.5, 0.3, 0.6, 0.22
EDGE, FINEST_EDGE = 0.5, 0.06
"""Widths of edges in points: for large tiles, and the smallest."""
BRIGHTENED = 0.2
"""Wider edges have a bright rim."""

BY = ("cr", "ar", "both", "pattern")
"""The ways to colour tiles."""
PATTERN_TITLE = "Activation patterns of the classifier"
GOLDEN = 0.6180339887498949
"""Steps of this size spread any number of patterns over the shades, with neighbouring numbers far apart."""

MIXED_BOX = "#e3e3e3"
"""A box, which may hold many patterns."""


def tiling_figure(result: Result, by: str | None = None) -> Figure:
    """The tiling of a result, coloured by "cr", "ar", "both" or "pattern"; by default, by its property."""
    by = by or result.question.property.value
    sections, box_edges = _tile_sections(result)
    tiles = result.tiling.tiles(result.answer)
    view = _by_pattern(result, tiles) if by == "pattern" else _by_label(result, tiles, by)
    rows = (*view.rows, *_edge_rows(result))
    is_line, is_single = sections[0].domain.dimension == 1, len(sections) == 1
    width = BAND_WIDTH if is_line else PANEL if is_single else NARROW_PANEL
    height = BAND if is_line else width
    panels = len(sections) * width + (len(sections) - 1) * WIDE_GAP
    is_beside = is_single and not is_line
    top = HEADER + TITLE + (0.0 if is_single else SECTION_TITLE)
    below = top + height + AXIS
    table = ROW * len(rows)
    total = LEFT + panels + RIGHT + (GAP + TABLE if is_beside else 0.0)
    sheet = Sheet(total, max(below, HEADER + TITLE + table) if is_beside else below + table + 0.2)
    is_search = result.tiling.is_search
    if is_search:
        write_search_header(sheet, result)
    else:
        facts = [extent_text(result), *([delta_text(result)] if result.is_measured else [])]
        write_header(sheet, f"{subject_text(result.question)}: the tiling", facts)
    sheet.write(LEFT, HEADER + 0.05, view.title, size=11, weight="bold", width=panels)
    is_partial = not is_search and share_not_reached(result) > 0.0
    for place, (section, edges) in enumerate(zip(sections, box_edges, strict=True)):
        corner = LEFT + place * (width + WIDE_GAP), top
        _draw_section(sheet, section, view, edges, corner, (width, height), is_partial=is_partial)
    sheet.table(*((LEFT + panels + GAP, HEADER + TITLE) if is_beside else (LEFT, below)), TABLE, rows)
    return sheet.figure


def _draw_section(
    sheet: Sheet, section: Section, view: View, box_edges: np.ndarray, corner: tuple[float, float],
    size: tuple[float, float], *, is_partial: bool,
) -> None:  # fmt: skip
    sheet.write(corner[0], corner[1] - 0.12, section.place, size=9.5, weight="bold", width=size[0])
    axes = sheet.axes(*corner, *size)
    if is_partial:
        add_not_reached(axes, section)
    add_pieces(axes, section, view, pixel_owners(section))
    width = edge_width(len(np.unique(section.piece)), size, is_line=section.domain.dimension == 1)
    edges = section.positions(section.outlines)
    if width > BRIGHTENED:
        # Dark edges alone would be invisible between dark tiles.
        add_lines(axes, edges, to_rgba(PAPER, 0.4), 2.2 * width, zorder=1)
    add_lines(axes, edges, to_rgba(INK, 0.75), width, zorder=2)
    add_lines(axes, section.positions(box_edges), to_rgba(BOX_INK, 0.85), 1.4 * width, zorder=3)
    set_limits(axes, section)
    name_axes(axes, section)


def edge_width(tiles: int, size: tuple[float, float], *, is_line: bool) -> float:
    """Width of edges in points: a small part of the side of an average tile, so colours stay visible.

    >>> edge_width(10, (6.0, 6.0), is_line=False), edge_width(10**6, (6.0, 6.0), is_line=False)
    (0.5, 0.06)
    """
    side = 72.0 * (size[0] / max(tiles, 1) if is_line else (size[0] * size[1] / max(tiles, 1)) ** 0.5)
    return float(np.clip(0.06 * side, FINEST_EDGE, EDGE))


def _by_label(result: Result, tiles: TileLabels, by: str) -> View:
    has_label, has_attention = tiles.has_labels if len(tiles.shares) else (True, True)
    if (by != "ar" and not has_label) or (by != "cr" and not has_attention):
        missing, other = ("label", "ar") if not has_label else ("attention", "cr")
        raise OptionError(f"this result did not measure the {missing} of its regions; use --by {other}")
    return make_tile_view(tiles, by, result.question.attention.measure, is_counted=tiles.shares > 0.0)


def _by_pattern(result: Result, tiles: TileLabels) -> View:
    pattern = result.tiling.tile_patterns
    is_box = pattern < 0
    colours = PATTERN_SHADES((pattern * GOLDEN) % 1.0)
    colours[is_box] = to_rgba(MIXED_BOX)
    count = len(np.unique(pattern[~is_box]))
    rows = [Row("shades by pattern", counted(count, "pattern"), shades=PATTERN_SHADES)]
    if is_box.any():
        boxes = tiles.shares[is_box & (tiles.shares > 0.0)]
        rows.append(
            Row("boxes: any pattern", f"{len(boxes):,} · {share_text(min(float(boxes.sum()), 1.0))}", MIXED_BOX)
        )
    return View(PATTERN_TITLE, colours, np.zeros(len(colours), dtype=bool), tuple(rows))


def _tile_sections(result: Result) -> tuple[list[Section], list[np.ndarray]]:
    """The sections with tiles as their pieces and edges of regions as outlines; and the edges of boxes."""
    found = make_sections(result, by_region=True)
    if result.tiling.is_search or result.answer.is_in_chunks:
        return list(found), [np.zeros((0, 2, 2))] * len(found)
    pieces = result.answer.joint.pieces
    sections, box_edges = [], []
    for section in found:
        kind = pieces.cuts[np.abs(section.polygons.facets) - 1, 0]
        segments, is_first = edge_segments(section.polygons), section.polygons.facets > 0
        outlines = segments[is_first & np.isin(kind, (Cut.NEURON, Cut.KNOT))]
        sections.append(replace(section, outlines=outlines))
        box_edges.append(segments[is_first & (kind == Cut.SPLIT)])
    return sections, box_edges


def _edge_rows(result: Result) -> list[Row]:
    """Rows for the edges, and for the part of the domain without tiles."""
    count = result.region_count
    rows = [Row("edges of regions", counted(count, "region"), INK, is_line=True)]
    if result.answer.is_in_chunks:
        rows = [Row("regions, drawn without edges", f"{count:,}", PAPER)]
    if result.tiling.is_search:
        return [*rows, *not_visited_rows(result)]
    if result.tiling.boxes is not None:
        boxes = int((result.tiling.boxes.state != State.EXACT).sum())
        own = [Row("edges of boxes", counted(boxes, "box", "boxes"), BOX_INK, is_line=True)] if boxes else []
        rows = (rows if count else []) + own
    missing = share_not_reached(result)
    return [*rows, *([Row("not reached", percent_up(missing), is_hatched=True)] if missing > 0.0 else [])]
