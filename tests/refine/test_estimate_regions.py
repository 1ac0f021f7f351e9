"""The choice between map and refinement: estimates near the true counts, and questions that are never mapped."""

from itertools import pairwise

import numpy as np
import pytest

from steadygaze.budget import Budget, Limits
from steadygaze.engines import run
from steadygaze.engines.refine import planning
from steadygaze.engines.refine.planning import choose_method, estimate_regions
from steadygaze.network.model import forget_models
from steadygaze.polytopes import Polygons
from steadygaze.question import make_question
from support.stand_ins.made_up_refinements import IMAGE, full_map

PATCH = "patch:x=12,y=12,w=4,h=4"


@pytest.mark.parametrize(
    "specs",
    [("brightness:0..1", PATCH), ("translate:dx=3:-0.2..1.3", "brightness:0..0.1")], ids=["plane", "knots"]
)  # fmt: skip
def test_estimates_are_near_the_count(specs: tuple[str, ...]):
    result = full_map(specs, property="both", delta="25%")
    found = estimate_regions(result.question.compound)
    assert found / 3.0 <= len(result.tiling.answers.regions) <= 3.0 * max(found, 300.0)


def test_larger_maps_are_refined():
    compound = full_map(("brightness:0..1", PATCH), property="both", delta="25%").question.compound
    choice = choose_method(compound, most=10)
    assert choice.method == "refine" and "more than 10 regions" in choice.reason
    choice = choose_method(compound)
    assert choice.method == "map" and "about 1,000 regions" in choice.reason


def test_a_choice_and_the_plan_after_it_count_once(monkeypatch: pytest.MonkeyPatch):
    calls = []
    count = planning._count_whole
    monkeypatch.setattr(planning, "_count_whole", lambda *given: calls.append(1) or count(*given))
    question = make_question("M-FNN-100", IMAGE, ["brightness:0..0.2", PATCH])
    assert choose_method(question.compound, budget=Budget()).method == "map"
    run(question, "refine", until=0.5, threads=1)
    assert len(calls) == 1


def test_regions_are_counted_once_wherever_the_box_cuts_them():
    """Squares with sides of 1/4, in a box of 5/8 that meets sixteen of them: the lowest corners of nine lie inside."""
    ends = np.array([0.1875, 0.25, 0.5, 0.75, 0.8125])
    corners = [[[x0, y0], [x1, y0], [x1, y1], [x0, y1]] for x0, x1 in pairwise(ends) for y0, y1 in pairwise(ends)]
    squares = Polygons(np.array(corners).reshape(-1, 2), 4 * np.arange(17), np.ones(64, dtype=np.int64))
    low, high = np.full((1, 2), 0.1875), np.full((1, 2), 0.8125)
    assert planning._count_whole(squares, np.zeros(16, dtype=np.int64), low, high) == 9


@pytest.mark.parametrize(
    "specs, word",
    [((PATCH,), "single"), (("brightness", *(f"patch:x={x},y=2,w=2,h=2" for x in (2, 8, 20))), "up to 3")],
)
def test_one_parameter_is_mapped_and_four_never(specs: tuple[str, ...], word: str):
    choice = choose_method(make_question("M-FNN-100", IMAGE, list(specs)).compound)
    assert choice.method == ("map" if len(specs) == 1 else "refine") and word in choice.reason


def test_a_large_network_is_not_lowered(monkeypatch: pytest.MonkeyPatch):
    forget_models()  # another test may have lowered the same model
    compound = make_question("M-FNN-100", IMAGE, ["brightness", PATCH]).compound
    monkeypatch.setattr(planning, "LARGEST_WORK", 1000)
    choice = choose_method(compound)
    assert choice.method == "refine" and "100 neurons" in choice.reason
    assert "maps" not in compound.chain.__dict__


def test_the_choice_does_not_depend_on_time():
    compound = full_map(("brightness:0..1", PATCH), property="both", delta="25%").question.compound
    late = Budget(Limits(timeout_seconds=1e-9))
    assert choose_method(compound, budget=late).method == "map"
    late.cancelled.set()
    assert "was stopped" in choose_method(compound, budget=late).reason
