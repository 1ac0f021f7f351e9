"""Along one parameter: margin and inconsistency as curves, and a strip of images, actual and expected maps.

Turns the pieces on a line into exact intervals, and these into curves; runs the network only at the exhibits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ...attention.measures import Measure
from ...attention.measures.distance import DISTANCE
from ...attention.measures.wording import TOO_LARGE
from ...errors import OptionError
from ...labels import Joint
from ...results.delta_answer import DeltaAnswer
from ...results.result import Result
from ...tolerances import BESIDE, MAX_MAP_PARAMETERS
from ...words import shown_text
from ..drawing.colours import DELTA_LINE, FAINT_INK, HATCHED, INK, JOINT, KEPT, UNKNOWN
from ..drawing.exhibits import (
    CAPTION,
    Exhibit,
    ShownMaps,
    axis_of,
    checked_thetas,
    common_scale,
    draw_gauge,
    longest_gauge,
    nearest_to_zero,
    show_image,
    show_pair,
    show_scale,
    thetas_along,
    write_caption,
    write_map_names,
)
from ..drawing.marks import NUMBERS, mark_along
from ..drawing.outlines import image_outlines
from ..drawing.sheet import HEADER, Sheet, name_axis, write_header
from ..titles import attention_text, delta_text, extent_text, subject_text

WIDTH, LEFT, RIGHT = 13.0, 0.4, 0.45
CURVE_NAMES, STRIP_NAMES = 1.5, 1.3
SIDE, GAP, GAUGE, COLOUR_BAR, WIDEST_PITCH = 1.38, 0.07, 0.42, 0.7, 1.85
STRIP_HEIGHT = CAPTION + 3 * (SIDE + GAP) + GAUGE
CURVE = 1.55
CURVE_PITCH = CURVE + 0.15
CURVES = 2 * CURVE_PITCH
"""Height of both curves in inches, without the name of the axis."""

STEPS = 6
"""The number of images, unless it is given."""
SAMPLES_PER_DOMAIN = 1000

TOUCHING = 1e-9
"""Pieces closer than this touch."""


@dataclass(frozen=True, eq=False)
class LineCut:
    """The parts (N,) of a line in single pieces, sorted along it, from low (N,) to high (N,) of t[axis].

    region (N,): their regions or boxes. point (D,) is a point of the line in t, beside the borders of the domain.
    """

    axis: int
    point: np.ndarray
    low: np.ndarray
    high: np.ndarray
    region: np.ndarray

    def points(self, along: np.ndarray) -> np.ndarray:
        """Points (N, D) of the line in t, where t[axis] has the given values (N,)."""
        points = np.tile(self.point, (len(along), 1))
        points[:, self.axis] = along
        return points


@dataclass(frozen=True, eq=False)
class Profile:
    """A map along theta (N,) of one parameter, with NaN in the gaps (G, 2) of theta that a partial map leaves.

    margin and inconsistency (N,) are the curves, NaN if only bounds are known; margin_bounds and inconsistency_bounds
    (N, 2) are these bounds, NaN if the curve is known or nothing is.
    """

    theta: np.ndarray
    margin: np.ndarray
    inconsistency: np.ndarray
    margin_bounds: np.ndarray
    inconsistency_bounds: np.ndarray
    gaps: np.ndarray


def strip_along(
    result: Result, at: Sequence[ArrayLike] = (), along: str | int | None = None, steps: int | None = None
) -> Figure:
    """A strip along one parameter, by its number or name; `at` holds the theta of the others, by default near zero."""
    domain = result.question.perturbed.domain
    held = [*checked_thetas(domain, at), nearest_to_zero(domain)]
    if len(held) > 2:
        raise OptionError(f"strip takes one theta for the other parameters, but {len(held) - 1} are given; give one")
    axis = axis_of(domain, along)
    return strip_figure(result, axis, thetas_along(domain, axis, held[0], steps or STEPS))


def strip_figure(result: Result, axis: int, thetas: np.ndarray) -> Figure:
    """Thetas (N, d) that differ along one axis; with up to three parameters, curves above them."""
    domain = result.question.perturbed.domain
    name, ends = domain.names[axis], (float(domain.low[axis]), float(domain.high[axis]))
    short = name.partition(" ")[0]
    exhibits = [Exhibit(f"{short} {shown_text(name, theta[axis], 3)}", result.at(theta)) for theta in thetas]
    has_curves = domain.dimension <= MAX_MAP_PARAMETERS
    upper = NUMBERS + CURVES + 0.65 if has_curves else 0.0
    sheet = Sheet(WIDTH, HEADER + upper + STRIP_HEIGHT + 0.2)
    facts = [extent_text(result), delta_text(result), attention_text(result.question)]
    others = [
        f"{domain.names[other]} = {shown_text(domain.names[other], thetas[0][other], 3)}"
        for other in range(domain.dimension)
        if other != axis
    ]
    held = f", at {', '.join(others)}" if others else ""
    write_header(sheet, f"{subject_text(result.question)}: along {name}{held}", facts)
    if has_curves:
        width, top = WIDTH - LEFT - CURVE_NAMES - RIGHT, HEADER + NUMBERS
        draw_curves(sheet, result, axis, thetas[0], LEFT, top, width)
        mark_along(sheet, thetas[:, axis].tolist(), ends, LEFT + CURVE_NAMES, HEADER, top + CURVES - 0.15, width)
    draw_strip(sheet, result, exhibits, LEFT, HEADER + upper, WIDTH - LEFT - 0.3)
    return sheet.figure


def draw_strip(
    sheet: Sheet, result: Result, exhibits: Sequence[Exhibit], left: float, top: float, width: float
) -> None:
    """Draw image, actual map, expected map and inconsistency of exhibits side by side; maps share one scale."""
    shown = ShownMaps.of(result.question)
    maps = [shown.pair(exhibit.point) for exhibit in exhibits]
    norm = common_scale([part for pair in maps for part in pair])
    pitch = min((width - STRIP_NAMES - COLOUR_BAR) / len(exhibits), WIDEST_PITCH)
    side = min(SIDE, pitch - 0.06)
    tops = [top + CAPTION + row * (side + GAP) for row in range(4)]
    sheet.write(left, tops[0] + side / 2, "image", weight="bold", width=STRIP_NAMES - 0.1)
    write_map_names(sheet, left, tops[1:], side, shown, STRIP_NAMES - 0.1)
    delta, measure = result.answer.delta, result.question.attention.measure
    longest = longest_gauge([exhibit.point for exhibit in exhibits], delta)
    for place, exhibit in enumerate(exhibits):
        x = left + STRIP_NAMES + place * pitch
        write_caption(sheet, result, place, exhibit, x, top, pitch - 0.08)
        show_image(sheet, x, tops[0], side, exhibit.point.image, outlines=image_outlines(exhibit.point))
        show_pair(sheet, result, exhibit.point, x, tops[1:3], side, norm)
        draw_gauge(sheet, measure, exhibit.point, delta, longest, x, tops[3], side, pitch - 0.08)
    right = left + STRIP_NAMES + (len(exhibits) - 1) * pitch + side
    show_scale(sheet, right + 0.15, tops[1], 2 * side + GAP, norm)


def draw_curves(
    sheet: Sheet, result: Result, axis: int, theta: np.ndarray, left: float, top: float, width: float
) -> None:
    """Margin and, below, inconsistency along a parameter through a theta (d,); the plots have the given width.

    Their names take `CURVE_NAMES` inches on the left. If attention was not measured, the lower plot says so.
    """
    domain = result.question.compound.domain
    curves = profile(result.answer, line_through(result.answer, axis, theta))
    plots = [sheet.axes(left + CURVE_NAMES, top + place * CURVE_PITCH, width, CURVE) for place in (0, 1)]
    for axes in plots:
        axes.set_xlim(float(domain.low[axis]), float(domain.high[axis]))
        for start, end in curves.gaps:
            axes.axvspan(start, end, zorder=-5, linewidth=0, **HATCHED)
    _draw_margin(plots[0], curves)
    if result.is_measured:
        _draw_inconsistency(plots[1], curves, result.answer.delta, result.question.attention.measure)
    else:
        plots[1].set_yticks([])
        plots[1].text(
            0.5, 0.5, "not measured over the domain", transform=plots[1].transAxes, ha="center", va="center",
            fontsize=9, color=FAINT_INK,
        )  # fmt: skip
    name_axis(plots[1], domain.names[axis], is_below=True)
    measure = result.question.attention.measure
    # Long names of losses need two lines.
    loss = measure.loss_noun.replace(" off", "\noff").replace(" of the", "\nof the")
    loss_meaning = f"≤ {measure.loss_limit}: kept" if measure.option else "0: attention kept"
    for place, (name, meaning) in enumerate([("margin", "> 0: label kept"), (loss, loss_meaning)]):
        middle = top + place * CURVE_PITCH + CURVE / 2
        sheet.write(left, middle, name, weight="bold")
        sheet.write(left, middle + 0.17, meaning, size=8, colour=FAINT_INK)
        bounds = curves.margin_bounds if place == 0 else curves.inconsistency_bounds
        if np.isfinite(bounds).any() and (result.is_measured or place == 0):
            sheet.write(left, middle + 0.33, "thin lines: bounds", size=8, colour=FAINT_INK)


def _draw_margin(axes: Axes, curves: Profile) -> None:
    theta, margin = curves.theta, curves.margin
    low, high = curves.margin_bounds.T
    for is_here, colour in (
        (low > 0.0, KEPT),
        (high < 0.0, JOINT[Joint.ATTENTION_ALONE]),
        ((low <= 0.0) & (high >= 0.0), UNKNOWN),
    ):
        ends = np.minimum(low, 0.0), np.maximum(high, 0.0)
        axes.fill_between(theta, *ends, where=is_here, color=colour, linewidth=0)
    axes.fill_between(theta, 0.0, np.maximum(margin, 0.0), color=KEPT, linewidth=0)
    axes.fill_between(theta, 0.0, np.minimum(margin, 0.0), color=JOINT[Joint.ATTENTION_ALONE], linewidth=0)
    axes.plot(theta, margin, color=INK, linewidth=1.1)
    axes.axhline(0.0, color=INK, linewidth=0.7)
    _draw_bounds(axes, theta, curves.margin_bounds)
    with_zero = np.concatenate([margin, curves.margin_bounds.ravel(), [0.0]])
    low, high = float(np.nanmin(with_zero)), float(np.nanmax(with_zero))
    room = 0.06 * (high - low) or 1.0
    axes.set_ylim(low - room, high + room)
    axes.tick_params(labelbottom=False)


def _draw_inconsistency(axes: Axes, curves: Profile, delta: float, measure: Measure) -> None:
    theta, ai = curves.theta, curves.inconsistency
    axes.fill_between(theta, 0.0, ai, where=ai <= delta, color=KEPT, linewidth=0)
    axes.fill_between(theta, 0.0, ai, where=ai > delta, color=JOINT[Joint.LABEL_ALONE], linewidth=0)
    axes.plot(theta, ai, color=INK, linewidth=1.1)
    low, high = curves.inconsistency_bounds.T
    for is_here, colour in (
        (high <= delta, KEPT), (low > delta, JOINT[Joint.LABEL_ALONE]), ((low <= delta) & (high > delta), UNKNOWN)
    ):  # fmt: skip
        axes.fill_between(theta, 0.0, high, where=is_here, color=colour, linewidth=0)
    _draw_bounds(axes, theta, curves.inconsistency_bounds)
    shown = np.concatenate([ai, curves.inconsistency_bounds.ravel(), [0.0]])
    if measure != DISTANCE:
        # Maps without attention lie above the plot: their loss is not a share or cosine.
        shown = np.where(shown > TOO_LARGE, 1.0, shown)
    top = 1.1 * float(np.nanmax(shown)) or 1.0
    is_in_sight = delta <= 3.0 * top
    if is_in_sight:
        top = max(top, 1.12 * delta)
        axes.axhline(delta, color=DELTA_LINE, linewidth=1.2)
    axes.set_ylim(0.0, top)
    if measure.option is not None:
        # There is no room for the limit of pointing, and the loss is 0 or 1.
        name_delta(axes, delta / top, measure.loss_limit, is_in_sight=is_in_sight)


def name_delta(axes: Axes, height: float, name: str = "δ", *, is_in_sight: bool) -> None:
    """Write the name of the largest loss on the right at a height in axes; far above the curves it is only named."""
    axes.annotate(
        name if is_in_sight else f"{name} ↑", xy=(1.0, min(height, 1.0)), xycoords="axes fraction", xytext=(4, 0),
        textcoords="offset points", va="center", fontsize=9.5, color=DELTA_LINE, weight="bold",
    )  # fmt: skip


def _draw_bounds(axes: Axes, theta: np.ndarray, bounds: np.ndarray) -> None:
    for end in bounds.T:
        axes.plot(theta, end, color=INK, linewidth=0.5)


def line_through(answer: DeltaAnswer, axis: int, theta: np.ndarray) -> LineCut:
    """The line along a parameter through a theta (d,), of maps of up to three parameters."""
    point = answer.compound.to_unit(np.asarray(theta, dtype=np.float64)[None])[0]
    # Zero is often a border of the domain or a knot, where regions end.
    point = np.where(point < 0.5, point + BESIDE, point - BESIDE)
    box = np.stack([point, point])
    box[:, axis] = 0.0, 1.0
    parts = [(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64))]
    for block in answer.blocks(box):
        low, high, piece = block.joint.polytopes.on_line(axis, point)
        parts.append((low, high, block.region + block.joint.pieces.region[piece]))
    low, high, region = map(np.concatenate, zip(*parts, strict=True))
    order = np.argsort(low, kind="stable")
    return LineCut(axis, point, low[order], high[order], region[order])


def profile(answer: DeltaAnswer, line: LineCut) -> Profile:
    """Margin and inconsistency along a line through a map; both ends of every piece on it are among the thetas.

    The thetas of the profile are values of the parameter along the line.
    """
    compound = answer.compound
    start, width = compound.domain.low[line.axis], compound.domain.widths[line.axis]
    low, high, none = line.low, line.high, np.zeros((0, 2))
    if not len(low):
        return Profile(none[:, 0], none[:, 0], none[:, 0], none, none, np.array([[start, start + width]]))
    counts = np.ceil((high - low) * SAMPLES_PER_DOMAIN).astype(np.int64) + 2
    ends = np.cumsum(counts)
    step = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
    share = step / np.repeat(counts - 1, counts)
    t = np.repeat(low, counts) + share * np.repeat(high - low, counts)
    points = line.points(t)
    which = np.repeat(line.region, counts)
    starts_gap = ends[:-1][low[1:] - high[:-1] > TOUCHING]
    gaps = np.stack([np.append(0.0, high), np.append(low, 1.0)], axis=1)
    gaps = gaps[gaps[:, 1] - gaps[:, 0] > TOUCHING]
    margin, margin_bounds = _split_known(answer.margin_bounds_at(which, points))
    inconsistency, inconsistency_bounds = _split_known(answer.inconsistency_bounds_at(which, points))
    columns = (start + t * width, margin, inconsistency, margin_bounds, inconsistency_bounds)
    theta, *curves = (np.insert(column, starts_gap, np.nan, axis=0) for column in columns)
    return Profile(theta, curves[0], curves[1], curves[2], curves[3], start + gaps * width)


def _split_known(bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values (N,) where bounds (N, 2) are equal, and the bounds where they differ; NaN elsewhere."""
    is_known = bounds[:, 0] == bounds[:, 1]
    is_bounded = np.isfinite(bounds).all(axis=1) & ~is_known
    return np.where(is_known, bounds[:, 0], np.nan), np.where(is_bounded[:, None], bounds, np.nan)
