"""Joins what the walks deliver into one `RegionSet`: numbers the cuts, finds the distinct patterns."""

from dataclasses import dataclass, field

import numpy as np

from ..compound import CellProgram
from ..program import Program
from .pattern import distinct_rows
from .region import Cut, Polygons, RegionSet


@dataclass
class Block:
    """Regions of one walk; cuts numbered from `base` + 1 in the order of `cuts`."""

    base: int
    vertices: list[np.ndarray] = field(default_factory=list)
    points: list[np.ndarray] = field(default_factory=list)
    edges: list[np.ndarray] = field(default_factory=list)
    logits: list[np.ndarray] = field(default_factory=list)
    packed: list[np.ndarray] = field(default_factory=list)
    doubtful: list[np.ndarray] = field(default_factory=list)
    cuts: list[np.ndarray] = field(default_factory=list)
    sliver_area: float = 0.0
    peak: np.ndarray = field(default_factory=lambda: np.zeros(0))
    missed: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def polytopes(self) -> Polygons:
        """All polygons of the block."""
        starts = np.concatenate([[0], np.cumsum(_joined(self.vertices, (0,), np.int64))])
        return Polygons(_joined(self.points, (0, 2)), starts, _joined(self.edges, (0,), np.int64))


def _joined(parts: list[np.ndarray], shape: tuple[int, ...], kind: type = np.float64) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(shape, dtype=kind)


class CutTable:
    """The cuts of a map, numbered from 1: borders and knots first, then those of the neurons."""

    def __init__(self, cells: list[CellProgram]) -> None:
        self.cells = cells
        self.rows = [np.array([[Cut.BORDER, axis, side] for axis in (0, 1) for side in (0, 1)])]
        knots = {
            (axis, cell.low[axis]): number
            for number, cell in reversed(list(enumerate(cells)))
            for axis in (0, 1)
            if cell.low[axis] > 0.0
        }
        self.knots = {key: 5 + place for place, key in enumerate(sorted(knots))}
        self.rows += [np.array([[Cut.KNOT, key[0], knots[key]]]) for key in self.knots]
        self.size = 4 + len(self.knots)

    def __len__(self) -> int:
        return self.size

    def cuts(self) -> np.ndarray:
        """The table (E, 3): kind, and which (see `Cut`)."""
        return np.concatenate(self.rows).astype(np.int32)

    def rectangle(self, number: int) -> Polygons:
        """A knot cell as a polygon, its edges marked as borders or knots."""
        low, high = self.cells[number].low, self.cells[number].high
        x, y = (0, 1)
        bottom, right = self._edge(y, 0, low), self._edge(x, 1, high)
        top, left = self._edge(y, 1, high), self._edge(x, 0, low)
        corners = np.array([[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]])
        return Polygons(corners, np.array([0, 4]), np.array([bottom, right, top, left]))

    def _edge(self, axis: int, side: int, corner: np.ndarray) -> int:
        if corner[axis] == float(side):
            return 1 + 2 * axis + side
        # The cell above a knot lies on its positive side.
        return self.knots[(axis, corner[axis])] * (-1 if side else 1)

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
        for edges in block.edges:
            own = np.abs(edges) > block.base
            edges[own] += shift * np.sign(edges[own])


def assemble(
    cells: list[CellProgram], parts: list[tuple[int, Block]], cuts: np.ndarray, stopped: str | None
) -> RegionSet:
    """Join the blocks of all cells, given with the number of their cell, in that order."""
    polygons = [block.polytopes() for _, block in parts]
    sizes = _joined([np.diff(p.starts) for p in polygons], (0,), np.int64)
    joined = Polygons(
        _joined([p.points for p in polygons], (0, 2)),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        _joined([p.edges for p in polygons], (0,), np.int64),
    )
    program = cells[0].program
    # Packed rows of a region: the clip's bits first, then the classifier's.
    clip_bytes = [int(cell.program.byte_start[2]) if cell.program.clipped else 0 for cell in cells]
    rows = [(part, clip_bytes[number]) for number, block in parts for part in block.packed]
    pattern, patterns = _distinct([part[:, split:] for part, split in rows])
    width = max(clip_bytes)
    clip, clips = _distinct([np.pad(part[:, :split], ((0, 0), (0, width - split))) for part, split in rows])
    classes = int(program.offsets[-1] - program.offsets[-2])
    hidden = int(program.offsets[-2] - program.offsets[2 if program.clipped else 0])
    walked = [block for _, block in parts if len(block.peak)]
    peaks, missed = np.zeros(hidden), np.zeros(hidden)
    pixels_missed = 0.0
    for block in walked:
        classifier = slice(len(block.peak) - classes - hidden, len(block.peak) - classes)
        np.maximum(peaks, block.peak[classifier], out=peaks)
        np.maximum(missed, block.missed[classifier], out=missed)
        pixels_missed = max(pixels_missed, float(block.missed[: classifier.start].max(initial=0.0)))
    return RegionSet(
        polytopes=joined,
        cuts=cuts,
        cell=np.repeat(np.array([number for number, _ in parts], dtype=np.int64), [len(p) for p in polygons]),
        pattern=pattern,
        patterns=patterns,
        clip=clip,
        clips=clips,
        logits=_joined([block for _, part in parts for block in part.logits], (0, 3, classes)),
        doubtful=_joined([part for _, block in parts for part in block.doubtful], (0,), np.uint8),
        peaks=peaks,
        missed=missed,
        pixels_missed=pixels_missed,
        sliver_area=sum(block.sliver_area for _, block in parts),
        stopped=stopped,
    )


def _distinct(blocks: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Ids of all rows and the table of distinct rows, block by block so that repeated rows are dropped early."""
    ids, tables, size = [np.zeros(0, dtype=np.int64)], [], 0
    for rows in blocks or [np.zeros((0, 0), dtype=np.uint8)]:
        numbers, first = distinct_rows(rows)
        ids.append(numbers + size)
        tables.append(rows[first])
        size += len(first)
    table = np.concatenate(tables)
    numbers, first = distinct_rows(table)
    return numbers[np.concatenate(ids)], table[first]
