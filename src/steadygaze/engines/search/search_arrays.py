"""Packs searches into the arrays of `regions.npz` and the rows of an export; checks stored arrays before use."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial import HalfspaceIntersection

from ...labels import Kept, Label
from ...perturbation import Domain
from ...properties.joint import Shares
from ...question import Question
from ...results.arrays import Shapes, check_range, require, shaped
from ...results.export import Block, Part, shape_columns
from .visited import ATTENTIONS, CLASSIFICATIONS, BoundaryPart, TraversedRegion, Visited

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
    "shares": (np.float64, (10,)),
}
"""Type and shape of every array; a word is a size."""
Arrays = dict[str, np.ndarray]
KINDS = {"classification": CLASSIFICATIONS, "attention": ATTENTIONS}


def pack_search(
    question: Question, visited: list[Visited], components: Sequence[BoundaryPart], shares: Shares
) -> Arrays:
    """The arrays of a search in `regions.npz`.

    halfspaces (F, d+1) in theta: unit inward normal n and offset c with n·θ + c ≥ 0; region r has the rows
    starts[r]:starts[r+1]. inside (R, d): a theta inside each region; volume (R,): its share of the domain; logits
    (R, d+1, K): slope in theta and constant. cell (R,), clip[clip_starts[r]:clip_starts[r+1]] and pattern (R, B):
    the packed bits that identify a region. classification and attention (R,): 0 not requested, 1 undecided, then 2,
    3, 4 for CR, MR, CB or AR, IR, AB. margin and inconsistency (R, 2): bounds over the region. component,
    component_region and component_is_inner (N,): the regions along each component of the boundary. shares (10,): the
    shares by label and attention, row by row, each in the order kept, undecided, lost; then the share of kinks.
    """
    domain = question.perturbed.domain
    regions = [one.region for one in visited]
    d, count = domain.dimension, len(regions)
    program = question.compound.programs[0].program
    classes = int(program.offsets[-1] - program.offsets[-2])
    clips = [np.frombuffer(region.clip, dtype=np.uint8) for region in regions]
    patterns = [np.frombuffer(region.pattern, dtype=np.uint8) for region in regions]
    logits = np.array([region.logits for region in regions]).reshape(count, d + 1, classes)
    logits[:, :d] /= domain.widths[:, None]
    logits[:, d] -= (logits[:, :d] * domain.low[:, None]).sum(axis=1)
    inside = np.array([region.inside for region in regions]).reshape(count, d)
    place = {region.key: number for number, region in enumerate(regions)}
    along = sorted(
        (number, place[key], is_inner)
        for number, part in enumerate(components)
        for is_inner, keys in ((1, part.inner), (0, part.outer))
        for key in keys
        if key in place
    )
    component, component_region, is_inner = np.array(along, dtype=np.int64).reshape(-1, 3).T
    return {
        "halfspaces": _in_theta(np.concatenate([np.zeros((0, d + 1)), *(r.halfspaces for r in regions)]), domain),
        "starts": np.cumsum([0, *(len(region.halfspaces) for region in regions)], dtype=np.int64),
        "inside": domain.to_theta(inside),
        "volume": np.array([region.volume for region in regions], dtype=np.float64),
        "logits": logits,
        "cell": np.array([region.cell for region in regions], dtype=np.int64),
        "clip": np.concatenate([np.zeros(0, dtype=np.uint8), *clips]),
        "clip_starts": np.cumsum([0, *(len(clip) for clip in clips)], dtype=np.int64),
        "pattern": np.array(patterns, dtype=np.uint8).reshape(count, -1 if count else 0),
        "classification": np.array([CLASSIFICATIONS.index(one.classification) for one in visited], dtype=np.int64),
        "attention": np.array([ATTENTIONS.index(one.attention) for one in visited], dtype=np.int64),
        "margin": np.array([one.margin for one in visited], dtype=np.float64).reshape(count, 2),
        "inconsistency": np.array([one.inconsistency for one in visited], dtype=np.float64).reshape(count, 2),
        "is_following": np.array([one.is_following for one in visited], dtype=np.uint8),
        "is_doubtful": np.array([one.is_doubtful for one in visited], dtype=np.uint8),
        "component": component,
        "component_region": component_region,
        "component_is_inner": is_inner.astype(np.uint8),
        **pack_shares(shares),
    }


def pack_shares(shares: Shares) -> Arrays:
    """The shares as an array."""
    return {"shares": np.append(np.array(shares.cells).ravel(), shares.slivers)}


def read_shares(arrays: Arrays) -> Shares:
    """The stored shares."""
    *cells, slivers = arrays["shares"].tolist()
    return Shares((tuple(cells[:3]), tuple(cells[3:6]), tuple(cells[6:])), slivers)


def _in_theta(rows: np.ndarray, domain: Domain) -> np.ndarray:
    """Half-spaces (F, d+1) of the unit cube, converted to theta and normalised."""
    normals = rows[:, :-1] / domain.widths
    offsets = rows[:, -1] - normals @ domain.low
    return np.column_stack([normals, offsets]) / np.linalg.norm(normals, axis=1)[:, None]


def checked_arrays(arrays: Arrays, content: dict[str, Any], question: Question) -> Arrays:
    """The arrays, converted to their types; StoreError if they do not fit each other, the question and the answer."""
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
    for kind, names in KINDS.items():
        told = [content["sets"][name] or 0 for name in names[2:]]
        found = np.bincount(arrays[kind], minlength=len(names)).tolist()[2:]
        require(found == told, kind, "does not match the counts in result.json")
    _check_shares(arrays)
    return arrays


def _check_shares(arrays: Arrays) -> None:
    """Check that shares add up to the domain, and that no label's share exceeds the regions that can have it."""
    shares, volume = arrays["shares"], arrays["volume"]
    cells = shares[:9].reshape(3, 3)
    is_sound = (shares >= 0.0).all() and shares[9] <= 1.0 and abs(cells.sum() - 1.0) <= 1e-6
    for kind, sums in (("classification", cells.sum(axis=1)), ("attention", cells.sum(axis=0))):
        _, undecided, kept, lost, mixed = range(len(KINDS[kind]))
        for code, own in ((Kept.YES, kept), (Kept.NO, lost)):
            is_sound &= sums[code] <= volume[np.isin(arrays[kind], (undecided, own, mixed))].sum() + 1e-6
    require(bool(is_sound), "shares", "does not fit the regions")


def read_regions(arrays: Arrays, domain: Domain) -> list[TraversedRegion]:
    """The stored regions, in t."""
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


def read_components(
    content: dict[str, Any], arrays: Arrays, regions: list[TraversedRegion]
) -> list[BoundaryPart] | None:
    """The components of the boundary that a search followed; None for other methods."""
    if content["method"] != "boundary":
        return None
    told = content["components"]
    count = len(told) if told is not None else int(arrays["component"].max(initial=-1)) + 1
    sides: list[tuple[set[bytes], set[bytes]]] = [(set(), set()) for _ in range(count)]
    columns = (arrays[name] for name in ("component", "component_is_inner", "component_region"))
    for number, is_inner, region in zip(*columns, strict=True):
        sides[number][1 - is_inner].add(regions[region].key)
    return [BoundaryPart(frozenset(inner), frozenset(outer)) for inner, outer in sides]


def visited_part(arrays: Arrays, label: int, delta: float) -> Part:
    """The visited regions as rows of an export."""
    words = [np.array(names)[arrays[kind]].tolist() for kind, names in KINDS.items()]

    def make(start: int, stop: int) -> Block:
        classification, attention = (found[start:stop] for found in words)
        corners = [_corners(arrays, row) for row in range(start, stop)]
        starts = np.concatenate([[0], np.cumsum([len(points) for points in corners])])
        margin, reach = (np.array(arrays[name][start:stop]) for name in ("margin", "inconsistency"))
        margin[[not word for word in classification]] = np.nan
        reach[[not word for word in attention]] = np.nan
        unknown = np.full(stop - start, np.nan)
        return {
            "kind": ["region"] * (stop - start),
            "number": np.arange(start, stop),
            "classification": [word or None for word in classification],
            "attention": [word or None for word in attention],
            "winner": np.array([label if word == Label.CR else -1 for word in classification]),
            "share": arrays["volume"][start:stop],
            "label_open": unknown,
            "attention_open": unknown,
            "margin_low": margin[:, 0],
            "margin_high": margin[:, 1],
            "inconsistency_low": reach[:, 0],
            "inconsistency_high": reach[:, 1],
            "delta": np.full(stop - start, delta),
            **shape_columns(np.concatenate(corners), starts, arrays["inside"][start:stop]),
        }

    return Part(len(arrays["volume"]), make)


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
