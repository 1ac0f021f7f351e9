"""Limits end a search in every phase, with a result that keeps all proofs so far."""

import time
from collections.abc import Callable

import pytest

from steadygaze import Budget, Limits
from steadygaze.engines import run
from steadygaze.engines.refine.refine_engine import RefineEngine
from steadygaze.engines.search import paper_searches, walker
from steadygaze.engines.search.boundary_follower import BoundaryFollower
from steadygaze.labels import Label, Stop
from steadygaze.question import make_question

SPECS = ("translate:dx=1", "patch:x=12,y=12,w=4,h=4", "brightness")
SMALL = ("brightness:0..0.1",)


class Counted(Budget):
    """A budget that ends when it has been asked a number of times, or when something was called."""

    def __init__(self, asked: int) -> None:
        super().__init__(Limits())
        self.left = asked

    def exhausted(self) -> Stop | None:
        self.left -= 1
        return Stop("interrupted") if self.left < 0 else super().exhausted()


@pytest.fixture(autouse=True)
def _ask_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walker, "ASK_EVERY", 0.0)


@pytest.mark.parametrize("method", ["bfs", "gbs", "boundary"])
@pytest.mark.parametrize("asked", [0, 1, 7, 40])
def test_a_budget_that_ends_at_any_step(method: str, asked: int):
    question = make_question("M-FNN-100", "mnist:69990", SPECS, delta=3.0)
    result = run(question, method, budget=Counted(asked))
    assert result.stopped == Stop("interrupted") and not result.is_complete
    assert len(result.tiling.visited) <= asked + 1
    assert result.tiling.components is None and result.tiling.confirmation is None
    assert result.summary()["visited"] == len(result.tiling.visited)


def interrupt_in(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, budget: Budget) -> None:
    """Set the interrupt when a function is called."""
    inner: Callable = getattr(owner, name)

    def call(*arguments: object, **options: object) -> object:
        budget.cancelled.set()
        return inner(*arguments, **options)

    monkeypatch.setattr(owner, name, call)


@pytest.mark.parametrize(
    ("method", "owner", "name"),
    [
        ("bfs", paper_searches, "_is_whole"),
        ("bfs", paper_searches, "check_visited"),
        ("bfs", paper_searches, "visited_shares"),
        ("boundary", BoundaryFollower, "_start_from_border"),
        ("boundary", BoundaryFollower, "_spread"),
    ],
)
def test_an_interrupt_in_every_phase(monkeypatch: pytest.MonkeyPatch, method: str, owner: object, name: str):
    budget = Budget()
    interrupt_in(monkeypatch, owner, name, budget)
    specs = SMALL if method == "bfs" else ("brightness:0..1", "patch:x=12,y=12,w=4,h=4")
    question = make_question("M-FNN-100", "mnist:69990", specs, property="cr")
    result = run(question, method, budget=budget)
    assert budget.cancelled.is_set() and result.tiling.visited
    is_seen = name not in ("check_visited", "visited_shares")
    assert (result.stopped == Stop("interrupted")) == is_seen
    assert result.tiling.is_whole == (not is_seen)


def test_an_interrupt_ends_the_confirmation(monkeypatch: pytest.MonkeyPatch):
    budget = Budget()
    interrupt_in(monkeypatch, RefineEngine, "run", budget)
    question = make_question("M-FNN-100", "mnist:69990", SMALL, property="cr")
    started = time.monotonic()
    result = run(question, "bfs", budget=budget)
    assert result.tiling.is_covering and time.monotonic() - started < 60.0


def test_exactly_as_many_regions_as_allowed_are_a_whole_search():
    question = make_question("M-FNN-100", "mnist:69990", SMALL, property="cr")
    count = len(run(question, "bfs").tiling.visited)
    whole = run(question, "bfs", budget=Budget(Limits(max_regions=count)))
    assert whole.tiling.is_whole and whole.stopped is None
    part = run(question, "bfs", budget=Budget(Limits(max_regions=count - 1)))
    assert len(part.tiling.visited) == count - 1 and part.stopped is not None
    assert 0.0 < part.areas["CR"][0] < whole.areas["CR"][0]


def test_work_after_a_limit_is_short(monkeypatch: pytest.MonkeyPatch):
    """Late, mixed regions count as unknown as a whole, and one batch of the self-check is enough."""
    monkeypatch.setattr(walker, "GRACE", -1.0)
    question = make_question("M-FNN-100", "mnist:69992", ("brightness:0..1", "translate:dx=1"), delta=3.0)
    late = run(question, "bfs", budget=Budget(Limits(max_regions=600)))
    monkeypatch.setattr(walker, "GRACE", 60.0)
    early = run(question, "bfs", budget=Budget(Limits(max_regions=600)))
    assert any(one.classification == Label.CB or one.attention == Label.AB for one in early.tiling.visited)
    for name in ("CR", "MR", "AR", "IR"):
        assert late.areas[name][0] <= early.areas[name][0] + 1e-15
    assert any(late.areas[name][0] < early.areas[name][0] for name in ("CR", "MR", "AR", "IR"))
