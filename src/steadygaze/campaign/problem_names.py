"""Names of problems for people: the image, the perturbations, and other settings that differ within the plan."""

from collections import Counter
from collections.abc import Sequence

from .stored_campaign import Plan, Task
from .tables import settings_of

SETTING_TEXTS = {
    "attention": "{}", "delta": "δ = {}", "tau": "τ = {}", "gamma": "γ = {}", "top": "top {}", "mask": "mask {}",
    "explain": "{}", "filter": "{}", "dist": "{}", "classes": "classes {}", "fit": "fit {}", "grey": "grey",
    "rgb": "rgb", "until": "until {}", "goal": "goal {}", "w_delta": "w^δ = {}"
}  # fmt: skip


def setting_texts(task: Task, names: Sequence[str]) -> list[str]:
    """Some settings of a problem in words; those that it does not have are left out."""
    found = [(name, task.setting(name)) for name in names]
    return [SETTING_TEXTS[name].format(value) for name, value in found if value not in (None, "")]


def problem_names(plan: Plan) -> dict[str, str]:
    """A name for each problem of a plan, by its key: unique, and as short as the plan allows.

    >>> from steadygaze.campaign.plan_file import read_plan
    >>> problem_names(read_plan("smoke"))["M-FNN-100_mnist-69991_BP_map_both_3"]
    'mnist:69991 · BP · M-FNN-100 · map'
    """
    extra = settings_of(plan)
    shown = [name for name in ("model", "algorithm") if len({getattr(task, name) for task in plan.tasks}) > 1]
    parts = {
        task.key: [task.image, task.combination, *(getattr(task, name) for name in shown), *setting_texts(task, extra)]
        for task in plan.tasks
    }
    names = {key: " · ".join(each) for key, each in parts.items()}
    counts = Counter(names.values())
    return {key: name if counts[name] == 1 else f"{name} · {key}" for key, name in names.items()}
