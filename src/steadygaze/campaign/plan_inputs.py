"""The inputs of a plan: its files by name, folder or glob, the labels expected of images, and the questions of presets.

Reads no pixels.
"""

import csv
import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path
from typing import NamedTuple

from .. import zoo
from ..errors import OptionError
from ..presets.lists import find_preset

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".npy")
MODEL_ENDINGS = (".onnx",)
FOLDER = "folder"
"""The value of `expect` that takes the name of the folder around each image."""
IMAGE_COLUMNS, LABEL_COLUMN = ("image", "file", "filename", "path", "name"), "label"


def find_files(folder: Path, text: str, endings: Sequence[str]) -> list[tuple[str, Path]]:
    """Names and paths of the files of a text, sorted: a file, a folder with all its folders, or a glob.

    Names start with the text, or match it. In folders and globs, only files with one of the endings count, and hidden
    ones do not.
    """
    path = folder / text
    if path.is_dir():
        inside = [Path(place) / name for place, _, names in os.walk(path) for name in names]
        found = [(Path(text) / file.relative_to(path), file) for file in inside if not _is_hidden(file, path)]
    elif has_magic(text) and not path.exists():
        found = [(Path(name), folder / name) for name in _glob(folder, text)]
    else:
        return [(text, path)]
    wanted = [(name.as_posix(), file) for name, file in found if file.suffix.lower() in endings and file.is_file()]
    return sorted(wanted)


def find_models(folder: Path, text: str) -> list[tuple[str, Path | None]]:
    """Names of the models of a text, sorted, with their files; bundled networks, by name or glob, have none here."""
    bundled = [model.name for model in zoo.models()]
    if text in bundled:
        return [(text, None)]
    if has_magic(text) and not (folder / text).exists() and any(fnmatchcase(name, text) for name in bundled):
        return [(name, None) for name in bundled if fnmatchcase(name, text)]
    if not has_magic(text) and not (folder / text).exists() and not text.endswith(MODEL_ENDINGS):
        zoo.model_path(text)  # says which bundled network has such a name
    files = find_files(folder, text, MODEL_ENDINGS)
    for name, file in files:
        if not file.is_file():
            raise OptionError(f"{name}: no such file; expected an .onnx file, a folder, a glob, or a bundled network")
    if not files:
        raise OptionError(f"{text} holds no model; expected files that end with {', '.join(MODEL_ENDINGS)}")
    return list(files)


class ExpectedLabels:
    """The labels expected of images, from the text of `expect`: `folder`, `FILE.csv`, `FILE.csv:COLUMN`, or a label."""

    def __init__(self, folder: Path, text: str | None) -> None:
        self.text = text
        self._table: dict[str, str] | None = None
        start, dot, rest = (text or "").partition(".csv")
        if dot and (not rest or rest.startswith(":")):
            self._table = _read_table(folder / f"{start}.csv", rest[1:] or LABEL_COLUMN)

    def of(self, name: str) -> str | None:
        """The label of an image by its name in the plan; None if none is expected."""
        if self.text is None:
            return None
        if self.text == FOLDER:
            parent = Path(name).parent.name
            if zoo.is_reference(name) or not parent:
                raise OptionError(f"expect = {FOLDER!r}: {name} lies in no folder whose name could be its label")
            return parent
        if self._table is None:
            return self.text
        # The whole name comes first: several folders may hold files of the same name.
        for spelling in (name, Path(name).name):
            if spelling in self._table:
                return self._table[spelling]
        raise OptionError(f"expect = {self.text!r}: has no row for {name}; add one, or leave the image out")


def _read_table(path: Path, column: str) -> dict[str, str]:
    """Labels by the images of a CSV file: whole names, and the ends of paths that only one row has."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            heads = [head or "" for head in reader.fieldnames or ()]
            rows = [{key: (value or "").strip() for key, value in row.items() if key} for row in reader]
    except OSError as error:
        raise OptionError(f"{path.name}: cannot be read ({error.strerror}); expected a CSV file with labels") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise OptionError(f"{path.name}: cannot be read as CSV in UTF-8 ({error})") from None
    if column not in heads:
        raise OptionError(f"{path.name}: has no column {column!r}; it has {', '.join(heads) or 'none'}")
    images = next((head for head in IMAGE_COLUMNS if head in heads and head != column), None)
    if images is None:
        raise OptionError(f"{path.name}: has no column of images; expected one called {', '.join(IMAGE_COLUMNS)}")
    labels: dict[str, set[str]] = {}
    for number, row in enumerate(rows, start=2):
        name, label = row.get(images, ""), row.get(column, "")
        if not name or not label:
            raise OptionError(f"{path.name}: line {number} lacks an image or a label")
        whole = Path(name).as_posix()
        labels.setdefault(whole, set()).add(label)
        if Path(name).name != whole:
            labels.setdefault(Path(name).name, set()).add(label)
        if len(labels[whole]) > 1:
            raise OptionError(f"{path.name}: line {number} gives {name} another label than a line before")
    return {name: next(iter(found)) for name, found in labels.items() if len(found) == 1}


def _glob(folder: Path, pattern: str) -> list[str]:
    # Unlike Path.glob, this takes absolute patterns and leaves hidden files out.
    return glob(pattern, root_dir=folder, recursive=True)  # noqa: PTH207


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


class PresetCombinations(NamedTuple):
    """Specs by the names of combinations, and notes on questions that cannot be asked."""

    combinations: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]


def preset_combinations(
    presets: Sequence[str], sizes: Sequence[tuple[int, ...]], known: Sequence[str]
) -> PresetCombinations:
    """The questions of presets for images of these sizes (height, width), named apart from the known combinations.

    >>> list(preset_combinations(["dirt"], [(28, 28)], []).combinations)[:2]
    ['dirt-dark-spot', 'dirt-bright-spot']
    """
    found: dict[str, tuple[str, ...]] = {}
    notes: list[str] = []
    if presets and len(set(sizes)) != 1:
        raise OptionError(
            f"a preset needs images of one size, these have {len(set(sizes))}; write a plan for each size"
        )
    for text in presets:
        preset = find_preset(text)
        for question in preset.questions:
            name = f"{preset.name}-{question.name}"
            if name in known or name in found:
                raise OptionError(f"combination {name} occurs twice; leave one out")
            height, width = sizes[0]
            found[name] = question.specs(height, width)
        for question in preset.awaited:
            notes.append(f"{preset.name}-{question.name} is left out: no family {question.keywords[0]} yet")
    return PresetCombinations(found, tuple(notes))
