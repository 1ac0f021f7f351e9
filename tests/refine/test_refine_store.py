"""Refinements on disk: they load unchanged, with the same bytes, and files that do not fit are refused."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from steadygaze.api import load
from steadygaze.attention.methods import GradientMethod
from steadygaze.engines.refine.refine_engine import _earlier
from steadygaze.engines.refine.refine_tiling import RefineTiling
from steadygaze.errors import OptionError, StoreError
from steadygaze.labels import Stop
from steadygaze.question import make_question
from steadygaze.results import store
from steadygaze.results.array_file import write_arrays
from steadygaze.results.result import Result
from support.stand_ins.made_up_refinements import LINE, MOVING, PLANE, four, full_map, made, with_tiling

RESULTS: dict[str, Callable[[], Result]] = {
    "boxes": lambda: made(PLANE, 6, thetas=((1.0, 0.0),)),
    "exact cell": lambda: made(MOVING, 6, (1,)),
    "label alone": lambda: made(MOVING, 4, (1,), property="cr"),
    "one parameter": lambda: made(LINE, 4),
    "four parameters": four,
    "partial": lambda: with_tiling(made(PLANE, 2), stopped=Stop("timeout of 1 s"), until="exact", goal="verdict"),
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("refined")
    return {name: make().save(place / name.replace(" ", "-")) for name, make in RESULTS.items()}


@pytest.mark.parametrize("name", RESULTS)
def test_loading_restores_the_stored_result(name: str, stored: dict[str, Path]):
    result, again = RESULTS[name](), load(stored[name])
    assert again.method == "refine" and isinstance(again.tiling, RefineTiling)
    known = store.read_summary(stored[name]).plain()
    assert json.dumps(again.summary()) == json.dumps(result.summary()) == json.dumps(known)
    before, after = result.tiling.arrays(), again.tiling.arrays()
    assert list(before) == list(after)
    for key in before:
        np.testing.assert_array_equal(before[key], after[key], err_msg=key)
    assert (again.tiling.until, again.tiling.goal, again.stopped) == (
        result.tiling.until,
        result.tiling.goal,
        result.stopped,
    )
    if result.is_measured:
        assert again.with_delta("60%").areas == result.with_delta("60%").areas


def test_the_same_result_gives_the_same_bytes(stored: dict[str, Path], tmp_path: Path):
    load(stored["exact cell"]).save(tmp_path / "again")
    for name in ("result.json", "regions.npz", "image.npy"):
        assert (tmp_path / "again" / name).read_bytes() == (stored["exact cell"] / name).read_bytes()


def test_maps_and_refinements_are_told_apart(stored: dict[str, Path], tmp_path: Path):
    whole = full_map(LINE, property="both", delta="25%")
    mapped = whole.save(tmp_path / "map")
    assert (load(stored["boxes"]).method, load(mapped).method) == ("refine", "map")
    with pytest.raises(StoreError, match="holds a result of method map, which cannot be resumed"):
        _earlier(mapped, whole.question)
    with pytest.raises(OptionError, match="a refinement of the same question"):
        _earlier(whole, whole.question)


class Contrast(GradientMethod):
    """Maps of logits less their mean."""

    name: ClassVar[str] = "contrast"

    def targets(self, classes: int) -> np.ndarray:
        return np.eye(classes) - 1.0 / classes


def test_only_the_same_question_is_resumed(stored: dict[str, Path]):
    question = made(PLANE, 6).question
    again = _earlier(stored["boxes"], question)
    assert again.question is question and len(again.boxes) == 64 and len(again.points) == 1

    def ask(model: str = "M-FNN-100", image: str = "mnist:69990", specs: tuple[str, ...] = PLANE, **options: str):
        return make_question(model, image, list(specs), **options)

    for other, word in (
        (ask(model="M-FNN-200"), "the model"),
        (ask(image="mnist:69991"), "the image"),
        (ask(specs=("brightness:0..0.9", PLANE[1])), "the perturbations"),
        (ask(dist="l1"), "filter, distance or classes"),
        (replace(question, attention=replace(question.attention, method=Contrast())), "the explanation method"),
        (ask(property="ar"), "the property"),
        (ask(delta="3.0"), "δ"),
        (ask(scale=255.0), "the model"),
    ):
        with pytest.raises(OptionError) as caught:
            _earlier(stored["boxes"], other)
        message = str(caught.value)
        assert f"different: {word}" in message and "another question" in message and "\n" not in message


DAMAGE: dict[str, tuple[str, Callable[[np.ndarray], None]]] = {
    "a box of another cell": ("box_cell", lambda cell: cell.__setitem__(0, 7)),
    "an empty box": ("box_high", lambda high: high.__setitem__((0, 0), 0.0)),
    "a box too large": ("box_low", lambda low: low.__setitem__(slice(None), 0.0)),
    "a side without a cut": ("box_sides", lambda sides: sides.__setitem__((0, 0, 0), 9999)),
    "no side at all": ("box_sides", lambda sides: sides.__setitem__((0, 0, 0), 0)),
    "an unknown state": ("box_state", lambda state: state.__setitem__(0, 9)),
    "NaN": ("box_margin", lambda margin: margin.__setitem__((0, 0), np.nan)),
    "bounds the wrong way round": ("box_inconsistency", lambda bounds: bounds.__setitem__((0, 0), 1e9)),
    "other borders": ("box_cuts", lambda cuts: cuts.__setitem__((0, 2), 1)),
    "exact boxes without regions": ("box_state", lambda state: state.__setitem__(0, 2)),
    "a theta that is none": ("points", lambda points: points.__setitem__((0, 0), np.inf)),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_crafted_boxes_are_refused(what: str, stored: dict[str, Path], tmp_path: Path):
    folder = Path(shutil.copytree(stored["boxes"], tmp_path / "copy"))
    name, spoil = DAMAGE[what]
    with np.load(folder / store.MAP) as file:
        arrays = {key: file[key] for key in file.files}
    spoil(arrays[name])
    write_arrays(folder / store.MAP, arrays)
    content = json.loads((folder / store.ANSWER).read_text())
    content["stored"]["files"][store.MAP] = store._sha256(folder / store.MAP)
    (folder / store.ANSWER).write_text(json.dumps(content | {"checksum": store._checksum(content)}))
    with pytest.raises(StoreError) as caught:
        load(folder)
    assert "\n" not in str(caught.value) and "regions.npz" in str(caught.value)
