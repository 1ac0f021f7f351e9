"""`compare`: tables, JSON and files of stored results, and what it refuses."""

import json
import re
from pathlib import Path

import pytest

from steadygaze import load
from steadygaze.cli.comparison_text import contrary_text, describe_comparison
from steadygaze.compare import comparison_figure as figure
from support.command_line import SMALL, Runner

DOCUMENT = Path(__file__).parents[2] / "docs" / "compare.md"


@pytest.fixture
def pair(run: Runner) -> tuple[str, str]:
    """Two networks on one line of thetas."""
    for model, out in (("M-FNN-100", "one"), ("M-FNN-200", "two")):
        run("verify", model, *SMALL[2:], "--out", out, "--delta", "10%")
    return "one", "two"


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures that take no time."""

    def write(make: object, path: Path, *, formats: tuple[str, ...], force: bool = True) -> list[Path]:
        target = path.with_suffix("") if path.suffix[1:] in formats else path
        files = [target.with_name(f"{target.name}.{ending}") for ending in formats]
        for file in files:
            file.write_text("a picture", encoding="ascii")
        return files

    monkeypatch.setattr(figure, "write_figure", write)


def test_tables(run: Runner, pair: tuple[str, str]):
    result = run("compare", *pair)
    assert result.code == 0
    for words in ("Compared: M-FNN-100, M-FNN-200", "CR: label kept", "only M-FNN-100", "kept, by AR, largest first"):
        assert words in result.out
    assert "note: δ = 10% is relative to each result's own original maps" in result.err
    assert not Path("comparison.json").exists()


def test_perturbations(run: Runner):
    for place, spec in enumerate(("brightness:0..0.2", "darkness:0..0.2", "patch:x=12,y=12,w=4,h=4:0..0.2")):
        run(*SMALL[:-1], spec, "--out", f"r{place}")
    result = run("compare", "r0", "r1", "r2")
    assert result.code == 0 and "[3] patch:x=12,y=12,w=4,h=4:0..0.2" in result.out
    assert "risk, by nearest IR, smallest first" in result.out and "no difference map" in result.err


def test_json_is_the_comparison(run: Runner, pair: tuple[str, str]):
    result = run("compare", *pair, "--json", "--delta", "5%")
    assert result.code == 0 and result.err == ""
    sides = [load(one).with_delta("5%") for one in pair]
    assert [one["area"]["AR"] for one in result.json["results"]] == [list(side.areas["AR"]) for side in sides]
    assert result.json["output"] == {"files": []}


def test_every_key_is_documented(run: Runner, pair: tuple[str, str]):
    written = re.findall(r"^\| `(\w+)` \| [^|]+ \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(written) == set(run("compare", *pair, "--json").json)
    text = DOCUMENT.read_text(encoding="utf-8")
    for one in (*(run("compare", *pair, "--json").json[name][0] for name in ("differences", "rankings")),):
        assert all(f"`{key}`" in text for key in one)


@pytest.mark.parametrize("ending", ["json", "png", "svg", "pdf"])
def test_one_file(run: Runner, pair: tuple[str, str], undrawn: None, ending: str):
    path = Path(f"new/fig.{ending}")
    Path("new").mkdir()
    result = run("compare", *pair, "--out", path)
    assert result.code == 0 and f"written {path}" in result.out and [*Path("new").iterdir()] == [path]
    again = run("compare", *pair, "--out", path)
    assert (again.code, again.out) == (2, "") and "exists already" in again.err
    assert run("compare", *pair, "--out", path, "--force").code == 0


def test_a_directory(run: Runner, pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(figure, "PIXELS", 50)
    result = run("compare", *pair, "--out", "both", "--json")
    names = {"comparison.json", "comparison.png", "comparison.svg", "comparison.pdf"}
    assert {path.name for path in Path("both").iterdir()} == names
    assert set(result.json["output"]["files"]) == {f"both/{name}" for name in names}
    stored = json.loads(Path("both/comparison.json").read_text(encoding="ascii"))
    assert stored == {key: value for key, value in result.json.items() if key != "output"}
    assert Path("both/comparison.pdf").read_bytes().startswith(b"%PDF")
    assert run("compare", *pair, "--out", "both").code == 2
    assert run("compare", *pair, "--out", "both", "--force").code == 0
    Path("both/notes.txt").write_text("mine", encoding="ascii")
    refused = run("compare", *pair, "--out", "both", "--force")
    assert (refused.code, refused.out) == (2, "") and "'notes.txt'" in refused.err
    assert Path("both/notes.txt").read_text(encoding="ascii") == "mine"


def test_a_result_is_never_replaced(run: Runner, pair: tuple[str, str]):
    refused = run("compare", *pair, "--out", "one", "--force")
    assert refused.code == 2 and "is not part of a comparison" in refused.err
    assert load("one").is_complete


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("one",), "two or more directories"),
        ((), "Missing argument"),
        (("one", "nowhere"), "nowhere: no such directory"),
        (("one", "two", "--delta", "x"), "not a threshold"),
        (("one", "two", "--out", "one/result.json"), "exists already"),
        (("one", "two", "--out", "one/result.json/x.png"), "is not a directory"),
        (("one", "searched"), "searched: holds a search (bfs), which has no shares"),
    ],
)
def test_refusals_are_one_line(run: Runner, pair: tuple[str, str], arguments: tuple[str, ...], words: str):
    if "searched" in arguments:
        run(*SMALL, "--method", "bfs", "--out", "searched")
    result = run("compare", *arguments)
    assert (result.code, result.out) == (2, "") and words in result.err and result.err.count("\n") == 1


def test_a_name_cannot_make_markup(run: Runner, pair: tuple[str, str], capsys: pytest.CaptureFixture[str]):
    summary = run("compare", *pair, "--json").json
    summary["names"] = ["[red]a[/red]", "[/nothing]"]
    describe_comparison(summary)
    assert "[red]a[/red] and [/nothing]" in capsys.readouterr().out


def test_many_contrary_pairs_are_counted():
    text = contrary_text([[0, 1]] * 5, ["A", "B"])
    assert text.count("A the label, B the attention") == 3 and "and 2 more pairs" in text
