"""The map of a result as named arrays, and back: regions, pieces, and the curves of the inconsistency.

What comes from a file is checked before it is used, because compiled loops trust their indices. The polygon of a piece
that is its whole region is stored once.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..attention.distances import Distance
from ..attention.inconsistency import Inconsistency
from ..errors import StoreError
from ..problem import Problem
from ..properties.classification import Pieces
from ..regions.region import Cut, Polygons, RegionSet

SHAPES: dict[str, tuple[type, tuple[int | str, ...]]] = {
    "region_points": (np.float64, ("vertices", 2)),
    "region_starts": (np.int64, ("regions+1",)),
    "region_edges": (np.int64, ("vertices",)),
    "cuts": (np.int32, ("cuts", 3)),
    "cell": (np.int64, ("regions",)),
    "pattern": (np.int64, ("regions",)),
    "patterns": (np.uint8, ("patterns", "pattern bytes")),
    "clip": (np.int64, ("regions",)),
    "clips": (np.uint8, ("clips", "clip bytes")),
    "logits": (np.float64, ("regions", 3, "classes")),
    "doubtful": (np.uint8, ("regions",)),
    "peaks": (np.float64, ("neurons",)),
    "missed": (np.float64, ("neurons",)),
    "piece_region": (np.int64, ("pieces",)),
    "piece_is_whole": (np.uint8, ("pieces",)),
    "winner": (np.int64, ("pieces",)),
    "margin": (np.float64, ("pieces", 2)),
    "slack": (np.float64, ("pieces",)),
    "part_points": (np.float64, ("part vertices", 2)),
    "part_starts": (np.int64, ("parts+1",)),
    "part_edges": (np.int64, ("part vertices",)),
    "argmax_cuts": (np.int32, ("argmax cuts", 3)),
    "curve": (np.int64, ("regions",)),
    "curve_cell": (np.int64, ("curves",)),
    "curve_pattern": (np.int64, ("curves",)),
    "constant": (np.float64, ("constants",)),
    "quadratic": (np.float64, ("quadratics", "compared classes", 3)),
    "start": (np.float64, ("broken lines", 3)),
    "breaks": (np.int64, ("broken lines+1",)),
    "places": (np.float64, ("breakpoints",)),
    "jumps": (np.float64, ("breakpoints",)),
}
"""Type in memory and shape of every array; a word is a size, and the same word is the same size everywhere."""

BORDER = 1e-9
"""How far outside of the unit square a rounded vertex may lie."""


def pack(regions: RegionSet, pieces: Pieces, curves: Inconsistency) -> dict[str, np.ndarray]:
    """Named arrays from which `unpack_map` rebuilds the map exactly, together with the regions' few single numbers."""
    is_whole = _find_whole(regions, pieces)
    parts = pieces.polytopes.take(np.flatnonzero(~is_whole))
    found = {
        "region_points": regions.polytopes.points,
        "region_starts": regions.polytopes.starts,
        "region_edges": regions.polytopes.edges,
        "piece_region": pieces.region,
        "piece_is_whole": is_whole.astype(np.uint8),
        "part_points": parts.points,
        "part_starts": parts.starts,
        "part_edges": parts.edges,
        "argmax_cuts": pieces.cuts[len(regions.cuts) :],
    }
    for name in SHAPES:
        for source in (regions, pieces, curves):
            if name not in found and hasattr(source, name):
                found[name] = getattr(source, name)
    return {name: found[name] for name in SHAPES}


def unpack_map(
    arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any], problem: Problem
) -> tuple[RegionSet, Pieces, Inconsistency]:
    """The map of a problem from named arrays; `numbers` are the regions' pixels_missed, sliver_area and stopped.

    Raises StoreError where shapes or indices do not fit each other or the problem.
    """
    hidden = problem.compound.hidden
    sizes = {
        "classes": problem.model.classes,
        "compared classes": len(problem.attention.chosen(problem.model.classes)),
        "neurons": sum(hidden),
        "pattern bytes": sum(-(-neurons // 8) for neurons in hidden),
    }
    checked = {name: _shaped(name, arrays[name], sizes) for name in SHAPES}
    _check_indices(checked, sizes, problem)
    polygons = Polygons(checked["region_points"], checked["region_starts"], checked["region_edges"])
    parts = Polygons(checked["part_points"], checked["part_starts"], checked["part_edges"])
    regions = RegionSet(
        polytopes=polygons,
        **{
            name: checked[name]
            for name in (
                "cuts",
                "cell",
                "pattern",
                "patterns",
                "clip",
                "clips",
                "logits",
                "doubtful",
                "peaks",
                "missed",
            )
        },
        pixels_missed=float(numbers["pixels_missed"]),
        sliver_area=float(numbers["sliver_area"]),
        stopped=None if numbers["stopped"] is None else str(numbers["stopped"]),
    )
    pieces = Pieces(
        polytopes=_join(polygons, parts, checked["piece_region"], checked["piece_is_whole"].astype(bool)),
        region=checked["piece_region"],
        winner=checked["winner"],
        cuts=np.concatenate([checked["cuts"], checked["argmax_cuts"]]),
        label=problem.label,
        margin=checked["margin"],
        slack=checked["slack"],
    )
    curves = Inconsistency(
        terms=problem.perturbed.x0.size,
        **{
            name: checked[name]
            for name in (
                "curve", "curve_cell", "curve_pattern", "constant", "quadratic", "start", "breaks", "places", "jumps",
            )
        }
    )  # fmt: skip
    return regions, pieces, curves


def _find_whole(regions: RegionSet, pieces: Pieces) -> np.ndarray:
    """Which pieces (P,) have exactly the polygon of their region; all or none of the unsplit ones."""
    is_whole = np.bincount(pieces.region, minlength=len(regions))[pieces.region] == 1
    ours = pieces.polytopes.take(np.flatnonzero(is_whole))
    theirs = regions.polytopes.take(pieces.region[is_whole])
    is_same = all(np.array_equal(getattr(ours, name), getattr(theirs, name)) for name in ("points", "starts", "edges"))
    return is_whole if is_same else np.zeros(len(pieces), dtype=bool)


def _join(whole: Polygons, parts: Polygons, region: np.ndarray, is_whole: np.ndarray) -> Polygons:
    """The polygons of all pieces: those of their regions, or the next of the parts."""
    both = Polygons(
        np.concatenate([whole.points, parts.points]),
        np.concatenate([whole.starts, whole.starts[-1] + parts.starts[1:]]),
        np.concatenate([whole.edges, parts.edges]),
    )
    return both.take(np.where(is_whole, region, len(whole) + np.cumsum(~is_whole) - 1))


def _shaped(name: str, array: np.ndarray, sizes: dict[str, int]) -> np.ndarray:
    """The array in its type in memory, if its shape fits the sizes known so far; learns the new ones."""
    kind, template = SHAPES[name]
    is_whole_number = np.issubdtype(kind, np.integer)
    _require(np.issubdtype(array.dtype, np.integer) == is_whole_number, name, f"is of type {array.dtype}")
    _require(array.ndim == len(template), name, f"has shape {array.shape}")
    # Rows that do not exist have no width: a run that was stopped at once has no patterns to tell it.
    for size, wanted in zip(array.shape, template if len(array) else template[:1], strict=False):
        if isinstance(wanted, int):
            _require(size == wanted, name, f"has shape {array.shape}")
            continue
        word, plus, _ = wanted.partition("+")
        found = size - 1 if plus else size
        _require(found >= 0 and sizes.setdefault(word, found) == found, name, f"has {size} entries for {wanted}")
    if not is_whole_number:
        _require(bool(np.isfinite(array).all()), name, "holds NaN or infinity")
    return array.astype(kind, copy=False)


def _check_indices(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int], problem: Problem) -> None:
    cells, all_cuts = len(problem.perturbed.cells), sizes["cuts"] + sizes["argmax cuts"]
    for kind, vertices, cuts in (("region", "vertices", sizes["cuts"]), ("part", "part vertices", all_cuts)):
        starts, edges = arrays[f"{kind}_starts"], np.abs(arrays[f"{kind}_edges"])
        _require(starts[0] == 0 and starts[-1] == sizes[vertices], f"{kind}_starts", "does not count the vertices")
        _require(bool((np.diff(starts) >= 3).all()), f"{kind}_starts", "has a polygon with fewer than 3 vertices")
        _check_range(f"{kind}_edges", edges, 1, cuts + 1)
        _check_range(f"{kind}_points", arrays[f"{kind}_points"], -BORDER, 1.0 + 2.0 * BORDER)
    for name, count in (
        ("cell", cells), ("pattern", sizes["patterns"]), ("clip", sizes["clips"]),
        ("piece_region", sizes["regions"]), ("piece_is_whole", 2), ("winner", sizes["classes"]),
        ("curve", sizes["curves"]), ("curve_cell", cells), ("curve_pattern", sizes["patterns"]),
    ):  # fmt: skip
        _check_range(name, arrays[name], 0, count)
    _check_range("cuts", arrays["cuts"][:, 0], 0, len(Cut))
    _check_range("argmax_cuts", arrays["argmax_cuts"][:, 0], Cut.ARGMAX, Cut.ARGMAX + 1)
    parts = sizes["pieces"] - int(arrays["piece_is_whole"].sum())
    _require(parts == sizes["parts"], "part_starts", f"has {sizes['parts']} polygons for {parts} parts")
    moves, is_line = problem.perturbed.moving_axis is not None, problem.attention.distance is Distance.L1
    filled = "broken lines" if moves and is_line else "quadratics" if moves else "constants"
    for word in ("constants", "quadratics", "broken lines"):
        _require(sizes[word] == (sizes["curves"] if word == filled else 0), "curve_cell", f"does not fit the {word}")
    breaks = arrays["breaks"]
    _require(breaks[0] == 0 and breaks[-1] == sizes["breakpoints"], "breaks", "does not count the breakpoints")
    _require(bool((np.diff(breaks) >= 0).all()), "breaks", "is not ascending")


def _check_range(name: str, array: np.ndarray, low: float, end: float) -> None:
    if array.size:
        _require(low <= array.min() and array.max() < end, name, f"has values outside of {low:g} to {end:g}")


def _require(is_right: bool | np.bool_, name: str, what: str) -> None:
    if not is_right:
        raise StoreError(f"the array {name} {what}; the result is damaged: run the verification again")
