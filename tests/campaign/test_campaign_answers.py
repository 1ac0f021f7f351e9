"""The answers of a worker: they have the columns of the schema, are reproducible, and agree between methods."""

from pathlib import Path

import pytest

from steadygaze.campaign import solving as worker
from steadygaze.campaign.columns import ANSWER
from steadygaze.campaign.plan_file import read_plan
from steadygaze.campaign.stored_campaign import Plan
from steadygaze.errors import StoreError

TEXT = """
[limits]
seconds = 60
memory_gib = 16  # of the whole test process, whatever other tests left in it
[[models]]
use = "M-FNN-100"
[[images]]
use = "mnist:69990"
[combinations]
TB = ["translate:dy=1:0..0.2", "brightness:0..0.2"]
[[runs]]
method = "map"
[[runs]]
method = "refine"
[[runs]]
method = "bfs"
[[runs]]
method = "gbs"
property = ["cr", "ar", "both"]
[[runs]]
method = "boundary"
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    path = tmp_path_factory.mktemp("plan") / "plan.toml"
    path.write_text(TEXT, encoding="ascii")
    return read_plan(path)


@pytest.fixture(scope="module")
def answers(plan: Plan) -> dict[str, dict]:
    return {task.algorithm: worker.solve(plan.question(task)) for task in plan.tasks}


def test_every_method_gives_all_columns(answers: dict[str, dict]):
    assert set(answers) == {"map", "refine", "bfs", "gbs-CR", "gbs-AR", "gbs-CRAR", "boundary-CRAR"}
    for answer in answers.values():
        assert list(answer) == [*(column.name for column in ANSWER), "map"]
        kinds = {"text": str, "whole": int, "number": float}
        assert all(answer[c.name] is None or type(answer[c.name]) is kinds[c.kind] for c in ANSWER)
        assert answer["reason"] is None and answer["label"] == 7 and answer["delta_value"] == 3.0


def test_what_was_not_asked_is_not_known(plan: Plan):
    task = next(task for task in plan.tasks if task.method == "refine")
    question = plan.question(task)
    answer = worker.solve(
        question | {"task": question["task"] | {"options": question["task"]["options"] | {"property": "cr"}}}
    )
    assert answer["regions_cr"] is not None and answer["cr_low"] is not None
    assert [answer[name] for name in ("regions_ar", "regions_ir", "regions_ab", "regions_cr_ir")] == [None] * 4


def test_a_process_of_another_source_is_refused(plan: Plan):
    told = worker.needs(plan)
    assert told[1:] == plan.needs
    with pytest.raises(StoreError, match="the source of steadygaze changed"):
        worker.prepare(("0123", *told[1:]))


def test_statuses_and_verdicts(answers: dict[str, dict]):
    assert {name: answer["status"] for name, answer in answers.items()} == dict.fromkeys(answers, "NotRobust") | {
        "gbs-CR": "Robust"
    }
    # A search that found nothing on its way has not proved anything of the rest.
    assert answers["gbs-CR"]["verdict"] == "undecided" and answers["gbs-CR"]["visited_share"] < 1.0
    assert answers["map"]["verdict"] == "not robust"


def test_a_search_of_all_regions_bounds_the_shares_of_the_map(answers: dict[str, dict]):
    whole, visited = answers["map"], answers["bfs"]
    assert whole["regions"] == visited["regions"] > 100 and visited["face_checks"] > visited["regions"]
    for name in ("cr", "mr", "ar", "ir", "cr_ir"):
        assert visited[f"{name}_low"] <= whole[f"{name}_high"] and whole[f"{name}_low"] <= visited[f"{name}_high"]
        assert visited[f"{name}_high"] - visited[f"{name}_low"] < 1e-7
    assert [whole[f"regions_{name}"] for name in ("cr", "ar", "ir", "cr_ir")] == [
        visited[f"regions_{name}"] for name in ("cr", "ar", "ir", "cr_ir")
    ]


def test_what_a_search_saw_says_no_more_than_the_map(answers: dict[str, dict]):
    partial, whole = answers["gbs-CR"], answers["map"]
    assert partial["cr_low"] is None and partial["cr_high"] is None
    assert whole["cr_low"] <= whole["cr_high"]
    assert answers["gbs-CR"]["ar_low"] is None and answers["gbs-AR"]["cr_low"] is None
    assert answers["boundary-CRAR"]["components"] >= 1


def test_the_same_question_gives_the_same_answer(plan: Plan, answers: dict[str, dict]):
    for task in plan.tasks[:2]:
        assert worker.solve(plan.question(task)) == answers[task.algorithm]


def test_what_is_wrong_with_a_problem_makes_it_failed(plan: Plan):
    question = plan.question(plan.tasks[0])
    outside = worker.solve(question | {"perturbations": ["patch:x=99,y=0,w=4,h=4"]})
    assert outside["status"] == "Failed" and "leave the image" in outside["reason"]
    changed = worker.solve(question | {"image": question["image"] | {"sha256": "0" * 64}})
    assert (changed["status"], changed["reason"]) == (
        "Failed",
        "mnist:69990: is not the file that the campaign was planned with",
    )
    gone = worker.solve(question | {"model": question["model"] | {"location": str(Path("gone.onnx"))}})
    assert gone["status"] == "Failed" and gone["reason"] == "M-FNN-100: cannot be read (No such file or directory)"


def test_a_refinement_that_decided_as_much_as_asked_is_robust_of_that_alone(plan: Plan):
    task = next(task for task in plan.tasks if task.method == "refine")
    question = plan.question(task)
    question["task"] |= {"until": 0.5, "options": question["task"]["options"] | {"property": "cr"}}
    answer = worker.solve(question)
    assert answer["status"] == "Robust"
    assert (answer["verdict"] == "robust") == (answer["undecided"] == 0.0)
    assert answer["ar_at_25_low"] is None


def test_a_completed_map_with_an_open_verdict_is_undecided_and_keeps_its_bounds(tmp_path: Path):
    run = 'method = "map"\nattention = "object"\ntau = "100%"\nmask = "auto:bright=0.2,grow=1"\n'
    start, _ = TEXT.split("[combinations]")
    path = tmp_path / "plan.toml"
    path.write_text(f'{start}[combinations]\nB = ["brightness:0..0.0001"]\n[[runs]]\n{run}', encoding="ascii")
    plan = read_plan(path)
    # Within the first region the mass on the object is what it was: exactly at the threshold.
    answer = worker.solve(plan.question(plan.tasks[0]))
    assert (answer["status"], answer["verdict"]) == ("Undecided", "undecided")
    assert answer["object_share"] == answer["delta_value"] == pytest.approx(0.485, abs=0.01)
    assert answer["reason"].startswith("the proved bounds leave ") and (answer["cr_low"], answer["ar_high"]) == (
        1.0,
        1.0,
    )
