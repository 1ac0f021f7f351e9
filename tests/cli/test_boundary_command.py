"""`boundary`: the outermost boundary of a stored map as text, picture and JSON."""

import importlib.util
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest

from steadygaze import load
from steadygaze.cli.answer_text import certainty_text, reach_text
from steadygaze.cli.printing import describe_boundary
from steadygaze.report.figures import boundary
from steadygaze.report.page import cards
from steadygaze.results.boundary_summary import BoundarySummary
from steadygaze.words import share_text
from support.command_line import SMALL, Runner

PLANE = (
    "verify", "M-FNN-100", "--image", "mnist:69990", "--perturb", "brightness", "--perturb", "patch:x=12,y=12,w=4,h=4",
    "--delta", "50%", "--out", "out",
)  # fmt: skip


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures that take no time."""
    monkeypatch.setattr(boundary, "draw_boundary", lambda result, found, path, formats: [Path(f"{path}.png")])


@pytest.fixture
def stored(run: Runner) -> Path:
    assert run(*SMALL, "--delta", "3.0", "--out", "out").code == 10
    return Path("out")


def test_text_and_pictures(run: Runner):
    assert run(*PLANE).code == 10
    result = run("boundary", "out", "--pictures", "png,svg")
    assert result.code == 0 and result.err == ""
    assert "can be reached while the label is kept and the attention maps stay within" in result.out
    assert "component 2" in result.out and "farthest reachable" in result.out
    for ending in (".png", ".svg"):
        assert f"out/boundary{ending}" in result.out and Path("out/boundary").with_suffix(ending).stat().st_size > 1000
    assert run(*PLANE, "--force").code == 10, "the pictures are not in the way of --force"


def test_json_is_what_the_result_says(run: Runner, undrawn: None):
    run(*PLANE)
    printed = run("boundary", "out", "--property", "ar", "--json", "--pictures", "png", "--exit-code")
    found = load("out").boundary("ar")
    answer = printed.json
    assert printed.code == 10 and (answer["verdict"], answer["property"]) == ("not robust", "ar")
    # Proved shares leave out the strips along thresholds.
    assert answer["satisfying_share"] == min(found.satisfying_share, load("out").areas["AR"][0])
    for name in ("reachable_share", "enclosed_share"):
        assert answer[name] == max(0.0, getattr(found, name) - found.strip_share)
    assert answer["unreachable_share"] == found.unreachable_share
    assert answer["farthest"] == {"theta": found.farthest.tolist(), "distance": found.distance}
    assert [part["measure"] for part in answer["components"]] == [part.measure for part in found.components]
    assert [part["inner_regions"] for part in answer["components"]] == [
        part.inner.tolist() for part in found.components
    ]
    assert answer["output"]["pictures"] == ["out/boundary.png"]


def test_shares_are_the_same_in_terminal_json_and_report(run: Runner, undrawn: None):
    run(*PLANE)
    answer, told = run("boundary", "out", "--json").json, run("boundary", "out").out
    page = dict(cards.describe_boundary(load("out"))["facts"])
    for name, told_as, page_as in (
        ("satisfying_share", "satisfies the property", "satisfies the property"),
        ("reachable_share", "reachable from zero", None),
        ("enclosed_share", "inside the boundary", "inside the outermost boundary, enclaves included"),
    ):
        share = share_text(answer[name])
        assert re.search(rf"{told_as} +{re.escape(share)}", told), name
        assert page_as is None or page[page_as] == f"at least {share}"


def test_the_exit_code_is_that_of_the_property_asked(run: Runner, stored: Path, undrawn: None):
    """CR everywhere; AR everywhere at 25 %, but not at 3.0."""
    assert run("boundary", stored, "--exit-code").code == 10
    assert run("boundary", stored).code == 0
    told = run("boundary", stored, "--property", "cr", "--exit-code")
    assert told.code == 0 and "there is no boundary" in told.out
    assert run("boundary", stored, "--property", "ar", "--delta", "25%", "--exit-code").code == 0
    nothing = run("boundary", stored, "--delta", "0", "--exit-code")
    assert nothing.code == 10 and "no part counts as reachable" in nothing.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--property", "mr"), "expected cr, ar or both"),
        (("--delta", "-1"), "is not a threshold"),
    ],
)
def test_bad_options_are_refused(run: Runner, stored: Path, arguments: tuple[str, ...], words: str):
    result = run("boundary", stored, *arguments)
    assert (result.code, result.out) == (2, "") and words in result.err and result.err.count("\n") == 1


def test_a_domain_without_zero_and_a_missing_directory_are_refused(run: Runner):
    run(*SMALL[:-1], "brightness:0.1..0.2", "--out", "beside")
    result = run("boundary", "beside")
    assert (result.code, result.out) == (2, "") and "theta = 0, which is not in the domain" in result.err
    assert run("boundary", "nowhere").code == 2


def test_an_answer_whose_pictures_cannot_be_written_is_told(run: Runner, stored: Path):
    for ending in (".png", ".svg"):
        (stored / "boundary").with_suffix(ending).mkdir()
    result = run("boundary", stored, "--exit-code")
    assert result.code == 10 and "From theta = 0" in result.out and "cannot be written" in result.err


def test_every_key_is_documented(run: Runner, stored: Path, undrawn: None):
    path = Path(__file__).parents[2] / "docs" / "make_cli.py"
    spec = importlib.util.spec_from_file_location("make_cli", path)
    assert spec is not None and spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    assert {*maker.COMMON_KEYS, *maker.BOUNDARY_KEYS} == set(run("boundary", stored, "--json").json)


def test_words_for_what_is_rare(run: Runner, stored: Path, undrawn: None, capsys: pytest.CaptureFixture[str]):
    """Undecided pieces, several components at zero, more enclaves than are listed."""
    facts = run("boundary", stored, "--json").json
    enclave = {"share": 0.1, "satisfying_share": 0.0, "nearest": {"theta": [0.1], "distance": 0.1}, "regions": [3]}
    undecided = {"share": 0.1, "pieces_beside": 3, "strip_share": 1e-9}
    facts |= {"starts": 2, "undecided": undecided, "enclaves": [enclave] * 12}
    summary = msgspec.convert(facts, BoundarySummary)
    assert "From theta = 0" in reach_text(summary)
    for words in ("2 components", "3 undecided pieces", "1e−9"):
        assert words in certainty_text(summary)
    describe_boundary(summary)
    assert "and 2 more" in capsys.readouterr().out


def test_the_shares_of_a_figure_add_up(run: Runner):
    run(*PLANE)
    result = load("out")
    found = result.boundary("ar")
    rows = boundary.area_rows(found)
    assert sum(float(row.share.strip("<> %")) for row in rows) == pytest.approx(100, abs=0.2)
    assert len(boundary.line_rows(found, result.tiling.answers.compound)) == len(found.components)
    assert all(Path(path).stat().st_size for path in boundary.draw_boundary(result, found, "one"))
    assert len(np.unique(boundary.piece_codes(found))) == len(rows)
