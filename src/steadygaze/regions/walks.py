"""Walks polytopes through the layers of a program: makes, enlarges and empties the buffers of the compiled walks."""

import math
import threading
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from ..accuracy import WalkMeasures
from ..compound import CellProgram, Program
from ..errors import InternalError
from ..polytopes import Cut, Polygons, Polyhedra, Polytopes
from ..polytopes.polyhedra import widened
from ..polytopes.protocol import starts_of
from . import forms, kernels, solid_forms, solid_kernels
from .assemble import Block

CAPACITY, SOLID_CAPACITY = 4096, 2048
"""Capacity of the output buffers, in polygons and in polyhedra."""

STACK_ROOM = 4096
"""Initial room for vertices and facets on the stack, in addition to the polytopes to walk."""

SOLID_ROOM = 256
"""Initial room for vertices and facets of one polyhedron; a region of a real network has about ten."""

SPARE_BYTES = 1 << 23
"""The most memory of buffers that a thread keeps after a walk."""

NODES, SOLID_NODES = 20_000, 500
"""Polygons and polyhedra visited between two checks of the budget: this takes about ten milliseconds, and up to a tenth
of a second on convolutional networks."""

NODES_TIMES_NEURONS = 1 << 24
"""The limit for polygons times neurons: a tenth of a second if most polygons enter all layers."""


NEURON = int(Cut.NEURON)

_EMPTIED = np.array([kernels.CUTS, kernels.REGIONS, kernels.VERTICES, kernels.FACETS])
"""The counters of the entries in the output buffers."""


class LayerWalk(ABC):
    """One walk of polytopes, each with its number in `origins` (count,); appends the regions to a block."""

    walk: Any
    output: Any

    def __init__(self, cell: CellProgram, polytopes: Polytopes, origins: np.ndarray, block: Block) -> None:
        self.program, self.block = cell.program, block
        self.start(cell.root, polytopes, origins)

    @abstractmethod
    def start(self, root: np.ndarray, polytopes: Any, origins: np.ndarray) -> None:
        """Make `walk`, with the polytopes on the stack, the first one on top, and `output`."""

    @property
    @abstractmethod
    def nodes(self) -> int:
        """Polytopes to visit between two checks of the budget."""

    @abstractmethod
    def run(self, last_layer: int) -> int:
        """Run the compiled walk for a while; returns its code."""

    @abstractmethod
    def make_room(self, code: int) -> None:
        """Enlarge the buffers that the return code of the walk names."""

    @abstractmethod
    def written(self) -> Polytopes:
        """A copy of the shapes in the output buffers."""

    @property
    def volume(self) -> float:
        """The share of the unit square or cube that the regions cover so far."""
        return float(self.walk.sums[forms.VOLUME])

    def advance(self, last_layer: int) -> tuple[bool, int]:
        """Continue for a while; returns whether the walk is done, and the number of new regions."""
        code = self.run(last_layer)
        regions = int(self.walk.counters[kernels.REGIONS])
        self._flush(regions)
        self.make_room(code)
        return code == kernels.DONE, regions

    def finish(self) -> None:
        """Add the sums and measures of the walk to the block, and release the buffers."""
        walk = self.walk
        self.block.measured = self._measures()
        if walk.counters[kernels.HEIGHT]:
            self.block.unfinished = walk.stack[: walk.counters[kernels.HEIGHT], kernels.ORIGIN].copy()
        self.release()

    def release(self) -> None:
        """Release the buffers."""
        del self.walk, self.output

    def next_block(self) -> Block:
        """The block so far, with the measures of the walk up to now; the walk continues with an empty block."""
        found = self.block
        if found.measured is None:
            found.measured = self._measures()
        self.block = Block(found.base, found.coordinates)
        return found

    def _measures(self) -> WalkMeasures:
        walk, sums = self.walk, self.walk.sums
        return WalkMeasures(
            walk.peak.copy(), walk.missed.copy(), walk.beside.copy(), walk.most_drift.copy(),
            int(walk.counters[kernels.DEPTH]), float(sums[forms.SLIVERS]), int(sums[forms.SKIPPED]),
            float(sums[forms.GAP]), float(sums[forms.HOLES]),
        )  # fmt: skip

    def _flush(self, regions: int) -> None:
        """Move the content of the output buffers into the block; the numbering of cuts continues."""
        block, counters = self.block, self.walk.counters
        cuts = int(counters[kernels.CUTS])
        block.shapes.append(self.written())
        block.logits.append(self._take("logits", regions))
        block.packed.append(self._take("packed", regions))
        block.doubtful.append(self._take("doubtful", regions))
        block.origins.append(self._take("origin", regions))
        rows = self._take("cuts", cuts)
        rows[:, 0] = NEURON
        block.cuts.append(rows)
        counters[kernels.BASE] += cuts
        counters[_EMPTIED] = 0

    def _take(self, name: str, count: int) -> np.ndarray:
        """The first rows of an output buffer: a copy, or the buffer itself if it is at least half full."""
        buffer = getattr(self.output, name)
        if 2 * count < len(buffer):
            return buffer[:count].copy()
        self.output = self.output._replace(**{name: np.empty_like(buffer)})
        return buffer[:count]


def start_walk(cell: CellProgram, polytopes: Polytopes, origins: np.ndarray, block: Block) -> LayerWalk:
    """The walk for polytopes of either dimension."""
    kind = {Polygons.dimension: FlatWalk, Polyhedra.dimension: SolidWalk}[polytopes.dimension]
    return kind(cell, polytopes, origins, block)


class FlatWalk(LayerWalk):
    """A walk of polygons."""

    walk: forms.Walk
    output: kernels.Output

    @property
    def nodes(self) -> int:
        return min(NODES, NODES_TIMES_NEURONS // int(self.program.offsets[-1]) + 100)

    def start(self, root: np.ndarray, polytopes: Polygons, origins: np.ndarray) -> None:
        self.room = _SPARE.take(_key(self.program, polytopes)) or self._make_room_for(polytopes)
        self.walk, self.output = self.room.walk, self.room.output
        kernels.begin(
            self.program, self.walk, root, polytopes.points, polytopes.starts, polytopes.facets, origins,
            self.block.base,
        )  # fmt: skip

    def _make_room_for(self, polytopes: Polygons) -> "_Room":
        """New buffers for a walk of polygons."""
        program, count = self.program, len(polytopes.points)
        neurons, layers = int(program.offsets[-1]), len(program.offsets) - 1
        own: _Shapes = {
            "words": ((2, -(-neurons // 8)), np.uint64),
            "touched": ((neurons,), np.int32),
            "touched_count": ((layers,), np.int64),
            "is_touched": ((neurons,), np.uint8),
        }
        zeros, arrays = _arrays_of_zeros(_shared_shapes(program, 3) | own)
        active, code = arrays["words"].view(np.uint8)
        walk = forms.Walk(
            **arrays | {"active": active},
            code=code,
            candidates=_candidates(program),
            stack=np.empty((len(polytopes) + 256, 7), dtype=np.int64),
            x=np.empty(count + STACK_ROOM),
            y=np.empty(count + STACK_ROOM),
            edge=np.empty(count + STACK_ROOM, dtype=np.int64),
            here=np.empty((3, kernels.MAX_VERTICES)),
            here_edge=np.empty(kernels.MAX_VERTICES, dtype=np.int64),
        )
        output = kernels.Output(
            **_shared_output(program, 3, CAPACITY),
            points=np.empty((16 * CAPACITY, 2)),
            edge=np.empty(16 * CAPACITY, dtype=np.int64),
        )
        size = zeros.nbytes + sum(buffer.nbytes for buffer in output)
        return _Room(_key(program, polytopes), zeros, walk, output, size <= SPARE_BYTES)

    def release(self) -> None:
        # Keep only buffers of the initial size: with others, walks would pause elsewhere, and chunks end at pauses.
        if self.walk is self.room.walk:
            _SPARE.keep(self.room._replace(output=self.output))
        super().release()

    def run(self, last_layer: int) -> int:
        return kernels.advance(self.program, self.walk, self.output, last_layer, self.nodes)

    def _flush(self, regions: int) -> None:
        if 2 * regions >= CAPACITY:
            super()._flush(regions)
            return
        # The arrays of a few hundred regions are small: many calls would take longer than the copies.
        block, output, counters = self.block, self.output, self.walk.counters
        cuts, vertices = int(counters[kernels.CUTS]), int(counters[kernels.VERTICES])
        starts, points = np.empty(regions + 1, np.int64), np.empty((vertices, 2))
        edge, logits = np.empty(vertices, np.int64), np.empty((regions, *output.logits.shape[1:]))
        packed, doubtful = np.empty((regions, output.packed.shape[1]), np.uint8), np.empty(regions, np.uint8)
        origins, rows = np.empty(regions, np.int64), np.empty((cuts, 3), np.int32)
        kernels.take_output(
            output, counters, NEURON, starts, points, edge, logits, packed, doubtful, origins, rows
        )  # fmt: skip
        block.shapes.append(Polygons(points, starts, edge))
        block.logits.append(logits)
        block.packed.append(packed)
        block.doubtful.append(doubtful)
        block.origins.append(origins)
        block.cuts.append(rows)

    def make_room(self, code: int) -> None:
        if code != kernels.NEED_STACK:
            return
        if self.walk.stack[self.walk.counters[kernels.HEIGHT] - 1, 2] + 1 > kernels.MAX_VERTICES:
            raise InternalError(f"a region has more than {kernels.MAX_VERTICES} vertices: please report the model")
        self.walk = _enlarged(self.walk, ("stack", "candidates", "x", "y", "edge"))

    def written(self) -> Polygons:
        output, counters = self.output, self.walk.counters
        vertices = int(counters[kernels.VERTICES])
        starts = starts_of(output.vertices[: counters[kernels.REGIONS]])
        return Polygons(output.points[:vertices].copy(), starts, output.edge[:vertices].copy())


class SolidWalk(LayerWalk):
    """A walk of polyhedra."""

    walk: solid_forms.SolidState
    output: solid_kernels.SolidOutput

    @property
    def nodes(self) -> int:
        return SOLID_NODES

    def start(self, root: np.ndarray, polytopes: Polyhedra, origins: np.ndarray) -> None:
        if len(polytopes) > 1:
            # The walk starts with the last polytope on the stack: reverse them to keep their order.
            polytopes, origins = polytopes.take(np.arange(len(polytopes))[::-1]), origins[::-1]
        stack = np.empty((len(polytopes) + 256, 9), dtype=np.int64)
        own = stack[: len(polytopes)]
        own[...] = 0
        own[:, 1], own[:, 2], own[:, 3] = polytopes.starts[:-1], np.diff(polytopes.starts), -1
        own[:, kernels.ORIGIN] = origins
        own[:, 7], own[:, 8] = polytopes.facet_starts[:-1], np.diff(polytopes.facet_starts)
        most = max(SOLID_ROOM, int(own[:, [2, 8]].max(initial=0)))
        self.walk = solid_forms.SolidState(
            **_arrays_of_zeros(_shared_shapes(self.program, 4))[1],
            fed_active=np.zeros(int(self.program.offsets[-1]), dtype=np.uint8),
            code=np.zeros(int(self.program.offsets[-1]), dtype=np.uint8),
            candidates=_candidates(self.program),
            stack=stack,
            points=_padded(polytopes.points, STACK_ROOM),
            incidence=_padded(polytopes.incidence, STACK_ROOM),
            facets=_padded(polytopes.facets, STACK_ROOM),
            here=np.zeros((most, 3)),
            here_incidence=np.zeros((most, polytopes.incidence.shape[1]), dtype=np.uint64),
            here_facets=np.zeros(most, dtype=np.int64),
            value=np.zeros(most),
            order=np.zeros(most, dtype=np.int64),
            angle=np.zeros(most),
            rank=np.zeros((2, most), dtype=np.int64),
            pairs=np.zeros((2, most), dtype=np.int64),
        )
        self.walk.forms[:, : root.shape[1]] = root
        self.walk.versions[forms.FED_FROM] = -1
        self.walk.prints[...] = self.program.prints
        self.walk.counters[kernels.BASE] = self.block.base
        self.walk.counters[kernels.HEIGHT] = len(polytopes)
        self._empty_output()

    def run(self, last_layer: int) -> int:
        return solid_kernels.advance(self.program, self.walk, self.output, last_layer, self.nodes)

    def make_room(self, code: int) -> None:
        walk = self.walk
        if code == solid_kernels.BROKEN:
            raise InternalError("a plane that should cut a region misses it: please report this model and image")
        if code in (kernels.DONE, kernels.PAUSED):
            return
        if code == kernels.NEED_STACK:
            names = ("stack", "candidates", "points", "incidence", "facets", "here", "here_incidence", "here_facets",
                     "value", "order", "angle")  # fmt: skip
            pairs = np.zeros((2, 2 * walk.pairs.shape[1]), dtype=np.int64)
            self.walk = _enlarged(walk, names)._replace(rank=pairs.copy(), pairs=pairs)
        if code == solid_kernels.NEED_WORDS:
            words = 2 * walk.incidence.shape[1]
            self.walk = walk._replace(
                incidence=widened(walk.incidence, words), here_incidence=widened(walk.here_incidence, words)
            )
        self._empty_output(largest=int(walk.stack[walk.counters[kernels.HEIGHT] - 1, [2, 8]].max()))

    def written(self) -> Polyhedra:
        output, counters = self.output, self.walk.counters
        regions, vertices, facets = (int(counters[i]) for i in (kernels.REGIONS, kernels.VERTICES, kernels.FACETS))
        return Polyhedra(
            output.points[:vertices].copy(),
            starts_of(output.vertices[:regions]),
            output.facets[:facets].copy(),
            starts_of(output.facet_counts[:regions]),
            output.incidence[:vertices].copy(),
        )

    def _empty_output(self, largest: int = 0) -> None:
        """Make output buffers; `largest` is the largest number of vertices or facets of one region."""
        room = 16 * SOLID_CAPACITY + largest
        self.output = solid_kernels.SolidOutput(
            **_shared_output(self.program, 4, SOLID_CAPACITY),
            facet_counts=np.empty(SOLID_CAPACITY, dtype=np.int64),
            points=np.empty((room, 3)),
            incidence=np.empty((room, self.walk.incidence.shape[1]), dtype=np.uint64),
            facets=np.empty(room, dtype=np.int64),
        )


_Shapes = dict[str, tuple[tuple[int, ...], type]]
"""Shapes and dtypes of arrays by their names."""


def _shared_shapes(program: Program, rows: int) -> _Shapes:
    """The arrays of forms and patterns, in both kinds of walks, that start with zeros."""
    neurons, layers, widest = int(program.offsets[-1]), len(program.offsets) - 1, _widest(program)
    return {
        "forms": ((rows, neurons), np.float64),
        "fed": ((rows, neurons), np.float64),
        "versions": ((3, layers), np.int64),
        "active": ((neurons,), np.uint8),
        "packed": ((int(program.byte_start[-1]),), np.uint8),
        "unstable": ((neurons,), np.int32),
        "unstable_count": ((layers,), np.int64),
        "open_count": ((layers,), np.int64),
        "box": ((3, 3), np.float64),
        "prints": (program.prints.shape, np.uint64),
        "is_printed": ((layers,), np.uint8),
        "fed_prints": ((int(program.print_stages[:, 3].sum()),), np.uint64),
        "scratch": ((rows, widest), np.float64),
        "peak": ((neurons,), np.float64),
        "missed": ((neurons,), np.float64),
        "beside": ((2, neurons), np.float64),
        "drift": ((2, layers), np.float64),
        "most_drift": ((2, layers), np.float64),
        "columns": ((2, widest), np.int64),
        "doubts": ((4, layers), np.int64),
        "counters": ((7,), np.int64),
        "sums": ((5,), np.float64),
    }


def _widest(program: Program) -> int:
    return int((program.offsets[1:] - program.offsets[:-1]).max())


def _candidates(program: Program) -> np.ndarray:
    return np.empty(16 * _widest(program) + 4096, dtype=np.int32)


def _arrays_of_zeros(shapes: _Shapes) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """One block of zeros, and arrays that are views into it."""
    words = {name: -(-math.prod(shape) * np.dtype(kind).itemsize // 8) for name, (shape, kind) in shapes.items()}
    block, start = np.zeros(sum(words.values())), 0
    arrays: dict[str, np.ndarray] = {}
    for name, (shape, kind) in shapes.items():
        arrays[name] = block[start : start + words[name]].view(kind)[: math.prod(shape)].reshape(shape)
        start += words[name]
    return block, arrays


_Key = tuple[bytes, bytes, int, int]


def _key(program: Program, polytopes: Polygons) -> _Key:
    """A key that is equal for programs and polygons that need buffers of the same shapes."""
    return program.offsets.tobytes(), program.print_stages.tobytes(), len(polytopes), len(polytopes.points)


class _Room(NamedTuple):
    """The buffers of a walk of polygons, for programs and polygons with one key; `zeros` is the block that holds all
    arrays that start with zeros."""

    key: _Key
    zeros: np.ndarray
    walk: forms.Walk
    output: kernels.Output
    is_small: bool


class _Spare(threading.local):
    """The buffers of a thread's last walk, reused by its next one: new ones would cost as much as a small walk."""

    room: _Room | None = None

    def take(self, key: _Key) -> _Room | None:
        """The buffers, reset, if they have this key."""
        room, self.room = self.room, None
        if room is None or room.key != key:
            return None
        room.zeros.fill(0.0)
        return room

    def keep(self, room: _Room) -> None:
        """Keep small buffers."""
        if room.is_small:
            self.room = room


_SPARE = _Spare()


def _shared_output(program: Program, rows: int, capacity: int) -> dict[str, np.ndarray]:
    """Empty buffers that both walks fill."""
    return {
        "vertices": np.empty(capacity, dtype=np.int64),
        "logits": np.empty((capacity, rows, int(program.offsets[-1] - program.offsets[-2]))),
        "packed": np.empty((capacity, program.byte_start[-1]), dtype=np.uint8),
        "doubtful": np.empty(capacity, dtype=np.uint8),
        "cuts": np.empty((4 * capacity, 3), dtype=np.int32),
        "origin": np.empty(capacity, dtype=np.int64),
    }


def _padded(array: np.ndarray, more: int) -> np.ndarray:
    """The array with room for more rows."""
    padded = np.empty((len(array) + more, *array.shape[1:]), dtype=array.dtype)
    padded[: len(array)] = array
    return padded


def _enlarged(walk: Any, names: tuple[str, ...]) -> Any:
    """The same walk with twice the room in the named arrays."""
    return walk._replace(**{name: _padded(getattr(walk, name), len(getattr(walk, name))) for name in names})
