"""`steadygaze figure`: files in the expected places, and one line for every mistake."""

import shutil
from pathlib import Path

import pytest
from typer.main import get_command

import steadygaze
from steadygaze.cli import app
from steadygaze.report.figure_kinds import KINDS
from support.command_line import SMALL, Runner


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A map and a search of the same question."""
    folder = tmp_path_factory.mktemp("results")
    question = "M-FNN-100", "mnist:69990", ["brightness:0..0.2"]
    steadygaze.verify(*question, delta=3.0, threads=1).save(folder / "map")
    steadygaze.search(*question, method="gbs").save(folder / "gbs")
    return folder


@pytest.fixture
def stored(results: Path, place: Path) -> Path:
    """The current directory with both results in it."""
    shutil.copytree(results, place, dirs_exist_ok=True)
    return place


def test_a_figure_is_written_beside_the_result_and_said(run: Runner, stored: Path) -> None:
    result = run("figure", "strip", "map", "--steps", "2")
    assert (result.code, result.out, result.err) == (0, "picture map/figure-strip.png\n", "")
    assert (stored / "map" / "figure-strip.png").read_bytes().startswith(b"\x89PNG")
    again = run("figure", "strip", "map", "--steps", "2")
    assert again.code == 2 and "map/figure-strip.png: exists already; choose another --out, or replace" in again.err
    assert run("figure", "strip", "map", "--steps", "3", "--force").code == 0
    # Figures do not keep a result from being replaced.
    assert run(*SMALL, "--out", "map", "--force").code == 0


def test_the_exit_code_of_the_verdict_is_given_on_request(run: Runner, stored: Path) -> None:
    assert run("figure", "tiling", "map", "--out", "a.png").code == 0
    assert run("figure", "tiling", "map", "--out", "b.png", "--exit-code").code == 10
    assert run("figure", "tiling", "map", "--out", "c.png", "--exit-code", "--delta", "25%").code == 0


def test_formats_by_option_and_by_name(run: Runner, stored: Path) -> None:
    result = run("figure", "tiling", "gbs", "--out", "a.pdf", "--json")
    assert result.json == {"kind": "tiling", "pictures": ["a.pdf"]}
    assert (stored / "a.pdf").read_bytes().startswith(b"%PDF")
    result = run("figure", "tiling", "map", "--out", "b", "--format", "png,SVG", "--format", "pdf")
    assert result.out.split() == ["picture", "b.png", "picture", "b.svg", "picture", "b.pdf"]
    (stored / "folder").mkdir()
    assert run("figure", "visited", "gbs", "--out", "folder").out == "picture folder/figure-visited.png\n"


def test_columns_take_several_directories(run: Runner, stored: Path) -> None:
    assert run("verify", "M-FNN-200", *SMALL[2:], "--max-regions", "5", "--out", "other").code in (3, 10)
    assert run("figure", "columns", "map", "other", "--at", "0.1", "--at=0.2", "--out", "c.svg").code == 0
    assert (stored / "c.svg").exists()


CASES = [
    (("pth", "map"), "Did you mean path?"),
    (("path",), "Missing argument 'DIR...'"),
    (("path", "nowhere"), "nowhere: no such directory"),
    (("path", "gbs"), "use visited or tiling, or run verify with --method map or refine"),
    (("visited", "map"), "visited needs a search"),
    (("map", "map", "gbs"), "map takes one result"),
    (("path", "map", "--at", "x"), "--at is 'x'; expected a theta"),
    (("path", "map", "--at", "7"), "theta 7 is outside the domain (brightness 0..0.2); give a theta inside it"),
    (("path", "map", "--steps", "many"), "--steps is 'many'"),
    (("strip", "map", "--along", "patch"), "is not a parameter of this result"),
    (("map", "map", "--format", "gif"), "unknown --format 'gif'; expected png, svg, pdf"),
    (("map", "map", "--out", "x.bmp"), "--out x.bmp: cannot write bmp; expected png, svg, pdf"),
    (("map", "map", "--delta", "abc"), "delta 'abc'"),
    (("tiling", "gbs", "--delta", "3"), "a search (gbs) answers"),
    (("map", "map", "--out", "/dev/null/x"), "cannot be written"),
    (("map", "map", "--out", f"{'x' * 300}.png"), "cannot be written (File name too long)"),
    (("map", "x" * 300), "cannot be written (File name too long)"),
]


@pytest.mark.parametrize(("arguments", "complaint"), CASES, ids=[" ".join(case[0])[:60] for case in CASES])
def test_one_line_for_every_mistake(run: Runner, stored: Path, arguments: tuple[str, ...], complaint: str) -> None:
    before = sorted(stored.rglob("*"))
    result = run("figure", *arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("steadygaze: ") and result.err.count("\n") == 1 and complaint in result.err
    assert sorted(stored.rglob("*")) == before


def test_the_help_names_every_kind_and_option() -> None:
    command = get_command(app).commands["figure"]
    for kind in KINDS:
        assert f"{kind}:" in command.help
    options = {spelling for parameter in command.params for spelling in parameter.opts}
    names = ("at", "along", "steps", "by", "delta", "out", "format", "force", "json", "debug")
    assert {f"--{name}" for name in names} <= options
