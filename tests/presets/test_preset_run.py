"""Presets run one after another: verdicts, skipped questions, shared time, files."""

import json
from dataclasses import replace
from threading import Event

import numpy as np
import pytest

import steadygaze as sg
from steadygaze.budget import Budget, Limits
from steadygaze.errors import OptionError, StoreError
from steadygaze.labels import Verdict
from steadygaze.presets import answering as preset_run
from steadygaze.presets.answering import PresetAnswer, PresetResult
from steadygaze.presets.lists import PRESETS

OPTIONS = {"property": "cr", "method": "refine", "goal": "verdict", "threads": 1}


@pytest.fixture(scope="module")
def light():
    return sg.verify_preset(
        "M-FNN-100", "mnist:69990", "light", property="cr", method="refine", goal="verdict", threads=1
    )


@pytest.fixture(scope="module")
def few(light):
    """Three of the questions, one of them skipped: enough for files."""
    kept = {"brightness", "shadow-from-the-left", "saturation"}
    return replace(light, answers=tuple(answer for answer in light.answers if answer.name in kept))


def test_every_question_is_answered_or_skipped_with_a_reason(light):
    assert [answer.name for answer in light.answers] == [question.name for question in PRESETS["light"].questions]
    skipped = [answer for answer in light.answers if answer.is_skipped]
    assert [answer.name for answer in skipped] == ["saturation"]
    assert "only images with red, green and blue" in skipped[0].reason and skipped[0].verdict is None
    assert any("saturation has no answer: the image has 1 channel;" in note for note in light.notes)
    asked = light.results["shadow-from-the-left"]
    assert sg.verify("M-FNN-100", "mnist:69990", [*asked.question.specs], **OPTIONS).verdict is asked.verdict


def test_the_summary_lists_questions_and_compares_them(light):
    content = json.loads(json.dumps(light.summary(), allow_nan=False))
    assert content["preset"] == "light" and content["verdict"] == light.verdict.value
    by_name = {question["name"]: question for question in content["questions"]}
    assert by_name["saturation"]["skipped"] and by_name["saturation"]["result"] is None
    assert by_name["brightness"]["result"]["verdict"] == light.results["brightness"].verdict.value
    assert len(content["comparison"]["results"]) == len(light.results)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ("robust", Verdict.ROBUST),
        ("robust,undecided", Verdict.UNDECIDED),
        ("undecided,not robust,robust", Verdict.NOT_ROBUST),
        ("skipped,robust", Verdict.ROBUST),
        ("skipped", Verdict.UNDECIDED),
        ("late,robust", Verdict.UNDECIDED),
    ],
)
def test_the_worst_verdict_counts(verdicts, expected):
    class Answered:
        def __init__(self, verdict):
            self.verdict = verdict

    answers = {
        "skipped": PresetAnswer("a", (), reason="grey", is_skipped=True), "late": PresetAnswer("a", (), reason="late"),
    } | {verdict.value: PresetAnswer("a", (), result=Answered(verdict)) for verdict in Verdict}  # fmt: skip
    found = PresetResult(PRESETS["light"], tuple(answers[word] for word in verdicts.split(",")))
    assert found.verdict is expected
    assert found.verdict.exit_code == {Verdict.ROBUST: 0, Verdict.NOT_ROBUST: 10, Verdict.UNDECIDED: 3}[expected]


def test_time_is_shared_and_what_is_left_over_passes_on():
    limits = []

    def run(question, own):
        limits.append(own.limits.timeout_seconds)

    budget = Budget(Limits(timeout_seconds=600.0))
    preset_run.run_preset(PRESETS["dirt"], (1, 28, 28), lambda specs: specs, run, budget)
    count = len(PRESETS["dirt"].questions)
    # Nothing was used, so the last question has all that is left.
    whole = 600.0 * (1.0 - preset_run.RESERVED)
    assert limits[0] == pytest.approx(whole / count, rel=0.01) and limits[-1] == pytest.approx(whole, rel=0.01)


def test_questions_after_the_end_of_the_time_or_an_interrupt_are_undecided():
    begun = []
    stopped = Event()

    def run(question, own):
        begun.append(question)
        stopped.set()

    found = preset_run.run_preset(PRESETS["dirt"], (1, 28, 28), lambda specs: specs, run, Budget(cancelled=stopped))
    assert len(begun) == 1 and found.verdict is Verdict.UNDECIDED
    assert {answer.reason for answer in found.answers[1:]} == {"the run stopped before it began"}
    late = Budget(Limits(timeout_seconds=1e-9))
    found = preset_run.run_preset(PRESETS["dirt"], (1, 28, 28), lambda specs: specs, run, late)
    assert all("time limit was reached" in answer.reason for answer in found.answers)


def test_saving_writes_a_folder_for_each_and_one_report(few, tmp_path):
    place = few.save(tmp_path / "light")
    for name, result in few.results.items():
        assert sg.load(place / name).verdict is result.verdict
    content = json.loads((place / "preset.json").read_text(encoding="utf-8"))
    assert content["verdict"] == few.verdict.value
    page = (place / "report.html").read_text(encoding="utf-8")
    assert (
        all(name in page for name in few.results)
        and "only images with red, green and blue" in page
        and "data:image/png" in page
    )
    with pytest.raises(StoreError, match="--force"):
        few.save(place)
    (place / "brightness" / "result.json").unlink()
    few.save(place, force=True)
    assert (place / "brightness" / "result.json").exists()


def test_force_deletes_nothing_else(few, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "photo.png").write_bytes(b"x")
    with pytest.raises(StoreError, match="holds no preset"):
        few.save(tmp_path / "mine", force=True)
    place = few.save(tmp_path / "again")
    (place / "notes.txt").write_text("x", encoding="utf-8")
    content = json.loads((place / "preset.json").read_text(encoding="utf-8"))
    content["questions"][0]["name"] = "../mine"
    (place / "preset.json").write_text(json.dumps(content), encoding="utf-8")
    few.save(place, force=True)
    assert (place / "notes.txt").exists() and (tmp_path / "mine" / "photo.png").exists()


def test_colour_images_are_asked_about_colour():
    image = np.random.default_rng(2).random((3, 28, 28))
    asked = []

    def ask(specs):
        asked.append(specs)
        return specs

    preset_run.run_preset(PRESETS["light"], image.shape, ask, lambda question, own: None, Budget())
    assert ("saturation:-1..0.5",) in asked


def test_searches_are_refused():
    with pytest.raises(OptionError, match="compares shares of the whole domain"):
        sg.verify_preset("M-FNN-100", "mnist:69990", "light", method="gbs")
