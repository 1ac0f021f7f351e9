"""Runs the command line in this process, in an empty directory, with pictures that take no time to draw."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from steadygaze.cli import main
from steadygaze.report import figures
from support.command_line import Run, Runner


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    """Run a command: run("verify", "M-FNN-100", …)."""

    def draw(result: object, path: str | Path, *, formats: Sequence[str]) -> list[Path]:
        drawn = [Path(path).with_suffix(f".{ending}") for ending in formats]
        for picture in drawn:
            picture.write_text("a picture", encoding="ascii")
        return drawn

    monkeypatch.setattr(figures, "draw_result", draw)

    def run_command(*arguments: str) -> Run:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Run(code, captured.out, captured.err)

    return run_command
