"""A search is robust only if a proof for every theta agrees; labels beyond float64 are settled exactly."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import steadygaze
from steadygaze import load
from steadygaze.cli.answer_text import verdict_text
from steadygaze.engines.refine.refine_engine import RefineEngine
from steadygaze.engines.search.labeller import Labeller
from steadygaze.engines.search.traversal import Traversal
from steadygaze.labels import Status, Verdict
from steadygaze.question import make_question
from steadygaze.results.description import small_print, verdict_sentences
from steadygaze.results.result import Result

QUESTION = ("M-FNN-100", "mnist:69990", ["brightness:0..0.1"])


@pytest.fixture(scope="module")
def covering() -> Result:
    return steadygaze.search(*QUESTION, method="bfs", property="cr")


def test_a_search_that_covers_the_domain_is_confirmed(covering: Result):
    assert covering.tiling.is_covering and covering.tiling.confirmation is Verdict.ROBUST
    assert covering.verdict is Verdict.ROBUST
    assert "A refinement of the same question proves it" in covering.described.guarantee
    assert small_print(covering.described) == []


@pytest.mark.parametrize("told", [Verdict.UNDECIDED, Verdict.NOT_ROBUST, None])
def test_without_a_proof_nothing_is_robust(covering: Result, told: Verdict | None, tmp_path: Path):
    found = replace(covering, tiling=replace(covering.tiling, confirmation=told))
    assert found.status is Status.ROBUST
    assert found.verdict is (told or Verdict.UNDECIDED)
    summary = found.described
    texts = (verdict_text(summary), " ".join(verdict_sentences(summary)), summary.guarantee)
    assert not any("everywhere" in text.lower() or "nothing is left out" in text for text in texts)
    if told is Verdict.NOT_ROBUST:
        assert all("refinement" in text and "violation between" in text for text in texts)
    else:
        assert "Nothing is proved about the whole domain" in summary.guarantee
    restored = load(found.save(tmp_path / "out"))
    assert (restored.verdict, restored.tiling.confirmation, restored.status) == (found.verdict, told, found.status)


def test_an_incomplete_search_is_not_confirmed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(RefineEngine, "run", lambda *_, **__: pytest.fail("nothing to confirm"))
    assert steadygaze.search(*QUESTION, method="gbs", property="ar", delta=3.0).tiling.confirmation is None
    limited = steadygaze.Budget(steadygaze.Limits(max_regions=1))
    assert steadygaze.search(*QUESTION, method="bfs", property="cr", budget=limited).tiling.confirmation is None


def test_a_pattern_that_is_not_certain_decides_no_attention():
    """A region with a wrong pattern that its clearance admits: exact arithmetic, or bounds, tell its attention."""
    question = make_question(*QUESTION, property="ar", delta=3.0)
    traversal = Traversal.of(question.compound)
    region = traversal.region_at(np.array([0.05]))
    truth = Labeller(question, traversal, 3.0, asks_label=False, asks_attention=True).label(region)
    wrong = bytes(255 - byte for byte in region.pattern)
    planted = replace(region, pattern=wrong, clearance=np.zeros(len(question.compound.hidden)))
    for is_affordable in (True, False):
        labeller = Labeller(question, traversal, 3.0, asks_label=False, asks_attention=True)
        assert labeller.label(replace(region, pattern=wrong)).attention == "IR"
        labeller = Labeller(question, traversal, 3.0, asks_label=False, asks_attention=True)
        labeller.settler._left *= is_affordable
        found = labeller.label(planted)
        assert found.is_doubtful and not truth.is_doubtful
        assert (truth.attention, found.attention) == ("AR", "AR")
        assert found.inconsistency[0] <= truth.inconsistency[1] and truth.inconsistency[0] <= found.inconsistency[1]


def test_a_margin_below_its_error_is_settled():
    """Labels that float64 leaves undecided are settled exactly, if that is affordable."""
    question = make_question(*QUESTION, property="cr")
    traversal = Traversal.of(question.compound)
    region = traversal.region_at(np.array([0.05]))
    labeller = Labeller(question, traversal, 3.0, asks_label=True, asks_attention=False)
    labeller._classify = lambda _: ("undecided", (-1.0, 1.0))  # type: ignore[method-assign]
    name, (low, high) = labeller.classify(region)
    assert name == "CR" and 0.0 < low <= high
    labeller.settler._left = 0
    assert labeller.classify(region) == ("undecided", (-1.0, 1.0))
