"""The boxes that are not decided yet: bounded in blocks, by any number of threads, and split where bounds say nothing.

The order of the boxes, and with it the result, does not depend on the threads. Nothing is handed over here: boxes for
which the exact subdivision is cheaper are put aside.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from ..bounds.bounder import Bounder, Enclosures
from ..errors import InternalError
from .boxes import Boxes, State
from .decide import Question

BLOCK = 16
"""Batches of boxes between two questions to the budget, and two looks at the share that is left."""

SLIMMEST = 16.0
"""The longest side of a box is split whenever it is so many times as long as the shortest."""

SMALLEST = 2.0**-24
"""Boxes with no side longer than this are not split any more: rounding would decide their fate."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Boxes with what their bounds say; pull (B, d) hints where to split, unstable (B,) how much is open in them."""

    boxes: Boxes
    pull: np.ndarray
    unstable: np.ndarray


class Frontier:
    """Bounds boxes of one problem."""

    def __init__(self, bounder: Bounder, question: Question, threads: int) -> None:
        self.bounder, self.question = bounder, question
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def close(self) -> None:
        """End the threads."""
        if self.pool is not None:
            self.pool.shutdown()

    def blocks(self, boxes: Boxes) -> Iterator[Boxes]:
        """The boxes in runs of some batches, each of one knot cell."""
        step = BLOCK * self.bounder.batch
        for cell in np.unique(boxes.cell):
            chosen = np.flatnonzero(boxes.cell == cell)
            for first in range(0, len(chosen), step):
                yield boxes.take(chosen[first : first + step])

    def look(self, boxes: Boxes) -> Seen:
        """Bound boxes of one knot cell; what was known of them before stays."""
        needs = self.question.needs_attention(boxes.margin, boxes.inconsistency)
        # Boxes that need the backward pass side by side, so that batches are filled with one kind.
        order = np.argsort(~needs, kind="stable")
        parts = [order[first : first + self.bounder.batch] for first in range(0, len(boxes), self.bounder.batch)]

        def run(part: np.ndarray) -> Enclosures:
            d = self.bounder.perturbed.domain.dimension
            cell, low, high = int(boxes.cell[0]), boxes.low[part, :d], boxes.high[part, :d]
            return self.bounder.bound(cell, low, high, needs[part])

        run_all: Callable = map if self.pool is None else self.pool.map
        found = list(run_all(run, parts))
        back = np.argsort(order)
        margin, inconsistency, unstable, pull = (
            np.concatenate([getattr(one, name) for one in found])[back]
            for name in ("margin", "inconsistency", "unstable", "pull")
        )
        seen = replace(
            boxes, margin=_meet(boxes.margin, margin), inconsistency=_meet(boxes.inconsistency, inconsistency)
        )
        is_decided = self.question.is_decided(seen.margin, seen.inconsistency)
        state = np.where(is_decided, State.BOUNDED, State.OPEN).astype(np.uint8)
        return Seen(replace(seen, state=state), pull, unstable)


def _meet(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """What two enclosures (B, 2) say together; both are proved, so they must have something in common."""
    both = np.stack([np.maximum(first[:, 0], second[:, 0]), np.minimum(first[:, 1], second[:, 1])], axis=1)
    if (both[:, 0] > both[:, 1]).any():
        worst = int(np.argmax(both[:, 0] - both[:, 1]))
        raise InternalError(
            f"two bounds of the same box contradict each other ({first[worst].tolist()} and {second[worst].tolist()}); "
            "nothing is delivered, please report this model and image"
        )
    return both


def split_axes(seen: Seen) -> np.ndarray:
    """The axis (B,) along which to halve each box: the parameter that moves most of what is open, or the longest."""
    d = seen.pull.shape[1]
    sides = (seen.boxes.high - seen.boxes.low)[:, :d]
    is_slim = sides.max(axis=1) > SLIMMEST * sides.min(axis=1)
    pull = np.where(seen.pull.max(axis=1, keepdims=True) > 0.0, seen.pull, sides)
    return np.where(is_slim, np.argmax(sides, axis=1), np.argmax(pull, axis=1))


def mixed_axes(boxes: Boxes, kept: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """An axis (B,) that parts a theta where the property holds from one where it does not; −1 where a box has no both.

    kept (M, d) and lost (N, d) in t. No bound can decide a box that holds one of each.

    >>> from types import SimpleNamespace
    >>> box = SimpleNamespace(low=np.zeros((1, 2)), high=np.ones((1, 2)))
    >>> mixed_axes(box, np.array([[0.0, 0.0]]), np.array([[0.1, 0.9]])).tolist()
    [1]
    """
    axes = np.full(len(boxes.low), -1)
    for first in kept:
        for second in lost:
            d = len(first)
            inside = [
                ((boxes.low[:, :d] <= theta) & (theta <= boxes.high[:, :d])).all(axis=1) for theta in (first, second)
            ]
            apart = np.abs(first - second) / (boxes.high - boxes.low)[:, :d]
            axes = np.where(inside[0] & inside[1], np.argmax(apart, axis=1), axes)
    return axes


def is_smallest(boxes: Boxes, dimension: int) -> np.ndarray:
    """Which boxes (B,) are not split any more."""
    return (boxes.high - boxes.low)[:, :dimension].max(axis=1) <= SMALLEST
