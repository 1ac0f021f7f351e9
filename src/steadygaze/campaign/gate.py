"""The requirements of a plan against the records of its problems → one outcome, and the problems to blame."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..requirement import Outcome
from .problem_names import problem_names
from .set_requirement import Judgement, Problem, SetRequirement
from .stored_campaign import Plan


@dataclass(frozen=True)
class Gate:
    """Every requirement of a plan with its judgement.

    unanswered: problems that failed, have not ended, or timed out without proved bounds of what is required.
    """

    judgements: tuple[Judgement, ...]
    unanswered: tuple[Problem, ...]

    @property
    def outcome(self) -> Outcome:
        """The outcome of all; a set with problems that lack an answer is open, even if the others suffice."""
        found = Outcome.all_of(one.outcome for one in self.judgements)
        return Outcome.UNDECIDED if found is Outcome.MET and self.unanswered else found

    def plain(self) -> dict[str, Any]:
        """The gate as `--json` prints it."""
        lacking = [
            {"key": one.key, "name": one.name, "status": one.status, "reason": one.reason} for one in self.unanswered
        ]
        judged = [one.plain() for one in self.judgements]
        return {"outcome": self.outcome.value, "requirements": judged, "unanswered": lacking}


def problems_of(plan: Plan, records: Sequence[Mapping[str, Any]]) -> list[Problem]:
    """The problems of a plan in its order, with what is proved of them."""
    found, names = {record["key"]: record for record in records}, problem_names(plan)
    return [Problem.of(task.key, task.image, found.get(task.key), names[task.key]) for task in plan.tasks]


def judge_plan(plan: Plan, records: Sequence[Mapping[str, Any]]) -> Gate | None:
    """Judge the requirements of a plan; None if it has none."""
    if not plan.require:
        return None
    problems = [(task.run, problem) for task, problem in zip(plan.tasks, problems_of(plan, records), strict=True)]
    judgements, lacking = [], set()
    for one in plan.require:
        own, needed = [problem for run, problem in problems if one.run in (None, run)], SetRequirement.parse(one.text)
        lacking |= {problem.key for problem in own if problem.lacks_answer(needed.requirement)}
        judgements.append(needed.judge(own))
    return Gate(tuple(judgements), tuple(problem for _, problem in problems if problem.key in lacking))


def judge_each(
    plan: Plan, records: Sequence[Mapping[str, Any]], *, kinds: Sequence[str] = ("each", "part")
) -> dict[str, Outcome | None]:
    """For each problem, whether it meets the requirements of some kinds; None without one.

    A requirement on a median or a mean says nothing about a single problem.
    """
    read = [(one.run, SetRequirement.parse(one.text)) for one in plan.require]
    outcomes: dict[str, Outcome | None] = {}
    for task, problem in zip(plan.tasks, problems_of(plan, records), strict=True):
        own = [each for run, each in read if run in (None, task.run) and each.kind in kinds]
        outcomes[task.key] = Outcome.all_of(problem.judge(each.requirement) for each in own) if own else None
    return outcomes
