"""The boxes that tile the domain of a refinement: the question for each box, its bounds, halves and exact regions."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from ...attention.inconsistency import Inconsistency, join_curves
from ...attention.map_errors import MapErrors
from ...attention.measuring import measure
from ...bounds.bounder import Bounder, Enclosures
from ...budget import WALKING, Budget, give_back_memory, is_over
from ...compound import Compound
from ...errors import InternalError
from ...labels import Kept, Property
from ...polytopes import Cut
from ...properties.settling import label_pieces
from ...question import Question
from ...regions.assemble import CutTable
from ...regions.forward_error import refuse_overflow
from ...regions.region import RegionSet, join_region_sets
from ...regions.subdivide import subdivide_boxes
from ...results.answer import Answers
from ...threshold import kept_codes
from ...tolerances import MAX_MAP_PARAMETERS, UNIT

BLOCK = 16  # batches of boxes between two checks of the budget and the open share
SLIMMEST = 16.0  # a box whose longest side exceeds the shortest by more than this factor is split along the longest
SMALLEST = 2.0**-24  # boxes with no side longer than this are not split: rounding would decide


class State(IntEnum):
    """The progress of a box."""

    OPEN = 0  # undecided: may still be split, or subdivided exactly
    BOUNDED = 1  # decided by bounds
    EXACT = 2  # subdivided into its exact regions
    PARTED = 3  # decided by bounds on either side of a plane (see `parted_boxes`)


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes (B of them) with disjoint interiors, in t.

    cell (B,): the knot cell; if two cells share a box of the grid, the first. low and high (B, D): neighbours share
    these numbers bit by bit. sides (B, D, 2): the signed cut at the low and the high side of every axis; two boxes that
    touch along a cut carry it with opposite signs. margin and inconsistency (B, 2): proved enclosures over the box.
    cuts (E, 3): the table of all cuts, borders and knots first (see `Cut`).
    """

    cell: np.ndarray
    low: np.ndarray
    high: np.ndarray
    sides: np.ndarray
    margin: np.ndarray
    inconsistency: np.ndarray
    state: np.ndarray
    cuts: np.ndarray

    def __len__(self) -> int:
        return len(self.cell)

    @property
    def volumes(self) -> np.ndarray:
        """Shares of the domain (B,)."""
        return np.prod(self.high - self.low, axis=1)

    def is_smallest(self, dimension: int) -> np.ndarray:
        """Which boxes (B,) are too small to split."""
        return (self.high - self.low)[:, :dimension].max(axis=1) <= SMALLEST

    def take(self, chosen: np.ndarray) -> "Boxes":
        """The chosen boxes (index array or mask), in that order; the table of cuts stays whole."""
        return replace(self, **{name: getattr(self, name)[chosen] for name in _ROWS})

    @classmethod
    def of(cls, compound: Compound) -> "Boxes":
        """The boxes of the knot cells of a compound network, without bounds."""
        table, first = CutTable(compound.corners), [cells[0].index for cells in compound.perturbed.boxes]
        ends = np.array([[compound.corners[cell].low, compound.corners[cell].high] for cell in first])
        axes, count = range(compound.coordinates), len(ends)
        sides = [[[table.side(axis, side, box[side]) for side in (0, 1)] for axis in axes] for box in ends]
        return cls(
            cell=np.array(first), low=ends[:, 0], high=ends[:, 1], sides=np.array(sides, dtype=np.int64),
            margin=np.tile([-np.inf, np.inf], (count, 1)), inconsistency=np.tile([0.0, np.inf], (count, 1)),
            state=np.zeros(count, dtype=np.uint8), cuts=table.cuts(),
        )  # fmt: skip

    @classmethod
    def join(cls, parts: list["Boxes"], cuts: np.ndarray) -> "Boxes":
        """Concatenate boxes, with one table of cuts for all."""
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in _ROWS}, cuts=cuts)

    def split(self, axes: np.ndarray) -> "Boxes":
        """Halve every box along its axis (B,); the new cuts go to the end of the table."""
        return replace(self.halves(axes, len(self.cuts)), cuts=np.concatenate([self.cuts, split_rows(axes)]))

    def halves(self, axes: np.ndarray, cuts: int) -> "Boxes":
        """The two halves of each box along its axis (B,), with the box's bounds; new cuts are numbered after `cuts`."""
        rows = np.arange(len(self))
        halves = self.take(np.repeat(rows, 2))
        middle = 0.5 * (self.low[rows, axes] + self.high[rows, axes])
        halves.high[2 * rows, axes] = middle
        halves.low[2 * rows + 1, axes] = middle
        # As with knots, the upper half is on the positive side of the cut.
        halves.sides[2 * rows, axes, 1] = -(cuts + 1 + rows)
        halves.sides[2 * rows + 1, axes, 0] = cuts + 1 + rows
        return halves


_ROWS = ("cell", "low", "high", "sides", "margin", "inconsistency", "state")  # arrays with a row for every box


def split_rows(axes: np.ndarray) -> np.ndarray:
    """Rows (N, 3) of the table of cuts for boxes halved along axes (N,)."""
    return np.stack([np.full(len(axes), Cut.SPLIT), axes, np.zeros(len(axes))], axis=1).astype(np.int32)


def label_codes(margin: np.ndarray) -> np.ndarray:
    """`Kept` codes (B,) of the label for enclosures (B, 2) of the margin."""
    return np.where(margin[:, 0] > 0.0, Kept.YES, np.where(margin[:, 1] < 0.0, Kept.NO, Kept.UNKNOWN))


def attention_codes(inconsistency: np.ndarray, delta: float) -> np.ndarray:
    """`Kept` codes (B,) of the attention for enclosures (B, 2) of the inconsistency."""
    return kept_codes(inconsistency[:, 0], inconsistency[:, 1], delta)


@dataclass(frozen=True)
class BoxQuestion:
    """The question for every box; δ is absolute.

    >>> question = BoxQuestion(Property.BOTH, 3.0)
    >>> question.is_decided(np.array([[1.0, 2.0]]), np.array([[0.0, 4.0]])).tolist()
    [False]
    """

    wanted: Property
    delta: float
    is_verdict: bool = False  # ask only whether the property holds: then a violation of one part decides a box

    @property
    def asks_attention(self) -> bool:
        return self.wanted is not Property.CR

    def needs_attention(self, margin: np.ndarray, inconsistency: np.ndarray) -> np.ndarray:
        """Where (B,) the attention matters but is unknown."""
        is_open = (attention_codes(inconsistency, self.delta) == Kept.UNKNOWN) & self.asks_attention
        return is_open & ~self._is_settled(margin, inconsistency)

    def is_decided(self, margin: np.ndarray, inconsistency: np.ndarray) -> np.ndarray:
        """Where (B,) the enclosures answer the question."""
        is_known = (self._codes(margin, inconsistency) != Kept.UNKNOWN).all(axis=0)
        return is_known | self._is_settled(margin, inconsistency)

    def is_violated(self, margin: np.ndarray, inconsistency: np.ndarray) -> np.ndarray:
        """Where (B,) the property is violated everywhere on the box."""
        return (self._codes(margin, inconsistency) == Kept.NO).any(axis=0)

    def _codes(self, margin: np.ndarray, inconsistency: np.ndarray) -> np.ndarray:
        """`Kept` codes (1 or 2, B) of the property's parts, label and attention."""
        codes = np.stack([label_codes(margin), attention_codes(inconsistency, self.delta)])
        return codes[{Property.CR: slice(0, 1), Property.AR: slice(1, 2), Property.BOTH: slice(0, 2)}[self.wanted]]

    def _is_settled(self, margin: np.ndarray, inconsistency: np.ndarray) -> np.ndarray:
        return self.is_violated(margin, inconsistency) & self.is_verdict


@dataclass(frozen=True, eq=False)
class BoundedBoxes:
    """Boxes with their bounds; pull (B, d): how much each axis matters; unstable (B,): neurons of unknown sign."""

    boxes: Boxes
    pull: np.ndarray
    unstable: np.ndarray

    @property
    def split_axes(self) -> np.ndarray:
        """The axis (B,) along which to halve each box: the one with the largest pull, or the longest side.

        Up to three parameters, no side becomes much shorter than another. With more, halving a parameter without pull
        would only double the number of boxes, so its sides stay as they are.
        """
        sides = (self.boxes.high - self.boxes.low)[:, : self.pull.shape[1]]
        if self.pull.shape[1] > MAX_MAP_PARAMETERS:
            return np.argmax(np.where(self.pull.max(axis=1, keepdims=True) > 0.0, self.pull, sides), axis=1)
        is_slim = sides.max(axis=1) > SLIMMEST * sides.min(axis=1)
        pull = np.where(self.pull.max(axis=1, keepdims=True) > 0.0, self.pull, sides)
        return np.where(is_slim, np.argmax(sides, axis=1), np.argmax(pull, axis=1))

    @property
    def is_smallest(self) -> np.ndarray:
        """Which boxes (B,) are too small to split along their axis."""
        if self.pull.shape[1] <= MAX_MAP_PARAMETERS:
            return self.boxes.is_smallest(self.pull.shape[1])
        sides, rows = self.boxes.high - self.boxes.low, np.arange(len(self.boxes))
        return sides[rows, self.split_axes] <= SMALLEST


class Frontier:
    """Bounds the open boxes of one problem in blocks; the number of threads changes neither order nor result.

    If the time for bounding ends within a block, the rest of the block stays as it was.
    """

    def __init__(self, bounder: Bounder, question: BoxQuestion, threads: int, budget: Budget | None = None) -> None:
        self.bounder, self.question, self.budget = bounder, question, budget
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown()

    @property
    def run_all(self) -> Callable:
        """`map`, by all threads."""
        return map if self.pool is None else self.pool.map

    def blocks(self, boxes: Boxes) -> Iterator[Boxes]:
        """The boxes in blocks of `BLOCK` batches, each of one knot cell."""
        step = BLOCK * self.bounder.batch
        for cell in np.unique(boxes.cell):
            chosen = np.flatnonzero(boxes.cell == cell)
            for first in range(0, len(chosen), step):
                yield boxes.take(chosen[first : first + step])

    def bound(self, boxes: Boxes) -> BoundedBoxes:
        """Bound boxes of one knot cell; the result intersects earlier enclosures."""
        needs = self.question.needs_attention(boxes.margin, boxes.inconsistency)
        # Boxes that need the backward pass come first, so that batches hold one kind.
        order = np.argsort(~needs, kind="stable")
        parts = [order[first : first + self.bounder.batch] for first in range(0, len(boxes), self.bounder.batch)]

        def run(part: np.ndarray) -> Enclosures:
            d = self.bounder.perturbed.domain.dimension
            cell, low, high = int(boxes.cell[0]), boxes.low[part, :d], boxes.high[part, :d]
            if is_over(self.budget, WALKING):
                unknown, none = np.array([-np.inf, np.inf]), np.zeros(len(part), dtype=np.int64)
                return Enclosures(
                    np.tile(unknown, (len(part), 1)), np.tile([0.0, np.inf], (len(part), 1)), none, 0.0 * low
                )
            return self.bounder.bound(cell, low, high, needs[part])

        found = list(self.run_all(run, parts))
        back = np.argsort(order)
        margin, inconsistency, unstable, pull = (
            np.concatenate([getattr(one, name) for one in found])[back]
            for name in ("margin", "inconsistency", "unstable", "pull")
        )
        margin, inconsistency = meet(boxes.margin, margin), meet(boxes.inconsistency, inconsistency)
        state = np.where(self.question.is_decided(margin, inconsistency), State.BOUNDED, State.OPEN).astype(np.uint8)
        return BoundedBoxes(replace(boxes, margin=margin, inconsistency=inconsistency, state=state), pull, unstable)


def meet(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The intersection of two enclosures (B, 2); both are proved, so an empty intersection is an internal error."""
    both = np.stack([np.maximum(first[:, 0], second[:, 0]), np.minimum(first[:, 1], second[:, 1])], axis=1)
    if (both[:, 0] > both[:, 1]).any():
        worst = int(np.argmax(both[:, 0] - both[:, 1]))
        raise InternalError(
            f"two bounds of the same box contradict each other ({first[worst].tolist()} and {second[worst].tolist()}); "
            "nothing is delivered, please report this model and image"
        )
    return both


def mixed_axes(boxes: Boxes, kept: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """An axis (B,) that separates a theta where the property holds from a violating one; −1 if the box lacks either.

    kept (M, d) and lost (N, d) in t. No bound can decide a box that contains one of each.

    >>> from types import SimpleNamespace
    >>> box = SimpleNamespace(low=np.zeros((1, 2)), high=np.ones((1, 2)))
    >>> mixed_axes(box, np.array([[0.0, 0.0]]), np.array([[0.1, 0.9]])).tolist()
    [1]
    """
    d = kept.shape[1]
    low, high = boxes.low[:, :d], boxes.high[:, :d]
    axes = np.full(len(low), -1)
    for first in kept:
        for second in lost:
            is_mixed = ((low <= np.minimum(first, second)) & (np.maximum(first, second) <= high)).all(axis=1)
            axes = np.where(is_mixed, np.argmax(np.abs(first - second) / (high - low), axis=1), axes)
    return axes


def proved_violations(
    problem: Question, bounder: Bounder, question: BoxQuestion, thetas: np.ndarray, budget: Budget | None = None
) -> np.ndarray:
    """Which (N,) of the thetas (N, d) are proved to violate the property, by bounds on tiny boxes around them.

    The boxes contain the thetas whatever the rounding of t. Once the time is over, the others count as not proved.
    """
    domain = problem.perturbed.domain
    around = 8.0 * UNIT * (np.abs(domain.low) + np.abs(domain.high)) / domain.widths + 8.0 * UNIT
    is_proved = np.zeros(len(thetas), dtype=bool)
    for number, theta in enumerate(thetas):
        if number and is_over(budget, WALKING):
            break
        point = domain.to_unit(theta[None])
        cell = problem.perturbed.cell_of(theta).index
        found = bounder.bound(cell, point - around, point + around, np.array([question.asks_attention]))
        is_proved[number] = question.is_violated(found.margin, found.inconsistency)[0]
    return is_proved


class ExactBoxes:
    """The regions of all subdivided boxes; `measures`: whether attention is measured."""

    def __init__(
        self,
        question: Question,
        original: np.ndarray,
        threads: int,
        *,
        measures: bool,
        budget: Budget | None = None,
    ) -> None:
        self.question, self.original, self.threads, self.measures = question, original, threads, measures
        self.budget = budget
        self.parts: list[RegionSet] = []
        self.curves: list[Inconsistency] = []
        self.box: list[np.ndarray] = []  # the box of each region, numbered in the order in which boxes were added
        self.boxes = 0
        self.regions = 0

    def start_from(self, answers: Answers, box: np.ndarray, boxes: int) -> None:
        """Continue with the regions of an earlier run."""
        self.parts, self.box, self.boxes = [answers.regions], [box], boxes
        self.curves = [] if answers.curves is None else [answers.curves]
        self.regions = len(answers.regions)

    def add(self, boxes: Boxes, budget: Budget) -> np.ndarray:
        """Subdivide boxes; returns which (B,) were finished within the budget: only these are added."""
        compound = self.question.compound
        found = subdivide_boxes(
            compound, boxes.cell, boxes.low, boxes.high, boxes.sides, boxes.cuts,
            budget=budget, share=WALKING, threads=self.threads,
        )  # fmt: skip
        refuse_overflow(self.question.model_name, compound, found.regions.accuracy.peaks, found.regions.logits)
        if found.complete.any():
            regions = replace(found.regions, stopped=None)
            if self.measures:
                with budget.clock.phase("attention"):
                    curves = measure(compound, regions, self.question.attention, self.original, threads=self.threads)
                self.curves.append(curves)
            places = self.boxes + np.cumsum(found.complete) - 1
            self.parts.append(regions)
            self.box.append(places[found.box])
            self.boxes += int(found.complete.sum())
            self.regions += len(regions)
        give_back_memory()
        return found.complete

    def last_answers(self, size: float) -> Answers:
        """The answers of the regions added last; size: that of the original maps."""
        return self._answers(self.parts[-1], self.curves[-1] if self.measures else None, size)

    def answers(self, cuts: np.ndarray, size: float) -> Answers | None:
        """The answers of all regions, with `cuts` at the start of their table; None if there are no regions."""
        if not self.parts:
            return None
        regions = join_region_sets(self.parts, cuts=cuts)
        curves = join_curves(self.curves, regions) if self.measures else None
        self.parts, self.curves = [regions], [] if curves is None else [curves]
        give_back_memory()
        found = self._answers(regions, curves, size)
        give_back_memory()
        return found

    def _answers(self, regions: RegionSet, curves: Inconsistency | None, size: float) -> Answers:
        question, compound = self.question, self.question.compound
        pieces = label_pieces(compound, regions, question.label, budget=self.budget)
        errors = None
        if curves is not None:
            errors = MapErrors(compound, regions.patterns, curves, question.attention, question.original_doubt)
        return Answers(compound, regions, pieces, curves, errors, size, budget=self.budget)
