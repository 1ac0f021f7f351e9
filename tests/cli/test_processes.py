"""The installed program as a process: one run for every exit code, signals, pipes, and the terminal."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from steadygaze.labels import Verdict
from support.command_line import SMALL, Runner

PROGRAM = (sys.executable, "-c", "import sys; from steadygaze.cli import main; sys.exit(main())")
SECONDS = 120
LONG = (
    "verify",
    "M-FNN-800",
    "--image",
    "mnist:69990",
    "--perturb",
    "translate:dx=28",
    "--perturb",
    "brightness:-1..1",
)
LONG += ("--property", "cr", "--threads", "1", "--out", "out", "--method", "map")
"""More than half a million regions, and answered soon when it is stopped early."""


@pytest.fixture(name="run_here")
def _run_here(run: Runner) -> Runner:
    """A command in this process, whose pictures cost nothing."""
    return run


def run(place: Path, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, *arguments]
    return subprocess.run(
        command, cwd=place, capture_output=True, encoding="utf-8", timeout=SECONDS, check=False, **options
    )


def test_the_entry_point_is_this_program():
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="steadygaze")
    from steadygaze.cli import main

    assert script.load() is main


def test_robust_is_0_and_draws_the_map(tmp_path: Path):
    result = run(tmp_path, *SMALL, "--out", "out", "--pictures", "png,svg")
    assert (result.returncode, result.stderr) == (0, "")
    assert (tmp_path / "out/map.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "out/map.svg").read_bytes()


def test_not_robust_is_10(tmp_path: Path):
    result = run(tmp_path, *SMALL, "--delta", "3.0", "--json")
    assert result.returncode == 10 and json.loads(result.stdout)["verdict"] == "not robust"
    assert result.stderr == ""


def test_bad_input_is_2(tmp_path: Path):
    result = run(tmp_path, *SMALL, "--delta", "much")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("steadygaze: delta 'much'") and result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_timeout_is_undecided_and_keeps_what_is_proved(tmp_path: Path):
    result = run(tmp_path, *LONG, "--timeout", "1", "--json")
    answer = json.loads(result.stdout)
    assert answer["complete"] is False and answer["stopped"] == "timeout of 1 s"
    assert result.returncode == Verdict(answer["verdict"]).exit_code
    assert result.returncode in (Verdict.UNDECIDED.exit_code, Verdict.NOT_ROBUST.exit_code)


def test_a_bug_is_70(tmp_path: Path):
    broken = (
        "import sys, steadygaze.engines as engines; del engines.RunPlan.run; "
        "from steadygaze.cli import main; sys.exit(main())"
    )
    result = subprocess.run(
        [sys.executable, "-c", broken, *SMALL], cwd=tmp_path, capture_output=True, encoding="utf-8", check=False
    )
    assert result.returncode == 70 and result.stderr.startswith("steadygaze: internal error: AttributeError")
    assert result.stderr.count("\n") == 1 and not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_ctrl_c_in_a_terminal_delivers_what_is_proved(tmp_path: Path):
    shown, terminal = pty.openpty()
    process = subprocess.Popen([*PROGRAM, *LONG], cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal)
    os.close(terminal)
    try:
        seen = _read_until(shown, "regions")
        assert "mapping" in seen and "%" in seen
        process.send_signal(signal.SIGINT)
        _read_until(shown, "stopping (Ctrl-C again aborts)")
        rest = _read_until(shown, None)
        told = process.communicate(timeout=SECONDS)[0].decode("utf-8")
    finally:
        process.kill()
        os.close(shown)
    answer = json.loads((tmp_path / "out/result.json").read_text(encoding="utf-8"))
    assert answer["complete"] is False and answer["stopped"] == "interrupted"
    assert process.returncode == Verdict(answer["verdict"]).exit_code != 0
    assert "Traceback" not in seen + rest and answer["verdict"].upper() in told
    assert "no picture was drawn" in seen + rest and not (tmp_path / "out/map.png").exists()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_ctrl_c_during_a_search_delivers_what_was_visited(tmp_path: Path):
    shown, terminal = pty.openpty()
    question = [word for word in LONG if word not in ("--threads", "1", "--method", "map")]
    process = subprocess.Popen(
        [*PROGRAM, *question, "--method", "bfs"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal
    )
    os.close(terminal)
    try:
        seen = _read_until(shown, "regions visited")
        assert "searching" in seen
        process.send_signal(signal.SIGINT)
        rest = _read_until(shown, None)
        process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        os.close(shown)
    answer = json.loads((tmp_path / "out/result.json").read_text(encoding="utf-8"))
    assert answer["stopped"] == "interrupted" and answer["status"] == "Timeout"
    assert process.returncode == Verdict(answer["verdict"]).exit_code != 0
    assert "Traceback" not in seen + rest and "no picture was drawn" in seen + rest


def _read_until(handle: int, text: str | None) -> str:
    """The output of a terminal up to a text, or to its end."""
    seen = b""
    while text is None or text.encode() not in seen:
        try:
            part = os.read(handle, 4096)
        except OSError:  # the other side is closed
            part = b""
        if not part:
            assert text is None, f"{text!r} was not shown: {seen!r}"
            break
        seen += part
    return seen.decode("utf-8", errors="replace")


def test_the_package_can_be_run_as_a_module(tmp_path: Path):
    done = subprocess.run(
        (sys.executable, "-m", "steadygaze", "models"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0 and done.stdout == run(tmp_path, "models").stdout


def test_a_reader_that_goes_away_is_no_crash(tmp_path: Path):
    process = subprocess.Popen([*PROGRAM, "models"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    complaint = process.stderr.read()
    assert (process.wait(SECONDS), complaint) == (141, b"")


def test_a_terminal_without_unicode_is_no_crash(run_here: Runner, place: Path):
    run_here("verify", "M-FNN-100", "--image", "mnist:69990", "--perturb", "translate:dx=1:0..0.01", "--out", "out")
    result = run(place, "show", "out", env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert result.returncode in (0, 10) and result.stderr == ""
    assert "M-FNN-100 predicts 7" in result.stdout and result.stdout.isascii()


def test_the_demo_needs_no_torch_and_is_not_repeated_by_accident(tmp_path: Path):
    without_torch = "import sys; sys.modules['torch'] = None; from steadygaze.cli import main; sys.exit(main(['demo']))"
    result = subprocess.run(
        [sys.executable, "-c", without_torch], cwd=tmp_path, capture_output=True, encoding="utf-8", check=False
    )
    assert result.returncode == 0, result.stderr
    for name in ("brightness-patch", "translation-brightness"):
        assert (tmp_path / "demo" / name / "map.png").read_bytes().startswith(b"\x89PNG")
        answer = json.loads((tmp_path / "demo" / name / "result.json").read_text(encoding="utf-8"))
        assert answer["delta"]["value"] == 3.0 and answer["complete"] is True
        # An instructive map shows all that it is about: both kept, only the label kept, neither.
        assert all(answer["area"][share][0] > 0.02 for share in ("CR&AR", "CR&IR", "MR"))
        assert 'id="sg-facts"' in (tmp_path / "demo" / name / "report.html").read_text(encoding="utf-8")
    assert "Open demo/brightness-patch/report.html" in result.stdout and "compiles" in result.stderr
    again = run(tmp_path, "demo")
    assert again.returncode == 2 and "--force" in again.stderr
