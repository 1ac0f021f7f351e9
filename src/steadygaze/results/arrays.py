"""The map of a result as named arrays, and back: regions, pieces, curves of the inconsistency.

Reading checks every array before use, because compiled loops trust their indices.
A piece that is a whole region shares its shape. Polyhedra and polygons have different arrays (see `array_shapes`).
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..accuracy import Accuracy
from ..attention.distances import Distance
from ..attention.enclosed import NumberShape
from ..attention.factored import number_count
from ..attention.inconsistency import Inconsistency, SharedArray, cell_facts
from ..attention.map_errors import MapErrors
from ..attention.measures.distance import DISTANCE
from ..errors import StoreError
from ..labels import Stop
from ..polytopes import Cut, Polytopes, join_polytopes, kind_of
from ..properties.classification import Pieces
from ..question import Question
from ..regions.patterns import PatternTable
from ..regions.region import RegionSet
from .answer import Answers
from .array_file import read_arrays

SCHEMA_VERSION = 3
"""Grows with every incompatible change."""

READ_VERSIONS = (2, 3)

OLDER = (
    "stored by an earlier version (schema 2), whose error bounds could miss violations on networks made for that, and "
    "which assumed kinks to be 1e-10 wide; verify again for a current proof"
)
"""The note on an older result."""


Shapes = dict[str, tuple[type, tuple[int | str, ...]]]

SHAPES: Shapes = {
    "region_points": (np.float64, ("vertices", 2)),
    "region_starts": (np.int64, ("regions+1",)),
    "region_edges": (np.int64, ("vertices",)),
    "cuts": (np.int32, ("cuts", 3)),
    "cell": (np.int64, ("regions",)),
    "pattern": (np.int64, ("regions",)),
    "pattern_keys": (np.uint8, ("pattern keys", "pattern bytes")),
    "pattern_key_row": (np.int64, ("pattern keys",)),
    "pattern_starts": (np.int64, ("patterns+1",)),
    "pattern_places": (np.int32, ("pattern changes",)),
    "pattern_bytes": (np.uint8, ("pattern changes",)),
    "clip": (np.int64, ("regions",)),
    "clips": (np.uint8, ("clips", "clip bytes")),
    "logits": (np.float64, ("regions", 3, "classes")),
    "doubtful": (np.uint8, ("regions",)),
    "peaks": (np.float64, ("neurons",)),
    "missed": (np.float64, ("neurons",)),
    "beside": (np.float64, (2, "neurons")),
    "pixels_beside": (np.float64, (2,)),
    "drift": (np.float64, (2, "affine maps")),
    "piece_region": (np.int64, ("pieces",)),
    "piece_is_whole": (np.uint8, ("pieces",)),
    "winner": (np.int64, ("pieces",)),
    "margin": (np.float64, ("pieces", 2)),
    "slack": (np.float64, ("pieces",)),
    "most_strip": (np.float64, ("pieces",)),
    "witnesses": (np.float64, ("witnesses", "parameters")),
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
"""Type in memory and shape of every array of a map of polygons; a word is a size, the same in all arrays."""

SOLID_SHAPES: Shapes = {
    "region_points": (np.float64, ("vertices", 3)),
    "region_facets": (np.int64, ("facets",)),
    "region_facet_starts": (np.int64, ("regions+1",)),
    "region_incidence": (np.int64, ("vertices", "words")),
    "logits": (np.float64, ("regions", 4, "classes")),
    "part_points": (np.float64, ("part vertices", 3)),
    "part_facets": (np.int64, ("part facets",)),
    "part_facet_starts": (np.int64, ("parts+1",)),
    "part_incidence": (np.int64, ("part vertices", "part words")),
}
"""The arrays that a map of polyhedra has in place of these; it has no edges. Incidence is stored as signed numbers."""

NEW_ARRAYS = ("beside", "pixels_beside", "drift", "most_strip", "witnesses")
"""The arrays that schema version 2 lacks."""

BORDER = 1e-9
"""How far outside the unit square or cube a rounded vertex may lie."""

REGION_ARRAYS = ("cuts", "cell", "pattern", "clip", "clips", "logits", "doubtful")
ACCURACY_ARRAYS = ("peaks", "missed", "beside", "pixels_beside", "drift")
PATTERN_ARRAYS = ("keys", "key_row", "starts", "places", "bytes")
PART_ARRAYS: Shapes = {"cut_id": (np.int64, ("cuts",))}
"""The arrays that a chunk of a map has in addition; the map holds its accuracy."""

SUMS: Shapes = {"sums": (np.float64, ("curves", "numbers"))}
"""The numbers of a property of attention other than the distance."""

CURVE_ARRAYS = (
    "curve", "curve_cell", "curve_pattern", "constant", "quadratic", "start", "breaks", "places", "jumps",
)  # fmt: skip


def array_shapes(
    coordinates: int,
    *,
    is_measured: bool = True,
    version: int = SCHEMA_VERSION,
    is_part: bool = False,
    has_sums: bool = False,
) -> Shapes:
    """The arrays of a map with so many coordinates (2 or 3), in the order in which they are stored.

    If attention was not measured, there are no curves. has_sums: see `AttentionOptions`. `version` is that of the
    result's schema. is_part: of a chunk of a map.
    """
    shapes = SHAPES
    if is_part:
        shapes = {name: shape for name, shape in SHAPES.items() if name not in ACCURACY_ARRAYS} | PART_ARRAYS
    if is_measured and has_sums:
        shapes = shapes | SUMS
    if coordinates > 2:
        shapes = {name: shape for name, shape in shapes.items() if not name.endswith("_edges")} | SOLID_SHAPES
    left_out = (() if is_measured else CURVE_ARRAYS) + (NEW_ARRAYS if version < SCHEMA_VERSION else ())
    return {name: shape for name, shape in shapes.items() if name not in left_out}


def pack(
    regions: RegionSet, pieces: Pieces, curves: Inconsistency | None, cut_id: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Named arrays from which `unpack_map` rebuilds the map exactly, together with a few single numbers.

    cut_id (E,): the ids of the cuts of a chunk; None for a whole map.
    """
    is_whole = _find_whole(regions, pieces)
    parts = pieces.polytopes.take(np.flatnonzero(~is_whole))
    found = {f"region_{name}": array for name, array in regions.polytopes.arrays().items()}
    found |= {f"part_{name}": array for name, array in parts.arrays().items()}
    found |= {f"pattern_{name}": getattr(regions.patterns, name) for name in PATTERN_ARRAYS}
    found |= {
        "piece_region": pieces.region,
        "piece_is_whole": is_whole.astype(np.uint8),
        "argmax_cuts": pieces.cuts[len(regions.cuts) :],
    }
    if cut_id is not None:
        found["cut_id"] = cut_id
    shapes = array_shapes(
        regions.polytopes.dimension, is_measured=curves is not None, is_part=cut_id is not None,
        has_sums=curves is not None and (curves.has_shapes or curves.measure != DISTANCE),
    )  # fmt: skip
    for name in shapes:
        for source in (regions, regions.accuracy, pieces, curves):
            if name not in found and hasattr(source, name):
                found[name] = getattr(source, name)
    return {name: found[name] for name in shapes}


def unpack_map(
    arrays: Mapping[str, np.ndarray],
    numbers: Mapping[str, Any],
    question: Question,
    *,
    is_measured: bool = True,
    accuracy: Accuracy | None = None,
) -> tuple[RegionSet, Pieces, Inconsistency | None]:
    """The map of a problem from named arrays; `numbers` are the single numbers stored for its regions.

    The curves are None if attention was not measured. `accuracy`: the accuracy of the whole map, if the arrays belong
    to a chunk. Raises StoreError if shapes or indices do not fit each other or the problem.
    """
    if "depth" not in numbers:
        arrays, numbers = _completed(arrays, question), {"depth": 0, "skipped": 0, "gap": 0.0, "holes": 0.0, **numbers}
    hidden = question.compound.hidden
    sizes = {
        "classes": question.model.classes,
        "compared classes": len(question.attention.chosen(question.model.classes)),
        "neurons": sum(hidden),
        "affine maps": len(hidden) + 1,
        "parameters": question.compound.domain.dimension,
        "pattern bytes": sum(-(-neurons // 8) for neurons in hidden),
    }
    attention = question.attention
    shapes = array_shapes(
        question.compound.coordinates, is_measured=is_measured, is_part=accuracy is not None,
        has_sums=question.has_sums,
    )  # fmt: skip
    checked = {name: shaped(name, arrays[name], shapes[name], sizes) for name in shapes}
    _check_indices(checked, sizes, question)
    if is_measured:
        _check_curves(checked, sizes, question)
    whole, parts = (_polytopes(checked, kind) for kind in ("region", "part"))
    regions = RegionSet(
        polytopes=whole,
        patterns=PatternTable(**{name: checked[f"pattern_{name}"] for name in PATTERN_ARRAYS}),
        **{name: checked[name] for name in REGION_ARRAYS},
        accuracy=accuracy or read_accuracy(checked, numbers),
        stopped=None if numbers["stopped"] is None else Stop(numbers["stopped"]),
    )
    pieces = Pieces(
        polytopes=_join(whole, parts, checked["piece_region"], checked["piece_is_whole"].astype(bool)),
        region=checked["piece_region"],
        winner=checked["winner"],
        cuts=np.concatenate([checked["cuts"], checked["argmax_cuts"]]),
        label=question.label,
        margin=checked["margin"],
        slack=checked["slack"],
        most_strip=checked["most_strip"],
        witnesses=checked["witnesses"],
    )
    if not is_measured:
        return regions, pieces, None
    found: dict[str, Any] = {name: checked[name] for name in CURVE_ARRAYS}
    curves = Inconsistency(terms=question.perturbed.x0.size, **found)
    if question.has_sums:
        terms = curves.terms * sizes["compared classes"]
        curves = replace(curves, terms=terms, sums=checked["sums"], measure=attention.measure)
        if question.encloses_borders:
            layout = NumberShape.of(question.compound, attention)
            return regions, pieces, replace(curves, layout=layout)
        if attention.method.factor_baseline is not None:
            return regions, pieces, replace(curves, is_factored=True)
        facts = cell_facts(question.compound, attention, SharedArray(question.original))
        curves = replace(curves, facts=facts)
    return regions, pieces, curves


def read_accuracy(arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any]) -> Accuracy:
    """The measures of a map from its checked arrays and single numbers."""
    return Accuracy(
        **{name: arrays[name] for name in ACCURACY_ARRAYS},
        pixels_missed=float(numbers["pixels_missed"]),
        depth=int(numbers["depth"]),
        slivers=float(numbers["sliver_area"]),
        skipped=int(numbers["skipped"]),
        gap=float(numbers["gap"]),
        holes=float(numbers["holes"]),
    )


def unpack_answers(
    arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any], question: Question, *, is_measured: bool = True
) -> Answers:
    """The regions in arrays with all stored facts; raises StoreError if they do not fit."""
    regions, pieces, curves = unpack_map(arrays, numbers, question, is_measured=is_measured)
    compound, errors = question.compound, None
    if curves is not None:
        errors = MapErrors(compound, regions.patterns, curves, question.attention, question.original_doubt)
    return Answers(compound, regions, pieces, curves, errors, question.map_size)


def read_answers(path: Path, numbers: Mapping[str, Any], question: Question, *, version: int) -> Answers:
    """The regions in a file; raises StoreError with its name."""
    is_measured, has_sums = question.measures_regions, question.has_sums
    shapes = array_shapes(question.compound.coordinates, is_measured=is_measured, version=version, has_sums=has_sums)
    arrays = read_arrays(path, list(shapes))
    try:
        return unpack_answers(arrays, numbers, question, is_measured=is_measured)
    except StoreError as error:
        raise StoreError(f"{path}: {error}") from None


def _completed(arrays: Mapping[str, np.ndarray], question: Question) -> dict[str, np.ndarray]:
    """The arrays of schema version 2, completed so that its claims stay the same."""
    neurons, maps = sum(question.compound.hidden), len(question.compound.hidden) + 1
    return {
        **arrays,
        "beside": np.zeros((2, neurons)),
        "pixels_beside": np.zeros(2),
        "drift": np.zeros((2, maps)),
        "most_strip": np.ones(len(arrays["piece_region"])),
        "witnesses": np.zeros((0, question.compound.domain.dimension)),
    }


def _polytopes(arrays: Mapping[str, np.ndarray], kind: str) -> Polytopes:
    """The regions, or the parts of regions, from checked arrays."""
    own = {name.removeprefix(f"{kind}_"): array for name, array in arrays.items()}
    return kind_of(own["points"].shape[1]).of_arrays(own)


def _find_whole(regions: RegionSet, pieces: Pieces) -> np.ndarray:
    """Which pieces (P,) have exactly the shape of their region; all or none of the unsplit ones."""
    is_whole = np.bincount(pieces.region, minlength=len(regions))[pieces.region] == 1
    ours = pieces.polytopes.take(np.flatnonzero(is_whole)).arrays()
    theirs = regions.polytopes.take(pieces.region[is_whole]).arrays()
    is_same = all(np.array_equal(ours[name], theirs[name]) for name in ours)
    return is_whole if is_same else np.zeros(len(pieces), dtype=bool)


def _join(whole: Polytopes, parts: Polytopes, region: np.ndarray, is_whole: np.ndarray) -> Polytopes:
    """The shapes of all pieces: those of their regions, or the next of the parts."""
    if len(region) == len(whole) and is_whole.all() and np.array_equal(region, np.arange(len(whole))):
        return whole
    order = np.where(is_whole, region, len(whole) + np.cumsum(~is_whole) - 1)
    return join_polytopes([whole, parts]).take(order)


def shaped(
    name: str,
    array: np.ndarray,
    shape: tuple[type, tuple[int | str, ...]],
    sizes: dict[str, int],
    *,
    may_be_infinite: bool = False,
) -> np.ndarray:
    """The array in its type in memory, if its shape fits the known sizes; adds new sizes."""
    kind, template = shape
    is_whole_number = np.issubdtype(kind, np.integer)
    is_right = np.issubdtype(array.dtype, np.integer) if is_whole_number else array.dtype == kind
    require(is_right, name, f"is of type {array.dtype}")
    require(array.ndim == len(template), name, f"has shape {array.shape}")
    # Without rows the width is unknown: a run that was stopped at once has no patterns.
    for size, wanted in zip(array.shape, template if len(array) else template[:1], strict=False):
        if isinstance(wanted, int):
            require(size == wanted, name, f"has shape {array.shape}")
            continue
        word, plus, _ = wanted.partition("+")
        found = size - 1 if plus else size
        require(found >= 0 and sizes.setdefault(word, found) == found, name, f"has {size} entries for {wanted}")
    if not is_whole_number:
        # A finite sum has finite terms; it takes half the time.
        with np.errstate(over="ignore", invalid="ignore"):
            is_sound = math.isfinite(float(array.sum()))
        if not is_sound:
            is_sound = bool((~np.isnan(array) if may_be_infinite else np.isfinite(array)).all())
        require(is_sound, name, "holds NaN or infinity")
    return array.astype(kind, copy=False)


def _check_indices(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int], question: Question) -> None:
    cells, all_cuts = len(question.perturbed.cells), sizes["cuts"] + sizes["argmax cuts"]
    for kind, prefix, cuts in (("region", "", sizes["cuts"]), ("part", "part ", all_cuts)):
        if f"{kind}_edges" in arrays:
            _check_starts(f"{kind}_starts", arrays, sizes[f"{prefix}vertices"], 3)
            check_range(f"{kind}_edges", np.abs(arrays[f"{kind}_edges"]), 1, cuts + 1)
        else:
            _check_starts(f"{kind}_starts", arrays, sizes[f"{prefix}vertices"], 4)
            _check_starts(f"{kind}_facet_starts", arrays, sizes[f"{prefix}facets"], 4)
            check_range(f"{kind}_facets", np.abs(arrays[f"{kind}_facets"]), 1, cuts + 1)
            _check_incidence(kind, arrays)
        check_range(f"{kind}_points", arrays[f"{kind}_points"], -BORDER, 1.0 + 2.0 * BORDER)
    for name, count in (
        ("cell", cells), ("pattern", sizes["patterns"]), ("clip", sizes["clips"]),
        ("piece_region", sizes["regions"]), ("piece_is_whole", 2), ("winner", sizes["classes"]),
    ):  # fmt: skip
        check_range(name, arrays[name], 0, count)
    _check_patterns(arrays, sizes)
    check_range("cuts", arrays["cuts"][:, 0], 0, len(Cut))
    check_range("argmax_cuts", arrays["argmax_cuts"][:, 0], Cut.ARGMAX, Cut.ARGMAX + 1)
    parts = sizes["pieces"] - int(arrays["piece_is_whole"].sum())
    require(parts == sizes["parts"], "part_starts", f"has {sizes['parts']} polygons for {parts} parts")


def _check_patterns(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> None:
    """The first pattern and one in several must be whole, differences must lie within a pattern."""
    key_row, starts = arrays["pattern_key_row"], arrays["pattern_starts"]
    is_empty = not sizes["patterns"] and not len(key_row)
    require(is_empty or (len(key_row) > 0 and key_row[0] == 0), "pattern_key_row", "does not begin with 0")
    require(bool((np.diff(key_row) > 0).all()), "pattern_key_row", "is not ascending")
    check_range("pattern_key_row", key_row, 0, sizes["patterns"])
    require(starts[0] == 0 and starts[-1] == sizes["pattern changes"], "pattern_starts", "does not count its rows")
    require(bool((np.diff(starts) >= 0).all()), "pattern_starts", "is not ascending")
    check_range("pattern_places", arrays["pattern_places"], 0, sizes["pattern bytes"])


def _check_curves(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int], question: Question) -> None:
    cells = len(question.perturbed.cells)
    for name, count in (("curve", sizes["curves"]), ("curve_cell", cells), ("curve_pattern", sizes["patterns"])):
        check_range(name, arrays[name], 0, count)
    moves, is_line = question.perturbed.moving_axis is not None, question.attention.distance is Distance.L1
    filled = "broken lines" if moves and is_line else "quadratics" if moves else "constants"
    if question.has_sums:
        filled = "sums"
        numbers = question.attention.measure.count(question.perturbed.x0.shape, moves=moves)
        if question.encloses_borders:
            numbers = NumberShape.of(question.compound, question.attention).numbers
        elif question.attention.method.factor_baseline is not None:
            numbers = number_count(question.compound.coordinates)
        is_right = sizes["curves"] == 0 or sizes["numbers"] == numbers
        require(is_right, "sums", f"has {sizes.get('numbers')} numbers for each curve instead of {numbers}")
    for word in ("constants", "quadratics", "broken lines"):
        require(sizes[word] == (sizes["curves"] if word == filled else 0), "curve_cell", f"does not fit the {word}")
    breaks = arrays["breaks"]
    require(breaks[0] == 0 and breaks[-1] == sizes["breakpoints"], "breaks", "does not count the breakpoints")
    require(bool((np.diff(breaks) >= 0).all()), "breaks", "is not ascending")


def _check_starts(name: str, arrays: Mapping[str, np.ndarray], total: int, least: int) -> None:
    starts = arrays[name]
    require(starts[0] == 0 and starts[-1] == total, name, "does not count its rows")
    require(bool((np.diff(starts) >= least).all()), name, f"has a shape with fewer than {least} rows")


def _check_incidence(kind: str, arrays: Mapping[str, np.ndarray]) -> None:
    """No vertex may lie on a facet that its polyhedron does not have."""
    name = f"{kind}_incidence"
    incidence = np.ascontiguousarray(arrays[name]).view(np.uint64)
    facets = np.repeat(np.diff(arrays[f"{kind}_facet_starts"]), np.diff(arrays[f"{kind}_starts"]))
    require(incidence.shape[1] >= 1 and facets.max(initial=0) <= 64 * incidence.shape[1], name, "has too few words")
    for word in range(incidence.shape[1]):
        bits = np.clip(facets - 64 * word, 0, 64).astype(np.uint64)
        # A shift by 64 bits is undefined: two shifts by half do it.
        beyond = (incidence[:, word] >> (bits // np.uint64(2))) >> (bits - bits // np.uint64(2))
        require(not beyond.any(), name, "names facets that do not exist")
    if not len(incidence):
        return
    bits = np.unpackbits(incidence.view(np.uint8).reshape(len(incidence), -1), axis=1, bitorder="little")
    counts = np.add.reduceat(bits, arrays[f"{kind}_starts"][:-1], axis=0, dtype=np.int32)
    is_facet = np.arange(bits.shape[1]) < np.diff(arrays[f"{kind}_facet_starts"])[:, None]
    require(bool((counts[is_facet] >= 3).all()), name, "has a facet with fewer than 3 vertices")


def check_range(name: str, array: np.ndarray, low: float, end: float) -> None:
    """Raise StoreError if an array has values outside low ≤ value < end."""
    if array.size:
        require(low <= array.min() and array.max() < end, name, f"has values outside {low:g} to {end:g}")


def require(is_right: bool | np.bool_, name: str, what: str) -> None:
    """Raise StoreError unless a condition on an array holds."""
    if not is_right:
        raise StoreError(f"the array {name} {what}; the result is damaged: run the verification again")
