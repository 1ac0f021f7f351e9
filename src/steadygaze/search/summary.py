"""From the result of a search to plain data: what `--json` prints and `result.json` stores.

Holds no timing and no path, so that the same question gives the same bytes. Nothing is decided here.
"""

import math
from typing import Any

import numpy as np

from ..attention.inconsistency import original_maps
from ..results.schema import SCHEMA_VERSION
from ..results.summary import agreement_text, describe_question
from ..tolerances import AREA, FEASIBILITY
from ..verdict import Property, Status, Verdict
from .outcome import SearchResult


def summarise_search(result: SearchResult) -> dict[str, Any]:
    """The answer as numbers, texts, lists and dictionaries with texts as keys; what was not asked for is None.

    `sets` and `undecided` count visited regions; `guarantee` says what the verdict rests on, and no more.
    """
    problem, end = result.problem, line_end(result)
    uses_width = result.method == "gbs" and problem.property is not Property.CR
    return {
        "schema_version": SCHEMA_VERSION,
        "method": result.method,
        "verdict": result.verdict.value,
        "status": result.status.value,
        "property": problem.property.value,
        "label": problem.label,
        "label_name": problem.names[problem.label],
        "sets": dict(result.sets),
        "undecided": _undecided(result),
        "visited": len(result),
        "visited_share": result.visited_share,
        "following": sum(one.is_following for one in result.visited),
        "face_checks": result.face_checks,
        "lps": result.lps,
        "failures": result.failures,
        "components": _components(result),
        "confirmation": None if result.confirmation is None else result.confirmation.value,
        "delta": {"text": str(problem.delta), "value": result.delta, "map_size": _map_size(result)},
        "w_delta": result.w_delta if uses_width else None,
        "line": None if end is None else end.tolist(),
        "sliver_share": result.sliver_share if problem.perturbed.domain.dimension == 2 else None,
        "guarantee": guarantee(result),
        "complete": result.stopped is None,
        "stopped": result.stopped,
        **describe_question(problem),
    }


def line_end(result: SearchResult) -> np.ndarray | None:
    """The theta (d,) that the search line leads to; None where there is no line."""
    domain = result.problem.perturbed.domain
    return None if result.line is None else np.asarray(domain.low + result.line * domain.widths)


def guarantee(result: SearchResult) -> str:
    """What the verdict rests on, in sentences that say no more than was proved."""
    arithmetic = "for the real-valued network, by float64 arithmetic with error bounds or by exact arithmetic"
    # Rounded down: never more than was visited.
    share = f"{math.floor(1e4 * min(result.visited_share, 1.0)) / 1e2:g}%"
    if result.is_covering:
        first = _covering(result, arithmetic)
    elif result.verdict is Verdict.NOT_ROBUST:
        rest = "" if result.visited_share == 1.0 else f" ({share} of it); nothing is said about the rest"
        first = (
            f"Proved {arithmetic}: the labels of the visited regions other than undecided, {_except(result)} The "
            f"visited regions cover {'part of ' if rest else ''}the domain{rest or ' up to tolerances'}."
        )
    elif result.status is Status.ROBUST:
        first = (
            f"Nothing is proved of the whole domain: the property holds on every visited region, {arithmetic}, but "
            f"these cover {share} of it, and the rest was not looked at. The labels hold {_except(result)}"
        )
    else:
        first = (
            f"Nothing is proved of the whole domain, of which {share} was visited; the labels of the visited regions "
            f"are proved {arithmetic}, and those within the error bounds of a threshold are undecided. They hold "
            f"{_except(result)}"
        )
    return f"{first} {agreement_text(result.problem.agreement)}"


def _covering(result: SearchResult, arithmetic: str) -> str:
    """What a search that visited all of the domain proves, and what the proof for every theta adds."""
    visited = (
        f"The visited regions cover the domain up to tolerances: their volumes add up to it within {AREA:g}. On each "
        "of them the property holds"
    )
    if result.verdict is Verdict.ROBUST:
        return (
            f"{visited}. That it holds at every theta is proved by a refinement of the same question, {arithmetic}; "
            "nothing is left out."
        )
    if result.verdict is Verdict.NOT_ROBUST:
        return f"{visited}; but a refinement of the same question proves a violation between them, {arithmetic}."
    why = (
        "the refinement that would prove it for every theta left something undecided"
        if result.confirmation is not None
        else "no proof that covers every theta was asked for"
    )
    return f"{visited}, {arithmetic}, {_except(result)} Nothing is proved of the whole domain: {why}."


def _except(result: SearchResult) -> str:
    """Where the labels of regions may not hold."""
    text = (
        "except on kinks: strips along the borders of the regions, as wide as an error divided by a slope, whose share "
        "a search does not add up"
    )
    if result.problem.perturbed.domain.dimension > 2:
        text += f"; the borders are found by linear programs with a tolerance of {FEASIBILITY:g} of the domain"
    return f"{text}."


def _undecided(result: SearchResult) -> dict[str, int | None]:
    """Visited regions without a certain label, of each kind that was asked for."""
    labels = {
        "classification": [one.classification for one in result.visited],
        "attention": [one.attention for one in result.visited],
    }
    return {kind: found.count("undecided") if any(found) else None for kind, found in labels.items()}


def _components(result: SearchResult) -> list[dict[str, int]] | None:
    if result.components is None or result.stopped is not None:
        return None
    return [{"inner": len(part.inner), "outer": len(part.outer)} for part in result.components]


def _map_size(result: SearchResult) -> float:
    options = result.problem.attention
    return float(sum(options.distance.size(part) for part in original_maps(result.problem.compound, options)))
