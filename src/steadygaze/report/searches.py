"""From a search to its figure, as PNG and SVG: the visited regions by label, what was followed, line and zero.

Every statement in the figure is one that the search holds; nothing is verified here. Searches of one and two
parameters have a figure, others have none. The same search gives the same bytes.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.text import Text

from ..search import SearchResult
from .colours import DELTA_LINE, FAINT_INK, INK
from .files import write_figure
from .search_panels import SearchView, common_rows, draw_search_view, make_search_views
from .sheet import ROW, Sheet, name_axis
from .titles import attention_text, subject_text, verdict_text
from .wording import number, percent

LEFT, RIGHT, HEADER, GAP = 0.85, 0.4, 0.95, 0.5
PANELS = {1: 4.9, 2: 4.4, 3: 3.65}
"""Width of a panel in inches, by the number of panels."""
TABLE = 3.6
"""Width of the table beside a single panel."""
BAND, CURVE = 0.34, 1.7
COUNTED = "regions · share of the domain"


def draw_search(result: SearchResult, path: str | Path) -> list[Path]:
    """Write the figure of a search to PATH.png and PATH.svg; return both, or nothing for three parameters and more."""
    if result.problem.perturbed.domain.dimension > 2:
        return []
    return write_figure(lambda: _figure(result), path)


def _figure(result: SearchResult) -> Figure:
    views = make_search_views(result)
    sheet = (
        _draw_bands(result, views) if result.problem.perturbed.domain.dimension == 1 else _draw_panels(result, views)
    )
    for text in sheet.figure.findobj(Text):
        text.set_parse_math(False)
    return sheet.figure


def _draw_panels(result: SearchResult, views: Sequence[SearchView]) -> Sheet:
    names, count = result.problem.perturbed.domain.names, len(views)
    panel, rows = PANELS[count], common_rows(result)
    is_beside = count == 1
    width = LEFT + count * panel + (count - 1) * GAP + RIGHT + (GAP + TABLE if is_beside else 0.0)
    below = 0.75 if is_beside else 0.9 + ROW * max(len(view.rows) + len(rows) * (view is views[0]) for view in views)
    sheet = Sheet(width, HEADER + 0.3 + panel + below)
    _write_header(sheet, result)
    for place, view in enumerate(views):
        left = LEFT + place * (panel + GAP)
        sheet.write(left, HEADER + 0.05, view.kind.title, size=11, weight="bold", width=panel)
        axes = sheet.axes(left, HEADER + 0.3, panel, panel)
        draw_search_view(axes, result, view, (panel, panel))
        name_axis(axes, names[0], is_below=True)
        if place == 0:
            name_axis(axes, names[1], is_below=False)
        else:
            axes.tick_params(labelleft=False)
        table = view.rows + (rows if place == 0 else ())
        if is_beside:
            _write_table(sheet, left + panel + GAP, HEADER + 0.3, TABLE, table)
        else:
            _write_table(sheet, left, HEADER + 0.3 + panel + 0.55, panel, table)
    return sheet


def _draw_bands(result: SearchResult, views: Sequence[SearchView]) -> Sheet:
    """The figure of a single parameter: a band for each view, and below the reach of margin and inconsistency."""
    domain, rows = result.problem.perturbed.domain, common_rows(result)
    asked = [kind for kind in ("margin", "inconsistency") if _is_asked(result, kind)]
    plot, bands = 6.6, len(views) * (BAND + 0.1)
    tables = sum(0.4 + ROW * len(view.rows) for view in views) + 0.1 + ROW * len(rows)
    height = HEADER + max(bands + len(asked) * (CURVE + 0.15) + 0.55, tables + 0.2)
    left = LEFT + 0.75
    sheet = Sheet(left + plot + GAP + TABLE + RIGHT, height)
    _write_header(sheet, result)
    for place, view in enumerate(views):
        top = HEADER + place * (BAND + 0.1)
        axes = sheet.axes(left, top, plot, BAND)
        draw_search_view(axes, result, view, (plot, BAND))
        axes.set_xticks([])
        axes.set_yticks([])
        sheet.write(0.4, top + BAND / 2, view.kind.title.partition(":")[0], weight="bold", width=left - 0.45)
    for place, kind in enumerate(asked):
        top = HEADER + bands + 0.05 + place * (CURVE + 0.15)
        axes = sheet.axes(left, top, plot, CURVE)
        view = views[0] if kind == "margin" or len(views) == 1 else views[1]
        _draw_reach(axes, result, kind, view)
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


def _is_asked(result: SearchResult, kind: str) -> bool:
    return any(np.isfinite(getattr(one, kind)).any() for one in result.visited)


def _draw_reach(axes: Axes, result: SearchResult, kind: str, view: SearchView) -> None:
    """Between which values margin or inconsistency stays on every region, as a box in the colour of its label."""
    domain = result.problem.perturbed.domain
    fills, boxes, colours = [], [], []
    for one, colour in zip(result.visited, view.colours, strict=True):
        low, high = getattr(one, kind)
        if not np.isfinite([low, high]).all():
            continue
        start, end = domain.low[0] + np.sort(one.region.vertices[:, 0]) * domain.widths[0]
        boxes.append([(start, low), (end, low), (end, high), (start, high)])
        bottom, top = min(low, 0.0), max(high, 0.0)
        fills.append([(start, bottom), (end, bottom), (end, top), (start, top)])
        colours.append(colour)
    axes.add_collection(PolyCollection(fills, facecolors=colours, linewidths=0), autolim=False)
    axes.add_collection(PolyCollection(boxes, facecolors=colours, edgecolors=INK, linewidths=0.9), autolim=False)
    threshold, colour = (0.0, INK) if kind == "margin" else (result.delta, DELTA_LINE)
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


def _write_header(sheet: Sheet, result: SearchResult) -> None:
    problem, width = result.problem, sheet.width - 0.8
    sheet.write(
        0.4,
        0.32,
        f"{subject_text(problem)}: {verdict_text(problem.property, result.verdict)}",
        size=14,
        weight="bold",
        width=width,
    )
    count = f"{len(result):,} region{'' if len(result) == 1 else 's'}"
    ended = result.status.value if result.stopped is None else f"{result.status.value} ({result.stopped})"
    facts = [f"{result.method}: {count} on {percent(result.visited_share)} of the domain, {ended}"]
    if any(one.attention for one in result.visited):
        facts += [f"δ = {number(result.delta)}", attention_text(problem)]
    sheet.write(0.4, 0.64, " · ".join(facts), size=9.5, colour=FAINT_INK, width=width)
