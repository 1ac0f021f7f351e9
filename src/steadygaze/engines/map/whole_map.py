"""The tiling of a map with all regions in memory, how chunks join to one, and sentences about the proofs of maps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...boundary import Boundary, find_boundary
from ...budget import Budget
from ...labels import Label, Property, Stop, Verdict
from ...polytopes import Polytopes, join_polytopes
from ...properties.classification import Pieces
from ...properties.joint import Shares, add_cells, missing_cells
from ...question import Question
from ...results.answer import Answer, Answers
from ...results.arrays import pack
from ...results.claims import Claim, Doubts, Sample, Violation, Visible, piece_claims, piece_samples
from ...results.delta_answer import verdict_from
from ...results.export import Part, region_part
from ...results.other_deltas import cells_at
from ...results.result import Result
from ...results.summary import SINGLE_THETAS, kinks_text, ties_sentences
from ...results.tiling import TileLabels, Tiling, region_tiles
from ...results.view import Region, Regions
from ...words import percent_down, percent_up

PIECE_COLUMNS = ("region", "winner", "margin", "slack", "most_strip", "witnesses")


@dataclass(frozen=True, eq=False)
class MapTiling(Tiling[Answer]):
    """All regions of the domain, or those found before a limit."""

    kind = method = "map"
    boxes = None

    question: Question
    answers: Answers
    stopped: Stop | None

    @property
    def region_count(self) -> int:
        """The number of regions, by patterns if the network has windows (see `RegionSet.pattern_count`)."""
        regions = self.answers.regions
        return len(regions) if self.question.compound.graph.is_plain else regions.pattern_count

    @property
    def is_measured(self) -> bool:
        return self.question.measures_regions

    @property
    def enough_delta(self) -> float | None:
        return self.answers.enough_delta

    def _find_ties(self, budget: Budget | None) -> tuple[float, float] | None:
        return self.answers.tie_share

    def answer(self, delta: float) -> Answer:
        return self.answers.at(delta)

    def shares_at(self, deltas: Sequence[float]) -> list[Shares]:
        answers = self.answers
        if answers.curves is None:
            return super().shares_at(deltas)
        accuracy, polytopes = answers.regions.accuracy, answers.pieces.polytopes
        rest = missing_cells(
            float(polytopes.volumes.sum()), len(polytopes), polytopes.dimension,
            is_partial=self.stopped is not None or accuracy.skipped > 0, holes=accuracy.holes,
        )  # fmt: skip
        return [add_cells([cells, rest], answers.slivers) for cells in cells_at(answers, deltas)]

    def regions(self, answer: Answer) -> Sequence[Region]:
        return Regions(self.question, answer)

    def region_at(self, theta: ArrayLike) -> int | None:
        point = self.question.compound.to_unit(np.asarray(theta, dtype=np.float64)[None])[0]
        return self.answers.regions.polytopes.deepest(point)

    def boundary(self, answer: Answer, wanted: Property) -> Boundary:
        return find_boundary(self.question.compound, self.stopped, answer.joint, wanted)

    def claims(self, answer: Answer, kind: Violation, visible: Visible) -> Iterator[Claim]:
        return piece_claims(answer, kind, visible)

    def samples(self, answer: Answer, count: int) -> Iterator[Sample]:
        return piece_samples(answer, count)

    def without(self, doubts: Doubts) -> "MapTiling":
        return replace(self, answers=self.answers.without(*doubts))

    def guarantee(self, result: Result) -> str:
        return map_guarantee(result)

    def tiles(self, answer: Answer) -> TileLabels:
        return region_tiles(answer)

    @property
    def tile_patterns(self) -> np.ndarray:
        return self.answers.regions.pattern

    def parts(self, answer: Answer, what: str) -> tuple[Part, ...]:
        return (region_part(answer, what, is_measured=self.is_measured),)

    def arrays(self) -> dict[str, np.ndarray]:
        return pack(self.answers.regions, self.answers.pieces, self.answers.curves)


class JoinedCuts:
    """The cuts of several chunks, given each chunk's table (E, 3) and ids (E,); rows (N, 3): every cut once."""

    def __init__(self, tables: Sequence[np.ndarray], ids: Sequence[np.ndarray]) -> None:
        self.ids, first = np.unique(np.concatenate(ids), return_index=True)
        self.rows = np.concatenate(tables)[first]
        self.numbers = [np.searchsorted(self.ids, own) + 1 for own in ids]

    def __len__(self) -> int:
        return len(self.rows)

    def place(self, chunk: int, polytopes: Polytopes, more: np.ndarray | None = None) -> Polytopes:
        """The shapes of a chunk, renumbered to the joined table; `more`: numbers of cuts beyond the chunk's own."""
        numbers = self.numbers[chunk] if more is None else np.append(self.numbers[chunk], more)
        return replace(polytopes, facets=np.sign(polytopes.facets) * numbers[np.abs(polytopes.facets) - 1])


def join_pieces(cuts: JoinedCuts, parts: Sequence[Pieces], regions: Sequence[int]) -> Pieces:
    """The pieces of all chunks; regions: the number of regions of each. Cuts between pieces follow all other cuts."""
    first = np.cumsum([0, *regions])
    tables, shapes, size = [cuts.rows], [], len(cuts)
    for chunk, part in enumerate(parts):
        own = part.cuts[len(cuts.numbers[chunk]) :]
        shapes.append(cuts.place(chunk, part.polytopes, size + 1 + np.arange(len(own))))
        tables.append(own)
        size += len(own)
    columns = {name: [getattr(part, name) for part in parts] for name in PIECE_COLUMNS}
    columns["region"] = [own + start for own, start in zip(columns["region"], first, strict=False)]
    joined: dict[str, Any] = {name: np.concatenate(column) for name, column in columns.items()}
    return replace(parts[0], polytopes=join_polytopes(shapes), cuts=np.concatenate(tables), **joined)


def map_guarantee(result: Result) -> str:
    """A few sentences about the proofs behind a map, complete or partial, and its undecided share."""
    kinks = result.answer.shares.slivers if result.is_measured else 0.0
    undecided = result.areas[Label.UNDECIDED][1]
    reached = result.answer.coverage
    sentences = []
    if not result.is_complete:
        sentences.append(
            f"Partial: {percent_down(min(reached, 1.0))} of the domain was mapped, then the run ended "
            f"({result.stopped}); the rest counts as undecided."
        )
        undecided = max(0.0, undecided - (1.0 - reached))
    sentences.append(
        "Proved for the real-valued network, by float64 arithmetic with error bounds or by exact arithmetic."
    )
    by_shares = verdict_from(result.answer.shares, result.question.property)
    if result.verdict is Verdict.NOT_ROBUST and by_shares is not Verdict.NOT_ROBUST:
        sentences.append(SINGLE_THETAS)
    if kinks > 0.0:
        sentences.append(kinks_text(kinks))
    sentences += ties_sentences(result.tie_share)
    part = f"At most {percent_up(undecided)} of the domain" if undecided > 0.0 else "Nothing"
    sentences.append(f"{part} is undecided{'' if result.is_complete else ' where it was mapped'}.")
    return " ".join([*sentences, result.agreement.sentence])
