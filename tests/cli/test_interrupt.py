"""Ctrl-C: the first one gives a partial result, the second one aborts."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from steadygaze import Result
from steadygaze.budget import Budget
from steadygaze.cli.run_progress import stopping_on_signals
from steadygaze.engines.contract import Progress, ProgressReport, RunOptions
from steadygaze.engines.map.map_engine import MapEngine
from steadygaze.question import Question
from support.command_line import Runner

QUESTION = ("verify", "M-FNN-100", "--image", "mnist:69990", "--perturb", "translate:dx=9", "--threads", "1")
QUESTION += ("--out", "out", "--property")
"""Nine knot cells, in the first of which the label is kept everywhere."""


def after_some_regions(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Let something happen during the mapping, once."""
    original = MapEngine.run

    def watched(
        engine: MapEngine, question: Question, budget: Budget, options: RunOptions, progress: ProgressReport
    ) -> Result:
        done = False

        def report(found: Progress) -> None:
            nonlocal done
            if found.regions and not done:
                done = True
                act()

        return original(engine, question, budget, options, report)

    monkeypatch.setattr(MapEngine, "run", watched)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_gives_a_partial_result(run: Runner, monkeypatch: pytest.MonkeyPatch, number: int):
    after_some_regions(monkeypatch, lambda: os.kill(os.getpid(), number))
    result = run(*QUESTION, "cr", "--json")
    assert result.code == 3
    assert result.json["complete"] is False and result.json["stopped"] == "interrupted"
    assert 0.0 < result.json["area"]["CR"][0] < 1.0
    assert run("show", "out", "--exit-code").code == 3


def test_the_second_signal_aborts(run: Runner, monkeypatch: pytest.MonkeyPatch, place: Path):
    def twice() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    after_some_regions(monkeypatch, twice)
    result = run(*QUESTION, "cr")
    assert (result.code, result.out) == (130, "")
    assert result.err.strip() == "steadygaze: aborted"
    assert not list(place.iterdir())


def test_a_violation_that_is_proved_stays_proved(run: Runner, monkeypatch: pytest.MonkeyPatch):
    after_some_regions(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGINT))
    result = run(*QUESTION, "ar", "--delta", "0", "--json")
    assert result.code == 10 and result.json["complete"] is False


def test_handlers_are_put_back():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    budget = Budget()
    with stopping_on_signals(budget):
        assert signal.getsignal(signal.SIGINT) is not before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert not budget.cancelled.is_set()


def test_ctrl_c_while_the_program_is_imported_shows_no_traceback():
    script = (
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from steadygaze.cli import main\n"
        "sys.exit(main(['--version']))\n"
    )
    done = subprocess.run((sys.executable, "-c", script), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "steadygaze: aborted\n")
