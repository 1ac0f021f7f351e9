"""A result without the names of files, for reports that are given away. Class names, sizes and hashes stay."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from ..perturbation import Perturbation, compose
from ..perturbation.fields import FileArray
from ..question import Question
from .result import Result

MODEL, IMAGE, MASK, FILE = "model", "image", "mask", "file"
"""The words in place of names."""


def redacted(result: Result) -> Result:
    """The same result about a question whose model, image, mask and other files have no names."""
    return replace(result, question=_redacted_question(result.question))


def _redacted_question(question: Question) -> Question:
    model, attention, perturbed = question.model, question.attention, question.perturbed
    names = _names(question)
    if attention.mask is not None and not attention.mask.text.startswith("auto"):
        attention = replace(attention, mask=replace(attention.mask, text=MASK))
    return replace(
        question,
        model=replace(model, name=MODEL, path=Path(MODEL), notes=_scrubbed(model.notes, names)),
        perturbed=compose([_without_files(one) for one in perturbed.perturbations], perturbed.x0),
        attention=attention,
        model_name=MODEL,
        image_name=IMAGE,
        image_notes=_scrubbed(question.image_notes, names),
    )


def _names(question: Question) -> dict[str, str]:
    """The texts that stand for files, with the words in their place; longer ones first."""
    path, mask = question.model.path, question.attention.mask
    found = {str(path): MODEL, os.path.realpath(path): MODEL, path.name: MODEL, question.model_name: MODEL}
    found |= {question.image_name: IMAGE}
    if mask is not None:
        found[mask.text] = MASK
    for one in question.perturbed.perturbations:
        for file in _files(one).values():
            found |= {file.name: FILE, Path(file.name).name: FILE}
    return {text: found[text] for text in sorted(found, key=len, reverse=True) if text}


def _scrubbed(notes: Sequence[str], names: dict[str, str]) -> tuple[str, ...]:
    """Notes without names.

    >>> _scrubbed(["secret.onnx: was moved"], {"secret.onnx": "model"})
    ('model: was moved',)
    """
    return tuple(_replaced(note, names.items()) for note in notes)


def _replaced(note: str, names: Iterable[tuple[str, str]]) -> str:
    for text, word in names:
        note = note.replace(text, word)
    return note


def _files(perturbation: Perturbation) -> dict[str, FileArray]:
    """The fields of a perturbation that come from files."""
    if not is_dataclass(perturbation):
        return {}
    values: dict[str, Any] = {field.name: getattr(perturbation, field.name) for field in fields(perturbation)}
    return {name: value for name, value in values.items() if isinstance(value, FileArray)}


def _without_files(perturbation: Any) -> Perturbation:
    unnamed = {name: replace(file, name="") for name, file in _files(perturbation).items()}
    return replace(perturbation, **unnamed) if unnamed else perturbation
