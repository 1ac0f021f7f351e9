"""Measures, labels and checks the chunks of a walk as they arrive; then joins them in memory, or leaves them on disk.

The walking threads also do this work, chunk by chunk, so a time limit ends both at once. A map of at most WHOLE regions
is joined in memory. Once a map grows beyond that, its chunks are written to disk.
"""

import threading
import time
from collections import Counter
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...attention.inconsistency import join_curves
from ...attention.map_errors import MapErrors
from ...attention.measuring import measure
from ...budget import Budget
from ...labels import Stop
from ...properties.settling import label_pieces
from ...question import Question
from ...regions.check import CheckedMap, ChunkCheck
from ...regions.chunked_walk import Chunk, WalkResult
from ...regions.forward_error import refuse_overflow
from ...regions.region import join_region_sets
from ...results.answer import Answer, Answers
from ...results.label_grid import LabelGrid
from ...results.other_deltas import cells_at
from ...results.sample_check import compare_samples, sample_count
from ...results.samples import piece_samples
from ...results.streamed_answer import ChunkFacts, chunk_facts
from ...results.witness import reproduction
from .chunk_files import ChunkFile, ChunkFiles, Folder, shared_errors, write_chunk
from .streamed_map import JoinedCuts, StreamedMap, join_pieces

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
