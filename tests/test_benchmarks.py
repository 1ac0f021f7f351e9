"""The benchmarks run on the package as it is, and a wrong count, label or share fails them."""

import importlib
import json
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import affine_pass
import boundaries
import map as map_benchmark
import one_map
import paper_problems
import refine
import refine_check
import regions
import solids
from as_printed.question import forward
from steadygaze import api
from steadygaze.engines import run
from steadygaze.labels import Kept, Property
from steadygaze.question import make_question

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(path.stem for path in BENCHMARKS.glob("*.py"))
PATCH = "patch:x=12,y=12,w=4,h=4"


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_can_be_imported(name):
    if "torch" in (BENCHMARKS / f"{name}.py").read_text(encoding="utf-8"):
        pytest.importorskip("torch")
    assert importlib.import_module(name).__doc__


# Counts of regions, in two and three dimensions


def crossing_lines(dimension: int = 2) -> list[tuple[np.ndarray, np.ndarray]]:
    """Logit Σ ReLU(x_i − (1 + i)/4) on the unit box: 2^d regions."""
    return [
        (np.eye(dimension), -(1.0 + np.arange(dimension)) / 4.0),
        (np.ones((1, dimension)), np.zeros(1)),
    ]


def write_tasks(folder: Path, **expected: int) -> None:
    """A task for each name, with the number of regions that the benchmark expects."""
    entries: dict = {"_": "made by a test"}
    for name, count in expected.items():
        dimension = 3 if name == "cube" else 2
        layers = crossing_lines(dimension)
        arrays = {f"{kind}{i}": part for i, layer in enumerate(layers) for kind, part in zip("Wb", layer, strict=True)}
        np.savez(folder / f"{name}.npz", **arrays)
        entries[name] = {"regions": count, "dimension": dimension}
    (folder / "tasks.json").write_text(json.dumps(entries))


def run_regions(folder: Path) -> int:
    return regions.main(["--pairs", "1", "--folder", str(folder), "--out", str(folder / "regions.json")])


def test_regions_counts_and_compares_with_the_reference(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(regions.TARGETS, "tiny", 1e9)
    write_tasks(tmp_path, tiny=4)
    assert run_regions(tmp_path) == 0
    (row,) = json.loads((tmp_path / "regions.json").read_text())["rows"]
    assert (row["task"], row["regions"], row["problems"], row["is_met"]) == ("tiny", 4, [], False)
    write_tasks(tmp_path, tiny=5)
    assert run_regions(tmp_path) == 1
    assert "WRONG: tiny: 4 regions, 5 expected" in capsys.readouterr().err
    write_tasks(tmp_path, tiny=4)
    monkeypatch.setattr(regions.reference_splitter, "regions", lambda layers: [])
    assert run_regions(tmp_path) == 1
    assert "the reference has 0 regions" in capsys.readouterr().err


def test_regions_sees_wrong_logits_behind_a_right_count():
    layers = crossing_lines()
    found = regions.enumerate_regions(layers)
    assert regions.complaints(layers, found, 4) == []
    found.logits[2] += 1e-6
    assert regions.complaints(layers, found, 4) == ["the logits of 1 regions differ from a forward pass"]


def test_every_task_is_read():
    plane, solid = regions.load_tasks(regions.TASKS, []), regions.load_tasks(regions.TASKS, [], dimension=3)
    assert set(regions.TARGETS) < set(plane)
    assert {path.stem for path in regions.TASKS.glob("*.npz")} == set(plane) | set(solid)


def test_solids_counts_and_checks_the_map_of_an_image(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(solids.PUBLISHED, "cube", solids.Published(1e-9, "tiny", (0.5, 2.0)))
    monkeypatch.setattr(solids, "SPECS", ("translate:dx=1:0..0.1", PATCH, "brightness:0..0.1"))

    def run(*images: str) -> int:
        out = str(tmp_path / "solids.json")
        return solids.main(["--pairs", "1", "--folder", str(tmp_path), "--out", out, "--images", *images])

    write_tasks(tmp_path, tiny=4, cube=8)
    assert run("mnist:69991") == 0
    stored = json.loads((tmp_path / "solids.json").read_text())
    (row,), (image,) = stored["rows"], stored["maps"]
    assert (row["task"], row["regions"], row["problems"]) == ("cube", 8, [])
    assert image["regions"] > 1 and image["problems"] == [] and image["tiling_error"] < 1e-9
    write_tasks(tmp_path, tiny=4, cube=9)
    assert run() == 1
    assert "WRONG: cube: 8 regions, 9 expected" in capsys.readouterr().err

    def refuse(*_):
        raise solids.InternalError("self-check failed")

    write_tasks(tmp_path, tiny=4, cube=8)
    monkeypatch.setattr(solids, "check_map", refuse)
    assert run("mnist:69991") == 1
    assert "WRONG: mnist:69991: self-check failed" in capsys.readouterr().err


def test_reference_finds_the_regions_of_a_task_in_general_position():
    layers, expected = regions.load_tasks(regions.TASKS, ["w50d2"])["w50d2"]
    cells = regions.reference_splitter.regions(layers)
    assert len(cells) == expected
    for polygon, slope, offset in cells[::40]:
        middle = polygon.mean(axis=0)
        hidden = middle
        for weight, bias in layers[:-1]:
            hidden = np.maximum(weight @ hidden + bias, 0.0)
        np.testing.assert_allclose(slope @ middle + offset, hidden, atol=1e-12)


# Maps of images


@pytest.mark.parametrize("model", ["M-FNN-100", "M-CNN-S"])
@pytest.mark.parametrize("perturbations", [("brightness", PATCH), ("translate:dy=1", "brightness")])
def test_pass_of_the_affine_form_gives_the_logits(model, perturbations):
    question = make_question(model, "mnist:69990", perturbations)
    for theta in np.random.default_rng(3).random((3, 2)):
        forms = affine_pass.pass_at(question, theta).logits()
        logits = question.model.graph.logits(question.perturbed.image(theta)[None])[0]
        np.testing.assert_allclose(forms @ np.append(theta, 1.0), logits, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shift", ["dx=1", "dy=1"])
def test_printed_search_is_asked_the_same_question(shift):
    question = paper_problems.question_of(paper_problems.Asked("M-FNN-100", "TB", "mnist:69990"), "ar", shift=shift)
    printed = one_map.printed_problem(question)
    assert printed.label == question.label
    for theta in np.random.default_rng(4).random((3, 2)):
        logits = question.model.graph.logits(question.perturbed.image(theta)[None])[0]
        np.testing.assert_allclose(forward(printed.layers, theta)[1], logits, rtol=1e-9)
    maps = printed.expected.reshape(-1, *question.perturbed.x0.shape)
    offset, slope = question.perturbed.transport(maps, question.perturbed.cells[0])
    source = printed.translation.source
    moved = np.where(source >= 0, printed.expected[:, source], 0.0).reshape(maps.shape)
    np.testing.assert_allclose(maps + offset + slope, moved, atol=1e-12)


@pytest.fixture(scope="module")
def small_result():
    specs = ("translate:dy=1:0..0.2", "brightness:0..0.2")
    return api.verify("M-FNN-100", "mnist:69990", specs, delta=3.0, threads=1)


def test_sampled_thetas_find_no_contradiction(small_result):
    found, compared = one_map.contradictions(small_result, 50)
    assert found == []
    assert compared >= 45


@pytest.mark.parametrize("planted", ["winner", "attention", "lost piece"])
def test_sampled_thetas_find_a_planted_contradiction(small_result, planted):
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


def test_one_map_measures_every_stage():
    question = make_question("M-FNN-100", "mnist:69990", ("brightness:0..0.05", PATCH), delta=3.0)
    result, seconds = one_map.time_map(question)
    parts = [seconds[name] for name in map_benchmark.STAGES]
    assert len(result.tiling.answers.regions) > 1
    assert min(parts) > 0.0
    assert sum(parts) == pytest.approx(seconds["engine"])
    assert seconds["with_check"] > seconds["engine"]


def test_map_fails_when_a_measurement_does(tmp_path, capsys):
    failed = {"model": "M", "domain": "BP", "image": "i", "problems": ["3 regions after 4"]}
    with mock.patch.object(map_benchmark, "run_one", return_value=failed):
        code = map_benchmark.main(["--models", "M", "--domains", "BP", "--out", str(tmp_path / "map.json")])
    assert code == 1
    assert "3 regions after 4" in capsys.readouterr().err
    assert json.loads((tmp_path / "map.json").read_text())["rows"] == [failed]


# Refinements and boundaries


def test_refine_fails_on_a_contradiction_and_keeps_the_other_problems(tmp_path, monkeypatch):
    asked = []

    def run(part, problem, options):
        asked.append(str(problem))
        row = {"question": "cr 0.001", "seconds": 5.0, "decided": 0.9995, "bounded": 0.9, "boxes": 100, "regions": 7}
        row |= {"peak_mib": 500.0, "wrong": ["theta (0.5, 0.5) contradicts"] if problem.domain == "TP" else []}
        return {"part": part, "asked": str(problem), "rows": [row]}

    monkeypatch.setattr(refine, "run_problem", run)
    arguments = ["--part", "cnn-m", "--only", "M-CNN-M", "--images", "1", "--out", str(tmp_path / "refine.json")]
    assert refine.main(arguments) == 1
    assert asked == [f"M-CNN-M {domain} mnist:69990" for domain in ("BP", "TP", "TB")]
    stored = json.loads((tmp_path / "refine.json").read_text())
    assert stored["groups"][0]["wrong"] == ["M-CNN-M TP mnist:69990: theta (0.5, 0.5) contradicts"]
    lines = (tmp_path / "refine.jsonl").read_text().splitlines()
    (tmp_path / "refine.jsonl").write_text(lines[0] + "\n" + lines[1][:40])
    asked.clear()
    assert refine.main([*arguments, "--resume"]) == 1
    assert asked == ["M-CNN-M TP mnist:69990", "M-CNN-M TB mnist:69990"]


@pytest.fixture(scope="module")
def mapped():
    specs = ["brightness", PATCH]
    return run(make_question("M-FNN-100", "mnist:69992", specs, property="cr", delta=3.0), "map", threads=1)


def test_windows_are_compared_with_their_own_maps(mapped):
    assert refine_check.window_disagreements(mapped, 2) == []
    pieces = mapped.answer.joint.pieces
    lost = replace(pieces, winner=np.where(pieces.winner == mapped.label, (mapped.label + 1) % 10, mapped.label))
    planted = replace(mapped)
    planted.__dict__["answer"] = replace(mapped.answer, joint=replace(mapped.answer.joint, pieces=lost))
    assert refine_check.window_disagreements(planted, 1)


def test_shares_are_compared_with_the_map(mapped):
    assert refine_check.map_disagreements(mapped, mapped) == []
    shares = mapped.answer.shares
    moved = replace(shares, cells=tuple(tuple(share * (1 - 1e-8) for share in row) for row in shares.cells))
    planted = replace(mapped)
    planted.__dict__["answer"] = replace(mapped.answer, shares=moved)
    assert refine_check.map_disagreements(planted, mapped)


def test_boundaries_are_compared_with_the_map():
    specs = ["brightness:0..0.3", "patch:x=12,y=12,w=4,h=4:0..0.3"]
    question = make_question("M-FNN-100", "mnist:69990", specs, property="ar", delta=3.0)
    result = run(question, "map")
    keys = boundaries.keys_of(result)
    found = boundaries.run_search(question, "boundary")
    assert found.tiling.components
    assert boundaries.differences(result, keys, found, Property.AR) == []
    part = found.tiling.components[0]
    shifted = replace(part, inner=frozenset(sorted(part.inner)[1:]))
    for components, failures in (
        ([shifted, *found.tiling.components[1:]], 0),
        ([], 0),
        (None, 0),
        (found.tiling.components, 1),
    ):
        planted = replace(found, tiling=replace(found.tiling, components=components, failures=failures))
        assert boundaries.differences(result, keys, planted, Property.AR)


@pytest.mark.parametrize("domain", ["BP", "TB"])
def test_sampled_digits_are_those_of_the_package(domain):
    sampling = pytest.importorskip("object_shares", reason="needs torch", exc_type=ImportError)
    question = make_question("M-FNN-100", "mnist:69990", paper_problems.specs(domain))
    thetas = np.random.default_rng(0).random((5, 2))
    axes = {"BP": (0, 1), "TB": (1, 0)}[domain]
    images, _ = sampling.perturb(question.perturbed.x0[0], domain, *(thetas[:, axis] for axis in axes))
    np.testing.assert_allclose(images, question.perturbed.images(thetas)[:, 0], atol=1e-12)


def test_sampled_masks_move_and_shares_add_up():
    """A network that sums all pixels: its gradient is one everywhere, so the share is the area of the mask."""
    sampling = pytest.importorskip("object_shares", reason="needs torch", exc_type=ImportError)
    image = np.zeros((28, 28))
    image[26, 3], image[0, 20] = 0.21, 0.2

    def share(domain, other):
        return sampling.shares_on_digit(
            lambda values: values.flatten(1).sum(1, keepdim=True), image, domain, np.zeros(1), np.array([other])
        )

    assert share("BP", 1.0) == share("TB", 0.0) == pytest.approx(9 / 784)
    assert share("TB", 0.5) == pytest.approx(7.5 / 784)  # half a row of three leaves the image
    assert share("TB", 1.0) == pytest.approx(6 / 784)


def test_siblings_that_look_alike_miss_the_target(tmp_path, monkeypatch, capsys):
    sampling = pytest.importorskip("object_shares", reason="needs torch", exc_type=ImportError)
    options = [
        "--thetas",
        "3",
        "--out",
        str(tmp_path / "shares.json"),
        "--models",
        "M-FNN-100-plain",
        "M-FNN-100-object",
    ]
    assert sampling.main(options) == 0
    found = json.loads((tmp_path / "shares.json").read_text())["differences"]
    assert [row["is_met"] for row in found] == [True] * 4
    monkeypatch.setattr(sampling, "sampled_shares", lambda *_: np.full((10, 3), 0.6))
    sampling.main(options)
    assert not any(row["is_met"] for row in json.loads((tmp_path / "shares.json").read_text())["differences"])
    assert capsys.readouterr().out.count("MISSED") == 4
