"""The figure of a map: classification, attention and both together, with exhibits below.

One parameter gives bands above curves, two give panels, three give plane sections. Every statement in the figure comes
from the result; nothing is verified here.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.colors import to_rgba, to_rgba_array
from matplotlib.figure import Figure

from ...attention.measures.distance import DISTANCE
from ...labels import Joint, Kept, Label
from ...results.answer import round_up
from ...results.result import Result
from ...words import percent_up, rounded, share_text
from ..drawing import colours as palette
from ..drawing.colours import DELTA_LINE, HATCH, INK, JOINT, KEPT, UNKNOWN, Lines, Row, View
from ..drawing.exhibits import Exhibit, choose_exhibits
from ..drawing.marks import NUMBERS, mark_along, mark_section
from ..drawing.plane_sections import DrawnPieces, Section, drawn_pieces, make_sections
from ..drawing.raster import draw_view, name_axes, pixel_owners, section_borders
from ..drawing.sheet import HEADER, ROW, Sheet, write_header
from ..titles import (
    attention_text,
    border_text,
    delta_text,
    extent_text,
    share_not_reached,
    subject_text,
    verdict_text,
)
from .strip import CURVE_NAMES, CURVES, STRIP_HEIGHT, draw_curves, draw_strip

WIDTH, LEFT, RIGHT, PANEL_GAP = 13.0, 0.85, 0.3, 0.5
TITLE, AXIS, SECTION_TITLE = 0.3, 0.6, 0.2
LOW_PANEL = 2.9
BAND = 0.3
BAND_PITCH = BAND + 0.08
PLOTS = NUMBERS + 3 * BAND_PITCH + CURVES
TABLE, TABLE_TITLE, TABLE_GAP = 3.7, 0.22, 0.2
SMALLEST_SHARE_SHOWN = 1e-6
"""Smaller undecided strips along boundaries are not mentioned."""


def map_figure(result: Result) -> Figure:
    """The figure of a map of up to three parameters, made with the settings of `sheet.drawing_settings`."""
    sections = make_sections(result, may_be_grid=True)
    views, exhibits = make_views(result, sections), choose_exhibits(result)
    inner = WIDTH - LEFT - RIGHT
    is_line = result.question.compound.domain.dimension == 1
    upper = _profile_height(views) if is_line else _panels_height(views, sections)
    top = HEADER + upper + 0.3
    sheet = Sheet(WIDTH, top + STRIP_HEIGHT + 0.2)
    facts = [extent_text(result)]
    if result.is_measured:
        facts += [delta_text(result), attention_text(result.question)]
    verdict = verdict_text(result.question.property, result.verdict)
    write_header(sheet, f"{subject_text(result.question)}: {verdict}", facts)
    if is_line:
        _draw_profile(sheet, result, sections[0], views, exhibits, LEFT - 0.45, inner + 0.45)
    else:
        _draw_panels(sheet, result, views, sections, exhibits)
    draw_strip(sheet, result, exhibits, LEFT - 0.45, top, inner + 0.45)
    return sheet.figure


def _panel_size(sections: Sequence[Section]) -> tuple[float, float]:
    """Width and height of a panel: a square for a single section, lower if there are several."""
    width = (WIDTH - LEFT - RIGHT - 2 * PANEL_GAP) / 3
    return width, width if len(sections) == 1 else LOW_PANEL


def _panels_height(views: Sequence[View], sections: Sequence[Section]) -> float:
    titles = len(sections) + 1 if len(sections) > 1 else 0
    panels = len(sections) * (_panel_size(sections)[1] + AXIS) + titles * SECTION_TITLE
    return TITLE + panels + max(len(view.rows) for view in views) * ROW


def _draw_panels(
    sheet: Sheet, result: Result, views: Sequence[View], sections: Sequence[Section], exhibits: Sequence[Exhibit]
) -> None:
    """The views side by side, the sections of each one below the other, its table at the end."""
    width, height = _panel_size(sections)
    lefts = [LEFT + place * (width + PANEL_GAP) for place in range(len(views))]
    thetas = [exhibit.point.theta for exhibit in exhibits]
    is_partial = share_not_reached(result) > 0.0
    for left, view in zip(lefts, views, strict=True):
        sheet.write(left, HEADER + 0.05, view.title, size=11, weight="bold", width=width)
    top = HEADER + TITLE
    for row, section in enumerate(sections):
        if section.place:
            plane = " and ".join(section.domain.names[axis] for axis in section.axes)
            text = f"Section of the map {section.place}: {plane}"
            sheet.write(LEFT, top + 0.02, text, size=9.5, width=WIDTH - LEFT - RIGHT)
            top += SECTION_TITLE
        owners = pixel_owners(section)
        for left, view in zip(lefts, views, strict=True):
            axes = sheet.axes(left, top, width, height)
            draw_view(axes, section, view, owners, row=row, is_partial=is_partial)
            mark_section(axes, section, thetas, (width, height))
            name_axes(axes, section, has_name_beside=left == LEFT, has_ticks_beside=False)
        top += height + AXIS
    if len(sections) > 1:
        sheet.write(LEFT, top - 0.02, "Shares of the whole domain, over all parameters:", size=9.5)
        top += SECTION_TITLE
    for left, view in zip(lefts, views, strict=True):
        sheet.table(left, top, width, view.rows)


def _profile_height(views: Sequence[View]) -> float:
    tables = sum(TABLE_TITLE + ROW * len(view.rows) + TABLE_GAP for view in views)
    return max(PLOTS + 0.45, NUMBERS + tables)


def _draw_profile(
    sheet: Sheet, result: Result, section: Section, views: Sequence[View], exhibits: Sequence[Exhibit],
    left: float, width: float,
) -> None:  # fmt: skip
    """One parameter: bands and curves on the left, the tables of the views on the right, spread over their height."""
    domain, owners, top = section.domain, pixel_owners(section), HEADER + NUMBERS
    x, plot = left + CURVE_NAMES, width - TABLE - 0.4 - CURVE_NAMES
    for place, view in enumerate(views):
        y = top + place * BAND_PITCH
        axes = sheet.axes(x, y, plot, BAND)
        draw_view(axes, section, view, owners, is_partial=share_not_reached(result) > 0.0)
        axes.set_xticks([])
        axes.set_yticks([])
        sheet.write(left, y + BAND / 2, view.title.partition(":")[0], weight="bold", width=CURVE_NAMES - 0.1)
    draw_curves(sheet, result, 0, domain.low, left, top + 3 * BAND_PITCH + 0.08, plot)
    thetas = [float(e.point.theta[0]) if domain.contains(e.point.theta) else None for e in exhibits]
    mark_along(sheet, thetas, (float(domain.low[0]), float(domain.high[0])), x, HEADER, HEADER + PLOTS - 0.07, plot)
    heights = [TABLE_TITLE + ROW * len(view.rows) for view in views]
    gap = max(TABLE_GAP, (PLOTS - NUMBERS - sum(heights)) / (len(views) - 1))
    for view, height in zip(views, heights, strict=True):
        sheet.write(left + width - TABLE, top + 0.07, view.title, size=10.5, weight="bold", width=TABLE)
        sheet.table(left + width - TABLE, top + TABLE_TITLE, TABLE, view.rows)
        top += height + gap


def make_views(result: Result, sections: Sequence[Section]) -> tuple[View, View, View]:
    """Classification, attention and both together."""
    drawn = drawn_pieces(result)
    # Winners as codes beside those of `Kept`: undecided pieces have no borders.
    winners = np.where(drawn.label == Kept.NO, Kept.NO + 1 + drawn.winner, drawn.label)
    decision, threshold, between = (
        [(lines, colour, width) for lines in section_borders(sections, codes, passed_over=Kept.UNKNOWN)]
        for codes, colour, width in (
            (drawn.label, INK, 1.3), (drawn.attention, DELTA_LINE, 1.1), (winners, palette.PAPER, 0.7)
        )
    )  # fmt: skip
    classification = _classification(result, drawn, tuple(zip(between, decision, strict=True)))
    if not result.is_measured:
        count = len(drawn.label)
        nothing = View(
            "Attention: not measured", np.tile(to_rgba(UNKNOWN), (count, 1)), np.zeros(count, dtype=bool),
            (Row("attention was not measured", colour=UNKNOWN),), tuple(() for _ in sections),
        )  # fmt: skip
        return classification, nothing, replace(nothing, title="Both together: not measured")
    return (
        classification,
        _attention(result, drawn, tuple((lines,) for lines in threshold)),
        _joint(result, drawn, tuple(zip(threshold, decision, strict=True))),
    )


def _classification(result: Result, drawn: DrawnPieces, lines: tuple[Lines, ...]) -> View:
    names, shares = result.question.names, drawn.winner_shares.copy()
    shares[result.label] = 0.0
    share, unknown = shares[:-1], float(shares[-1])
    ranked = [int(winner) for winner in np.argsort(-share, kind="stable") if share[winner] > 0.0]
    colours = palette.winner_colours(ranked, result.label)
    rows = [Row(f"CR  label kept: {names[result.label]}", share_text(*result.areas[Label.CR]), KEPT)]
    at_least = "" if result.is_complete else "≥ "
    most = len(palette.WINNERS)
    groups = [(names[j], [j]) for j in ranked[:most]]
    if ranked[most:]:
        others = f"{len(ranked) - most} other classes" if len(ranked) > most + 1 else names[ranked[most]]
        groups.append((others, ranked[most:]))
    for name, group in groups:
        part = min(float(share[group].sum()), 1.0)
        rows.append(Row(f"MR  changed to {name}", at_least + share_text(part), colours[group[0]]))
    if unknown > 0.0:
        part = min(unknown, 1.0)
        rows.append(Row("MR  changed, to one class or several", at_least + share_text(part), palette.CHANGED))
    if any(len(section[-1][0]) for section in lines):
        rows.append(Row("decision boundary", colour=INK, is_line=True))
    table = [*(colours.get(winner, KEPT) for winner in range(len(names))), palette.CHANGED]
    rgba = to_rgba_array(table)[drawn.winner]
    is_open = drawn.label == Kept.UNKNOWN
    rgba[is_open] = to_rgba(UNKNOWN)
    rows += _open_rows(result, "label")
    return View("Classification: is the label kept?", rgba, is_open, tuple(rows), lines)


def _attention(result: Result, drawn: DrawnPieces, lines: tuple[Lines, ...]) -> View:
    delta, areas, measure = result.answer.delta, result.areas, result.question.attention.measure
    is_lost, is_open = drawn.attention == Kept.NO, drawn.attention == Kept.UNKNOWN
    top = max(drawn.top, delta)
    rgba = palette.attention_colours(drawn.inconsistency, drawn.attention == Kept.YES, is_open, delta, top)
    rows = [Row(f"AR  {measure.kept_row(result.stated)}", share_text(*areas[Label.AR]), shades=palette.AR_SHADES)]
    is_known = is_lost.any() and result.is_complete and areas[Label.UNDECIDED][1] <= SMALLEST_SHARE_SHOWN
    is_known &= drawn.is_bounded and measure == DISTANCE
    above = f"by more, up to {rounded(round_up(top, 4), 4)}" if is_known else measure.short.lost
    rows.append(Row(f"IR  {above}", share_text(*areas[Label.IR]), shades=palette.IR_SHADES))
    if any(len(section[-1][0]) for section in lines):
        rows.append(Row(border_text(measure), colour=DELTA_LINE, is_line=True))
    rows += _open_rows(result, "attention")
    return View(f"Attention: {measure.asks}", rgba, is_open, tuple(rows), lines)


def _joint(result: Result, drawn: DrawnPieces, lines: tuple[Lines, ...]) -> View:
    label, attention = drawn.label, drawn.attention
    is_open = (label == Kept.UNKNOWN) | (attention == Kept.UNKNOWN)
    code = np.where(is_open, 4, 2 * (label != Kept.YES) + (attention != Kept.YES))
    rows = [Row(f"{name}  {name.sentence}", share_text(*result.areas[name]), JOINT[name]) for name in Joint]
    rgba = to_rgba_array([*JOINT.values(), UNKNOWN])[code]
    return View("Both together", rgba, is_open, (*rows, *_open_rows(result, "both")), lines)


def _open_rows(result: Result, which: str) -> list[Row]:
    """Rows for the undecided and the unreached parts of the domain."""
    cells = np.array(result.answer.shares.cells)
    not_reached = share_not_reached(result)
    is_open = np.zeros((3, 3), dtype=bool)
    if which in ("label", "both"):
        is_open[Kept.UNKNOWN] = True
    if which in ("attention", "both"):
        is_open[:, Kept.UNKNOWN] = True
    undecided = float(cells[is_open].sum()) - not_reached
    rows = []
    if undecided > SMALLEST_SHARE_SHOWN:
        rows.append(Row(Label.UNDECIDED, percent_up(undecided), UNKNOWN, hatch=HATCH))
    if not_reached > 0.0:
        rows.append(Row("not reached", percent_up(not_reached), is_hatched=True))
    return rows
