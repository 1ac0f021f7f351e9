"""Subdivides the domain into all regions with volume: drives the compiled walks, in parallel, within a budget.

First the clip cuts every knot cell, in large networks with the next layers; runs of the resulting polytopes are then
walked through the classifier independently. The runs do not depend on the number of threads, so neither does the
result. A walk can also start from a box inside the domain, whose sides are known cuts.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..budget import Budget
from ..compound import CellProgram, Compound
from ..errors import InternalError, OptionError
from ..labels import Stop
from ..polytopes import Polytopes, box_polytopes, halve_boxes
from ..tolerances import AREA, MAX_MAP_PARAMETERS, UNIT
from .assemble import Block, CutRows, CutTable, assemble, cut_between
from .region import RegionSet, take_regions
from .walks import start_walk

RUNS = 16
"""Independent runs for each knot cell, if there is enough work (see SMALL)."""

SMALL = 1 << 21
"""A knot cell of a small network is walked in one run if its polytopes after the clip times neurons are fewer: this
takes milliseconds."""

LARGE = 4000
"""From this number of neurons on, a single polytope after the clip may contain hundreds of thousands of regions."""

SEEDS, DEEPEST = 64, 4
"""In large networks, the clip's polytopes are cut by further layers of the classifier, below layer DEEPEST of the
program, until there are SEEDS of them."""

SMALL_BOXES = 1 << 18
"""The limit for polytopes before the clip."""

_NO_CUTS = np.zeros((0, 3), dtype=np.int32)

Progress = Callable[[float, int], None]


def subdivide(
    compound: Compound, *, budget: Budget | None = None, threads: int = 1, progress: Progress | None = None
) -> RegionSet:
    """Split the domain of a compound network into its regions, in 1, 2 or 3 dimensions.

    Exact up to the tolerances; complete unless the budget ends first (`stopped` is then the reason). Calls `progress`
    with the share of the domain done and the number of regions.
    """
    if compound.domain.dimension > MAX_MAP_PARAMETERS:
        raise OptionError(
            f"received {compound.domain.dimension} parameters ({', '.join(compound.domain.names)}); a map takes up to "
            f"{MAX_MAP_PARAMETERS}: leave some out, or use --method refine or a search"
        )
    return subdivide_cells(list(compound.programs), budget=budget, threads=threads, progress=progress)


def subdivide_cells(
    cells: list[CellProgram], *, budget: Budget | None = None, threads: int = 1, progress: Progress | None = None
) -> RegionSet:
    """Like `subdivide`, for programs whose cells tile the unit square or cube."""
    watch = Watch(budget or Budget(), progress)
    table = CutTable(cells)
    parts: list[tuple[int, Block]] = []
    for number, cell in enumerate(cells):
        blocks = walk_cell(cell, table.cell(number), np.zeros(1, dtype=np.int64), table, watch, threads=threads)
        parts += [(number, block) for block in blocks]
    return assemble(cells, parts, table.cuts(), watch.stopped)


class BoxRegions(NamedTuple):
    """Regions inside boxes: box (R,) is the box of each region; complete (B,) marks the boxes that have all of their
    regions. The other boxes have none."""

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
    share: float = 1.0,
    threads: int = 1,
    progress: Progress | None = None,
) -> BoxRegions:
    """The regions inside boxes from low (B, D) to high (B, D), each in the box of its knot cell (B,), for D = 2 or 3.

    sides (B, D, 2) are the signed cuts of the boxes' sides in the table `cuts` (E, 3), which begins like a `CutTable`;
    cuts of neurons are numbered after it. Exact up to the tolerances; the regions of every complete box tile it. The
    order of the boxes and regions does not depend on the number of threads: it goes knot cell by knot cell, and within
    a cell along a curve on which consecutive boxes are close. `share` is the part of the budget's time to use.
    """
    cells = list(compound.programs)
    watch = Watch(budget or Budget(), progress, share)
    table = CutRows(cuts)
    order = np.lexsort((_along_curve(low, high), cell))
    parts: list[tuple[int, Block]] = []
    for number in np.unique(cell).tolist():
        chosen = order[cell[order] == number]
        for own, polytopes, origins in _in_cells(compound, number, chosen, low, high, sides, cuts):
            blocks = walk_cell(cells[own], polytopes, origins, table, watch, threads=threads)
            parts += [(own, block) for block in blocks]
    complete = np.ones(len(cell), dtype=bool)
    complete[np.concatenate([np.zeros(0, dtype=np.int64), *(block.unfinished for _, block in parts)])] = False
    regions = assemble(cells, parts, table.cuts(), watch.stopped)
    box = np.concatenate([np.zeros(0, dtype=np.int64), *(part for _, block in parts for part in block.origins)])
    if not complete.all():
        kept = np.flatnonzero(complete[box])
        regions, box = take_regions(regions, kept), box[kept]
    _check_tiling(regions.polytopes.volumes, box, complete, low, high)
    return BoxRegions(regions, box, complete)


def _in_cells(
    compound: Compound,
    number: int,
    chosen: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    sides: np.ndarray,
    cuts: np.ndarray,
) -> Iterator[tuple[int, Polytopes, np.ndarray]]:
    """The chosen boxes, all inside box `number` of the knot cells, as polytopes in its cell or in both of its halves.

    Yields the number of a cell, polytopes, and the number of the box of each.
    """
    halves = compound.perturbed.boxes[compound.cells[number].box]
    if len(halves) == 1:
        yield number, box_polytopes(low[chosen], high[chosen], sides[chosen]), chosen
        return
    lower, upper = (cell.index for cell in halves)
    form, cut = compound.corners[upper].side, cut_between(cuts, upper)[0]
    assert form is not None
    pieces, origin, is_above = halve_boxes(low[chosen], high[chosen], sides[chosen], form, cut)
    for own, is_own in ((lower, ~is_above), (upper, is_above)):
        if is_own.any():
            places = np.flatnonzero(is_own)
            yield own, pieces.take(places), chosen[origin[places]]


@dataclass(frozen=True, eq=False)
class CellRuns:
    """The independent runs of a knot cell after its clip.

    work: polytopes and origins of every run. clip: the block of the clip, whose cuts are the rows clip_cuts (C, 3),
    numbered from `first` + 1; cuts of the runs are numbered from `base` + 1.
    """

    cell: CellProgram
    work: list[tuple[Polytopes, np.ndarray]]
    clip: Block
    clip_cuts: np.ndarray
    first: int
    base: int

    def close(self, blocks: list[Block], table: CutRows) -> None:
        """Add the measures of the clip to the blocks of all runs, and the cuts of the runs to the table, in order."""
        before = self.clip.measured
        for block in blocks:
            if block.measured is not None and before is not None:
                block.measured = block.measured.after(before, 1.0 / len(blocks))
            if len(self.clip.unfinished):
                block.unfinished = np.concatenate([block.unfinished, self.clip.unfinished])
            table.renumber(block)
            table.add(block)


def clip_cell(
    cell: CellProgram, polytopes: Polytopes, table: CutRows, watch: "Watch", origins: np.ndarray | None = None
) -> CellRuns:
    """Divide polytopes inside a knot cell, each with its number in `origins`, into runs.

    Many polytopes are walked through all layers directly. If there are few, the clip cuts them first, and in large
    networks the next layers, which gives enough polytopes for several threads; the table receives these cuts.
    """
    origins = np.arange(len(polytopes)) if origins is None else origins
    offsets = cell.program.offsets
    first, clipped, cuts = len(table), _block(cell, len(table)), _NO_CUTS
    is_many, is_large = len(polytopes) >= RUNS, cell.program.clipped and int(offsets[-1] - offsets[2]) >= LARGE
    if cell.program.clipped and not is_many:
        last_layers = range(1, min(DEEPEST, len(offsets) - 3)) if is_large else [1]
        clipped = _clipped(cell, polytopes, origins, last_layers, len(table), watch)
        table.add(clipped)
        polytopes, origins = clipped.polytopes(), np.concatenate(clipped.origins)
        cuts = np.concatenate([_NO_CUTS, *clipped.cuts])
    if is_large and not is_many:
        is_small = len(polytopes) < SEEDS
    else:
        is_small = len(polytopes) * int(offsets[-1]) < (SMALL_BOXES if is_many else SMALL)
    work = _runs(polytopes, origins, 1 if is_small else RUNS) if len(polytopes) else []
    return CellRuns(cell, work, clipped, cuts, first, len(table))


def _clipped(
    cell: CellProgram,
    polytopes: Polytopes,
    origins: np.ndarray,
    last_layers: Sequence[int],
    base: int,
    watch: "Watch",
) -> Block:
    """Polytopes cut by all layers up to the first of `last_layers` that makes SEEDS of them, or else up to the last."""
    for last_layer in last_layers:
        block = _block(cell, base)
        _walk(cell, polytopes, origins, last_layer, block, watch, are_regions=False)
        if len(block.unfinished) or len(block) >= SEEDS:
            break
    if block.measured is not None:
        # The runs measure all layers again, so nothing beside a kink is counted twice.
        block.measured = block.measured._replace(beside=np.zeros_like(block.measured.beside))
    return block


def walk_cell(
    cell: CellProgram, polytopes: Polytopes, origins: np.ndarray, table: CutRows, watch: "Watch", *, threads: int
) -> list[Block]:
    """Walk polytopes inside a knot cell, each with its number in `origins`; add the cuts to the table.

    The returned blocks do not depend on the number of threads.
    """
    runs = clip_cell(cell, polytopes, table, watch, origins)
    if not runs.work:
        # A limit ended the clip before its first piece: no polytope was walked.
        block = _block(cell, len(table))
        block.unfinished = runs.clip.unfinished
        return [block]
    work = [(cell, *run, runs.base, watch) for run in runs.work]
    if threads == 1 or len(work) == 1:
        blocks = [_run(*item) for item in work]
    else:
        with ThreadPoolExecutor(threads) as pool, watch.ending_all():
            blocks = list(pool.map(lambda item: _run(*item), work))
    runs.close(blocks, table)
    return blocks


class Watch:
    """Checks the budget and reports progress, from any thread; `share` is the part of the time for walking.

    failed: whether an error or Ctrl-C ended the walk; then nothing is delivered.
    """

    def __init__(self, budget: Budget, progress: Progress | None, share: float = 1.0) -> None:
        self.budget, self.progress, self.share = budget, progress, share
        self.stopped: Stop | None = None
        self.failed = False
        self.volume = 0.0
        self.lock = threading.Lock()

    @contextmanager
    def ending_all(self) -> Iterator[None]:
        """A block in whose thread an error or Ctrl-C ends the walks of all other threads soon, too."""
        try:
            yield
        except BaseException as error:
            self.failed = True
            if isinstance(error, KeyboardInterrupt):
                self.budget.cancelled.set()  # for the labels of chunks
            raise

    def add(self, volume: float, regions: int) -> None:
        """Add the volume and the regions found since the last call."""
        with self.lock:
            self.volume += volume
            self.budget.regions += regions
            if self.progress is not None:
                self.progress(self.volume, self.budget.regions)

    def goes_on(self) -> bool:
        """Whether the budget allows more work; if not, the map is partial."""
        if self.failed:
            return False
        with self.lock:
            if self.stopped is None:
                self.stopped = self.budget.exhausted(self.share)
            return self.stopped is None


def _block(cell: CellProgram, base: int) -> Block:
    return Block(base, len(cell.low))


def _runs(polytopes: Polytopes, origins: np.ndarray, count: int) -> list[tuple[Polytopes, np.ndarray]]:
    """Consecutive runs of polytopes, at most `count`, each with its origins."""
    if count == 1:
        return [(polytopes, origins)]
    parts = np.array_split(np.arange(len(polytopes)), count)
    return [(polytopes.take(part), origins[part]) for part in parts if len(part)]


def _run(cell: CellProgram, polytopes: Polytopes, origins: np.ndarray, base: int, watch: Watch) -> Block:
    block = _block(cell, base)
    if watch.goes_on():
        with watch.ending_all():
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
    """Walk polytopes through the layers up to `last_layer` and append to the block until the budget ends."""
    walk, done = start_walk(cell, polytopes, origins, block), 0.0
    while True:
        is_done, regions = walk.advance(last_layer)
        if are_regions:
            watch.add(walk.volume - done, regions)
        else:
            block.drop_patterns()
        done = walk.volume
        if is_done or not watch.goes_on():
            break
    walk.finish()


def _along_curve(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """A sort key (B,) for boxes: the interleaved bits of their middles' coordinates."""
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
    """Raise InternalError unless the regions of every complete box add up to the box.

    The slack beyond AREA is for boxes that are small in the unit square: a side of a region is off by a few roundings
    of a coordinate, and at most as long (in three dimensions: as large) as all sides of the box together.
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
