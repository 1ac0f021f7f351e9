"""`report`: a stored result as one file; its verdict as exit code, and one line for every mistake."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from steadygaze import load
from steadygaze.report.page import cards, html
from support.command_line import SMALL, Runner


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """No interactive map, and pictures that take no time."""
    monkeypatch.setattr(
        html, "make_explorer", lambda *_, **__: SimpleNamespace(head="", html="<p>map</p>", has_weights=True)
    )
    monkeypatch.setattr(cards, "figure_uri", lambda make: "data:image/png;base64,")
    monkeypatch.setattr(html, "result_png", lambda result: b"")


@pytest.fixture
def stored(run: Runner) -> Path:
    assert run(*SMALL, "--out", "out").code == 0
    return Path("out")


def test_the_report_lies_beside_the_result(run: Runner, stored: Path):
    done = run("report", "out")
    assert done.code == 0 and done.out.startswith("ROBUST: Everywhere in the domain")
    assert done.err == "note: the report contains all weights of the network; --no-weights leaves them out\n"
    assert "out/report.html" in done.out
    text = Path("out/report.html").read_text(encoding="utf-8")
    assert "steadygaze report out --force" in text and load("out").question.model.sha256 in text
    assert run(*SMALL, "--out", "out", "--force").code == 0, "a report is not in the way of --force"


def test_another_delta_and_another_place(run: Runner, stored: Path):
    done = run("report", "out", "--delta", "3.0", "--out", "new/page.html", "--exit-code")
    assert done.code == 10 and done.out.startswith("NOT ROBUST: Up to brightness +0.")
    text = Path("new/page.html").read_text(encoding="utf-8")
    assert "the allowed distance of 3" in text and "steadygaze report out --delta 3 --force" in text


def test_a_search(run: Runner):
    assert run(*SMALL, "--method", "gbs", "--delta", "3.0", "--out", "out").code == 10
    done = run("report", "out")
    assert done.code == 0 and done.out.startswith("NOT ROBUST: Everywhere on")
    refused = run("report", "out", "--delta", "5", "--out", "other.html")
    assert refused.code == 2 and ": a search (gbs) answers only δ = " in refused.err and not Path("other.html").exists()


def test_an_existing_file_is_refused_without_force(run: Runner, stored: Path):
    assert run("report", "out").code == 0
    again = run("report", "out")
    assert again.code == 2 and "exists already" in again.err
    assert run("report", "out", "--force").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("missing",), "missing: no such directory"),
        (("empty",), "is not a steadygaze result"),
        (("out", "--out", "empty"), "empty: is a directory; name a file"),
        (("out", "--out", "mine.html"), "mine.html: exists already"),
        (("out", "--out", "mine.html", "--force"), "is not a report of steadygaze"),
        (("out", "--out", "mine.html/report.html"), "mine.html is not a directory"),
        (("out", "--delta", "much"), "delta 'much' is not a threshold"),
        ((), "Missing argument"),
    ],
)
def test_wrong_input_is_one_line(run: Runner, stored: Path, arguments: tuple[str, ...], words: str):
    Path("empty").mkdir()
    Path("mine.html").write_text("mine", encoding="ascii")
    done = run("report", *arguments)
    assert done.code == 2 and done.out == "" and done.err.count("\n") == 1 and words in done.err
    assert Path("mine.html").read_text(encoding="ascii") == "mine" and not list(Path("empty").iterdir())
    assert not list(Path().rglob(".steadygaze-*"))


def test_a_damaged_result_is_refused(run: Runner, stored: Path):
    (stored / "regions.npz").write_bytes(b"")
    done = run("report", "out")
    assert done.code == 2 and "damaged" in done.err and not (stored / "report.html").exists()


def test_without_weights_and_names(run: Runner, stored: Path):
    done = run("report", "out", "--no-weights", "--redact", "--out", "page.html")
    assert done.code == 0 and done.err == ""
    text = Path("page.html").read_text(encoding="utf-8")
    assert "M-FNN-100" not in text and "mnist" not in text and "steadygaze verify MODEL.onnx" in text
