"""Subdivides the domain into all regions with volume: drives the compiled walk, in parallel, within a budget.

Every knot cell is first cut by the clip alone; runs of the resulting polygons are then walked through the classifier
independently. The runs do not depend on the number of threads, so neither does the result.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..budget import Budget
from ..compound import CellProgram, Compound
from ..errors import InternalError, OptionError
from ..program import Program
from . import kernels
from .assemble import Block, CutTable, assemble
from .forms import FED_FROM, Walk
from .kernels import Output
from .region import Polygons, RegionSet

RUNS = 16
"""Independent pieces of work for each knot cell, where there is enough to do (see SMALL)."""

SMALL = 1 << 21
"""Polygons after the clip times neurons below which a knot cell is walked in one run: it takes milliseconds."""

MOST_PARAMETERS = 2
"""Dimensions that the subdivision takes."""

NODES = 20_000
"""Polygons looked at between two questions to the budget: some ten milliseconds."""

CAPACITY = 4096

Progress = Callable[[float, int], None]


def subdivide(
    compound: Compound, *, budget: Budget | None = None, threads: int = 1, progress: Progress | None = None
) -> RegionSet:
    """Split the domain of a compound network into its regions, in 1 or 2 dimensions.

    Exact up to the tolerances; complete unless the budget ends first, which `stopped` then says. `progress` is called
    with the share of the domain done and the number of regions.
    """
    if compound.domain.dimension > MOST_PARAMETERS:
        raise OptionError(
            f"{compound.domain.dimension} parameters at once ({', '.join(compound.domain.names)}); the map takes up to "
            f"{MOST_PARAMETERS}: leave some out"
        )
    return subdivide_cells(list(compound.programs), budget=budget, threads=threads, progress=progress)


def subdivide_cells(
    cells: list[CellProgram], *, budget: Budget | None = None, threads: int = 1, progress: Progress | None = None
) -> RegionSet:
    """As `subdivide`, for programs whose cells tile the unit square."""
    budget = budget or Budget()
    watch = _Watch(budget, progress)
    table = CutTable(cells)
    parts: list[tuple[int, Block]] = []
    for number, cell in enumerate(cells):
        polygons, clipped = table.rectangle(number), Block(0)
        if cell.program.clipped:
            clipped = Block(len(table))
            _walk(cell, polygons, 1, clipped, watch, are_regions=False)
            table.add(cell.program, clipped)
            polygons = clipped.polytopes()
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
    return assemble(cells, parts, table.cuts(), watch.stopped)


class _Watch:
    """Asks the budget and tells the progress, from any thread."""

    def __init__(self, budget: Budget, progress: Progress | None) -> None:
        self.budget, self.progress = budget, progress
        self.stopped: str | None = None
        self.area = 0.0
        self.lock = threading.Lock()

    def add(self, area: float, regions: int) -> None:
        with self.lock:
            self.area += area
            self.budget.regions += regions
            if self.progress is not None:
                self.progress(self.area, self.budget.regions)

    def goes_on(self) -> bool:
        """Whether the work that is left may be done; if not, the map is partial."""
        with self.lock:
            if self.stopped is None:
                self.stopped = self.budget.exhausted()
            return self.stopped is None


def _run(cell: CellProgram, polygons: Polygons, base: int, watch: _Watch) -> Block:
    block = Block(base)
    if watch.goes_on():
        _walk(cell, polygons, len(cell.program.offsets) - 3, block, watch)
    return block


def _walk(
    cell: CellProgram, polygons: Polygons, last_layer: int, block: Block, watch: _Watch, *, are_regions: bool = True
) -> None:
    """Walk polygons through the layers up to `last_layer`, appending to the block until the budget ends."""
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
        if are_regions:
            watch.add(walk.sums[kernels.AREA] - done, regions)
        done = walk.sums[kernels.AREA]
        if code == kernels.DONE or not watch.goes_on():
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
        doubts=np.zeros((2, layers), dtype=np.int64),
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
        doubtful=np.empty(CAPACITY, dtype=np.uint8),
        cuts=np.empty(4 * CAPACITY, dtype=np.int64),
    )


def _flush(walk: Walk, output: Output, block: Block, regions: int) -> None:
    """Move what the output buffers hold into the block; cuts go on counting."""
    cuts, vertices = int(walk.counters[kernels.CUTS]), int(walk.counters[kernels.VERTICES])
    block.vertices.append(output.vertices[:regions].copy())
    block.logits.append(output.logits[:regions].copy())
    block.packed.append(output.packed[:regions].copy())
    block.doubtful.append(output.doubtful[:regions].copy())
    block.points.append(np.stack([output.x[:vertices], output.y[:vertices]], axis=1))
    block.edges.append(output.edge[:vertices].copy())
    block.cuts.append(output.cuts[:cuts].copy())
    walk.counters[kernels.BASE] += cuts
    walk.counters[[kernels.CUTS, kernels.REGIONS, kernels.VERTICES]] = 0
