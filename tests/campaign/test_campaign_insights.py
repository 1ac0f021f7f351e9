"""Insight tables against numbers worked out by hand."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from steadygaze.campaign.stored_campaign import Store, Task
from steadygaze.campaign.tables import TABLES, Insight, Ranks, Share, make_insights, make_records
from support.stand_ins.made_up_campaigns import MAPS, made_up, shares


def insights(store: Store) -> dict[str, Insight]:
    found = {one.name: one for one in make_insights(make_records(store))}
    assert list(found) == list(TABLES)
    return found


def close(value: Any) -> Any:
    return pytest.approx(value, abs=1e-12)


def test_collapse_is_the_mean_over_images_that_all_combinations_have(tmp_path: Path):
    kept = {("B", "mnist:69990"): 0.2, ("B", "mnist:69991"): 0.5, ("P", "mnist:69990"): 0.6, ("P", "mnist:69991"): 0.4}

    def answer(task: Task) -> dict[str, Any] | None:
        if task.model == "M-FNN-200" and task.combination == "P" and task.image == "mnist:69991":
            return None
        return shares(0.9, kept[task.combination, task.image])

    lines = insights(made_up(tmp_path, answer, MAPS))["collapse"].lines
    told = [
        (line["model"], line["combination"], line["rank"], line["images"], line["images where most"]) for line in lines
    ]
    assert told == [
        ("M-FNN-100", "B", Ranks(1, 1), 2, 1),
        ("M-FNN-100", "P", Ranks(2, 2), 2, 1),
        ("M-FNN-200", "B", Ranks(1, 1), 1, 1),
        ("M-FNN-200", "P", Ranks(2, 2), 1, 0),
    ]
    assert [line["IR"].low for line in lines] == close([0.65, 0.5, 0.8, 0.4])
    assert all(line["MR"].low == close(0.1) for line in lines)


def test_an_order_that_bounds_leave_open_is_not_claimed(tmp_path: Path):
    store = made_up(tmp_path, lambda task: shares(0.9, 0.5 if task.combination == "B" else 0.52, slack=0.03), MAPS)
    found = insights(store)
    assert {line["rank"] for line in found["collapse"].lines} == {Ranks(1, 2)}
    assert {line["images where most"] for line in found["collapse"].lines} == {0}
    assert found["collapse"].lines[0]["IR"] == Share(close(0.47), close(0.53))


def test_silent_counts_what_is_proved(tmp_path: Path):
    def answer(task: Task) -> dict[str, Any]:
        if task.combination == "P":
            return shares(1.0, 1.0, slack=0.01)  # CR and IR may or may not occur
        return shares(0.8, 0.25)

    lines = insights(made_up(tmp_path, answer, MAPS))["silent"].lines
    brightness, patch, both = lines[:3]
    assert [line["combination"] for line in lines[:3]] == ["B", "P", "all"]
    assert [(line["problems"], line["with CR&IR"], line["not known"]) for line in lines[:3]] == [
        (2, 2, 0),
        (2, 0, 2),
        (4, 2, 2),
    ]
    assert (brightness["CR&IR"].low, brightness["CR&IR of CR"].high) == (close(0.6), close(0.75))
    assert patch["CR&IR"] == Share(0.0, close(0.01))
    assert both["CR&IR of CR"].low == close(1.2 / 3.6) and both["CR&IR of CR"].high == close(
        (1.2 + 0.02) / (1.6 + 1.98)
    )
    assert (both["regions"], both["regions CR&IR"]) == (40, 16)


def test_delta_and_filter(tmp_path: Path):
    runs = MAPS + 'delta = [3.0, "25%"]\nfilter = ["identity", "abs"]\ndist = ["l1", "l2"]\n'

    def answer(task: Task) -> dict[str, Any]:
        bonus = (
            0.1 * (task.options["filter"] == "abs")
            + 0.05 * (task.options["dist"] == "l1")
            + 0.2 * (task.model == "M-FNN-200")
        )
        return shares(
            0.9, 0.3 if task.options["delta"] == "3" else 0.2, percents=tuple(bonus + 0.1 * k for k in range(4))
        )

    found = insights(made_up(tmp_path, answer, runs))
    line = found["delta"].lines[0]
    assert (line["filter"], line["dist"], line["model"], line["combination"], line["images"]) == (
        "identity", "l1", "M-FNN-100", "B", 2,
    )  # fmt: skip
    assert (line["AR at δ=3"].low, line["AR at δ=25%"].low) == (close(0.3), close(0.2))
    assert [line[f"AR at {part}"].low for part in ("10%", "25%", "50%", "100%")] == close([0.05, 0.15, 0.25, 0.35])
    assert len(found["delta"].lines) == 4 * 2 * 2
    everything = {(each["filter"], each["dist"]): each for each in found["filter"].lines if each["model"] == "all"}
    assert everything["abs", "l1"]["AR at 10%"].low == close(0.25) and everything["identity", "l2"]["problems"] == 8
    assert "one filter" not in found["filter"].note


def test_networks_are_ranked_by_what_is_proved(tmp_path: Path):
    def answer(task: Task) -> dict[str, Any]:
        return shares(0.9, 0.3) if task.model == "M-FNN-100" else shares(0.8, 0.4)

    lines = insights(made_up(tmp_path, answer, MAPS))["ranking"].lines
    assert [(line["model"], line["rank CR"], line["rank AR"], line["passes by AR"]) for line in lines] == [
        ("M-FNN-100", Ranks(1, 1), Ranks(2, 2), ""),
        ("M-FNN-200", Ranks(2, 2), Ranks(1, 1), "M-FNN-100"),
    ]
    (tmp_path / "loose").mkdir()
    loose = made_up(tmp_path / "loose", lambda task: answer(task) | {"cr_low": 0.7, "cr_high": 1.0}, MAPS)
    assert [line["passes by AR"] for line in insights(loose)["ranking"].lines] == ["", ""]


def test_only_whole_domains_count_and_the_better_answer(tmp_path: Path):
    runs = MAPS + '[[runs]]\nmethod = "refine"\n[[runs]]\nmethod = "bfs"\n[[runs]]\nmethod = "map"\nproperty = "cr"\n'

    def answer(task: Task) -> dict[str, Any]:
        if task.method == "bfs":
            return shares(0.1, 0.1)
        if task.method == "refine":
            return shares(0.5, 0.5, slack=0.2)
        if task.options["property"] == "cr":
            return {key: None if key.startswith("ar_at") else value for key, value in shares(0.5, 0.0).items()}
        return shares(0.5, 0.5) if task.image == "mnist:69990" else {"status": "Timeout", "reason": "time limit"}

    store = made_up(tmp_path, answer, runs)
    line = insights(store)["collapse"].lines[0]
    assert line["images"] == 2 and line["IR"] == Share(close(0.4), close(0.6))  # the mean of 0.5 and of 0.3 to 0.7
    empty = insights(made_up_empty(tmp_path))
    assert all(not one.lines for one in empty.values())
    assert all("no problems for this table" in one.to_text() for one in empty.values())


def made_up_empty(tmp_path: Path) -> Store:
    (tmp_path / "empty").mkdir()
    return made_up(tmp_path / "empty", lambda task: None, MAPS)


def test_formats_hold_the_same(tmp_path: Path):
    # The label is never kept where the patch is: how much of CR is IR is then not known.
    store = made_up(tmp_path, lambda task: shares(0.0 if task.combination == "B" else 0.8, 0.25), MAPS)
    silent = insights(store)["silent"]
    lines = list(csv.DictReader(io.StringIO(silent.to_csv())))
    assert [line["CR&IR of CR_low"] for line in lines[:2]] == ["", repr(silent.lines[1]["CR&IR of CR"].low)]
    assert "CR&IR of CR" not in lines[0] and lines[0]["regions"] == "20"
    data = silent.as_data()
    assert data["lines"][1]["CR&IR"] == [silent.lines[1]["CR&IR"].low, silent.lines[1]["CR&IR"].high]
    assert data["lines"][0]["CR&IR of CR"] is None
    ranking = list(csv.DictReader(io.StringIO(insights(store)["ranking"].to_csv())))
    assert (ranking[0]["rank CR_first"], ranking[0]["rank CR_last"]) == ("1", "2")
    text = silent.to_text().splitlines()
    assert text[0].startswith("silent: how often") and text[1].split()[:3] == ["model", "neurons", "combination"]
    assert text[-1].startswith("(") and "60.00 %" in text[3]
