"""From the question of one problem to its answer as plain data; and everything compiled beforehand.

Runs inside worker processes, whoever started them. Knows nothing of limits, files of a campaign, or other problems. The
same question gives the same answer; how long it took is measured outside.
"""

import math
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from .. import api, zoo
from ..attention.inconsistency import original_maps
from ..budget import Budget, Limits
from ..engines.refine.refine_result import RefineResult
from ..engines.refine.run_refinement import refine
from ..engines.search import SearchResult
from ..errors import InternalError, SteadygazeError, StoreError
from ..problem import Problem
from ..properties.nearest import Nearest
from ..results.answer import Answer
from ..results.domain_result import DomainResult
from ..tolerances import AREA
from ..verdict import Status, Verdict
from .origin import made_by
from .plan import METHODS, Plan
from .schema import EMPTY_ANSWER, LABELS, PERCENTS, SETS, SHARES, percent_column, share_column

SMALL = (("brightness:0..0.02",), ("translate:dy=1:0..0.05", "brightness:0..0.02"))
SOLID = ("translate:dy=1:0..0.02", "brightness:0..0.01", "patch:x=12,y=12,w=4,h=4:0..0.01")
"""Domains of a few regions: what they need is compiled, and next to nothing computed."""
WATCHED = Limits(memory_gib=2.0**20)
"""Time and memory are limited from outside; a second limit in here would depend on the machine."""


def needs(plan: Plan) -> tuple[str, ...]:
    """What `prepare` has to be told for a plan: the digest of the source that solves problems, and `Plan.needs`."""
    return made_by()["source"], *plan.needs


def prepare(told: Sequence[str]) -> None:
    """Compile what is needed (see `needs`), or load what was compiled before: no problem has to wait for it.

    A process that is started when the source has changed meanwhile is refused: all rows are of one make.
    """
    source, *needs = told
    if made_by()["source"] != source:
        raise StoreError("the source of steadygaze was changed while the campaign runs")
    domains = (*SMALL, SOLID) if "solid" in needs else SMALL
    for model in ("M-FNN-100", "M-CNN-S"):
        for specs in domains:
            problem = api.make_problem(model, "mnist:69990", specs, delta=3.0)
            for method in (need for need in needs if need in METHODS):
                answer(problem, method, until=0.001, w_delta=0.2)


def solve(question: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of one problem (see `Plan.question`): the columns `schema.ANSWER`.

    What is wrong with the problem itself makes it Failed, with the reason.
    """
    task = question["task"]
    try:
        return answer(make_problem(question), task["method"], until=task["until"], w_delta=task["w_delta"])
    except InternalError as error:
        return EMPTY_ANSWER | {"status": Status.FAILED.value, "reason": f"self-check: {error}"}
    except SteadygazeError as error:
        return EMPTY_ANSWER | {"status": Status.FAILED.value, "reason": str(error)}


def make_problem(question: Mapping[str, Any]) -> Problem:
    """The problem that a question (see `Plan.question`) stands for; files that were changed since are refused."""
    task, model, image = question["task"], question["model"], question["image"]
    _check_unchanged(model, image)
    return api.make_problem(
        model["location"],
        image["location"],
        question["perturbations"],
        property=task["property"],
        delta=task["delta"],
        filter=task["filter"],
        dist=task["dist"],
        classes=task["classes"],
        mean=_one_or_several(model["mean"]),
        std=_one_or_several(model["std"]),
        scale=model["scale"],
    )


def answer(problem: Problem, method: str, *, until: float | str | None, w_delta: float | None) -> dict[str, Any]:
    """The columns `schema.ANSWER` for a problem."""
    if method == "map":
        return _domain_answer(api.solve(problem, threads=1, budget=Budget(WATCHED)), until=None)
    if method == "refine":
        _ = problem.agreement  # a model file that computes something else is refused here
        return _domain_answer(refine(problem, until=until, threads=1, budget=Budget(WATCHED)), until=until)  # type: ignore[arg-type]
    width = 0.2 if w_delta is None else w_delta
    found = api.explore(problem, method=method, w_delta=width, line="corner", budget=Budget(WATCHED))
    return _search_answer(found)


def _domain_answer(result: DomainResult, *, until: float | str | None) -> dict[str, Any]:
    status, reason = _domain_status(result, until)
    areas = result.areas
    found: dict[str, Any] = {
        "status": status.value,
        "verdict": result.verdict.value,
        "reason": reason,
        "label": result.label,
        "delta_value": result.answer.delta,
        "map_size": result.map_size,
        "regions": result.region_count,
        "boxes": len(result.boxes.state) if isinstance(result, RefineResult) else None,
        "visited_share": 1.0 - areas["undecided"][0] if isinstance(result, RefineResult) else 1.0,
        "face_checks": 0,
        "lps": 0,
        "undecided": areas["undecided"][0],
        "sliver_share": result.sliver_share,
    }
    found |= _bounds({share_column(share): areas[share] for share in SHARES})
    if result.is_measured:
        found |= _bounds({percent_column(percent): result.kept_shares[percent] for percent in PERCENTS})
        found["regions_cr_ir"] = _count_cr_ir(result)
    found |= {
        f"regions_{name.lower()}": result.answer.sets[name] for name in SETS if result.is_measured or name in LABELS
    }
    for name, nearest in result.nearest.items():
        found |= _nearest(name, nearest)
    return EMPTY_ANSWER | found


def _count_cr_ir(result: DomainResult) -> int:
    """How many of the regions that were found one by one are CR and IR at once."""
    found = result.answer.exact if isinstance(result, RefineResult) else result.answer
    if not isinstance(found, Answer):
        return 0  # a refinement without exact regions
    return int(((found.classifications == "CR") & (found.attentions == "IR")).sum())


def _domain_status(result: DomainResult, until: float | str | None) -> tuple[Status, str | None]:
    """The status in the paper's words, and the reason of a failure.

    A refinement that decided as much as it was to, and found no violation, is Robust as a search is: of what it saw.
    """
    if result.stopped is not None:
        return Status.stopped_by(result.stopped), result.stopped
    if result.verdict is Verdict.NOT_ROBUST:
        return Status.NOT_ROBUST, None
    share = result.areas["undecided"][0]
    is_as_asked = isinstance(until, float) and share <= until
    if result.verdict is Verdict.ROBUST or is_as_asked:
        return Status.ROBUST, None
    return Status.FAILED, f"undecided on a share of {share:.2g}, within the error bounds of a threshold"


def _search_answer(result: SearchResult) -> dict[str, Any]:
    problem, status = result.problem, result.status
    reason = None
    if status is Status.FAILED or status is Status.TIMEOUT:
        reason = result.stopped or "a region is lost or undecided for numerical reasons"
    maps = original_maps(problem.compound, problem.attention)
    found = {
        "status": status.value,
        "verdict": result.verdict.value,
        "reason": reason,
        "label": problem.label,
        "delta_value": result.delta,
        "map_size": float(sum(problem.attention.distance.size(part) for part in maps)),
        "regions": len(result),
        "visited_share": result.visited_share,
        "face_checks": result.face_checks,
        "lps": result.lps,
        "components": None if result.components is None else len(result.components),
    }
    found |= {f"regions_{name.lower()}": result.sets[name] for name in SETS}
    if result.sets["CR"] is not None and result.sets["IR"] is not None:
        labels = [(one.classification, one.attention) for one in result.visited]
        found["regions_cr_ir"] = labels.count(("CR", "IR"))
    if problem.perturbed.domain.dimension == 2:
        found |= {"sliver_share": result.sliver_share, **_visited_bounds(result)}
    return EMPTY_ANSWER | found


def _visited_bounds(result: SearchResult) -> dict[str, float]:
    """Bounds of the shares of the domain by the volumes of the visited regions that are wholly CR, or MR.

    In two dimensions unsplit parts are known; volumes add up within AREA. Searches do not add up kinks, so nothing
    follows for the attention.
    """
    if result.sets["CR"] is None:
        return {}
    slack = result.sliver_share + AREA
    volumes = {
        name: sum(float(one.region.volume) for one in result.visited if one.classification == name)
        for name in ("CR", "MR")
    }
    opposite = {"CR": "MR", "MR": "CR"}
    return _bounds(
        {
            share_column(name): (max(0.0, volumes[name] - slack), min(1.0, 1.0 - volumes[opposite[name]] + slack))
            for name in volumes
        }
    )


def _bounds(named: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    return {
        f"{name}_{end}": float(value)
        for name, ends in named.items()
        for end, value in zip(("low", "high"), ends, strict=True)
    }


def _nearest(name: str, nearest: Nearest) -> dict[str, float | None]:
    ends = {"low": nearest.low, "high": nearest.high}
    return {
        f"nearest_{name.lower()}_{end}": float(value) if math.isfinite(value) else None for end, value in ends.items()
    }


def _check_unchanged(model: Mapping[str, Any], image: Mapping[str, Any]) -> None:
    """Refuse files that are not those that the campaign was planned with."""
    location = image["location"]
    image_file = zoo.image_path(location) if zoo.is_reference(location) else Path(location)
    bundled = {each.name: each.path for each in zoo.models()}
    model_file = bundled.get(model["location"], Path(model["location"]))
    for entry, path in ((model, model_file), (image, image_file)):
        try:
            digest = sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise StoreError(f"{entry['name']}: cannot be read ({error.strerror})") from None
        if digest != entry["sha256"]:
            raise StoreError(f"{entry['name']}: is not the file that the campaign was planned with")


def _one_or_several(values: Sequence[float] | None) -> float | list[float] | None:
    return None if values is None else values[0] if len(values) == 1 else list(values)
