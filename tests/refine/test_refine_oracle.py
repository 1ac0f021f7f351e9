"""Whole refinements against exact rationals and the full map: shares, enclosures, verdicts, threads, resuming."""

from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import pytest

from steadygaze.budget import Budget
from steadygaze.engines import run
from steadygaze.engines.contract import Progress
from steadygaze.engines.refine import refine_engine
from steadygaze.engines.refine.boxes import State
from steadygaze.errors import InternalError
from steadygaze.labels import Property, Verdict
from steadygaze.question import Question as Problem
from steadygaze.question import Threshold
from steadygaze.results.result import Result
from support.networks.bound_cases import Case
from support.networks.refine_problems import mixed_problem, plan_with
from support.networks.search_problems import random_problem
from support.oracles.attention_by_definition import Question, chain_gradients, inconsistency
from support.oracles.exact_shares import NAMES, ExactShares
from support.readers.enclosures import Found, broken_claims
from support.stand_ins.made_up_refinements import box_of_theta
from support.stand_ins.unsound_bounds import PLANTED

EXACT = 1e-9
"""How far shares may be from the truth."""

PLANS = {"plain": (0, 3.0, 0.0), "generators": (4, 5.0, 1e10)}
SMALL = [(seed, d) for d, count in ((1, 4), (2, 5), (3, 2)) for seed in range(count)]


@dataclass(frozen=True, eq=False)
class Solved:
    """A question, and the truth about it."""

    question: Problem

    @cached_property
    def truth(self) -> ExactShares:
        options = self.question.attention
        question = Question(options.filter.name, options.distance.name.lower(), options.classes)
        return ExactShares(self.question.compound, self.question.label, question)


@cache
def truth(seed: int, dimension: int, kind: str = "mixed") -> Solved:
    """A problem and all that is true of it, at a threshold that some values of ai are below, others above."""
    make = mixed_problem if kind == "mixed" else random_problem
    found = Solved(make(seed, dimension))
    levels = found.truth.levels()
    return Solved(replace(found.question, threshold=Threshold(levels[len(levels) // 2], False)))


def forced(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Have the runs bound and split before they hand over."""
    monkeypatch.setattr(refine_engine, "make_plan", plan_with(*PLANS[name]))


def assert_encloses(result: Result, exact: Solved, slack: float = EXACT) -> None:
    """Every share of a result holds."""
    shares = exact.truth.shares(exact.question.threshold.number)
    for name in NAMES:
        low, high = result.areas[name]
        assert low - slack <= float(shares[name]) <= high + slack, name


def assert_claims_hold(result: Result, most: int = 40) -> None:
    """The enclosures of boxes hold at corners, kinks and points between them, with no tolerance."""
    problem, boxes = result.question, result.tiling.boxes
    rng = np.random.default_rng(0)
    d, options = problem.perturbed.domain.dimension, problem.attention
    question = Question(options.filter.name, options.distance.name.lower(), options.classes)
    chosen = np.sort(rng.permutation(len(boxes))[:most])
    for cell in np.unique(boxes.cell[chosen]):
        own = chosen[boxes.cell[chosen] == cell]
        low, high = boxes.low[own, :d], boxes.high[own, :d]
        graph, label = problem.model.graph, problem.label
        case = Case("run", graph, problem.perturbed, label, question, int(cell), low, high, 0)
        assert broken_claims(case, Found(boxes.margin[own], boxes.inconsistency[own]), points=2) == []


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(("seed", "dimension"), SMALL)
def test_exact_shares_are_those_of_the_map_and_of_rationals(
    seed: int, dimension: int, plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = truth(seed, dimension)
    forced(monkeypatch, plan)
    result = run(exact.question, "refine", until="exact", threads=1)
    assert result.stopped is None
    assert not (result.tiling.boxes.state == State.OPEN).any()
    assert_encloses(result, exact)
    whole = run(exact.question, "map", threads=1)
    for name in NAMES:
        np.testing.assert_allclose(result.areas[name], whole.areas[name], rtol=0.0, atol=EXACT)
    assert_claims_hold(result, 15)


def test_bounds_and_regions_both_had_something_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The problems above are mixed: otherwise they would test one half of a refinement only."""
    forced(monkeypatch, "plain")
    for dimension in (1, 2):
        found = [run(truth(seed, dimension).question, "refine", until="exact", threads=1) for seed in range(1, 4)]
        states = np.sum([np.bincount(result.tiling.boxes.state, minlength=3) for result in found], axis=0)
        assert min(states[State.BOUNDED], states[State.EXACT]) >= 4


@pytest.mark.parametrize(("seed", "dimension"), [(seed, d) for d in (1, 2, 3) for seed in range(3)])
def test_crossing_lines_and_the_plan_of_a_real_run(seed: int, dimension: int) -> None:
    """Networks with many neurons on one line; the run decides itself what to hand over."""
    exact = truth(seed, dimension, "crossing")
    result = run(exact.question, "refine", until="exact", threads=1)
    assert_encloses(result, exact)


@pytest.mark.parametrize("until", [0.0, 0.05])
@pytest.mark.parametrize(("seed", "dimension"), [(1, 2), (2, 1), (3, 3)])
def test_partial_results_enclose_the_truth(
    seed: int, dimension: int, until: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = truth(seed, dimension)
    forced(monkeypatch, "plain")
    result = run(exact.question, "refine", until=until, threads=1)
    assert_encloses(result, exact)
    assert float(result.tiling.boxes.volumes[result.tiling.boxes.state == State.OPEN].sum()) <= until + EXACT
    assert_claims_hold(result, 15)
    for share in (0.5, 1.5):
        other = Solved(replace(exact.question, threshold=Threshold(share * exact.question.threshold.number, False)))
        assert_encloses(result.with_delta(other.question.threshold.number), other)


@pytest.mark.parametrize("seed", [0, 1])
def test_four_parameters_by_sampling(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    forced(monkeypatch, "plain")
    problem = mixed_problem(seed, 4, delta="60%")
    result = run(problem, "refine", until=0.3, threads=1)
    assert result.tiling.answers is None
    assert_claims_hold(result, 15)
    rng = np.random.default_rng(seed)
    domain = problem.perturbed.domain
    thetas = domain.low + rng.random((300, 4)) * domain.widths
    logits = problem.model.graph.logits(problem.perturbed.images(thetas))
    margins = logits[:, problem.label] - np.delete(logits, problem.label, axis=1).max(axis=1)
    question = Question(problem.attention.filter.name, problem.attention.distance.name.lower())
    gradients = chain_gradients(problem.model.chain, problem.perturbed.x0.shape)
    for theta, margin in zip(thetas, margins, strict=True):
        box = box_of_theta(result, theta)
        assert box is not None
        low, high = result.tiling.boxes.margin[box]
        assert low - EXACT <= margin <= high + EXACT
        low, high = result.tiling.boxes.inconsistency[box]
        if np.isfinite(high):
            assert low - EXACT <= inconsistency(gradients, problem.perturbed, theta, question) <= high + EXACT


@pytest.mark.parametrize("plan", PLANS)
def test_threads_change_nothing(plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forced(monkeypatch, plan)
    for until in ("exact", 0.05):
        first, second = (run(truth(1, 2).question, "refine", until=until, threads=count) for count in (1, 3))  # type: ignore[arg-type]
        assert_same_boxes(first, second)
        assert first.areas == second.areas


def assert_same_boxes(first: Result, second: Result) -> None:
    for name in ("cell", "low", "high", "sides", "margin", "inconsistency", "state", "cuts"):
        np.testing.assert_array_equal(
            getattr(first.tiling.boxes, name), getattr(second.tiling.boxes, name), err_msg=name
        )
    np.testing.assert_array_equal(first.tiling.box_of, second.tiling.box_of)


@pytest.mark.parametrize("calls", [1, 4])
@pytest.mark.parametrize(("seed", "dimension"), [(1, 2), (2, 2), (3, 3)])
def test_resuming_ends_at_the_same_shares(
    seed: int, dimension: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced(monkeypatch, "plain")
    exact = truth(seed, dimension)
    whole = run(exact.question, "refine", until="exact", threads=1)
    budget, seen = Budget(), []

    def stop(advance: Progress) -> None:
        seen.append(advance)
        if len(seen) == calls:
            budget.cancelled.set()

    part = run(exact.question, "refine", until="exact", threads=1, budget=budget, progress=stop)
    assert_encloses(part, exact)
    again = run(exact.question, "refine", until="exact", threads=1, resume=part)
    assert again.stopped is None
    assert_encloses(again, exact)
    for name in NAMES:
        np.testing.assert_allclose(again.areas[name], whole.areas[name], rtol=0.0, atol=EXACT)
        # What was proved stays proved.
        assert again.areas[name][0] >= part.areas[name][0] - EXACT
        assert again.areas[name][1] <= part.areas[name][1] + EXACT
    shares = [advance.share for advance in seen]
    assert shares == sorted(shares)


@pytest.mark.parametrize("plan", [None, "generators"])
@pytest.mark.parametrize("wanted", ["cr", "ar", "both"])
def test_verdicts_are_never_wrong(plan: str | None, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if plan is not None:
        forced(monkeypatch, plan)
    verdicts = []
    for seed, dimension in SMALL:
        exact = truth(seed, dimension)
        ends = [float(high) for _, high in exact.truth.inconsistencies]
        delta = exact.question.threshold.number if seed % 2 else 1.01 * max(ends) + 1e-6
        problem = replace(exact.question, property=Property.parse(wanted), threshold=Threshold(delta, False))
        found = run(problem, "refine", goal="verdict", until=0.0, threads=1).verdict
        label, attention = exact.truth.keeps_label(), exact.truth.keeps_attention(delta)
        kept = {"cr": label, "ar": attention, "both": attention if label is None else label and attention}[wanted]
        verdicts.append(found)
        assert found is not (Verdict.NOT_ROBUST if kept else Verdict.ROBUST), (seed, dimension)
    if wanted != "cr":
        assert Verdict.ROBUST in verdicts
    assert Verdict.NOT_ROBUST in verdicts


UNSOUND = (
    "a missing absolute value, forward",
    "a missing absolute value, backward",
    "a missing absolute value of the coefficients",
    "a slope without its radius",
    "no shift of a ReLU",
    "no radius of the clip",
    "open neurons are off",
    "open neurons are on",
    "open neurons are half on",
    "the expected map stands still",
    "the expected map is never moved",
    "the remainder is dropped at a step",
    "the remainder is dropped at the logits",
    "the bias is left out",
    "absolute values of ends",
    "one rival alone",
)


@pytest.mark.parametrize("name", UNSOUND)
def test_planted_unsound_bounds_are_caught_in_a_whole_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of every run catches them, and nothing is delivered. Results delivered before that are true."""
    forced(monkeypatch, "plain")
    problems = [truth(seed, 2) for seed in range(8)]
    PLANTED[name](monkeypatch)
    for exact in problems:
        try:
            result = run(exact.question, "refine", until=0.01, threads=1)
        except InternalError:
            return
        assert_encloses(result, exact)
    pytest.fail("delivered every time")
