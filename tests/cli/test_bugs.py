"""Internal errors: exit code 70 and one line, never the code 1 of a crash."""

import warnings
from typing import Any

import pytest

from steadygaze import Result
from steadygaze.engines.map.map_engine import MapEngine
from steadygaze.errors import InternalError
from support.command_line import SMALL, Runner


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (InternalError("the map has a hole"), "steadygaze: internal error: the map has a hole"),
        (ValueError("two\nlines"), "steadygaze: internal error: ValueError: two lines"),
        (AssertionError(), "steadygaze: internal error: AssertionError"),
    ],
)
def test_a_bug_is_one_line_and_70(run: Runner, monkeypatch: pytest.MonkeyPatch, error: Exception, line: str):
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(MapEngine, "run", fail)
    result = run(*SMALL, "--out", "out")
    assert (result.code, result.out) == (70, "")
    assert result.err.startswith(line) and result.err.count("\n") == 1 and "--debug" in result.err
    assert "please report it with the command and the model" in result.err
    result = run(*SMALL, "--out", "out", "--debug")
    assert result.code == 70 and "Traceback" in result.err and result.err.splitlines()[-1].startswith(line)


def test_no_memory_is_undecided(run: Runner, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(MapEngine, "run", fail)
    result = run(*SMALL, "--out", "out")
    assert result.code == 3 and "out of memory" in result.err and result.err.count("\n") == 1


def test_warnings_of_libraries_are_not_shown(run: Runner, monkeypatch: pytest.MonkeyPatch):
    original = MapEngine.run

    def warn(*arguments: Any) -> Result:
        warnings.warn("a library is old", DeprecationWarning, stacklevel=1)
        return original(*arguments)

    monkeypatch.setattr(MapEngine, "run", warn)
    monkeypatch.setattr("sys.warnoptions", [])
    result = run(*SMALL, "--out", "out", "--quiet")
    assert result.code == 0 and result.err == ""
