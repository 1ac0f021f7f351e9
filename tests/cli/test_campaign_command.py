"""`steadygaze campaign`: output, files and refusals of the commands, and the effect of signals on a run."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from typer.main import get_command

from steadygaze.cli import app
from support.command_line import Run, Runner

PROGRAM = (sys.executable, "-c", "import sys; from steadygaze.cli import main; sys.exit(main())")
SECONDS = 600
"""Long enough to compile everything on a busy machine."""
PLAN = """
[campaign]
name = "tiny"
[limits]
seconds = 60
memory_gib = 4
[[models]]
use = "M-FNN-100"
[[images]]
use = "mnist:69990..69991"
[combinations]
B = ["brightness:0..0.05"]
[[runs]]
method = "map"
[[runs]]
method = "gbs"
property = ["cr", "ar"]
"""
LONG = (
    PLAN.replace("brightness:0..0.05", "translate:dx=28")
    .replace("69991", "69999")
    .replace('["cr", "ar"]', '["cr", "ar", "both"]')
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess]:
    """A campaign of six problems that has ended, by the program itself."""
    place = tmp_path_factory.mktemp("campaign")
    (place / "tiny.toml").write_text(PLAN, encoding="ascii")
    command = [*PROGRAM, "campaign", "run", "tiny.toml", "--out", "out", "--workers", "1"]
    ended = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=SECONDS, check=False)
    return place / "out", ended


def test_a_run_prints_its_progress_and_the_table(done: tuple[Path, subprocess.CompletedProcess]):
    out, ended = done
    assert ended.returncode == 0
    progress = ended.stderr.splitlines()
    assert progress[0] == "0 of 6 problems; starting workers (the first run compiles)"
    assert progress[-1].startswith("6 of 6 problems, ")
    heads, *lines = ended.stdout.splitlines()
    assert heads.split()[:8] == [
        "algorithm",
        "neurons",
        "Robust",
        "NotRobust",
        "Undecided",
        "Timeout",
        "Failed",
        "open",
    ]
    assert [line.split()[:2] for line in lines] == [["map", "100"], ["gbs-CR", "100"], ["gbs-AR", "100"]]
    assert all(sum(map(int, line.split()[2:7])) == 2 and line.split()[6] == "0" for line in lines)
    assert len(list((out / "rows").glob("*.json"))) == 6


def test_status(done: tuple[Path, subprocess.CompletedProcess], run: Runner):
    told = run("campaign", "status", done[0])
    assert told.code == 0 and told.out.startswith("tiny: 6 of 6 problems have ended; no run is active\n")
    answer = run("campaign", "status", done[0], "--json").json
    assert (answer["problems"], answer["open"], answer["is_running"]) == (6, 0, False)
    assert sum(answer["status"].values()) == 6 and answer["failures"] == []


def test_requirements_are_judged_without_solving_again(
    done: tuple[Path, subprocess.CompletedProcess], run: Runner, place: Path
):
    """The plan of the campaign with a requirement: no problem is new, so no worker starts."""
    out = place / "out"
    shutil.copytree(done[0], out)

    def gate(text: str) -> Run:
        plan = PLAN.replace('method = "map"', f'method = "map"\nrequire = "{text}"')
        Path("tiny.toml").write_text(plan, encoding="ascii")
        return run("campaign", "run", "tiny.toml", "--out", out)

    assert gate("CR >= 0.5").code == 0
    assert run("campaign", "status", out, "--exit-code").code == 0
    missed = gate("median CR <= 0.5")
    assert missed.code == 10 and "Required median CR <= 0.5: not met (median CR 100 %)" in missed.out
    blamed = [line.strip() for line in missed.out.splitlines() if line.startswith("  ")]
    assert blamed == [f"mnist:6999{n} · B · map: CR 100 % (at most 0.5 required)" for n in (0, 1)]
    assert run("campaign", "status", out).code == 0 and run("campaign", "status", out, "--exit-code").code == 10
    data = run("campaign", "status", out, "--json").json["require"]
    assert data["outcome"] == "not met" and len(data["requirements"][0]["to_blame"]) == 2 and data["unanswered"] == []
    path = out / "rows" / "M-FNN-100_mnist-69990_B_map_both_3.json"
    row = json.loads(path.read_text(encoding="ascii"))
    row["answer"] |= {"status": "Timeout", "reason": "timeout of 1 s", "cr_low": None, "cr_high": None}
    path.write_text(json.dumps(row), encoding="ascii")
    late = gate("50% of images meet CR >= 0.5")
    assert late.code == 3 and "1 problems failed, timed out or have not ended" in late.out
    assert "mnist:69990 · B · map: Timeout: timeout of 1 s" in late.out and "All requirements: undecided" in late.out
    assert gate("CX >= 1").code == 2
    assert run("campaign", "run", "tiny.toml", "--out", out).err.count("\n") == 1


def test_junit_and_report_are_written(done: tuple[Path, subprocess.CompletedProcess], run: Runner, place: Path):
    assert run("campaign", "junit", done[0]).out.startswith("<?xml")
    written = run("campaign", "junit", done[0], "--out", "out.xml")
    assert (
        written.code == 0
        and "wrote out.xml" in written.err
        and run("campaign", "junit", done[0], "--out", "out.xml").code == 2
    )
    told = run("campaign", "report", done[0], "--out", "pages")
    assert (told.code, told.out) == (0, "report  pages/index.html (0 full reports)\n")
    refused = run("campaign", "report", done[0], "--out", "pages", "--full", "nothing")
    assert refused.code == 2 and "--full 'nothing': no such problem" in refused.err
    key = "M-FNN-100_mnist-69990_B_map_both_3"
    made = run("campaign", "report", done[0], "--out", "pages", "--full", key, "--json").json
    assert len(made["notes"]) == 1 and "contain all their weights; --no-weights" in made["notes"][0]
    (page,) = made["reports"]
    size = Path(page).stat().st_size
    bare = run("campaign", "report", done[0], "--out", "pages", "--full", key, "--no-weights", "--json").json
    assert bare["notes"] == [] and [Path(one).name.endswith("-no-weights.html") for one in bare["reports"]] == [True]
    assert not Path(page).exists() and Path(bare["reports"][0]).stat().st_size != size


def test_tables(done: tuple[Path, subprocess.CompletedProcess], run: Runner, place: Path):
    assert run("campaign", "table", done[0]).out == done[1].stdout
    lines = json.loads(run("campaign", "table", done[0], "--format", "json", "--answers").out)
    assert [line["algorithm"] for line in lines] == ["map", "gbs-CR", "gbs-AR"] and "median s" not in lines[0]
    printed = run("campaign", "table", done[0], "--format", "csv")
    assert printed.out.count("\n") == 7 and printed.out.startswith("key,model,neurons,")
    for form in ("csv", "parquet"):
        written = run("campaign", "table", done[0], "--format", form, "--out", f"results.{form}")
        assert (written.code, written.out) == (0, "")
    assert (place / "results.csv").read_text(encoding="utf-8") == printed.out
    assert (place / "results.parquet").read_bytes().startswith(b"PAR1")
    refused = run("campaign", "table", done[0], "--format", "csv", "--out", "results.csv")
    assert refused.code == 2 and "exists already; choose another --out" in refused.err
    assert run("campaign", "table", done[0], "--format", "csv", "--out", "results.csv", "--force").code == 0


BAD = [
    (("run", "nothing.toml", "--out", "new"), "nothing.toml: no such file"),
    (("run", "bad.toml", "--out", "new"), "bad.toml: runs 1.method is 'maps'"),
    (("run", "tiny.toml"), "Missing option '--out'"),
    (("run", "tiny.toml", "--out", "."), "exists and holds no campaign"),
    (("run", "tiny.toml", "--out", "new", "--workers", "0"), "--workers"),
    (("run", "tiny.toml", "--out", "new", "--workers", "two"), "--workers"),
    (("run", "tiny.toml", "--out", "new", "--workers", "1", "--scheduler", "tcp://127.0.0.1:1"), "leave one"),
    (("status", "nowhere"), "nowhere: holds no campaign"),
    (("table", "nowhere"), "nowhere: holds no campaign"),
    (("table", "nowhere", "--format", "xls"), "--format is 'xls'; expected text, json, csv, parquet"),
    (("table", "nowhere", "--format", "parquet"), "--format parquet needs --out FILE"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[message[:30] for _, message in BAD])
def test_mistakes_are_reported_in_one_line(run: Runner, place: Path, arguments: tuple[str, ...], message: str):
    (place / "tiny.toml").write_text(PLAN, encoding="ascii")
    (place / "bad.toml").write_text(PLAN.replace('"map"', '"maps"'), encoding="ascii")
    told = run("campaign", *arguments)
    assert (told.code, told.out) == (2, "")
    assert message in told.err and told.err.count("\n") == 1 and told.err.startswith("steadygaze: ")
    assert sorted(path.name for path in place.iterdir()) == ["bad.toml", "tiny.toml"]


def test_no_command_is_no_success(run: Runner):
    told = run("campaign")
    assert told.code == 2 and "run" in told.err and "table" in told.err


def test_every_command_and_option_is_documented():
    written = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    commands = get_command(app).commands["campaign"].commands
    assert set(commands) >= {"run", "status", "table"}
    for name, command in commands.items():
        assert f"## steadygaze campaign {name}\n" in written and command.help
        for parameter in command.params:
            assert parameter.help and (parameter.param_type_name != "option" or f"`{parameter.opts[0]}" in written)


def test_ctrl_c_on_a_terminal_ends_cleanly(tmp_path: Path):
    (tmp_path / "long.toml").write_text(LONG, encoding="ascii")
    command = [*PROGRAM, "campaign", "run", "long.toml", "--out", "out", "--workers", "1"]
    primary, secondary = pty.openpty()
    process = subprocess.Popen(
        command, cwd=tmp_path, stdin=secondary, stdout=subprocess.PIPE, stderr=secondary, start_new_session=True
    )
    os.close(secondary)
    shown: list[bytes] = []

    def read_terminal() -> None:
        """A terminal that nobody reads is full after a while, and then the program waits."""
        with suppress(OSError):  # the other side is closed
            while part := os.read(primary, 4096):
                shown.append(part)

    reader = threading.Thread(target=read_terminal, daemon=True)
    reader.start()
    until = time.monotonic() + SECONDS
    while len(list(tmp_path.glob("out/rows/[A-Z]*.json"))) < 2:
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=SECONDS)
    reader.join(timeout=SECONDS)
    os.close(primary)
    assert process.returncode == 3 and b"algorithm" in output
    assert "of 40 problems" in b"".join(shown).decode(errors="replace")
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    rows = {path: path.read_bytes() for path in tmp_path.glob("out/rows/*.json")}
    assert 2 <= len(rows) < 40
