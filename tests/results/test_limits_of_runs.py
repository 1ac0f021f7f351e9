"""Limits of a run in every phase: omitted parts, remaining proofs, and notes."""

import json
import math
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import steadygaze
from steadygaze import Budget, Limits, Result
from steadygaze.bounds.bounder import Bounder
from steadygaze.budget import Clock
from steadygaze.campaign import solving
from steadygaze.campaign.plan_file import read_plan
from steadygaze.engines.map.streamed_map import StreamedMap
from steadygaze.engines.refine.boxes import Boxes, BoxQuestion, Frontier
from steadygaze.exact import ExactLabels, LabelOutcome
from steadygaze.labels import Property, Status, StopKind, Verdict
from steadygaze.question import make_question
from steadygaze.regions import chunked_walk
from steadygaze.results.store import read_seconds

MODEL, IMAGE, SPECS = "M-FNN-100", "mnist:69990", ["brightness", "patch:x=12,y=12,w=4,h=4"]


def verify(budget: Budget, method: str = "map", specs: list[str] = SPECS) -> Result:
    return steadygaze.verify(MODEL, IMAGE, specs, method=method, budget=budget)


def test_phases_add_up_and_do_not_overlap():
    clock, started = Clock(), time.perf_counter()
    with clock.phase("walk"):
        time.sleep(0.02)
        with clock.phase("labels"):
            time.sleep(0.03)
        time.sleep(0.01)
    whole = time.perf_counter() - started
    assert math.isclose(sum(clock.seconds.values()), whole, rel_tol=0.05, abs_tol=0.002)
    assert clock.seconds["labels"] >= 0.03 and clock.seconds["walk"] >= 0.03 and clock.current == ""


@pytest.mark.parametrize("method", ["map", "refine", "bfs", "gbs", "boundary", "auto"])
def test_no_time_at_all_gives_a_partial_result(method: str):
    result = verify(Budget(Limits(timeout_seconds=1e-9)), method)
    assert result.stopped is not None and result.stopped.kind is StopKind.TIME
    assert result.verdict is not Verdict.ROBUST and result.status is Status.TIMEOUT
    assert result.areas["undecided"][1] > 0.99 if result.tiling.answers_any_delta else result.coverage < 1.0
    assert json.dumps(result.summary())


def test_a_stored_map_without_regions_can_be_read(tmp_path: Path):
    budget = Budget()
    budget.cancelled.set()
    result = steadygaze.verify(MODEL, IMAGE, ["brightness", "translate:dx=1"], method="map", dist="l1", budget=budget)
    loaded = steadygaze.load(result.save(tmp_path / "result"))
    assert loaded.region_count == 0 and loaded.with_delta("60%").areas["undecided"] == (1.0, 1.0)


def test_a_run_that_is_over_leaves_out_what_is_optional_and_says_so():
    budget = Budget()
    result = verify(budget)
    budget.cancelled.set()
    with budget.running():
        summary = result.summary()
    assert summary["ar_at_delta"] == {name: [0.0, 1.0] for name in ("10%", "25%", "50%", "100%")} | {"all": None}
    assert summary["witnesses"] == [] and summary["verdict"] == "not robust"
    assert any("other δ" in note for note in summary["notes"])
    assert any("no witness of the lost attention" in note for note in summary["notes"])


def test_pointing_has_no_other_thresholds_to_leave_out():
    budget, options = Budget(), {"attention": "pointing", "mask": "auto:bright=0.2,grow=1"}
    result = steadygaze.verify(MODEL, IMAGE, ["brightness:0..0.1"], method="map", budget=budget, **options)
    budget.cancelled.set()
    with budget.running():
        assert not any("the shares" in note for note in result.summary()["notes"])


def test_after_the_run_nothing_is_left_out():
    budget = Budget()
    result = verify(budget)
    budget.cancelled.set()
    summary = result.summary()
    assert summary["witnesses"] and not any("left out" in note for note in summary["notes"])


def test_seconds_of_later_phases_are_added_and_stored(tmp_path: Path):
    result = verify(Budget())
    assert set(result.seconds) >= {"read", "check model", "walk", "attention", "labels", "self-check"}
    assert "summary" not in result.seconds
    result.save(tmp_path / "out")
    assert set(read_seconds(tmp_path / "out")) >= {"walk", "summary", "store"}


def test_short_memory_sends_a_map_to_disk_with_the_same_shares(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chunked_walk, "MAP_VALUES", 1)
    monkeypatch.setattr(chunked_walk, "SMALLEST", 64)
    joined = verify(Budget())
    monkeypatch.setattr(Budget, "is_short_of_memory", True)
    streamed = verify(Budget())
    assert not isinstance(joined.tiling, StreamedMap) and isinstance(streamed.tiling, StreamedMap)
    assert streamed.region_count == joined.region_count > 64
    for name, bounds in joined.areas.items():
        np.testing.assert_allclose(streamed.areas[name], bounds, atol=1e-9)


def test_chunks_are_smaller_for_large_maps_of_attention():
    compound = make_question(MODEL, IMAGE, SPECS).compound
    assert chunked_walk.chunk_size(compound) == chunked_walk.LARGEST
    large = replace(compound, graph=replace(compound.graph, input_shape=(3, 64, 64)))
    assert chunked_walk.SMALLEST < chunked_walk.chunk_size(large) < chunked_walk.LARGEST


def test_exact_arithmetic_ends_with_the_run():
    compound = make_question(MODEL, IMAGE, ["brightness:0..0.1", "darkness:0..0.1"]).compound
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert ExactLabels(compound, 7).settle(corners, 0.0, limit_seconds=60.0).outcome is not LabelOutcome.OPEN
    found = ExactLabels(compound, 7, lambda: True).settle(corners, 0.0, limit_seconds=60.0)
    assert found.outcome is LabelOutcome.OPEN and found.reason == "limit_seconds is reached"
    assert ExactLabels(compound, 7, lambda: True).patterns(corners, limit_seconds=60.0) is None


def test_a_block_of_boxes_that_time_ends_stays_as_it_was():
    question = make_question(MODEL, IMAGE, SPECS)
    bounder = Bounder(question.model.graph, question.perturbed, question.label, question.attention)
    budget, boxes = Budget(), Boxes.of(question.compound)
    asked = BoxQuestion(Property.BOTH, 3.0)
    assert np.isfinite(Frontier(bounder, asked, 1, budget).bound(boxes).boxes.margin).all()
    budget.cancelled.set()
    with budget.running():
        found = Frontier(bounder, asked, 1, budget).bound(boxes).boxes
    assert (found.margin == boxes.margin).all() and (found.inconsistency == boxes.inconsistency).all()


def test_a_problem_of_a_campaign_ends_by_itself_with_what_it_proved(tmp_path: Path):
    text = """
[limits]
seconds = 1e-6
memory_gib = 4
[[models]]
use = "M-FNN-100"
[[images]]
use = "mnist:69990"
[combinations]
BD = ["brightness", "darkness"]
[[runs]]
method = "map"
"""
    (tmp_path / "plan.toml").write_text(text, encoding="ascii")
    plan = read_plan(tmp_path / "plan.toml")
    found = solving.solve(plan.question(plan.tasks[0]))
    assert found["status"] == "Timeout" and found["verdict"] == "undecided" and found["reason"].startswith("timeout")
