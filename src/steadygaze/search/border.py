"""The regions along the border of the domain: on each side of the box the network has one parameter less.

The regions of that smaller network are found by the same traversal; each leads to the region of the domain behind it.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..compound import CellProgram
from ..traversal import Traversal, TraversedRegion
from ..traversal.traverse import LostRegionError
from .parts import facet_corners
from .walker import Walker


@dataclass(frozen=True, eq=False)
class BorderStep:
    """Two regions of the domain beside each other along its border, and points (S, d) between them on the border.

    At the start of a side there is no region before (None).
    """

    before: TraversedRegion | None
    region: TraversedRegion
    between: np.ndarray


def border_steps(walker: Walker) -> Iterator[BorderStep]:
    """Every region that has a facet on the border, and all pairs of them that meet on a side of the box."""
    d = walker.traversal.dimension
    for axis in range(d):
        for side in (0, 1):
            yield from _Side(walker, axis, side).steps()


class _Side:
    """One side of the box of the domain."""

    def __init__(self, walker: Walker, axis: int, side: int) -> None:
        self.walker, self.axis, self.side = walker, axis, side
        self.inward = np.zeros(walker.traversal.dimension)
        self.inward[axis] = 1.0 - 2.0 * side

    def steps(self) -> Iterator[BorderStep]:
        d = self.walker.traversal.dimension
        if d == 1:
            region = self._behind(np.zeros(0))
            if region is not None:
                yield BorderStep(None, region, np.zeros((0, 1)))
            return
        traversal = Traversal(self._cells(), d - 1)
        try:
            first = traversal.region_at(np.full(d - 1, 0.5))
        except LostRegionError:
            self.walker.lost += 1
            return
        behind = self._behind(first.inside)
        if behind is not None:
            yield BorderStep(None, behind, np.zeros((0, d)))
        seen, queue = {first.key: behind}, deque([first])
        while queue:
            region = queue.popleft()
            for facet in range(len(region.halfspaces)):
                try:
                    beyond = traversal.cross(region, facet)
                except LostRegionError:
                    self.walker.lost += 1
                    continue
                if beyond is None:
                    continue
                if beyond.key not in seen:
                    seen[beyond.key] = self._behind(beyond.inside)
                    queue.append(beyond)
                one, other = seen[region.key], seen[beyond.key]
                if other is not None:
                    yield BorderStep(one, other, self._embed(_between(region, facet)))

    def _cells(self) -> list[CellProgram]:
        """The network on this side, with one parameter less, for every knot cell that reaches it."""
        d, axis = self.walker.traversal.dimension, self.axis
        others = [i for i in range(d) if i != axis]
        cells = []
        for cell in self.walker.traversal.cells:
            if (cell.high if self.side else cell.low)[axis] != float(self.side):
                continue
            width = max(2, d - 1)
            root = np.zeros((width + 1, cell.root.shape[1]))
            root[: d - 1] = cell.root[others]
            root[-1] = cell.root[-1] + self.side * cell.root[axis]
            low, high = np.zeros(width), np.ones(width)
            low[: d - 1], high[: d - 1] = cell.low[others], cell.high[others]
            cells.append(replace(cell, root=root, low=low, high=high))
        return cells

    def _embed(self, points: np.ndarray) -> np.ndarray:
        return np.insert(points, self.axis, float(self.side), axis=-1)

    def _behind(self, point: np.ndarray) -> TraversedRegion | None:
        """The region of the domain behind a point (d−1,) of this side."""
        try:
            return self.walker.traversal.region_beyond(self._embed(point), self.inward)
        except LostRegionError:
            self.walker.lost += 1
            return None


def _between(region: TraversedRegion, facet: int) -> np.ndarray:
    """Points of a facet of a region on the side: its centre and its corners."""
    return np.concatenate([region.centres[[facet]], facet_corners(region, facet)])
