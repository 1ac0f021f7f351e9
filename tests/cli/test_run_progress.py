"""The progress line: every state has a name, its numbers, and a time."""

import pytest

from steadygaze.budget import Budget, Limits
from steadygaze.cli import run_progress
from steadygaze.cli.progress_line import progress_line
from steadygaze.engines.contract import Progress

MAP, REFINEMENT, SEARCH = Progress(0.25, 5000), Progress(0.8, 300, 40, 17), Progress(None, 5000)
LIMITED = Limits(timeout_seconds=100.0)


@pytest.fixture
def shown(monkeypatch):
    """Shows reports at given seconds, and returns the last state and text of the line."""

    def show(limits, *reports):
        budget = Budget(limits)
        monkeypatch.setattr(budget, "seconds_left", lambda: 42.3 if limits.timeout_seconds else float("inf"))
        progress = progress_line(budget, growing=(), phases=run_progress.PHASES)
        display = run_progress.Display(progress)
        with budget.clock.phase("walk"):
            for seconds, report in reports:
                monkeypatch.setattr(run_progress.time, "monotonic", lambda now=seconds: 1000.0 + now)
                display.advance(report)
            (task,) = progress.tasks
            return str(progress.columns[1].render(task)), str(progress.columns[3].render(task))

    return show


@pytest.mark.parametrize(
    "report,state,text",
    [
        (MAP, "mapping", "25.00 %, 5,000 regions, 1,000/s, 0:00:15 left"),
        (REFINEMENT, "refining", "80.00 % proved, 17 boxes open, 300 regions, at least 0:00:01 left"),
        (SEARCH, "searching", "5,000 regions visited, 1,000/s"),
        (Progress(1e-9, 5000), "mapping", "1e−7 %, 5,000 regions, 1,000/s"),
    ],
)
def test_reports_of_engines(shown, report, state, text):
    assert shown(Limits(), (0.0, report), (5.0, report)) == (state, text)
    has_time = text.endswith("left")
    assert shown(LIMITED, (0.0, report), (5.0, report))[1] == text + (
        "" if has_time else ", 0:00:42 until the time limit"
    )


def test_a_first_report_has_no_speed(shown):
    assert shown(Limits(), (0.0, MAP)) == ("mapping", "25.00 %, 5,000 regions")
    assert shown(LIMITED, (0.0, MAP))[1] == "25.00 %, 5,000 regions, 0:00:42 until the time limit"


def test_phases_without_reports_tell_the_time_until_the_limit(monkeypatch):
    budget = Budget(LIMITED)
    monkeypatch.setattr(budget, "seconds_left", lambda: 42.3)
    progress = progress_line(budget, growing=(), phases=run_progress.PHASES)
    run_progress.Display(progress)
    with budget.clock.phase("self-check"):
        (task,) = progress.tasks
        shown = str(progress.columns[1].render(task)), str(progress.columns[3].render(task))
    assert shown == ("self-check", "0:00:42 until the time limit")
