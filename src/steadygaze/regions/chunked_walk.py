"""Walks the domain of a compound network and passes its regions on in chunks, in bounded memory.

A chunk holds consecutive regions of one run (see `subdivide`), at least `chunk_size` except at the end of a run.
Chunks do not depend on the number of threads. Each is self-contained: shapes, patterns, logits, a table of the cuts
behind its facets, and measures that bound the errors of its regions. `cut_id` identifies a cut across chunks.
"""

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from ..accuracy import Accuracy, WalkMeasures
from ..budget import WALKING, Budget
from ..compound import CellProgram, Compound
from ..labels import Stop
from .assemble import Block, CutTable, assemble
from .region import RegionSet
from .subdivide import CellRuns, Progress, Watch, clip_cell
from .walks import start_walk

LARGEST, SMALLEST = 1 << 14, 1 << 8
"""Bounds of `chunk_size`."""

MAP_VALUES = 130_000_000
"""The most values in the attention maps of a chunk: measuring them takes about half a second."""

RUN_BITS = 40
"""The bits of a cut's id that hold its number; the others hold the run that made it."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive regions of a run. place: (knot cell, run, number in the run); cut_id (E,): one id for each cut."""

    place: tuple[int, int, int]
    regions: RegionSet
    cut_id: np.ndarray


@dataclass(frozen=True, eq=False)
class WalkResult:
    """The result of a walk: the measures of all regions together, and the limit that ended it.

    whole: all regions, if they are too few for a chunk; None if they were passed on in chunks.
    """

    accuracy: Accuracy
    stopped: Stop | None
    whole: RegionSet | None


def walk_chunks(
    compound: Compound,
    take: Callable[[Chunk], None],
    *,
    budget: Budget,
    threads: int = 1,
    progress: Progress | None = None,
) -> WalkResult:
    """Walk the domain; `take` receives every chunk, from any thread and in any order.

    If there are at most `chunk_size` regions, `take` receives nothing: the regions are returned as `subdivide` returns
    them.
    """
    cells = list(compound.programs)
    watch, walker = Watch(budget, progress, WALKING), _ChunkedWalk(cells, take, chunk_size(compound))
    with ThreadPoolExecutor(threads) as pool, watch.ending_all():
        for number, cell in enumerate(cells):
            walker.walk(clip_cell(cell, walker.table.cell(number), walker.table, watch), number, watch, pool)
    accuracy = Accuracy.of(cells[0].program, walker.measured)
    if walker.is_open:
        return WalkResult(accuracy, watch.stopped, None)
    parts = [(number, block) for number, blocks in walker.held for block in blocks]
    whole = assemble(cells, parts, walker.table.cuts(), watch.stopped)
    return WalkResult(whole.accuracy, watch.stopped, whole)


def chunk_size(compound: Compound) -> int:
    """The number of regions that fills a chunk: fewer for large images and many classes, the same on every machine."""
    values = math.prod(compound.graph.input_shape) * compound.graph.classes
    return max(SMALLEST, min(LARGEST, 1 << (MAP_VALUES // values).bit_length() >> 1))


class _ChunkedWalk:
    """The walk of all knot cells, one after another.

    held: the finished cells with their blocks, until there are enough regions to pass on chunks (`is_open`).
    """

    def __init__(self, cells: list[CellProgram], take: Callable[[Chunk], None], size: int) -> None:
        self.cells, self.take, self.size, self.table = cells, take, size, CutTable(cells)
        self.shared = self.table.cuts()
        self.held: list[tuple[int, list[Block]]] = []
        self.measured: list[WalkMeasures] = []
        self.regions, self.is_open = 0, False
        self.lock = threading.Lock()

    def walk(self, runs: CellRuns, number: int, watch: Watch, pool: ThreadPoolExecutor) -> None:
        """Walk the runs of a knot cell."""
        cell, clip = self.cells[number], runs.clip
        walks = [_ChunkedRun(self, cell, (number, place), runs, watch) for place in range(len(runs.work))]
        list(map(_ChunkedRun.walk, walks) if len(walks) == 1 else pool.map(_ChunkedRun.walk, walks))
        before = clip.measured
        ends = [run.measured for run in walks if run.measured is not None]
        self.measured += ends if before is None else [before, *(end.after(before, 0.0) for end in ends)]
        if not self.is_open:
            blocks = [run.blocks[0] for run in walks] or [Block(len(self.table), len(cell.low))]
            runs.close(blocks, self.table)
            self.held.append((number, blocks))
            return
        for run in walks:
            run.pass_on_all()
            self.table.skip(run.cuts)

    def count(self, regions: int) -> None:
        """Count new regions; once they are too many for one chunk, the walk is open and starts to pass chunks on."""
        with self.lock:
            self.regions += regions
            opens = not self.is_open and self.regions > self.size
            self.is_open |= opens
            held, self.held = (self.held, []) if opens else ([], self.held)
        known = self.table.cuts() if held else self.shared
        for number, blocks in held:
            for place, block in enumerate(blocks):
                self.pass_on((number, place, 0), block, lambda used: (known[used - 1], used))

    def pass_on(
        self, place: tuple[int, int, int], block: Block, find: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    ) -> None:
        """Make a chunk of a block; `find` gives the rows and ids of cuts by their numbers in the block."""
        if not len(block):
            return
        regions = assemble(self.cells, [(place[0], block)], self.shared, None)
        facets = regions.polytopes.facets
        used, local = np.unique(np.abs(facets), return_inverse=True)
        rows, ids = find(used)
        polytopes = replace(regions.polytopes, facets=np.sign(facets) * (local + 1))
        self.take(Chunk(place, replace(regions, polytopes=polytopes, cuts=rows), ids))


class _ChunkedRun:
    """One run of polytopes of a knot cell.

    cuts: the number of cuts made; rows: these cuts; blocks: the blocks not passed on yet; measured: the measures of its
    walk so far.
    """

    def __init__(
        self, walker: _ChunkedWalk, cell: CellProgram, place: tuple[int, int], runs: CellRuns, watch: Watch
    ) -> None:
        self.walker, self.cell, self.place, self.runs, self.watch = walker, cell, place, runs, watch
        self.blocks: list[Block] = []
        self.rows: list[np.ndarray] = []
        self.cuts = self.passed = 0
        self.measured: WalkMeasures | None = None

    def walk(self) -> None:
        """Walk to the end, or until the budget ends; passes chunks on as soon as the walk is open."""
        with self.watch.ending_all():
            self._walk()

    def _walk(self) -> None:
        (polytopes, origins), base = self.runs.work[self.place[1]], self.runs.base
        block = Block(base, len(self.cell.low))
        if not self.watch.goes_on():
            block.unfinished = origins
            self.blocks.append(block)
            return
        walk, done = start_walk(self.cell, polytopes, origins, block), 0.0
        last_layer = len(self.cell.program.offsets) - 3
        while True:
            is_done, regions = walk.advance(last_layer)
            self.watch.add(walk.volume - done, regions)
            done = walk.volume
            is_last = is_done or not self.watch.goes_on()
            if self.watch.failed:
                return
            if is_last:
                walk.finish()
            if is_last or len(walk.block) >= self.walker.size:
                block = walk.next_block()
                self.measured = block.measured
                self.rows += block.cuts
                self.cuts += sum(map(len, block.cuts))
                self.blocks.append(block)
                self.walker.count(len(block))
                if self.walker.is_open:
                    self.pass_on_all()
            if is_last:
                break

    def pass_on_all(self) -> None:
        """Pass on the blocks that are still held."""
        own = np.concatenate([np.zeros((0, 3), dtype=np.int32), *self.rows])

        def find(used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            shared, runs = self.walker.shared, self.runs
            rows = np.empty((len(used), 3), dtype=np.int32)
            is_shared, is_own = used <= len(shared), used > runs.base
            rows[is_shared] = shared[used[is_shared] - 1]
            is_clip = ~is_shared & ~is_own
            rows[is_clip] = runs.clip_cuts[used[is_clip] - runs.first - 1]
            rows[is_own] = own[used[is_own] - runs.base - 1]
            return rows, np.where(is_own, used + ((self.place[1] + 1) << RUN_BITS), used)

        before = self.runs.clip.measured
        for block in self.blocks:
            if before is not None and block.measured is not None:
                block.measured = block.measured.after(before, 0.0)
            self.walker.pass_on((*self.place, self.passed), block, find)
            self.passed += 1
        self.blocks = []
