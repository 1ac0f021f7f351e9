"""From a comparison to plain data: what `--json` prints and `comparison.json` stores. Nothing is decided here."""

import math
from typing import Any

from ..results.domain_result import DomainResult
from ..results.summary import describe_question, kinks_text, nearest_summary
from .outcome import Comparison, Difference
from .rank import Ranking, is_distance

SCHEMA_VERSION = 1
"""Grows whenever a reader of the older form would misread the newer one."""


def summarise_comparison(comparison: Comparison) -> dict[str, Any]:
    """The comparison as numbers, texts, lists and dictionaries with texts as keys; infinite numbers are None.

    Results are numbered from 0 in the order in which they were given.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "names": list(comparison.names),
        "differs": list(comparison.differs),
        "notes": list(comparison.notes),
        "results": [_result(name, one) for name, one in zip(comparison.names, comparison.results, strict=True)],
        "differences": [_difference(difference) for difference in comparison.differences],
        "rankings": [_ranking(ranking) for ranking in comparison.rankings],
        "contrary": [list(pair) for pair in comparison.contrary],
        "guarantee": guarantee(comparison),
    }


def guarantee(comparison: Comparison) -> str:
    """What the comparison rests on, in a few sentences."""
    kinks = sum(result.sliver_share for result in comparison.results)
    sentences = ["Every number rests on the proofs of the results, and holds as far as they do."]
    if kinks > 0.0:
        sentences.append(kinks_text(kinks))
    if any(not difference.is_exact for difference in comparison.differences):
        sentences.append(
            "With three parameters and more the results are not laid over each other: shares of difference maps are "
            "bounds that follow from the results' own shares."
        )
    elif comparison.differences:
        sentences.append(
            "Areas of difference maps are those of the pieces laid over each other, up to rounding, kinks aside."
        )
    return " ".join(sentences)


def _result(name: str, result: DomainResult) -> dict[str, Any]:
    problem = result.problem
    return {
        "name": name,
        "method": result.method,
        "verdict": result.verdict.value,
        "property": problem.property.value,
        "label": result.label,
        "label_name": problem.names[result.label],
        "measures": ["label", "attention"] if result.is_measured else ["label"],
        "regions": result.region_count,
        "area": {share: list(bounds) for share, bounds in result.areas.items()},
        "nearest": {violated: nearest_summary(found) for violated, found in result.nearest.items()},
        "delta": {"text": str(result.delta), "value": result.answer.delta, "map_size": result.map_size},
        "sliver_share": result.sliver_share,
        "complete": result.is_complete,
        "stopped": result.stopped,
        **describe_question(problem),
    }


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "first": difference.first,
        "second": difference.second,
        "property": difference.property.value,
        "shares": {name: list(bounds) for name, bounds in difference.shares.items()},
        "exact": difference.is_exact,
    }


def _ranking(ranking: Ranking) -> dict[str, Any]:
    return {
        "measure": ranking.measure,
        "meaning": ranking.meaning,
        "order": "smallest first" if is_distance(ranking.measure) else "largest first",
        "is_risk": ranking.is_risk,
        "ranks": [
            {
                "result": one.result,
                "low": _finite(one.bounds[0]),
                "high": _finite(one.bounds[1]),
                "first": one.first,
                "last": one.last,
                "tied": one.is_tied,
            }
            for one in ranking.ranks
        ],
    }


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None
