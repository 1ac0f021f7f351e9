"""A page measured in inches from its top left corner: texts, tables, images, axes, and the files it is written to.

Text from users goes through `Sheet.write` or `name_axis`: it is never parsed as mathematics, characters without a glyph
are replaced, and long text is shortened to the given width. The same figure gives the same bytes: matplotlib's settings
are global, so figures are drawn one at a time with its defaults, and the caller's settings are restored.
"""

import io
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import font_manager, rc_context, rcParams, rcParamsDefault
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ...errors import OptionError, StoreError
from ...results.directory import atomic_file
from ...words import is_factor, rounded, shown_value
from .. import FORMATS
from .colours import FAINT_INK, HATCHED, INK, Row

MAIN_FONT = "DejaVu Sans"
OTHER_FONTS = (
    "Noto Sans CJK JP", "IPAexGothic", "IPAGothic", "Hiragino Sans", "Yu Gothic", "MS Gothic", "Microsoft YaHei",
    "PingFang SC", "WenQuanYi Zen Hei", "Droid Sans Fallback", "Malgun Gothic", "Noto Sans", "Arial Unicode MS",
)  # fmt: skip
"""Fonts with further characters; the installed ones are used."""


HEADER = 0.95
"""Height of a header in inches."""
ROW = 0.205
"""Height of a row of a table in inches."""
MOST_TICKS = 9
DASHES = (0, (3, 1.6))
"""The pattern of a dashed line."""
BADGE = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": INK, "linewidth": 0.8}
BADGE_SIZE = 7.5
SMALLEST = 0.75  # of its size: how far a text shrinks to fit before it is shortened

DPI = {"png": 130, "svg": 200, "pdf": 200}
"""Pixels per inch; in SVG and PDF they count for rasterised parts only."""
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "steadygaze"},
    "pdf": {"CreationDate": None, "Creator": "steadygaze", "Producer": None},
}

_ONE_AT_A_TIME = threading.RLock()

_SETTINGS = {
    "font.family": MAIN_FONT,
    "svg.hashsalt": "steadygaze",
    "hatch.linewidth": 0.6,
    "image.composite_image": False,
    "pdf.fonttype": 42,
    "text.hinting": "no_hinting",  # hinted text takes longer to draw, and its letters stand less evenly
    "text.parse_math": False,
}

_NO_LOOK = ("backend", "backend_fallback", "interactive")
"""Settings that decide where figures are shown: they stay as they are."""

COMPRESSION = 3
"""The level of zlib for PNG: higher ones take twice the time for a tenth of the size."""


class Sheet:
    """A figure of a given size in inches; its `page` has coordinates in inches, downwards from the top left corner."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        # At the resolution of PNG files: their drawing then knows the size of every text that was measured.
        self.figure = Figure(figsize=(width, height), dpi=DPI["png"], facecolor="white")
        self._canvas = FigureCanvasAgg(self.figure)
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
        """Write one line; to fit the width it becomes smaller, and if that is not enough it is shortened."""
        artist = self.page.text(
            left, top, printable(text), fontsize=size, color=colour, weight=weight, ha=across, va=down,
            family=list(font_families()), parse_math=False,
        )  # fmt: skip
        if width is not None:
            self._shorten(artist, width)
        return artist

    def badge(self, left: float, top: float, place: int) -> None:
        """The number of an exhibit in a circle around the given point, as on the maps."""
        self.write(left, top, str(place), size=BADGE_SIZE, across="center", weight="bold").set_bbox(BADGE)

    def box(
        self, left: float, top: float, width: float, height: float, *, facecolor: str, edgecolor: str = INK,
        linewidth: float = 0.5, hatch: str = "",
    ) -> None:  # fmt: skip
        """A rectangle."""
        box = Rectangle((left, top), width, height, facecolor=facecolor, edgecolor=edgecolor, linewidth=linewidth)
        box.set_hatch(hatch)
        self.page.add_artist(box)  # without looking at the limits of the page, which are fixed

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
        return artist.get_window_extent(self._canvas.get_renderer()).width / self.figure.dpi

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
        text, size = artist.get_text(), float(artist.get_fontsize())
        least = SMALLEST * size
        # Letters keep to whole pixels, so widths are not quite proportional to the size.
        while (needed := self.measure(artist)) > width and size > least:
            size = max(least, 0.99 * size * width / needed)
            artist.set_fontsize(size)
        keep = len(text)
        while keep > 1 and self.measure(artist) > width:
            keep -= 1 + keep // 12
            artist.set_text(text[: (keep + 1) // 2].rstrip() + "…" + text[len(text) - keep // 2 :].lstrip())


def name_axis(axes: Axes, text: str, *, is_below: bool) -> None:
    """Name the axis below or on the left; if the name is that of a factor, the numbers are factors too."""
    if is_factor(text):
        axis = axes.xaxis if is_below else axes.yaxis
        axis.set_major_formatter(FuncFormatter(lambda theta, _: rounded(shown_value(text, round(theta, 9)))))
    name = axes.set_xlabel if is_below else axes.set_ylabel
    name(printable(text), fontsize=9.5, color=INK, labelpad=3, family=list(font_families()), parse_math=False)


def write_header(sheet: Sheet, title: str, facts: Sequence[str], *, size: float = 15) -> None:
    """The title of a figure, and its facts in one line below."""
    width = sheet.width - 0.8
    sheet.write(0.4, 0.32, title, size=size, weight="bold", width=width)
    sheet.write(0.4, 0.66, " · ".join(facts), size=9.5, colour=FAINT_INK, width=width)


def printable(text: str) -> str:
    """Text with control characters replaced by spaces, and characters without a glyph by ▯.

    >>> printable("a\\tb\\x00c"), printable("a$b_$.onnx")
    ('a b c', 'a$b_$.onnx')
    """
    return "".join(_printable_character(character) for character in text)


@cache
def _printable_character(character: str) -> str:
    if not character.isprintable():
        return "▯" if "\ud800" <= character <= "\udfff" else " "
    if any(ord(character) in _glyphs(family) for family in font_families()):
        return character
    return "▯"


@cache
def font_families() -> tuple[str, ...]:
    """The main font, then the installed ones of `OTHER_FONTS`."""
    installed = set(font_manager.fontManager.get_font_names())
    return (MAIN_FONT, *(name for name in OTHER_FONTS if name in installed))


@cache
def _glyphs(family: str) -> frozenset[int]:
    font = font_manager.get_font(font_manager.findfont(font_manager.FontProperties(family=[family])))
    return frozenset(font.get_charmap())


@contextmanager
def drawing_settings() -> Iterator[None]:
    """The settings for making and writing all figures, for one thread at a time."""
    with _ONE_AT_A_TIME, rc_context(), _remembering_fonts():
        # Most values already equal matplotlib's, and setting one takes as long as comparing a hundred.
        settings: Any = rcParams
        usual: Any = rcParamsDefault
        wanted = {name: value for name, value in dict.items(usual) if name not in _NO_LOOK} | _SETTINGS
        for name, value in wanted.items():
            if dict.__getitem__(settings, name) != value:
                settings[name] = value
        yield


@contextmanager
def _remembering_fonts() -> Iterator[None]:
    """matplotlib looks for the files of fonts again and again for every text; here it looks once for each kind."""
    manager: Any = font_manager.fontManager
    name = "_find_fonts_by_props"
    if not hasattr(manager, name) or name in vars(manager):
        yield
        return
    find, found = getattr(manager, name), {}

    def look_up(kind: Any, *options: Any, **others: Any) -> Any:
        # Fonts of all sizes are in one file.
        key = (
            *kind.get_family(), kind.get_style(), kind.get_variant(), kind.get_weight(), kind.get_stretch(),
            kind.get_file(), options, *others.items(),
        )  # fmt: skip
        if key not in found:
            found[key] = find(kind, *options, **others)
        return found[key]

    setattr(manager, name, look_up)
    try:
        yield
    finally:
        delattr(manager, name)


def write_figure(
    make: Callable[[], Figure], path: str | Path, *, formats: Sequence[str] = ("png",), force: bool = True,
    drawn: dict[str, bytes] | None = None,
) -> list[Path]:  # fmt: skip
    """Make a figure and write PATH.png, PATH.svg and so on (a suffix of path that names a format is dropped).

    Each file is written atomically; `drawn` receives the bytes of each format. Without `force`, refuses an existing
    file before it makes anything.
    """
    files = figure_files(path, formats)
    refuse_in_the_way(files, force=force)
    with drawing_settings():
        figure = make()
        for file in files:
            try:
                with atomic_file(file) as new:
                    content = _figure_bytes(figure, file.suffix.removeprefix("."))
                    new.write_bytes(content)
            except OSError as error:
                raise _not_writable(file, error) from None
            if drawn is not None:
                drawn[file.suffix.removeprefix(".")] = content
    return files


def figure_bytes(make: Callable[[], Figure], kind: str) -> bytes:
    """Make a figure and return the bytes of its file in one format."""
    with drawing_settings():
        return _figure_bytes(make(), kind)


def _figure_bytes(figure: Figure, kind: str) -> bytes:
    if kind == "png":
        figure.set_dpi(DPI[kind])
        canvas = figure.canvas if isinstance(figure.canvas, FigureCanvasAgg) else FigureCanvasAgg(figure)
        canvas.draw()
        return png_bytes(np.asarray(canvas.buffer_rgba())[:, :, :3])
    stream = io.BytesIO()
    figure.savefig(stream, format=kind, dpi=DPI[kind], metadata=_METADATA[kind])
    return stream.getvalue()


def png_bytes(pixels: np.ndarray) -> bytes:
    """A PNG file of pixels (H, W, 3) uint8.

    Rows are stored as they are: figures have large areas of one colour, and looking for a better filter row by row, as
    image libraries do, takes three times as long as the rest.

    >>> png_bytes(np.zeros((2, 1, 3), dtype=np.uint8))[:8]
    b'\\x89PNG\\r\\n\\x1a\\n'
    """
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 3 * width), dtype=np.uint8)  # each row begins with the number of its filter: none
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    content = zlib.compress(rows.tobytes(), COMPRESSION)
    parts = [(b"IHDR", header), (b"IDAT", content), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )


def figure_files(path: str | Path, formats: Sequence[str]) -> list[Path]:
    """The files of a figure, one for each format.

    >>> [file.name for file in figure_files("map.svg", ["png", "pdf"])], figure_files("a.b", ["png"])[0].name
    (['map.png', 'map.pdf'], 'a.b.png')
    """
    for name in formats:
        if name not in FORMATS:
            raise OptionError(f"unknown format {name!r}; expected {', '.join(FORMATS)}")
    if not formats:
        raise OptionError(f"no format given; expected one or more of {', '.join(FORMATS)}")
    target = Path(path)
    if target.suffix.lower().removeprefix(".") in FORMATS:
        target = target.with_suffix("")
    return [target.with_name(f"{target.name}.{name}") for name in dict.fromkeys(formats)]


def refuse_in_the_way(files: Sequence[Path], *, force: bool) -> None:
    """Raise StoreError if a file exists and may not be replaced, or if a directory has its name."""
    for file in files:
        try:
            is_folder, is_there = file.is_dir(), file.exists()
        except OSError as error:  # such as a name that is too long
            raise _not_writable(file, error) from None
        if is_folder:
            raise StoreError(f"{file}: cannot be written: it is a directory; choose another --out")
        if is_there and not force:
            raise StoreError(f"{file}: exists already; choose another --out, or replace it with --force")


def _not_writable(file: Path, error: OSError) -> StoreError:
    return StoreError(f"{file}: the figure cannot be written ({error.strerror or error}); choose another place")
