"""Small multiples on a sheet: a title, a legend, and panels of the same scale with bars, boxes or points.

Knows values and colours, but not campaigns.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator
from scipy.stats import rankdata

from ..report.drawing.colours import FAINT_INK, HATCHED, INK
from ..report.drawing.sheet import (
    HEADER,
    ROW,
    Sheet,
    font_families,
    name_axis,
    printable,
    write_header,
)

PANEL = (3.7, 2.5)
SINGLE = 6.8  # width of a single panel in inches
CHARACTER = 0.085  # width of a character below an axis, in inches
LEFT, RIGHT, GAP, AXIS, TITLE, LEGEND = 0.85, 0.3, 0.3, 0.62, 0.3, 0.25
MOST_COLUMNS = 3
SMALLEST_WRITTEN = 0.09  # smaller parts of a bar have no room for a number
OPEN = "open"  # the kind that is drawn hatched


@dataclass(frozen=True)
class Panel:
    """One of the multiples: its title, the function that draws it, and a remark to the right of the title."""

    title: str
    draw: Callable[[Axes], None]
    remark: str = ""


@dataclass(frozen=True)
class LogScale:
    """Ends of a logarithmic axis that all panels share."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "LogScale":
        """The scale with some room around all values, each above zero.

        >>> LogScale.of([3.0, 40.0]).low < 3.0, LogScale.of([5.0]).high > 5.0
        (True, True)
        """
        low, high = math.log10(min(values)), math.log10(max(values))
        room = max(0.06 * (high - low), 0.5 - 0.5 * (high - low))
        return cls(10 ** (low - room), 10 ** (high + room))

    def set(self, axes: Axes, *, is_below: bool) -> None:
        """Give axes this scale, with readable ticks."""
        (axes.set_xscale if is_below else axes.set_yscale)("log")
        (axes.set_xlim if is_below else axes.set_ylim)(self.low, self.high)
        axis = axes.xaxis if is_below else axes.yaxis
        axis.set_major_locator(FixedLocator(self.ticks()))
        axis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
        axis.grid(visible=True, color="#dddddd", linewidth=0.5)
        axes.set_axisbelow(True)

    def ticks(self) -> list[float]:
        """Powers of ten: some of them if there are many, with 2 and 5 in between if there are few."""
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        powers = list(range(first, last + 1))
        if len(powers) >= 3:
            step = 1 + (len(powers) - 1) // 6
            return [10.0**power for power in powers if power % step == 0]
        between = [digit * 10.0**power for power in range(first - 1, last + 1) for digit in (1, 2, 5)]
        return [value for value in between if self.low <= value <= self.high]


def tick_text(value: float) -> str:
    """A number beside an axis.

    >>> tick_text(0.001), tick_text(20.0), tick_text(10000.0), tick_text(2e6)
    ('0.001', '20', '10,000', '2 M')
    """
    if value >= 1e6:
        return f"{value / 1e6:g} M"
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def shades(count: int) -> list[str]:
    """Colours with an order, all light enough for dark lines over them."""
    places = np.linspace(0.0, 0.97, count) if count > 1 else np.array([0.3])
    light = 0.72 * colormaps["viridis"](places)[:, :3] + 0.28
    return [to_hex((red, green, blue)) for red, green, blue in light.tolist()]


def draw_panels(
    title: str, facts: Sequence[str], legend: Mapping[str, str], panels: Sequence[Panel], names: tuple[str, str]
) -> Figure:
    """The figure: `legend` gives the colour of each text, `names` are those of the axes below and on the left."""
    columns = min(len(panels), MOST_COLUMNS)
    rows = math.ceil(len(panels) / columns)
    panel_width = PANEL[0] if columns > 1 else SINGLE
    width = LEFT + columns * panel_width + (columns - 1) * GAP + RIGHT
    top = HEADER + 0.1 + LEGEND * len(_legend_lines(legend, width))
    sheet = Sheet(width, top + rows * (TITLE + PANEL[1]) + (rows - 1) * 0.3 + AXIS)
    write_header(sheet, title, facts, size=14)
    _draw_legend(sheet, legend, HEADER - 0.04)
    for place, panel in enumerate(panels):
        row, column = divmod(place, columns)
        left = LEFT + column * (panel_width + GAP)
        y = top + row * (TITLE + PANEL[1] + 0.3) + TITLE
        remark = sheet.write(left + panel_width, y - 0.12, panel.remark, size=8, colour=FAINT_INK, across="right")
        room = panel_width - sheet.measure(remark) - 0.1
        sheet.write(left, y - 0.13, panel.title, size=10.5, weight="bold", width=room)
        axes = sheet.axes(left, y, panel_width, PANEL[1])
        panel.draw(axes)
        if place + columns >= len(panels):
            name_axis(axes, names[0], is_below=True)
        if column == 0:
            name_axis(axes, names[1], is_below=False)
        else:
            axes.tick_params(labelleft=False)
    return sheet.figure


def _legend_lines(legend: Mapping[str, str], width: float) -> list[list[str]]:
    """The texts of a legend in as many lines as they need."""
    lines: list[list[str]] = []
    left = math.inf
    for text in legend:
        length = 0.55 + CHARACTER * len(text)
        if left + length > width:
            lines.append([])
            left = 0.4
        lines[-1].append(text)
        left += length
    return lines


def _draw_legend(sheet: Sheet, legend: Mapping[str, str], top: float) -> None:
    for line in _legend_lines(legend, sheet.width):
        left = 0.4
        for text in line:
            style = HATCHED if text == OPEN else {"facecolor": legend[text]}
            sheet.box(left, top, 0.2, ROW - 0.07, **style)
            written = sheet.write(left + 0.27, top + ROW / 2 - 0.03, text)
            left += 0.27 + sheet.measure(written) + 0.28
        top += LEGEND


def name_places(axes: Axes, names: Sequence[str]) -> None:
    """Names below the places 0, 1, 2, … of an axis."""
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.xaxis.set_major_locator(FixedLocator(list(range(len(names)))))
    room = max(3, int(PANEL[0] / len(names) / CHARACTER))
    short = [
        name if len(name) <= room else f"{name[: room // 2]}…{name[len(name) - (room - 1) // 2 :]}" for name in names
    ]
    axes.set_xticklabels([printable(name) for name in short], family=list(font_families()), parse_math=False)
    axes.tick_params(axis="x", length=0)


def draw_shares(axes: Axes, places: Sequence[Mapping[str, int]], colours: Mapping[str, str]) -> None:
    """Stacked bars: for every place the share of each kind, with its count if there is room."""
    for place, counts in enumerate(places):
        total, bottom = sum(counts.values()), 0.0
        for kind, count in counts.items():
            share = count / total if total else 0.0
            style = HATCHED if kind == OPEN else {"facecolor": colours[kind], "edgecolor": "white"}
            axes.bar(place, share, width=0.72, bottom=bottom, linewidth=0.4, **style)
            if share >= SMALLEST_WRITTEN:
                ink = "white" if kind != OPEN else INK
                axes.text(place, bottom + share / 2, str(count), ha="center", va="center", fontsize=8, color=ink)
            bottom += share
    axes.set_ylim(0.0, 1.0)
    axes.yaxis.set_major_locator(FixedLocator([0.0, 0.25, 0.5, 0.75, 1.0]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))


def draw_boxes(
    axes: Axes, at: Sequence[float], values: Sequence[Sequence[float]], fills: Sequence[str], width: float
) -> None:
    """Box plots (quartiles, median, whiskers to the ends) of values at places, with every value as a point."""
    for place, own, fill in zip(at, values, fills, strict=True):
        if not own:
            continue
        axes.boxplot(
            [own], positions=[place], widths=width, whis=(0, 100), patch_artist=True, manage_ticks=False,
            boxprops={"facecolor": fill, "edgecolor": INK, "linewidth": 0.6},
            medianprops={"color": INK, "linewidth": 2.0, "solid_capstyle": "butt"},
            whiskerprops={"color": INK, "linewidth": 0.6}, capprops={"color": INK, "linewidth": 0.6}
        )  # fmt: skip
        spread = (np.arange(len(own)) * 0.618) % 1.0 - 0.5  # scattered, but reproducible
        axes.plot(place + 0.5 * width * spread, own, ".", color=INK, markersize=1.8, alpha=0.5, zorder=3)


def draw_points(axes: Axes, across: Sequence[float], up: Sequence[float], fill: str) -> None:
    """Points of one colour."""
    axes.scatter(across, up, s=13, facecolor=fill, edgecolor=FAINT_INK, linewidth=0.3, alpha=0.85)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's ρ of paired values; None if there are fewer than three, or all are equal.

    >>> rank_correlation([1, 2, 30], [1, 4, 9]), rank_correlation([1, 2, 3], [5, 5, 5])
    (1.0, None)
    """
    ranks = rankdata(first), rankdata(second)
    if len(first) < 3 or any(np.ptp(each) == 0.0 for each in ranks):
        return None
    return round(float(np.corrcoef(*ranks)[0, 1]), 12)


def correlation_text(groups: Iterable[Sequence[tuple[float, float]]]) -> str:
    """The range of ρ over the groups of pairs that have one.

    >>> correlation_text([[(1, 1.0), (2, 2.0), (3, 3.0)], [(1, 1.0)]])
    'ρ = 1.00'
    """
    found = [rank_correlation(*zip(*pairs, strict=True)) for pairs in groups if pairs]
    texts = [f"{value:.2f}" for value in sorted(value for value in found if value is not None)]
    if not texts:
        return ""
    return f"ρ = {texts[0]}" if texts[0] == texts[-1] else f"ρ = {texts[0]} to {texts[-1]}"
