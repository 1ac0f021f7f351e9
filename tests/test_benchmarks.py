"""The benchmarks run, fail on what is wrong, and measure what they say they measure."""

import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np
import pytest

import reference_splitter
from affine_pass import pass_at
from as_printed.question import forward
from steadygaze import api
from steadygaze.labels import Kept
from timing import Spread, Stopwatch, clock, clocked, commit, machine, print_table, write_json

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
PATCH = "patch:x=12,y=12,w=4,h=4"


def load(name: str) -> ModuleType:
    """A benchmark by its path: `regions` is also a folder of tests. The environment that it sets is put back."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(os.environ):
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def regions():
    return load("regions")


@pytest.fixture(scope="module")
def one_map():
    return load("one_map")


def crossing_lines():
    """Logit ReLU(x − 1/4) + ReLU(y − 1/2) on the unit square: four regions."""
    return [
        (np.eye(2), np.array([-0.25, -0.5])),
        (np.array([[1.0, 1.0]]), np.zeros(1)),
    ]


def write_task(folder: Path, expected: int) -> None:
    layers = crossing_lines()
    arrays = {f"{kind}{i}": part for i, layer in enumerate(layers) for kind, part in zip("Wb", layer, strict=True)}
    np.savez(folder / "tiny.npz", **arrays)
    (folder / "tasks.json").write_text(json.dumps({"_": "made by a test", "tiny": {"regions": expected}}))


def run_regions(regions, folder: Path, *arguments: str) -> int:
    out = str(folder / "regions.json")
    return regions.main([*arguments, "--pairs", "1", "--folder", str(folder), "--out", out])


def test_regions_writes_what_it_measured(regions, tmp_path, monkeypatch, capsys):
    write_task(tmp_path, expected=4)
    monkeypatch.setitem(regions.TARGETS, "tiny", 1e9)
    assert run_regions(regions, tmp_path) == 0
    stored = json.loads((tmp_path / "regions.json").read_text())
    (row,) = stored["rows"]
    assert {"question", "commit", "machine", "repetitions"} <= stored.keys()
    assert (row["task"], row["regions"], row["problems"]) == ("tiny", 4, [])
    assert row["times_faster"]["median"] == pytest.approx(row["reference_seconds"]["median"] / row["seconds"]["median"])
    assert 0.0 < row["walk_seconds"]["median"] < row["seconds"]["median"]
    assert row["is_met"] is False
    assert "missed" in capsys.readouterr().out


def test_regions_fails_on_a_wrong_count(regions, tmp_path, capsys):
    write_task(tmp_path, expected=5)
    assert run_regions(regions, tmp_path, "tiny") == 1
    printed = capsys.readouterr()
    assert "WRONG" in printed.out
    assert "tiny: WRONG: 4 regions, 5 expected" in printed.err


def test_regions_fails_on_a_wrong_reference(regions, tmp_path, monkeypatch, capsys):
    write_task(tmp_path, expected=4)
    monkeypatch.setitem(regions.TARGETS, "tiny", 1)
    monkeypatch.setattr(reference_splitter, "regions", lambda layers: [])
    assert run_regions(regions, tmp_path) == 1
    assert "the reference has 0 regions" in capsys.readouterr().err


def test_regions_sees_wrong_logits_behind_a_right_count(regions):
    layers = crossing_lines()
    found = regions.enumerate_regions(layers)
    assert regions.complaints(layers, found, 4) == []
    found.logits[2] += 1e-6
    assert regions.complaints(layers, found, 4) == ["the logits of 1 regions differ from a forward pass"]


def test_regions_names_the_tasks_that_exist(regions, tmp_path):
    write_task(tmp_path, expected=4)
    with pytest.raises(SystemExit, match=r"no task huge .* expected some of: tiny"):
        run_regions(regions, tmp_path, "huge")


def test_kept_tasks_are_complete_and_counted_right(regions):
    tasks = regions.load_tasks(regions.TASKS, [])
    assert set(regions.TARGETS) < set(tasks)
    solid = regions.load_tasks(regions.TASKS, [], dimension=3)
    assert {path.stem for path in regions.TASKS.glob("*.npz")} == set(tasks) | set(solid)
    assert {layers[0][0].shape[1] for layers, _ in tasks.values()} == {2}
    assert {layers[0][0].shape[1] for layers, _ in solid.values()} == {3}
    for name in ("w50d2", "w50d2-dup", "w50d2-zb"):
        layers, expected = tasks[name]
        assert regions.complaints(layers, regions.enumerate_regions(layers), expected) == []


@pytest.fixture(scope="module")
def solids():
    return load("solids")


def write_solid_task(folder: Path, expected: int) -> None:
    """Logit Σ ReLU(x_i − 1/4) on the unit cube: eight regions."""
    np.savez(folder / "cube.npz", W0=np.eye(3), b0=np.full(3, -0.25), W1=np.ones((1, 3)), b1=np.zeros(1))
    write_task(folder, expected=4)
    entries = json.loads((folder / "tasks.json").read_text()) | {"cube": {"regions": expected, "dimension": 3}}
    (folder / "tasks.json").write_text(json.dumps(entries))


def run_solids(solids, folder: Path, *images: str) -> int:
    out = str(folder / "solids.json")
    return solids.main(["--pairs", "1", "--folder", str(folder), "--out", out, "--images", *images])


def test_solids_writes_what_it_measured(solids, tmp_path, monkeypatch, capsys):
    write_solid_task(tmp_path, expected=8)
    monkeypatch.setitem(solids.PUBLISHED, "cube", solids.Published(1e-9, "tiny", (0.5, 2.0)))
    monkeypatch.setattr(solids, "SPECS", ("translate:dx=1:0..0.1", PATCH, "brightness:0..0.1"))
    assert run_solids(solids, tmp_path, "mnist:69991") == 0
    stored = json.loads((tmp_path / "solids.json").read_text())
    (row,), (image,) = stored["rows"], stored["maps"]
    assert (row["task"], row["regions"], row["problems"], row["is_met"]) == ("cube", 8, [], False)
    assert row["scaled_seconds"]["median"] == pytest.approx(1e-9 * row["reference_seconds"]["median"] / 2.0)
    assert 0.0 < row["walk_seconds"]["median"] < row["seconds"]["median"]
    assert image["regions"] > 1 and image["problems"] == [] and image["tiling_error"] < 1e-9
    assert "missed" in capsys.readouterr().out


def test_solids_fails_on_a_wrong_count(solids, tmp_path, capsys):
    write_solid_task(tmp_path, expected=9)
    assert run_solids(solids, tmp_path) == 1
    assert "cube: WRONG: 8 regions, 9 expected" in capsys.readouterr().err


def test_solids_fails_on_a_map_that_fails_its_check(solids, tmp_path, monkeypatch, capsys):
    def refuse(*_):
        raise solids.InternalError("self-check failed")

    write_solid_task(tmp_path, expected=8)
    monkeypatch.setattr(solids, "SPECS", ("translate:dx=1:0..0.1", PATCH, "brightness:0..0.1"))
    monkeypatch.setattr(solids, "check_map", refuse)
    assert run_solids(solids, tmp_path, "mnist:69991") == 1
    assert "mnist:69991: WRONG: self-check failed" in capsys.readouterr().err


def test_reference_finds_the_regions_of_a_task_in_general_position(regions):
    layers, expected = regions.load_tasks(regions.TASKS, ["w50d2"])["w50d2"]
    cells = reference_splitter.regions(layers)
    assert len(cells) == expected
    for polygon, slope, offset in cells[::40]:
        middle = polygon.mean(axis=0)
        hidden = middle
        for weight, bias in layers[:-1]:
            hidden = np.maximum(weight @ hidden + bias, 0.0)
        np.testing.assert_allclose(slope @ middle + offset, hidden, atol=1e-12)


@pytest.mark.parametrize("model", ["M-FNN-100", "M-CNN-S"])
@pytest.mark.parametrize("perturbations", [("brightness", PATCH), ("translate:dy=1", "brightness")])
def test_pass_of_the_affine_form_gives_the_logits(model, perturbations):
    question = api.make_problem(model, "mnist:69990", perturbations)
    for theta in np.random.default_rng(3).random((3, 2)):
        forms = pass_at(question, theta).logits()
        logits = question.model.graph.logits(question.perturbed.image(theta)[None])[0]
        np.testing.assert_allclose(forms @ np.append(theta, 1.0), logits, rtol=1e-10, atol=1e-10)


def test_printed_search_is_asked_the_same_question(one_map):
    question = one_map.make_problem("M-FNN-100", "TB", "mnist:69990")
    printed = one_map.printed_problem(question)
    assert printed.label == question.label
    for theta in np.random.default_rng(4).random((3, 2)):
        logits = question.model.graph.logits(question.perturbed.image(theta)[None])[0]
        np.testing.assert_allclose(forward(printed.layers, theta)[1], logits, rtol=1e-9, atol=1e-9)
    cell = question.perturbed.cells[0]
    maps = printed.expected.reshape(-1, *question.perturbed.x0.shape)
    offset, slope = question.perturbed.transport(maps, cell)
    source = printed.translation.source
    moved = np.where(source >= 0, printed.expected[:, source], 0.0).reshape(maps.shape)
    np.testing.assert_allclose(maps + offset + slope, moved, atol=1e-12)


@pytest.fixture(scope="module")
def small_result():
    specs = ("translate:dy=1:0..0.2", "brightness:0..0.2")
    return api.verify("M-FNN-100", "mnist:69990", specs, delta=3.0, threads=1)


def test_sampled_thetas_find_no_contradiction(one_map, small_result):
    found, compared = one_map.contradictions(small_result, 50)
    assert found == []
    assert compared >= 45


@pytest.mark.parametrize("planted", ["winner", "attention", "lost piece"])
def test_sampled_thetas_find_a_planted_contradiction(one_map, small_result, planted):
    result = small_result.with_delta(3.0)
    pieces = result.answer.joint.pieces
    if planted == "winner":
        before = pieces.winner.copy()
        pieces.winner[:] = (before + 1) % 10
        found, _ = one_map.contradictions(result, 5)
        pieces.winner[:] = before
        assert "wins at" in found[0]
    elif planted == "attention":
        codes = result.answer.joint.attention
        codes[:] = np.where(codes == Kept.YES, Kept.NO, Kept.YES)
        found, _ = one_map.contradictions(result, 5)
        assert "but ai =" in found[0]
    else:
        polygons = result.answer.joint.polytopes
        before = polygons.points.copy()
        polygons.points[:] = 2.0
        found, compared = one_map.contradictions(result, 5)
        polygons.points[:] = before
        assert compared == 0
        assert "0 pieces hold theta" in found[0]


def test_map_derives_ratios_and_marks_missed_targets():
    row = {
        "model": "M", "domain": "BP", "image": "i", "regions": 1000, "patterns": 10, "problems": [],
        "seconds": {name: {"median": 0.5} for name in ("engine", "with_check", *load("map").STAGES)},
        "pass_seconds": {"median": 5e-4}, "region_per_pass": {"median": 1.0, "low": 0.9, "high": 1.1},
        "peak_mib": 300.0, "printed": {"popped": 8, "queued": 3, "seconds": 20.0},
    }  # fmt: skip
    module = load("map")
    full = module.compared(row)
    assert full["regions_per_second"] == 2000.0
    assert full["times_printed"] == pytest.approx(5000.0)
    assert full["is_met"] == {"region_per_pass": False, "peak_mib": True, "times_printed": False}
    cells = module.shown(full)
    assert cells["times printed"] == "5,000!"
    assert cells["peak MiB"] == "300"
    assert cells["region/pass"].endswith("!")
    assert module.shown_stages(full)["walk"] == "500.0"


def test_map_fails_when_a_measurement_does(tmp_path, capsys):
    module = load("map")
    failed = {"model": "M", "domain": "BP", "image": "i", "problems": ["3 regions after 4"]}
    with mock.patch.object(module, "run_one", return_value=failed):
        code = module.main(["--models", "M", "--domains", "BP", "--out", str(tmp_path / "map.json")])
    printed = capsys.readouterr()
    assert code == 1
    assert "WRONG" in printed.out
    assert "3 regions after 4" in printed.err
    assert json.loads((tmp_path / "map.json").read_text())["rows"] == [failed]


def test_one_map_measures_every_stage(one_map):
    question = api.make_problem("M-FNN-100", "mnist:69990", ("brightness:0..0.05", PATCH), delta=3.0)
    result, seconds = one_map.time_map(question)
    parts = [seconds[name] for name in load("map").STAGES]
    assert len(result.answers.regions) > 1
    assert min(parts) > 0.0
    assert sum(parts) == pytest.approx(seconds["engine"])
    assert seconds["with_check"] > seconds["engine"]


def test_clocked_adds_up_and_puts_the_function_back():
    owner = ModuleType("owner")
    owner.double = original = lambda number: 2 * number
    watch = Stopwatch()
    with clocked(watch, double=owner):
        assert [owner.double(3), owner.double(4)] == [6, 8]
    assert owner.double is original
    assert watch.lap("double") > 0.0
    assert watch.lap("double") == 0.0


def test_spread_table_and_json(tmp_path, capsys):
    spread = Spread.of([clock(lambda: None)[0], 2.0, 1.0])
    assert (spread.median, spread.high, spread.repetitions) == (1.0, 2.0, 3)
    assert f"{Spread(1.0, 0.5, 2.0, 3):.1f}" == "1.0 (0.5–2.0)"
    print_table([{"name": "a", "number": "1"}, {"name": "long", "number": "1,000"}])
    assert capsys.readouterr().out.splitlines() == ["name  number", "a          1", "long   1,000"]
    write_json(tmp_path / "new" / "out.json", "what?", repetitions=3, rows=[{"seconds": spread}])
    stored = json.loads((tmp_path / "new" / "out.json").read_text())
    assert stored["rows"][0]["seconds"]["median"] == 1.0
    assert stored["commit"] == commit()
    assert stored["machine"]["cores"] == machine()["cores"] >= 1
