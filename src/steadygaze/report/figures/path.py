"""The figure of a path of combinations: perturbed images with predictions, and the path on the map."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ...results.result import Result
from ...words import counted, rounded
from ..drawing.colours import View
from ..drawing.exhibits import CAPTION, Exhibit, checked_thetas, path_thetas, show_image, write_caption
from ..drawing.marks import NUMBERS, add_dashes, mark_along, mark_section
from ..drawing.plane_sections import Section, make_sections
from ..drawing.raster import draw_view, name_axes, pixel_owners
from ..drawing.sheet import HEADER, ROW, Sheet, write_header
from ..titles import extent_text, share_not_reached, subject_text
from .map import make_views

WIDTH, LEFT, RIGHT = 13.0, 0.4, 0.3

PANEL_LEFT, PANEL, PANEL_GAP = 0.85, 4.1, 0.45
SIDE, PITCH, ROW_GAP = 1.6, 1.83, 0.28
BAND, TABLE = 0.45, 3.7
NARROWEST = 9.0
MOST_IN_A_ROW = 8
CHANGED_FRAME = 2.6
"""Width of the frame of an image whose label changed."""


STEPS = 8
"""The number of images, unless it is given."""


def path_figure(result: Result, at: Sequence[ArrayLike] = (), steps: int | None = None) -> Figure:
    """Images along a path through thetas (d,); with one or two parameters also the path on the map."""
    domain = result.question.perturbed.domain
    thetas, dimension = path_thetas(domain, checked_thetas(domain, at), steps or STEPS), domain.dimension
    margins = [(rounded(point.margin, 3), point) for point in map(result.at, thetas)]
    exhibits = [Exhibit(f"margin {text}" if point.theta.any() else "unperturbed", point) for text, point in margins]
    has_panel = dimension == 2
    left = PANEL_LEFT + PANEL + PANEL_GAP if has_panel else LEFT
    room = WIDTH - left - RIGHT
    # The captions of a single parameter are short.
    columns = MOST_IN_A_ROW if dimension == 1 else int((room + PITCH - SIDE) / PITCH)
    rows = -(-len(exhibits) // columns)
    if not has_panel:
        columns = -(-len(exhibits) // rows)
    pitch = min(PITCH, (room + PITCH - SIDE) / columns)
    side = pitch - (PITCH - SIDE)
    images = rows * (CAPTION + side) + (rows - 1) * ROW_GAP
    top = HEADER
    if dimension > 2:
        sheet = Sheet(max(NARROWEST, left + columns * PITCH + RIGHT), HEADER + images + 0.25)
    else:
        (section,) = make_sections(result, may_be_grid=True)
        view = make_views(result, (section,))[0]
        table = len(view.rows) * ROW
        if has_panel:
            sheet = Sheet(WIDTH, HEADER + max(0.3 + PANEL + 0.6 + table, images) + 0.25)
            _draw_panel(sheet, result, view, section, thetas)
        else:
            top += max(NUMBERS + BAND + 0.6, 0.3 + table + 0.2)
            sheet = Sheet(WIDTH, top + images + 0.25)
            _draw_band(sheet, result, view, section, thetas)
    _write_header(sheet, result, exhibits)
    for place, exhibit in enumerate(exhibits):
        x, y = left + place % columns * pitch, top + place // columns * (CAPTION + side + ROW_GAP)
        write_caption(sheet, result, place, exhibit, x, y, pitch - 0.08)
        is_kept = exhibit.point.label == result.label
        show_image(sheet, x, y + CAPTION, side, exhibit.point.image, frame=0.6 if is_kept else CHANGED_FRAME)
    return sheet.figure


def _write_header(sheet: Sheet, result: Result, exhibits: Sequence[Exhibit]) -> None:
    changed = [exhibit.point.label for exhibit in exhibits if exhibit.point.label != result.label]
    images = counted(len(exhibits), "image")
    if changed:
        to = ", ".join(result.question.names[other] for other in dict.fromkeys(changed))
        words = [f"the label changes in {len(changed)} of {images}, to {to}", "thick frame: label changed"]
    else:
        words = [f"the label is the same in all {images}"]
    facts = [extent_text(result), f"θ = ({', '.join(result.question.perturbed.domain.names)})", *words]
    write_header(sheet, f"{subject_text(result.question)}: images along a path", facts)


def _draw_panel(sheet: Sheet, result: Result, view: View, section: Section, thetas: np.ndarray) -> None:
    """The path of two parameters on the map of the label."""
    sheet.write(PANEL_LEFT, HEADER + 0.05, view.title, size=11, weight="bold", width=PANEL)
    axes = sheet.axes(PANEL_LEFT, HEADER + 0.3, PANEL, PANEL)
    draw_view(axes, section, view, pixel_owners(section), is_partial=share_not_reached(result) > 0.0)
    add_dashes(axes, thetas, 2.8, 1.3)
    mark_section(axes, section, list(thetas), (PANEL, PANEL), is_path=True)
    name_axes(axes, section)
    sheet.table(PANEL_LEFT, HEADER + 0.3 + PANEL + 0.6, PANEL, view.rows)


def _draw_band(sheet: Sheet, result: Result, view: View, section: Section, thetas: np.ndarray) -> None:
    """`_draw_panel` for one parameter."""
    width = WIDTH - LEFT - TABLE - RIGHT - 0.5
    ends = float(section.domain.low[0]), float(section.domain.high[0])
    axes = sheet.axes(LEFT + 0.1, HEADER + NUMBERS, width, BAND)
    draw_view(axes, section, view, pixel_owners(section), is_partial=share_not_reached(result) > 0.0)
    name_axes(axes, section)
    mark_along(sheet, thetas[:, 0].tolist(), ends, LEFT + 0.1, HEADER, HEADER + NUMBERS + BAND, width)
    left = WIDTH - RIGHT - TABLE
    sheet.write(left, HEADER + 0.07, view.title, size=10.5, weight="bold", width=TABLE)
    sheet.table(left, HEADER + 0.3, TABLE, view.rows)
