"""A comparison on disk: one file, or a directory with its numbers and its picture in every format."""

import json
import os
from pathlib import Path
from typing import Any

from ..errors import StoreError
from ..report import FORMATS
from ..results.directory import check_file, file_written_at_once, written_at_once
from .figure import draw_comparison
from .outcome import Comparison

NAME = "comparison"
"""Name of the files inside a directory, without ending."""

NUMBERS = "json"
FILES = tuple(f"{NAME}.{ending}" for ending in (NUMBERS, *FORMATS))


def check_place(path: str | Path, *, force: bool = False) -> Path:
    """Refuse, before anything is computed, what `save_comparison` would refuse afterwards; returns the place."""
    target = Path(os.path.realpath(path))
    if _ending(target) in (NUMBERS, *FORMATS):
        return check_file(target, force=force)
    try:
        if target.exists() and not target.is_dir():
            raise StoreError(f"{path}: is a file; name a directory, or a file that ends in .json, .png, .svg or .pdf")
        if target.exists() and not force:
            raise StoreError(f"{path}: exists already; choose another --out, or replace it with --force")
        others = [inside.name for inside in sorted(target.iterdir())] if target.exists() else []
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror or error}); choose another --out") from None
    strangers = [name for name in others if name not in FILES]
    if strangers:
        raise StoreError(
            f"{path}: holds {strangers[0]!r}, which is not of a comparison and --force would delete; choose another "
            "--out"
        )
    return target


def save_comparison(comparison: Comparison, path: str | Path, *, force: bool = False) -> list[Path]:
    """Write a file that ends in .json, .png, .svg or .pdf, or all four into a directory; returns what was written."""
    target = check_place(path, force=force)
    try:
        if _ending(target) == NUMBERS:
            with file_written_at_once(target) as new:
                _write_numbers(comparison.summary(), new)
            return [Path(path)]
        if _ending(target) in FORMATS:
            draw_comparison(comparison, target, force=force)
            return [Path(path)]
        with written_at_once(target, replaces=force) as folder:
            _write_numbers(comparison.summary(), folder / f"{NAME}.{NUMBERS}")
            draw_comparison(comparison, folder / NAME)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror or error}); choose another --out") from None
    return [Path(path) / name for name in FILES]


def _ending(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def _write_numbers(summary: dict[str, Any], path: Path) -> None:
    # ASCII alone: a file name that is not text would otherwise not be writable as UTF-8.
    path.write_text(json.dumps(summary, indent=2, allow_nan=False) + "\n", encoding="ascii")
