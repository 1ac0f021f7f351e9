"""Requirements of a plan, judged by its rows: outcomes, blame, JUnit files and the overview, from made-up answers."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from steadygaze.campaign import overview
from steadygaze.campaign.junit import make_junit
from steadygaze.campaign.overview import write_overview
from steadygaze.campaign.set_requirement import judge_each, judge_plan
from steadygaze.campaign.stored_campaign import PlannedRequirement, Store, Task
from steadygaze.campaign.tables import make_records
from steadygaze.errors import OptionError
from steadygaze.requirement import Outcome
from support.stand_ins.made_up_campaigns import MAPS, Answers, made_up, shares

WRONG = {"status": "Misclassified", "verdict": "misclassified", "reason": "predicts 8, expected 3", "label": 8}
LATE = {"status": "Timeout", "verdict": "undecided", "reason": "timeout of 9 s"}
OPEN = {
    "status": "Undecided",
    "verdict": "undecided",
    "reason": "the proved bounds leave 2e−10 % of the domain undecided",
}
FAILED = {"status": "Failed", "reason": "not an <ONNX> model \x1b"}


def good(task: Task) -> dict[str, Any]:
    return shares(0.9, 0.8) | {"map": {"rows": ["ab" * 4, "-d" * 4], "held": None}}


def campaign(place: Path, answers: Answers, *texts: str) -> Store:
    """Two networks, two images, two perturbations, and requirements over all of them."""
    store = made_up(place, answers, MAPS)
    planned = replace(store.plan, require=tuple(PlannedRequirement(text) for text in texts))
    return Store(store.directory, planned, store.head)


def one_wrong(wrong: dict[str, Any] | None) -> Answers:
    """The same answer for all problems but the first."""

    def answer(task: Task) -> dict[str, Any] | None:
        if (task.model, task.image, task.combination) != ("M-FNN-100", "mnist:69990", "B"):
            return good(task)
        return None if wrong is None else dict(wrong)

    return answer


@pytest.mark.parametrize(
    ("wrong", "texts", "outcome"),
    [
        (shares(0.9, 0.8), ("CR&AR >= 0.7", "median CR >= 0.9"), Outcome.MET),
        (shares(0.5, 0.8), ("CR >= 0.9",), Outcome.NOT_MET),
        (shares(0.5, 0.8), ("median CR >= 0.9", "80% of problems meet CR >= 0.9"), Outcome.MET),
        (shares(0.5, 0.8), ("60% of images meet CR >= 0.9",), Outcome.NOT_MET),
        (shares(0.85, 0.8, slack=0.1), ("CR >= 0.9",), Outcome.UNDECIDED),
        (WRONG, ("CR >= 0",), Outcome.NOT_MET),
        (WRONG, ("80% of problems meet CR >= 0.9",), Outcome.MET),
        (FAILED, ("CR >= 0.9",), Outcome.UNDECIDED),
        (FAILED, ("80% of problems meet CR >= 0.9",), Outcome.UNDECIDED),
        (FAILED, ("CR >= 0.95",), Outcome.NOT_MET),
        (FAILED | shares(0.9, 0.8) | {"status": "Failed"}, ("CR >= 0.9",), Outcome.UNDECIDED),
        (shares(0.9, 0.8) | LATE, ("CR >= 0.9",), Outcome.MET),
        (shares(0.9, 0.8) | LATE, ("CR >= 0.95",), Outcome.NOT_MET),
        (
            shares(0.9, 0.8) | LATE | {"cr_low": 0.0, "cr_high": 1.0},
            ("80% of problems meet CR >= 0.9",),
            Outcome.UNDECIDED,
        ),
        (LATE, ("80% of problems meet CR >= 0.9",), Outcome.UNDECIDED),
        (shares(0.95, 0.9) | OPEN, ("CR&AR >= 0.7",), Outcome.MET),
        (shares(0.95, 0.9) | OPEN, ("CR&AR >= 0.7", "robust"), Outcome.NOT_MET),
        (None, ("80% of problems meet CR >= 0.9",), Outcome.UNDECIDED),
    ],
)
def test_outcomes_and_the_junit_file_agree(tmp_path: Path, wrong: Any, texts: tuple[str, ...], outcome: Outcome):
    store = campaign(tmp_path, one_wrong(wrong), *texts)
    records = make_records(store)
    gate = judge_plan(store.plan, records)
    assert gate is not None and gate.outcome is outcome
    assert {Outcome.MET: 0, Outcome.NOT_MET: 10, Outcome.UNDECIDED: 3}[outcome] == gate.outcome.exit_code
    root = ElementTree.fromstring(make_junit(store.plan, records))
    failures, errors = int(root.get("failures", "")), int(root.get("errors", ""))
    assert (failures > 0) == (outcome is Outcome.NOT_MET) and (failures + errors > 0) == (outcome is not Outcome.MET)
    cases = root.findall("testsuite/testcase")
    assert len(cases) == int(root.get("tests", "")) == len(store.plan.tasks) + len(texts)
    assert len({(case.get("classname"), case.get("name")) for case in cases}) == len(cases)


def test_the_blamed_are_those_that_miss(tmp_path: Path):
    store = campaign(tmp_path, one_wrong(shares(0.5, 0.8)), "CR >= 0.9")
    gate = judge_plan(store.plan, make_records(store))
    assert gate is not None
    (blamed,) = gate.judgements[0].to_blame
    assert blamed.problem.key == "M-FNN-100_mnist-69990_B_map_both_3" and blamed.outcome is Outcome.NOT_MET
    assert (blamed.problem.name, blamed.state) == ("mnist:69990 · B · M-FNN-100", "CR 50.00 % (0.9 required)")
    each = judge_each(store.plan, make_records(store))
    assert [key for key, outcome in each.items() if outcome is not Outcome.MET] == [
        "M-FNN-100_mnist-69990_B_map_both_3"
    ]
    data = gate.plain()
    assert data["outcome"] == "not met" and data["requirements"][0]["to_blame"][0]["state"] == blamed.state


def test_a_requirement_of_one_run_is_about_its_problems(tmp_path: Path):
    store = made_up(tmp_path, one_wrong(shares(0.5, 0.8)), MAPS)
    tasks = tuple(replace(task, run=1 if task.model == "M-FNN-100" else 2) for task in store.plan.tasks)
    for run, outcome in ((1, Outcome.NOT_MET), (2, Outcome.MET)):
        plan = replace(store.plan, tasks=tasks, require=(PlannedRequirement("CR >= 0.9", run),))
        gate = judge_plan(plan, make_records(store))
        assert gate is not None and gate.outcome is outcome


def test_a_plan_without_requirements_fails_where_it_is_not_robust(tmp_path: Path):
    store = campaign(tmp_path, one_wrong(WRONG))
    assert judge_plan(store.plan, make_records(store)) is None
    root = ElementTree.fromstring(make_junit(store.plan, make_records(store)))
    assert root.get("failures") == str(len(store.plan.tasks))
    assert root.find("testsuite/testcase/failure").get("message") == "misclassified: predicts 8, expected 3"


def test_the_overview_shows_every_problem(tmp_path: Path):
    store = campaign(tmp_path, one_wrong(FAILED), "CR >= 0.95", "median AR >= 0.1")
    written = write_overview(store, tmp_path / "pages")
    text = written.page.read_text(encoding="utf-8")
    assert text.count("<tr id=") == 8 and text.count("data:image/png;base64,") == 7
    assert "not an &lt;ONNX&gt; model" in text and "<ONNX>" not in text
    assert "CR &gt;= 0.95" in text and written.reports == [] and "full report</a>" not in text
    assert "--full M-FNN-100_mnist-69990_B_map_both_3</code>" in text
    (tmp_path / "pages" / "index.html").write_text("mine", encoding="ascii")
    with pytest.raises(Exception, match="is not a report of steadygaze"):
        write_overview(store, tmp_path / "pages")


def test_what_cannot_be_shown_is_said(tmp_path: Path):
    store = campaign(tmp_path, good)
    with pytest.raises(
        OptionError, match="--full 'nothing': no such problem; expected kept, violations, all, none, a number"
    ):
        write_overview(store, tmp_path / "pages", full=["nothing"])
    own = {name: replace(image, name=f"x-{name}") for name, image in store.plan.images.items()}
    moved = replace(store.plan, images={image.name: image for image in own.values()}, tasks=tuple(
        replace(task, image=f"x-{task.image}") for task in store.plan.tasks
    ))  # fmt: skip
    for task in moved.tasks:
        Store(store.directory, moved, store.head).put({"key": task.key, "answer": good(task), "measured": {}})
    written = write_overview(Store(store.directory, moved, store.head), tmp_path / "pages", full=[moved.tasks[0].key])
    assert written.notes == [
        "x-mnist:69990 · B · M-FNN-100: no report: the files are not known; give the plan with --plan"
    ]


def test_the_junit_file_marks_the_images_that_miss_a_requirement_over_the_set(tmp_path: Path):
    store = campaign(tmp_path, one_wrong(shares(0.5, 0.8)), "60% of images meet CR >= 0.9")
    root = ElementTree.fromstring(make_junit(store.plan, make_records(store)))
    failed = {case.get("name"): case.find("failure").get("message") for case in root.iter("testcase") if len(case)
              and case.find("failure") is not None}  # fmt: skip
    assert failed == {
        "mnist:69990 · B · M-FNN-100": "CR 50.00 % (0.9 required)",
        "60% of images meet CR >= 0.9": "not met: 1 of 2 images meet it",
    }
    # Met by the others: the same problem is no failure.
    (tmp_path / "met").mkdir()
    store = campaign(tmp_path / "met", one_wrong(shares(0.5, 0.8)), "50% of images meet CR >= 0.9")
    assert ElementTree.fromstring(make_junit(store.plan, make_records(store))).get("failures") == "0"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Store, list[str]]:
    """A campaign that keeps every result, and the names of the reports that were made, in order."""

    def answers(task: Task) -> dict[str, Any]:
        found = shares(0.9, 0.1 if task.combination == "P" else 0.8)
        return found | {"object_share": 0.07 if task.image == "mnist:69990" else 0.5}

    store, made = campaign(tmp_path, answers, "CR&AR >= 0.5"), []
    for task in store.plan.tasks:
        store.kept(task.key).mkdir(parents=True)
        (store.kept(task.key) / "result.json").write_text("{}", encoding="ascii")

    def write(result: Any, page: Path, **options: Any) -> None:
        assert (page.parent.parent / "index.html").exists()
        made.append(page.name)
        if len(made) == 3:
            raise KeyboardInterrupt
        page.write_text("report", encoding="ascii")

    monkeypatch.setattr(overview, "load", lambda path: None)
    monkeypatch.setattr(overview, "write_report", write)
    return store, made


def test_full_reports_come_after_the_page_the_worst_first(kept: tuple[Store, list[str]], tmp_path: Path):
    store, made = kept
    told: list[tuple[int, int, str]] = []
    pages = tmp_path / "pages" / "problems"
    written = write_overview(store, tmp_path / "pages", full=["2"], progress=lambda *args: told.append(args))
    assert [name.split("_")[2] for name in made] == ["P", "P"] and len(written.reports) == 2
    assert told[0] == (0, 2, "mnist:69990 · P · M-FNN-100") and written.page.read_text().count("full report</a>") == 2
    (pages / "former_0123abcd.html").write_text("of a former problem", encoding="ascii")
    (pages / "mine.html").write_text("not of steadygaze", encoding="ascii")
    # An interrupted run leaves a page that links to what there is.
    with pytest.raises(KeyboardInterrupt):
        write_overview(store, tmp_path / "pages")
    assert sorted(path.name for path in pages.iterdir()) == sorted([*made[:2], "mine.html"])
    assert written.page.read_text(encoding="utf-8").count("full report</a>") == 2
    written = write_overview(store, tmp_path / "pages")
    assert len(written.reports) == 8


def test_the_page_tells_what_was_asked_and_where_networks_look(kept: tuple[Store, list[str]], tmp_path: Path):
    store, _ = kept
    text = write_overview(store, tmp_path / "pages", full=["none"]).page.read_text(encoding="utf-8")
    assert "<code>method</code> map; " in text and "<code>attention</code> distance; " in text
    assert "M-FNN-100: least 7 %, median 28.5 %, most 50 %" in text
    assert "AR: the share that keeps its attention" in text
    # The problems to blame are listed by name, the worst first, and the list is open.
    assert text.index("<details open>") < text.index(
        ">mnist:69990 · P · M-FNN-100</a>: CR&amp;AR 9.00 % (0.5 required)"
    )
