"""Deep networks that cannot be walked: a refinement starts with boxes of a size that bounds decide."""

import numpy as np
import pytest

from steadygaze.bounds import bounder as bounder_module
from steadygaze.engines import run
from steadygaze.engines.refine import planning
from support.networks.refine_problems import mixed_problem


@pytest.fixture
def deep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treats every network as one that is deep and too large for a walk."""
    monkeypatch.setattr(bounder_module, "DEEP", 0)
    monkeypatch.setattr(planning, "LARGEST_WORK", 0.0)


@pytest.mark.usefixtures("deep")
@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_boxes_tile_the_domain_and_none_is_larger_than_planned(dimension, seed, monkeypatch):
    plans = []

    def kept(*arguments):
        plans.append(planning.make_plan(*arguments))
        return plans[-1]

    monkeypatch.setattr("steadygaze.engines.refine.refine_engine.make_plan", kept)
    question = mixed_problem(seed, dimension, property="cr")
    result = run(question, "refine", until=0.01, threads=1)
    (plan,) = plans
    assert plan.room == planning.DEEP_ROOM and np.log2(plan.largest_box) % dimension == 0.0
    volumes = result.tiling.boxes.volumes
    assert abs(volumes.sum() - 1.0) < 1e-12 and volumes.max() <= plan.largest_box
    monkeypatch.undo()
    exact = run(mixed_problem(seed, dimension, property="cr"), "map")
    low, high = exact.areas["CR"]
    assert result.areas["CR"][0] <= high and low <= result.areas["CR"][1]


@pytest.mark.usefixtures("deep")
def test_no_plan_starts_with_more_boxes_than_allowed(monkeypatch):
    monkeypatch.setattr(planning, "MOST_BOXES", 16)
    monkeypatch.setattr("steadygaze.engines.refine.boxes.BoxQuestion.is_decided", lambda *_: np.zeros(1, dtype=bool))
    question = mixed_problem(0, 2, property="cr")
    bounder = bounder_module.Bounder(question.model.graph, question.perturbed, question.label, question.attention)
    asked = planning.BoxQuestion(question.property, 1.0, False)
    plan = planning.make_plan(bounder, asked, question.compound, planning.Budget())
    assert plan.largest_box == 1.0 / 16.0 and plan.decided == 0.0
