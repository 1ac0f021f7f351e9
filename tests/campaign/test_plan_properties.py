"""Plans with properties of attention: the options of each problem, and the answers."""

from pathlib import Path

import pytest

from steadygaze.campaign.plan_file import read_plan
from steadygaze.campaign.solving import make_problem, solve
from steadygaze.errors import OptionError

PLAN = """
[limits]
seconds = 60
memory_gib = 16
[[models]]
use = "M-FNN-100"
[[images]]
use = "mnist:69990"
[combinations]
B = ["brightness:0..0.2"]
[[runs]]
method = "map"
"""


def write(place: Path, more: str) -> Path:
    path = place / "plan.toml"
    path.write_text(PLAN + more, encoding="utf-8")
    return path


def test_every_property_takes_its_own_threshold(tmp_path: Path) -> None:
    plan = read_plan(
        write(
            tmp_path,
            'attention = ["distance", "object", "pointing", "alike", "topk"]\ndelta = ["10%", "25%"]\n'
            'tau = ["0.4", "90%"]\nmask = "auto:bright=0.2,grow=1"\n',
        )
    )
    asked = [(task.options["attention"], task.options["delta"], task.options["tau"]) for task in plan.tasks]
    assert asked == [
        ("distance", "10%", ""), ("distance", "25%", ""), ("object", "", "0.4"), ("object", "", "90%"),
        ("pointing", "", ""), ("alike", "", ""), ("topk", "", ""),
    ]  # fmt: skip
    assert len({task.key for task in plan.tasks}) == 7
    by_name = {task.options["attention"]: task for task in plan.tasks}
    assert by_name["object"].options["classes"] == "predicted" and by_name["alike"].options["gamma"] == "0.9"
    for name, task in by_name.items():
        problem, found = make_problem(plan.question(task)), solve(plan.question(task))
        assert problem.attention.measure.name == name and found["status"] in ("Robust", "NotRobust")
        assert (found["ar_at_25_low"] is None) == (name != "distance")
    assert solve(plan.question(by_name["object"]))["ar_low"] is not None


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ('tau = "0.5"\n', "tau does not go with the attention"),
        ('attention = "object"\n', "needs a mask"),
        ('attention = "objects"\n', "is not known"),
        ('attention = "alike"\ngamma = 2\n', "is not a threshold"),
    ],
)
def test_mismatches_are_refused(tmp_path: Path, more: str, complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        read_plan(write(tmp_path, more))
