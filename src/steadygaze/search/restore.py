"""A stored search as the result that it was: its question put again, its regions from their arrays.

Reads the model from where it was and compares its hash. What a stored search does not hold (which neuron made a facet,
a point inside each facet) is left out, so that it can be told and drawn, but not continued.
"""

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import StoreError
from ..perturbation import Domain
from ..problem import Problem
from ..results.rebuild import rebuild_problem, refusing_damage
from ..results.store import PIXELS, read_checked, read_seconds
from ..traversal import TraversedRegion
from ..verdict import Verdict
from .outcome import BoundaryPart, SearchResult, Visited
from .store import StoredSearch, load_search


def restore_search(directory: str | Path, *, model: str | Path | None = None) -> SearchResult:
    """The search that was stored; raises StoreError for anything that is not one, or no longer whole.

    The model is read again from where it was, or from `model`; its hash must be the same.
    """
    folder = Path(directory)
    stored = load_search(folder)
    with refusing_damage(folder):
        problem = rebuild_problem(read_checked(folder), folder / PIXELS, model=model)
        found = _result(stored, problem, read_seconds(folder).get("total", 0.0))
    if found.verdict.value != stored.summary["verdict"] or found.status.value != stored.summary["status"]:
        raise StoreError(f"{folder}: its regions do not give its verdict; the result is damaged: run it again")
    return found


def _result(stored: StoredSearch, problem: Problem, seconds: float) -> SearchResult:
    summary, domain = stored.summary, problem.perturbed.domain
    line = summary["line"]
    regions = _regions(stored, domain)
    told = summary.get("confirmation")
    # A sum of volumes may round to everything; a search that covers the domain was to be confirmed.
    is_whole = summary["visited_share"] == 1.0 and not (summary["status"] == "Robust" and told is None)
    return SearchResult(
        problem=problem,
        method=str(summary["method"]),
        delta=float(summary["delta"]["value"]),
        w_delta=float(summary["w_delta"] or 0.0),
        line=None if line is None else (np.array(line, dtype=np.float64) - domain.low) / domain.widths,
        visited=_visited(stored, regions),
        face_checks=int(summary["face_checks"]),
        lps=int(summary["lps"]),
        failures=int(summary["failures"]),
        sliver_share=float(summary["sliver_share"] or 0.0),
        stopped=summary["stopped"],
        seconds=seconds,
        is_whole=is_whole,
        components=_components(stored, regions),
        confirmation=None if told is None else Verdict(told),
    )


def _regions(stored: StoredSearch, domain: Domain) -> list[TraversedRegion]:
    """The regions in t."""
    arrays, found = stored.arrays, []
    clip_starts, d = arrays["clip_starts"], domain.dimension
    logits = arrays["logits"].copy()
    logits[:, d] += (logits[:, :d] * domain.low[:, None]).sum(axis=1)
    logits[:, :d] *= domain.widths[:, None]
    inside = (arrays["inside"] - domain.low) / domain.widths
    for number in range(len(stored)):
        halfspaces = _in_t(stored.halfspaces(number), domain)
        corners = None
        if d == 1:
            corners = np.sort(-halfspaces[:, 1:] / halfspaces[:, :1], axis=0)
        found.append(
            TraversedRegion(
                cell=int(arrays["cell"][number]),
                clip=arrays["clip"][clip_starts[number] : clip_starts[number + 1]].tobytes(),
                pattern=arrays["pattern"][number].tobytes(),
                halfspaces=halfspaces,
                sources=np.zeros(0, dtype=np.int64),
                centres=np.zeros((0, d)),
                inside=inside[number],
                logits=logits[number],
                corners=corners,
            )
        )
    return found


def _in_t(rows: np.ndarray, domain: Domain) -> np.ndarray:
    """Half-spaces (F, d+1) in theta as half-spaces of the unit cube, with unit normals again."""
    normals = rows[:, :-1] * domain.widths
    offsets = rows[:, -1] + rows[:, :-1] @ domain.low
    return np.column_stack([normals, offsets]) / np.linalg.norm(normals, axis=1)[:, None]


def _visited(stored: StoredSearch, regions: list[TraversedRegion]) -> list[Visited]:
    arrays = stored.arrays
    columns = zip(
        regions, stored.classification, stored.attention, arrays["margin"], arrays["inconsistency"],
        arrays["is_following"], arrays["is_doubtful"], strict=True,
    )  # fmt: skip
    return [
        Visited(region, label, attention, _pair(margin), _pair(inconsistency), bool(is_following), bool(is_doubtful))
        for region, label, attention, margin, inconsistency, is_following, is_doubtful in columns
    ]


def _pair(bounds: np.ndarray) -> tuple[float, float]:
    return float(bounds[0]), float(bounds[1])


def _components(stored: StoredSearch, regions: list[TraversedRegion]) -> list[BoundaryPart] | None:
    if stored.summary["method"] != "boundary":
        return None
    arrays: dict[str, Any] = stored.arrays
    told = stored.summary["components"]
    count = len(told) if told is not None else int(arrays["component"].max(initial=-1)) + 1
    parts = []
    for number in range(count):
        is_here = arrays["component"] == number
        inner, outer = (
            frozenset(regions[place].key for place in arrays["component_region"][is_here & (is_inner == side)])
            for is_inner in [arrays["component_is_inner"]]
            for side in (1, 0)
        )
        parts.append(BoundaryPart(inner, outer))
    return parts
