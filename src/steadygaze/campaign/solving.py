"""Solves one problem into the columns of a campaign, inside a worker process or again for a report.

Knows no other problems. The same question gives the same answer; time and memory are limited and measured outside. A
row also holds a small map: labels at the points of a coarse grid, as one text. It proves nothing: it shows the labels
of the result at these points.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace as replace_struct

from .. import zoo
from ..budget import Budget, Limits
from ..class_names import bundled_names, find_label
from ..engines import ENGINES, RunPlan
from ..engines.contract import RunOptions
from ..errors import InternalError, OptionError, SteadygazeError, StoreError
from ..labels import Kept, Label, Status
from ..polytopes.grid import shapes_on_grid
from ..question import Question, make_question
from ..requirement import ROBUST, Outcome, Requirement
from ..results.label_grid import NOTHING, held_at
from ..results.result import Result
from ..tolerances import MAX_MAP_PARAMETERS
from ..words import class_text, percent_up
from .columns import ANSWER, EMPTY_ANSWER
from .plan_tables import plan_words
from .set_requirement import Problem, SetRequirement
from .stored_campaign import METHODS, Plan, Task, digest_of, image_file
from .versions import made_by

SMALL = (("brightness:0..0.02",), ("translate:dy=1:0..0.05", "brightness:0..0.02"))
SOLID = ("translate:dy=1:0..0.02", "brightness:0..0.01", "patch:x=12,y=12,w=4,h=4:0..0.01")
"""Domains with a few regions: solving them compiles the code and computes little else."""
OWN = 0.9
"""The share of time and memory in which a problem ends by itself, with a partial answer; else the parent kills it."""

SIDE = 48
"""Points along each side of a small map."""

LETTERS = {
    (Kept.YES, Kept.YES): "a",
    (Kept.YES, Kept.NO): "b",
    (Kept.NO, Kept.YES): "c",
    (Kept.NO, Kept.NO): "d",
    (Kept.YES, Kept.UNKNOWN): "e",
    (Kept.NO, Kept.UNKNOWN): "f",
}
"""Letters for the codes of label and attention: both kept, label alone, attention alone, neither; for e and f, only the
label is known."""

UNKNOWN = "-"
"""Any other point."""


def needs(plan: Plan) -> tuple[str, ...]:
    """The arguments of `prepare` for a plan: the digest of the source that solves problems, and `Plan.needs`."""
    return made_by()["source"], *plan.needs


def prepare(needed: Sequence[str]) -> None:
    """Compile the code that a plan needs (see `needs`), or load it, so no problem has to wait for it.

    Refuses a process that starts after the source has changed: all rows come from one source.
    """
    source, *wanted = needed
    if made_by()["source"] != source:
        raise StoreError("the source of steadygaze changed while the campaign was running")
    for model in ("M-FNN-100", "M-CNN-S"):
        for specs in (*SMALL, SOLID) if "solid" in wanted else SMALL:
            problem = make_question(model, "mnist:69990", specs, delta=3.0)
            for method in (need for need in wanted if need in METHODS):
                budget = Budget()
                result = run_task(problem, {"method": method, "until": 0.001, "w_delta": 0.2}, budget)
                describe(result, budget)


def solve(question: Mapping[str, Any]) -> dict[str, Any]:
    """The columns `ANSWER` of one problem (see `Plan.question`); a mistake in the problem makes it Failed."""
    task = question["task"]
    # A run may exceed its limit by 2 s or by a tenth.
    seconds = max(0.5 * task["seconds"], min(OWN * task["seconds"], task["seconds"] - 2.0))
    budget = Budget(Limits(timeout_seconds=seconds, memory_gib=OWN * task["memory_gib"]))
    try:
        problem = make_problem(question)
        expected = question["image"].get("expected")
        wanted = None if expected is None else find_label(expected, problem.names, "expect")
        if wanted is not None and wanted != problem.label:
            return _misclassified(problem, wanted)
        result = run_task(problem, task, budget)
        found = describe(result, budget) | {"expected": wanted}
        return found | _keep(result, found, question.get("keep"))
    except SteadygazeError as error:
        reason = f"self-check: {error}" if isinstance(error, InternalError) else plan_words(str(error))
        return EMPTY_ANSWER | {"status": Status.FAILED.value, "reason": reason}


def make_problem(question: Mapping[str, Any]) -> Question:
    """The problem of a question (see `Plan.question`); refuses files that have changed since."""
    task, model, image = question["task"], question["model"], question["image"]
    bundled = {each.name: each.path for each in zoo.models()}
    place = image["location"]
    _check_unchanged(model, bundled.get(model["location"], Path(model["location"])))
    _check_unchanged(image, image_file(place))
    mean, std = (each[0] if each and len(each) == 1 else each and list(each) for each in (model["mean"], model["std"]))
    problem = make_question(
        model["location"], place, question["perturbations"], mean=mean, std=std, scale=model["scale"],
        output=model.get("output"), names=model.get("class_names"),
        **{name: value for name, value in task["options"].items() if value},
    )  # fmt: skip
    names = model.get("class_names") or bundled_names(place, problem.model.classes)
    return problem if names is None else replace(problem, names=tuple(names))


def _misclassified(problem: Question, wanted: int) -> dict[str, Any]:
    """The answer for an image whose label is not the expected one: nothing was verified."""
    found, missed = (class_text(problem.names[label], label) for label in (problem.label, wanted))
    facts = {"status": Status.MISCLASSIFIED.value, "verdict": "misclassified", "label": problem.label}
    return EMPTY_ANSWER | facts | {"expected": wanted, "reason": f"predicts {found}, expected {missed}"}


def run_task(problem: Question, task: Mapping[str, Any], budget: Budget) -> Result:
    """Answer a problem by the method of its task, with the options that apply to it."""
    given = {name: task.get(name) for name in ("until", "w_delta", "goal")} | {"threads": 1}
    options = RunOptions(**{name: value for name, value in given.items() if name in ENGINES[task["method"]].takes})
    with budget.running():
        return RunPlan.check(task["method"], options).run(problem, budget)


def describe(result: Result, budget: Budget) -> dict[str, Any]:
    """The columns `ANSWER` of a result, and its small map."""
    with budget.running():
        status, reason = _status(result)
        values = {column.name: column.answer(result) for column in ANSWER if column.answer is not None}
        return EMPTY_ANSWER | values | {"status": status.value, "reason": reason, "map": small_map(result)}


def small_map(result: Result) -> dict[str, Any] | None:
    """The rows of a grid as texts of `LETTERS`, the last row first; None for searches and many parameters.

    A domain with one parameter has one row. With three, the last one is held at zero, or at its low end.
    """
    domain = result.question.compound.domain
    if domain.dimension > MAX_MAP_PARAMETERS or not result.tiling.answers_any_delta:
        return None
    label, attention = _codes_on_grid(result)
    letters = np.full(label.shape, UNKNOWN)
    for (first, second), letter in LETTERS.items():
        letters[(label == first) & (attention == second)] = letter
    rows = letters[:1] if domain.dimension == 1 else letters[::-1]
    held = None if domain.dimension < 3 else f"{domain.names[2]} = {held_at(domain, 2)[0]:g}"
    return {"rows": ["".join(row) for row in rows.tolist()], "held": held}


def _codes_on_grid(result: Result) -> tuple[np.ndarray, np.ndarray]:
    """`Kept` codes of label and attention (SIDE, SIDE), rows counting upwards."""
    domain, grid = result.question.compound.domain, result.answer.grid
    if grid is not None:
        # A map in chunks has the points of a finer grid.
        plane = grid.planes[0]
        places = (np.arange(SIDE) * len(plane.label) + len(plane.label) // 2) // SIDE
        found = [np.where(each == NOTHING, Kept.UNKNOWN, each) for each in (plane.label, plane.attention)]
        return found[0][np.ix_(places, places)], found[1][np.ix_(places, places)]
    joint = result.answer.joint
    axis, at = (2, held_at(domain, 2)[1]) if domain.dimension == 3 else (None, 0.0)
    owners = shapes_on_grid(joint.polytopes, axis, at, SIDE)
    label = np.append(joint.label_codes, Kept.UNKNOWN)[owners]
    attention = np.append(joint.attention_codes, Kept.UNKNOWN)[owners]
    return label, attention if result.is_measured else np.full_like(attention, Kept.UNKNOWN)


def _keep(result: Result, found: Mapping[str, Any], keep: Mapping[str, Any] | None) -> dict[str, Any]:
    """Store the result if the plan keeps it; a run that its limits ended has no time left for it."""
    if keep is None or result.stopped is not None or (keep["is_violation_only"] and is_fine(found, keep["require"])):
        return {}
    try:
        result.save(keep["directory"], force=True)
    except (OSError, StoreError) as error:
        return {"not_kept": str(error)}
    return {}


def is_fine(found: Mapping[str, Any], require: Sequence[str]) -> bool:
    """Whether an answer meets its requirements, or is robust if there are none."""
    problem = Problem.of("", "", found)
    needed = [SetRequirement.parse(text) for text in require]
    own = [one.requirement for one in needed if one.counts_single_problems] or [Requirement.parse(ROBUST)]
    return all(problem.judge(one) is Outcome.MET for one in own)


def _status(result: Result) -> tuple[Status, str | None]:
    """The status, and the reason of a failure or of an open verdict."""
    if result.stopped is not None:
        return result.status, result.stopped
    if result.status is Status.FAILED:
        return result.status, "a region is lost or undecided for numerical reasons"
    if result.status is not Status.UNDECIDED:
        return result.status, None
    share = result.areas[Label.UNDECIDED][0]
    return Status.UNDECIDED, f"the proved bounds leave {percent_up(share)} of the domain undecided"


def _check_unchanged(entry: Mapping[str, Any], path: Path) -> None:
    """Refuse a file other than the one that the campaign was planned with."""
    try:
        is_same = digest_of(path) == entry["sha256"]
    except OSError as error:
        raise StoreError(f"{entry['name']}: cannot be read ({error.strerror})") from None
    if not is_same:
        raise StoreError(f"{entry['name']}: is not the file that the campaign was planned with")


def located(plan: Plan, given: Plan | None) -> Plan:
    """A stored plan with the locations of its files, from the given plan or the bundled files; others stay empty."""
    if given is not None:
        if given.as_data() != plan.as_data():
            raise OptionError("--plan differs from the plan of the campaign; give the plan that was run")
        return given
    bundled = {model.name for model in zoo.models()}
    models = {name: replace_struct(one, location=name if name in bundled else "") for name, one in plan.models.items()}
    images = {
        name: replace_struct(one, location=name if zoo.is_reference(name) else "") for name, one in plan.images.items()
    }
    return replace_struct(plan, models=models, images=images)


def has_files(plan: Plan, task: Task) -> bool:
    """Whether the locations of a problem's model and image are known."""
    return bool(plan.models[task.model].location and plan.images[task.image].location)


def solve_again(plan: Plan, task: Task, *, limit_seconds: float | None = None) -> Result:
    """Repeat a problem as a worker of the campaign solved it, by default within its own limit of time."""
    problem = make_problem(plan.question(task))
    budget = Budget(Limits(timeout_seconds=limit_seconds or task.seconds))
    return run_task(problem, msgspec.to_builtins(task), budget)
