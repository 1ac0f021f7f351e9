"""From the result of a search to plain data: what `--json` prints and `result.json` stores.

Holds no timing and no path, so that the same question gives the same bytes. Nothing is decided here.
"""

import math
from typing import Any

import numpy as np

from ..attention.inconsistency import original_maps
from ..results.answer import round_up
from ..results.summary import SCHEMA_VERSION, agreement_text, describe_question
from ..tolerances import AREA, THIN
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
    arithmetic = "for the real-valued network, by float64 arithmetic with error bounds"
    # Rounded down: never more than was visited.
    share = f"{math.floor(1e4 * min(result.visited_share, 1.0)) / 1e2:g}%"
    if result.verdict is Verdict.ROBUST:
        first = (
            f"The visited regions cover the domain: their volumes add up to it within {AREA:g}. Proved {arithmetic}, "
            f"except on {_slivers(result)}."
        )
    elif result.verdict is Verdict.NOT_ROBUST:
        rest = "" if result.visited_share == 1.0 else f" ({share} of it); nothing is said about the rest"
        first = (
            f"Proved {arithmetic}, except on {_slivers(result)}: the labels of the visited regions other than "
            f"undecided. The visited regions cover {'part of ' if rest else ''}the domain{rest}."
        )
    elif result.status is Status.ROBUST:
        first = (
            f"Nothing is proved of the whole domain: the property holds on every visited region, {arithmetic}, but "
            f"these cover {share} of it, and the rest was not looked at."
        )
    else:
        first = (
            f"Nothing is proved of the whole domain, of which {share} was visited; the labels of the visited regions "
            f"are proved {arithmetic}, and those within the error bounds of a threshold are undecided."
        )
    return f"{first} {agreement_text(result.problem.agreement)}"


def _slivers(result: SearchResult) -> str:
    if result.problem.perturbed.domain.dimension == 2:
        return f"slivers of total share at most {round_up(result.sliver_share, 2):g}"
    return f"slivers narrower than {10 * THIN:g} of the domain, which are not added up in this number of parameters"


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
