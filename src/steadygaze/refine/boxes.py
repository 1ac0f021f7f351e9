"""The boxes that a refinement splits the domain into: what is known of each, and how one is split. Data only."""

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from ..compound import Compound
from ..regions.assemble import CutTable
from ..regions.region import Cut


class State(IntEnum):
    """How far a box has come."""

    OPEN = 0  # not decided: it may still be split, or handed over
    BOUNDED = 1  # decided by bounds
    EXACT = 2  # handed to the exact subdivision


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes (B of them) with disjoint interiors, in t.

    cell (B,): the knot cell. low and high (B, D): neighbours share these numbers bit by bit. sides (B, D, 2): the
    signed cut at the low and the high side of every axis; two boxes that touch along a cut carry it with opposite
    signs. margin and inconsistency (B, 2): proved enclosures over the box. cuts (E, 3): the table of all cuts, borders
    and knots first (see `Cut`).
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

    def take(self, chosen: np.ndarray) -> "Boxes":
        """The chosen boxes (an index array or a mask) in that order; the table of cuts stays whole."""
        names = ("cell", "low", "high", "sides", "margin", "inconsistency", "state")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    @classmethod
    def of(cls, compound: Compound) -> "Boxes":
        """The knot cells of a compound network, as boxes of which nothing is known."""
        cells = compound.corners
        table = CutTable(cells)
        count, coordinates = len(cells), compound.coordinates
        ends = np.array([[cell.low, cell.high] for cell in cells])
        sides = np.zeros((count, coordinates, 2), dtype=np.int64)
        for number in range(count):
            for axis in range(coordinates):
                for side in (0, 1):
                    sides[number, axis, side] = table.side(axis, side, ends[number, side])
        return cls(
            cell=np.arange(count),
            low=ends[:, 0],
            high=ends[:, 1],
            sides=sides,
            margin=np.tile([-np.inf, np.inf], (count, 1)),
            inconsistency=np.tile([0.0, np.inf], (count, 1)),
            state=np.zeros(count, dtype=np.uint8),
            cuts=table.cuts(),
        )

    def split(self, axes: np.ndarray) -> "Boxes":
        """Halve every box along its axis (B,), the new cuts at the end of the table."""
        return replace(self.halves(axes, len(self.cuts)), cuts=np.concatenate([self.cuts, split_rows(axes)]))

    def halves(self, axes: np.ndarray, cuts: int) -> "Boxes":
        """The two halves of each box along its axis (B,), side by side; they know what it knew.

        The cuts between them are numbered after so many others; the table is left as it is.
        """
        count = len(self)
        halves = self.take(np.repeat(np.arange(count), 2))
        first, second = 2 * np.arange(count), 2 * np.arange(count) + 1
        middle = 0.5 * (self.low[np.arange(count), axes] + self.high[np.arange(count), axes])
        halves.high[first, axes] = middle
        halves.low[second, axes] = middle
        # As for knots: what lies above a cut is on its positive side.
        numbers = cuts + 1 + np.arange(count)
        halves.sides[first, axes, 1] = -numbers
        halves.sides[second, axes, 0] = numbers
        return halves


def split_rows(axes: np.ndarray) -> np.ndarray:
    """Rows (N, 3) of the table of cuts for boxes that were halved along axes (N,)."""
    return np.stack([np.full(len(axes), Cut.SPLIT), axes, np.zeros(len(axes))], axis=1).astype(np.int32)


def joined(parts: list[Boxes], cuts: np.ndarray) -> Boxes:
    """Boxes one after another, with one table of cuts for all of them."""
    names = ("cell", "low", "high", "sides", "margin", "inconsistency", "state")
    return Boxes(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names}, cuts=cuts)
