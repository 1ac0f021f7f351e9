"""The inputs of a plan: files by name, folder or glob, expected labels, and the questions of presets.

`PlanFits` finds which images fit which models, after the `fit`, `grey` and `rgb` of a run. Nothing is solved here.
"""

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from glob import glob, has_magic
from pathlib import Path

import numpy as np

from .. import zoo
from ..errors import ImageError, ModelError, OptionError
from ..image_fit import CHANNELS, GREY, RGB, ImageFit
from ..images import read_image
from ..inputs import read_fitting
from ..network.layout import ReadOptions
from ..presets.lists import find_preset
from .plan_tables import plan_words
from .stored_campaign import PlannedImage, PlannedModel, image_file

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".npy")
MODEL_ENDINGS = (".onnx",)
FOLDER = "folder"
"""The value of `expect` that takes the name of the folder around each image."""
IMAGE_COLUMNS, LABEL_COLUMN = ("image", "file", "filename", "path", "name"), "label"

Shape = tuple[int, ...]
COLOURS = {1: "grey", 3: "RGB"}


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


def preset_combinations(
    presets: Sequence[str], sizes: Sequence[tuple[int, ...]], known: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """The questions of presets for images of these sizes (height, width): specs by names other than those known.

    >>> list(preset_combinations(["dirt"], [(28, 28)], []))[:2]
    ['dirt-dark-spot', 'dirt-bright-spot']
    """
    found: dict[str, tuple[str, ...]] = {}
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
    return found


@lru_cache(maxsize=1)
def pixels_of(image: PlannedImage) -> np.ndarray:
    """The pixels (C, H, W) of an image as it is."""
    return read_image(image_file(image.location)).pixels


class PlanFits:
    """The images of a plan as its models take them; remembers those that do not fit."""

    def __init__(self) -> None:
        self._inputs: dict[tuple[str, Shape], Shape | None] = {}
        self._seen: dict[str, set[str]] = {}
        self._misfits: dict[str, dict[str, Shape]] = {}
        self._last: tuple[tuple[str, ...], np.ndarray] | None = None

    def input_shape(self, model: PlannedModel, shape: Shape) -> Shape | None:
        """The shape (C, H, W) that a model takes, for an image of a shape; None if the model is not supported."""
        if (model.name, shape) not in self._inputs:
            options = ReadOptions(
                None if model.mean is None else list(model.mean), None if model.std is None else list(model.std),
                model.scale, model.output,
            )  # fmt: skip
            bundled = {one.name: one.path for one in zoo.models()}
            path = bundled.get(model.location, Path(model.location))
            try:
                self._inputs[model.name, shape] = read_fitting(path, shape, options).input_shape
            except (ModelError, OptionError):
                self._inputs[model.name, shape] = None
        return self._inputs[model.name, shape]

    def fitted(self, model: PlannedModel, image: PlannedImage, options: Mapping[str, str]) -> np.ndarray | None:
        """The pixels that a problem verifies; None if the model is not supported. ImageError if the image cannot fit.

        The error speaks the words of plans.
        """
        asked = [options[name] for name in ("fit", GREY, RGB)]
        if not any(asked) and _is_made_for(model, image):
            return pixels_of(image)
        key = (model.name, image.name, *asked)
        if self._last is None or self._last[0] != key:
            found = self._fit(model, image, ImageFit.of(asked[0], grey=asked[1], rgb=asked[2]))
            if found is None:
                return None
            self._last = key, found
        return self._last[1]

    def _fit(self, model: PlannedModel, image: PlannedImage, fit: ImageFit) -> np.ndarray | None:
        try:
            pixels, _ = fit.prepare(pixels_of(image), image.name)
        except ImageError as error:
            raise ImageError(plan_words(str(error))) from None
        taken = self.input_shape(model, pixels.shape)
        if taken is None:
            return None
        channels, height, width = taken
        self._seen.setdefault(model.name, set()).add(image.name)
        pixels, _ = fit.finish(pixels, (channels, height, width))
        if pixels.shape != taken:
            self._misfits.setdefault(model.name, {})[image.name] = pixels.shape
            found, asked = _shape_text(pixels.shape), _shape_text(taken)
            raise ImageError(f"is {found}, but the model takes {asked}; {_advice(pixels.shape, taken)}")
        return pixels

    def notes(self) -> Iterator[str]:
        """One line for each model that some images do not fit."""
        for model, misfits in self._misfits.items():
            taken = next(shape for (name, _), shape in self._inputs.items() if name == model and shape is not None)
            sizes = {shape[1:] for shape in misfits.values()} - {taken[1:]}
            other = [shape for shape in misfits.values() if shape[0] != taken[0]]
            kinds = [f"{len(sizes):,} other size{'s' * (len(sizes) != 1)}"] if sizes else []
            kinds += [f"{len(other):,} {COLOURS.get(other[0][0], 'of other channels')}"] if other else []
            worst = (other[0][0] if other else taken[0], *(next(iter(sizes)) if sizes else taken[1:]))
            yield (
                f"{len(misfits):,} of {len(self._seen[model]):,} images do not fit {model}, which takes "
                f"{_shape_text(taken)}: {', '.join(kinds)}; {_advice(worst, taken)}"
            )


def _is_made_for(model: PlannedModel, image: PlannedImage) -> bool:
    """Whether both are bundled, and of the same set."""
    sets = {one.name: one.dataset for one in zoo.models()}
    return zoo.is_reference(image.location) and image.location.partition(":")[0] == sets.get(model.location)


def _shape_text(shape: Shape) -> str:
    """A shape for people.

    >>> _shape_text((3, 20, 30)), _shape_text((4, 2, 2))
    ('30 × 20 in RGB', '2 × 2 in 4 channels')
    """
    return f"{shape[2]} × {shape[1]} in {COLOURS.get(shape[0], f'{shape[0]} channels')}"


def _advice(shape: Shape, taken: Shape) -> str:
    """The remedy: an addition to the plan.

    >>> _advice((3, 20, 30), (1, 28, 28))
    'add fit = "pad" (or "crop", "resize") and grey = true to [[runs]]'
    """
    wanted = ['fit = "pad" (or "crop", "resize")'] if shape[1:] != taken[1:] else []
    if shape[0] != taken[0]:
        flag = next((name for name, channels in CHANNELS.items() if channels == taken[0]), None)
        if flag is None or shape[0] not in COLOURS:
            return f"give images with {taken[0]} channels"
        wanted.append(f"{flag} = true")
    return f"add {' and '.join(wanted)} to [[runs]]"
