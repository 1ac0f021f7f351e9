"""Joins what the walks deliver into one `RegionSet`: numbers the cuts, finds the distinct patterns."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..accuracy import Accuracy, WalkMeasures
from ..compound import CellProgram, Corners, Program
from ..labels import Stop
from .patterns import PatternTable, distinct_rows
from .polyhedra import Polyhedra, joined
from .region import Cut, Polygons, Polytopes, RegionSet, box_polytopes


@dataclass
class Block:
    """Regions of one walk; `cuts` are numbered from `base` + 1 on. `sides` are the signed cuts of edges or facets.

    `origins` says which of the polytopes that were walked each region is a part of, `unfinished` which of them were not
    walked to the end. `facet_counts` (facets of each polyhedron) and `incidence` are only filled in three dimensions.
    """

    base: int
    dimension: int = 2
    vertices: list[np.ndarray] = field(default_factory=list)
    points: list[np.ndarray] = field(default_factory=list)
    sides: list[np.ndarray] = field(default_factory=list)
    logits: list[np.ndarray] = field(default_factory=list)
    packed: list[np.ndarray] = field(default_factory=list)
    doubtful: list[np.ndarray] = field(default_factory=list)
    cuts: list[np.ndarray] = field(default_factory=list)
    origins: list[np.ndarray] = field(default_factory=list)
    unfinished: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    measured: WalkMeasures | None = None

    facet_counts: list[np.ndarray] = field(default_factory=list)
    incidence: list[np.ndarray] = field(default_factory=list)

    def polytopes(self) -> Polytopes:
        """All polygons or polyhedra of the block."""
        if self.dimension > 2:
            parts = zip(self.points, self.vertices, self.sides, self.facet_counts, self.incidence, strict=True)
            return joined([Polyhedra(p, _starts(v), s, _starts(c), incidence) for p, v, s, c, incidence in parts])
        starts = _starts(_joined(self.vertices, (0,), np.int64))
        return Polygons(_joined(self.points, (0, 2)), starts, _joined(self.sides, (0,), np.int64))


def _starts(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _joined(parts: list[np.ndarray], shape: tuple[int, ...], kind: type = np.float64) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(shape, dtype=kind)


class CutRows:
    """A table of cuts, numbered from 1, that begins with given rows (E, 3); those of the neurons follow."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows, self.size = [rows], len(rows)

    def __len__(self) -> int:
        return self.size

    def cuts(self) -> np.ndarray:
        """The table (E, 3): kind, and which (see `Cut`)."""
        return np.concatenate(self.rows).astype(np.int32)

    def add(self, program: Program, block: Block) -> None:
        """Append the cuts of a block, made by the neurons of a program."""
        neurons = _joined(block.cuts, (0,), np.int64)
        layers = np.searchsorted(program.offsets, neurons, side="right") - 1
        rows = np.stack([np.full_like(neurons, Cut.NEURON), layers, neurons - program.offsets[layers]], axis=1)
        self.rows.append(rows)
        self.size += len(rows)

    def renumber(self, block: Block) -> None:
        """Shift the block's own cuts to the end of the table; all blocks of a cell start from the same base."""
        shift = self.size - block.base
        for sides in block.sides:
            own = np.abs(sides) > block.base
            sides[own] += shift * np.sign(sides[own])


class CutTable(CutRows):
    """The cuts of a map, numbered from 1: borders and knots first, then those of the neurons."""

    def __init__(self, cells: Sequence[CellProgram | Corners]) -> None:
        self.cells = cells
        axes = range(len(cells[0].low))
        super().__init__(np.array([[Cut.BORDER, axis, side] for axis in axes for side in (0, 1)]))
        knots = {
            (axis, cell.low[axis]): number
            for number, cell in reversed(list(enumerate(cells)))
            for axis in axes
            if cell.low[axis] > 0.0
        }
        self.knots = {key: 2 * len(axes) + 1 + place for place, key in enumerate(sorted(knots))}
        self.rows += [np.array([[Cut.KNOT, key[0], knots[key]]]) for key in self.knots]
        self.size += len(self.knots)

    def cell(self, number: int) -> Polytopes:
        """A knot cell as a polygon or polyhedron, its edges or facets marked as borders or knots."""
        low, high = self.cells[number].low, self.cells[number].high
        sides = np.array([[self.side(axis, side, (low, high)[side]) for side in (0, 1)] for axis in range(len(low))])
        return box_polytopes(low[None], high[None], sides[None])

    def side(self, axis: int, side: int, corner: np.ndarray) -> int:
        """The signed cut at the low (0) or high (1) side of a cell along an axis, given that corner (D,)."""
        if corner[axis] == float(side):
            return 1 + 2 * axis + side
        # The cell above a knot lies on its positive side.
        return self.knots[(axis, corner[axis])] * (-1 if side else 1)


def assemble(
    cells: list[CellProgram], parts: list[tuple[int, Block]], cuts: np.ndarray, stopped: Stop | None
) -> RegionSet:
    """Join the blocks of all cells, given with the number of their cell, in that order."""
    polytopes = [block.polytopes() for _, block in parts]
    program = cells[0].program
    # Packed rows of a region: the clip's bits first, then the classifier's.
    clip_bytes = [int(cell.program.byte_start[2]) if cell.program.clipped else 0 for cell in cells]
    rows = [(part, clip_bytes[number]) for number, block in parts for part in block.packed]
    pattern, patterns = _distinct([part[:, split:] for part, split in rows])
    width = max(clip_bytes)
    clip, clips = _distinct([_padded(part[:, :split], width) for part, split in rows])
    classes = int(program.offsets[-1] - program.offsets[-2])
    return RegionSet(
        polytopes=_join(polytopes, len(cells[0].low)),
        cuts=cuts,
        cell=np.repeat(np.array([number for number, _ in parts], dtype=np.int64), [len(p) for p in polytopes]),
        pattern=pattern,
        patterns=PatternTable.of(patterns),
        clip=clip,
        clips=clips,
        logits=_joined([block for _, part in parts for block in part.logits], (0, len(cells[0].root), classes)),
        doubtful=_joined([part for _, block in parts for part in block.doubtful], (0,), np.uint8),
        accuracy=Accuracy.of(program, [block.measured for _, block in parts if block.measured is not None]),
        stopped=stopped,
    )


def _padded(rows: np.ndarray, width: int) -> np.ndarray:
    """Rows with zeros up to a width."""
    return rows if rows.shape[1] == width else np.pad(rows, ((0, 0), (0, width - rows.shape[1])))


def _join(polytopes: list[Polytopes], dimension: int) -> Polytopes:
    if dimension > 2:
        return joined([part for part in polytopes if isinstance(part, Polyhedra)])
    polygons = [part for part in polytopes if isinstance(part, Polygons)]
    sizes = _joined([np.diff(part.starts) for part in polygons], (0,), np.int64)
    edges = _joined([part.edges for part in polygons], (0,), np.int64)
    return Polygons(_joined([part.points for part in polygons], (0, 2)), _starts(sizes), edges)


def _distinct(blocks: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Ids of all rows and the table of distinct rows, block by block so that repeated rows are dropped early."""
    ids, tables, size = [np.zeros(0, dtype=np.int64)], [], 0
    for rows in blocks or [np.zeros((0, 0), dtype=np.uint8)]:
        numbers, first = distinct_rows(rows)
        ids.append(numbers + size)
        tables.append(rows[first])
        size += len(first)
    if len(tables) == 1:
        return ids[1], tables[0]
    table = np.concatenate(tables)
    numbers, first = distinct_rows(table)
    return numbers[np.concatenate(ids)], table[first]
