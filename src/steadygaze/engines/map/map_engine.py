"""The engine of the map: walks the domain, measures and labels all regions, and checks them before delivery."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from ...attention.map_errors import MapErrors
from ...attention.measuring import measure
from ...budget import Budget
from ...properties.settling import label_pieces
from ...question import Question
from ...regions.check import check_map
from ...regions.chunked_walk import WalkResult, walk_chunks
from ...regions.forward_error import refuse_overflow
from ...results.answer import Answers
from ...results.arrays import read_answers
from ...results.result import Result
from ...results.tiling import MAP
from ...tolerances import MAX_MAP_PARAMETERS
from ..contract import (
    Engine,
    Progress,
    ProgressReport,
    RunOptions,
    products_on_one_thread,
    refuse_changing_maps,
    refuse_curved,
)
from .collecting import Collector
from .streamed_map import StreamedMap, restore_streamed
from .whole_map import MapTiling


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
        with products_on_one_thread():
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
        check = partial(check_map, compound, answers.regions, is_late=budget.is_over)
        # A map of several chunks is checked while it is labelled: neither depends on the other.
        running = pool.submit(check) if threads > 1 and walked.whole is None else None
        with clock.phase("labels"):
            _ = result.answer
        with clock.phase("self-check"):
            checked = check() if running is None else running.result()
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
