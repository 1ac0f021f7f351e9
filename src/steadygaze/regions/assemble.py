"""Joins the blocks of all walks into one `RegionSet`: numbers the cuts, finds the distinct patterns."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from ..accuracy import Accuracy, WalkMeasures
from ..compound import CellCorners, CellProgram
from ..labels import Stop
from ..polytopes import Cut, Polytopes, box_polytopes, halve_boxes, kind_of
from .patterns import PatternTable, distinct_rows
from .region import RegionSet

_NONE = np.zeros(0, dtype=np.int64)
_NONE.setflags(write=False)

BETWEEN = -1
"""The axis entered in the table of cuts for a line between two halves of a box."""


class Block:
    """Regions of one walk in a space of `coordinates` dimensions; cuts are numbered from `base` + 1.

    `shapes` holds the regions' polytopes, divided like the other lists. `origins`: the walked polytope that contains
    each region; `unfinished`: the polytopes that were not walked to the end. `cuts`: rows of the table of cuts.
    """

    def __init__(self, base: int, coordinates: int = 2) -> None:
        self.base, self.coordinates = base, coordinates
        self.shapes: list[Polytopes] = []
        self.logits: list[np.ndarray] = []
        self.packed: list[np.ndarray] = []
        self.doubtful: list[np.ndarray] = []
        self.cuts: list[np.ndarray] = []
        self.origins: list[np.ndarray] = []
        self.unfinished = _NONE
        self.measured: WalkMeasures | None = None

    def __len__(self) -> int:
        return sum([len(shape) for shape in self.shapes])

    def drop_patterns(self) -> None:
        """Keep shapes, origins and cuts only: these polytopes are no regions yet."""
        self.logits, self.packed, self.doubtful = [], [], []

    def polytopes(self) -> Polytopes:
        """The shapes of all regions of the block."""
        return kind_of(self.coordinates).join(list(self.shapes))


def _joined(parts: list[np.ndarray], shape: tuple[int, ...], kind: type = np.float64) -> np.ndarray:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(shape, dtype=kind)


class CutRows:
    """A table of cuts, numbered from 1: first the given rows (E, 3), then the cuts of the neurons."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows, self.size = [rows], len(rows)

    def __len__(self) -> int:
        return self.size

    def cuts(self) -> np.ndarray:
        """The table (E, 3): kind and details (see `Cut`)."""
        return np.concatenate(self.rows, dtype=np.int32, casting="same_kind")

    def add(self, block: Block) -> None:
        """Append the cuts of a block, made by neurons."""
        self.rows += block.cuts
        self.size += sum(map(len, block.cuts))

    def skip(self, cuts: int) -> None:
        """Reserve numbers for cuts whose rows are stored elsewhere; this table gets no further rows."""
        self.size += cuts

    def renumber(self, block: Block) -> None:
        """Shift the block's own cuts to the end of the table; all blocks of a cell start from the same base."""
        shift = self.size - block.base
        if shift == 0:
            return
        for shape in block.shapes:
            own = np.abs(shape.facets) > block.base
            shape.facets[own] += shift * np.sign(shape.facets[own])


class CutTable(CutRows):
    """The cuts of a map, numbered from 1: borders and knots first, then the cuts of neurons."""

    def __init__(self, cells: Sequence[CellProgram | CellCorners]) -> None:
        self.cells = cells
        axes = range(len(cells[0].low))
        super().__init__(_borders(len(axes)))
        self.knots: dict[tuple[int, float], int] = {}
        if len(cells) == 1:
            return
        knots = {
            (axis, cell.low[axis]): number
            for number, cell in reversed(list(enumerate(cells)))
            for axis in axes
            if cell.low[axis] > 0.0
        }
        self.knots = {key: 2 * len(axes) + 1 + place for place, key in enumerate(sorted(knots))}
        self.rows += [np.array([[Cut.KNOT, key[0], knots[key]]]) for key in self.knots]
        # The second half of a box lies on the positive side of the line between the halves.
        upper = [number for number, cell in enumerate(cells) if cell.side is not None][1::2]
        self.rows += [np.array([[Cut.KNOT, BETWEEN, number]]) for number in upper]
        self.size += len(self.knots) + len(upper)

    def cell(self, number: int) -> Polytopes:
        """A knot cell as a polytope whose facets are borders or knots."""
        low, high, form = (getattr(self.cells[number], name) for name in ("low", "high", "side"))
        if not self.knots and form is None:
            return _whole_domain(len(low))
        sides = np.array([[self.side(axis, side, (low, high)[side]) for side in (0, 1)] for axis in range(len(low))])
        if form is None:
            return box_polytopes(low[None], high[None], sides[None])
        cut, is_upper = cut_between(self.cuts(), number)
        form = form if is_upper else -form
        halves, _, is_above = halve_boxes(low[None], high[None], sides[None], form, cut)
        return halves.take(np.flatnonzero(is_above == is_upper))

    def side(self, axis: int, side: int, corner: np.ndarray) -> int:
        """The signed cut at the low (0) or high (1) side of a cell along an axis, given that corner (D,)."""
        if corner[axis] == float(side):
            return 1 + 2 * axis + side
        # The cell above a knot lies on its positive side.
        return self.knots[(axis, corner[axis])] * (-1 if side else 1)


@cache
def _borders(axes: int) -> np.ndarray:
    """The cuts of the domain's borders."""
    return np.array([(int(Cut.BORDER), axis, side) for axis in range(axes) for side in (0, 1)])


@cache
def _whole_domain(axes: int) -> Polytopes:
    """The unit square or cube as a polytope whose facets are borders."""
    return box_polytopes(np.zeros((1, axes)), np.ones((1, axes)), np.arange(1, 2 * axes + 1).reshape(1, axes, 2))


def cut_between(cuts: np.ndarray, number: int) -> tuple[int, bool]:
    """The number in a table (E, 3) of the cut between two halves of a box; whether cell `number` is the upper half."""
    between = (cuts[:, 0] == Cut.KNOT) & (cuts[:, 1] == BETWEEN)
    is_upper = bool((between & (cuts[:, 2] == number)).any())
    found = np.flatnonzero(between & (cuts[:, 2] == number + (not is_upper)))
    return int(found[0]) + 1, is_upper


def assemble(
    cells: list[CellProgram], parts: list[tuple[int, Block]], cuts: np.ndarray, stopped: Stop | None
) -> RegionSet:
    """Join the blocks of all cells in order; each part is the number of a cell and a block."""
    shapes = [shape for _, block in parts for shape in block.shapes]
    program = cells[0].program
    pattern, patterns, clip, clips = _distinct_patterns(cells, parts)
    classes = int(program.offsets[-1] - program.offsets[-2])
    return RegionSet(
        polytopes=kind_of(len(cells[0].low)).join(shapes),
        cuts=cuts,
        cell=_joined([_numbered(len(block), number) for number, block in parts], (0,), np.int64),
        pattern=pattern,
        patterns=PatternTable.of(patterns),
        clip=clip,
        clips=clips,
        logits=_joined([block for _, part in parts for block in part.logits], (0, len(cells[0].root), classes)),
        doubtful=_joined([part for _, block in parts for part in block.doubtful], (0,), np.uint8),
        accuracy=Accuracy.of(program, [block.measured for _, block in parts if block.measured is not None]),
        stopped=stopped,
    )


def _numbered(count: int, number: int) -> np.ndarray:
    """The number of a cell for each of its regions."""
    return np.full(count, number) if number else np.zeros(count, np.int64)


def _distinct_patterns(cells: list[CellProgram], parts: list[tuple[int, Block]]) -> tuple[np.ndarray, ...]:
    """The number of each region's pattern, and the distinct patterns; the same for the pattern of the clip."""
    none = np.zeros((0, 0), dtype=np.uint8)
    if not cells[0].program.clipped:
        pattern, patterns = distinct_rows([part for _, block in parts for part in block.packed] or [none])
        return pattern, patterns, np.zeros(len(pattern), dtype=np.int64), np.zeros((min(len(pattern), 1), 0), np.uint8)
    # Packed rows of a region: the clip's bits first, then the classifier's.
    clip_bytes = [int(cell.program.byte_start[2]) for cell in cells]
    rows = [(part, clip_bytes[number]) for number, block in parts for part in block.packed]
    pattern, patterns = distinct_rows([part[:, split:] for part, split in rows] or [none])
    width = max(clip_bytes)
    clip, clips = distinct_rows([_padded(part[:, :split], width) for part, split in rows] or [none])
    return pattern, patterns, clip, clips


def _padded(rows: np.ndarray, width: int) -> np.ndarray:
    """Rows padded with zeros to a width."""
    return rows if rows.shape[1] == width else np.pad(rows, ((0, 0), (0, width - rows.shape[1])))
