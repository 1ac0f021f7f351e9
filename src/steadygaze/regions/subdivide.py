"""Subdivides the domain into all regions with volume: drives the compiled walks, in parallel, within a budget.

Every knot cell is first cut by the clip alone; runs of the resulting polytopes are then walked through the classifier
independently. The runs do not depend on the number of threads, so neither does the result. In two dimensions polygons
are walked (`flat_walk`), in three polyhedra (`solid_walk`).
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..budget import Budget
from ..compound import CellProgram, Compound
from ..errors import OptionError
from ..labels import Stop
from ..tolerances import MAX_MAP_PARAMETERS
from . import kernels
from .assemble import Block, CutRows, CutTable, assemble
from .flat_walk import FlatWalk
from .polyhedra import Polyhedra
from .region import Polytopes, RegionSet
from .solid_walk import SolidWalk

RUNS = 16
"""Independent pieces of work for each knot cell, where there is enough to do (see SMALL)."""

SMALL = 1 << 21
"""Polytopes after the clip times neurons below which a knot cell is walked in one run: it takes milliseconds."""

SMALL_BOXES = 1 << 18
"""The same where the polytopes have not been cut by the clip."""

NODES, SOLID_NODES = 20_000, 500
"""Polygons, and polyhedra, looked at between two questions to the budget: some ten milliseconds, and up to a tenth of a
second on convolutional networks."""

NODES_TIMES_NEURONS = 1 << 24
"""As many polygons at most, times neurons: where most of them enter all layers, this takes a tenth of a second."""

Progress = Callable[[float, int], None]


def subdivide(
    compound: Compound, *, budget: Budget | None = None, threads: int = 1, progress: Progress | None = None
) -> RegionSet:
    """Split the domain of a compound network into its regions, in 1, 2 or 3 dimensions.

    Exact up to the tolerances; complete unless the budget ends first, which `stopped` then says. `progress` is called
    with the share of the domain done and the number of regions.
    """
    if compound.domain.dimension > MAX_MAP_PARAMETERS:
        raise OptionError(
            f"{compound.domain.dimension} parameters at once ({', '.join(compound.domain.names)}); the map takes up to "
            f"{MAX_MAP_PARAMETERS}: leave some out, or take --method refine or a search"
        )
    return subdivide_cells(list(compound.programs), budget=budget, threads=threads, progress=progress)


def subdivide_cells(
    cells: list[CellProgram], *, budget: Budget | None = None, threads: int = 1, progress: Progress | None = None
) -> RegionSet:
    """As `subdivide`, for programs whose cells tile the unit square or cube."""
    watch = Watch(budget or Budget(), progress)
    table = CutTable(cells)
    parts: list[tuple[int, Block]] = []
    for number, cell in enumerate(cells):
        blocks = walk_cell(cell, table.cell(number), np.zeros(1, dtype=np.int64), table, watch, threads=threads)
        parts += [(number, block) for block in blocks]
    return assemble(cells, parts, table.cuts(), watch.stopped)


def walk_cell(
    cell: CellProgram, polytopes: Polytopes, origins: np.ndarray, table: CutRows, watch: "Watch", *, threads: int
) -> list[Block]:
    """Walk polytopes inside a knot cell, each called by a number of `origins`; add the cuts to the table.

    Many polytopes are walked through all layers at once. A few are first cut by the clip, which makes enough of them
    for several threads. The blocks that are returned do not depend on the number of threads.
    """
    neurons = int(cell.program.offsets[-1])
    clipped = _block(cell, len(table))
    is_many = len(polytopes) >= RUNS
    if cell.program.clipped and not is_many:
        _walk(cell, polytopes, origins, 1, clipped, watch, are_regions=False)
        table.add(cell.program, clipped)
        polytopes, origins = clipped.polytopes(), np.concatenate(clipped.origins)
    is_small = len(polytopes) * neurons < (SMALL_BOXES if is_many else SMALL)
    runs = np.array_split(np.arange(len(polytopes)), 1 if is_small else RUNS)
    work = [(cell, polytopes.take(run), origins[run], len(table), watch) for run in runs if len(run)]
    if not work:
        # A limit ended the clip before it had made a single piece: nothing is known of any of the polytopes.
        block = _block(cell, len(table))
        block.unfinished = clipped.unfinished
        return [block]
    if threads == 1:
        blocks = [_run(*item) for item in work]
    else:
        with ThreadPoolExecutor(threads) as pool:
            blocks = list(pool.map(lambda item: _run(*item), work))
    for block in blocks:
        if block.measured is not None and clipped.measured is not None:
            block.measured = block.measured.after(clipped.measured, 1.0 / len(blocks))
        block.unfinished = np.concatenate([block.unfinished, clipped.unfinished])
        table.renumber(block)
        table.add(cell.program, block)
    return blocks


class Watch:
    """Asks the budget and tells the progress, from any thread."""

    def __init__(self, budget: Budget, progress: Progress | None) -> None:
        self.budget, self.progress = budget, progress
        self.stopped: Stop | None = None
        self.volume = 0.0
        self.lock = threading.Lock()

    def add(self, volume: float, regions: int) -> None:
        """Count what has been done since the last time."""
        with self.lock:
            self.volume += volume
            self.budget.regions += regions
            if self.progress is not None:
                self.progress(self.volume, self.budget.regions)

    def goes_on(self) -> bool:
        """Whether the work that is left may be done; if not, the map is partial."""
        with self.lock:
            if self.stopped is None:
                self.stopped = self.budget.exhausted()
            return self.stopped is None


def _block(cell: CellProgram, base: int) -> Block:
    return Block(base, len(cell.low))


def _run(cell: CellProgram, polytopes: Polytopes, origins: np.ndarray, base: int, watch: Watch) -> Block:
    block = _block(cell, base)
    if watch.goes_on():
        _walk(cell, polytopes, origins, len(cell.program.offsets) - 3, block, watch)
    else:
        block.unfinished = origins
    return block


def _walk(
    cell: CellProgram,
    polytopes: Polytopes,
    origins: np.ndarray,
    last_layer: int,
    block: Block,
    watch: Watch,
    *,
    are_regions: bool = True,
) -> None:
    """Walk polytopes through the layers up to `last_layer`, appending to the block until the budget ends."""
    walk: SolidWalk | FlatWalk
    if isinstance(polytopes, Polyhedra):
        walk, nodes = SolidWalk(cell, polytopes, origins, block), SOLID_NODES
    else:
        walk = FlatWalk(cell, polytopes, origins, block)
        nodes = min(NODES, NODES_TIMES_NEURONS // int(cell.program.offsets[-1]) + 100)
    done = 0.0
    while True:
        code, regions = walk.advance(last_layer, nodes)
        if are_regions:
            watch.add(walk.volume - done, regions)
        done = walk.volume
        if code == kernels.DONE or not watch.goes_on():
            break
    walk.finish()
