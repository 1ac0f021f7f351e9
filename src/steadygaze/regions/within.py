"""The regions of a compound network inside given boxes, and sets of regions joined into one.

Boxes are polytopes whose sides are known cuts, so the walks of the subdivision start from them as they do from a knot
cell. What is known of a box, and which boxes are worth it, is decided elsewhere.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..accuracy import Accuracy
from ..budget import Budget, give_back_memory
from ..compound import Compound
from ..errors import InternalError
from ..tolerances import AREA, UNIT
from .assemble import Block, CutRows, assemble
from .patterns import PatternTable, distinct_rows, join_tables
from .polyhedra import Polyhedra, joined
from .region import Cut, Polygons, Polytopes, RegionSet, box_polytopes
from .subdivide import Progress, Watch, walk_cell

_JOINED = ("polytopes", "cell", "pattern", "patterns", "clip", "clips", "doubtful")
"""What is joined row by row, beside the logits."""


FREED_BYTES = 2**26
"""After so much was let go it is returned to the system, which the C library does not do by itself."""


class Within(NamedTuple):
    """Regions inside boxes: box (R,) is the place of the box of each region; complete (B,) says which boxes have all
    of their regions. The others have none."""

    regions: RegionSet
    box: np.ndarray
    complete: np.ndarray


def subdivide_boxes(
    compound: Compound,
    cell: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    sides: np.ndarray,
    cuts: np.ndarray,
    *,
    budget: Budget | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> Within:
    """The regions inside boxes from low (B, D) to high (B, D), each in its knot cell (B,), for D = 2 or 3.

    sides (B, D, 2) are the signed cuts of the boxes' sides in the table `cuts` (E, 3); cuts of neurons are numbered
    after it. Exact up to the tolerances; the regions of every complete box tile it. The order of the boxes and of the
    regions does not depend on the number of threads: knot cell by knot cell, and within one along a curve on which
    boxes that follow each other are close.
    """
    cells = list(compound.programs)
    watch = Watch(budget or Budget(), progress)
    table = CutRows(cuts)
    polytopes = box_polytopes(low, high, sides)
    order = np.lexsort((_along_curve(low, high), cell))
    parts: list[tuple[int, Block]] = []
    for number in np.unique(cell):
        chosen = order[cell[order] == number]
        blocks = walk_cell(cells[number], polytopes.take(chosen), chosen, table, watch, threads=threads)
        parts += [(int(number), block) for block in blocks]
    complete = np.ones(len(cell), dtype=bool)
    complete[np.concatenate([np.zeros(0, dtype=np.int64), *(block.unfinished for _, block in parts)])] = False
    regions = assemble(cells, parts, table.cuts(), watch.stopped)
    box = np.concatenate([np.zeros(0, dtype=np.int64), *(part for _, block in parts for part in block.origins)])
    if not complete.all():
        kept = np.flatnonzero(complete[box])
        regions, box = take_regions(regions, kept), box[kept]
    _check_tiling(regions.polytopes.volumes, box, complete, low, high)
    return Within(regions, box, complete)


def join_region_sets(parts: list[RegionSet], *, cuts: np.ndarray | None = None) -> RegionSet:
    """Several sets of regions with disjoint interiors (at least one) as one set, in that order; empties the list.

    The rows of each table of cuts before its first neuron are shared: the longest such beginning (or `cuts`, which must
    go on as they do) stays as it is, and the cuts of the neurons follow it, renumbered. Every array of the parts is let
    go once it is joined, so that not all of them are held twice.
    """
    table, shifts = _joined_cuts(parts, cuts)
    numbers: dict[str, Any] = {
        "accuracy": Accuracy.joined([part.accuracy for part in parts]),
        "stopped": next((part.stopped for part in parts if part.stopped is not None), None),
    }
    columns = {name: [getattr(part, name) for part in parts] for name in _JOINED}
    columns["logits"] = [part.logits for part in parts if len(part)] or [parts[0].logits]
    parts.clear()
    pattern, patterns = _joined_patterns(columns.pop("pattern"), columns.pop("patterns"))
    clip, clips = _joined_tables(columns.pop("clip"), columns.pop("clips"))
    polytopes = _joined_polytopes(columns.pop("polytopes"), shifts)
    rows: dict[str, Any] = {name: join_rows(columns.pop(name)) for name in list(columns)}
    return RegionSet(
        polytopes=polytopes, cuts=table, pattern=pattern, patterns=patterns, clip=clip, clips=clips, **rows, **numbers
    )


def join_rows(parts: list[np.ndarray]) -> np.ndarray:
    """Arrays (at least one) one after another; empties the list as it goes, so that little is held twice.

    >>> join_rows([np.zeros((2, 3)), np.ones((1, 3))]).shape
    (3, 3)
    """
    whole = np.empty((sum(map(len, parts)), *parts[0].shape[1:]), dtype=np.result_type(*{part.dtype for part in parts}))
    start = freed = 0
    parts.reverse()
    while parts:
        part = parts.pop()
        whole[start : start + len(part)] = part
        start, freed = start + len(part), freed + part.nbytes
        del part
        if freed > FREED_BYTES:
            give_back_memory()
            freed = 0
    return whole


def take_regions(regions: RegionSet, chosen: np.ndarray) -> RegionSet:
    """The chosen regions (an index array) in that order; tables of cuts and patterns stay whole."""
    return RegionSet(
        polytopes=regions.polytopes.take(chosen),
        cuts=regions.cuts,
        cell=regions.cell[chosen],
        pattern=regions.pattern[chosen],
        patterns=regions.patterns,
        clip=regions.clip[chosen],
        clips=regions.clips,
        logits=regions.logits[chosen],
        doubtful=regions.doubtful[chosen],
        accuracy=regions.accuracy,
        stopped=regions.stopped,
    )


def _along_curve(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """A number (B,) by which boxes are ordered: the bits of the coordinates of their middles, taken in turn."""
    count, dimension = low.shape
    bits = 60 // dimension
    middle = np.clip(0.5 * (low + high), 0.0, 1.0 - 2.0**-40)
    places = np.floor(middle * 2.0**bits).astype(np.int64)
    key = np.zeros(count, dtype=np.int64)
    for bit in range(bits - 1, -1, -1):
        for axis in range(dimension):
            key = (key << 1) | ((places[:, axis] >> bit) & 1)
    return key


def _check_tiling(
    volumes: np.ndarray, box: np.ndarray, complete: np.ndarray, low: np.ndarray, high: np.ndarray
) -> None:
    """Raise InternalError unless the regions of every complete box add up to it.

    The slack beside AREA is for boxes that are small in the unit square: a side of a region is off by a few roundings
    of a coordinate, and as long (in three dimensions: as large) as the box's sides together at most.
    """
    wanted = np.prod(high - low, axis=1)
    total = np.bincount(box, volumes, len(low))
    count = np.bincount(box, minlength=len(low))
    surface = 2.0 * (wanted[:, None] / (high - low)).sum(axis=1)
    off = np.abs(total - wanted) - AREA * wanted - 64 * UNIT * (1 + count) * surface
    bad = complete & ~(off <= 0.0)
    if bad.any():
        worst = int(np.argmax(bad))
        raise InternalError(
            f"the regions of box {worst} add up to {total[worst]!r} instead of {wanted[worst]!r}: please report this "
            "model and image"
        )


def _shared_rows(cuts: np.ndarray) -> int:
    """The number of rows of a table of cuts before the first neuron."""
    is_neuron = cuts[:, 0] == Cut.NEURON
    return int(np.argmax(is_neuron)) if is_neuron.any() else len(cuts)


class _Shift(NamedTuple):
    """Numbers of cuts beyond `own` grow by `by`."""

    own: int
    by: int

    def of(self, signed: np.ndarray) -> np.ndarray:
        return np.where(np.abs(signed) > self.own, signed + self.by * np.sign(signed), signed)


def _joined_cuts(parts: Sequence[RegionSet], cuts: np.ndarray | None) -> tuple[np.ndarray, list[_Shift]]:
    """One table of cuts (E, 3), and how the numbers of each part's own cuts change."""
    sizes = [_shared_rows(part.cuts) for part in parts]
    longest = int(np.argmax(sizes))
    shared = parts[longest].cuts[: sizes[longest]] if cuts is None else cuts
    rows, size, shifts = [shared], len(shared), []
    for part, own in zip(parts, sizes, strict=True):
        if not np.array_equal(part.cuts[:own], shared[:own]):
            raise InternalError("sets of regions whose tables of cuts begin differently cannot be joined")
        shifts.append(_Shift(own, size - own))
        rows.append(part.cuts[own:])
        size += len(part.cuts) - own
    return np.concatenate(rows).astype(np.int32), shifts


def _joined_tables(ids: list[np.ndarray], tables: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Ids (R,) into one table of distinct rows, from ids and tables; tables without rows may have any width."""
    rows = np.concatenate([table for table in tables if len(table)] or [tables[0]])
    starts = np.cumsum([0] + [len(table) for table in tables])
    numbers, first = distinct_rows(rows)
    return numbers[np.concatenate([own + start for own, start in zip(ids, starts, strict=False)])], rows[first]


def _joined_patterns(ids: list[np.ndarray], tables: list[PatternTable]) -> tuple[np.ndarray, PatternTable]:
    """Ids (R,) into one table of patterns; wide ones are not compared with those of other parts, which may repeat."""
    if all(table.is_plain for table in tables):
        pattern, patterns = _joined_tables(ids, [table.keys for table in tables])
        return pattern, PatternTable.of(patterns)
    starts = np.cumsum([0] + [len(table) for table in tables])
    pattern = np.concatenate([own + start for own, start in zip(ids, starts, strict=False)])
    return pattern, join_tables(tables)


def _joined_polytopes(parts: list[Polytopes], shifts: list[_Shift]) -> Polytopes:
    """Polytopes one after the other, with new signed cuts for their edges or facets."""
    if isinstance(parts[0], Polyhedra):
        solids = [part for part in parts if isinstance(part, Polyhedra)]
        return joined(
            [
                Polyhedra(part.points, part.starts, shift.of(part.facets), part.facet_starts, part.incidence)
                for part, shift in zip(solids, shifts, strict=True)
            ]
        )
    polygons = [part for part in parts if isinstance(part, Polygons)]
    starts = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part.starts) for part in polygons]))])
    points = [part.points for part in polygons]
    edges = [shift.of(part.edges) for part, shift in zip(polygons, shifts, strict=True)]
    parts.clear()
    polygons.clear()
    return Polygons(join_rows(points), starts, join_rows(edges))
