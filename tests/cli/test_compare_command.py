"""`compare`: tables, JSON and files of stored results, and refusals."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from steadygaze import compare, load
from steadygaze.cli.comparison_text import contrary_text, describe_comparison
from steadygaze.compare import comparison_figure
from steadygaze.compare.comparison import judge_worsening
from steadygaze.report.drawing import raster
from steadygaze.requirement import Outcome
from support.command_line import SMALL, Runner

DOCUMENT = Path(__file__).parents[2] / "docs" / "compare.md"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the results that `pair` computes once."""
    return tmp_path_factory.mktemp("pair")


@pytest.fixture
def pair(run: Runner, stored: Path) -> tuple[str, str]:
    """Two networks on one line of thetas."""
    for model, out in (("M-FNN-100", "one"), ("M-FNN-200", "two")):
        if not (stored / out).exists():
            run("verify", model, *SMALL[2:], "--out", str(stored / out), "--delta", "10%")
        shutil.copytree(stored / out, out)
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

    monkeypatch.setattr(comparison_figure, "write_figure", write)


def test_tables(run: Runner, pair: tuple[str, str]):
    result = run("compare", *pair)
    assert result.code == 0
    for words in ("Compared: M-FNN-100, M-FNN-200", "CR: label kept", "only M-FNN-100", "kept, by AR, largest first"):
        assert words in result.out
    assert "note: δ = 10% is relative to each result's own original maps" in result.err
    # Without a number: each network's own maps have another size.
    assert "δ = 10% share of domain" in " ".join(result.out.split())
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
    monkeypatch.setattr(raster, "PIXELS", 50)
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
        (("one",), "compare got one directory, and needs two or more"),
        ((), "Missing argument"),
        (("one", "nowhere"), "nowhere: no such directory"),
        (("one", "two", "--delta", "x"), "not a threshold"),
        (("one", "two", "--out", "one/result.json"), "exists already"),
        (("one", "two", "--out", "one/result.json/x.png"), "is not a directory"),
        (("one", "searched"), "searched: holds a search (gbs), which bounds no shares"),
        (("one", "two", "--share", "CR"), "--share needs --fail-if-worse"),
        (("one", "two", "--fail-if-worse", "2"), "--fail-if-worse is '2'; expected a share"),
        (("one", "two", "--fail-if-worse", "nan"), "--fail-if-worse is 'nan'; expected a share"),
        (("one", "two", "--fail-if-worse", "0", "--share", "CX"), "--share: there is no share 'CX'"),
    ],
)
def test_refusals_are_one_line(run: Runner, pair: tuple[str, str], arguments: tuple[str, ...], words: str):
    if "searched" in arguments:
        run(*SMALL, "--method", "gbs", "--delta", "3.0", "--out", "searched")
    result = run("compare", *arguments)
    assert (result.code, result.out) == (2, "") and words in result.err and result.err.count("\n") == 1


def test_a_bfs_takes_part_by_its_shares(run: Runner, pair: tuple[str, str], undrawn: None):
    run("verify", "M-FNN-100", *SMALL[2:], "--out", "searched", "--delta", "10%", "--method", "bfs")
    for order in (("one", "searched"), ("searched", "one")):
        told = run("compare", *order, "--json", "--fail-if-worse", "0.01", "--out", "fig.png", "--force")
        assert told.code == 0, told.err
        exact, bounded = (
            next(each for each in told.json["results"] if each["method"] == name) for name in ("map", "bfs")
        )
        for name, (low, high) in bounded["area"].items():
            if name != "undecided":
                assert low <= exact["area"][name][0] and exact["area"][name][1] <= high
        both = next(each for each in told.json["differences"] if each["property"] == "both")
        assert not both["exact"] and both["shares"]["both"][0] <= exact["area"]["CR&AR"][0]
    assert "not known" in run("compare", "one", "searched").out


def test_a_worse_network_fails(run: Runner, pair: tuple[str, str]):
    """M-FNN-200 keeps its attention on less of the domain than M-FNN-100, both their label everywhere."""
    shares = [load(one).areas["CR&AR"] for one in pair]
    lost = shares[0][0] - shares[1][1]
    assert lost > 0.02
    told = run("compare", *pair, "--fail-if-worse", "0.01")
    assert told.code == 10 and "Not worse by more than 1.00 %: not met" in told.out and "M-FNN-200: CR&AR" in told.out
    assert run("compare", *pair, "--fail-if-worse", str(lost + 0.001)).code == 0
    assert run("compare", *reversed(pair), "--fail-if-worse", "0").code == 0
    assert run("compare", *pair, "--fail-if-worse", "0", "--share", "CR").code == 0
    assert run("compare", *pair, "--fail-if-worse", "0.01", "--share", "IR").code == 10, "more of IR is worse"
    assert run("compare", pair[0], pair[0], pair[1], "--fail-if-worse", "1%").code == 10
    gate = run("compare", *pair, "--fail-if-worse", "1%", "--share", "ar&cr", "--json").json["fail_if_worse"]
    assert (gate["share"], gate["allowed"], gate["outcome"]) == ("CR&AR", 0.01, "not met")
    assert gate["baseline"] == list(shares[0]) and gate["results"][0]["bounds"] == list(shares[1])


def test_what_bounds_leave_open_is_open(run: Runner, pair: tuple[str, str]):
    run("verify", "M-FNN-100", *SMALL[2:], "--out", "part", "--delta", "10%", "--method", "map", "--max-regions", "2")
    share, (low, high) = load("one").areas["CR&AR"][0], load("part").areas["CR&AR"]
    assert low <= share <= high and low < high
    order, gap = (("one", "part"), share - low) if share - low > high - share else (("part", "one"), high - share)
    assert run("compare", *order, "--fail-if-worse", f"{gap / 2:f}").code == 3
    assert run("compare", *order, "--fail-if-worse", f"{gap + 0.01:f}").code == 0


@pytest.mark.parametrize(
    ("baseline", "new", "outcome"),
    [
        # In 64ths; 1 is allowed.
        ((40, 42), (20, 38), Outcome.NOT_MET),
        ((40, 42), (20, 39), Outcome.UNDECIDED),
        ((40, 40), (39, 39), Outcome.MET),
        ((40, 42), (40, 42), Outcome.UNDECIDED),
        ((40, 42), (41, 42), Outcome.MET),
        ((0, 64), (0, 64), Outcome.UNDECIDED),
        ((0, 1), (0, 0), Outcome.MET),
        ((10, 20), (63, 64), Outcome.MET),
    ],
)
def test_worse_is_proved_and_not_worse_is_proved(baseline: tuple, new: tuple, outcome: Outcome):
    shares = [tuple(end / 64 for end in bounds) for bounds in (baseline, new)]
    losses = [tuple(1 - end for end in reversed(bounds)) for bounds in shares]
    assert judge_worsening(*shares, allowed=1 / 64) is outcome
    assert judge_worsening(*losses, allowed=1 / 64, share="MR") is outcome


def test_a_name_cannot_make_markup(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]):
    describe_comparison(replace(compare(pair), names=("[red]a[/red]", "[/nothing]")))
    assert "[red]a[/red] and [/nothing]" in capsys.readouterr().out


def test_many_contrary_pairs_are_counted():
    text = contrary_text([[0, 1]] * 5, ["A", "B"])
    assert text.count("A keeps the label on more of the domain, B the attention") == 3 and "and 2 more pairs" in text
