"""Searches on disk: visited regions load unchanged, and damaged or foreign directories are refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import steadygaze
from steadygaze import Result, StoreError, load, verify
from steadygaze.results.array_file import write_arrays
from steadygaze.results.store import _checksum, _sha256

SQUARE = ["translate:dx=2:0..0.2", "brightness:-0.01..0.02"]
OPTIONS = {"delta": 3.0, "property": "ar"}


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    return {
        method: steadygaze.search("M-FNN-100", "mnist:69990", SQUARE, method=method, **OPTIONS)
        for method in ("bfs", "gbs", "boundary")
    }


@pytest.fixture(scope="module")
def stored(results: dict[str, Result], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("searches")
    return {method: result.save(place / method) for method, result in results.items()}


@pytest.fixture
def copy(stored: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored["boundary"], tmp_path / "copy"))


def refused(folder: Path) -> str:
    with pytest.raises(StoreError) as caught:
        load(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def reseal(folder: Path, edit: Callable[[dict], None] = lambda content: None) -> None:
    """Make hashes and checksum right again, as someone who forges a result would."""
    path = folder / "result.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["stored"]["files"] = {name: _sha256(folder / name) for name in content["stored"]["files"]}
    edit(content)
    content["checksum"] = _checksum(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def rewrite(folder: Path, edit: Callable[[dict[str, np.ndarray]], object]) -> None:
    with np.load(folder / "regions.npz") as file:
        arrays = {name: file[name] for name in file.files}
    edit(arrays)
    write_arrays(folder / "regions.npz", arrays)
    reseal(folder)


@pytest.mark.parametrize("method", ["bfs", "gbs", "boundary"])
def test_every_visited_region_comes_back(results, stored, method):
    result, again = results[method], load(stored[method])
    assert json.dumps(again.summary()) == json.dumps(result.summary())
    assert again.region_count == result.region_count > 3
    assert again.tiling.classification == [one.classification for one in result.tiling.visited]
    assert again.tiling.attention == [one.attention for one in result.tiling.visited]
    assert np.array_equal(again.tiling.arrays()["is_following"], [one.is_following for one in result.tiling.visited])
    assert np.array_equal(again.tiling.arrays()["inconsistency"], [one.inconsistency for one in result.tiling.visited])
    assert again.tiling.arrays()["volume"].sum() == pytest.approx(result.coverage, abs=1e-9)


def test_half_spaces_and_logits_are_in_theta(results, stored):
    result, again = results["bfs"], load(stored["bfs"])
    compound, graph = result.question.compound, result.question.model.graph
    for place, one in enumerate(result.tiling.visited):
        starts = again.tiling.arrays()["starts"]
        rows = again.tiling.arrays()["halfspaces"][starts[place] : starts[place + 1]]
        assert np.allclose(np.linalg.norm(rows[:, :-1], axis=1), 1.0)
        thetas = compound.to_theta(one.region.vertices)
        gaps = thetas @ rows[:, :-1].T + rows[:, -1]
        assert gaps.min() > -1e-9 and (np.abs(gaps) < 1e-9).any(axis=0).all()
        theta = again.tiling.arrays()["inside"][place]
        assert (rows[:, :-1] @ theta + rows[:, -1] > 0.0).all()
        logits = again.tiling.arrays()["logits"][place]
        expected = graph.logits(result.question.perturbed.image(theta)[None])[0]
        assert np.allclose(theta @ logits[:-1] + logits[-1], expected, atol=1e-9)


def test_regions_of_one_bfs_have_different_patterns(results, stored):
    arrays = load(stored["bfs"]).tiling.arrays()
    bounds = arrays["clip_starts"]
    keys = {
        int(cell).to_bytes(4, "big") + arrays["clip"][bounds[r] : bounds[r + 1]].tobytes() + row.tobytes()
        for r, (cell, row) in enumerate(zip(arrays["cell"], arrays["pattern"], strict=True))
    }
    assert keys == {one.region.key for one in results["bfs"].tiling.visited}


def test_components_name_their_regions(results, stored):
    result, arrays = results["boundary"], load(stored["boundary"]).tiling.arrays()
    assert result.tiling.components
    for number, part in enumerate(result.tiling.components):
        for is_inner, keys in ((1, part.inner), (0, part.outer)):
            chosen = (arrays["component"] == number) & (arrays["component_is_inner"] == is_inner)
            assert {result.tiling.visited[r].region.key for r in arrays["component_region"][chosen]} == keys


def test_the_same_search_gives_the_same_bytes(stored, tmp_path):
    again = steadygaze.search("M-FNN-100", "mnist:69990", SQUARE, method="boundary", **OPTIONS)
    again.save(tmp_path / "again")
    for name in ("result.json", "regions.npz", "image.npy"):
        assert (tmp_path / "again" / name).read_bytes() == (stored["boundary"] / name).read_bytes()


def test_an_empty_search_can_be_stored(tmp_path):
    budget = steadygaze.Budget()
    budget.cancelled.set()
    result = steadygaze.search("M-FNN-100", "mnist:69990", SQUARE, method="bfs", budget=budget, **OPTIONS)
    assert result.region_count == 0 and load(result.save(tmp_path / "empty")).region_count == 0


def test_maps_and_searches_are_told_apart(stored, tmp_path):
    verify("M-FNN-100", "mnist:69990", ["brightness:0..0.01"]).save(tmp_path / "map")
    assert (load(stored["gbs"]).method, load(tmp_path / "map").method) == ("gbs", "map")
    reseal(tmp_path / "map", lambda content: content.update(method="gbs"))
    assert "regions.npz" in refused(tmp_path / "map")
    forged = shutil.copytree(stored["gbs"], tmp_path / "search")
    reseal(forged, lambda content: content.update(method="map"))
    refused(forged)


@pytest.mark.parametrize("name", ["result.json", "regions.npz", "image.npy"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: path.write_bytes(path.read_bytes()[:-40] + b"x" + path.read_bytes()[-39:]),
    ],
)
def test_a_damaged_file_is_refused(copy, name, damage):
    damage(copy / name)
    refused(copy)


def test_resealing_alone_changes_nothing(copy):
    rewrite(copy, lambda arrays: None)
    load(copy)


def set_first(name: str, value: float) -> Callable[[dict[str, np.ndarray]], None]:
    def change(arrays: dict[str, np.ndarray]) -> None:
        arrays[name].flat[0] = value

    return change


@pytest.mark.parametrize(
    "edit",
    [
        lambda arrays: arrays.pop("margin"),
        lambda arrays: arrays.update(more=np.zeros(2)),
        lambda arrays: arrays.update(volume=arrays["volume"][:-1]),
        lambda arrays: arrays.update(volume=arrays["volume"].astype(np.int64)),
        lambda arrays: arrays.update(halfspaces=arrays["halfspaces"][:, :-1]),
        lambda arrays: arrays.update(logits=arrays["logits"][0]),
        *(
            set_first(name, value)
            for name, value in {
                "starts": 1, "clip_starts": -1, "cell": -1, "classification": 5, "attention": 3, "is_following": 2,
                "is_doubtful": 9, "component": 1000, "component_region": -1, "component_is_inner": 2, "volume": np.inf,
                "halfspaces": np.nan, "inside": np.nan, "logits": np.nan, "margin": np.nan,
            }.items()
        ),
    ],
)  # fmt: skip
def test_arrays_that_make_no_sense_are_refused(copy, edit):
    rewrite(copy, edit)
    assert "regions.npz" in refused(copy)


@pytest.mark.parametrize(
    "edit",
    [
        lambda content: content.update(visited=1),
        lambda content: content.pop("visited"),
        lambda content: content.update(domain=None),
        lambda content: content["sets"].update(IR=0),
        lambda content: content.update(components=[]),
    ],
)
def test_an_answer_that_does_not_fit_its_regions_is_refused(copy, edit):
    reseal(copy, edit)
    refused(copy)
