"""Searches from disk and for export: a directory into the `SearchResult` that was saved, a search into table rows.

Files are never trusted: damaged, foreign or inconsistent ones are refused. A loaded search can be shown, drawn and
exported, but not continued: its regions lack the neuron behind each facet, and a point inside each.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import HalfspaceIntersection

from ...errors import OptionError, StoreError
from ...perturbation import Domain
from ...problem import Problem
from ...results.archive import read_arrays
from ...results.export import NOTE
from ...results.rebuild import rebuild_problem, refusing_damage
from ...results.store import MAP, PIXELS, is_search, read_checked, read_seconds
from ...results.table import Block, Part, Table, shape_columns
from ...verdict import Verdict
from .search_result import ATTENTIONS, CLASSIFICATIONS, BoundaryPart, SearchResult, Visited
from .traversal import TraversedRegion

KINDS = {"f": np.float64, "i": np.int32, "u": np.uint8}
SHAPES = {
    "halfspaces": ("f", "facets", "forms"),
    "starts": ("i", "bounds"),
    "inside": ("f", "regions", "axes"),
    "volume": ("f", "regions"),
    "logits": ("f", "regions", "forms", "classes"),
    "cell": ("i", "regions"),
    "clip": ("u", "clip"),
    "clip_starts": ("i", "bounds"),
    "pattern": ("u", "regions", "pattern"),
    "classification": ("i", "regions"),
    "attention": ("i", "regions"),
    "margin": ("f", "regions", "ends"),
    "inconsistency": ("f", "regions", "ends"),
    "is_following": ("u", "regions"),
    "is_doubtful": ("u", "regions"),
    "component": ("i", "along"),
    "component_region": ("i", "along"),
    "component_is_inner": ("u", "along"),
}
"""Kind and sizes of every array; sizes of the same name are equal."""


def load_search(directory: str | Path, *, model: str | Path | None = None) -> SearchResult:
    """The stored search; raises StoreError for any other directory, and for a damaged one.

    The model is read again from where it was, or from `model`; its hash must be the same.
    """
    folder = Path(directory)
    content = read_checked(folder)
    if not is_search(content):
        raise StoreError(f"{folder}: holds a map, not a search; read it with steadygaze.load")
    arrays = read_arrays(folder / MAP, list(SHAPES))
    try:
        _check_arrays(arrays, content)
    except StoreError as error:
        raise StoreError(f"{folder / MAP}: {error}; the result is damaged: run the verification again") from None
    with refusing_damage(folder):
        problem = rebuild_problem(content, folder / PIXELS, model=model)
        found = _rebuild(content, arrays, problem, read_seconds(folder).get("total", 0.0))
        is_same = (found.verdict.value, found.status.value) == (content["verdict"], content["status"])
    if not is_same:
        raise StoreError(f"{folder}: its regions do not give its verdict; the result is damaged: run it again")
    return found


def _check_arrays(arrays: dict[str, np.ndarray], content: dict[str, Any]) -> None:
    """Raise StoreError if arrays do not fit each other or the answer beside them."""
    try:
        regions, axes = int(content["visited"]), len(content["domain"]["names"])
        parts = len(content["components"] or ())
        sets: dict[str, Any] = dict(content["sets"])
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"result.json beside it is not complete ({type(error).__name__})") from None
    sizes = {"regions": regions, "axes": axes, "forms": axes + 1, "bounds": regions + 1, "ends": 2}
    for name, (kind, *wanted) in SHAPES.items():
        array = arrays[name]
        expected = tuple(sizes.setdefault(size, length) for size, length in zip(wanted, array.shape, strict=False))
        if array.dtype != KINDS[kind] or array.shape != expected or array.ndim != len(wanted):
            raise StoreError(f"the array {name} has {array.shape} entries of {array.dtype}, which do not fit")
    most = {"cell": np.inf, "classification": 4, "attention": 4, "is_following": 1, "is_doubtful": 1}
    most |= {"component": parts - 1, "component_region": regions - 1, "component_is_inner": 1}
    for name, limit in most.items():
        if not ((arrays[name] >= 0) & (arrays[name] <= limit)).all():
            raise StoreError(f"the array {name} has entries out of range")
    for name, of in (("starts", "halfspaces"), ("clip_starts", "clip")):
        ends = arrays[name]
        if ends[0] != 0 or ends[-1] != len(arrays[of]) or any(b < a for a, b in pairwise(ends.tolist())):
            raise StoreError(f"the array {name} does not divide {of}")
    for name in ("halfspaces", "inside", "volume", "logits"):
        if not np.isfinite(arrays[name]).all():
            raise StoreError(f"the array {name} has entries that are not finite")
    if any(np.isnan(arrays[name]).any() for name in ("margin", "inconsistency")):
        raise StoreError("the array margin or inconsistency has entries that are not numbers")
    for kind, names in (("classification", CLASSIFICATIONS), ("attention", ATTENTIONS)):
        counts = np.bincount(arrays[kind], minlength=len(names)).tolist()
        if counts[2:] != [sets.get(name) or 0 for name in names[2:]]:
            raise StoreError(f"the array {kind} does not hold the regions that result.json counts")


def _rebuild(content: dict[str, Any], arrays: dict[str, np.ndarray], problem: Problem, seconds: float) -> SearchResult:
    line, told = content["line"], content.get("confirmation")
    regions = _regions(arrays, problem.perturbed.domain)
    columns = zip(
        regions, arrays["classification"], arrays["attention"], arrays["margin"].tolist(),
        arrays["inconsistency"].tolist(), arrays["is_following"], arrays["is_doubtful"], strict=True,
    )  # fmt: skip
    return SearchResult(
        problem=problem,
        method=str(content["method"]),
        delta=float(content["delta"]["value"]),
        map_size=float(content["delta"]["map_size"]),
        w_delta=float(content["w_delta"] or 0.0),
        line=None if line is None else np.array(line, dtype=np.float64),
        visited=[
            Visited(
                region, CLASSIFICATIONS[classification], ATTENTIONS[attention], (margin[0], margin[1]),
                (reach[0], reach[1]), bool(is_following), bool(is_doubtful),
            )
            for region, classification, attention, margin, reach, is_following, is_doubtful in columns
        ],
        face_checks=int(content["face_checks"]),
        lps=int(content["lps"]),
        failures=int(content["failures"]),
        sliver_share=float(content["sliver_share"] or 0.0),
        stopped=content["stopped"],
        seconds=seconds,
        # A sum of volumes may round to 1; a search that covers the domain has asked for a confirmation.
        is_whole=content["visited_share"] == 1.0 and not (content["status"] == "Robust" and told is None),
        components=_components(content, arrays, regions),
        confirmation=None if told is None else Verdict(told),
        stored=arrays,
    )  # fmt: skip


def _regions(arrays: dict[str, np.ndarray], domain: Domain) -> list[TraversedRegion]:
    """The regions in t."""
    d, low, widths = domain.dimension, domain.low, domain.widths
    logits = arrays["logits"].copy()
    logits[:, d] += (logits[:, :d] * low[:, None]).sum(axis=1)
    logits[:, :d] *= widths[:, None]
    rows = arrays["halfspaces"]
    normals = rows[:, :-1] * widths
    rows = np.column_stack([normals, rows[:, -1] + rows[:, :-1] @ low]) / np.linalg.norm(normals, axis=1)[:, None]
    found = []
    for number, inside in enumerate((arrays["inside"] - low) / widths):
        halfspaces = _of_region(arrays, rows, "starts", number)
        found.append(
            TraversedRegion(
                cell=int(arrays["cell"][number]),
                clip=_of_region(arrays, arrays["clip"], "clip_starts", number).tobytes(),
                pattern=arrays["pattern"][number].tobytes(),
                halfspaces=halfspaces,
                sources=np.zeros(0, dtype=np.int64),
                centres=np.zeros((0, d)),
                inside=inside,
                logits=logits[number],
                corners=np.sort(-halfspaces[:, 1:] / halfspaces[:, :1], axis=0) if d == 1 else None,
                known_volume=float(arrays["volume"][number]),
            )
        )
    return found


def _of_region(arrays: dict[str, np.ndarray], values: np.ndarray, starts: str, region: int) -> np.ndarray:
    return values[arrays[starts][region] : arrays[starts][region + 1]]


def _components(
    content: dict[str, Any], arrays: dict[str, np.ndarray], regions: list[TraversedRegion]
) -> list[BoundaryPart] | None:
    if content["method"] != "boundary":
        return None
    told = content["components"]
    count = len(told) if told is not None else int(arrays["component"].max(initial=-1)) + 1
    sides: list[tuple[set[bytes], set[bytes]]] = [(set(), set()) for _ in range(count)]
    for number, region, is_inner in zip(
        arrays["component"], arrays["component_region"], arrays["component_is_inner"], strict=True
    ):
        sides[number][0 if is_inner else 1].add(regions[region].key)
    return [BoundaryPart(frozenset(inner), frozenset(outer)) for inner, outer in sides]


def search_table(result: SearchResult, what: str) -> Table:
    """The rows of an export: the visited regions, which are not split into pieces."""
    if what != "regions":
        raise OptionError(
            f"a search ({result.method}) has regions alone, which are not split into {what}; leave --what out, or "
            "verify with --method map"
        )
    summary, arrays = result.summary(), result.arrays
    names = ("method", "property", "label", "domain", "model", "image", "attention", "delta", "complete")
    facts = {"note": NOTE, "rows": what, **{name: summary[name] for name in names}}

    def make(start: int, stop: int) -> Block:
        classification, attention = result.classification[start:stop], result.attention[start:stop]
        corners = [_corners(arrays, row) for row in range(start, stop)]
        starts = np.concatenate([[0], np.cumsum([len(points) for points in corners])])
        margin, reach = (np.array(arrays[name][start:stop]) for name in ("margin", "inconsistency"))
        margin[[not label for label in classification]] = np.nan
        reach[[not label for label in attention]] = np.nan
        unknown = np.full(stop - start, np.nan)
        return {
            "kind": ["region"] * (stop - start),
            "number": np.arange(start, stop),
            "classification": [label or None for label in classification],
            "attention": [label or None for label in attention],
            "winner": np.array([result.problem.label if label == "CR" else -1 for label in classification]),
            "share": arrays["volume"][start:stop],
            "label_open": unknown,
            "attention_open": unknown,
            "margin_low": margin[:, 0],
            "margin_high": margin[:, 1],
            "inconsistency_low": reach[:, 0],
            "inconsistency_high": reach[:, 1],
            "delta": np.full(stop - start, result.delta),
            **shape_columns(np.concatenate(corners), starts, arrays["inside"][start:stop]),
        }

    return Table((Part(len(result), make),), result.problem.perturbed.domain.dimension, facts)


def _corners(arrays: dict[str, np.ndarray], region: int) -> np.ndarray:
    """The corners (V, d) of a region in theta, from its half-spaces, none of which is redundant."""
    halfspaces, inside = _of_region(arrays, arrays["halfspaces"], "starts", region), arrays["inside"][region]
    normals, offsets = halfspaces[:, :-1], halfspaces[:, -1]
    if len(inside) == 1:
        return np.sort(-offsets / normals[:, 0])[:, None]
    if len(inside) > 2:
        return HalfspaceIntersection(-halfspaces, inside).intersections
    order = np.argsort(np.arctan2(normals[:, 1], normals[:, 0]), kind="stable")
    first, second = order, np.roll(order, -1)
    crossing = normals[first, 0] * normals[second, 1] - normals[first, 1] * normals[second, 0]
    x = normals[first, 1] * offsets[second] - normals[second, 1] * offsets[first]
    y = normals[second, 0] * offsets[first] - normals[first, 0] * offsets[second]
    return np.stack([x, y], axis=1) / crossing[:, None]
