"""The map of a single parameter: bands for the three views, and margin and inconsistency as functions of theta."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from ..results.result import Result
from .colours import DELTA_LINE, FAINT_INK, INK, JOINT, KEPT
from .exhibits import Exhibit
from .panels import View, draw_view, pixel_owners
from .sheet import BADGE, BADGE_SIZE, HATCHED, ROW, Sheet, name_axis
from .values import Profile, profile
from .wording import number

BAND = 0.3
CURVE = 1.55
TABLE = 3.7
NAMES = 1.5


def profile_height(views: Sequence[View]) -> float:
    """Height in inches that `draw_profile` needs."""
    tables = sum(len(view.rows) * ROW + 0.42 for view in views)
    return max(0.35 + 3 * (BAND + 0.08) + 2 * (CURVE + 0.15) + 0.5, tables)


def draw_profile(
    sheet: Sheet, result: Result, views: Sequence[View], exhibits: Sequence[Exhibit], left: float, top: float,
    width: float,
) -> None:  # fmt: skip
    """Bands and curves on the left, the tables of the views on the right."""
    owners = pixel_owners(result)
    plot = width - TABLE - 0.4 - NAMES
    x, y = left + NAMES, top + 0.35
    for view in views:
        axes = sheet.axes(x, y, plot, BAND)
        draw_view(axes, result, view, owners)
        axes.set_xticks([])
        axes.set_yticks([])
        sheet.write(left, y + BAND / 2, view.title.partition(":")[0], weight="bold", width=NAMES - 0.1)
        y += BAND + 0.08
    domain = result.answers.compound.domain
    limits = (float(domain.low[0]), float(domain.high[0]))
    curves = profile(result.answer)
    margin = sheet.axes(x, y + 0.08, plot, CURVE)
    _draw_margin(margin, result, curves, limits)
    inconsistency = sheet.axes(x, y + 0.08 + CURVE + 0.15, plot, CURVE)
    _draw_inconsistency(inconsistency, result, curves, limits)
    sheet.write(left, y + 0.08 + CURVE / 2, "margin", weight="bold")
    sheet.write(left, y + 0.25 + CURVE / 2, "> 0: label kept", size=8, colour=FAINT_INK)
    middle = y + 0.23 + 1.5 * CURVE
    sheet.write(left, middle, "inconsistency", weight="bold")
    sheet.write(left, middle + 0.17, "≤ δ: attention kept", size=8, colour=FAINT_INK)
    name_axis(inconsistency, domain.names[0], is_below=True)
    _mark(sheet, exhibits, limits, x, top, plot, y + 2 * CURVE + 0.23)
    _draw_tables(sheet, views, left + width - TABLE, top + 0.35, y + 2 * CURVE + 0.23)


def _draw_tables(sheet: Sheet, views: Sequence[View], left: float, top: float, bottom: float) -> None:
    """The tables below each other, spread over the height of the plots."""
    heights = [0.22 + ROW * len(view.rows) for view in views]
    gap = max(0.2, (bottom - top - sum(heights)) / (len(views) - 1))
    for view, height in zip(views, heights, strict=True):
        sheet.write(left, top + 0.07, view.title, size=10.5, weight="bold", width=TABLE)
        sheet.table(left, top + 0.22, TABLE, view.rows)
        top += height + gap


def _draw_margin(axes: Axes, result: Result, curves: Profile, limits: tuple[float, float]) -> None:
    _prepare(axes, result, limits)
    theta, margin = curves.theta, curves.margin
    axes.fill_between(theta, 0.0, np.maximum(margin, 0.0), color=KEPT, linewidth=0)
    axes.fill_between(theta, 0.0, np.minimum(margin, 0.0), color=JOINT["MR&AR"], linewidth=0, alpha=0.75)
    axes.plot(theta, margin, color=INK, linewidth=1.1)
    axes.axhline(0.0, color=INK, linewidth=0.7)
    low, high = min(0.0, float(np.nanmin(margin))), max(0.0, float(np.nanmax(margin)))
    axes.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low) or 1.0)
    axes.set_xticklabels([])


def _draw_inconsistency(axes: Axes, result: Result, curves: Profile, limits: tuple[float, float]) -> None:
    _prepare(axes, result, limits)
    theta, ai, delta = curves.theta, curves.inconsistency, result.answer.delta
    axes.fill_between(theta, 0.0, ai, where=ai <= delta, color=KEPT, linewidth=0)
    axes.fill_between(theta, 0.0, ai, where=ai > delta, color=JOINT["CR&IR"], linewidth=0, alpha=0.8)
    axes.plot(theta, ai, color=INK, linewidth=1.1)
    top = 1.1 * float(np.nanmax(ai)) or 1.0
    if delta <= 3.0 * top:
        top = max(top, 1.12 * delta)
        axes.axhline(delta, color=DELTA_LINE, linewidth=1.2)
    axes.set_ylim(0.0, top)
    is_above = delta < 0.85 * top
    axes.annotate(
        f"δ = {number(delta)}" + ("" if delta <= top else " (far above)"), xy=(1.0, min(delta / top, 0.92)),
        xycoords="axes fraction", xytext=(-4, 3 if is_above else -3), textcoords="offset points", ha="right",
        va="bottom" if is_above else "top", fontsize=8.5, color=DELTA_LINE, weight="bold",
    )  # fmt: skip


def _prepare(axes: Axes, result: Result, limits: tuple[float, float]) -> None:
    axes.set_xlim(*limits)
    if not result.is_complete:
        axes.add_patch(Rectangle((0, 0), 1, 1, transform=axes.transAxes, zorder=-5, linewidth=0, **HATCHED))


def _mark(
    sheet: Sheet, exhibits: Sequence[Exhibit], limits: tuple[float, float], left: float, top: float, width: float,
    bottom: float,
) -> None:  # fmt: skip
    """A dotted line through all plots at the theta of every exhibit, its number above."""
    axes = sheet.axes(left, top, width, bottom - top)
    axes.set_xlim(*limits)
    axes.set_ylim(0, 1)
    axes.axis("off")
    axes.patch.set_visible(False)
    shown = [(place, float(e.point.theta[0])) for place, e in enumerate(exhibits) if limits[0] <= e.point.theta[0] <= limits[1]]
    spots = _spread([(theta - limits[0]) / (limits[1] - limits[0]) * width for _, theta in shown], 0.23)
    line_top = 1 - 0.3 / (bottom - top)
    for (place, theta), spot in zip(shown, spots, strict=True):
        axes.plot([theta, theta], [0, line_top], color=INK, linewidth=0.8, linestyle=(0, (1.5, 2)), clip_on=False)
        axes.annotate(
            str(place), xy=(theta, line_top), xytext=(spot / width, 1 - 0.1 / (bottom - top)),
            textcoords="axes fraction", ha="center", va="center", fontsize=BADGE_SIZE, weight="bold", color=INK,
            bbox=BADGE, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "linewidth": 0.8, "color": INK, "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip


def _spread(places: list[float], distance: float) -> list[float]:
    """Move places on a line apart until neighbours keep a distance, as little as a few sweeps manage.

    >>> [round(place, 2) for place in _spread([0.0, 0.0, 5.0], 0.2)]
    [-0.1, 0.1, 5.0]
    """
    spots = np.array(places, dtype=np.float64)
    order = np.argsort(spots, kind="stable")
    for _ in range(200):
        gaps = np.diff(spots[order])
        short = np.maximum(distance - gaps, 0.0)
        if short.max(initial=0.0) < 1e-9:
            break
        spots[order[:-1]] -= short / 2
        spots[order[1:]] += short / 2
    return spots.tolist()
