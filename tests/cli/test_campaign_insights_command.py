"""`steadygaze campaign figures` and `insights`: output, files and refusals."""

import json
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from steadygaze import api
from steadygaze.campaign import figures
from support.command_line import Runner
from support.stand_ins.made_up_campaigns import MAPS, SEARCHES, made_up, shares, visited


@pytest.fixture
def stored(place: Path) -> str:
    made_up(place, lambda task: shares(0.9, 0.25) if task.method == "map" else visited(7), MAPS + SEARCHES)
    return "out"


def test_figures_are_drawn_and_the_example_is_searched_again(
    run: Runner, place: Path, stored: str, monkeypatch: pytest.MonkeyPatch
):
    drawn = []
    monkeypatch.setattr(figures, "search_figure", lambda found: drawn.append(found) or Figure())
    told = run("campaign", "figures", stored, "--out", "drawn", "--format", "svg")
    assert (told.code, told.err) == (0, "")
    files = sorted(path.name for path in (place / "drawn").iterdir())
    assert [f"picture drawn/{name}" for name in files] == told.out.splitlines() and len(files) == 7
    (found,) = drawn
    assert (found.question.model_name, found.question.property.value) == ("M-FNN-100", "ar")
    specs = ["brightness:0..0.05"]
    again = api.search("M-FNN-100", "mnist:69990", specs, property="ar", method="gbs", delta=3.0, w_delta=0.2)
    assert found.region_count == again.region_count != 7  # the rows are made up
    again = run("campaign", "figures", stored, "--out", "drawn", "--format", "svg")
    assert again.code == 2 and "--force" in again.err and again.err.count("\n") == 1


def test_figures_as_json_beside_the_campaign(run: Runner, place: Path):
    made_up(place, lambda task: None, MAPS)
    told = run("campaign", "figures", "out", "--json").json
    assert told["pictures"] == ["out/figures/figure-A-status-attention.png"] and (place / told["pictures"][0]).exists()
    assert told["missing"]["G"] == "no gbs problem of up to three parameters has an answer"
    noted = run("campaign", "figures", "out", "--force")
    assert noted.err.count("\n") == 6 and noted.err.startswith("note: no figure (B): ")


def test_insights_in_all_formats(run: Runner, place: Path, stored: str):
    text = run("campaign", "insights", stored).out
    assert [line.partition(":")[0] for line in text.splitlines() if ": " in line and line[0].isalpha()] == [
        "collapse", "silent", "delta", "filter", "ranking",
    ]  # fmt: skip
    assert "this plan has one filter and distance" in text
    data = json.loads(run("campaign", "insights", stored, "--format", "json", "--table", "silent").out)
    assert [one["name"] for one in data] == ["silent"] and data[0]["lines"][0]["CR&IR"] == pytest.approx([0.675] * 2)
    printed = run("campaign", "insights", stored, "--format", "csv", "--table", "collapse").out
    assert printed.startswith("model,neurons,combination,rank_first,rank_last,IR_low,IR_high,")
    written = run("campaign", "insights", stored, "--format", "csv", "--table", "collapse", "--out", "a.csv")
    assert (written.code, written.out) == (0, "") and (place / "a.csv").read_text(encoding="utf-8") == printed


BAD = [
    (("figures", "nowhere"), "nowhere: holds no campaign"),
    (("figures", "out", "--format", "bmp"), "unknown --format 'bmp'"),
    (("figures", "out", "--plan", "none.toml"), "none.toml: no such file"),
    (("figures", "out", "--plan", "smoke"), "--plan differs from the plan of the campaign"),
    (("insights", "nowhere"), "nowhere: holds no campaign"),
    (("insights", "out", "--format", "xls"), "--format is 'xls'; expected text, json, csv"),
    (("insights", "out", "--format", "csv"), "give --table"),
    (("insights", "out", "--table", "all"), "--table is 'all'; expected collapse, silent, delta, filter, ranking"),
    (("insights", "out", "--out", "plan.toml"), "exists already; choose another --out"),
    (("insights", "out", "--out", "no/such/file"), "choose another --out"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_what_is_wrong_is_said_in_one_line(
    run: Runner, place: Path, stored: str, arguments: tuple[str, ...], message: str
):
    told = run("campaign", *arguments)
    assert (told.code, told.out) == (2, "")
    assert message in told.err and told.err.count("\n") == 1 and told.err.startswith("steadygaze: ")
    assert sorted(path.name for path in place.iterdir()) == ["out", "plan.toml"]
    assert sorted(path.name for path in (place / "out").iterdir()) == ["campaign.json", "rows"]
