"""The figure of a search: visited regions by phase and label, the regions it followed, its line, and zero.

Every statement in the figure comes from the search; nothing is verified here. The rest of the domain stays
blank. Searches of one to three parameters have a figure.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from ...results.result import Result
from ...words import counted, percent_up, rounded, share_text
from ..drawing.colours import (
    DELTA_LINE,
    FAINT_INK,
    INK,
    PAPER,
    PHASE,
    Row,
    View,
    make_region_view,
    make_tile_view,
)
from ..drawing.marks import add_dashes, mark_section
from ..drawing.plane_sections import Section, domain_of, make_sections
from ..drawing.raster import add_pieces, name_axes, pixel_owners, polygons_of, set_limits
from ..drawing.sheet import HEADER, ROW, Sheet, name_axis, write_header
from ..titles import verdict_text
from .strip import name_delta

LEFT, RIGHT, GAP = 0.85, 0.4, 0.5
PANELS = {1: 4.9, 2: 4.4, 3: 3.65, 4: 3.2}
"""Width of a panel in inches, by the number of panels."""
LOW_PANEL = 2.6
"""Height of a panel if there are several sections."""
SECTION_TITLE, AXIS = 0.22, 0.6
TABLE = 3.6
"""Width of the table beside a single panel."""
PLOT, BAND, CURVE = 6.6, 0.34, 1.7
FRAME = 2.2
SMALL_PART, INSET = 0.25, 0.48
"""Visited regions within this share of both sides of a panel are enlarged; the sides of the inset."""
MOST_MARKED = 6
"""Components of a boundary that get a number on the panels."""


def search_figure(found: Result) -> Figure:
    """The figure of a search of up to three parameters, made with the settings of `sheet.drawing_settings`."""
    views, sections = make_search_views(found), make_sections(found)
    draw = _draw_bands if domain_of(found).dimension == 1 else _draw_panels
    return draw(found, views, sections).figure


def make_search_views(found: Result) -> tuple[View, ...]:
    """The phase, then one view for each label that the search asked for, and a joint one if it asked for both."""
    tiles, measure = found.tiling.tiles(found.answer), found.question.attention.measure
    views = []
    if found.described.method != "bfs":
        is_following = (found.tiling.arrays()["is_following"] == 1).astype(np.int64)
        views.append(make_region_view(PHASE, ("searching", "following"), is_following, tiles.shares))
    has_label, has_attention = tiles.has_labels
    chosen = {"cr": has_label or not has_attention, "ar": has_attention, "both": has_label and has_attention}
    return (*views, *(make_tile_view(tiles, by, measure) for by, is_shown in chosen.items() if is_shown))


def common_rows(found: Result) -> tuple[Row, ...]:
    """The rows that all views share: outlines, the line, and the rest of the domain."""
    rows, summary = [], found.described
    if summary.components is not None:
        parts = counted(len(summary.components), "component")
        rows.append(Row("outermost boundary", parts, PAPER, frame=FRAME))
    elif summary.following:
        rows.append(Row("reached by following", f"{summary.following:,}", PAPER, frame=FRAME))
    if summary.line is not None:
        name = "search line from zero" + " (0)" * (len(summary.domain.names) > 1)
        rows.append(Row(name, colour=INK, is_line=True, is_dashed=True))
    return (*rows, *not_visited_rows(found))


def not_visited_rows(found: Result) -> list[Row]:
    """A row for the part of the domain that a search did not visit, if there is any."""
    share = found.described.visited_share
    return [Row("not visited", percent_up(1.0 - share), PAPER)] if share < 1.0 else []


def outlined(found: Result) -> np.ndarray:
    """Which regions (R,) are outlined: those along the outermost boundary, or those reached by following."""
    if found.described.components is None:
        return found.tiling.arrays()["is_following"] == 1
    along = np.zeros(found.region_count, dtype=bool)
    along[found.tiling.arrays()["component_region"]] = True
    return along


def write_search_header(sheet: Sheet, found: Result) -> None:
    """Title and facts of a search."""
    summary, attention = found.described, found.described.attention
    subject = f"{summary.model.name} on {summary.image.name}, label {summary.label_name}"
    verdict = verdict_text(summary.property, summary.verdict)
    ended = summary.status.value if summary.stopped is None else f"{summary.status.value} ({summary.stopped})"
    count = counted(found.region_count, "region")
    facts = [f"{summary.method}: {count} on {share_text(summary.visited_share)} of the domain, {ended}"]
    if found.tiling.tiles(found.answer).has_labels[1]:
        facts += [summary.measure.stated_text(summary.stated), attention.text()]
    write_header(sheet, f"{subject}: {verdict}", facts, size=14)


def _draw_panels(found: Result, views: Sequence[View], sections: Sequence[Section]) -> Sheet:
    """The views side by side, the sections of each one below the other, its table at the end."""
    count, is_single = len(views), len(sections) == 1
    panel, rows = PANELS[count], common_rows(found)
    height, title = (panel, 0.0) if is_single else (LOW_PANEL, SECTION_TITLE)
    is_beside = count == 1
    width = LEFT + count * panel + (count - 1) * GAP + RIGHT + (GAP + TABLE if is_beside else 0.0)
    below = 0.2 if is_beside else 0.35 + ROW * max(len(view.rows) + len(rows) * (view is views[0]) for view in views)
    pitch = height + AXIS + title
    sheet = Sheet(width, HEADER + 0.3 + len(sections) * pitch + below)
    write_search_header(sheet, found)
    owners = [pixel_owners(section) for section in sections]
    for place, view in enumerate(views):
        left, is_first = LEFT + place * (panel + GAP), place == 0
        sheet.write(left, HEADER + 0.05, view.title, size=11, weight="bold", width=panel)
        for row, section in enumerate(sections):
            top = HEADER + 0.3 + row * pitch + title
            if is_first and section.place:
                sheet.write(left, top - 0.13, f"Section {section.place}", size=9.5, width=width - left)
            axes = sheet.axes(left, top, panel, height)
            draw_visited(axes, found, view, section, owners[row])
            _draw_line(axes, found, section, (panel, height))
            _draw_inset(axes, found, view, section)
            name_axes(axes, section, has_name_beside=is_first, has_ticks_beside=False)
        table = view.rows + (rows if is_first else ())
        corner, room = (left, HEADER + 0.3 + len(sections) * pitch), panel
        if is_beside:
            corner, room = (left + panel + GAP, HEADER + 0.3), TABLE
        words = "regions · share of the domain"
        sheet.write(corner[0] + room, corner[1] + 0.02, words, size=8, colour=FAINT_INK, across="right")
        sheet.table(corner[0], corner[1] + 0.14, room, table)
    return sheet


def _draw_bands(found: Result, views: Sequence[View], sections: Sequence[Section]) -> Sheet:
    """The figure of a single parameter: a band for each view, and below the ranges of margin and inconsistency."""
    (section,) = sections
    domain, rows = section.domain, common_rows(found)
    asked = [kind for kind in ("margin", "inconsistency") if np.isfinite(found.tiling.arrays()[kind]).any()]
    labelled = [view for view in views if view.title != PHASE.title]
    bands = len(views) * (BAND + 0.1)
    tables = sum(0.4 + ROW * len(view.rows) for view in views) + 0.1 + ROW * len(rows)
    height = HEADER + max(bands + len(asked) * (CURVE + 0.15) + 0.55, tables + 0.2)
    left = LEFT + 0.75
    sheet = Sheet(left + PLOT + GAP + TABLE + RIGHT, height)
    write_search_header(sheet, found)
    for place, view in enumerate(views):
        top = HEADER + place * (BAND + 0.1)
        axes = sheet.axes(left, top, PLOT, BAND)
        draw_visited(axes, found, view, section, None)
        _draw_line(axes, found, section, (PLOT, BAND))
        axes.set_xticks([])
        axes.set_yticks([])
        sheet.write(0.4, top + BAND / 2, view.title.partition(":")[0], weight="bold", width=left - 0.45)
    for place, kind in enumerate(asked):
        top = HEADER + bands + 0.05 + place * (CURVE + 0.15)
        axes = sheet.axes(left, top, PLOT, CURVE)
        _draw_reach(axes, found, section, kind, labelled[0 if kind == "margin" else min(1, len(labelled) - 1)])
        sheet.write(0.4, top + CURVE / 2, kind, weight="bold")
        sheet.write(0.4, top + CURVE / 2 + 0.17, "reach by region", size=8, colour=FAINT_INK)
        axes.set_xlim(domain.low[0], domain.high[0])
        if place == len(asked) - 1:
            name_axis(axes, domain.names[0], is_below=True)
        else:
            axes.tick_params(labelbottom=False)
    top, x = HEADER + 0.05, left + PLOT + GAP
    for view in views:
        sheet.write(x, top, view.title, size=10, weight="bold", width=TABLE)
        sheet.table(x, top + 0.15, TABLE, view.rows)
        top += 0.4 + ROW * len(view.rows)
    sheet.table(x, top, TABLE, rows)
    return sheet


def draw_visited(axes: Axes, found: Result, view: View, section: Section, owners: np.ndarray | None) -> None:
    """Regions and outlines; in a picture (`owners` given) all outlined regions share one outline."""
    is_outlined = outlined(found)
    set_limits(axes, section)
    if owners is not None:
        inside = np.append(is_outlined, False)[owners]
        is_line = np.zeros_like(inside)
        for axis in (0, 1):
            differs = np.diff(inside.astype(np.int8), axis=axis) != 0
            for end in (0, differs.shape[axis]):
                is_line |= np.insert(differs, end, False, axis=axis)
        colours = np.vstack([view.colours, to_rgba(INK)])
        framed = replace(view, colours=colours, is_hatched=np.append(view.is_hatched, False))
        add_pieces(axes, section, framed, np.where(is_line, len(view.colours), owners))
        return
    add_pieces(axes, section, view, None)
    shapes, is_framed = polygons_of(section), is_outlined[section.piece]
    for chosen, colour, width in ((~is_framed, to_rgba(INK, 0.25), 0.35), (is_framed, INK, 0.8)):
        edges = [shapes[place] for place in np.flatnonzero(chosen)]
        if edges:
            lines = PolyCollection(edges, facecolors="none", edgecolors=[colour], linewidths=width, zorder=2)
            axes.add_collection(lines, autolim=False)


def _draw_inset(axes: Axes, found: Result, view: View, section: Section) -> None:
    """The visited regions enlarged, if they lie in a small part of the domain, in the corner farthest from it."""
    corner, end = section.corners
    points = section.positions(section.polygons.points)
    if not len(points):
        return
    low, high = points.min(axis=0), points.max(axis=0)
    sides = (high - low) / (end - corner)
    if sides.max() > SMALL_PART:
        return
    # A part without width in one direction gets some.
    room = np.maximum(0.08 * (high - low), 1e-6 * (end - corner))
    low, high = np.maximum(low - room, corner), np.minimum(high + room, end)
    middle = (0.5 * (low + high) - corner) / (end - corner)
    left, bottom = (0.96 - INSET if share < 0.5 else 0.04 for share in middle)
    inset = axes.inset_axes((left, bottom, INSET, INSET))
    draw_visited(inset, found, view, section, None)
    inset.set_xlim(low[0], high[0])
    inset.set_ylim(low[1], high[1])
    inset.tick_params(labelsize=6.5, length=2, pad=1.5, colors=INK)
    inset.locator_params(nbins=3)
    times = rounded(1.0 / float(sides.max()), 2)
    inset.set_title(f"enlarged {times} times", fontsize=7.5, color=FAINT_INK, pad=2)
    axes.indicate_inset_zoom(inset, edgecolor=INK, linewidth=0.8)


def _draw_line(axes: Axes, found: Result, section: Section, size: tuple[float, float]) -> None:
    """The search line if the section shows it, and numbers at zero and at a theta of each component."""
    if found.described.line is None:
        return
    end = np.array(found.described.line)
    zero = np.zeros(len(end))
    if section.domain.dimension == 1 or (section.shows(zero) and section.shows(end)):
        ends = np.stack([np.append(theta, 0.5)[list(section.axes)] for theta in (zero, end)])
        add_dashes(axes, ends, 2.6, 1.2)
    if section.domain.dimension == 1:
        axes.plot(0.0, 0.5, "o", markersize=5, color="white", markeredgecolor=INK, clip_on=False, zorder=5)
    else:
        mark_section(axes, section, [zero, *_component_thetas(found)], size)


def _component_thetas(found: Result) -> list[np.ndarray]:
    """A theta on each component of the boundary, near the middle of the regions along its inner side."""
    arrays, domain = found.tiling.arrays(), domain_of(found)
    count = len(found.described.components or ())
    if count > MOST_MARKED:
        return []
    thetas = []
    for component in range(count):
        chosen = (arrays["component"] == component) & (arrays["component_is_inner"] == 1)
        points = domain.to_unit(arrays["inside"][arrays["component_region"][chosen]])
        if len(points):
            middle = points[np.argmin(np.abs(points - points.mean(axis=0)).sum(axis=1))]
            thetas.append(domain.to_theta(middle))
    return thetas


def _draw_reach(axes: Axes, found: Result, section: Section, kind: str, view: View) -> None:
    """The range of margin or inconsistency on every region, as a box in the colour of its label."""
    start, end = (section.domain.low[0] + edge * section.domain.widths[0] for edge in section.polygons.extent(0))
    low, high = found.tiling.arrays()[kind][section.piece].T
    chosen = np.isfinite(low) & np.isfinite(high)
    start, end, low, high = start[chosen], end[chosen], low[chosen], high[chosen]
    colours = view.colours[section.piece[chosen]]
    for bottom, top, look in (
        (np.minimum(low, 0.0), np.maximum(high, 0.0), {"linewidths": 0}),
        (low, high, {"edgecolors": INK, "linewidths": 0.9}),
    ):
        corners = ((start, bottom), (end, bottom), (end, top), (start, top))
        boxes = np.stack([np.stack(corner, axis=1) for corner in corners], axis=1)
        axes.add_collection(PolyCollection(list(boxes), facecolors=colours, **look), autolim=False)
    threshold, colour = (0.0, INK) if kind == "margin" else (float(found.described.delta.value), DELTA_LINE)
    least, most = float(low.min(initial=0.0)), float(high.max(initial=0.0))
    is_in_sight = threshold <= 3.0 * max(most, 1e-300)
    if is_in_sight:
        most = max(most, threshold)
        axes.axhline(threshold, color=colour, linewidth=1.2)
    room = 0.08 * (most - least) or 1.0
    least, most = least - (room if kind == "margin" else 0.0), most + room
    axes.set_ylim(least, most)
    measure = found.question.attention.measure
    if kind != "margin" and measure.option is not None:
        name_delta(axes, (threshold - least) / (most - least), measure.loss_limit, is_in_sight=is_in_sight)
