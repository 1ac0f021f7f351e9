"""Refinements on disk: a result into a directory as for maps, and a directory into the same result, to go on from.

`regions.npz` holds the boxes with their enclosures, the thetas that were found, and the exact regions as a map does.
Files are never trusted: what is damaged, foreign or does not fit is refused.
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..attention.inconsistency import original_maps
from ..errors import OptionError, StoreError
from ..network.model import Agreement
from ..problem import Problem
from ..regions.check import CheckedMap
from ..regions.region import Cut
from ..results.archive import read_arrays
from ..results.arrays import array_shapes, check_range, pack, require, shaped
from ..results.rebuild import read_pixels, rebuild_answers, rebuild_problem, refusing_damage, stored_delta
from ..results.store import (
    MAP,
    PIXELS,
    check_directory,
    describe_stored,
    is_refinement,
    read_checked,
    read_seconds,
    single_numbers,
    write_result,
)
from ..results.summary import describe_question
from ..tolerances import AREA
from ..verdict import Property
from .boxes import Boxes, State
from .outcome import RefineResult, Until
from .summary import summarise_refine

SHAPES: dict[str, tuple[type, tuple[int | str, ...]]] = {
    "box_cell": (np.int64, ("boxes",)),
    "box_low": (np.float64, ("boxes", "coordinates")),
    "box_high": (np.float64, ("boxes", "coordinates")),
    "box_sides": (np.int64, ("boxes", "coordinates", 2)),
    "box_margin": (np.float64, ("boxes", 2)),
    "box_inconsistency": (np.float64, ("boxes", 2)),
    "box_state": (np.uint8, ("boxes",)),
    "box_cuts": (np.int32, ("box cuts", 3)),
    "points": (np.float64, ("points", "axes")),
    "box_of": (np.int64, ("regions",)),
}
"""Type in memory and shape of every array beside those of the exact regions; a word is a size."""

ENCLOSURES = ("box_margin", "box_inconsistency")


def save_refine(result: RefineResult, directory: str | Path, *, force: bool = False) -> Path:
    """Store a refinement in a new directory, all or nothing; returns its path. With `force` a result is replaced.

    The bytes of `result.json` and `regions.npz` depend on the question, the limits and the versions alone.
    """
    check_directory(directory, force=force)
    return write_result(
        directory,
        summarise_refine(result),
        _stored(result),
        pack_refine(result),
        result.problem,
        result.seconds,
        force=force,
    )


def load_refine(directory: str | Path, *, model: str | Path | None = None) -> RefineResult:
    """The stored refinement; answers for any δ, `.at(theta)` and figures work as after the run.

    The model is read again from where it was, or from `model`; its hash must be the same. Raises StoreError.
    """
    folder = Path(directory)
    content = _read(folder)
    with refusing_damage(folder):
        return _rebuild(content, folder, rebuild_problem(content, folder / PIXELS, model=model))


def load_to_resume(directory: str | Path, problem: Problem) -> RefineResult:
    """The stored refinement of a question, to go on from; OptionError where it answers another one.

    Model, image, perturbations, how attention is compared, property and δ must be the same.
    """
    folder = Path(directory)
    content = _read(folder)
    with refusing_damage(folder):
        different = _differences(content, folder, problem)
    if different:
        raise OptionError(
            f"--resume {folder}: it answers another question (not the same: {', '.join(different)}); ask that one, or "
            "leave --resume out"
        )
    with refusing_damage(folder):
        return _rebuild(content, folder, problem)


def pack_refine(result: RefineResult) -> dict[str, np.ndarray]:
    """Boxes, thetas and exact regions as named arrays."""
    boxes = result.boxes
    names = [name.removeprefix("box_") for name in SHAPES if name.startswith("box_") and name != "box_of"]
    arrays = {f"box_{name}": getattr(boxes, name) for name in names}
    arrays["points"] = result.points.reshape(len(result.points), result.problem.compound.domain.dimension)
    if result.answers is None:
        return arrays
    answers = result.answers
    return arrays | {"box_of": result.box_of} | pack(answers.regions, answers.pieces, answers.curves)


def _read(folder: Path) -> dict[str, Any]:
    content = read_checked(folder)
    if not is_refinement(content):
        raise StoreError(
            f"{folder}: holds no refinement (its method is {content.get('method', 'map')}); give the directory of one"
        )
    return content


def _stored(result: RefineResult) -> dict[str, Any]:
    return describe_stored(result.problem, result.delta) | {
        "agreement": asdict(result.agreement),
        "checked": asdict(result.checked),
        "map": None if result.answers is None else single_numbers(result.answers.regions),
    }


def _differences(content: dict[str, Any], folder: Path, problem: Problem) -> list[str]:
    """What of the stored question is not as in the given one."""
    asked, stored = describe_question(problem), describe_stored(problem, problem.delta)
    model, kept = stored["model"], content["stored"]["model"]
    is_prepared = all(model[name] == kept[name] for name in ("mean", "std", "scale"))
    pixels = read_pixels(folder / PIXELS)
    same = {
        "the model": asked["model"]["sha256"] == content["model"]["sha256"] and is_prepared,
        "the image": np.array_equal(pixels, problem.perturbed.x0),
        "the perturbations": asked["domain"] == content["domain"],
        "filter, distance or classes": asked["attention"] == content["attention"],
        "the property": problem.property.value == content["property"],
        "δ": stored["delta"] == content["stored"]["delta"],
    }
    return [name for name, is_same in same.items() if not is_same]


def _rebuild(content: dict[str, Any], folder: Path, problem: Problem) -> RefineResult:
    stored, compound = content["stored"], problem.compound
    is_measured, has_exact = problem.property is not Property.CR, stored["map"] is not None
    names = list(SHAPES) if has_exact else [name for name in SHAPES if name != "box_of"]
    if has_exact:
        version = content["schema_version"]
        names += list(array_shapes(compound.coordinates, is_measured=is_measured, version=version))
    arrays = read_arrays(folder / MAP, names)
    try:
        checked, boxes = _checked_boxes(arrays, problem, has_exact=has_exact)
    except StoreError as error:
        raise StoreError(f"{folder / MAP}: {error}") from None
    answers = None
    if has_exact:
        size = float(content["delta"]["map_size"])
        answers = rebuild_answers(arrays, stored["map"], problem, size, folder / MAP, is_measured=is_measured)
    return RefineResult(
        problem=problem,
        boxes=boxes,
        answers=answers,
        box_of=checked.get("box_of", np.zeros(0, dtype=np.int64)),
        delta=stored_delta(content),
        original=original_maps(compound, problem.attention),
        agreement=Agreement(**stored["agreement"]),
        checked=CheckedMap(**stored["checked"]),
        until=_until(content["until"]),
        goal="verdict" if content["goal"] == "verdict" else "map",
        stopped=None if content["stopped"] is None else str(content["stopped"]),
        seconds=read_seconds(folder),
        points=checked["points"],
        relaxation=str(content["relaxation"]),
    )


def _until(value: Any) -> Until:
    return "exact" if value == "exact" else float(value)


def _checked_boxes(
    arrays: Mapping[str, np.ndarray], problem: Problem, *, has_exact: bool
) -> tuple[dict[str, np.ndarray], Boxes]:
    """The arrays of the boxes in their types, once they fit each other and the problem; raises StoreError."""
    compound = problem.compound
    sizes = {"coordinates": compound.coordinates, "axes": compound.domain.dimension}
    if has_exact:
        sizes["regions"] = len(arrays["cell"])
    checked = {
        name: shaped(name, arrays[name], shape, sizes, may_be_infinite=name in ENCLOSURES)
        for name, shape in SHAPES.items()
        if name in arrays
    }
    boxes = Boxes(**{name.removeprefix("box_"): checked[name] for name in checked if name not in ("points", "box_of")})
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
    require(
        has_exact or not (boxes.state == State.EXACT).any(), "box_state", "has exact boxes, but there are no regions"
    )
    if has_exact:
        check_range("box_of", checked["box_of"], 0, len(boxes))
        require((boxes.state[checked["box_of"]] == State.EXACT).all(), "box_of", "names boxes that are not exact")
        shared = arrays["cuts"][: len(boxes.cuts)]
        require(np.array_equal(shared, boxes.cuts), "cuts", "does not begin with those of the boxes")
    return checked, boxes
