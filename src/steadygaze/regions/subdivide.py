"""Subdivides the domain into all regions with volume: drives the compiled walk, in parallel, within a budget.

Every knot cell is first cut by the clip alone; runs of the resulting polygons are then walked through the classifier
independently. The runs do not depend on the number of threads, so neither does the result.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from ..budget import Budget
from ..compound import CellProgram, Compound
from ..errors import InternalError
from ..program import Program
from . import kernels
from .forms import FED_FROM, Walk
from .kernels import Output
from .pattern import distinct_rows
from .region import Cut, Polygons, RegionSet

RUNS = 16
"""Independent pieces of work for each knot cell, where there is enough to do (see SMALL)."""

SMALL = 1 << 21
"""Polygons after the clip times neurons below which a knot cell is walked in one run: it takes milliseconds."""

NODES = 20_000
"""Polygons looked at between two questions to the budget: some ten milliseconds."""

CAPACITY = 4096

Progress = Callable[[float, int], None]


@dataclass
class _Block:
    """Regions of one walk; cuts numbered from `base` + 1 in the order of `cuts`."""

    base: int
    vertices: list[np.ndarray] = field(default_factory=list)
    points: list[np.ndarray] = field(default_factory=list)
    edges: list[np.ndarray] = field(default_factory=list)
    logits: list[np.ndarray] = field(default_factory=list)
    packed: list[np.ndarray] = field(default_factory=list)
    cuts: list[np.ndarray] = field(default_factory=list)
    sliver_area: float = 0.0
    peak: np.ndarray = field(default_factory=lambda: np.zeros(0))
    missed: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def polygons(self) -> Polygons:
        starts = np.concatenate([[0], np.cumsum(_joined(self.vertices, (0,), np.int64))])
        return Polygons(_joined(self.points, (0, 2)), starts, _joined(self.edges, (0,), np.int64))


def _joined(parts: list[np.ndarray], shape: tuple[int, ...], kind: type = np.float64) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(shape, dtype=kind)


def subdivide(
    compound: Compound, *, budget: Budget | None = None, threads: int = 1, progress: Progress | None = None
) -> RegionSet:
    """Split the domain of a compound network into its regions, in 1 or 2 dimensions.

    Exact up to the tolerances; complete unless the budget ends first, which `stopped` then says. `progress` is called
    with the share of the domain done and the number of regions.
    """
    return subdivide_cells(list(compound.programs), budget=budget, threads=threads, progress=progress)


def subdivide_cells(
    cells: list[CellProgram], *, budget: Budget | None = None, threads: int = 1, progress: Progress | None = None
) -> RegionSet:
    """As `subdivide`, for programs whose cells tile the unit square."""
    budget = budget or Budget()
    watch = _Watch(budget, progress)
    table = _CutTable(cells)
    parts: list[tuple[int, _Block]] = []
    for number, cell in enumerate(cells):
        polygons, clipped = table.rectangle(number), _Block(0)
        if cell.program.clipped:
            clipped = _Block(len(table))
            _walk(cell, polygons, 1, clipped, None)
            table.add(cell.program, clipped)
            polygons = clipped.polygons()
        is_small = len(polygons) * int(cell.program.offsets[-1]) < SMALL
        runs = np.array_split(np.arange(len(polygons)), 1 if is_small else RUNS)
        work = [(cell, polygons.take(run), len(table), watch) for run in runs if len(run)]
        if threads == 1:
            blocks = [_run(*item) for item in work]
        else:
            with ThreadPoolExecutor(threads) as pool:
                blocks = list(pool.map(lambda item: _run(*item), work))
        for block in blocks:
            block.sliver_area += clipped.sliver_area / len(blocks)
            if len(block.missed) and len(clipped.missed):
                np.maximum(block.missed, clipped.missed, out=block.missed)
            table.renumber(block)
            table.add(cell.program, block)
            parts.append((number, block))
    return _assemble(cells, parts, table.cuts(), watch.stopped)


class _Watch:
    """Asks the budget and tells the progress, from any thread."""

    def __init__(self, budget: Budget, progress: Progress | None) -> None:
        self.budget, self.progress = budget, progress
        self.stopped: str | None = None
        self.area = 0.0
        self.lock = threading.Lock()

    def goes_on(self, area: float, regions: int) -> bool:
        with self.lock:
            self.area += area
            self.budget.regions += regions
            if self.stopped is None:
                self.stopped = self.budget.exhausted()
            if self.progress is not None:
                self.progress(self.area, self.budget.regions)
            return self.stopped is None


def _run(cell: CellProgram, polygons: Polygons, base: int, watch: _Watch) -> _Block:
    block = _Block(base)
    if watch.goes_on(0.0, 0):
        _walk(cell, polygons, len(cell.program.offsets) - 3, block, watch)
    return block


def _walk(cell: CellProgram, polygons: Polygons, last_layer: int, block: _Block, watch: _Watch | None) -> None:
    """Walk polygons through the layers up to `last_layer`, appending to the block."""
    program = cell.program
    walk = _start(program, cell.root, polygons)
    walk.counters[kernels.BASE] = block.base
    output = _room(program)
    done = 0.0
    while True:
        code = kernels.advance(program, walk, output, last_layer, NODES)
        regions = int(walk.counters[kernels.REGIONS])
        _flush(walk, output, block, regions)
        if code == kernels.NEED_STACK:
            if walk.stack[walk.counters[kernels.HEIGHT] - 1, 2] + 1 > kernels.MAX_VERTICES:
                raise InternalError(f"a region with more than {kernels.MAX_VERTICES} vertices: please report the model")
            walk = _enlarged(walk)
        if watch is not None and not watch.goes_on(walk.sums[kernels.AREA] - done, regions):
            break
        done = walk.sums[kernels.AREA]
        if code == kernels.DONE:
            break
    block.sliver_area = float(walk.sums[kernels.SLIVERS])
    block.peak, block.missed = walk.peak, walk.missed


def _start(program: Program, root: np.ndarray, polygons: Polygons) -> Walk:
    neurons, layers = int(program.offsets[-1]), len(program.offsets) - 1
    widest = int(np.diff(program.offsets).max())
    count = len(polygons)
    vertices = len(polygons.points)
    forms = np.zeros((3, neurons))
    forms[:, : root.shape[1]] = root
    stack = np.zeros((count + 256, 5), dtype=np.int64)
    # The last polygon of the stack is walked first: reverse, so that the regions keep the order of the polygons.
    reverse = polygons.take(np.arange(count)[::-1])
    stack[:count, 1], stack[:count, 2], stack[:count, 3] = reverse.starts[:-1], np.diff(reverse.starts), -1
    room = vertices + 4096
    x, y, edge = np.empty(room), np.empty(room), np.empty(room, dtype=np.int64)
    x[:vertices], y[:vertices], edge[:vertices] = reverse.points[:, 0], reverse.points[:, 1], reverse.edges
    versions = np.zeros((3, layers), dtype=np.int64)
    versions[FED_FROM] = -1
    counters = np.zeros(5, dtype=np.int64)
    counters[kernels.HEIGHT] = count
    return Walk(
        forms=forms,
        fed=np.zeros((3, neurons)),
        fed_active=np.zeros(neurons, dtype=np.uint8),
        versions=versions,
        active=np.zeros(neurons, dtype=np.uint8),
        packed=np.zeros(program.byte_start[-1], dtype=np.uint8),
        unstable=np.zeros(neurons, dtype=np.int32),
        unstable_count=np.zeros(layers, dtype=np.int64),
        scratch=np.zeros((3, widest)),
        peak=np.zeros(neurons),
        missed=np.zeros(neurons),
        columns=np.zeros((2, widest), dtype=np.int64),
        stack=stack,
        x=x,
        y=y,
        edge=edge,
        candidates=np.empty(16 * widest + 4096, dtype=np.int32),
        here=np.zeros((3, kernels.MAX_VERTICES)),
        here_edge=np.zeros(kernels.MAX_VERTICES, dtype=np.int64),
        counters=counters,
        sums=np.zeros(2),
    )


def _enlarged(walk: Walk) -> Walk:
    """The same walk with twice the room for the stack."""
    double = {name: np.resize(getattr(walk, name), 2 * len(getattr(walk, name))) for name in ("x", "y", "edge")}
    stack = np.concatenate([walk.stack, np.zeros_like(walk.stack)])
    return walk._replace(stack=stack, candidates=np.resize(walk.candidates, 2 * len(walk.candidates)), **double)


def _room(program: Program) -> Output:
    """Empty output buffers."""
    classes = int(program.offsets[-1] - program.offsets[-2])
    return Output(
        vertices=np.empty(CAPACITY, dtype=np.int64),
        logits=np.empty((CAPACITY, 3, classes)),
        packed=np.empty((CAPACITY, program.byte_start[-1]), dtype=np.uint8),
        x=np.empty(16 * CAPACITY),
        y=np.empty(16 * CAPACITY),
        edge=np.empty(16 * CAPACITY, dtype=np.int64),
        cuts=np.empty(4 * CAPACITY, dtype=np.int64),
    )


def _flush(walk: Walk, output: Output, block: _Block, regions: int) -> None:
    """Move what the output buffers hold into the block; cuts go on counting."""
    cuts, vertices = int(walk.counters[kernels.CUTS]), int(walk.counters[kernels.VERTICES])
    block.vertices.append(output.vertices[:regions].copy())
    block.logits.append(output.logits[:regions].copy())
    block.packed.append(output.packed[:regions].copy())
    block.points.append(np.stack([output.x[:vertices], output.y[:vertices]], axis=1))
    block.edges.append(output.edge[:vertices].copy())
    block.cuts.append(output.cuts[:cuts].copy())
    walk.counters[kernels.BASE] += cuts
    walk.counters[[kernels.CUTS, kernels.REGIONS, kernels.VERTICES]] = 0


class _CutTable:
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

    def add(self, program: Program, block: _Block) -> None:
        neurons = _joined(block.cuts, (0,), np.int64)
        layers = np.searchsorted(program.offsets, neurons, side="right") - 1
        rows = np.stack([np.full_like(neurons, Cut.NEURON), layers, neurons - program.offsets[layers]], axis=1)
        self.rows.append(rows)
        self.size += len(rows)

    def renumber(self, block: _Block) -> None:
        """Shift the block's own cuts to the end of the table; all blocks of a cell start from the same base."""
        shift = self.size - block.base
        for edges in block.edges:
            own = np.abs(edges) > block.base
            edges[own] += shift * np.sign(edges[own])


def _assemble(
    cells: list[CellProgram], parts: list[tuple[int, _Block]], cuts: np.ndarray, stopped: str | None
) -> RegionSet:
    polygons = [block.polygons() for _, block in parts]
    starts = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(p.starts) for p in polygons]))])
    joined = Polygons(np.concatenate([p.points for p in polygons]), starts, np.concatenate([p.edges for p in polygons]))
    program = cells[0].program
    packed = [block.packed for _, block in parts]
    clip_bytes = [
        int(cells[number].program.byte_start[2]) if cells[number].program.clipped else 0 for number, _ in parts
    ]
    pattern, patterns = _distinct(
        [rows[:, n:] for blocks, n in zip(packed, clip_bytes, strict=True) for rows in blocks]
    )
    width = max(clip_bytes)
    clip, clips = _distinct(
        [
            np.pad(rows[:, :n], ((0, 0), (0, width - n)))
            for blocks, n in zip(packed, clip_bytes, strict=True)
            for rows in blocks
        ]
    )
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
        polygons=joined,
        cuts=cuts,
        cell=np.repeat([number for number, _ in parts], [len(p) for p in polygons]),
        pattern=pattern,
        patterns=patterns,
        clip=clip,
        clips=clips,
        logits=_joined([block for _, part in parts for block in part.logits], (0, 3, classes)),
        peaks=peaks,
        missed=missed,
        pixels_missed=pixels_missed,
        sliver_area=sum(block.sliver_area for _, block in parts),
        stopped=stopped,
    )


def _distinct(blocks: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Ids of all rows and the table of distinct rows, block by block so that repeated rows are dropped early."""
    ids, tables, size = [], [], 0
    for rows in blocks:
        numbers, first = distinct_rows(rows)
        ids.append(numbers + size)
        tables.append(rows[first])
        size += len(first)
    table = np.concatenate(tables)
    numbers, first = distinct_rows(table)
    return numbers[np.concatenate(ids)], table[first]
