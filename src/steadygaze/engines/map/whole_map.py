"""The engine of the whole map, which subdivides the domain into all regions, labels and checks them; and its tiling."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...attention.inconsistency import measure
from ...attention.map_errors import MapErrors
from ...boundary import Boundary, find_boundary
from ...budget import Budget
from ...labels import Property, Stop, Verdict
from ...properties.settling import label_pieces
from ...question import Question
from ...regions.check import check_map
from ...regions.forward_error import refuse_overflow
from ...regions.subdivide import subdivide
from ...results.answer import Answer, Answers, verdict_from
from ...results.arrays import pack, read_answers
from ...results.claims import Claim, Violation, piece_claims
from ...results.export import Part, region_part
from ...results.result import Result
from ...results.store import MAP
from ...results.summary import SINGLE_THETAS, kinks_text
from ...results.tiling import TileLabels, Tiling, region_tiles
from ...results.view import Region, Regions
from ...tolerances import MAX_MAP_PARAMETERS
from ...words import percent_down, percent_up
from ..contract import Engine, Progress, ProgressReport, RunOptions, products_on_one_thread


@dataclass(frozen=True, eq=False)
class MapTiling(Tiling[Answer]):
    """All regions of the domain, or those found before a limit."""

    kind = method = "map"
    boxes = None

    question: Question
    answers: Answers
    stopped: Stop | None

    @property
    def enough_delta(self) -> float | None:
        return self.answers.enough_delta

    def answer(self, delta: float) -> Answer:
        return self.answers.at(delta)

    def regions(self, answer: Answer) -> Sequence[Region]:
        return Regions(self.question, answer)

    def region_at(self, theta: ArrayLike) -> int | None:
        point = self.question.compound.to_unit(np.asarray(theta, dtype=np.float64)[None])[0]
        return self.answers.regions.polytopes.deepest(point)

    def boundary(self, answer: Answer, wanted: Property) -> Boundary:
        return find_boundary(self.question.compound, self.answers.regions, answer.joint, wanted)

    def claims(self, answer: Answer, kind: Violation, scale: float) -> Iterator[Claim]:
        return piece_claims(answer, kind, scale)

    def guarantee(self, result: Result) -> str:
        kinks, undecided = result.answer.shares.slivers, result.answer.shares.undecided
        reached = float(self.answers.regions.polytopes.volumes.sum())
        sentences = []
        if not result.is_complete:
            sentences.append(
                f"Partial: {percent_down(min(reached, 1.0))} of the domain was mapped, then the run ended "
                f"({self.stopped}); the rest counts as undecided."
            )
            undecided = max(0.0, undecided - (1.0 - reached))
        sentences.append(
            "Proved for the real-valued network, by float64 arithmetic with error bounds or by exact arithmetic."
        )
        by_shares = verdict_from(result.answer.shares, self.question.property)
        if result.verdict is Verdict.NOT_ROBUST and by_shares is not Verdict.NOT_ROBUST:
            sentences.append(SINGLE_THETAS)
        if kinks > 0.0:
            sentences.append(kinks_text(kinks))
        part = f"At most {percent_up(undecided)} of the domain" if undecided > 0.0 else "Nothing"
        sentences.append(f"{part} is undecided{'' if result.is_complete else ' where it was mapped'}.")
        return " ".join([*sentences, result.agreement.sentence])

    def tiles(self, answer: Answer) -> TileLabels:
        return region_tiles(answer)

    def parts(self, answer: Answer, what: str) -> tuple[Part, ...]:
        return (region_part(answer, what, is_measured=True),)

    def arrays(self) -> dict[str, np.ndarray]:
        return pack(self.answers.regions, self.answers.pieces, self.answers.curves)


class MapEngine(Engine):
    """Subdivides the domain into all regions: exact up to the tolerances that the result reports."""

    method = "map"
    sentence = "A map: it divides the domain into the regions on which the network is affine, each with its label."
    takes = frozenset(("threads",))

    def why_not(self, question: Question) -> str | None:
        count = question.perturbed.domain.dimension
        if count <= MAX_MAP_PARAMETERS:
            return None
        return (
            f"the map takes up to {MAX_MAP_PARAMETERS} parameters, the perturbations have {count}; leave some out, or "
            "use --method refine"
        )

    def run(
        self, question: Question, budget: Budget, options: RunOptions, progress: ProgressReport | None = None
    ) -> Result:
        """Map the domain, measure and label the regions, and check the map before delivery."""
        with products_on_one_thread():
            return _solve(question, budget, options.threads or os.cpu_count() or 1, progress)

    def restore(self, content: dict[str, Any], folder: Path, question: Question) -> MapTiling:
        version = content["schema_version"]
        answers = read_answers(folder / MAP, content["stored"]["map"], question, version=version)
        return MapTiling(question, answers, answers.regions.stopped)


def _solve(question: Question, budget: Budget, threads: int, progress: ProgressReport | None) -> Result:
    started = time.perf_counter()
    agreement, compound = question.agreement, question.compound
    original, label = question.original, question.label

    def advance(share: float, regions: int) -> None:
        if progress is not None:
            progress(Progress(share, regions))

    engine = time.perf_counter()
    regions = subdivide(compound, budget=budget, threads=threads, progress=advance)
    refuse_overflow(question.model_name, compound, regions.logits)
    curves = measure(compound, regions, question.attention, original, threads=threads)
    pieces = label_pieces(compound, regions, label)
    errors = MapErrors(compound, regions.patterns, curves, question.attention, question.original_doubt)
    answers = Answers(compound, regions, pieces, curves, errors, question.map_size)
    tiling = MapTiling(question, answers, regions.stopped)
    tiling.answer(question.delta.value(question.map_size))
    checking = time.perf_counter()
    checked = check_map(compound, regions)
    done = time.perf_counter()
    seconds = {"total": done - started, "engine": checking - engine, "check": done - checking}
    return Result(question, tiling, question.delta, agreement, checked, seconds)
