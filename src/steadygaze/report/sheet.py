"""A page measured in inches from its top left corner, and what all parts of a figure put on it: texts, tables, images.

Text that comes from users goes through `Sheet.write` or `name_axis`: it is never read as mathematics, characters that
no font has are replaced, and it does not run over the width that it is given.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from .colours import HATCH_INK, INK, NOT_REACHED
from .wording import font_families, printable

ROW = 0.205
"""Height of a row of a table."""
MOST_TICKS = 9
DASHES = (0, (3, 1.6))
"""The pattern of a dashed line."""
HATCHED: dict[str, Any] = {"facecolor": NOT_REACHED, "edgecolor": HATCH_INK, "hatch": "//////"}
"""How what was not reached looks."""
BADGE = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": INK, "linewidth": 0.8}
BADGE_SIZE = 7.5


@dataclass(frozen=True)
class Row:
    """A row of a table: a swatch (a colour, shades, a line, or hatched), what it means, and a share or nothing.

    `is_hatched` stands for what was not reached, `hatch` is laid over a colour; `frame` is the width of the outline.
    """

    text: str
    share: str = ""
    colour: str = NOT_REACHED
    shades: Colormap | None = None
    is_hatched: bool = False
    hatch: str = ""
    is_line: bool = False
    is_dashed: bool = False
    frame: float = 0.5


class Sheet:
    """A figure of a given size in inches; its `page` takes artists in inches, downwards from the top left corner."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.figure = Figure(figsize=(width, height), facecolor="white")
        self.canvas = FigureCanvasAgg(self.figure)
        self.page = self.figure.add_axes((0, 0, 1, 1), zorder=-1)
        self.page.set_axis_off()
        self.page.set_xlim(0, width)
        self.page.set_ylim(height, 0)

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Axes with a thin dark frame and small ticks."""
        axes = self.figure.add_axes(
            (left / self.width, 1 - (top + height) / self.height, width / self.width, height / self.height)
        )
        axes.tick_params(labelsize=8.5, colors=INK, width=0.6, length=3, pad=3)
        for spine in axes.spines.values():
            spine.set_linewidth(0.6)
            spine.set_color(INK)
        for axis, length, per_inch in ((axes.xaxis, width, 1.4), (axes.yaxis, height, 2.0)):
            ticks = min(max(3, int(length * per_inch)), MOST_TICKS)
            axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))
        return axes

    def write(
        self, left: float, top: float, text: str, *, size: float = 9, width: float | None = None, colour: str = INK,
        weight: str = "normal", across: str = "left", down: str = "center",
    ) -> Text:  # fmt: skip
        """Write one line; it is shortened in its middle until it fits the width."""
        artist = self.page.text(
            left, top, printable(text), fontsize=size, color=colour, weight=weight, ha=across, va=down,
            family=list(font_families()), parse_math=False,
        )  # fmt: skip
        if width is not None:
            self._shorten(artist, width)
        return artist

    def badge(self, left: float, top: float, place: int) -> None:
        """The number of an exhibit in a circle around the given point, as it stands on the maps."""
        self.write(left, top, str(place), size=BADGE_SIZE, across="center", weight="bold").set_bbox(BADGE)

    def box(
        self, left: float, top: float, width: float, height: float, *, facecolor: str, edgecolor: str = INK,
        linewidth: float = 0.5, hatch: str = "",
    ) -> None:  # fmt: skip
        """A rectangle."""
        box = Rectangle((left, top), width, height, facecolor=facecolor, edgecolor=edgecolor, linewidth=linewidth)
        box.set_hatch(hatch)
        self.page.add_patch(box)

    def image(
        self, left: float, top: float, width: float, height: float, pixels: np.ndarray, *,
        cmap: str | Colormap | None = None, norm: Normalize | None = None, frame: float = 0.6,
    ) -> None:  # fmt: skip
        """Pixels (H, W) or (H, W, 3) in a frame of that width, each a block of one colour."""
        extent = (left, left + width, top + height, top)
        image = AxesImage(self.page, cmap=cmap, norm=norm, interpolation="nearest", extent=extent, origin="upper")
        image.set_data(pixels)
        self.page.add_artist(image)
        self.box(left, top, width, height, facecolor="none", linewidth=frame)

    def table(self, left: float, top: float, width: float, rows: Sequence[Row]) -> None:
        """Swatch, meaning and share (aligned right) of every row, one below the other."""
        swatch = 0.5 if any(row.shades is not None for row in rows) else 0.26
        for place, row in enumerate(rows):
            y = top + place * ROW
            self._swatch(left, y + 0.035, swatch, ROW - 0.07, row)
            share = self.write(left + width, y + ROW / 2, row.share, across="right", weight="bold")
            room = width - swatch - 0.2 - self.measure(share)
            self.write(left + swatch + 0.1, y + ROW / 2, row.text, width=room)

    def measure(self, artist: Text) -> float:
        """Width of a text in inches."""
        if not artist.get_text():
            return 0.0
        return artist.get_window_extent(self.canvas.get_renderer()).width / self.figure.dpi

    def _swatch(self, left: float, top: float, width: float, height: float, row: Row) -> None:
        if row.is_line:
            dashes = DASHES if row.is_dashed else "-"
            self.page.plot(
                [left, left + width], [top + height / 2] * 2, linestyle=dashes, color=row.colour, linewidth=1.4
            )
        elif row.shades is not None:
            self.image(left, top, width, height, np.linspace(0, 1, 64)[None], cmap=row.shades, norm=Normalize(0, 1))
        elif row.is_hatched:
            self.box(left, top, width, height, **HATCHED)
        else:
            self.box(left, top, width, height, facecolor=row.colour, linewidth=row.frame, hatch=row.hatch)

    def _shorten(self, artist: Text, width: float) -> None:
        text = artist.get_text()
        keep = len(text)
        while keep > 1 and self.measure(artist) > width:
            keep -= 1 + keep // 12
            artist.set_text(text[: (keep + 1) // 2].rstrip() + "…" + text[len(text) - keep // 2 :].lstrip())


def name_axis(axes: Axes, text: str, *, is_below: bool) -> None:
    """Name the axis below or on the left."""
    name = axes.set_xlabel if is_below else axes.set_ylabel
    name(printable(text), fontsize=9.5, color=INK, labelpad=3, family=list(font_families()), parse_math=False)
