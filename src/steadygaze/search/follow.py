"""The boundary alone: start from the line and from the border of the domain, and follow it from region to region.

Where the frontier of the kept part ends at a corner, every region around that corner is looked at, so that the frontier
is found again wherever it goes on: through the regions that the decision boundary crosses, along facets between an AR
and an IR region, along the slabs where ai = δ. No w^δ is needed.
"""

from collections import deque
from itertools import product

import numpy as np
from scipy.spatial import QhullError

from ..tolerances import TOUCH
from ..traversal import TraversedRegion
from ..traversal.programs import LinearProgramTroubleError
from ..traversal.traverse import LostRegionError
from ..verdict import Property
from .border import border_steps
from .components import outermost_parts
from .line import Line
from .outcome import BoundaryPart, Visited
from .parts import Parts, differs_on_facet, facet_corners, facet_interval, frontier_points, make_parts
from .walker import Walker


class BoundaryFollower:
    """The state of one run: the parts of all regions seen, and the points of the frontier still to be looked around."""

    def __init__(self, walker: Walker, line: Line) -> None:
        self.walker, self.line = walker, line
        self.parts: dict[bytes, Parts] = {}
        self.beyond: dict[tuple[bytes, int], bytes | None] = {}
        self.around: dict[bytes, np.ndarray] = {}
        self.queue: deque[tuple[bytes, np.ndarray]] = deque()
        self.followed: set[bytes] = set()
        self.is_following = False

    def run(self) -> tuple[list[Visited], list[BoundaryPart] | None]:
        """The regions looked at, and the components of the outermost boundary: None where a limit or a failure is."""
        for line in (self.line, *self._other_lines()):
            self._start_from_line(line)
        self._look_around(self.line.start, [parts.region for parts in list(self.parts.values())])
        self._start_from_border()
        self.is_following = True
        while self.queue and self.walker.goes_on(len(self.parts)):
            self._spread(*self.queue.popleft())
        visited = [parts.visited for parts in self.parts.values()]
        if self.walker.stopped is not None:
            return visited, None
        try:
            return visited, outermost_parts(self.walker.traversal, self.parts, self._key_beyond, self.line.start)
        except LinearProgramTroubleError:
            return visited, None

    def _other_lines(self) -> list[Line]:
        """With one parameter the border is two points and tells nothing: the other way from zero is a line, too."""
        if self.walker.traversal.dimension > 1:
            return []
        ends = [end - self.line.start for end in (np.zeros(1), np.ones(1))]
        return [Line(self.line.start, step, self.line.widths) for step in ends if np.abs(step).max() > TOUCH]

    def _start_from_line(self, line: Line) -> None:
        try:
            region = self.walker.traversal.region_beyond(line.start, line.step)
        except LostRegionError:
            self.walker.lost += 1
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
            is_end = any(_is_kept_at(own, point) != _is_kept_at(before, point) for point in step.between)
            if is_end or not self._is_beside(step.before, step.region, step.between):
                self._mark(own, step.between)
                self._mark(before, step.between)
        corners = np.array(list(product((0.0, 1.0), repeat=self.walker.traversal.dimension)))
        for corner in corners:
            self._look_around(corner, [parts.region for parts in list(self.parts.values())])

    def _is_beside(self, region: TraversedRegion, other: TraversedRegion, between: np.ndarray) -> bool:
        """Whether two regions have a facet in common that holds the points between them on the border.

        Elsewhere further regions lie between the two, which touch the border in these points alone.
        """
        gaps = np.abs(region.halfspaces[:, :-1] @ between.T + region.halfspaces[:, [-1]])
        facets = np.flatnonzero((gaps <= TOUCH).all(axis=1))
        return region.key == other.key or any(self._key_beyond(region, int(f)) == other.key for f in facets)

    def _look_around(self, point: np.ndarray, regions: list[TraversedRegion]) -> None:
        """Look at all regions that contain a point, from those at hand on."""
        for region in regions:
            if region.contains(point, within=TOUCH):
                self._mark(self.parts[region.key], point[None])

    def _add(self, region: TraversedRegion) -> Parts | None:
        """The parts of a region, labelled when it is seen for the first time; None where a program failed."""
        if region.key not in self.parts:
            visited = self.walker.label(region, is_following=self.is_following)
            try:
                self.parts[region.key] = make_parts(self.walker.labeller, visited, self.walker.property)
            except LinearProgramTroubleError:
                self.walker.lost += 1
                return None
        return self.parts[region.key]

    def _frontier(self, parts: Parts) -> np.ndarray:
        """The corners of the frontier inside a region; none (and a failure) where they cannot be found."""
        try:
            return frontier_points(self.walker.traversal, parts)
        except (LinearProgramTroubleError, QhullError):
            self.walker.lost += 1
            return np.zeros((0, parts.region.dimension))

    def _mark(self, parts: Parts, points: np.ndarray) -> None:
        """Queue points (S, d) of the frontier, or where it may go on, that were not looked around in a region."""
        known = self.around.get(parts.region.key, np.zeros((0, parts.region.dimension)))
        fresh = [p for p in points if not len(known) or np.abs(known - p).max(axis=1).min() > TOUCH]
        if fresh:
            self.around[parts.region.key] = np.concatenate([known, fresh])
            self.queue.append((parts.region.key, np.array(fresh)))

    def _spread(self, key: bytes, points: np.ndarray) -> None:
        """Cross every facet of a region that holds one of the points."""
        parts = self.parts[key]
        region = parts.region
        gaps = np.abs(region.halfspaces[:, :-1] @ points.T + region.halfspaces[:, [-1]])
        for facet in np.flatnonzero((gaps <= TOUCH).any(axis=1)):
            beyond = self._cross(region, int(facet))
            if beyond is None:
                continue
            other = self._add(beyond)
            if other is None:
                continue
            if beyond.key not in self.followed:
                self.followed.add(beyond.key)
                self._mark(other, self._frontier(other))
            self._mark(other, points[gaps[facet] <= TOUCH])
            self._compare(parts, int(facet), other)

    def _compare(self, parts: Parts, facet: int, other: Parts) -> None:
        """Where the traces of two kept parts on their facet differ, the frontier runs along it."""
        if self.walker.property is Property.CR and parts.kept is not None and other.kept is not None:
            return  # the margin is continuous, so the traces are the same; only a tie is not kept beside what is
        region = parts.region
        try:
            if not differs_on_facet(self.walker.traversal, region, facet, parts.kept, other.kept):
                return
        except LinearProgramTroubleError:
            self.walker.lost += 1
            return
        ends = _trace_ends(region, facet, parts, other)
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


def _is_kept_at(parts: Parts, point: np.ndarray) -> bool:
    """Whether a point (d,) of a region belongs to the closure of its kept part."""
    return parts.kept is not None and bool((parts.kept[:, :-1] @ point + parts.kept[:, -1] >= -TOUCH).all())


def _trace_ends(region: TraversedRegion, facet: int, parts: Parts, other: Parts) -> np.ndarray:
    """The corners of a facet, and in two dimensions the ends of both traces on it."""
    corners = facet_corners(region, facet)
    if region.dimension != 2:
        return corners
    row = region.halfspaces[facet]
    along = np.array([-row[1], row[0]])
    origin = region.centres[facet] - (region.centres[facet] @ along) * along
    ends = [facet_interval(region, facet, rows) for rows in (parts.kept, other.kept) if rows is not None and len(rows)]
    places = np.array([place for low, high in ends if high > low for place in (low, high)])
    return np.concatenate([corners, origin + places[:, None] * along]) if len(places) else corners
