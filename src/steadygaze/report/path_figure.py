"""The figure of a path of combinations: perturbed images with what the network says, and where the path runs."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from ..results.domain_result import DomainResult
from .colours import INK, PAPER
from .exhibits import Exhibit
from .extent import extent_text
from .files import finish
from .marks import NUMBERS, mark_along, mark_thetas
from .panels import View, draw_view, make_views
from .pictures import show_image
from .sections import Section, make_sections
from .sheet import DASHES, ROW, Sheet, name_axis
from .strip import CAPTION, write_caption
from .tiles import pixel_owners
from .titles import HEADER, subject_text, write_header
from .wording import counted, number

WIDTH, LEFT, RIGHT = 13.0, 0.4, 0.3
PANEL_LEFT, PANEL, PANEL_GAP = 0.85, 4.1, 0.45
SIDE, PITCH, ROW_GAP = 1.6, 1.83, 0.28
BAND, TABLE = 0.45, 3.7
NARROWEST = 9.0
MOST_IN_A_ROW = 8
CHANGED_FRAME = 2.6
"""Width of the frame of an image whose label is not kept."""


def path_figure(result: DomainResult, thetas: np.ndarray) -> Figure:
    """Images at thetas (N, d) in the order of a path; with one and two parameters the path on the map as well."""
    domain = result.problem.perturbed.domain
    exhibits = [_exhibit(result, theta) for theta in thetas]
    has_panel = domain.dimension == 2
    left = PANEL_LEFT + PANEL + PANEL_GAP if has_panel else LEFT
    room = WIDTH - left - RIGHT
    # The captions of a single parameter are short.
    columns = MOST_IN_A_ROW if domain.dimension == 1 else int((room + PITCH - SIDE) / PITCH)
    rows = -(-len(exhibits) // columns)
    if not has_panel:
        columns = -(-len(exhibits) // rows)
    pitch = min(PITCH, (room + PITCH - SIDE) / columns)
    side = pitch - (PITCH - SIDE)
    images = rows * (CAPTION + side) + (rows - 1) * ROW_GAP
    if domain.dimension > 2:
        sheet = Sheet(max(NARROWEST, left + columns * PITCH + RIGHT), HEADER + images + 0.25)
        top = HEADER
    else:
        (section,) = make_sections(result)
        view = make_views(result, (section,))[0]
        table = len(view.rows) * ROW
        if has_panel:
            sheet = Sheet(WIDTH, HEADER + max(0.3 + PANEL + 0.6 + table, images) + 0.25)
            top = HEADER
            _draw_panel(sheet, result, view, section, thetas)
        else:
            band = max(NUMBERS + BAND + 0.6, 0.3 + table + 0.2)
            sheet = Sheet(WIDTH, HEADER + band + images + 0.25)
            top = HEADER + band
            _draw_band(sheet, result, view, section, thetas)
    _write_header(sheet, result, exhibits)
    for place, exhibit in enumerate(exhibits):
        x, y = left + place % columns * pitch, top + place // columns * (CAPTION + side + ROW_GAP)
        sheet.badge(x + 0.1, y + 0.08, place)
        write_caption(sheet, result, exhibit, x, y, pitch - 0.08)
        is_kept = exhibit.point.label == result.label
        show_image(sheet, x, y + CAPTION, side, exhibit.point.image, frame=0.6 if is_kept else CHANGED_FRAME)
    return finish(sheet.figure)


def _exhibit(result: DomainResult, theta: np.ndarray) -> Exhibit:
    point = result.at(theta)
    margin = number(point.margin, 3).replace("-", "−")
    return Exhibit(f"margin {margin}" if np.any(theta) else "unperturbed", point)


def _write_header(sheet: Sheet, result: DomainResult, exhibits: Sequence[Exhibit]) -> None:
    names, label = result.problem.names, result.label
    found = list(dict.fromkeys(e.point.label for e in exhibits if e.point.label != label))
    changed = sum(exhibit.point.label != label for exhibit in exhibits)
    if changed:
        to = ", ".join(names[other] for other in found)
        words = f"the label changes in {changed} of {counted(len(exhibits), 'image')}, to {to}"
    else:
        words = f"the label is the same in all {counted(len(exhibits), 'image')}"
    facts = [
        extent_text(result),
        f"θ = ({', '.join(result.problem.perturbed.domain.names)})",
        words,
        "thick frame: label changed",
    ]
    write_header(sheet, f"{subject_text(result.problem)}: images along a path", facts if changed else facts[:-1])


def _draw_panel(sheet: Sheet, result: DomainResult, view: View, section: Section, thetas: np.ndarray) -> None:
    """Where the path of two parameters runs on the map of the label."""
    sheet.write(PANEL_LEFT, HEADER + 0.05, view.title, size=11, weight="bold", width=PANEL)
    axes = sheet.axes(PANEL_LEFT, HEADER + 0.3, PANEL, PANEL)
    draw_view(axes, result, view, section, view.lines[0], pixel_owners(section))
    for colour, width in ((PAPER, 2.8), (INK, 1.3)):
        axes.plot(*thetas.T, linestyle=DASHES if colour == INK else "-", color=colour, linewidth=width, zorder=4)
    mark_thetas(axes, list(thetas), (PANEL, PANEL), is_path=True)
    for name, is_below in zip(section.domain.names, (True, False), strict=True):
        name_axis(axes, name, is_below=is_below)
    top = HEADER + 0.3 + PANEL + 0.6
    sheet.table(PANEL_LEFT, top, PANEL, view.rows)


def _draw_band(sheet: Sheet, result: DomainResult, view: View, section: Section, thetas: np.ndarray) -> None:
    """The same for one parameter."""
    width = WIDTH - LEFT - TABLE - RIGHT - 0.5
    ends = float(section.domain.low[0]), float(section.domain.high[0])
    axes = sheet.axes(LEFT + 0.1, HEADER + NUMBERS, width, BAND)
    draw_view(axes, result, view, section, view.lines[0], pixel_owners(section))
    axes.set_yticks([])
    name_axis(axes, section.domain.names[0], is_below=True)
    mark_along(sheet, thetas[:, 0].tolist(), ends, LEFT + 0.1, HEADER, HEADER + NUMBERS + BAND, width)
    left = WIDTH - RIGHT - TABLE
    sheet.write(left, HEADER + 0.07, view.title, size=10.5, weight="bold", width=TABLE)
    sheet.table(left, HEADER + 0.3, TABLE, view.rows)
