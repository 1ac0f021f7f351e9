"""The columns of a campaign's results, and how each is computed.

One row stands for one problem. A new column is one entry here: tables, exports and docs/campaign.md follow.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..attention.measures import Measure
from ..attention.measures.distance import DISTANCE
from ..labels import ATTENTIONS, CLASSIFICATIONS, SHARES, Label
from ..question import OPTIONS
from ..results.result import Result
from .stored_campaign import Plan, Task

Kind = Literal["text", "whole", "number"]
Bounds = tuple[float, float]
SETS = (*CLASSIFICATIONS, *ATTENTIONS)
PERCENTS = DISTANCE.marks
OBJECT = Measure.parse("object")


@dataclass(frozen=True)
class CampaignColumn:
    """One column, and the functions that give its value; an unknown or inapplicable value is empty.

    question: from plan and task (by default the task's field of that name); answer: from the result.
    """

    name: str
    kind: Kind
    meaning: str
    question: Callable[[Plan, Task], Any] | None = None
    answer: Callable[[Result], Any] | None = None


def share_column(share: str) -> str:
    """The start of the names of a share's two columns.

    >>> share_column("CR&IR")
    'cr_ir'
    """
    return share.lower().replace("&", "_")


def percent_column(percent: str) -> str:
    """The start of the names of the two columns for AR at a share of the original maps' size.

    >>> percent_column("25%")
    'ar_at_25'
    """
    return f"ar_at_{percent.rstrip('%')}"


def _bounds(start: str, meaning: str, bounds: Callable[[Result], Bounds | None]) -> list[CampaignColumn]:
    """The two columns of bounds; an infinite bound is empty."""

    def column(name: str, word: str, place: int) -> CampaignColumn:
        def end(result: Result) -> float | None:
            found = bounds(result)
            return None if found is None or not math.isfinite(found[place]) else float(found[place])

        return CampaignColumn(f"{start}_{name}", "number", f"{meaning}: proved {word} bound", answer=end)

    return [column("low", "lower", 0), column("high", "upper", 1)]


def _fact(result: Result, name: str) -> Any:
    """A fact that only some engines know."""
    return result.tiling.facts(result.answer).get(name)


def _share(result: Result, share: str) -> Bounds | None:
    """Bounds of a share; for searches only if the visited regions prove any, of labels that were asked for."""
    if result.tiling.answers_any_delta:
        return result.areas[share]
    is_asked = all(result.sets[Label(name)] is not None for name in share.split("&"))
    return result.areas[share] if is_asked and result.knows_shares else None


def _count_cr_ir(result: Result) -> int | None:
    """The number of regions found one by one that are CR and IR at once."""
    if not result.is_measured or (not result.tiling.answers_any_delta and result.sets[Label.CR] is None):
        return None
    return result.answer.count(Label.CR, Label.IR)


def _share_columns(share: str) -> list[CampaignColumn]:
    meaning = f"share of the domain that is {share.replace('&', ' and ')}"
    return _bounds(share_column(share), meaning, lambda result: _share(result, share))


def _percent_columns(percent: str) -> list[CampaignColumn]:
    meaning = f"share that is AR at δ = {percent} of `map_size`; of `distance` only"

    def kept(result: Result) -> Bounds | None:
        is_known = result.is_measured and result.tiling.answers_any_delta
        return result.kept_shares.get(percent) if is_known else None

    return _bounds(percent_column(percent), meaning, kept)


def _count_column(name: str) -> CampaignColumn:
    return CampaignColumn(
        f"regions_{name.lower()}",
        "whole",
        f"regions labelled {name}",
        answer=lambda result: result.sets[name] if result.is_measured or name in CLASSIFICATIONS else None,
    )


def _nearest_columns(name: str) -> list[CampaignColumn]:
    meaning = f"distance of the nearest violation of {name}, each axis scaled to 1"

    def nearest(result: Result) -> Bounds | None:
        found = result.nearest[name]
        return (found.low, found.high) if result.tiling.answers_any_delta else None

    return _bounds(f"nearest_{name.lower()}", meaning, nearest)


def _absolute_threshold(result: Result) -> float:
    return result.question.attention.measure.threshold_at(result.answer.delta, result.question.base)


def _option_column(name: str) -> CampaignColumn:
    return CampaignColumn(name, "text", OPTIONS[name].meaning, lambda plan, task: task.options[name])


C = CampaignColumn
QUESTION = (
    C("key", "text", "the name of the problem, unique in the campaign, and of its file in `rows/`"),
    C("model", "text", "the network, as the plan spells it"),
    C("neurons", "whole", "its number of ReLUs; 0 if the file is not supported",
      lambda plan, task: plan.models[task.model].neurons),
    C("group", "text", "the group of model and image in the plan; may be empty",
      lambda plan, task: plan.models[task.model].group),
    C("image", "text", "the image, as the plan spells it"),
    C("combination", "text", "the name of the perturbations in the plan"),
    C("perturbations", "text", "their specs, joined by spaces",
      lambda plan, task: " ".join(plan.combinations[task.combination])),
    C("method", "text", "`map`, `refine`, `bfs`, `gbs` or `boundary`"),
    C("algorithm", "text", "method and property in the paper's words, such as `gbs-CRAR`"),
    *(_option_column(name) for name in OPTIONS),
    C("until", "text", "of `refine`: the share that may stay undecided, or `exact`",
      lambda plan, task: None if task.until is None else str(task.until)),
    C("goal", "text", "of `refine`: `map`, or `verdict` to end at the first violation"),
    C("w_delta", "number", "of `gbs`: how much the inconsistency of a region near the boundary may differ from δ"),
    C("limit_seconds", "number", "the time limit", lambda plan, task: task.seconds),
    C("limit_gib", "number", "the memory limit in GiB", lambda plan, task: task.memory_gib)
)  # fmt: skip
ANSWER = (
    C("status", "text",
      "`Robust` (of a map or refinement: proved on the whole domain; of a search: no visited region violates the "
      "property), `NotRobust`, `Undecided` (completed, and the proved bounds leave it open), `Timeout`, `Failed`, or "
      "`Misclassified`: the network does not predict the expected label, and nothing was verified"),
    C("verdict", "text", "the verdict on the whole domain: `robust`, `not robust` or `undecided`; or `misclassified`",
      answer=lambda result: result.verdict.value),
    C("reason", "text", "why the status is `Undecided`, `Timeout`, `Failed` or `Misclassified`"),
    C("label", "whole", "the predicted class of the unperturbed image",
      answer=lambda result: result.label),
    C("expected", "whole", "the expected class, if the plan gives one"),
    C("delta_value", "number", "the threshold as an absolute number",
      answer=_absolute_threshold),
    C("object_share", "number",
      "of `object`: the share of the maps' mass on the object at the unperturbed image, rounded as float64 does",
      answer=lambda result: float(result.question.base) if result.question.attention.measure == OBJECT else None),
    C("map_size", "number", "the size of the original attention maps",
      answer=lambda result: result.question.map_size),
    C("regions", "whole", "regions found or visited one by one; for a refinement, those of mapped boxes",
      answer=lambda result: result.region_count),
    C("boxes", "whole", "boxes of a refinement",
      answer=lambda result: None if result.tiling.boxes is None else len(result.tiling.boxes)),
    C("visited_share", "number", "the share of the domain visited, mapped or decided",
      answer=lambda result: result.coverage if result.tiling.boxes is None else 1.0 - result.areas[Label.UNDECIDED][0]),
    C("face_checks", "whole", "facets that a search looked across; 0 for maps and refinements",
      answer=lambda result: _fact(result, "face_checks") or 0),
    C("lps", "whole", "linear programs solved", answer=lambda result: _fact(result, "lps") or 0),
    C("undecided", "number",
      "the share of the domain left undecided: by a map, in label or attention; by a refinement, in the property",
      answer=lambda result: result.areas[Label.UNDECIDED][0] if result.tiling.answers_any_delta else None),
    *(column for share in SHARES for column in _share_columns(share)),
    *(column for percent in PERCENTS for column in _percent_columns(percent)),
    *(_count_column(name) for name in SETS),
    C("regions_cr_ir", "whole", "regions labelled CR and IR at once: same label, other evidence",
      answer=_count_cr_ir),
    *(column for name in (Label.CR, Label.AR) for column in _nearest_columns(name)),
    C("components", "whole", "of `boundary`: components of the outermost boundary",
      answer=lambda result: None if (found := _fact(result, "components")) is None else len(found)),
    C("sliver_share", "number",
      "bound on the share of the domain on kinks, where the attention is undecided; for a search, of the parts cut off",
      answer=lambda result: result.sliver_share)
)  # fmt: skip
MEASURED = (
    C("seconds", "number", "time for the problem: reading, solving, self-checks"),
    C("peak_mib", "number", "peak memory of the worker process during the problem, in MiB"),
)
COLUMNS = (*QUESTION, *ANSWER, *MEASURED)
EMPTY_ANSWER: dict[str, None] = dict.fromkeys(column.name for column in ANSWER)


def make_record(plan: Plan, task: Task, row: Mapping[str, Any]) -> dict[str, Any]:
    """All columns of a problem that has ended."""
    question = {
        column.name: column.question(plan, task) if column.question else getattr(task, column.name)
        for column in QUESTION
    }
    values = question | dict(row["answer"]) | dict(row["measured"])
    # Rows stored before a column existed lack it.
    return {column.name: values.get(column.name) for column in COLUMNS}
