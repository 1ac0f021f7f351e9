"""From what a directory holds to the result again: the question from `result.json`, the map from its arrays.

Reads the model from where it was and compares its hash. Integrity of the files is checked before (see `store`); here,
whether they fit each other and the model.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .. import zoo
from ..attention.filters import Filter
from ..attention.inconsistency import original_maps
from ..attention.map_errors import MapErrors
from ..attention.methods import Method
from ..attention.options import AttentionOptions, Distance
from ..errors import SteadygazeError, StoreError
from ..images import MAX_PIXELS, fit_image
from ..labels import Property
from ..network.model import Agreement, Model, read_model
from ..perturbation import compose, parse_spec
from ..question import Question, Threshold
from ..regions.check import CheckedMap
from .answer import Answers
from .arrays import OLDER, SCHEMA_VERSION, array_shapes, read_arrays, unpack_map
from .result import Result


def rebuild(
    content: dict[str, Any],
    map_path: Path,
    pixels_path: Path,
    *,
    seconds: dict[str, float],
    model: str | Path | None = None,
) -> Result:
    """The result that was stored; raises StoreError where its parts do not fit each other."""
    with refusing_damage(map_path.parent):
        question = rebuild_question(content, pixels_path, model=model)
        stored = content["stored"]
        delta, size = stored_delta(content), float(content["delta"]["map_size"])
        agreement, checked = Agreement(**stored["agreement"]), CheckedMap(**stored["checked"])
        shapes = array_shapes(question.compound.coordinates, version=content["schema_version"])
        arrays = read_arrays(map_path, list(shapes))
        answers = rebuild_answers(arrays, stored["map"], question, size, map_path)
    original = original_maps(question.compound, question.attention)
    return Result(question, answers, delta, original, agreement, checked, seconds)


def rebuild_question(content: dict[str, Any], pixels_path: Path, *, model: str | Path | None = None) -> Question:
    """The question that was stored, with its model read again from where it was, or from `model`."""
    pixels, folder = read_pixels(pixels_path), pixels_path.parent
    network = _read_model(content, pixels, folder, model)
    question = _problem(content, network, pixels)
    if question.label != content["label"]:
        raise StoreError(f"{folder}: the label is {question.label} now and was {content['label']}; run again")
    return question


def rebuild_answers(
    arrays: Mapping[str, np.ndarray],
    numbers: Mapping[str, Any],
    question: Question,
    size: float,
    path: Path,
    *,
    is_measured: bool = True,
) -> Answers:
    """The regions of a result with everything that is known of them, from arrays that were read from a path."""
    try:
        regions, pieces, curves = unpack_map(arrays, numbers, question, is_measured=is_measured)
    except StoreError as error:
        raise StoreError(f"{path}: {error}") from None
    compound = question.compound
    errors = None
    if curves is not None:
        errors = MapErrors(compound, regions.patterns, curves, question.attention, question.original_doubt)
    return Answers(compound, regions, pieces, curves, errors, size)


def stored_delta(content: dict[str, Any]) -> Threshold:
    """The threshold that was asked for."""
    stored = content["stored"]["delta"]
    return Threshold(float(stored["number"]), bool(stored["is_relative"]))


@contextmanager
def refusing_damage(folder: Path) -> Iterator[None]:
    """Turn what goes wrong while a result is rebuilt into a StoreError that names its directory."""
    try:
        yield
    except StoreError:
        raise
    except SteadygazeError as error:
        raise StoreError(f"{folder}: cannot restore the stored question: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:120]
        raise StoreError(
            f"{folder}: result.json is not complete ({reason}); the result is damaged: run the verification again"
        ) from None


def _problem(content: dict[str, Any], model: Model, pixels: np.ndarray) -> Question:
    stored, attention = content["stored"], content["attention"]
    perturbed = compose([parse_spec(str(spec)) for spec in content["domain"]["specs"]], pixels)
    classes = None if attention["classes"] == "all" else tuple(int(number) for number in attention["classes"])
    names = tuple(str(name) for name in stored["class_names"])
    if len(names) != model.classes or not all(0 <= number < model.classes for number in classes or ()):
        raise ValueError(f"{len(names)} class names and classes {classes} for {model.classes} logits")
    return Question(
        model=model,
        perturbed=perturbed,
        attention=AttentionOptions(
            Filter.parse(attention["filter"]),
            Distance.parse(str(attention["distance"])),
            classes,
            Method.parse(attention.get("method", "gradient")),
        ),
        property=Property(content["property"]),
        delta=stored_delta(content),
        names=names,
        image_name=str(content["image"]["name"]),
        model_name=str(content["model"]["name"]),
        image_notes=(
            *(str(note) for note in stored["image_notes"]),
            *([OLDER] if content["schema_version"] < SCHEMA_VERSION else []),
        ),
    )


def _read_model(content: dict[str, Any], pixels: np.ndarray, folder: Path, given: str | Path | None) -> Model:
    """The model, from where it is said to be, if its hash is the same."""
    stored, digest = content["stored"]["model"], content["model"]["sha256"]
    mend = f"put the file with SHA-256 {digest[:12]}… there, or run the verification again"
    if given is not None:
        path = Path(given)
    elif stored["bundled"] is not None:
        path = zoo.model_path(str(stored["bundled"]))
    else:
        path = Path(str(stored["path"]))
    if not path.is_file():
        raise StoreError(f"{folder}: its model is no longer at {os.fspath(path)}; {mend}")
    try:
        model = read_model(
            path, image_shape=pixels.shape, mean=stored["mean"], std=stored["std"], scale=float(stored["scale"])
        )
    except SteadygazeError as error:
        raise StoreError(f"{folder}: its model at {os.fspath(path)} has changed: {error}; {mend}") from None
    if model.sha256 != digest:
        raise StoreError(f"{folder}: its model at {os.fspath(path)} has changed since; {mend}")
    fit_image(pixels, model.input_shape, "image.npy")
    return model


def read_pixels(path: Path) -> np.ndarray:
    """The stored image (C, H, W)."""
    try:
        # Mapped, so that a header with absurd dimensions fails on the size of the file before anything is allocated.
        pixels = np.load(path, mmap_mode="r", allow_pickle=False)
        if pixels.dtype != np.float64 or pixels.ndim != 3 or not 0 < pixels.size <= 4 * MAX_PIXELS:
            raise ValueError(f"{pixels.shape} of {pixels.dtype}")
        return np.array(pixels)
    except (OSError, ValueError, EOFError) as error:
        reason = " ".join(str(error).split())[:200]
        raise StoreError(f"{path}: is not an image of a result ({reason}); run the verification again") from None
