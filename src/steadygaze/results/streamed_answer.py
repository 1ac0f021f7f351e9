"""The answer for one δ of a map in chunks: each chunk gives a few numbers, which are added up; then it is forgotten.

Single regions, claims and nearest violations come from the chunks that hold them, loaded again.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NoReturn

import numpy as np

from ..accuracy import Accuracy
from ..budget import OPTIONAL, Budget, is_over
from ..compound import Compound
from ..errors import OptionError
from ..labels import Label
from ..properties.joint import Shares, add_cells, missing_cells
from ..properties.kept_box import Suspects, kept_factor, nearest_suspects
from ..properties.nearest import Nearest, nearest_points
from ..tolerances import AREA
from .answer import Answer
from .claims import TRIES, Claim, Violation, Visible, chosen_pieces, clear_depth, exact_claims, piece_claims
from .delta_answer import Block, zero_bounds
from .label_counts import CountedAnswer, PatternLabels
from .label_grid import LabelGrid

AHEAD = 4
"""The number of chunks that `blocks` loads at a time."""

EXAMINED = 12
"""The most chunks, those nearest to zero, of which `suspects` gives more than bounding boxes."""


@dataclass(frozen=True, eq=False)
class ChunkFacts:
    """The numbers of one chunk for one δ.

    cells (3, 3) and winners (K,): volumes of pieces by `Kept` codes, and by the class that wins. counts: regions
    by both labels; patterns: the same for regions that may have parts in other chunks. lows: distances below which
    nothing in the chunk violates CR, or AR. squares: the squared distance of the nearest violated piece of each kind;
    depths: the |margin|, or the loss, of the deepest one. slivers: the volume where exact arithmetic found other
    patterns. largest: a bound of all losses, infinite if unknown. zero (2,): the volumes of regions that
    surely have no attention, and that may have none; None for distances.
    """

    regions: int
    pieces: int
    volume: float
    cells: np.ndarray
    winners: np.ndarray
    counts: np.ndarray
    patterns: PatternLabels | None
    lows: dict[Label, float]
    squares: dict[Violation, float]
    depths: dict[Violation, float]
    suspects: dict[Label, Suspects]
    witnesses: np.ndarray
    slivers: float
    largest: float
    zero: np.ndarray | None


def chunk_facts(answer: Answer) -> ChunkFacts:
    """The numbers of a chunk, from its answer."""
    answers, joint, compound = answer.answers, answer.joint, answer.compound
    pieces, volumes = joint.pieces, joint.polytopes.volumes
    squares, depths = {}, {}
    for kind in Violation:
        chosen = np.flatnonzero(chosen_pieces(joint, kind))
        squares[kind] = float(nearest_points(compound, joint.polytopes, chosen)[:, 0].min(initial=np.inf))
        depth = -pieces.margin[chosen, 0] if kind is Violation.LABEL else answer.reach[chosen, 0]
        depths[kind] = float(np.nan_to_num(depth, nan=-np.inf).max(initial=-np.inf))
    return ChunkFacts(
        regions=len(answers.regions),
        pieces=len(pieces),
        volume=float(volumes.sum()),
        cells=np.array(answer.shares.cells),
        winners=np.bincount(pieces.winner, volumes, compound.graph.classes),
        counts=answer.counts,
        patterns=answer.pattern_labels,
        lows={name: answer.violations(name).lower_bound() for name in (Label.CR, Label.AR)},
        squares=squares,
        depths=depths,
        suspects=nearest_suspects(compound, joint),
        witnesses=pieces.witnesses,
        slivers=answers.slivers,
        largest=float(np.nan_to_num(answer.labels.reach[:, 1], nan=np.inf).max(initial=0.0)),
        zero=None if answer.zero_share is None else answer.zero_volumes,
    )


@dataclass(frozen=True, eq=False)
class StreamedAnswer(CountedAnswer):
    """The answer for one δ of a map in chunks.

    facts: of every chunk. load(number) gives the answer of one chunk, touching(box) the numbers of the chunks that may
    touch a box (2, D). kinks: a bound of the share of the domain on kinks, from the errors of the walk. paint() gives
    the labels at the points of a grid.
    budget: of the run that asks; once it is over, distances are less sharp, as they rest on fewer chunks.
    """

    of: Compound
    delta: float
    facts: Sequence[ChunkFacts]
    load: Callable[[int], Answer]
    touching: Callable[[np.ndarray], list[int]]
    accuracy: Accuracy
    kinks: float
    is_partial: bool
    paint: Callable[[], LabelGrid]
    budget: Budget | None = None
    exact: None = None
    is_in_chunks = True

    @cached_property
    def grid(self) -> LabelGrid:
        return self.paint()

    @property
    def compound(self) -> Compound:
        return self.of

    @cached_property
    def volume(self) -> float:
        """The share of the domain that the regions cover."""
        return float(sum(facts.volume for facts in self.facts))

    @property
    def winner_shares(self) -> np.ndarray:
        return np.append(np.sum([facts.winners for facts in self.facts], axis=0), 0.0)

    @property
    def coverage(self) -> float:
        return 1.0 if abs(self.volume - 1.0) <= AREA else self.volume

    @cached_property
    def counts(self) -> np.ndarray:
        if self.patterns is None:
            return np.sum([facts.counts for facts in self.facts], axis=0)
        return self.patterns.counts

    @cached_property
    def patterns(self) -> PatternLabels | None:
        """The labels of regions that may consist of several polytopes, in several chunks; None if there are none."""
        found = [facts.patterns for facts in self.facts if facts.patterns is not None]
        return PatternLabels.joined(found) if found else None

    @cached_property
    def shares(self) -> Shares:
        """The shares of the domain."""
        found = add_cells([*(facts.cells for facts in self.facts), self.rest], self.slivers)
        return replace(found, has_violation=self.nearest[Label.AR].theta is not None)

    @property
    def rest(self) -> np.ndarray:
        """The volumes (3, 3) where no piece covers the domain."""
        pieces, is_partial = sum(facts.pieces for facts in self.facts), self.is_partial or self.accuracy.skipped > 0
        return missing_cells(self.volume, pieces, self.of.coordinates, is_partial=is_partial, holes=self.accuracy.holes)

    @property
    def slivers(self) -> float:
        """A bound of the share of the domain on kinks."""
        return min(1.0, self.kinks + sum(facts.slivers for facts in self.facts))

    @property
    def largest(self) -> float:
        """The largest finite bound of ai on the regions of a chunk."""
        return max((facts.largest for facts in self.facts if np.isfinite(facts.largest)), default=0.0)

    @property
    def zero_share(self) -> tuple[float, float] | None:
        found = [facts.zero for facts in self.facts if facts.zero is not None]
        if len(found) < len(self.facts) or not found:
            return None
        return zero_bounds(np.sum(found, axis=0), self.slivers, float(self.rest.sum()))

    @cached_property
    def nearest(self) -> dict[str, Nearest]:
        kinds = {Label.CR: Violation.LABEL, Label.AR: Violation.ATTENTION}
        return {name: self._nearest(name, kind) for name, kind in kinds.items()}

    def _nearest(self, name: Label, kind: Violation) -> Nearest:
        low = 0.0 if self.is_partial else min((facts.lows[name] for facts in self.facts), default=np.inf)
        best = Nearest(low, np.inf, None, None)
        first = np.cumsum([0, *(facts.pieces for facts in self.facts)])
        for square, number in self._by_distance(kind):
            if np.sqrt(square) >= best.high or (best.theta is not None and is_over(self.budget, OPTIONAL)):
                break
            found = self.load(number).violations(name).nearest(low)
            if found.high < best.high and found.piece is not None:
                best = replace(found, piece=int(first[number]) + found.piece)
        return best

    def _by_distance(self, kind: Violation) -> list[tuple[float, int]]:
        """The chunks with violated pieces, by the distance of the nearest one."""
        found = ((facts.squares[kind], number) for number, facts in enumerate(self.facts))
        return sorted(item for item in found if np.isfinite(item[0]))

    def claims(self, kind: Violation, visible: Visible) -> Iterator[Claim]:
        """Claims of a kind: from the nearest chunk with a piece that may be deep, then the deepest piece of all."""
        if kind is Violation.LABEL:
            yield from exact_claims(self.witnesses)
        ranked = [number for _, number in self._by_distance(kind)]
        if not ranked:
            return
        depths, answer = {number: self.facts[number].depths[kind] for number in ranked}, self.load(ranked[0])
        clear = clear_depth(answer, kind, np.flatnonzero(chosen_pieces(answer.joint, kind))[:TRIES], visible)
        first = next((number for number, depth in depths.items() if depth > clear), ranked[0])
        deepest = max(ranked, key=depths.__getitem__)
        *nearest, last = piece_claims(self.load(first), kind, visible)
        yield from nearest
        yield last if deepest == first else list(piece_claims(self.load(deepest), kind, visible))[-1]

    def suspects(self, name: Label) -> list[Suspects]:
        """Where CR, or AR, may fail: of most chunks only the bounding boxes that `kept_box` meets first."""
        groups = [facts.suspects[name] for facts in self.facts]
        factors, best = [kept_factor(self.of, group) for group in groups], 1.0
        for number in np.argsort(factors, kind="stable")[:EXAMINED].tolist():
            if factors[number] >= best or is_over(self.budget, OPTIONAL):
                break
            (groups[number],) = self.load(number).suspects(name)
            best = min(best, kept_factor(self.of, groups[number]))
        return groups

    @property
    def witnesses(self) -> np.ndarray:
        none = np.zeros((0, self.of.domain.dimension))
        return np.concatenate([none, *(facts.witnesses for facts in self.facts)])

    def blocks(self, box: np.ndarray | None = None) -> Iterator[Block]:
        pieces, regions = np.cumsum([(0, 0), *((facts.pieces, facts.regions) for facts in self.facts)], axis=0).T
        numbers = range(len(self.facts)) if box is None else self.touching(box)
        with ThreadPoolExecutor(min(AHEAD, os.cpu_count() or 1)) as pool:
            for start in range(0, len(numbers), AHEAD):
                chosen = numbers[start : start + AHEAD]
                for number, found in zip(chosen, pool.map(self.load, chosen), strict=True):
                    yield Block(int(pieces[number]), int(regions[number]), found.joint)

    @property
    def joint(self) -> NoReturn:
        """Refused, like all arrays of pieces: they may exceed the memory."""
        raise OptionError(
            "a map in chunks never has all pieces in memory; take them from blocks(), one chunk at a time"
        )

    inconsistencies = reach = joint

    def margin_bounds_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        return self._by_chunk(region, points, Answer.margin_bounds_at)

    def inconsistency_bounds_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        return self._by_chunk(region, points, Answer.inconsistency_bounds_at)

    def _by_chunk(
        self, region: np.ndarray, points: np.ndarray, bounds: Callable[[Answer, np.ndarray, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        found = np.zeros((len(region), 2))
        first = np.cumsum([0, *(facts.regions for facts in self.facts)])
        owner = np.searchsorted(first, region, side="right") - 1
        for number in np.unique(owner).tolist():
            chosen = owner == number
            found[chosen] = bounds(self.load(number), region[chosen] - first[number], points[chosen])
        return found
