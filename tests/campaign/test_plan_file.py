"""Plans in TOML: their problems, and refusals in one line."""

import json
import shutil
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from PIL import Image

from steadygaze import zoo
from steadygaze.campaign.plan_file import BUNDLED, read_plan
from steadygaze.campaign.stored_campaign import LONGEST_KEY, Plan, make_key
from steadygaze.errors import SteadygazeError
from steadygaze.presets.lists import PRESETS
from steadygaze.question import OPTIONS

GOOD = """
[campaign]
name = "own"
[limits]
seconds = 60
memory_gib = 2
[[models]]
use = ["M-FNN-100", "nets/own.onnx"]
[[images]]
use = ["mnist:69990..69991", "photos"]
[combinations]
B = ["brightness:0..0.2"]
TB = ["translate:dy=1", "brightness"]
[[runs]]
method = "map"
models = "M-*"
delta = [3.0, "25%"]
filter = ["identity", "abs"]
combinations = ["TB"]
[[runs]]
method = "gbs"
property = ["cr", "ar"]
models = "own"
w_delta = 0.5
seconds = 5
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nets").mkdir()
    (tmp_path / "photos").mkdir()
    shutil.copy(zoo.model_path("M-FNN-200"), tmp_path / "nets" / "own.onnx")
    shutil.copy(zoo.image_path("mnist:69995"), tmp_path / "photos" / "b.png")
    shutil.copy(zoo.image_path("mnist:69996"), tmp_path / "photos" / "a.PNG")
    (tmp_path / "photos" / "notes.txt").write_text("no image", encoding="ascii")
    (tmp_path / "empty").mkdir()
    return tmp_path


def plan_from(folder: Path, text: str) -> Plan:
    path = folder / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return read_plan(path)


def test_a_plan_becomes_problems_in_a_fixed_order(folder: Path):
    plan = plan_from(folder, GOOD)
    assert plan.name == "own" and plan.methods == ("map", "gbs")
    assert list(plan.images) == ["mnist:69990", "mnist:69991", "photos/a.PNG", "photos/b.png"]
    assert [model.neurons for model in plan.models.values()] == [100, 200]
    assert len(plan.tasks) == 4 * 1 * 4 + 4 * 2 * 2
    first, last = plan.tasks[0], plan.tasks[-1]
    assert first.key == "M-FNN-100_mnist-69990_TB_map_both_3"
    assert (first.options["delta"], first.options["filter"]) == ("3", "identity")
    assert (first.seconds, first.until, first.w_delta) == (60.0, None, None)
    assert (last.model, last.image, last.options["property"], last.seconds, last.w_delta) == (
        "nets/own.onnx",
        "photos/b.png",
        "ar",
        5.0,
        0.5,
    )
    assert [task.options["delta"] for task in plan.tasks[:4]] == ["3", "3", "25%", "25%"]
    assert len({task.key for task in plan.tasks}) == len(plan.tasks)
    assert all("/" not in task.key and len(task.key) < 200 for task in plan.tasks)
    assert plan_from(folder, GOOD) == plan


def test_a_question_has_everything_and_a_stored_plan_no_places(folder: Path):
    plan = plan_from(folder, GOOD)
    question = plan.question(plan.tasks[-1])
    assert question["model"]["location"] == str(folder / "nets" / "own.onnx")
    assert question["image"]["location"] == str(folder / "photos" / "b.png")
    assert question["perturbations"] == ["translate:dy=1", "brightness"]
    assert str(folder) not in str(plan.as_data())
    again = Plan.from_data(plan.as_data())
    assert again.tasks == plan.tasks and again.as_data() == plan.as_data()


def test_a_campaign_older_than_an_option_has_the_papers_value(folder: Path):
    data = plan_from(folder, GOOD).as_data()
    for task in data["tasks"]:
        task.pop("classes")
    assert {task.options["classes"] for task in Plan.from_data(data).tasks} == {OPTIONS["classes"].paper}


def test_the_papers_plan_is_that_of_the_paper():
    plan = read_plan("paper")
    counts = Counter(task.algorithm for task in plan.tasks)
    assert len(plan.models) == 12 and len(plan.images) == 20 and len(plan.combinations) == 3
    assert counts == {
        "map": 360, "refine": 60, "gbs-CR": 360, "gbs-AR": 360, "gbs-CRAR": 360, "bfs": 120,
        "boundary-CR": 300, "boundary-AR": 300, "boundary-CRAR": 300,
    }  # fmt: skip
    assert {plan.models[task.model].group for task in plan.tasks} == {"mnist", "fashion"}
    assert all(task.image.startswith(plan.models[task.model].group) for task in plan.tasks)
    assert sorted({model.neurons for model in plan.models.values()}) == [100, 200, 400, 800, 2028, 14824]


def test_the_bundled_plans_have_every_row_of_the_papers_table():
    smoke, paper = read_plan("smoke"), read_plan("paper")
    printed = json.loads((Path(__file__).parents[2] / "docs" / "paper_statuses.json").read_text(encoding="utf-8"))
    wanted = {(task.algorithm, paper.models[task.model].neurons) for task in paper.tasks if task.method != "boundary"}
    assert {(algorithm, neurons) for algorithm, neurons, *_ in printed["rows"]} <= wanted
    assert wanted <= {(task.algorithm, smoke.models[task.model].neurons) for task in smoke.tasks}
    assert smoke.methods == smoke.needs == paper.methods


def test_three_parameters_are_prepared_for(folder: Path):
    text = GOOD.replace('"translate:dy=1", "brightness"]', '"translate:dy=1", "brightness", "darkness"]')
    assert plan_from(folder, text).needs == ("map", "gbs", "solid")


def test_thresholds_are_the_same_however_they_are_written(folder: Path):
    plan = plan_from(folder, GOOD.replace('[3.0, "25%"]', '["3.0", "25.0 %"]'))
    assert plan == plan_from(folder, GOOD)
    with pytest.raises(SteadygazeError, match="occurs twice"):
        plan_from(folder, GOOD.replace('[3.0, "25%"]', '[3, "3.0"]'))


BAD = [
    ('delta = [3.0, "25%"]', 'classes = "predictd"', "runs 1.classes: 'predictd' names no classes; expected all, "),
    ('delta = [3.0, "25%"]', 'classes = "3,3"', "different numbers such as 3,8"),
    ("[campaign]", "[campaigns]", "has an unknown key 'campaigns'. Did you mean campaign?"),
    ("seconds = 60", "second = 60", "[limits] has an unknown key 'second'. Did you mean seconds?"),
    ("seconds = 60", "seconds = 0", "limits.seconds is 0; expected a number above 0"),
    ("seconds = 60", 'seconds = "60"', "limits.seconds is '60'; expected a number"),
    ("seconds = 60", "", "runs 1 has no limit: expected seconds"),
    ('"M-FNN-100"', '"M-FNN-10"', "models 1.use: no bundled network 'M-FNN-10'. Did you mean M-FNN-100?"),
    ("nets/own.onnx", "nets/other.onnx", "no such file"),
    ("nets/own.onnx", "M-FNN-100", "models 1: M-FNN-100 occurs twice"),
    ("69990..69991", "69990..70000", "no bundled image 'mnist:70000'"),
    ("69990..69991", "69991..69990", "expected an index or a slice"),
    ("69990..69991", "many", "expected an index or a slice"),
    ('"photos"', '"empty"', "empty holds no image"),
    ('"photos"', '"nets/own.onnx"', "images 1.use"),
    ('"photos"', '"mnist:69990"', "mnist:69990 occurs twice"),
    ('"brightness:0..0.2"', '"brigtness"', "combinations.B: perturbation 'brigtness': unknown keyword"),
    ('"translate:dy=1", ', '"patch:x=26,y=0,w=4,h=4", ', "combinations.TB, mnist:69990: patch: columns 26 to 29"),
    ('"translate:dy=1", ', '"translate:dy=1", "rotate:border=edge", ', "combinations.TB, mnist:69990: translate"),
    ('"translate:dy=1", ', '"hue:-5..5", ', "combinations.TB, mnist:69990: hue: the image has 1 channel"),
    ('"brightness:0..0.2"', "3", "combinations.B is [3]; expected a text"),
    ('method = "map"', 'method = "maps"', "runs 1.method is 'maps'; expected one of map, refine, bfs"),
    ('method = "map"', "", "runs 1 has no method"),
    ('method = "map"', 'method = "map"\nuntil = 0.1', "runs 1.until belongs to method refine, not map"),
    ('method = "map"', 'method = "refine"\nuntil = 2', "runs 1.until is 2; expected a share"),
    ('models = "M-*"', 'models = "X-*"', "runs 1.models has 'X-*', which matches none of M-FNN-100, nets/own.onnx"),
    ('["TB"]', '["BP"]', "runs 1.combinations has 'BP', which matches none of B, TB"),
    ("delta = [3.0", "delta = [-1", "delta '-1' is not a threshold"),
    ('["identity", "abs"]', '["none"]', "filter 'none' is not known"),
    ('["cr", "ar"]', '["car"]', "property 'car' is not known"),
    ('[[images]]', '[[images]]\ngroup = "other"', "models 1 is in group '', which has no images"),
    ('delta = [3.0, "25%"]', "delta = [3.0, 3.0]", "occurs twice; leave one of the two runs out"),
    ("[[runs]]", "[[runs", "cannot be read as TOML"),
    ("[limits]", "[[limits]]", "limits is [{'seconds': 60, 'memory_gib': 2}]; expected a table [limits]"),
    ("[[images]]", "[images]", "expected at least one table [[images]]; docs/campaign.md has an example"),
    ("[combinations]", "[campaign.more]", "[campaign] has an unknown key 'more'. Expected name"),
    ('use = ["M-FNN-100", "nets/own.onnx"]', "", "models 1 has no use; expected a text, or a list of texts"),
    ("[[models]]", '[[models]]\nmean = "x"', "models 1.mean is 'x'; expected a number, or one for each channel"),
    ("[[models]]", "[[models]]\nscale = nan", "models 1.scale is nan; expected a number of at least 0"),
    ('models = "M-*"', 'model = "M-*"', "runs 1 has an unknown key 'model'. Did you mean models? Expected"),
    ('models = "M-*"', "models = []", "runs 1.models is []; expected a text, or a list of texts"),
    ('delta = [3.0, "25%"]', "delta = true", "runs 1.delta is True; expected a threshold such as 3.0 or 25%"),
    ("seconds = 5\n", "seconds = -5\n", "runs 2.seconds is -5; expected a number above 0"),
    ("w_delta = 0.5", 'w_delta = "wide"', "runs 2.w_delta is 'wide'; expected a number of at least 0"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), BAD, ids=[message[:40] for _, _, message in BAD])
def test_mistakes_are_reported_in_one_line(folder: Path, old: str, new: str, message: str):
    assert old in GOOD
    with pytest.raises(SteadygazeError) as caught:
        plan_from(folder, GOOD.replace(old, new, 1))
    assert message in str(caught.value) and "plan.toml" in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_missing_table_is_named(folder: Path):
    head, _, rest = GOOD.partition("[combinations]")
    with pytest.raises(
        SteadygazeError, match=r"the file has no combinations; expected a table of perturbations by name"
    ):
        plan_from(folder, head + rest[rest.index("[[runs]]") :])


def test_a_stored_plan_is_checked(folder: Path):
    data = plan_from(folder, GOOD).as_data()
    for name, change in (("tasks", {"speed": 3}), ("models", {"neurons": "many"}), ("images", {"sha256": None})):
        broken = data | {name: [data[name][0] | change, *data[name][1:]]}
        with pytest.raises(msgspec.ValidationError, match=next(iter(change))):
            Plan.from_data(broken)


def test_a_plan_that_is_not_there():
    expected = f"no such file; expected a plan in TOML, or the name of a bundled one: {', '.join(BUNDLED)}"
    for name, guess in (("papers", ". Did you mean paper?"), ("quick", "")):
        with pytest.raises(SteadygazeError) as error:
            read_plan(name)
        assert str(error.value) == f"{name}: {expected}{guess}"


def test_keys_name_files():
    assert make_key("a" * 400, "b") != make_key("a" * 401, "b")
    for words in (("../../etc", "x"), (".hidden",), ("a" * 400,), ("ü/ß", "25%")):
        key = make_key(*words)
        assert "/" not in key and not key.startswith(".") and len(key) <= LONGEST_KEY + 10


def test_a_preset_adds_its_questions_to_the_combinations(folder: Path):
    plan = plan_from(
        folder, 'preset = ["light", "dirt"]\n' + GOOD.replace('combinations = ["TB"]', 'combinations = "light-*"')
    )
    assert set(plan.combinations) >= {"B", "TB", "light-brightness", "light-saturation", "dirt-two-spots"}
    asked = {task.combination for task in plan.tasks if task.method == "map"}
    assert "light-vignette" in asked and "light-saturation" not in asked and "dirt-two-spots" not in asked
    assert any("light-saturation, mnist:69990" in note and "left out" in note for note in plan.notes)
    assert Plan.from_data(json.loads(json.dumps(plan.as_data()))).notes == plan.notes


def test_a_preset_replaces_the_table_of_combinations(folder: Path):
    head, _, rest = GOOD.partition("[combinations]")
    runs = rest[rest.index("[[runs]]") :].replace('combinations = ["TB"]', "")
    plan = plan_from(folder, f'preset = "weather"\n{head}{runs}')
    assert set(plan.combinations) == {f"weather-{question.name}" for question in PRESETS["weather"].questions}


def test_bad_presets_of_plans_are_refused(folder: Path):
    with pytest.raises(SteadygazeError, match=r"plan.toml: preset: preset 'lite' is not known; expected light, "):
        plan_from(folder, 'preset = "lite"\n' + GOOD)
    with pytest.raises(SteadygazeError, match=r"preset is 3; expected light, weather, camera or dirt"):
        plan_from(folder, "preset = 3\n" + GOOD)
    with pytest.raises(SteadygazeError, match=r"combination light-haze occurs twice|light-brightness occurs twice"):
        plan_from(folder, 'preset = ["light", "light"]\n' + GOOD)
    Image.new("L", (20, 20)).save(folder / "photos" / "c.png")
    with pytest.raises(SteadygazeError, match=r"a preset needs images of one size, these have 2"):
        plan_from(folder, 'preset = "light"\n' + GOOD)
