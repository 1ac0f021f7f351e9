"""Walks polyhedra through the layers of a program: the buffers of the compiled walk, and how they grow and empty."""

import numpy as np

from ..accuracy import WalkMeasures
from ..compound import CellProgram, Program
from ..errors import InternalError
from . import solid_kernels as kernels
from .assemble import Block
from .forms import FED_FROM
from .polyhedra import Polyhedra, widened
from .solid_forms import ROWS, Walk
from .solid_kernels import Output

CAPACITY = 2048
ROOM = 4096
"""Vertices and facets on the stack that there is room for at first, beside the polyhedra to be walked."""

MOST = 256
"""Vertices and facets of one polyhedron that there is room for at first; a region of a real network has about ten."""


class SolidWalk:
    """One walk of polyhedra, each called by a number of `origins` (count,); what it finds is appended to a block."""

    def __init__(self, cell: CellProgram, polyhedra: Polyhedra, origins: np.ndarray, block: Block) -> None:
        self.program, self.block = cell.program, block
        self.walk = _start(cell.program, cell.root, polyhedra, origins)
        self.output = _room(cell.program, self.walk.incidence.shape[1])
        self.walk.counters[kernels.BASE] = block.base

    @property
    def volume(self) -> float:
        """The share of the unit cube that has been delivered."""
        return float(self.walk.sums[kernels.VOLUME])

    def advance(self, last_layer: int, nodes: int) -> tuple[int, int]:
        """Walk on for a while; returns the kernel's code, and the number of regions that were found."""
        code = kernels.advance(self.program, self.walk, self.output, last_layer, nodes)
        regions = int(self.walk.counters[kernels.REGIONS])
        self._flush(regions)
        if code == kernels.BROKEN:
            raise InternalError("a plane that should cut a region misses it: please report this model and image")
        if code == kernels.NEED_STACK:
            self.walk = _enlarged(self.walk)
        if code == kernels.NEED_WORDS:
            words = 2 * self.walk.incidence.shape[1]
            self.walk = self.walk._replace(
                incidence=widened(self.walk.incidence, words), here_incidence=widened(self.walk.here_incidence, words)
            )
        if code in (kernels.NEED_WORDS, kernels.NEED_STACK, kernels.NEED_OUTPUT):
            top = int(self.walk.counters[kernels.HEIGHT]) - 1
            largest = int(max(self.walk.stack[top, 2], self.walk.stack[top, 4]))
            self.output = _room(self.program, self.walk.incidence.shape[1], largest)
        return code, regions

    def finish(self) -> None:
        """Hand over what was added up on the way."""
        walk = self.walk
        self.block.measured = WalkMeasures(
            walk.peak, walk.missed, walk.beside, walk.most_drift, int(walk.counters[kernels.DEPTH]),
            float(walk.sums[kernels.SLIVERS]), int(walk.sums[kernels.SKIPPED]), float(walk.sums[kernels.GAP]),
            float(walk.sums[kernels.HOLES]),
        )  # fmt: skip
        self.block.unfinished = walk.stack[: walk.counters[kernels.HEIGHT], 7].copy()

    def _flush(self, regions: int) -> None:
        """Move what the output buffers hold into the block; cuts go on counting."""
        output, block, counters = self.output, self.block, self.walk.counters
        cuts, vertices, facets = (int(counters[i]) for i in (kernels.CUTS, kernels.VERTICES, kernels.FACETS))
        block.vertices.append(output.vertices[:regions].copy())
        block.facet_counts.append(output.facet_counts[:regions].copy())
        block.logits.append(output.logits[:regions].copy())
        block.packed.append(output.packed[:regions].copy())
        block.doubtful.append(output.doubtful[:regions].copy())
        block.points.append(output.points[:vertices].copy())
        block.incidence.append(output.incidence[:vertices].copy())
        block.sides.append(output.facets[:facets].copy())
        block.cuts.append(output.cuts[:cuts].copy())
        block.origins.append(output.origin[:regions].copy())
        counters[kernels.BASE] += cuts
        counters[[kernels.CUTS, kernels.REGIONS, kernels.VERTICES, kernels.FACETS]] = 0


def _start(program: Program, root: np.ndarray, polyhedra: Polyhedra, origins: np.ndarray) -> Walk:
    neurons, layers = int(program.offsets[-1]), len(program.offsets) - 1
    widest = int(np.diff(program.offsets).max())
    forms = np.zeros((ROWS, neurons))
    forms[:, : root.shape[1]] = root
    # The last polyhedron of the stack is walked first: reverse, so that the regions keep the order of the polyhedra.
    reverse = polyhedra.take(np.arange(len(polyhedra))[::-1])
    counters = np.zeros(7, dtype=np.int64)
    counters[kernels.HEIGHT] = len(reverse)
    versions = np.zeros((3, layers), dtype=np.int64)
    versions[FED_FROM] = -1
    most = max(MOST, *(int(np.diff(starts).max(initial=0)) for starts in (reverse.starts, reverse.facet_starts)))
    words = reverse.incidence.shape[1]
    return Walk(
        forms=forms,
        fed=np.zeros((ROWS, neurons)),
        fed_active=np.zeros(neurons, dtype=np.uint8),
        versions=versions,
        active=np.zeros(neurons, dtype=np.uint8),
        packed=np.zeros(program.byte_start[-1], dtype=np.uint8),
        unstable=np.zeros(neurons, dtype=np.int32),
        unstable_count=np.zeros(layers, dtype=np.int64),
        scratch=np.zeros((ROWS, widest)),
        peak=np.zeros(neurons),
        missed=np.zeros(neurons),
        beside=np.zeros((2, neurons)),
        drift=np.zeros((2, layers)),
        most_drift=np.zeros((2, layers)),
        columns=np.zeros((2, widest), dtype=np.int64),
        doubts=np.zeros((2, layers), dtype=np.int64),
        stack=_stack(reverse, origins[::-1]),
        points=_padded(reverse.points, ROOM),
        incidence=_padded(reverse.incidence, ROOM),
        facets=_padded(reverse.facets, ROOM),
        candidates=np.empty(16 * widest + 4096, dtype=np.int32),
        here=np.zeros((most, 3)),
        here_incidence=np.zeros((most, words), dtype=np.uint64),
        here_facets=np.zeros(most, dtype=np.int64),
        value=np.zeros(most),
        order=np.zeros(most, dtype=np.int64),
        angle=np.zeros(most),
        rank=np.zeros((2, most), dtype=np.int64),
        pairs=np.zeros((2, most), dtype=np.int64),
        counters=counters,
        sums=np.zeros(5),
    )


def _stack(polyhedra: Polyhedra, origins: np.ndarray) -> np.ndarray:
    """A stack that holds the polyhedra, none of which has entered its layer."""
    stack = np.zeros((len(polyhedra) + 256, 9), dtype=np.int64)
    own = stack[: len(polyhedra)]
    own[:, 1], own[:, 2] = polyhedra.starts[:-1], np.diff(polyhedra.starts)
    own[:, 3], own[:, 4] = polyhedra.facet_starts[:-1], np.diff(polyhedra.facet_starts)
    own[:, 5] = -1
    own[:, 7] = origins
    return stack


def _padded(array: np.ndarray, more: int) -> np.ndarray:
    return np.concatenate([array, np.zeros((more, *array.shape[1:]), dtype=array.dtype)])


def _enlarged(walk: Walk) -> Walk:
    """The same walk with twice the room for the stack and for one polyhedron."""
    one_row = ("stack", "points", "incidence", "facets", "candidates", "here", "here_incidence", "here_facets",
               "value", "order", "angle")  # fmt: skip
    longer = {name: _padded(getattr(walk, name), len(getattr(walk, name))) for name in one_row}
    longer |= {name: np.zeros((2, 2 * getattr(walk, name).shape[1]), dtype=np.int64) for name in ("rank", "pairs")}
    return walk._replace(**longer)


def _room(program: Program, words: int, largest: int = 0) -> Output:
    """Empty output buffers; `largest` is the number of vertices or facets that one region may have."""
    classes = int(program.offsets[-1] - program.offsets[-2])
    room = 16 * CAPACITY + largest
    return Output(
        vertices=np.empty(CAPACITY, dtype=np.int64),
        facet_counts=np.empty(CAPACITY, dtype=np.int64),
        logits=np.empty((CAPACITY, ROWS, classes)),
        packed=np.empty((CAPACITY, program.byte_start[-1]), dtype=np.uint8),
        points=np.empty((room, 3)),
        incidence=np.empty((room, words), dtype=np.uint64),
        facets=np.empty(room, dtype=np.int64),
        doubtful=np.empty(CAPACITY, dtype=np.uint8),
        cuts=np.empty(4 * CAPACITY, dtype=np.int64),
        origin=np.empty(CAPACITY, dtype=np.int64),
    )
