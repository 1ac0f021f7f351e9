"""Curved perturbations in the engines: a refinement agrees with samples, and other methods refuse in one sentence."""

import numpy as np
import pytest

import steadygaze
from steadygaze.budget import Budget, Limits
from steadygaze.engines import RunOptions, RunPlan
from steadygaze.engines.refine.planning import choose_method
from steadygaze.errors import OptionError
from steadygaze.labels import Verdict
from steadygaze.question import make_question

MODEL, IMAGE = "M-CNN-S", "mnist:69990"


def refined(specs: list[str], **options: object) -> steadygaze.Result:
    return steadygaze.verify(MODEL, IMAGE, specs, budget=Budget(Limits(60.0)), **options)  # type: ignore[arg-type]


def test_boxes_agree_with_passes_at_a_thousand_thetas() -> None:
    result = refined(["rotate:-10..10", "brightness:0..0.1"], until=0.2)
    assert result.tiling.kind == "refinement"
    domain, boxes = result.question.perturbed.domain, result.tiling.boxes
    points = np.random.default_rng(0).random((1000, 2))
    graph, label = result.question.model.graph, result.question.label
    logits = np.concatenate([graph.logits(result.question.perturbed.images(part)) for part in
                             np.split(domain.to_theta(points), 10)])  # fmt: skip
    margins = logits[:, label] - np.delete(logits, label, axis=1).max(axis=1)
    inside = ((boxes.low[None] <= points[:, None]) & (points[:, None] <= boxes.high[None])).all(axis=2)
    assert inside.any(axis=1).all()
    owner = inside.argmax(axis=1)
    assert (boxes.margin[owner, 0] <= margins + 1e-9).all()
    assert (margins <= boxes.margin[owner, 1] + 1e-9).all()
    # The expected map moves along: inconsistencies at single thetas stay inside the bounds of their boxes.
    for number in range(40):
        found = result.at(domain.to_theta(points[number]))
        low, high = boxes.inconsistency[owner[number]]
        assert low - 1e-9 <= found.inconsistency <= high + 1e-9


@pytest.mark.parametrize("specs", [["rotate:-1..1"], ["shift:dx=1,dy=1"], ["translate:dx=1", "haze"]])
def test_without_a_method_a_refinement_runs(specs: list[str]) -> None:
    question = make_question("M-FNN-100", IMAGE, specs, property="cr")
    method, reason = choose_method(question.compound)
    assert (method, "curved" in reason) == ("refine", True)


def test_the_reason_for_a_refinement_holds_for_every_property() -> None:
    found = [
        RunPlan.check("auto", RunOptions()).settle(
            make_question("M-FNN-100", IMAGE, "rotate:-1..1", property=one), Budget()
        )
        for one in ("cr", "both")
    ]
    assert {(plan.method, plan.reason) for plan in found} == {
        ("refine", "the image is curved in theta, and only a refinement encloses it")
    }


def test_a_violation_has_a_witness() -> None:
    result = refined(["rotate:-180..180"], property="cr", goal="verdict")
    assert result.verdict is Verdict.NOT_ROBUST
    found = result.at(result.tiling.points[0])
    assert found.label != result.question.label


def test_a_rotation_of_a_few_degrees_keeps_the_label() -> None:
    result = refined(["rotate:-3..3"], property="cr", until=0.0)
    assert result.verdict is Verdict.ROBUST


@pytest.mark.parametrize(
    "options", [{"method": "map"}, {"method": "bfs"}, {"method": "gbs"}, {"method": "boundary"}, {"until": "exact"}]
)
def test_methods_that_need_regions_say_which_one_works(options: dict[str, object]) -> None:
    remedy = "--until 0.001" if "until" in options else "--method refine"
    with pytest.raises(OptionError, match=rf"rotate:-3\.\.3 is curved.*{remedy}") as refusal:
        refined(["rotate:-3..3"], **options)
    assert "\n" not in str(refusal.value)
