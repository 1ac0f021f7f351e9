"""The engine of the map: walks the domain, measures and labels all regions, and checks them before delivery.

The walking threads also measure, label and check the chunks of the walk as they arrive, so a time limit ends both at
once. A map of at most WHOLE regions is joined in memory. Once a map grows beyond that, its chunks are written to disk.
"""

import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from ...attention.inconsistency import join_curves
from ...attention.map_errors import MapErrors
from ...attention.measuring import measure
from ...budget import Budget
from ...labels import Stop
from ...properties.settling import label_pieces
from ...question import Question
from ...regions.check import CheckedMap, ChunkCheck, check_map
from ...regions.chunked_walk import Chunk, WalkResult, walk_chunks
from ...regions.forward_error import refuse_overflow
from ...regions.region import join_region_sets
from ...results.answer import Answer, Answers
from ...results.arrays import read_answers
from ...results.claims import piece_samples
from ...results.label_grid import LabelGrid
from ...results.other_deltas import cells_at
from ...results.result import Result
from ...results.sample_check import compare_samples, sample_count
from ...results.streamed_answer import ChunkFacts, chunk_facts
from ...results.tiling import MAP
from ...results.witness import reproduction
from ...tolerances import MAX_MAP_PARAMETERS
from ..contract import (
    Engine,
    Progress,
    ProgressReport,
    RunOptions,
    refuse_changing_maps,
    refuse_curved,
)
from .chunk_files import ChunkFile, ChunkFiles, Folder, shared_errors, write_chunk
from .streamed_map import StreamedMap, restore_streamed
from .whole_map import JoinedCuts, MapTiling, join_pieces

WHOLE = 200_000
"""The most regions of a map joined in memory; fewer if half of the allowed memory is in use before."""

LAST = 0.95
"""After this share of the time limit, no chunk but the first is measured; the others count as not reached."""

INSIDE, EDGES = 32, 8
"""How many regions and facets of each chunk on disk are compared with a plain forward pass."""

SAMPLED = 4
"""How many pieces of each chunk on disk have their labels compared with a sample."""

SETTLED = 16
"""Each chunk may use one part in so many of the exact arithmetic that a map can afford."""


class MapEngine(Engine):
    """Subdivides the domain into all regions: the result bounds the share that tolerances leave undecided."""

    method = "map"
    sentence = "A map: it divides the domain into the regions on which the network is affine, each with its label."
    takes = frozenset(("threads",))

    def why_not(self, question: Question) -> str | None:
        if question.perturbed.is_curved:
            return refuse_curved(question, self.method)
        refusal = refuse_changing_maps(question)
        if refusal is not None:
            return refusal
        count = question.perturbed.domain.dimension
        if count <= MAX_MAP_PARAMETERS:
            return None
        return (
            f"the map takes up to {MAX_MAP_PARAMETERS} parameters, but the perturbations have {count}; leave some out, "
            "or use --method refine"
        )

    def run(
        self, question: Question, budget: Budget, options: RunOptions, progress: ProgressReport | None = None
    ) -> Result:
        """Map the domain, measure and label the regions, and check the map before delivery."""
        return _solve(question, budget, options.threads or os.cpu_count() or 1, progress)

    def restore(self, content: dict[str, Any], folder: Path, question: Question) -> MapTiling | StreamedMap:
        version, numbers = content["schema_version"], content["stored"]["map"]
        if "chunks" in numbers:
            return restore_streamed(content, folder, question)
        answers = read_answers(folder / MAP, numbers, question, version=version)
        return MapTiling(question, answers, answers.regions.stopped)


def _solve(question: Question, budget: Budget, threads: int, progress: ProgressReport | None) -> Result:
    def advance(share: float, regions: int) -> None:
        if progress is not None:
            progress(Progress(share, regions))

    clock = budget.clock
    compound = question.compound
    collector = Collector(question, budget)
    started = time.perf_counter()
    with clock.phase("walk"):
        walked = walk_chunks(compound, collector.take, budget=budget, threads=threads, progress=advance)
    spent = collector.seconds
    walking = max(0.0, threads * (time.perf_counter() - started) - sum(spent.values()))
    clock.divide("walk", {"walk": walking, **spent})
    tiling: MapTiling | StreamedMap
    if collector.is_large:
        with clock.phase("self-check"):
            tiling, checked = collector.streamed(walked)
        return Result.of_run(question, tiling, budget, checked)
    with clock.phase("labels"):
        answers = collector.joined(walked) if walked.whole is None else _measured(question, walked, budget, threads)
        tiling = MapTiling(question, answers, answers.regions.stopped)
        result = Result.of_run(question, tiling, budget)
    with ThreadPoolExecutor(1) as pool:
        ended = threading.Event()
        check = partial(
            check_map, compound, answers.regions, threads=threads, is_late=lambda: ended.is_set() or budget.is_over()
        )
        # A map of several chunks is checked while it is labelled: neither depends on the other.
        running = pool.submit(check) if threads > 1 and walked.whole is None else None
        try:
            with clock.phase("labels"):
                _ = result.answer
            with clock.phase("self-check"):
                checked = check() if running is None else running.result()
        except BaseException:
            ended.set()  # Ctrl-C: the other thread ends soon, too
            raise
    return result.with_check(checked)


def _measured(question: Question, walked: WalkResult, budget: Budget, threads: int) -> Answers:
    """The regions of a small map, all measured and labelled together."""
    compound, regions = question.compound, walked.whole
    assert regions is not None
    refuse_overflow(question.model_name, compound, regions.accuracy.peaks, regions.logits)
    with budget.clock.phase("attention"):
        curves, errors = None, None
        if question.measures_regions:
            curves = measure(compound, regions, question.attention, question.original, threads=threads)
    pieces = label_pieces(compound, regions, question.label, budget=budget)
    if curves is not None:
        errors = MapErrors(compound, regions.patterns, curves, question.attention, question.original_doubt)
    return Answers(compound, regions, pieces, curves, errors, question.map_size, budget=budget)


class Collector:
    """Takes the chunks of one walk, from any thread.

    parts: answers and ids of cuts by place, while the map is small; files and facts for the question's δ replace them
    in a large map. seconds: by phase, summed over threads.
    """

    def __init__(self, question: Question, budget: Budget) -> None:
        self.question, self.budget = question, budget
        self.delta = question.own_limit
        self.deltas = list(question.marks.values())
        self.original = question.original
        self.parts: dict[tuple[int, int, int], tuple[Answers, np.ndarray]] = {}
        self.files: list[ChunkFile] = []
        self.facts: dict[tuple[int, int, int], ChunkFacts] = {}
        self.cells: dict[tuple[int, int, int], np.ndarray] = {}
        self.check = ChunkCheck(question.compound)
        self.folder: Folder | None = None
        self.seconds: Counter[str] = Counter()
        self.regions, self.dropped = 0, False
        self.lock = threading.Lock()

    @cached_property
    def grid(self) -> LabelGrid:
        """Labels at the points of a grid, for pictures."""
        return LabelGrid(self.question.compound)

    @cached_property
    def errors(self) -> MapErrors:
        """Error bounds that the curves of all chunks share."""
        return shared_errors(self.question)

    def take(self, chunk: Chunk) -> None:
        """Measure and label a chunk; keep it, or write it to disk."""
        if self.regions and self.budget.is_over(LAST):
            self.dropped = True
            return
        answers = self._answers(chunk)
        with self.lock:
            self.regions += len(chunk.regions)
            self.parts[chunk.place] = answers, chunk.cut_id
            is_large = self.regions > WHOLE or self.is_large or self.budget.is_short_of_memory
            if is_large and self.folder is None:
                self.folder, _ = Folder(), self.grid
        if is_large:
            self._write_all()

    def _write_all(self) -> None:
        """Write the chunks in memory one by one; several threads share this work when a map becomes large."""
        while True:
            with self.lock:
                if not self.parts:
                    return
                place = next(iter(self.parts))
                answers, ids = self.parts.pop(place)
            self._write(place, answers, ids)

    def _answers(self, chunk: Chunk) -> Answers:
        question, compound, regions = self.question, self.question.compound, chunk.regions
        started = time.perf_counter()
        refuse_overflow(question.model_name, compound, regions.accuracy.peaks, regions.logits)
        is_measured, errors = question.measures_regions, None
        curves = measure(compound, regions, question.attention, self.original) if is_measured else None
        measured = time.perf_counter()
        pieces = label_pieces(compound, regions, question.label, share=SETTLED, budget=self.budget)
        if curves is not None:
            with self.lock:
                shared = self.errors
            errors = shared.for_curves(regions.patterns, curves)
        self._count({"attention": measured - started, "labels": time.perf_counter() - measured})
        size = question.map_size
        return Answers(compound, regions, pieces, curves, errors, size, is_part=True, budget=self.budget)

    def _write(self, place: tuple[int, int, int], answers: Answers, ids: np.ndarray) -> None:
        assert self.folder is not None
        started = time.perf_counter()
        answers, answer = self._confirmed(answers)
        self.grid.paint(answer)
        facts = chunk_facts(answer)
        cells = cells_at(answers, self.deltas)
        labelled = time.perf_counter()
        self.check.add(answers.regions, ids, INSIDE, EDGES)
        checked = time.perf_counter()
        file = write_chunk(self.folder, place, answers, ids)
        with self.lock:
            self.files.append(file)
            self.facts[place], self.cells[place] = facts, cells
        stored = time.perf_counter()
        self._count({"labels": labelled - started, "self-check": checked - labelled, "store": stored - checked})

    def _confirmed(self, answers: Answers) -> tuple[Answers, Answer]:
        """The chunk without the labels that a sample cannot confirm; InternalError if a sample refutes one."""
        question, answer = self.question, answers.at(self.delta)
        samples = list(piece_samples(answer, min(SAMPLED, sample_count(question))))
        doubts = compare_samples(
            question, samples, self.delta, lambda: reproduction(question, question.threshold, "map", [])
        )
        if not doubts:
            return answers, answer
        answers = answers.without(*doubts)
        return answers, answers.at(self.delta)

    def _count(self, seconds: dict[str, float]) -> None:
        with self.lock:
            self.seconds.update(seconds)

    @property
    def is_large(self) -> bool:
        """Whether the chunks are on disk."""
        return self.folder is not None

    def stopped(self, walked: WalkResult) -> Stop | None:
        """The limit that ended the run; a dropped chunk means that time ran out."""
        return walked.stopped or (self.budget.exhausted(LAST) if self.dropped else None)

    def streamed(self, walked: WalkResult) -> tuple[StreamedMap, CheckedMap]:
        """The map of all chunks on disk, in order, and the check of its tiling."""
        files, stopped = tuple(sorted(self.files, key=lambda file: file.place)), self.stopped(walked)
        facts = [self.facts[file.place] for file in files]
        cells = np.sum([self.cells[file.place] for file in files], axis=0)
        chunks = ChunkFiles(self.question, files, walked.accuracy, self.folder)
        known = dict(zip(self.deltas, cells, strict=True))
        checked = self.check.finish(is_partial=stopped is not None)
        grids = {self.delta: self.grid}
        tiling = StreamedMap(self.question, chunks, stopped, {self.delta: facts}, grids, known, self.budget)
        return tiling, checked

    def joined(self, walked: WalkResult) -> Answers:
        """All chunks as one map."""
        question = self.question
        places = sorted(self.parts)
        found = [self.parts.pop(place) for place in places]
        cuts = JoinedCuts([answers.regions.cuts for answers, _ in found], [own for _, own in found])
        sets = [
            replace(answers.regions, polytopes=cuts.place(number, answers.regions.polytopes))
            for number, (answers, _) in enumerate(found)
        ]
        curves = [answers.curves for answers, _ in found if answers.curves is not None]
        pieces = join_pieces(cuts, [answers.pieces for answers, _ in found], [len(part) for part in sets])
        whole = replace(
            join_region_sets(sets, cuts=cuts.rows, is_numbered=True),
            accuracy=walked.accuracy, stopped=self.stopped(walked),
        )  # fmt: skip
        joined, errors = join_curves(curves, whole) if question.measures_regions else None, None
        if joined is not None:
            errors = MapErrors(question.compound, whole.patterns, joined, question.attention, question.original_doubt)
        return Answers(question.compound, whole, pieces, joined, errors, question.map_size, budget=self.budget)
