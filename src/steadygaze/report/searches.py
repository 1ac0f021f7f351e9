"""From a search to its figure: the visited regions by phase and label, what was followed, line and zero.

Every statement in the figure is one that the search holds; nothing is verified here. Searches of one to three
parameters have a figure, others have none.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from ..engines.search import SearchResult
from ..tolerances import MAX_MAP_PARAMETERS
from ..verdict import Property, Verdict
from .colours import DELTA_LINE, FAINT_INK, INK
from .files import finish, write_figure
from .region_labels import PHASE, RegionView
from .search_panels import common_rows, draw_search_view, make_search_views
from .search_sections import make_search_sections, search_domain
from .sections import Section
from .sheet import ROW, Sheet, name_axis
from .titles import HEADER, comparison_text, verdict_text, write_header
from .wording import counted, number, percent

LEFT, RIGHT, GAP = 0.85, 0.4, 0.5
PANELS = {1: 4.9, 2: 4.4, 3: 3.65, 4: 3.2}
"""Width of a panel in inches, by the number of panels."""
LOW_PANEL = 2.6
"""Height of a panel where there are several sections."""
SECTION_TITLE, AXIS = 0.22, 0.6
TABLE = 3.6
"""Width of the table beside a single panel."""
BAND, CURVE = 0.34, 1.7
COUNTED = "regions · share of the domain"


def draw_search(result: SearchResult, path: str | Path) -> list[Path]:
    """Write the figure of a search to PATH.png and PATH.svg; return both, or nothing for four parameters and more."""
    if result.problem.perturbed.domain.dimension > MAX_MAP_PARAMETERS:
        return []
    return write_figure(lambda: search_figure(result), path)


def search_figure(found: SearchResult) -> Figure:
    """The figure of a search of up to three parameters, made with the settings of `files.drawing_settings`."""
    views, sections = make_search_views(found), make_search_sections(found)
    if search_domain(found).dimension == 1:
        return finish(_draw_bands(found, views, sections[0]).figure)
    return finish(_draw_panels(found, views, sections).figure)


def _draw_panels(found: SearchResult, views: Sequence[RegionView], sections: Sequence[Section]) -> Sheet:
    """The views beside each other, the sections of each below each other, its table at the end."""
    count, is_single = len(views), len(sections) == 1
    panel, rows = PANELS[count], common_rows(found)
    height = panel if is_single else LOW_PANEL
    is_beside = count == 1
    width = LEFT + count * panel + (count - 1) * GAP + RIGHT + (GAP + TABLE if is_beside else 0.0)
    below = 0.2 if is_beside else 0.35 + ROW * max(len(view.rows) + len(rows) * (view is views[0]) for view in views)
    pitch = height + AXIS + (0.0 if is_single else SECTION_TITLE)
    sheet = Sheet(width, HEADER + 0.3 + len(sections) * pitch + below)
    write_search_header(sheet, found)
    for place, view in enumerate(views):
        left = LEFT + place * (panel + GAP)
        sheet.write(left, HEADER + 0.05, view.kind.title, size=11, weight="bold", width=panel)
        for row, section in enumerate(sections):
            top = HEADER + 0.3 + row * pitch + (0.0 if is_single else SECTION_TITLE)
            if place == 0 and section.held is not None:
                axis, value = section.held
                text = f"Section at {section.domain.names[axis]} = {number(value)}"
                sheet.write(left, top - 0.13, text, size=9.5, width=width - left)
            axes = sheet.axes(left, top, panel, height)
            draw_search_view(axes, found, view, section, (panel, height))
            name_axis(axes, section.domain.names[section.axes[0]], is_below=True)
            if place == 0:
                name_axis(axes, section.domain.names[section.axes[1]], is_below=False)
            else:
                axes.tick_params(labelleft=False)
        table = view.rows + (rows if place == 0 else ())
        if is_beside:
            _write_table(sheet, left + panel + GAP, HEADER + 0.3, TABLE, table)
        else:
            _write_table(sheet, left, HEADER + 0.3 + len(sections) * pitch, panel, table)
    return sheet


def _draw_bands(found: SearchResult, views: Sequence[RegionView], section: Section) -> Sheet:
    """The figure of a single parameter: a band for each view, and below the reach of margin and inconsistency."""
    domain, rows = section.domain, common_rows(found)
    asked = [kind for kind in ("margin", "inconsistency") if np.isfinite(found.arrays[kind]).any()]
    labelled = [view for view in views if view.kind is not PHASE]
    plot, bands = 6.6, len(views) * (BAND + 0.1)
    tables = sum(0.4 + ROW * len(view.rows) for view in views) + 0.1 + ROW * len(rows)
    height = HEADER + max(bands + len(asked) * (CURVE + 0.15) + 0.55, tables + 0.2)
    left = LEFT + 0.75
    sheet = Sheet(left + plot + GAP + TABLE + RIGHT, height)
    write_search_header(sheet, found)
    for place, view in enumerate(views):
        top = HEADER + place * (BAND + 0.1)
        axes = sheet.axes(left, top, plot, BAND)
        draw_search_view(axes, found, view, section, (plot, BAND))
        axes.set_xticks([])
        axes.set_yticks([])
        sheet.write(0.4, top + BAND / 2, view.kind.title.partition(":")[0], weight="bold", width=left - 0.45)
    for place, kind in enumerate(asked):
        top = HEADER + bands + 0.05 + place * (CURVE + 0.15)
        axes = sheet.axes(left, top, plot, CURVE)
        view = labelled[0] if kind == "margin" or len(labelled) == 1 else labelled[1]
        _draw_reach(axes, found, section, kind, view)
        sheet.write(0.4, top + CURVE / 2, kind, weight="bold")
        sheet.write(0.4, top + CURVE / 2 + 0.17, "reach by region", size=8, colour=FAINT_INK)
        axes.set_xlim(domain.low[0], domain.high[0])
        if place == len(asked) - 1:
            name_axis(axes, domain.names[0], is_below=True)
        else:
            axes.tick_params(labelbottom=False)
    top, x = HEADER + 0.05, left + plot + GAP
    for view in views:
        sheet.write(x, top, view.kind.title, size=10, weight="bold", width=TABLE)
        sheet.table(x, top + 0.15, TABLE, view.rows)
        top += 0.4 + ROW * len(view.rows)
    sheet.table(x, top, TABLE, rows)
    return sheet


def _draw_reach(axes: Axes, found: SearchResult, section: Section, kind: str, view: RegionView) -> None:
    """Between which values margin or inconsistency stays on every region, as a box in the colour of its label."""
    fills, boxes, colours = [], [], []
    left, right = (section.domain.low[0] + end * section.domain.widths[0] for end in section.polygons.extent(0))
    for start, end, region in zip(left, right, section.piece, strict=True):
        low, high = found.arrays[kind][region]
        if not np.isfinite([low, high]).all():
            continue
        boxes.append([(start, low), (end, low), (end, high), (start, high)])
        bottom, top = min(low, 0.0), max(high, 0.0)
        fills.append([(start, bottom), (end, bottom), (end, top), (start, top)])
        colours.append(view.colours[region])
    axes.add_collection(PolyCollection(fills, facecolors=colours, linewidths=0), autolim=False)
    axes.add_collection(PolyCollection(boxes, facecolors=colours, edgecolors=INK, linewidths=0.9), autolim=False)
    threshold, colour = (0.0, INK) if kind == "margin" else (float(found.summary()["delta"]["value"]), DELTA_LINE)
    values = np.array([corner[1] for box in boxes for corner in box])
    low, high = float(np.append(values, 0.0).min()), float(np.append(values, 0.0).max())
    # A threshold far above would press everything flat: then it is only named.
    is_in_sight = threshold <= 3.0 * max(high, 1e-300)
    if is_in_sight:
        high = max(high, threshold)
        axes.axhline(threshold, color=colour, linewidth=1.2)
    room = 0.08 * (high - low) or 1.0
    low, high = low - (room if kind == "margin" else 0.0), high + room
    axes.set_ylim(low, high)
    if kind != "margin":
        axes.annotate(
            "δ" if is_in_sight else "δ ↑", xy=(1.0, min((threshold - low) / (high - low), 1.0)),
            xycoords="axes fraction", xytext=(4, 0), textcoords="offset points", va="center", fontsize=9.5,
            color=DELTA_LINE, weight="bold",
        )  # fmt: skip


def _write_table(sheet: Sheet, left: float, top: float, width: float, rows: Sequence) -> None:
    sheet.write(left + width, top + 0.02, COUNTED, size=8, colour=FAINT_INK, across="right")
    sheet.table(left, top + 0.14, width, rows)


def write_search_header(sheet: Sheet, found: SearchResult) -> None:
    """Title and facts of a search."""
    summary, attention = found.summary(), found.summary()["attention"]
    subject = f"{summary['model']['name']} on {summary['image']['name']}, label {summary['label_name']}"
    verdict = verdict_text(Property(summary["property"]), Verdict(summary["verdict"]))
    ended = summary["status"] if summary["stopped"] is None else f"{summary['status']} ({summary['stopped']})"
    count = counted(len(found), "region")
    facts = [f"{summary['method']}: {count} on {percent(summary['visited_share'])} of the domain, {ended}"]
    if any(found.attention):
        classes = None if attention["classes"] == "all" else [str(number) for number in attention["classes"]]
        words = comparison_text(attention["filter"], attention["distance"].upper(), classes)
        facts += [f"δ = {number(summary['delta']['value'])}", words]
    write_header(sheet, f"{subject}: {verdict}", facts, size=14)
