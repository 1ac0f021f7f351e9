"""Inputs of plans: globs, folders, expected labels, unsupported models, requirements."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from steadygaze import zoo
from steadygaze.campaign.plan_file import read_plan
from steadygaze.campaign.solving import solve
from steadygaze.campaign.stored_campaign import Plan
from steadygaze.errors import SteadygazeError
from steadygaze.question import OPTIONS

PLAN = """
[campaign]
require = ["median CR >= 0.5"]
[limits]
seconds = 60
memory_gib = 16
[[models]]
use = "nets/*.onnx"
[[images]]
use = "photos"
[combinations]
B = ["brightness:0..0.02"]
[[runs]]
method = "refine"
goal = "verdict"
require = "CR >= 0.9"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("M-FNN-100", "M-FNN-200"):
        (tmp_path / "nets").mkdir(exist_ok=True)
        shutil.copy(zoo.model_path(name), tmp_path / "nets" / f"{name}.onnx")
    for place, number in (("7/a.png", 69990), ("4/b.PNG", 69991), ("4/more/c.png", 69992), ("4/.hidden/d.png", 69993)):
        (tmp_path / "photos" / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(zoo.image_path(f"mnist:{number}"), tmp_path / "photos" / place)
    (tmp_path / "photos" / "notes.txt").write_text("no image", encoding="ascii")
    return tmp_path


def plan_from(folder: Path, text: str) -> Plan:
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    return read_plan(folder / "plan.toml")


def test_globs_and_folders(folder: Path):
    plan = plan_from(folder, PLAN)
    assert list(plan.models) == ["nets/M-FNN-100.onnx", "nets/M-FNN-200.onnx"]
    assert list(plan.images) == ["photos/4/b.PNG", "photos/4/more/c.png", "photos/7/a.png"]
    assert [model.neurons for model in plan.models.values()] == [100, 200]
    some = plan_from(folder, PLAN.replace('"photos"', '"photos/*/*.png"').replace("nets/*.onnx", "nets"))
    assert list(some.images) == ["photos/7/a.png"] and list(some.models) == list(plan.models)
    deep = plan_from(
        folder, PLAN.replace('"photos"', f'"{folder}/photos/**/*.png"').replace("nets/*.onnx", "M-FNN-?00")
    )
    assert [Path(name).name for name in deep.images] == ["c.png", "a.png"]
    assert list(deep.models) == ["M-FNN-100", "M-FNN-200", "M-FNN-400", "M-FNN-800"]


def test_requirements_and_goals_reach_the_plan(folder: Path):
    plan = plan_from(folder, PLAN)
    assert [(one.text, one.run) for one in plan.require] == [("CR >= 0.9", 1), ("median CR >= 0.5", None)]
    assert {(task.goal, task.run) for task in plan.tasks} == {("verdict", 1)}
    assert all("goal-verdict" in task.key for task in plan.tasks)
    assert Plan.from_data(plan.as_data()).as_data() == plan.as_data()


def test_labels_from_folders_and_tables(folder: Path):
    (folder / "labels.csv").write_text("file,class\nphotos/7/a.png,7\nb.PNG,4\nc.png,9\n", encoding="ascii")
    for expect, labels in (("7", ["7"] * 3), ("labels.csv:class", ["4", "9", "7"]), ("folder", ["4", "7"])):
        if expect == "folder":  # no class is called "more"
            shutil.rmtree(folder / "photos" / "4" / "more")
        plan = plan_from(folder, PLAN.replace('"photos"', f'"photos"\nexpect = "{expect}"'))
        assert [image.expected for image in plan.images.values()] == labels
        assert plan.has_expected


def test_class_names_make_words_of_numbers(folder: Path):
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    (folder / "names.txt").write_text("\n".join(names), encoding="ascii")
    (folder / "photos" / "7").rename(folder / "photos" / "Seven")
    shutil.rmtree(folder / "photos" / "4")
    text = PLAN.replace('"photos"', '"photos"\nexpect = "folder"')
    with pytest.raises(
        SteadygazeError, match=r"photos/Seven/a.png, nets/M-FNN-100.onnx: expect 'Seven': no such class"
    ):
        plan_from(folder, text)
    plan = plan_from(folder, text.replace("[[models]]", '[[models]]\nclass_names = "names.txt"'))
    answer = solve(plan.question(plan.tasks[0]))
    assert (answer["status"], answer["expected"], answer["label"]) == ("Robust", 7, 7)
    wrong = plan.question(plan.tasks[0])
    wrong["image"]["expected"] = "four"
    answer = solve(wrong)
    assert (answer["status"], answer["verdict"], answer["expected"]) == ("Misclassified", "misclassified", 4)
    assert answer["reason"] == "predicts seven (class 7), expected four (class 4)" and answer["cr_low"] is None


def test_a_model_that_is_not_supported_fails_its_own_problems(folder: Path):
    (folder / "nets" / "broken.onnx").write_bytes(b"no model")
    plan = plan_from(folder, PLAN)
    assert plan.models["nets/broken.onnx"].neurons == 0 and len(plan.tasks) == 9
    task = next(task for task in plan.tasks if task.model == "nets/broken.onnx")
    answer = solve(plan.question(task))
    assert answer["status"] == "Failed" and answer["reason"].startswith("broken.onnx: not an ONNX model")


def test_the_content_of_files_behind_perturbations_and_masks_counts(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    text = PLAN.replace('"brightness:0..0.02"', "'direction:file=\"D.npy\":-1..1'")
    text += 'attention = "object"\nmask = "mask.png"\n'
    digests = []
    for direction, mask in ((0.1, 69990), (0.2, 69990), (0.2, 69991), (0.1, 69990)):
        np.save(folder / "D.npy", np.full((1, 28, 28), direction))
        shutil.copy(zoo.image_path(f"mnist:{mask}"), folder / "mask.png")
        plan = plan_from(folder, text)
        digests.append(plan.digest(plan.tasks[0]))
    assert len(set(digests)) == 3 and digests[0] == digests[3]
    assert Plan.from_data(plan.as_data()).digest(plan.tasks[0]) == digests[0]


def test_rows_older_than_an_option_still_answer_their_problems(folder: Path):
    plan = plan_from(folder, PLAN)
    task = plan.tasks[0]
    older = {name: text for name, text in task.options.items() if text != OPTIONS[name].paper}
    assert len(older) < len(task.options)
    assert plan.digest(replace(task, options=older)) == plan.digest(task)
    assert plan.digest(replace(task, options=task.options | {"delta": "17%"})) != plan.digest(task)


BAD = [
    ("nets/*.onnx", "nets/*.pt", "models 1.use: nets/*.pt holds no model; expected files that end with .onnx"),
    ("nets/*.onnx", "photos", "models 1.use: photos holds no model"),
    ("nets/*.onnx", "nets/gone.onnx", "models 1.use: nets/gone.onnx: no such file"),
    ('"photos"', '"photos/*.gif"', "images 1.use: photos/*.gif holds no image"),
    ('"photos"', '["photos", "photos/7/a.png"]', "photos/7/a.png occurs twice"),
    ('"photos"', '"mnist:69990"\nexpect = "folder"', "mnist:69990 lies in no folder"),
    ('"photos"', '"photos"\nexpect = "gone.csv"', "images 1: gone.csv: cannot be read (No such file"),
    ('"photos"', '"photos"\nexpect = "some.csv:size"', "some.csv: has no column 'size'; it has image, label"),
    ('"photos"', '"photos"\nexpect = "odd.csv"', "odd.csv: has no column of images; expected one called image,"),
    ('"photos"', '"photos"\nexpect = "some.csv"', "has no row for photos/4/more/c.png; add one"),
    ('"photos"', '"photos"\nexpect = "twice.csv"', "twice.csv: line 3 gives a.png another label"),
    ('"photos"', '"photos"\nexpect = "11"', "expect '11': no such class"),
    ("[[models]]", '[[models]]\nclass_names = "some.csv"', "models 1.class_names has 3 names, but nets/M-FNN-"),
    ("CR >= 0.9", "CX >= 0.9", "runs 1: require 'CX >= 0.9': there is no share 'CX'"),
    ("median CR >= 0.5", "95% of cats meet CR>=1", "campaign: require '95% of cats meet CR>=1': unknown unit 'cats'"),
    ('"CR >= 0.9"', "3", "runs 1.require is 3; expected a requirement such as"),
    ("[campaign]", '[campaign]\nkeep = "some"', "campaign.keep is 'some'; expected one of all, violations, none"),
    ('"refine"\ngoal = "verdict"', '"map"\ngoal = "verdict"', "runs 1.goal belongs to method refine, not map"),
    ('goal = "verdict"', 'goal = "quick"', "runs 1.goal is 'quick'; expected map or verdict"),
    ('"refine"\ngoal = "verdict"', '"gbs"', "does not go with method gbs, which bounds no shares of the domain"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), BAD, ids=[message[:40] for _, _, message in BAD])
def test_mistakes_are_reported_in_one_line(folder: Path, old: str, new: str, message: str):
    tables = {
        "some.csv": "image,label\na.png,7\nb.PNG,4\n",
        "odd.csv": "picture,label\na.png,7\n",
        "twice.csv": "image,label\na.png,7\na.png,4\n",
    }
    for name, text in tables.items():
        (folder / name).write_text(text, encoding="ascii")
    assert old in PLAN
    with pytest.raises(SteadygazeError) as caught:
        plan_from(folder, PLAN.replace(old, new, 1))
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
