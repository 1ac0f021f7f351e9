"""Searches from disk and for export: a directory into the `SearchResult` that was saved, a search into table rows.

Files are never trusted: damaged, foreign or inconsistent ones are refused. A loaded search can be shown, drawn and
exported, but not continued: its regions lack the neuron behind each facet, and a point inside each.
"""

from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import HalfspaceIntersection

from ...errors import OptionError, StoreError
from ...labels import Label, Stop, Verdict
from ...perturbation import Domain
from ...question import Question
from ...results.arrays import Shapes, check_range, read_arrays, require, shaped
from ...results.export import NOTE, Block, Part, Table, shape_columns
from ...results.rebuild import rebuild_question, refusing_damage
from ...results.store import MAP, PIXELS, is_search, read_checked, read_seconds
from .search_result import ATTENTIONS, CLASSIFICATIONS, BoundaryPart, SearchResult, Visited
from .traversal import TraversedRegion

SHAPES: Shapes = {
    "halfspaces": (np.float64, ("facets", "axes+1")),
    "starts": (np.int64, ("regions+1",)),
    "inside": (np.float64, ("regions", "axes")),
    "volume": (np.float64, ("regions",)),
    "logits": (np.float64, ("regions", "axes+1", "classes")),
    "cell": (np.int64, ("regions",)),
    "clip": (np.uint8, ("clip bytes",)),
    "clip_starts": (np.int64, ("regions+1",)),
    "pattern": (np.uint8, ("regions", "pattern bytes")),
    "classification": (np.int64, ("regions",)),
    "attention": (np.int64, ("regions",)),
    "margin": (np.float64, ("regions", 2)),
    "inconsistency": (np.float64, ("regions", 2)),
    "is_following": (np.uint8, ("regions",)),
    "is_doubtful": (np.uint8, ("regions",)),
    "component": (np.int64, ("sides",)),
    "component_region": (np.int64, ("sides",)),
    "component_is_inner": (np.uint8, ("sides",)),
}
"""Type in memory and shape of every array; a word is a size."""
Arrays = dict[str, np.ndarray]


def load_search(directory: str | Path, *, model: str | Path | None = None) -> SearchResult:
    """The stored search; raises StoreError for any other directory, and for a damaged one.

    The model is read again from where it was, or from `model`; its hash must be the same.
    """
    folder = Path(directory)
    content = read_checked(folder)
    if not is_search(content):
        raise StoreError(f"{folder}: holds a map, not a search; read it with steadygaze.load")
    with refusing_damage(folder):
        question = rebuild_question(content, folder / PIXELS, model=model)
        arrays = read_arrays(folder / MAP, list(SHAPES))
        try:
            arrays = _checked(arrays, content, question)
        except StoreError as error:
            raise StoreError(f"{folder / MAP}: {error}") from None
        found = _rebuild(content, arrays, question, read_seconds(folder).get("total", 0.0))
        is_same = (found.verdict.value, found.status.value) == (content["verdict"], content["status"])
    if not is_same:
        raise StoreError(f"{folder}: its regions do not give its verdict; the result is damaged: run it again")
    return found


def _checked(arrays: Arrays, content: dict[str, Any], question: Question) -> Arrays:
    """The arrays in their types, once they fit each other, the question and the answer; raises StoreError."""
    count, parts = int(content["visited"]), len(content["components"] or ())
    sizes = {"regions": count, "axes": question.perturbed.domain.dimension, "classes": question.model.classes}
    bounds = ("margin", "inconsistency")
    arrays = {
        name: shaped(name, arrays[name], shape, sizes, may_be_infinite=name in bounds) for name, shape in SHAPES.items()
    }
    ends = {"cell": len(question.perturbed.cells), "classification": 5, "attention": 5, "is_following": 2}
    ends |= {"is_doubtful": 2, "component": parts, "component_region": count, "component_is_inner": 2}
    for name, end in ends.items():
        check_range(name, arrays[name], 0, end)
    for name, of in (("starts", "halfspaces"), ("clip_starts", "clip")):
        is_ascending = (np.diff(arrays[name], prepend=0, append=len(arrays[of])) >= 0).all()
        is_whole = arrays[name][0] == 0 and arrays[name][-1] == len(arrays[of])
        require(is_ascending and is_whole, name, f"does not divide {of}")
    for kind, names in (("classification", CLASSIFICATIONS), ("attention", ATTENTIONS)):
        told = [content["sets"][name] or 0 for name in names[2:]]
        found = np.bincount(arrays[kind], minlength=len(names)).tolist()[2:]
        require(found == told, kind, "does not hold the regions that result.json counts")
    return arrays


def _rebuild(content: dict[str, Any], arrays: Arrays, question: Question, seconds: float) -> SearchResult:
    line, told = content["line"], content.get("confirmation")
    regions = _regions(arrays, question.perturbed.domain)
    names = ("margin", "inconsistency", "is_following", "is_doubtful")
    columns = zip(*(arrays[name].tolist() for name in names), strict=True)
    labels = zip(arrays["classification"].tolist(), arrays["attention"].tolist(), strict=True)
    visited = [
        Visited(
            region, CLASSIFICATIONS[code], ATTENTIONS[other], tuple(margin), tuple(reach), bool(follows), bool(doubt)
        )
        for region, (code, other), (margin, reach, follows, doubt) in zip(regions, labels, columns, strict=True)
    ]
    return SearchResult(
        question=question,
        method=str(content["method"]),
        delta=float(content["delta"]["value"]),
        map_size=float(content["delta"]["map_size"]),
        w_delta=float(content["w_delta"] or 0.0),
        line=None if line is None else np.array(line, dtype=np.float64),
        visited=visited,
        face_checks=int(content["face_checks"]),
        lps=int(content["lps"]),
        failures=int(content["failures"]),
        sliver_share=float(content["sliver_share"] or 0.0),
        stopped=None if content["stopped"] is None else Stop(str(content["stopped"])),
        seconds=seconds,
        # A sum of volumes may round to 1; a search that covers the domain has asked for a confirmation.
        is_whole=content["visited_share"] == 1.0 and not (content["status"] == "Robust" and told is None),
        components=_components(content, arrays, regions),
        confirmation=None if told is None else Verdict(told),
        stored=arrays,
    )


def _regions(arrays: Arrays, domain: Domain) -> list[TraversedRegion]:
    """The regions in t."""
    d, low, widths = domain.dimension, domain.low, domain.widths
    logits = arrays["logits"].copy()
    logits[:, d] += (logits[:, :d] * low[:, None]).sum(axis=1)
    logits[:, :d] *= widths[:, None]
    rows = arrays["halfspaces"]
    normals = rows[:, :-1] * widths
    rows = np.column_stack([normals, rows[:, -1] + rows[:, :-1] @ low]) / np.linalg.norm(normals, axis=1)[:, None]
    facets, clips = np.split(rows, arrays["starts"][1:-1]), np.split(arrays["clip"], arrays["clip_starts"][1:-1])
    found = []
    for number, inside in enumerate(domain.to_unit(arrays["inside"])):
        halfspaces = facets[number]
        found.append(
            TraversedRegion(
                cell=int(arrays["cell"][number]),
                clip=clips[number].tobytes(),
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


def _components(content: dict[str, Any], arrays: Arrays, regions: list[TraversedRegion]) -> list[BoundaryPart] | None:
    if content["method"] != "boundary":
        return None
    told = content["components"]
    count = len(told) if told is not None else int(arrays["component"].max(initial=-1)) + 1
    sides: list[tuple[set[bytes], set[bytes]]] = [(set(), set()) for _ in range(count)]
    columns = (arrays[name] for name in ("component", "component_is_inner", "component_region"))
    for number, is_inner, region in zip(*columns, strict=True):
        sides[number][1 - is_inner].add(regions[region].key)
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
            "winner": np.array([result.question.label if label == Label.CR else -1 for label in classification]),
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

    return Table((Part(len(result), make),), result.question.perturbed.domain.dimension, facts)


def _corners(arrays: Arrays, region: int) -> np.ndarray:
    """The corners (V, d) of a region in theta, from its half-spaces, none of which is redundant."""
    first, last = arrays["starts"][region : region + 2]
    halfspaces, inside = arrays["halfspaces"][first:last], arrays["inside"][region]
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
