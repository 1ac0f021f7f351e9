"""The tiling of a large map: its regions lie in chunks on disk, and every answer takes one pass over the chunks."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...boundary import Boundary, refuse_boundary
from ...budget import Budget
from ...errors import StoreError
from ...labels import Property, Stop
from ...properties.joint import Shares, add_cells
from ...properties.ties import add_volumes
from ...question import Question
from ...regions.forward_error import forward_errors, kink_share
from ...regions.patterns import PatternTable, distinct_rows
from ...results.answer import Answers, round_up
from ...results.array_file import read_arrays
from ...results.arrays import ACCURACY_ARRAYS, SHAPES, read_accuracy, shaped
from ...results.claims import Claim, Violation, Visible
from ...results.export import Block, Part, region_part
from ...results.label_grid import LabelGrid
from ...results.other_deltas import cells_at, coarse_cells_at
from ...results.result import Result
from ...results.streamed_answer import ChunkFacts, StreamedAnswer, chunk_facts
from ...results.tiling import MAP, TileLabels, Tiling, region_tiles
from ...results.view import NumberedRegions, Region, Regions
from .chunk_boundary import ChunkComponents, LoadedChunk, chunk_components, chunked_boundary, shared_cuts
from .chunk_files import ChunkFiles, restore_files
from .whole_map import map_guarantee

INDEX = ("cells", *ACCURACY_ARRAYS)
"""The arrays that describe all chunks together."""


@dataclass(frozen=True, eq=False)
class StreamedMap(Tiling[StreamedAnswer]):
    """All regions of the domain, or those found before a limit, in chunks on disk.

    Caches by δ: known (facts of all chunks), grids, and cells (volumes (3, 3) of all regions). budget: that of the run
    that made the map; once it is over, as few chunks as possible are loaded.
    """

    kind = method = "map"
    boxes = answers = None

    question: Question
    chunks: ChunkFiles
    stopped: Stop | None
    known: dict[float, Sequence[ChunkFacts]] = field(default_factory=dict)
    grids: dict[float, LabelGrid] = field(default_factory=dict)
    cells: dict[float, np.ndarray] = field(default_factory=dict)
    budget: Budget | None = None

    def answer(self, delta: float) -> StreamedAnswer:
        if delta not in self.known:
            self.known[delta] = self._each(lambda answers: chunk_facts(answers.at(delta)))
        return StreamedAnswer(
            self.question.compound,
            delta,
            self.known[delta],
            lambda number: self.chunks.load(number).at(delta),
            self.chunks.touching,
            self.chunks.accuracy,
            self._kinks,
            self.stopped is not None,
            lambda: self._painted(delta),
            self.budget,
        )

    def _painted(self, delta: float) -> LabelGrid:
        """Labels at the points of a grid, for pictures."""
        if delta not in self.grids:
            grid = LabelGrid(self.question.compound)
            self._each(lambda answers: grid.paint(answers.at(delta)))
            self.grids[delta] = grid
        return self.grids[delta]

    def _each(self, ask: Callable[[Answers], Any]) -> list[Any]:
        """Call `ask` with every chunk and return the answers in order; no chunk stays in memory."""
        return self._each_number(lambda number: ask(self.chunks.load_with_ids(number, is_kept=False)[0]))

    def _each_number(self, ask: Callable[[int], Any]) -> list[Any]:
        """Call `ask` with the number of every chunk, in several threads, and return the answers in order."""
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            return list(pool.map(ask, range(len(self.chunks))))

    @cached_property
    def _kinks(self) -> float:
        compound, accuracy = self.question.compound, self.chunks.accuracy
        return kink_share(compound, accuracy, forward_errors(compound, accuracy))

    @property
    def polytope_count(self) -> int:
        """The number of polytopes in all chunks; without windows, this is the number of regions."""
        return int(self.chunks.first[-1])

    @cached_property
    def region_count(self) -> int:
        """The number of regions, by patterns if the network has windows (see `RegionSet.pattern_count`)."""
        if self.question.compound.graph.is_plain:
            return self.polytope_count
        return int(self.answer(self._delta).counts.sum())

    def shares_at(self, deltas: Sequence[float]) -> list[Shares]:
        rest, slivers = self.answer(self._delta).rest, self.answer(self._delta).slivers
        missing = [delta for delta in deltas if delta not in self.cells]
        if missing:
            found = np.sum(self._each(lambda answers: cells_at(answers, missing)), axis=0)
            self.cells.update(zip(missing, found, strict=True))
        return [add_cells([self.cells[delta], rest], slivers) for delta in deltas]

    def coarse_shares_at(self, deltas: np.ndarray) -> list[Shares]:
        rest, slivers = self.answer(self._delta).rest, self.answer(self._delta).slivers
        found = np.sum(self._each(lambda answers: coarse_cells_at(answers, deltas)), axis=0)
        return [add_cells([cells, rest], slivers) for cells in found]

    @property
    def knows_other_deltas(self) -> bool:
        return all(limit in self.cells for limit in self.question.marks.values())

    @property
    def is_measured(self) -> bool:
        return self.question.measures_regions

    @property
    def _delta(self) -> float:
        return self.question.own_limit

    @cached_property
    def enough_delta(self) -> float | None:
        if not self.is_measured:
            return None
        largest = max(facts.largest for facts in self.answer(self._delta).facts)
        return round_up(largest) if self.stopped is None and math.isfinite(largest) else None

    def _find_ties(self, budget: Budget | None) -> tuple[float, float] | None:
        part = 1.0 / max(1, len(self.chunks))
        volumes = self._each(lambda answers: replace(answers, budget=budget).tie_volumes(part))
        found = [own for own in volumes if own is not None]
        own = self.answer(self._delta)
        return add_volumes(found).bounds(missing=float(own.rest.sum()), slack=own.slivers)

    def regions(self, answer: StreamedAnswer) -> Sequence[Region]:
        return StreamedRegions(self, answer)

    def region_at(self, theta: ArrayLike) -> int | None:
        point = self.question.compound.to_unit(np.asarray(theta, dtype=np.float64)[None])[0]
        for number in self.chunks.touching(np.stack([point, point])):
            found = self.chunks.load(number).regions.polytopes.deepest(point)
            if found is not None:
                return int(self.chunks.first[number]) + found
        return None

    def pattern(self, region: int) -> np.ndarray | None:
        number, own = self.chunks.chunk_of(region)
        found = self.chunks.load(number).regions
        return found.patterns[found.pattern[own]]

    def boundary(self, answer: StreamedAnswer, wanted: Property) -> Boundary:
        compound = self.question.compound
        refuse_boundary(compound, self.stopped)
        ids = self._each_number(lambda number: self.chunks.load_with_ids(number, is_kept=False)[1])
        shared = shared_cuts(ids)
        del ids

        def components(number: int) -> ChunkComponents:
            answers, own = self.chunks.load_with_ids(number, is_kept=False)
            chunk = LoadedChunk(answers.at(answer.delta).joint, own)
            return chunk_components(compound, chunk, int(self.chunks.first[number]), wanted, shared)

        parts = self._each_number(components)
        return chunked_boundary(compound, parts, wanted, shared, lambda number: answer.load(number).joint)

    def claims(self, answer: StreamedAnswer, kind: Violation, visible: Visible) -> Iterator[Claim]:
        return answer.claims(kind, visible)

    def guarantee(self, result: Result) -> str:
        return map_guarantee(result)

    def tiles(self, answer: StreamedAnswer) -> TileLabels:
        return TileLabels.join(self._each(lambda answers: region_tiles(answers.at(answer.delta))))

    @property
    def tile_patterns(self) -> np.ndarray:
        found = self._each(lambda answers: (answers.regions.pattern, _digests(answers.regions.patterns)))
        numbers, _ = distinct_rows([digests for _, digests in found])
        first = np.cumsum([0, *(len(digests) for _, digests in found)])
        return np.concatenate([numbers[start + own] for start, (own, _) in zip(first, found, strict=False)])

    def parts(self, answer: StreamedAnswer, what: str) -> tuple[Part, ...]:
        counts = [facts.regions if what == "regions" else facts.pieces for facts in answer.facts]
        return tuple(
            Part(count, _Rows(answer, what, number, int(self.chunks.first[number])).make)
            for number, count in enumerate(counts)
        )

    def arrays(self) -> dict[str, np.ndarray]:
        return self.chunks.arrays()

    def write(self, folder: Path) -> None:
        super().write(folder)
        self.chunks.copy_to(folder)

    @property
    def numbers(self) -> dict[str, Any]:
        stored = [file.stored(number) for number, file in enumerate(self.chunks.files)]
        return self.accuracy_numbers(self.chunks.accuracy) | {"stopped": self.stopped, "chunks": stored}


def _digests(patterns: PatternTable) -> np.ndarray:
    """A digest (P, 16) of every pattern, the same in all chunks."""
    content = b"".join(blake2b(row.tobytes(), digest_size=16).digest() for row in np.asarray(patterns))
    return np.frombuffer(content, dtype=np.uint8).reshape(-1, 16)


class _Rows:
    """The rows of one chunk in an export; the chunk is loaded for its first rows and released after its last."""

    def __init__(self, answer: StreamedAnswer, what: str, number: int, first: int) -> None:
        self.answer, self.what, self.number, self.first = answer, what, number, first
        self.part: Part | None = None

    def make(self, start: int, stop: int) -> Block:
        """Rows of the chunk, with the numbers of regions in the whole map."""
        part = self.part
        if part is None:
            found = self.answer.load(self.number)
            part = region_part(found, self.what, is_measured=found.answers.curves is not None)
        self.part = part if stop < part.count else None
        block = part.make(start, stop)
        return block | {"number": block["number"] + self.first}


class StreamedRegions(NumberedRegions):
    """All regions of a map in chunks, with the labels of one answer."""

    def __init__(self, tiling: StreamedMap, answer: StreamedAnswer) -> None:
        self._tiling, self._answer = tiling, answer
        self._last: tuple[int, Regions] | None = None

    def __len__(self) -> int:
        return self._tiling.polytope_count

    def _region(self, index: int) -> Region:
        number, own = self._tiling.chunks.chunk_of(index)
        if self._last is None or self._last[0] != number:
            self._last = number, Regions(self._tiling.question, self._answer.load(number))
        return replace(self._last[1][own], index=index)


def restore_streamed(content: dict[str, Any], folder: Path, question: Question) -> StreamedMap:
    """Restore the map in chunks of a stored result; raises StoreError if its index is damaged."""
    numbers = content["stored"]["map"]
    arrays = read_arrays(folder / MAP, list(INDEX))
    hidden = question.compound.hidden
    sizes = {"neurons": sum(hidden), "affine maps": len(hidden) + 1}
    checked = {name: shaped(name, arrays[name], SHAPES[name], sizes) for name in ACCURACY_ARRAYS}
    cells = np.unpackbits(arrays["cells"], axis=1).astype(bool)
    if len(cells) != len(numbers["chunks"]):
        raise StoreError(
            f"{folder / MAP}: has {len(cells)} chunks, expected {len(numbers['chunks'])}; the result is damaged: run "
            "the verification again"
        )
    files = restore_files(numbers["chunks"], folder, cells)
    stopped = None if numbers["stopped"] is None else Stop(numbers["stopped"])
    return StreamedMap(question, ChunkFiles(question, files, read_accuracy(checked, numbers)), stopped)
