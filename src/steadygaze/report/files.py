"""From a figure to its files: PNG, SVG and PDF, the same bytes every time. What a figure shows is not known here.

matplotlib keeps its settings in one place for all threads, so figures are drawn one at a time, with its defaults
(whatever style the caller has set), and the caller's settings are put back.
"""

import io
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.text import Text

from ..errors import OptionError, StoreError
from ..results.directory import file_written_at_once
from .formats import FORMATS
from .wording import MAIN_FONT

DPI = {"png": 130, "svg": 200, "pdf": 200}
"""Pixels per inch; of SVG and PDF only where a part of the figure is a picture."""

_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
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
}


@contextmanager
def drawing_settings() -> Iterator[None]:
    """The settings that all figures are made and written with, for one thread at a time."""
    with _ONE_AT_A_TIME, style.context(["default", _SETTINGS]):
        yield


def finish(figure: Figure) -> Figure:
    """Make sure that no text of a figure is read as mathematics; returns the figure."""
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    return figure


def write_figure(
    make: Callable[[], Figure], path: str | Path, *, formats: Sequence[str] = ("png", "svg"), force: bool = True
) -> list[Path]:
    """Make a figure and write PATH.png, PATH.svg and so on (a suffix of path that names a format is dropped).

    Each file appears whole or not at all. Without `force` an existing file is refused before anything is made.
    """
    files = figure_files(path, formats)
    refuse_in_the_way(files, force=force)
    with drawing_settings():
        figure = make()
        for file in files:
            try:
                with file_written_at_once(file) as new, new.open("wb") as stream:
                    _write(figure, stream, file.suffix.removeprefix("."))
            except OSError as error:
                raise _not_writable(file, error) from None
    return files


def figure_bytes(make: Callable[[], Figure], kind: str) -> bytes:
    """Make a figure and give what its file of one format would hold."""
    stream = io.BytesIO()
    with drawing_settings():
        _write(make(), stream, kind)
    return stream.getvalue()


def figure_files(path: str | Path, formats: Sequence[str]) -> list[Path]:
    """The files of a figure, one for each format.

    >>> [file.name for file in figure_files("map.svg", ["png", "pdf"])], figure_files("a.b", ["png"])[0].name
    (['map.png', 'map.pdf'], 'a.b.png')
    """
    for name in formats:
        if name not in FORMATS:
            raise OptionError(f"format {name!r} is not known; expected {', '.join(FORMATS)}")
    if not formats:
        raise OptionError(f"no format is given; expected one or more of {', '.join(FORMATS)}")
    target = Path(path)
    if target.suffix.lower().removeprefix(".") in FORMATS:
        target = target.with_suffix("")
    return [target.with_name(f"{target.name}.{name}") for name in dict.fromkeys(formats)]


def refuse_in_the_way(files: Sequence[Path], *, force: bool) -> None:
    """Raise StoreError for a file that exists already and may not be replaced, and for a directory of its name."""
    for file in files:
        try:
            is_folder, is_there = file.is_dir(), file.exists()
        except OSError as error:  # such as a name that is too long
            raise _not_writable(file, error) from None
        if is_folder:
            raise StoreError(f"{file}: cannot be written, as it is a directory; choose another --out")
        if is_there and not force:
            raise StoreError(f"{file}: exists already; choose another --out, or replace it with --force")


def _not_writable(file: Path, error: OSError) -> StoreError:
    return StoreError(f"{file}: the figure cannot be written ({error.strerror or error}); choose another place")


def _write(figure: Figure, stream: BinaryIO, kind: str) -> None:
    figure.savefig(stream, format=kind, dpi=DPI[kind], metadata=_METADATA[kind])
