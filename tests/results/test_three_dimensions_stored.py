"""Results of three parameters: kept on disk and read again, single regions and thetas, damaged files refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from steadygaze import load
from steadygaze.api import verify
from steadygaze.budget import Budget, Limits
from steadygaze.errors import StoreError
from steadygaze.polytopes import Polyhedra
from steadygaze.results.array_file import write_arrays
from steadygaze.results.arrays import SHAPES, array_shapes, unpack_map
from steadygaze.results.result import Result
from steadygaze.results.store import _checksum, _sha256, save

SPECS = ["translate:dx=2:0.9..1.1", "patch:x=12,y=12,w=4,h=4:0.16..0.46", "brightness:0.1..0.2"]


@pytest.fixture(scope="module")
def result() -> Result:
    return verify("M-FNN-100", "mnist:69992", SPECS, delta="70%", threads=1)


@pytest.fixture(scope="module")
def folder(result: Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(result, tmp_path_factory.mktemp("stored") / "space")


def arrays_of(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, object]]:
    with np.load(folder / "regions.npz") as file:
        numbers = json.loads((folder / "result.json").read_text())["stored"]["map"]
        return {name: file[name] for name in file.files}, numbers


def test_the_stored_map_is_the_same(result: Result, folder: Path) -> None:
    again = load(folder)
    assert again.summary() == result.summary()
    for part in ("regions", "pieces"):
        ours, theirs = getattr(result.tiling.answers, part).polytopes, getattr(again.tiling.answers, part).polytopes
        assert isinstance(theirs, Polyhedra)
        for name in ("points", "starts", "facets", "facet_starts", "incidence"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=f"{part} {name}")
            assert getattr(ours, name).dtype == getattr(theirs, name).dtype
    for delta in (0.0, 3.0, "50%", "75%"):
        ours, theirs = result.with_delta(delta), again.with_delta(delta)
        assert ours.areas == theirs.areas and ours.answer.sets == theirs.answer.sets
        assert ours.answer.nearest["AR"].low == theirs.answer.nearest["AR"].low


def test_another_run_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    again = save(verify("M-FNN-100", "mnist:69992", SPECS, delta="70%", threads=2), tmp_path / "again")
    for name in ("regions.npz", "result.json"):
        assert (again / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.parametrize("regions", [0, 1])
def test_partial_maps_are_stored(regions: int, tmp_path: Path) -> None:
    """Stopped at once, and after the first knot cell."""
    budget = Budget(Limits(max_regions=1))
    if not regions:
        budget.cancelled.set()
    partial = verify("M-FNN-100", "mnist:69992", SPECS, delta="70%", threads=1, budget=budget)
    assert not partial.is_complete and (len(partial.tiling.answers.regions) > 0) == bool(regions)
    again = load(save(partial, tmp_path / "partial"))
    assert again.summary() == partial.summary()
    assert again.areas["undecided"][1] > 0.3
    if not regions:
        assert partial.region_at([1.0, 0.2, 0.15]) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("region_points", 1.5), ("region_starts", -4), ("region_facets", 10**6), ("region_facets", 0),
        ("region_facet_starts", 1), ("region_incidence", 1 << 40), ("region_incidence", -1),
        ("part_incidence", 1 << 62), ("part_facets", 10**6), ("part_facet_starts", 2), ("part_starts", 1),
        ("part_points", np.nan),
    ],
)  # fmt: skip
def test_a_map_with_wrong_entries_is_refused(result: Result, folder: Path, name: str, value: float) -> None:
    arrays, numbers = arrays_of(folder)
    unpack_map(arrays, numbers, result.question)
    arrays[name] = arrays[name].astype(array_shapes(3)[name][0])
    arrays[name].flat[0] = value
    with pytest.raises(StoreError, match=f"the array {name} "):
        unpack_map(arrays, numbers, result.question)


@pytest.mark.parametrize("name", [name for name in array_shapes(3) if name not in ("clips", "witnesses")])
def test_a_map_with_a_wrong_shape_is_refused(result: Result, folder: Path, name: str) -> None:
    arrays, numbers = arrays_of(folder)
    arrays[name] = arrays[name][:-1] if len(arrays[name]) else np.zeros((3, *arrays[name].shape[1:]))
    with pytest.raises(StoreError, match="the array"):
        unpack_map(arrays, numbers, result.question)


def test_too_few_words_are_refused(result: Result, folder: Path) -> None:
    arrays, numbers = arrays_of(folder)
    arrays["region_incidence"] = arrays["region_incidence"][:, :0]
    with pytest.raises(StoreError, match="the array region_incidence"):
        unpack_map(arrays, numbers, result.question)


def test_the_map_of_two_parameters_is_refused_for_three(folder: Path, tmp_path: Path) -> None:
    forged = Path(shutil.copytree(folder, tmp_path / "forged"))
    flat = save(verify("M-FNN-100", "mnist:69992", SPECS[1:], delta="70%"), tmp_path / "flat")
    with np.load(flat / "regions.npz") as file:
        assert set(file.files) == set(SHAPES)
        write_arrays(forged / "regions.npz", {name: file[name] for name in file.files})
    content = json.loads((forged / "result.json").read_text())
    content["stored"]["files"] = {name: _sha256(forged / name) for name in content["stored"]["files"]}
    content["checksum"] = _checksum(content)
    (forged / "result.json").write_text(json.dumps(content))
    with pytest.raises(StoreError, match="does not hold the arrays"):
        load(forged)


def test_single_thetas_and_regions(result: Result) -> None:
    domain, graph = result.tiling.answers.compound.domain, result.question.model.graph
    for share in np.random.default_rng(5).random((40, 3)):
        theta = domain.low + share * domain.widths
        number = result.region_at(theta)
        assert number is not None
        region = result.regions[number]
        logits = graph.logits(result.question.perturbed.image(theta)[None])[0]
        np.testing.assert_allclose(region.logits(theta), logits, atol=1e-9)
        assert (region.polygon.min(axis=0) <= theta + 1e-9).all() and (theta <= region.polygon.max(axis=0) + 1e-9).all()
        assert region.polygon.shape[1] == 3
        point = result.at(theta)
        assert region.inconsistency[0] - 1e-9 <= point.inconsistency <= region.inconsistency[1] + 1e-9
        assert (region.classification == "CR") <= (point.margin > 0)
    assert sum(region.area for region in result.regions) == pytest.approx(1.0)
    assert result.region_at(domain.low) is not None and result.region_at(domain.high) is not None
    assert result.tiling.answers.regions.polytopes.deepest(np.array([0.5, 0.5, 1.1])) is None


def test_witnesses_are_replayed(result: Result) -> None:
    assert [witness.kind.value for witness in result.witnesses] == ["label", "attention", "right label, other evidence"]
    for witness in result.witnesses:
        assert witness.replay.agrees and witness.map_check.agrees is not False and len(witness.point.theta) == 3
