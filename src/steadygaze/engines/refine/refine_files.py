"""Refinements in files: a result into a directory as for maps, a directory into the same result, and rows of an export.

Damaged or foreign files, and arrays that do not fit each other, are refused.
"""

from collections.abc import Mapping
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ...attention.inconsistency import original_maps
from ...errors import OptionError, StoreError
from ...labels import Kept, Property, Stop
from ...network.model import Agreement
from ...polytopes import Cut
from ...question import Question
from ...regions.check import CheckedMap
from ...results import store
from ...results.arrays import array_shapes, check_range, pack, read_arrays, require, shaped
from ...results.export import ATTENTIONS, LABELS, Block, Part, Table, exact_part, make_table, shape_columns
from ...results.rebuild import read_pixels, rebuild_answers, rebuild_question, refusing_damage, stored_delta
from ...tolerances import AREA
from .boxes import Boxes, State
from .refine_result import RefineResult

BOX_SHAPES: dict[str, tuple[type, tuple[int | str, ...]]] = {
    "box_cell": (np.int64, ("boxes",)),
    "box_low": (np.float64, ("boxes", "coordinates")),
    "box_high": (np.float64, ("boxes", "coordinates")),
    "box_sides": (np.int64, ("boxes", "coordinates", 2)),
    "box_margin": (np.float64, ("boxes", 2)),
    "box_inconsistency": (np.float64, ("boxes", 2)),
    "box_state": (np.uint8, ("boxes",)),
    "box_cuts": (np.int32, ("box cuts", 3)),
}
"""Type in memory and shape of every array of `Boxes`, in order; a word is a size."""

SHAPES = BOX_SHAPES | {"points": (np.float64, ("points", "axes")), "box_of": (np.int64, ("regions",))}
"""Likewise of all arrays beside those of the exact regions; without these there is no `box_of`."""

ENCLOSURES = ("box_margin", "box_inconsistency")


def save_refine(result: RefineResult, directory: str | Path, *, force: bool = False) -> Path:
    """Store a refinement in a new directory, atomically; its bytes depend on question, limits and versions alone."""
    store.check_directory(directory, force=force)
    stored = result.question.stored(result.delta) | {
        "versions": store.current_versions(),
        "agreement": asdict(result.agreement),
        "checked": asdict(result.checked),
        "map": None if result.answers is None else store.single_numbers(result.answers.regions),
    }
    arrays, seconds = pack_refine(result), result.seconds
    return store.write_result(directory, result.summary(), stored, arrays, result.question, seconds, force=force)


def load_refine(directory: str | Path, *, model: str | Path | None = None) -> RefineResult:
    """The stored refinement; answers for any δ, `.at(theta)` and figures work as after the run.

    The model is read again from its old path, or from `model`; its hash must be the same. Raises StoreError.
    """
    folder = Path(directory)
    content = _read(folder)
    with refusing_damage(folder):
        return _rebuild(content, folder, rebuild_question(content, folder / store.PIXELS, model=model))


def load_to_resume(directory: str | Path, question: Question) -> RefineResult:
    """The stored refinement of a question, to be resumed; OptionError if it answers another one.

    Model, image, perturbations, comparison of attention, property and δ must be the same.
    """
    folder = Path(directory)
    content = _read(folder)
    with refusing_damage(folder):
        different = _differences(content, folder, question)
        earlier = None if different else _rebuild(content, folder, question)
    if earlier is None:
        raise OptionError(
            f"--resume {folder}: it answers another question (not the same: {', '.join(different)}); ask that one, or "
            "leave --resume out"
        )
    return earlier


def pack_refine(result: RefineResult) -> dict[str, np.ndarray]:
    """Boxes, violations and exact regions as named arrays."""
    arrays = {name: getattr(result.boxes, name.removeprefix("box_")) for name in BOX_SHAPES}
    arrays["points"] = result.points.reshape(len(result.points), result.question.compound.domain.dimension)
    if result.answers is None:
        return arrays
    answers = result.answers
    return arrays | {"box_of": result.box_of} | pack(answers.regions, answers.pieces, answers.curves)


def _read(folder: Path) -> dict[str, Any]:
    content = store.read_checked(folder)
    if not store.is_refinement(content):
        raise StoreError(
            f"{folder}: holds no refinement (its method is {content.get('method', 'map')}); give the directory of one"
        )
    return content


def _differences(content: dict[str, Any], folder: Path, question: Question) -> list[str]:
    """The parts of the stored question that differ from the given one."""
    asked, stored = question.describe(), question.stored(question.delta)
    model, kept = stored["model"], content["stored"]["model"]
    is_prepared = all(model[name] == kept[name] for name in ("mean", "std", "scale"))
    same = {
        "the model": asked["model"]["sha256"] == content["model"]["sha256"] and is_prepared,
        "the image": np.array_equal(read_pixels(folder / store.PIXELS), question.perturbed.x0),
        "the perturbations": asked["domain"] == content["domain"],
        "filter, distance or classes": asked["attention"] == content["attention"],
        "the property": question.property.value == content["property"],
        "δ": stored["delta"] == content["stored"]["delta"],
    }
    return [name for name, is_same in same.items() if not is_same]


def _rebuild(content: dict[str, Any], folder: Path, question: Question) -> RefineResult:
    stored, compound = content["stored"], question.compound
    is_measured, has_exact = question.property is not Property.CR, stored["map"] is not None
    names = [name for name in SHAPES if has_exact or name != "box_of"]
    if has_exact:
        version = content["schema_version"]
        names += list(array_shapes(compound.coordinates, is_measured=is_measured, version=version))
    arrays = read_arrays(folder / store.MAP, names)
    try:
        checked, boxes = _checked_boxes(arrays, question, has_exact=has_exact)
    except StoreError as error:
        raise StoreError(f"{folder / store.MAP}: {error}") from None
    answers = None
    if has_exact:
        size = float(content["delta"]["map_size"])
        answers = rebuild_answers(arrays, stored["map"], question, size, folder / store.MAP, is_measured=is_measured)
    return RefineResult(
        question=question, boxes=boxes, answers=answers, box_of=checked.get("box_of", np.zeros(0, dtype=np.int64)),
        delta=stored_delta(content), original=original_maps(compound, question.attention),
        agreement=Agreement(**stored["agreement"]), checked=CheckedMap(**stored["checked"]),
        until="exact" if content["until"] == "exact" else float(content["until"]),
        goal="verdict" if content["goal"] == "verdict" else "map",
        stopped=None if content["stopped"] is None else Stop(content["stopped"]),
        seconds=store.read_seconds(folder), points=checked["points"], relaxation=str(content["relaxation"]),
    )  # fmt: skip


def _checked_boxes(
    arrays: Mapping[str, np.ndarray], question: Question, *, has_exact: bool
) -> tuple[dict[str, np.ndarray], Boxes]:
    """The arrays of the boxes in their types, once they fit each other and the problem; raises StoreError."""
    compound = question.compound
    sizes = {"coordinates": compound.coordinates, "axes": compound.domain.dimension}
    if has_exact:
        sizes["regions"] = len(arrays["cell"])
    checked = {
        name: shaped(name, arrays[name], shape, sizes, may_be_infinite=name in ENCLOSURES)
        for name, shape in SHAPES.items()
        if name in arrays
    }
    boxes = Boxes(**{name.removeprefix("box_"): checked[name] for name in BOX_SHAPES})
    check_range("box_cell", boxes.cell, 0, len(compound.cells))
    check_range("box_state", boxes.state, 0, len(State))
    check_range("box_cuts", boxes.cuts[:, 0], 0, len(Cut))
    check_range("box_sides", np.abs(boxes.sides), 1, len(boxes.cuts) + 1)
    first = Boxes.of(compound).cuts
    require(np.array_equal(boxes.cuts[: len(first)], first), "box_cuts", "does not begin with borders and knots")
    require(((boxes.low >= 0.0) & (boxes.low < boxes.high) & (boxes.high <= 1.0)).all(), "box_low", "has an empty box")
    require(abs(float(boxes.volumes.sum()) - 1.0) <= AREA, "box_low", "does not tile the domain")
    for name in ENCLOSURES:
        require((checked[name][:, 0] <= checked[name][:, 1]).all(), name, "has an empty enclosure")
    is_exact = boxes.state == State.EXACT
    require(has_exact or not is_exact.any(), "box_state", "has exact boxes, but there are no regions")
    if has_exact:
        check_range("box_of", checked["box_of"], 0, len(boxes))
        require(is_exact[checked["box_of"]].all(), "box_of", "names boxes that are not exact")
        shared = arrays["cuts"][: len(boxes.cuts)]
        require(np.array_equal(shared, boxes.cuts), "cuts", "does not begin with those of the boxes")
    return checked, boxes


def refine_table(result: RefineResult, what: str) -> Table:
    """The rows of an export: boxes that are not EXACT, then exact regions or their pieces."""
    exact = result.answer.exact
    parts = () if exact is None else (exact_part(exact, what, is_measured=result.is_measured),)
    return make_table(result, what, (_box_part(result), *parts))


def _box_part(result: RefineResult) -> Part:
    """The boxes that are not EXACT; each has one label, so it is its own piece."""
    answer, boxes, domain = result.answer, result.boxes, result.question.compound.domain
    chosen, volumes = answer.bounded, boxes.volumes
    low, high = (domain.low + ends[:, : domain.dimension] * domain.widths for ends in (boxes.low, boxes.high))
    # As for regions: rounding must not lead out of the domain.
    low, high = (np.clip(ends, domain.low, domain.high) for ends in (low, high))

    def make(start: int, stop: int) -> Block:
        rows = chosen[start:stop]
        label, attention = answer.label_codes[rows], answer.attention_codes[rows]
        columns: Block = {
            "kind": ["box"] * len(rows),
            "number": rows,
            "classification": LABELS[label].tolist(),
            "attention": ATTENTIONS[attention].tolist(),
            "winner": np.where(label == Kept.YES, result.label, -1),
            "share": volumes[rows],
            "label_open": np.where(label == Kept.UNKNOWN, volumes[rows], 0.0),
            "attention_open": np.where(attention == Kept.UNKNOWN, volumes[rows], 0.0),
            "margin_low": boxes.margin[rows, 0],
            "margin_high": boxes.margin[rows, 1],
            "inconsistency_low": boxes.inconsistency[rows, 0],
            "inconsistency_high": boxes.inconsistency[rows, 1],
            "delta": np.full(len(rows), answer.delta),
        }
        if not result.is_measured:
            unknown = ("attention_open", "inconsistency_low", "inconsistency_high")
            columns |= dict.fromkeys(unknown, np.full(len(rows), np.nan)) | {"attention": [None] * len(rows)}
        corners = _corners(low[rows], high[rows])
        starts, inside = corners.shape[1] * np.arange(len(rows) + 1), 0.5 * (low[rows] + high[rows])
        return columns | shape_columns(corners.reshape(-1, domain.dimension), starts, inside)

    return Part(len(chosen), make)


def _corners(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The corners (B, 2^d, d) of boxes from low (B, d) to high (B, d), counter-clockwise in the plane.

    >>> _corners(np.zeros((1, 2)), np.ones((1, 2)))[0].tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    """
    sides = np.array(list(product((False, True), repeat=low.shape[1])))
    corners = np.where(sides, high[:, None], low[:, None])
    return corners[:, [0, 2, 3, 1]] if low.shape[1] == 2 else corners
