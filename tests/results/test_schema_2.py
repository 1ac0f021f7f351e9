"""Results of schema version 2 are read, with a note, by every command that reads results."""

from pathlib import Path

import pytest

from steadygaze import load
from steadygaze.results.store import read_summary

STORED = Path(__file__).parent / "data" / "schema-2"
"""M-FNN-100, mnist:69990, brightness:0..0.05, δ = 3."""


@pytest.mark.parametrize("method", ["map", "refine", "bfs"])
def test_a_stored_answer_is_read(method: str) -> None:
    summary = read_summary(STORED / method)
    assert (summary.method, summary.verdict.value, summary.label) == (method, "not robust", 7)
    assert any("schema 2" in note for note in summary.notes)
    assert summary.is_search == (method == "bfs") and all(witness.theta for witness in summary.witnesses)


@pytest.mark.parametrize("method", ["map", "refine", "bfs"])
def test_a_stored_result_is_loaded(method: str, tmp_path: Path) -> None:
    result = load(STORED / method)
    assert (result.method, result.verdict.value, result.coverage) == (method, "not robust", 1.0)
    assert any("schema 2" in note for note in result.question.notes)
    assert result.report(tmp_path / "report.html").stat().st_size > 10_000
    if method != "bfs":
        low, high = result.with_delta("100%").areas["AR"]
        assert low <= 1.0 <= high + 1e-6 and result.areas["CR"] == (1.0, 1.0)
