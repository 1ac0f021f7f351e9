"""The benchmark of the refinement finds what is wrong, marks missed targets, and goes on where it stopped."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from steadygaze.api import make_problem, solve

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def load(name):
    """A benchmark by its path: `refine` is also a part of the package's tests."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def benchmark():
    return load("refine")


def entry(part="cnn-m", asked="M-CNN-M BP mnist:69990", question="cr 0.001", **changes):
    row = {"question": question, "seconds": 5.0, "decided": 0.9995, "bounded": 0.9, "boxes": 100, "regions": 7}
    row |= {"peak_mib": 500.0, "wrong": []} | changes
    return {"part": part, "asked": asked, "rows": [row]}


def test_targets_are_for_all_or_for_the_median(benchmark):
    (good,) = benchmark.grouped([entry(), entry()])
    assert good["is_met"] == {"least decided": True, "most seconds": True, "peak MiB": True} and good["problems"] == 2
    (slow,) = benchmark.grouped([entry(), entry(), entry(seconds=21.0)])
    assert slow["is_met"] == {"least decided": True, "most seconds": False, "peak MiB": True}
    assert benchmark.shown(slow)["missed"] == "most seconds"
    rows = [entry(question="ar 3.0 0.001", seconds=seconds, decided=0.9) for seconds in (1.0, 2.0, 100.0)]
    (attention,) = benchmark.grouped(rows)
    assert attention["is_met"] == {"least decided": False, "median seconds": True, "peak MiB": True}


def test_networks_of_the_map_are_judged_apart(benchmark):
    question = "both 3.0 exact"
    rows = [
        entry("map", "M-CNN-S BP mnist:69990", question, map_per_refine=2.0),
        entry("map", "M-FNN-100 BP mnist:69990", question, map_per_refine=2.0),
    ]
    convolutional, dense = benchmark.grouped(rows)
    assert convolutional["is_met"] == {"median map/refine": False, "least bounded": True}
    assert dense["is_met"] == {"median map/refine": True}


def test_a_contradiction_fails_and_finished_problems_are_kept(benchmark, tmp_path, monkeypatch):
    asked = []

    def run(part, problem, options):
        asked.append(str(problem))
        wrong = ["theta (0.5, 0.5) contradicts"] if problem.domain == "TP" else []
        return entry(part, str(problem), wrong=wrong)

    monkeypatch.setattr(benchmark, "run_problem", run)
    arguments = ["--part", "cnn-m", "--only", "M-CNN-M", "--images", "1", "--out", str(tmp_path / "refine.json")]
    assert benchmark.main(arguments) == 1
    assert asked == [f"M-CNN-M {domain} mnist:69990" for domain in ("BP", "TP", "TB")]
    stored = json.loads((tmp_path / "refine.json").read_text())
    assert stored["groups"][0]["wrong"] == ["M-CNN-M TP mnist:69990: theta (0.5, 0.5) contradicts"]
    lines = (tmp_path / "refine.jsonl").read_text().splitlines()
    (tmp_path / "refine.jsonl").write_text(lines[0] + "\n" + lines[1][:40])
    asked.clear()
    assert benchmark.main([*arguments, "--resume"]) == 1
    assert asked == ["M-CNN-M TP mnist:69990", "M-CNN-M TB mnist:69990"]


def test_the_parts_have_the_problems_of_the_paper(benchmark):
    counts = {part: len(benchmark.problems_of(part, 10)) for part in benchmark.PARTS}
    assert counts == {"cnn-m": 60, "cnn-m-exact": 30, "map": 300, "cifar": 10, "vgg": 10}


@pytest.fixture(scope="module")
def mapped():
    perturbations = ["brightness", "patch:x=12,y=12,w=4,h=4"]
    return solve(make_problem("M-FNN-100", "mnist:69992", perturbations, property="cr", delta=3.0), threads=1)


def test_windows_are_compared_with_their_own_maps(mapped):
    check = load("refine_check")
    assert check.window_disagreements(mapped, 2) == []
    pieces = mapped.answer.joint.pieces
    lost = replace(pieces, winner=np.where(pieces.winner == mapped.label, (mapped.label + 1) % 10, mapped.label))
    planted = replace(mapped)
    planted.__dict__["answer"] = replace(mapped.answer, joint=replace(mapped.answer.joint, pieces=lost))
    assert check.window_disagreements(planted, 1)


def test_shares_are_compared_with_the_map(mapped):
    check = load("refine_check")
    assert check.map_disagreements(mapped, mapped) == []
    shares = mapped.answer.shares
    moved = replace(shares, cells=tuple(tuple(share * (1 - 1e-8) for share in row) for row in shares.cells))
    planted = replace(mapped)
    planted.__dict__["answer"] = replace(mapped.answer, shares=moved)
    assert check.map_disagreements(planted, mapped)
