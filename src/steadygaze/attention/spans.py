"""Locates regions as far as losses depend on it: by their ranges along the moving parameter, or by their shapes."""

from dataclasses import dataclass

import numpy as np

from ..accuracy import Accuracy
from ..compound import Compound
from ..polytopes import Polytopes
from ..regions.region import RegionSet


@dataclass(frozen=True, eq=False)
class Spans:
    """Ranges of τ (R, 2) of regions; all are zero if nothing moves.

    `place` turns slabs of τ into slabs of t. axis: the moving one, None if nothing moves; starts (R,): the low ends of
    the regions' knot cells. Without a compound network, slabs stay in τ. shapes: the regions themselves, if losses
    change in all directions, with the accuracy of the walk that found them, and with their knot cells (R,).
    """

    taus: np.ndarray
    compound: Compound | None = None
    axis: int | None = None
    starts: np.ndarray | None = None
    shapes: Polytopes | None = None
    accuracy: Accuracy | None = None
    cells: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.taus)

    @classmethod
    def of_regions(cls, compound: Compound, regions: RegionSet, *, has_shapes: bool = False) -> "Spans":
        """The spans of all regions of a set, with their shapes if `has_shapes`."""
        axis = compound.perturbed.moving_axis
        if has_shapes:
            nothing, accuracy = np.zeros((len(regions), 2)), regions.accuracy
            return cls(nothing, compound, shapes=regions.polytopes, accuracy=accuracy, cells=regions.cell)
        if axis is None:
            return cls(np.zeros((len(regions), 2)))
        return cls.of_ends(compound, regions.cell, np.stack(regions.polytopes.extent(axis), axis=1))

    @classmethod
    def of_ends(cls, compound: Compound, cell: np.ndarray, ends: np.ndarray) -> "Spans":
        """The spans of regions in knot cells (R,), given their ends (R, 2) in t along the moving axis."""
        axis = compound.perturbed.moving_axis
        assert axis is not None
        starts = np.array([knots.low[axis] for knots in compound.cells])[cell]
        return cls(compound.domain.to_theta(ends, axis) - starts[:, None], compound, axis, starts)

    def take(self, chosen: np.ndarray) -> "Spans":
        """The spans of the chosen regions (an index array)."""
        starts = None if self.starts is None else self.starts[chosen]
        shapes = None if self.shapes is None else self.shapes.take(chosen)
        cells = None if self.cells is None else self.cells[chosen]
        return Spans(self.taus[chosen], self.compound, self.axis, starts, shapes, self.accuracy, cells)

    @property
    def origins(self) -> np.ndarray:
        """The low corners (R, D) in t of the regions' knot cells, if they have shapes."""
        assert self.compound is not None and self.cells is not None
        return np.stack([program.low for program in self.compound.programs])[self.cells]

    @property
    def along(self) -> np.ndarray | None:
        """The directions (R, D) in t along which slabs are placed; None if nothing moves."""
        if self.compound is None or self.axis is None:
            return None
        return np.broadcast_to(np.eye(self.compound.coordinates)[self.axis], (len(self), self.compound.coordinates))

    def place(self, slab: np.ndarray) -> np.ndarray:
        """Slabs (R, 2) of τ as slabs of t along the moving axis; an empty slab stays (1, 0)."""
        if self.compound is None or self.axis is None or self.starts is None:
            return slab
        placed = self.compound.domain.to_unit(slab + self.starts[:, None], self.axis)
        return np.where(slab[:, :1] > slab[:, 1:], [1.0, 0.0], placed)


def up_to(last: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The part (N, 2) of ranges (N, 2) up to a place (N,); an empty one is (1, 0)."""
    found = np.stack([ends[:, 0], np.minimum(ends[:, 1], last)], axis=1)
    return np.where((last >= ends[:, 0])[:, None], found, [1.0, 0.0])
