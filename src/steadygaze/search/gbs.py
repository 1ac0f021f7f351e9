"""Algorithms 1 and 2 of the paper, GBS: search along the line for the boundary, then follow it.

The comments give the lines of Algorithm 1 (1:…) and Algorithm 2 (2:…). Corrected as docs/paper.md says: a pattern is
observed when it is entered; searching pushes the neighbour that the line enters; near also means to have a facet to a
region of the other label; a region keeps all of its non-redundant half-spaces.
"""

import heapq
from dataclasses import replace
from itertools import count

from ..traversal import TraversedRegion
from ..traversal.traverse import LostRegionError
from ..verdict import Property
from .line import Line
from .outcome import Holds, Visited
from .walker import Walker

OTHER = {Holds.EVERYWHERE: Holds.NOWHERE, Holds.NOWHERE: Holds.EVERYWHERE}


class BoundarySearch:
    """The state of one search: the queue Q, and the observed patterns OBS."""

    def __init__(self, walker: Walker, line: Line, w_delta: float) -> None:
        self.walker, self.line, self.w_delta = walker, line, w_delta
        self.queue: list[tuple[float, int, TraversedRegion, bool]] = []
        self.observed: set[bytes] = set()
        self.known: dict[bytes, Visited] = {}
        self.made: dict[bytes, TraversedRegion] = {}
        self.order = count()

    def run(self) -> list[Visited]:
        """Visit the regions on the line and near the outermost boundary; ends early with the budget."""
        visited: list[Visited] = []
        try:
            first = self.walker.traversal.region_beyond(self.line.start, self.line.step)
        except LostRegionError:
            self.walker.lost += 1
            return visited
        self._push(first, False, 0.0)  # 1:3
        while self.queue and self.walker.goes_on(len(visited)):  # 1:5
            distance, _, region, is_following = heapq.heappop(self.queue)  # 1:6, popMaxLineDistance
            if region.key in self.observed:
                continue
            self.observed.add(region.key)
            one = replace(self._label(region), is_following=is_following)
            visited.append(one)
            self._expand(one, -distance)
        return visited

    def _expand(self, one: Visited, distance: float) -> None:
        """Push the neighbours of a region that the search goes on to."""
        region, is_following = one.region, one.is_following
        passage = self.line.passage(region)
        leaves_at, facet = (0.0, -1) if passage is None else passage[1:]
        farther = self.line.distance(leaves_at)
        if is_following and facet >= 0 and farther > distance:
            is_following = False  # 1:17–18, the line is found again farther out
        holds, is_near = one.holds(self.walker.property), self._is_near(one)
        if not is_near and (holds is Holds.NOWHERE or (holds is Holds.EVERYWHERE and is_following)):
            return  # 2:7 and 2:10
        if not is_following and not is_near:
            if facet >= 0:
                self._cross(region, facet, False, farther)  # 1:21, continue the line-search
            return
        for number in range(len(region.halfspaces)):  # 1:23 and 2:16, follow the boundary
            self._cross(region, number, True, farther if number == facet else distance)

    def _is_near(self, one: Visited) -> bool:
        """2:4: on the boundary, closer to it than w^δ, or with a facet to a region of the other label."""
        wanted, holds = self.walker.property, one.holds(self.walker.property)
        if holds in (Holds.PARTLY, Holds.UNKNOWN):
            return True
        if wanted is Property.CR:
            # The margin is continuous: beyond a region that keeps the label everywhere it is kept in part at least.
            return False
        if one.classification != "MR" and self._is_within_band(one):
            return True
        return self._touches_other(one, OTHER[holds])

    def _is_within_band(self, one: Visited) -> bool:
        delta = self.walker.labeller.delta
        return any(abs(end - delta) <= self.w_delta for end in one.inconsistency)

    def _touches_other(self, one: Visited, other: Holds) -> bool:
        """Whether a region has a facet to one of the other label, or to one that may be."""
        region, walker = one.region, self.walker
        keeps_map = walker.problem.perturbed.moving_axis is None
        for facet in range(len(region.halfspaces)):
            if keeps_map and walker.property is Property.AR:
                try:
                    pattern = walker.traversal.pattern_beyond(region, facet)
                except LostRegionError:
                    walker.lost += 1
                    continue
                if pattern is None:
                    continue
                label = walker.labeller.attend_pattern(pattern)
                if label in ("undecided", "AR" if other is Holds.EVERYWHERE else "IR"):
                    return True
                continue
            beyond = self._beyond(region, facet)
            if beyond is not None and self._label(beyond).holds(walker.property) in (other, Holds.UNKNOWN):
                return True
        return False

    def _label(self, region: TraversedRegion) -> Visited:
        if region.key not in self.known:
            self.known[region.key] = self.walker.label(region)
        return self.known[region.key]

    def _beyond(self, region: TraversedRegion, facet: int) -> TraversedRegion | None:
        """The region beyond a facet; one that was made before is not made again."""
        key = self.walker.key_beyond(region, facet)
        if key is None:
            return None
        if key not in self.made:
            beyond = self.walker.cross(region, facet)
            if beyond is None or beyond.key != key:
                return beyond
            self.made[key] = beyond
        return self.made[key]

    def _cross(self, region: TraversedRegion, facet: int, is_following: bool, distance: float) -> None:
        beyond = self._beyond(region, facet)
        if beyond is not None and beyond.key not in self.observed:
            self._push(beyond, is_following, distance)

    def _push(self, region: TraversedRegion, is_following: bool, distance: float) -> None:
        # Of equal distances the last one in comes out first, so that consecutive regions are neighbours.
        heapq.heappush(self.queue, (-distance, -next(self.order), region, is_following))
