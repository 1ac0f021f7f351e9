"""The columns of a campaign's results and how each is computed, and solving one problem into them.

One row stands for one problem. A new column is one entry here: tables, exports and docs/campaign.md follow. `solve` and
`prepare` run inside worker processes and know nothing of limits, files or other problems. The same question gives the
same answer; time and memory are measured outside.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .. import api, zoo
from ..attention.inconsistency import original_maps
from ..budget import Budget, Limits
from ..engines.refine.refine_result import RefineResult
from ..engines.refine.run_refinement import refine
from ..engines.search.search_result import SearchResult
from ..errors import InternalError, SteadygazeError, StoreError
from ..labels import Label, Status, Verdict
from ..question import Question
from ..results.answer import Answer
from ..results.result import DomainResult
from ..tolerances import AREA
from .stored_campaign import METHODS, Plan, Task, digest_of, image_file, made_by

Kind = Literal["text", "whole", "number"]
Bounds = tuple[float, float]
SHARES = (Label.CR, Label.MR, Label.AR, Label.IR, "CR&AR", "CR&IR", "MR&AR", "MR&IR")
LABELS = (Label.CR, Label.MR, Label.CB)
SETS = (*LABELS, Label.AR, Label.IR, Label.AB)
PERCENTS = ("10%", "25%", "50%", "100%")
SMALL = (("brightness:0..0.02",), ("translate:dy=1:0..0.05", "brightness:0..0.02"))
SOLID = ("translate:dy=1:0..0.02", "brightness:0..0.01", "patch:x=12,y=12,w=4,h=4:0..0.01")
"""Domains of a few regions: solving them compiles the code, and computes next to nothing."""
WATCHED = Limits(memory_gib=2.0**20)
"""The parent limits time and memory; a second limit in here would depend on the machine."""


@dataclass(frozen=True)
class CampaignColumn:
    """One column, and the functions that give its value; a value that is unknown, or does not apply, is empty.

    question: from plan and task (unless given, the task's field of that name); domain: from a map or refinement;
    search: from a search.
    """

    name: str
    kind: Kind
    meaning: str
    question: Callable[[Plan, Task], Any] | None = None
    domain: Callable[[DomainResult], Any] | None = None
    search: Callable[[SearchResult], Any] | None = None


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


def _bounds(
    start: str,
    meaning: str,
    domain: Callable[[DomainResult], Bounds | None],
    search: Callable[[SearchResult], Bounds | None] = lambda result: None,
) -> list[CampaignColumn]:
    """The two columns of bounds; an infinite bound is empty."""

    def column(name: str, word: str, place: int) -> CampaignColumn:
        def end(bounds: Bounds | None) -> float | None:
            return None if bounds is None or not math.isfinite(bounds[place]) else float(bounds[place])

        return CampaignColumn(
            f"{start}_{name}",
            "number",
            f"{meaning}: proved {word} bound",
            domain=lambda result: end(domain(result)),
            search=lambda result: end(search(result)),
        )

    return [column("low", "lower", 0), column("high", "upper", 1)]


def _visited_bounds(result: SearchResult, share: str) -> Bounds | None:
    """Bounds of the share of CR or MR by the volumes of the visited regions that are wholly CR, or wholly MR.

    In two dimensions unsplit parts are known; volumes add up within AREA. Searches do not add up kinks, so nothing
    follows for the attention.
    """
    if (
        share not in (Label.CR, Label.MR)
        or result.question.perturbed.domain.dimension != 2
        or result.sets[Label.CR] is None
    ):
        return None
    slack = result.sliver_share + AREA
    own, other = (
        sum(float(one.region.volume) for one in result.visited if one.classification == name)
        for name in (share, Label.MR if share == Label.CR else Label.CR)
    )
    return max(0.0, own - slack), min(1.0, 1.0 - other + slack)


def _count_cr_ir(result: DomainResult) -> int | None:
    """The number of regions found one by one that are CR and IR at once."""
    if not result.is_measured:
        return None
    found = result.answer.exact if isinstance(result, RefineResult) else result.answer
    if not isinstance(found, Answer):
        return 0  # a refinement without exact regions
    return int(((found.classifications == Label.CR) & (found.attentions == Label.IR)).sum())


def _count_visited_cr_ir(result: SearchResult) -> int | None:
    if result.sets[Label.CR] is None or result.sets[Label.IR] is None:
        return None
    return [(one.classification, one.attention) for one in result.visited].count((Label.CR, Label.IR))


def _size_of_maps(result: SearchResult) -> float:
    options = result.question.attention
    return options.size(original_maps(result.question.compound, options))


def _share_columns(share: str) -> list[CampaignColumn]:
    meaning = f"share of the domain that is {share.replace('&', ' and ')}"
    return _bounds(
        share_column(share), meaning, lambda result: result.areas[share], lambda result: _visited_bounds(result, share)
    )


def _percent_columns(percent: str) -> list[CampaignColumn]:
    meaning = f"share that is AR at δ = {percent} of `map_size`"
    return _bounds(
        percent_column(percent), meaning, lambda result: result.kept_shares[percent] if result.is_measured else None
    )


def _count_column(name: str) -> CampaignColumn:
    return CampaignColumn(
        f"regions_{name.lower()}",
        "whole",
        f"regions labelled {name}",
        domain=lambda result: result.answer.sets[name] if result.is_measured or name in LABELS else None,
        search=lambda result: result.sets[name],
    )


def _nearest_columns(name: str) -> list[CampaignColumn]:
    meaning = f"distance of the nearest violation of {name}, each axis scaled to 1"
    return _bounds(
        f"nearest_{name.lower()}", meaning, lambda result: (result.nearest[name].low, result.nearest[name].high)
    )


C = CampaignColumn
QUESTION = (
    C("key", "text", "the name of the problem, unique in the campaign; also that of its file in `rows/`"),
    C("model", "text", "the network, as the plan spells it"),
    C("neurons", "whole", "its number of ReLUs", lambda plan, task: plan.models[task.model].neurons),
    C("group", "text", "what models and images of the plan have in common; may be empty",
      lambda plan, task: plan.models[task.model].group),
    C("image", "text", "the image, as the plan spells it"),
    C("combination", "text", "the name of the perturbations in the plan"),
    C("perturbations", "text", "their specs, joined by blanks",
      lambda plan, task: " ".join(plan.combinations[task.combination])),
    C("method", "text", "`map`, `refine`, `bfs`, `gbs` or `boundary`"),
    C("property", "text", "`cr`, `ar` or `both`"),
    C("algorithm", "text", "method and property in the paper's words, such as `gbs-CRAR`"),
    C("delta", "text", "the threshold as given, absolute or in percent"),
    C("filter", "text", "`identity`, `abs`, `mean`, or steps joined by `+`"),
    C("dist", "text", "`l1` or `l2`"),
    C("classes", "text", "the classes whose maps are compared: `all`, `predicted`, or their numbers"),
    C("until", "text", "of `refine`: the share that may stay undecided, or `exact`",
      lambda plan, task: None if task.until is None else str(task.until)),
    C("w_delta", "number", "of `gbs`: how far from δ a region still counts as near the boundary"),
    C("limit_seconds", "number", "the time limit", lambda plan, task: task.seconds),
    C("limit_gib", "number", "the memory limit in GiB", lambda plan, task: task.memory_gib)
)  # fmt: skip
ANSWER = (
    C("status", "text",
      "`Robust` (nothing that was visited or decided violates the property), `NotRobust`, `Timeout` or `Failed`"),
    C("verdict", "text", "what is proved of the whole domain: `robust`, `not robust` or `undecided`",
      domain=lambda result: result.verdict.value, search=lambda result: result.verdict.value),
    C("reason", "text", "why the status is `Timeout` or `Failed`"),
    C("label", "whole", "the predicted class of the unperturbed image",
      domain=lambda result: result.label, search=lambda result: result.question.label),
    C("delta_value", "number", "the threshold as an absolute number",
      domain=lambda result: result.answer.delta, search=lambda result: result.delta),
    C("map_size", "number", "the size of the original attention maps",
      domain=lambda result: result.map_size, search=_size_of_maps),
    C("regions", "whole", "regions that were found or visited one by one; of a refinement those of mapped boxes",
      domain=lambda result: result.region_count, search=len),
    C("boxes", "whole", "boxes of a refinement",
      domain=lambda result: len(result.boxes.state) if isinstance(result, RefineResult) else None),
    C("visited_share", "number", "the share of the domain that was visited, mapped or decided",
      domain=lambda result: 1.0 - result.areas["undecided"][0] if isinstance(result, RefineResult) else 1.0,
      search=lambda result: result.visited_share),
    C("face_checks", "whole", "facets that a search looked across; 0 for a map or a refinement, which look at none",
      domain=lambda result: 0, search=lambda result: result.face_checks),
    C("lps", "whole", "linear programs that were solved", domain=lambda result: 0, search=lambda result: result.lps),
    C("undecided", "number",
      "the share of the domain left undecided: by a map in label or attention, by a refinement in the property asked",
      domain=lambda result: result.areas["undecided"][0]),
    *(column for share in SHARES for column in _share_columns(share)),
    *(column for percent in PERCENTS for column in _percent_columns(percent)),
    *(_count_column(name) for name in SETS),
    C("regions_cr_ir", "whole", "regions labelled CR and IR at once: right label, other evidence",
      domain=_count_cr_ir, search=_count_visited_cr_ir),
    *(column for name in (Label.CR, Label.AR) for column in _nearest_columns(name)),
    C("components", "whole", "of `boundary`: components of the outermost boundary",
      search=lambda result: None if result.components is None else len(result.components)),
    C("sliver_share", "number",
      "bound of the share of the domain on kinks, where the attention is undecided; of a search, of what was cut off",
      domain=lambda result: result.sliver_share,
      search=lambda result: result.sliver_share if result.question.perturbed.domain.dimension == 2 else None)
)  # fmt: skip
MEASURED = (
    C("seconds", "number", "time for the problem: reading, solving, self-checks"),
    C("peak_mib", "number", "the most memory that the worker process held meanwhile, in MiB"),
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
    # A row that was stored before a column existed lacks it.
    return {column.name: values.get(column.name) for column in COLUMNS}


def needs(plan: Plan) -> tuple[str, ...]:
    """What `prepare` takes for a plan: the digest of the source that solves problems, and `Plan.needs`."""
    return made_by()["source"], *plan.needs


def prepare(told: Sequence[str]) -> None:
    """Compile what a plan needs (see `needs`), or load what was compiled before: no problem has to wait for it.

    Refuses a process that starts after the source has changed: one source makes all rows.
    """
    source, *wanted = told
    if made_by()["source"] != source:
        raise StoreError("the source of steadygaze was changed while the campaign runs")
    for model in ("M-FNN-100", "M-CNN-S"):
        for specs in (*SMALL, SOLID) if "solid" in wanted else SMALL:
            problem = api.make_problem(model, "mnist:69990", specs, delta=3.0)
            for method in (need for need in wanted if need in METHODS):
                answer(problem, method, until=0.001, w_delta=0.2)


def solve(question: Mapping[str, Any]) -> dict[str, Any]:
    """The columns `ANSWER` of one problem (see `Plan.question`); a mistake in the problem makes it Failed."""
    task = question["task"]
    try:
        return answer(make_problem(question), task["method"], until=task["until"], w_delta=task["w_delta"])
    except SteadygazeError as error:
        reason = f"self-check: {error}" if isinstance(error, InternalError) else str(error)
        return EMPTY_ANSWER | {"status": Status.FAILED.value, "reason": reason}


def make_problem(question: Mapping[str, Any]) -> Question:
    """The problem of a question (see `Plan.question`); files that have changed since are refused."""
    task, model, image = question["task"], question["model"], question["image"]
    bundled = {each.name: each.path for each in zoo.models()}
    place = image["location"]
    _check_unchanged(model, bundled.get(model["location"], Path(model["location"])))
    _check_unchanged(image, image_file(place))
    mean, std = (each[0] if each and len(each) == 1 else each and list(each) for each in (model["mean"], model["std"]))
    options = {key: task[key] for key in ("property", "delta", "filter", "dist", "classes")}
    return api.make_problem(
        model["location"], place, question["perturbations"], mean=mean, std=std, scale=model["scale"], **options
    )


def answer(problem: Question, method: str, *, until: float | str | None, w_delta: float | None) -> dict[str, Any]:
    """The columns `ANSWER` of a problem."""
    budget = Budget(WATCHED)
    if method not in ("map", "refine"):
        width = 0.2 if w_delta is None else w_delta
        found = api.explore(problem, method=method, w_delta=width, line="corner", budget=budget)
        reason = None
        if found.status in (Status.FAILED, Status.TIMEOUT):
            reason = found.stopped or "a region is lost or undecided for numerical reasons"
        values = {column.name: column.search(found) for column in ANSWER if column.search is not None}
        return EMPTY_ANSWER | values | {"status": found.status.value, "reason": reason}
    result: DomainResult
    if method == "map":
        result = api.solve(problem, threads=1, budget=budget)
    else:
        _ = problem.agreement  # a model file that computes something else is refused here
        result = refine(problem, until=until, threads=1, budget=budget)  # type: ignore[arg-type]
    status, reason = _domain_status(result, until if method == "refine" else None)
    values = {column.name: column.domain(result) for column in ANSWER if column.domain is not None}
    return EMPTY_ANSWER | values | {"status": status.value, "reason": reason}


def _domain_status(result: DomainResult, until: float | str | None) -> tuple[Status, str | None]:
    """The status in the paper's words, and the reason of a failure.

    A refinement that decided as much as asked, and found no violation, is Robust as a search is: on the part it saw.
    """
    if result.stopped is not None:
        return Status.stopped_by(result.stopped), result.stopped
    if result.verdict is Verdict.NOT_ROBUST:
        return Status.NOT_ROBUST, None
    share = result.areas["undecided"][0]
    if result.verdict is Verdict.ROBUST or (isinstance(until, float) and share <= until):
        return Status.ROBUST, None
    return Status.FAILED, f"undecided on a share of {share:.2g}, within the error bounds of a threshold"


def _check_unchanged(entry: Mapping[str, Any], path: Path) -> None:
    """Refuse a file other than the one that the campaign was planned with."""
    try:
        is_same = digest_of(path) == entry["sha256"]
    except OSError as error:
        raise StoreError(f"{entry['name']}: cannot be read ({error.strerror})") from None
    if not is_same:
        raise StoreError(f"{entry['name']}: is not the file that the campaign was planned with")
