"""Walks polygons through the layers of a program: the buffers of the compiled walk, and how they grow and empty."""

import numpy as np

from ..accuracy import WalkMeasures
from ..compound import CellProgram, Program
from ..errors import InternalError
from . import kernels
from .assemble import Block
from .forms import FED_FROM, Walk
from .kernels import Output
from .region import Polygons

CAPACITY = 4096


class FlatWalk:
    """One walk of polygons, each called by a number of `origins` (count,); what it finds is appended to a block."""

    def __init__(self, cell: CellProgram, polygons: Polygons, origins: np.ndarray, block: Block) -> None:
        self.program, self.block = cell.program, block
        self.walk, self.output = _start(cell.program, cell.root, polygons, origins), _room(cell.program)
        self.walk.counters[kernels.BASE] = block.base

    @property
    def volume(self) -> float:
        """The share of the unit square that has been delivered."""
        return float(self.walk.sums[kernels.AREA])

    def advance(self, last_layer: int, nodes: int) -> tuple[int, int]:
        """Walk on for a while; returns the kernel's code, and the number of regions that were found."""
        code = kernels.advance(self.program, self.walk, self.output, last_layer, nodes)
        regions = int(self.walk.counters[kernels.REGIONS])
        _flush(self.walk, self.output, self.block, regions)
        if code == kernels.NEED_STACK:
            if self.walk.stack[self.walk.counters[kernels.HEIGHT] - 1, 2] + 1 > kernels.MAX_VERTICES:
                raise InternalError(f"a region with more than {kernels.MAX_VERTICES} vertices: please report the model")
            self.walk = _enlarged(self.walk)
        return code, regions

    def finish(self) -> None:
        """Hand over what was added up on the way."""
        walk = self.walk
        self.block.measured = WalkMeasures(
            walk.peak, walk.missed, walk.beside, walk.most_drift, int(walk.counters[kernels.DEPTH]),
            float(walk.sums[kernels.SLIVERS]), int(walk.sums[kernels.SKIPPED]),
        )  # fmt: skip
        self.block.unfinished = walk.stack[: walk.counters[kernels.HEIGHT], 5].copy()


def _start(program: Program, root: np.ndarray, polygons: Polygons, origins: np.ndarray) -> Walk:
    neurons, layers = int(program.offsets[-1]), len(program.offsets) - 1
    widest = int(np.diff(program.offsets).max())
    count = len(polygons)
    vertices = len(polygons.points)
    forms = np.zeros((3, neurons))
    forms[:, : root.shape[1]] = root
    stack = np.zeros((count + 256, 7), dtype=np.int64)
    # The last polygon of the stack is walked first: reverse, so that the regions keep the order of the polygons.
    reverse = polygons.take(np.arange(count)[::-1])
    stack[:count, 1], stack[:count, 2], stack[:count, 3] = reverse.starts[:-1], np.diff(reverse.starts), -1
    stack[:count, 5] = origins[::-1]
    room = vertices + 4096
    x, y, edge = np.empty(room), np.empty(room), np.empty(room, dtype=np.int64)
    x[:vertices], y[:vertices], edge[:vertices] = reverse.points[:, 0], reverse.points[:, 1], reverse.edges
    bits = np.zeros((2, 8 * -(-neurons // 8)), dtype=np.uint8)
    peak = np.zeros(neurons)
    peak[: root.shape[1]] = np.abs(root).sum(axis=0)
    versions = np.zeros((3, layers), dtype=np.int64)
    versions[FED_FROM] = -1
    counters = np.zeros(6, dtype=np.int64)
    counters[kernels.HEIGHT] = count
    return Walk(
        forms=forms,
        fed=np.zeros((3, neurons)),
        versions=versions,
        active=bits[0],
        packed=np.zeros(program.byte_start[-1], dtype=np.uint8),
        unstable=np.zeros(neurons, dtype=np.int32),
        unstable_count=np.zeros(layers, dtype=np.int64),
        scratch=np.zeros((3, widest)),
        peak=peak,
        missed=np.zeros(neurons),
        beside=np.zeros((2, neurons)),
        drift=np.zeros((2, layers)),
        most_drift=np.zeros((2, layers)),
        columns=np.zeros((2, widest), dtype=np.int64),
        code=bits[1],
        words=bits.view(np.uint64),
        touched=np.zeros(neurons, dtype=np.int32),
        touched_count=np.zeros(layers, dtype=np.int64),
        is_touched=np.zeros(neurons, dtype=np.uint8),
        doubts=np.zeros((2, layers), dtype=np.int64),
        stack=stack,
        x=x,
        y=y,
        edge=edge,
        candidates=np.empty(16 * widest + 4096, dtype=np.int32),
        here=np.zeros((3, kernels.MAX_VERTICES)),
        here_edge=np.zeros(kernels.MAX_VERTICES, dtype=np.int64),
        counters=counters,
        sums=np.zeros(3),
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
        origin=np.empty(CAPACITY, dtype=np.int64),
    )


def _flush(walk: Walk, output: Output, block: Block, regions: int) -> None:
    """Move what the output buffers hold into the block; cuts go on counting."""
    cuts, vertices = int(walk.counters[kernels.CUTS]), int(walk.counters[kernels.VERTICES])
    block.vertices.append(output.vertices[:regions].copy())
    block.logits.append(output.logits[:regions].copy())
    block.packed.append(output.packed[:regions].copy())
    block.doubtful.append(output.doubtful[:regions].copy())
    block.points.append(np.stack([output.x[:vertices], output.y[:vertices]], axis=1))
    block.sides.append(output.edge[:vertices].copy())
    block.cuts.append(output.cuts[:cuts].copy())
    block.origins.append(output.origin[:regions].copy())
    walk.counters[kernels.BASE] += cuts
    walk.counters[[kernels.CUTS, kernels.REGIONS, kernels.VERTICES]] = 0
