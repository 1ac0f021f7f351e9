"""`steadygaze verify --preset`: a folder for each question, one report, JSON, exit codes."""

import json
from pathlib import Path

from steadygaze.presets import lists
from support.command_line import Runner

QUICK = ("--property", "cr", "--method", "refine", "--goal", "verdict", "--threads", "1")
FEW = lists.Preset(
    "light",
    "two questions",
    (
        lists.PresetQuestion("brightness", ("brightness:-0.02..0.02",)),
        lists.PresetQuestion("saturation", ("saturation",)),
        lists.PresetQuestion("contrast", ("contrast:0..0.1",)),
    ),
)


def ask(run: Runner, monkeypatch, *more: str, preset: lists.Preset = FEW):
    monkeypatch.setitem(lists.PRESETS, "light", preset)
    return run("verify", "M-FNN-100", "--image", "mnist:69990", "--preset", "light", *QUICK, *more)


def test_a_preset_stores_each_result_and_one_report(run: Runner, place: Path, monkeypatch):
    found = ask(run, monkeypatch, "--out", "all", "--pictures", "none")
    assert found.code == 0 and "ROBUST: 2 questions: 2 robust" in found.out
    assert "saturation has no answer" in found.err and "only images with red, green and blue" in found.err
    assert sorted(path.name for path in (place / "all").iterdir()) == [
        "brightness", "contrast", "preset.json", "report.html",
    ]  # fmt: skip
    assert run("show", "all/brightness").code == 0
    assert ask(run, monkeypatch, "--out", "all").code == 2
    assert ask(run, monkeypatch, "--out", "all", "--force", "--quiet").code == 0


def test_json_lists_the_questions_and_a_violation_gives_exit_code_10(run: Runner, place: Path, monkeypatch):
    dark = lists.PresetQuestion("dark", ("darkness:0..1",))
    found = ask(run, monkeypatch, "--json", preset=lists.Preset("light", "one", (*FEW.questions, dark)))
    content = json.loads(found.out)
    assert found.code == 10 and content["verdict"] == "not robust"
    assert {one["name"]: one["verdict"] for one in content["questions"]} == {
        "brightness": "robust", "saturation": None, "contrast": "robust", "dark": "not robust",
    }  # fmt: skip
    assert Path(content["output"]["directory"]).name == "M-FNN-100--mnist-69990--preset--light"
    assert content["questions"][3]["result"]["method"] == "refine"


def test_without_time_a_preset_is_undecided(run: Runner, place: Path, monkeypatch):
    found = ask(run, monkeypatch, "--timeout", "1e-6", "--json")
    assert found.code == 3 and json.loads(found.out)["questions"][0]["reason"] is not None
