"""`verify --method bfs|gbs|boundary`: output, files and exit codes, and `show` afterwards."""

import json
import os
import signal
from pathlib import Path

import pytest

from steadygaze import Budget, Result, load
from steadygaze.engines.contract import Progress, ProgressReport, RunOptions
from steadygaze.engines.search import walker
from steadygaze.engines.search.search_engines import SearchEngine
from steadygaze.question import Question
from steadygaze.report import figures
from support.command_line import SEARCHES, SMALL, Runner

FILES = {"result.json", "regions.npz", "image.npy", "image.png", "timings.json", "search.png", "search.svg"}
LINE = (*SMALL, "--delta", "3.0")
SQUARE = (
    "verify", "M-FNN-100", "--image", "mnist:69990", "--perturb", "brightness:0..0.2",
    "--perturb", "patch:x=12,y=12,w=4,h=4:0..0.2",
)  # fmt: skip
"""Two parameters: the label is kept everywhere, so that a search along a line ends Robust without a proof."""
SPACE = (
    *SQUARE[:5],
    "brightness:0..0.004",
    "--perturb",
    "patch:x=12,y=12,w=4,h=4:0..0.01",
    "--perturb",
    "darkness:0..0.01",
)


@pytest.mark.parametrize("method", SEARCHES)
def test_json_is_one_object_and_the_directory_holds_the_search(run: Runner, place: Path, method: str):
    result = run(*LINE, "--method", method, "--out", "out", "--json")
    assert result.code == 10
    answer = result.json
    assert (answer["method"], answer["verdict"], answer["status"]) == (method, "not robust", "NotRobust")
    assert answer["output"] == {"directory": "out", "pictures": []}
    assert {path.name for path in (place / "out").iterdir()} == FILES - {"search.png", "search.svg"}
    assert set(answer["sets"]) == {"CR", "MR", "CB", "AR", "IR", "AB"} and answer["sets"]["IR"] > 0
    assert answer["visited"] > 0 and 0.0 < answer["visited_share"] <= 1.0 and answer["failures"] == 0
    assert answer["delta"]["value"] == 3.0 and answer["label"] == 7 and answer["stopped"] is None
    assert answer["w_delta"] == (0.2 if method == "gbs" else None)
    assert answer["line"] == (None if method == "bfs" else [0.2])
    assert (answer["components"] is None) == (method != "boundary")
    assert "Proved for the real-valued network" in answer["guarantee"]
    assert load("out").region_count == answer["visited"]


def test_all_regions_are_those_of_the_map(run: Runner):
    by_map = run(*LINE, "--out", "map", "--json").json
    by_search = run(*LINE, "--method", "bfs", "--out", "bfs", "--json").json
    for key in ("sets", "visited", "visited_share", "verdict", "status", "label", "delta", "domain", "model", "image"):
        assert by_map[key] == by_search[key], key
    assert by_map["method"] == "map" and by_map["regions"] == by_map["visited"]
    assert (by_map["face_checks"], by_map["lps"]) == (0, 0) and by_search["face_checks"] > 0


def test_the_map_is_what_is_made_without_a_method(run: Runner):
    answers = [run(*LINE, *more, "--json").json for more in (("--out", "a"), ("--out", "b", "--method", "map"))]
    for answer in answers:
        del answer["seconds"], answer["output"]
    assert answers[0] == answers[1]


def test_what_covers_the_domain_is_a_proof(run: Runner):
    result = run(*LINE, "--method", "bfs", "--property", "cr")
    assert (
        result.code == 0
        and "ROBUST: Everywhere in the domain (brightness from 0 to +0.2) the network keeps its label 7." in result.out
    )
    assert "The visited regions cover the domain" in result.out


def test_robust_regions_on_a_line_are_no_proof(run: Runner):
    result = run(*SQUARE, "--method", "gbs", "--property", "cr", "--out", "out")
    assert result.code == 3
    for words in (
        "UNDECIDED: No violation was found on the 29 visited regions, which is no proof for the whole domain.",
        "To decide the rest,",
        "status   Robust: Every visited region satisfies the property.",
        "nothing about the rest",
        "attention kept    not measured",
    ):
        assert words in " ".join(result.out.split(" ")), result.out
    answer = run("show", "out", "--json").json
    assert (answer["verdict"], answer["status"]) == ("undecided", "Robust")
    assert answer["sets"]["AR"] is None and answer["visited_share"] < 1.0 and answer["w_delta"] is None


def test_the_summary_for_people(run: Runner):
    result = run(*LINE, "--method", "gbs", "--w-delta", "0.3", "--line", "0.15", "--out", "out")
    assert result.code == 10 and result.err == ""
    for words in (
        "M-FNN-100 predicts 7 for mnist:69990",
        "Domain: brightness 0..0.2",
        "NOT ROBUST: Everywhere on 2 of the 10 visited regions the attention maps",
        "line to brightness = 0.15; w^δ = 0.3",
        "label kept",
        "status   NotRobust",
        "of the domain",
        "linear programs",
        "out/search.png",
    ):
        assert words in result.out, words
    assert "\x1b" not in result.out


def test_the_boundary_is_told_component_by_component(run: Runner):
    result = run(*LINE, "--method", "boundary", "--property", "ar", "--out", "out")
    parts = run("show", "out", "--json").json["components"]
    assert len(parts) == 1 and parts[0]["inner"] > 0 and parts[0]["outer"] > 0
    assert "outermost boundary  1 component" in result.out
    assert f"component 1: {parts[0]['inner']} region" in result.out


def test_without_out_the_method_is_part_of_the_name(run: Runner, place: Path):
    run(*SMALL, "--method", "gbs")
    run(*SMALL)
    assert {path.name for path in place.iterdir()} == {
        f"M-FNN-100--mnist-69990--brightness-0-to-0.2{ending}" for ending in ("", "--gbs")
    }


def test_quiet_prints_nothing(run: Runner):
    result = run(*SMALL, "--method", "bfs", "--quiet")
    assert (result.code, result.out, result.err) == (0, "", "")


def test_force_lets_a_search_replace_a_map_and_back(run: Runner, place: Path):
    run(*LINE, "--out", "out")
    for method, code in (("bfs", 10), ("map", 10)):
        assert run(*LINE, "--out", "out", "--method", method).code == 2
        assert run(*LINE, "--out", "out", "--method", method, "--force").code == code
        assert json.loads((place / "out" / "result.json").read_text(encoding="utf-8"))["method"] == method
    assert not (place / "out" / "search.png").exists()


def test_a_limit_ends_a_search(run: Runner):
    result = run(*SMALL, "--method", "bfs", "--property", "cr", "--max-regions", "2", "--out", "out", "--json")
    assert result.code == 3
    answer = result.json
    assert answer["visited"] == 2 and answer["stopped"] == "limit of 2 regions" and answer["complete"] is False
    assert answer["status"] == "Timeout" and answer["visited_share"] < 1.0
    assert "stopped early (limit of 2 regions)" in " ".join(run("show", "out").out.split())


def test_a_timeout_before_the_first_region_is_undecided(run: Runner):
    for method in SEARCHES:
        result = run(*SMALL, "--method", method, "--timeout", "1e-9", "--out", method, "--json")
        assert (result.code, result.json["status"], result.json["components"]) == (3, "Timeout", None)
        assert run("show", method, "--exit-code").code == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_gives_what_was_visited(run: Runner, monkeypatch: pytest.MonkeyPatch, number: int):
    original = SearchEngine.run

    def watched(
        engine: SearchEngine, question: Question, budget: Budget, options: RunOptions, progress: ProgressReport
    ) -> Result:
        def count(done: Progress) -> None:
            if done.regions == 16:
                os.kill(os.getpid(), number)

        return original(engine, question, budget, options, count)

    monkeypatch.setattr(SearchEngine, "run", watched)
    monkeypatch.setattr(walker, "ASK_EVERY", 0.0)  # at every step
    result = run(*SQUARE, "--method", "bfs", "--property", "cr", "--out", "out", "--json")
    assert result.code == 3 and result.json["stopped"] == "interrupted" and result.json["visited"] in range(16, 64)
    assert run("show", "out", "--exit-code").code == 3


def test_four_parameters_have_no_picture_and_the_text_says_so(
    run: Runner, place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(figures, "draw_result", DRAW)
    question = (*SPACE, "--perturb", "translate:dx=1:0..0.01")
    result = run(*question, "--method", "gbs", "--property", "cr", "--max-regions", "3", "--out", "out")
    assert result.code == 3 and "picture none: up to 3 parameters are drawn; regions.npz" in result.out
    assert {path.name for path in (place / "out").iterdir()} == {name for name in FILES if "search" not in name}
    assert run("show", "out").out == result.out


DRAW = figures.draw_result


def test_four_parameters_can_be_searched_but_not_mapped(run: Runner):
    question = (*SPACE, "--perturb", "translate:dx=1:0..0.01")
    assert run(*question, "--method", "map", "--out", "map").code == 2
    answer = run(*question, "--method", "gbs", "--property", "cr", "--max-regions", "2", "--out", "out", "--json").json
    assert answer["visited"] > 0 and answer["lps"] > 0 and len(answer["line"]) == 4


def test_a_domain_without_zero_can_be_searched_breadth_first(run: Runner):
    question = (*SMALL[:-1], "brightness:0.1..0.2")
    answers = [run(*question, "--method", method, "--out", method, "--json").json for method in ("map", "bfs")]
    assert answers[0]["sets"] == answers[1]["sets"]


@pytest.mark.parametrize("method", SEARCHES)
def test_show_says_the_same_words(run: Runner, method: str):
    told = run(*LINE, "--method", method, "--out", "out")
    again = run("show", "out", "--exit-code")
    assert (again.code, again.out) == (told.code, told.out)


def test_show_prints_the_same_json(run: Runner):
    told = run(*LINE, "--method", "gbs", "--out", "out", "--json").json
    del told["output"]
    assert run("show", "out", "--json").json == told


def test_another_delta_of_a_search_is_refused(run: Runner):
    run(*LINE, "--method", "gbs", "--out", "out")
    result = run("show", "out", "--delta", "2.0")
    assert (result.code, result.out) == (2, "") and result.err.count("\n") == 1
    assert "out: a search (gbs) answers only δ = 3" in result.err


def test_the_boundary_of_a_stored_search_is_refused(run: Runner):
    run(*LINE, "--method", "gbs", "--out", "out")
    result = run("boundary", "out")
    assert (result.code, result.out) == (2, "") and "out: a search (gbs) labels whole regions" in result.err


def test_a_damaged_answer_is_refused_and_lost_timings_are_not(run: Runner, place: Path):
    told = run(*LINE, "--method", "gbs", "--out", "out").out
    (place / "out" / "timings.json").unlink()
    assert "visited" in run("show", "out").out != told
    path = place / "out" / "result.json"
    path.write_text(path.read_text(encoding="utf-8").replace("not robust", "robust"), encoding="utf-8")
    result = run("show", "out")
    assert (result.code, result.out) == (2, "") and "damaged" in result.err
