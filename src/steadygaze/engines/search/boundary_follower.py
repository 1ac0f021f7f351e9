"""Follows the boundary alone, from the search line and from the border of the domain, region by region.

Where the frontier of the kept part ends at a corner, the follower visits every region around that corner, so it finds
the continuation: through regions that the decision boundary crosses, along facets between an AR and an IR region, or
along slabs where ai = δ. It needs no w^δ. On each side of the domain's box the network has one parameter less: the same
traversal finds the regions of that smaller network, and each leads to the region behind it.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from ...compound import CellProgram
from ...labels import Property
from ...tolerances import BEYOND, TOUCH
from .boundary_parts import Parts, differing_ends, facet_corners, frontier_points, make_parts, outermost_parts
from .halfspaces import LinearProgramTroubleError
from .traversal import Traversal
from .visited import BoundaryPart, TraversedRegion, Visited
from .walker import SearchLine, Walker


class BoundaryFollower:
    """The state of one run: the parts of all regions seen, and the frontier points still to be explored."""

    def __init__(self, walker: Walker, line: SearchLine) -> None:
        self.walker, self.line = walker, line
        self.parts: dict[bytes, Parts] = {}
        self.beyond: dict[tuple[bytes, int], bytes | None] = {}
        self.around: dict[bytes, np.ndarray] = {}
        self.queue: deque[tuple[bytes, np.ndarray]] = deque()
        self.followed: set[bytes] = set()
        self.is_following = False

    def run(self) -> tuple[list[Visited], list[BoundaryPart] | None]:
        """The regions seen, and the components of the outermost boundary (None after a limit or a failed program)."""
        for line in (self.line, *self._other_lines()):
            self._start_from_line(line)
        self._look_around(self.line.start)
        self._start_from_border()
        self.is_following = True
        while self.queue and self.walker.goes_on(len(self.parts)):
            self._spread(*self.queue.popleft())
        visited = [parts.visited for parts in self.parts.values()]
        if self.walker.stopped is not None:
            return visited, None
        try:
            found = outermost_parts(
                self.walker.traversal, self.parts, self._key_beyond, self.line.start, self.walker.goes_on
            )
            return visited, found
        except LinearProgramTroubleError:
            return visited, None

    def _other_lines(self) -> list[SearchLine]:
        """With one parameter the border has two points and leads nowhere: add lines from zero in both directions."""
        if self.walker.traversal.dimension > 1:
            return []
        ends = [end - self.line.start for end in (np.zeros(1), np.ones(1))]
        return [SearchLine(self.line.start, step, self.line.widths) for step in ends if np.abs(step).max() > TOUCH]

    def _start_from_line(self, line: SearchLine) -> None:
        region = self.walker.attempt(self.walker.traversal.region_beyond, line.start, line.step)
        if region is None:
            return
        parts, passed = self._add(region), {region.key}
        while parts is not None and self.walker.goes_on(len(self.parts)):
            self._mark(parts, self._frontier(parts))
            passage = line.passage(parts.region)
            beyond = None if passage is None or passage[2] < 0 else self._cross(parts.region, passage[2])
            if passage is None or beyond is None or beyond.key in passed:
                return
            passed.add(beyond.key)
            other = self._add(beyond)
            if other is not None:
                self._compare(parts, passage[2], other)
            parts = other

    def _start_from_border(self) -> None:
        for step in border_steps(self.walker):
            if not self.walker.goes_on(len(self.parts)):
                return
            own = self._add(step.region)
            if own is not None and own.kept is not None and len(own.kept):
                points = self._frontier(own)
                if ((points <= TOUCH) | (points >= 1.0 - TOUCH)).any():
                    self._mark(own, points)
            before = None if step.before is None else self.parts.get(step.before.key)
            if own is None or before is None or step.before is None:
                continue
            is_end = any(own.keeps(point) != before.keeps(point) for point in step.between)
            if is_end or not self._is_beside(step.before, step.region, step.between):
                self._mark(own, step.between)
                self._mark(before, step.between)
        for corner in product((0.0, 1.0), repeat=self.walker.traversal.dimension):
            self._look_around(np.array(corner))

    def _is_beside(self, region: TraversedRegion, other: TraversedRegion, between: np.ndarray) -> bool:
        """Whether two regions share a facet that contains the points between them on the border.

        If not, other regions lie between the two and touch the border only in these points.
        """
        if region.key == other.key:
            return True
        facets = np.flatnonzero((_gaps(region, between) <= TOUCH).all(axis=1))
        return any(self._key_beyond(region, int(facet)) == other.key for facet in facets)

    def _look_around(self, point: np.ndarray) -> None:
        """Queue a point in all regions seen so far that contain it: the run then visits all regions around it."""
        for parts in list(self.parts.values()):
            if parts.region.contains(point, within=TOUCH):
                self._mark(parts, point[None])

    def _add(self, region: TraversedRegion) -> Parts | None:
        """The parts of a region, labelled when first seen; None if a linear program failed."""
        if region.key not in self.parts:
            visited = self.walker.labeller.label(region, is_following=self.is_following)
            made = self.walker.attempt(make_parts, self.walker.labeller, visited, self.walker.property)
            if made is None:
                return None
            self.parts[region.key] = made
        return self.parts[region.key]

    def _frontier(self, parts: Parts) -> np.ndarray:
        """The corners of the frontier inside a region; none, counted as a failure, if they cannot be found."""
        points = self.walker.attempt(frontier_points, self.walker.traversal, parts)
        return np.zeros((0, parts.region.dimension)) if points is None else points

    def _mark(self, parts: Parts, points: np.ndarray) -> None:
        """Queue those of the points (S, d) of a region that are new: on the frontier, or where it may continue."""
        known = self.around.get(parts.region.key, np.zeros((0, parts.region.dimension)))
        fresh = [p for p in points if not len(known) or np.abs(known - p).max(axis=1).min() > TOUCH]
        if fresh:
            self.around[parts.region.key] = np.concatenate([known, fresh])
            self.queue.append((parts.region.key, np.array(fresh)))

    def _spread(self, key: bytes, points: np.ndarray) -> None:
        """Cross every facet of a region that contains one of the points."""
        parts = self.parts[key]
        gaps = _gaps(parts.region, points)
        for facet in np.flatnonzero((gaps <= TOUCH).any(axis=1)):
            beyond = self._cross(parts.region, int(facet))
            other = None if beyond is None else self._add(beyond)
            if beyond is None or other is None:
                continue
            if beyond.key not in self.followed:
                self.followed.add(beyond.key)
                self._mark(other, self._frontier(other))
            self._mark(other, points[gaps[facet] <= TOUCH])
            self._compare(parts, int(facet), other)

    def _compare(self, parts: Parts, facet: int, other: Parts) -> None:
        """If two kept parts have different traces on their facet, the frontier runs along it: mark the traces' ends."""
        if self.walker.property is Property.CR and parts.kept is not None and other.kept is not None:
            return  # the margin is continuous, so the traces are equal unless a tie lies beside a kept part
        ends = self.walker.attempt(differing_ends, self.walker.traversal, parts, facet, other)
        if ends is not None:
            self._mark(parts, ends)
            self._mark(other, ends)

    def _cross(self, region: TraversedRegion, facet: int) -> TraversedRegion | None:
        key = self._key_beyond(region, facet)
        if key is None:
            return None
        if key in self.parts:
            return self.parts[key].region
        found = self.walker.cross(region, facet)
        if found is not None:
            self.beyond[region.key, facet] = found.key
        return found

    def _key_beyond(self, region: TraversedRegion, facet: int) -> bytes | None:
        if (region.key, facet) not in self.beyond:
            self.beyond[region.key, facet] = self.walker.key_beyond(region, facet)
        return self.beyond[region.key, facet]


def _gaps(region: TraversedRegion, points: np.ndarray) -> np.ndarray:
    """The distances (F, S) of points (S, d) from the planes of a region's facets."""
    return np.abs(region.halfspaces[:, :-1] @ points.T + region.halfspaces[:, [-1]])


class BorderStep(NamedTuple):
    """Two neighbouring regions of the domain along its border, and points (S, d) between them on the border.

    At the start of a side, the region before is None.
    """

    before: TraversedRegion | None
    region: TraversedRegion
    between: np.ndarray


def border_steps(walker: Walker) -> Iterator[BorderStep]:
    """Every region with a facet on the border, and all pairs of such regions that meet on a side of the box."""
    for axis, side in product(range(walker.traversal.dimension), (0, 1)):
        yield from _side_steps(walker, axis, side)


def _side_steps(walker: Walker, axis: int, side: int) -> Iterator[BorderStep]:
    d = walker.traversal.dimension
    inward, others = (1.0 - 2.0 * side) * np.eye(d)[axis], [i for i in range(d) if i != axis]

    def embed(points: np.ndarray) -> np.ndarray:
        """Points (…, d−1) of this side as points (…, d) of the domain."""
        whole = np.full((*points.shape[:-1], d), float(side))
        whole[..., others] = points
        return whole

    def behind(point: np.ndarray) -> TraversedRegion | None:
        """The region of the domain behind a point (d−1,) of this side."""
        return walker.attempt(walker.traversal.region_beyond, embed(point), inward)

    if d == 1:
        region = behind(np.zeros(0))
        if region is not None:
            yield BorderStep(None, region, np.zeros((0, 1)))
        return
    traversal = Traversal(_cells_of_side(walker.traversal.cells, axis, side, d), d - 1)
    first = walker.attempt(traversal.region_at, np.full(d - 1, 0.5))
    if first is None:
        return
    seen, queue = {first.key: behind(first.inside)}, deque([first])
    if (start := seen[first.key]) is not None:
        yield BorderStep(None, start, np.zeros((0, d)))
    while queue and walker.goes_on():
        region = queue.popleft()
        for facet in range(len(region.halfspaces)):
            key = walker.attempt(traversal.key_beyond, region, facet)
            if key is None:
                continue
            if key not in seen:
                beyond = walker.attempt(traversal.cross, region, facet)
                if beyond is None:
                    continue
                key = beyond.key
                if key not in seen:
                    seen[key] = behind(beyond.inside)
                    queue.append(beyond)
            if (other := seen[key]) is not None:
                points = np.concatenate([region.centres[[facet]], facet_corners(region, facet)])
                yield BorderStep(seen[region.key], other, embed(points))


def _cells_of_side(cells: Sequence[CellProgram], axis: int, side: int, d: int) -> list[CellProgram]:
    """The network on a side, with one parameter less, for every knot cell that reaches it."""
    others, width = [i for i in range(d) if i != axis], max(2, d - 1)
    found = []
    for cell in cells:
        if (cell.high if side else cell.low)[axis] != float(side):
            continue
        root = np.zeros((width + 1, cell.root.shape[1]))
        root[: d - 1] = cell.root[others]
        root[-1] = cell.root[-1] + side * cell.root[axis]
        low, high = np.zeros(width), np.ones(width)
        low[: d - 1], high[: d - 1] = cell.low[others], cell.high[others]
        form = None
        if cell.side is not None:
            form = np.zeros(width + 1)
            form[: d - 1], form[-1] = cell.side[others], cell.side[-1] + side * cell.side[axis]
            reach = form[:-1] * np.where(form[:-1] > 0.0, high, low)
            if float(reach.sum() + form[-1]) <= BEYOND * float(np.abs(form[:-1]).sum()):
                continue  # the cell meets the side only in a corner
        found.append(replace(cell, root=root, low=low, high=high, side=form))
    return found
