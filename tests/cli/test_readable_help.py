"""Help in any width: no text is cut, and defaults have no parentheses; errors suggest words for misspelt options."""

import re

import pytest

from support.command_line import SMALL, Runner

COMMANDS = [(), ("campaign",), ("verify",), ("report",), ("figure",), ("compare",), ("campaign", "run")]


@pytest.mark.parametrize("columns", [40, 80, 120])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_fits_and_nothing_is_cut(run: Runner, monkeypatch: pytest.MonkeyPatch, command, columns: int):
    monkeypatch.setenv("COLUMNS", str(columns))
    text = run(*command, "--help").out
    lines = text.splitlines()
    assert not [line for line in lines if re.search(r"\w\.\.\.$", line)], "a sentence is cut"
    assert "[default: (" not in text
    # The spelling of an option is not broken.
    assert all(len(line) <= columns for line in lines if not line.startswith("  --"))


def test_the_default_is_told(run: Runner, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert "[default: 25%]" in " ".join(run("verify", "--help").out.split())


@pytest.mark.parametrize(
    ("option", "given", "guess"),
    [
        ("--method", "bsf", "bfs"),
        ("--method", "gsb", "gbs"),
        ("--property", "boht", "both"),
        ("--attention", "objekt", "object"),
        ("--explain", "gradiant", "gradient"),
        ("--filter", "abs+maen", "mean"),
        ("--dist", "l22", "l2"),
        ("--goal", "verdikt", "verdict"),
        ("--pictures", "pgn", "png"),
        ("--fit", "rezise", "resize"),
    ],
)
def test_misspelt_words_are_guessed(run: Runner, option: str, given: str, guess: str):
    done = run(*SMALL, option, given)
    assert done.code == 2 and f"Did you mean {guess}?" in done.err and len(done.err.splitlines()) == 1


def test_an_answer_fits_forty_columns(run: Runner, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "40")
    done = run(*SMALL, "--pictures", "none", "--out", "out")
    lines = [line for line in done.out.splitlines() if not line.startswith("result")]
    assert done.code in (0, 10) and all(len(line) <= 40 for line in lines)
    assert "…" not in done.out
