"""Margin and inconsistency along one parameter, drawn into axes as curves (or bounds) with their thresholds."""

import numpy as np
from matplotlib.axes import Axes

from .colours import DELTA_LINE, FAINT_INK, INK, JOINT, KEPT, UNKNOWN
from .sheet import HATCHED, Sheet, name_axis
from .values import Profile

CURVE = 1.55
CURVE_PITCH = CURVE + 0.15
CURVES = 2 * CURVE_PITCH
"""Height of both plots in inches, without the name of the axis."""


def draw_curves(
    sheet: Sheet, curves: Profile, delta: float, left: float, top: float, names: float, width: float, axis_name: str,
    ends: tuple[float, float], *, is_measured: bool = True,
) -> None:  # fmt: skip
    """The margin above, the inconsistency below; their names take `names` inches on the left of plots of that width.

    Where attention was not measured over the domain, the lower plot says so.
    """
    margin, inconsistency = (sheet.axes(left + names, top + place * CURVE_PITCH, width, CURVE) for place in (0, 1))
    for axes in (margin, inconsistency):
        axes.set_xlim(*ends)
        for start, end in curves.gaps:
            axes.axvspan(start, end, zorder=-5, linewidth=0, **HATCHED)
    _draw_margin(margin, curves)
    if is_measured:
        _draw_inconsistency(inconsistency, curves, delta)
    else:
        inconsistency.set_yticks([])
        inconsistency.text(
            0.5, 0.5, "not measured over the domain", transform=inconsistency.transAxes, ha="center", va="center",
            fontsize=9, color=FAINT_INK,
        )  # fmt: skip
    name_axis(inconsistency, axis_name, is_below=True)
    for place, (name, meaning) in enumerate([("margin", "> 0: label kept"), ("inconsistency", "≤ δ: attention kept")]):
        middle = top + place * CURVE_PITCH + CURVE / 2
        sheet.write(left, middle, name, weight="bold")
        sheet.write(left, middle + 0.17, meaning, size=8, colour=FAINT_INK)
        bounds = curves.margin_bounds if place == 0 else curves.inconsistency_bounds
        if np.isfinite(bounds).any() and (is_measured or place == 0):
            sheet.write(left, middle + 0.33, "thin lines: bounds", size=8, colour=FAINT_INK)


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
