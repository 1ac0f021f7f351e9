"""Thetas on maps and plots: a dot, a dotted line or a dashed path, with the number of the exhibit in a free place."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from .colours import INK, PAPER
from .plane_sections import Section
from .sheet import BADGE, BADGE_SIZE, DASHES, Sheet

NUMBERS = 0.35
"""Height in inches of the row of numbers above plots along one parameter."""

_RADII = (0.22, 0.32, 0.44, 0.58, 0.75)

_TURNS = np.deg2rad([0, 30, -30, 60, -60, 90, -90, 120, -120, 150, -150, 180])


def place_badges(dots: np.ndarray, size: np.ndarray, *, is_path: bool = False) -> np.ndarray:
    """Offsets (N, 2) of the numbers from their dots (N, 2), all in inches from the lower left corner of the panel.

    Numbers stay inside the panel of the given size and keep off each other, off all dots and off each other's leaders
    as far as there is room, and off the path from dot to dot, if any; a number prefers the side of the panel's
    centre.

    >>> place_badges(np.array([[0.0, 0.0]]), np.array([2.0, 2.0])).round(2).tolist()
    [[0.16, 0.16]]
    """
    centres: list[np.ndarray] = []
    legs = list(pairwise(dots)) if is_path else []
    for dot in dots:
        towards = np.arctan2(*(0.5 * size - dot)[::-1])
        tries = [
            dot + radius * np.array([np.cos(towards + turn), np.sin(towards + turn)])
            for radius in _RADII
            for turn in _TURNS
        ]
        centres.append(_first_best(tries, partial(_lack, dot, dots=dots, centres=centres, size=size, legs=legs)))
    return np.array(centres) - dots


def _first_best(tries: list[np.ndarray], lack: Callable[[np.ndarray], float]) -> np.ndarray:
    """The first try without any lack, otherwise the try with the least (see `_lack`)."""
    best, least = tries[0], np.inf
    for at in tries:
        found = lack(at)
        if found < least:
            best, least = at, found
        if found == 0.0:
            break
    return best


def _lack(
    dot: np.ndarray, at: np.ndarray, dots: np.ndarray, centres: list[np.ndarray], size: np.ndarray,
    legs: list[tuple[np.ndarray, np.ndarray]],
) -> float:  # fmt: skip
    """How far a number at this place lacks its distance from an obstacle, at worst; 0 if the place suits."""
    lacks = [0.0, 0.12 - float(np.minimum(at, size - at).min()), *(0.16 - np.hypot(*(dots - at).T))]
    lacks += [0.15 - _to_segment(at, start, end) for start, end in legs]
    for other, centre in zip(dots, centres, strict=False):
        lacks += [0.24 - float(np.hypot(*(centre - at))), 0.13 - _to_segment(centre, dot, at)]
        lacks.append(0.13 - _to_segment(at, other, centre))
    return round(max(lacks), 6)


def _to_segment(point: np.ndarray, start: np.ndarray, end: np.ndarray) -> float:
    (px, py), (ax, ay), (bx, by) = point.tolist(), start.tolist(), end.tolist()
    dx, dy = bx - ax, by - ay
    along = min(max(((px - ax) * dx + (py - ay) * dy) / max(dx * dx + dy * dy, 1e-12), 0.0), 1.0)
    return math.hypot(ax + along * dx - px, ay + along * dy - py)


def mark_section(
    axes: Axes, section: Section, thetas: Sequence[np.ndarray | None], size: tuple[float, float], *,
    is_path: bool = False,
) -> None:  # fmt: skip
    """Mark the thetas (d,) that a section shows, with their places in the sequence, on a panel of `size` inches."""
    shown = [
        (place, np.append(theta, 0.5)[list(section.axes)])
        for place, theta in enumerate(thetas)
        if theta is not None and section.shows(theta)
    ]
    if not shown:
        return
    low, high = np.array([axes.get_xlim(), axes.get_ylim()]).T
    dots = (np.array([theta for _, theta in shown]) - low) / (high - low) * size
    numbers = dots + place_badges(dots, np.array(size), is_path=is_path)
    ends = np.stack([dots, numbers], axis=1) / size  # in fractions of the panel; dots and numbers cover both ends
    leaders = LineCollection(list(ends), colors=INK, linewidths=0.8, transform=axes.transAxes, clip_on=False, zorder=5)
    axes.add_collection(leaders, autolim=False)
    axes.plot(*np.array([theta for _, theta in shown]).T, "o", markersize=4.5, color="white", markeredgecolor=INK,
              markeredgewidth=1, clip_on=False, zorder=5)  # fmt: skip
    for (place, _), (_, (x, y)) in zip(shown, ends.tolist(), strict=True):
        axes.text(
            x, y, str(place), transform=axes.transAxes, ha="center", va="center", fontsize=BADGE_SIZE,
            weight="bold", color=INK, zorder=6, bbox=BADGE,
        )  # fmt: skip


def mark_along(
    sheet: Sheet, thetas: Sequence[float | None], ends: tuple[float, float], left: float, top: float, bottom: float,
    width: float,
) -> None:  # fmt: skip
    """A dotted line through all plots below `top` at every theta between the ends, its place in the row above it."""
    low, high = ends
    shown = [(place, theta) for place, theta in enumerate(thetas) if theta is not None]
    places = [left + width * (theta - low) / (high - low) for _, theta in shown]
    # These axes lie over the plots; the page lies below them.
    over = sheet.figure.add_axes((0, 0, 1, 1), zorder=5)
    over.set_axis_off()
    over.set_xlim(0, sheet.width)
    over.set_ylim(sheet.height, 0)
    for (place, _), at, spot in zip(shown, places, spread(places, 0.23), strict=True):
        over.plot([at, at], [top + NUMBERS - 0.05, bottom], color=INK, linewidth=0.8, linestyle=(0, (1.5, 2)))
        over.annotate(
            str(place), xy=(at, top + NUMBERS - 0.05), xytext=(spot, top + 0.1), ha="center", va="center",
            fontsize=BADGE_SIZE, weight="bold", color=INK, bbox=BADGE,
            arrowprops={"arrowstyle": "-", "linewidth": 0.8, "color": INK, "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip


def add_dashes(axes: Axes, points: np.ndarray, rim: float, width: float) -> None:
    """A dashed line of `width` points through points (N, 2), on a bright one as wide as `rim`."""
    axes.plot(*points.T, linestyle="-", color=PAPER, linewidth=rim, zorder=4)
    axes.plot(*points.T, linestyle=DASHES, color=INK, linewidth=width, zorder=4)


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
