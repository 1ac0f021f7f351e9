"""The map of a single parameter: bands for the three views, and margin and inconsistency as functions of theta."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ..results.domain_result import DomainResult
from .colours import DELTA_LINE, FAINT_INK, INK, JOINT, KEPT, UNKNOWN
from .exhibits import Exhibit
from .panels import View, draw_view, pixel_owners
from .sections import Section
from .sheet import BADGE, BADGE_SIZE, HATCHED, ROW, Sheet, name_axis
from .values import Profile, profile

NUMBERS = 0.35
BAND = 0.3
BAND_PITCH = BAND + 0.08
CURVE = 1.55
CURVE_PITCH = CURVE + 0.15
PLOTS = NUMBERS + 3 * BAND_PITCH + 2 * CURVE_PITCH
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
    domain, curves, owners = result.problem.compound.domain, profile(result.answer), pixel_owners(section)
    x, plot = left + NAMES, width - TABLE - 0.4 - NAMES
    for place, view in enumerate(views):
        y = top + NUMBERS + place * BAND_PITCH
        axes = sheet.axes(x, y, plot, BAND)
        draw_view(axes, result, view, section, view.lines[0], owners)
        axes.set_xticks([])
        axes.set_yticks([])
        sheet.write(left, y + BAND / 2, view.title.partition(":")[0], weight="bold", width=NAMES - 0.1)
    y = top + NUMBERS + 3 * BAND_PITCH + 0.08
    margin, inconsistency = (sheet.axes(x, y + place * CURVE_PITCH, plot, CURVE) for place in (0, 1))
    for axes in (margin, inconsistency):
        axes.set_xlim(domain.low[0], domain.high[0])
        for start, end in curves.gaps:
            axes.axvspan(start, end, zorder=-5, linewidth=0, **HATCHED)
    _draw_margin(margin, curves)
    _draw_inconsistency(inconsistency, curves, result.answer.delta)
    name_axis(inconsistency, domain.names[0], is_below=True)
    for place, (name, meaning) in enumerate([("margin", "> 0: label kept"), ("inconsistency", "≤ δ: attention kept")]):
        middle = y + place * CURVE_PITCH + CURVE / 2
        sheet.write(left, middle, name, weight="bold")
        sheet.write(left, middle + 0.17, meaning, size=8, colour=FAINT_INK)
    _mark_exhibits(sheet, result, exhibits, x, top, plot)
    _draw_tables(sheet, views, left + width - TABLE, top + NUMBERS, top + PLOTS)


def _draw_margin(axes: Axes, curves: Profile) -> None:
    theta, margin = curves.theta, curves.margin
    low, high = curves.margin_bounds.T
    for is_here, colour in ((low > 0.0, KEPT), (high < 0.0, JOINT["MR&AR"]), ((low <= 0.0) & (high >= 0.0), UNKNOWN)):
        ends = np.minimum(low, 0.0), np.maximum(high, 0.0)
        axes.fill_between(theta, *ends, where=is_here, color=colour, linewidth=0)
    axes.fill_between(theta, 0.0, np.maximum(margin, 0.0), color=KEPT, linewidth=0)
    axes.fill_between(theta, 0.0, np.minimum(margin, 0.0), color=JOINT["MR&AR"], linewidth=0)
    axes.plot(theta, margin, color=INK, linewidth=1.1)
    axes.axhline(0.0, color=INK, linewidth=0.7)
    _draw_bounds(axes, theta, curves.margin_bounds)
    with_zero = np.concatenate([margin, curves.margin_bounds.ravel(), [0.0]])
    low, high = float(np.nanmin(with_zero)), float(np.nanmax(with_zero))
    room = 0.06 * (high - low) or 1.0
    axes.set_ylim(low - room, high + room)
    axes.tick_params(labelbottom=False)


def _draw_bounds(axes: Axes, theta: np.ndarray, bounds: np.ndarray) -> None:
    for end in bounds.T:
        axes.plot(theta, end, color=INK, linewidth=0.5)


def _draw_inconsistency(axes: Axes, curves: Profile, delta: float) -> None:
    theta, ai = curves.theta, curves.inconsistency
    axes.fill_between(theta, 0.0, ai, where=ai <= delta, color=KEPT, linewidth=0)
    axes.fill_between(theta, 0.0, ai, where=ai > delta, color=JOINT["CR&IR"], linewidth=0)
    axes.plot(theta, ai, color=INK, linewidth=1.1)
    low, high = curves.inconsistency_bounds.T
    for is_here, colour in (
        (high <= delta, KEPT), (low > delta, JOINT["CR&IR"]), ((low <= delta) & (high > delta), UNKNOWN)
    ):  # fmt: skip
        axes.fill_between(theta, 0.0, high, where=is_here, color=colour, linewidth=0)
    _draw_bounds(axes, theta, curves.inconsistency_bounds)
    top = 1.1 * float(np.nanmax(np.concatenate([ai, curves.inconsistency_bounds.ravel(), [0.0]]))) or 1.0
    # A threshold far above would press the curve flat: then it is only named.
    is_in_sight = delta <= 3.0 * top
    if is_in_sight:
        top = max(top, 1.12 * delta)
        axes.axhline(delta, color=DELTA_LINE, linewidth=1.2)
    axes.set_ylim(0.0, top)
    axes.annotate(
        "δ" if is_in_sight else "δ ↑", xy=(1.0, min(delta / top, 1.0)), xycoords="axes fraction", xytext=(4, 0),
        textcoords="offset points", va="center", fontsize=9.5, color=DELTA_LINE, weight="bold",
    )  # fmt: skip


def _mark_exhibits(
    sheet: Sheet, result: DomainResult, exhibits: Sequence[Exhibit], left: float, top: float, width: float
) -> None:
    """A dotted line through all plots at the theta of every exhibit inside the domain, its number above."""
    domain = result.problem.compound.domain
    shown = [(place, e.point.theta) for place, e in enumerate(exhibits) if domain.contains(e.point.theta)]
    places = [left + width * float((theta - domain.low)[0] / domain.widths[0]) for _, theta in shown]
    # Over the plots, unlike the page; the axes lie exactly on it.
    over = sheet.figure.add_axes((0, 0, 1, 1), zorder=5)
    over.set_axis_off()
    over.set_xlim(0, sheet.width)
    over.set_ylim(sheet.height, 0)
    for (place, _), at, spot in zip(shown, places, spread(places, 0.23), strict=True):
        over.plot(
            [at, at], [top + NUMBERS - 0.05, top + PLOTS - 0.07], color=INK, linewidth=0.8, linestyle=(0, (1.5, 2))
        )
        over.annotate(
            str(place), xy=(at, top + NUMBERS - 0.05), xytext=(spot, top + 0.1), ha="center", va="center",
            fontsize=BADGE_SIZE, weight="bold", color=INK, bbox=BADGE,
            arrowprops={"arrowstyle": "-", "linewidth": 0.8, "color": INK, "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip


def spread(places: Sequence[float], distance: float) -> list[float]:
    """Move places on a line apart, little by little and symmetrically, until neighbours keep a distance.

    >>> [round(place, 2) for place in spread([0.0, 0.0, 5.0], 0.2)]
    [-0.1, 0.1, 5.0]
    """
    spots = np.array(places, dtype=np.float64)
    order = np.argsort(spots, kind="stable")
    for _ in range(200):
        short = np.maximum(distance - np.diff(spots[order]), 0.0)
        if short.max(initial=0.0) < 1e-6:
            break
        spots[order[:-1]] -= short / 2
        spots[order[1:]] += short / 2
    return spots.tolist()


def _draw_tables(sheet: Sheet, views: Sequence[View], left: float, top: float, bottom: float) -> None:
    """The tables below each other, spread over the height of the plots."""
    heights = [TABLE_TITLE + ROW * len(view.rows) for view in views]
    gap = max(TABLE_GAP, (bottom - top - sum(heights)) / (len(views) - 1))
    for view, height in zip(views, heights, strict=True):
        sheet.write(left, top + 0.07, view.title, size=10.5, weight="bold", width=TABLE)
        sheet.table(left, top + TABLE_TITLE, TABLE, view.rows)
        top += height + gap
