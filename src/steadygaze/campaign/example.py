"""Figure (G): one search of a campaign, made again and drawn: which regions it visited.

A campaign stores no regions, so a search that is cheap is chosen by what its row says, and run in this process.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import replace

from .. import api, zoo
from ..budget import Budget, Limits
from ..engines.search import SearchResult
from ..errors import OptionError
from ..tolerances import MAX_MAP_PARAMETERS
from ..verdict import Status
from .plan import Plan, Task
from .series import ENDED
from .table import Record
from .worker import make_problem

LIKED_REGIONS, LIKED_SHARE = 300, 0.3
"""Enough to be seen, few enough to be told apart; and so much of the domain, or more."""
MOST_WORK = 3_000_000
"""Regions times neurons: what takes seconds, not minutes."""
LIMIT_SECONDS = 120.0
DISLIKED = {"ar": 0.0, "both": 0.5, "cr": 1.5}
"""The paper shows a search for the attention; one that cannot be seen is worse than one for something else."""


def choose_example(plan: Plan, records: Sequence[Record]) -> Task | None:
    """The gbs problem to show: rather of the attention, not robust, and of some 300 regions that can be seen.

    The choice depends on answers alone, so that it is the same whenever the campaign is run.
    """
    by_key = {record["key"]: record for record in records}
    tasks = [
        task
        for task in plan.tasks
        if task.method == "gbs"
        and len(plan.combinations[task.combination]) <= MAX_MAP_PARAMETERS
        and task.key in by_key
        and by_key[task.key]["status"] in ENDED
        and 0 < by_key[task.key]["regions"] * by_key[task.key]["neurons"] <= MOST_WORK
        and by_key[task.key]["visited_share"] > 0.0
    ]

    def cost(task: Task) -> tuple[float, int]:
        record = by_key[task.key]
        unlike = abs(math.log(record["regions"] / LIKED_REGIONS))
        too_small = math.log(LIKED_SHARE / min(record["visited_share"], LIKED_SHARE))
        nothing_found = 2.0 * (record["status"] != Status.NOT_ROBUST.value)
        return round(DISLIKED[task.property] + unlike + too_small + nothing_found, 6), record["neurons"]

    return min(tasks, key=cost, default=None)


def located(plan: Plan, given: Plan | None) -> Plan:
    """A stored plan with the places of its files: those of the plan that was given, or of what is bundled.

    What is found in neither keeps an empty place.
    """
    if given is not None:
        if json.loads(json.dumps(given.as_data())) != json.loads(json.dumps(plan.as_data())):
            raise OptionError("--plan is another plan than that of the campaign; give the one that was run")
        return given
    bundled = {model.name for model in zoo.models()}
    models = {name: replace(one, location=name if name in bundled else "") for name, one in plan.models.items()}
    images = {name: replace(one, location=name if zoo.is_reference(name) else "") for name, one in plan.images.items()}
    return replace(plan, models=models, images=images)


def has_files(plan: Plan, task: Task) -> bool:
    """Whether it is known where the model and the image of a problem are."""
    return bool(plan.models[task.model].location and plan.images[task.image].location)


def search_again(plan: Plan, task: Task) -> SearchResult:
    """The search of a problem, as a worker of the campaign made it, for at most two minutes."""
    problem = make_problem(plan.question(task))
    budget = Budget(Limits(timeout_seconds=LIMIT_SECONDS))
    return api.explore(problem, method=task.method, w_delta=task.w_delta or 0.0, line="corner", budget=budget)
