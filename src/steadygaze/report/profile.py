"""The map of a single parameter: bands for the three views, and margin and inconsistency as functions of theta."""

from collections.abc import Sequence

from ..results.domain_result import DomainResult
from .curves import CURVES, draw_curves
from .exhibits import Exhibit
from .lines import line_through
from .marks import NUMBERS, mark_along
from .panels import View, draw_view
from .sections import Section
from .sheet import ROW, Sheet
from .tiles import pixel_owners
from .values import profile

BAND = 0.3
BAND_PITCH = BAND + 0.08
PLOTS = NUMBERS + 3 * BAND_PITCH + CURVES
NAMES = 1.5
TABLE = 3.7
TABLE_TITLE, TABLE_GAP = 0.22, 0.2


def profile_height(views: Sequence[View]) -> float:
    """Height in inches that `draw_profile` needs."""
    tables = sum(TABLE_TITLE + ROW * len(view.rows) + TABLE_GAP for view in views)
    return max(PLOTS + 0.45, NUMBERS + tables)


def draw_profile(
    sheet: Sheet, result: DomainResult, section: Section, views: Sequence[View], exhibits: Sequence[Exhibit],
    left: float, top: float, width: float,
) -> None:  # fmt: skip
    """Bands and curves on the left, the tables of the views on the right."""
    domain, owners = result.problem.compound.domain, pixel_owners(section)
    curves = profile(result.answer, line_through(result.answer, 0, domain.low))
    x, plot = left + NAMES, width - TABLE - 0.4 - NAMES
    for place, view in enumerate(views):
        y = top + NUMBERS + place * BAND_PITCH
        axes = sheet.axes(x, y, plot, BAND)
        draw_view(axes, result, view, section, view.lines[0], owners)
        axes.set_xticks([])
        axes.set_yticks([])
        sheet.write(left, y + BAND / 2, view.title.partition(":")[0], weight="bold", width=NAMES - 0.1)
    draw_curves(
        sheet, curves, result.answer.delta, left, top + NUMBERS + 3 * BAND_PITCH + 0.08, NAMES, plot, domain.names[0],
        (float(domain.low[0]), float(domain.high[0])), is_measured=result.is_measured,
    )  # fmt: skip
    thetas = [float(e.point.theta[0]) if domain.contains(e.point.theta) else None for e in exhibits]
    mark_along(sheet, thetas, (float(domain.low[0]), float(domain.high[0])), x, top, top + PLOTS - 0.07, plot)
    _draw_tables(sheet, views, left + width - TABLE, top + NUMBERS, top + PLOTS)


def _draw_tables(sheet: Sheet, views: Sequence[View], left: float, top: float, bottom: float) -> None:
    """The tables below each other, spread over the height of the plots."""
    heights = [TABLE_TITLE + ROW * len(view.rows) for view in views]
    gap = max(TABLE_GAP, (bottom - top - sum(heights)) / (len(views) - 1))
    for view, height in zip(views, heights, strict=True):
        sheet.write(left, top + 0.07, view.title, size=10.5, weight="bold", width=TABLE)
        sheet.table(left, top + TABLE_TITLE, TABLE, view.rows)
        top += height + gap
