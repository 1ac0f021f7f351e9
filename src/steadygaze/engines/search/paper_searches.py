"""Runs the searches, from a question to visited regions: BFS and GBS of the paper, and the boundary followed alone.

Comments cite the lines of the paper's Algorithm 1 (1:…) and Algorithm 2 (2:…), which are GBS; Algorithm 3 is BFS.
docs/paper.md lists the corrections: a pattern counts as observed when its region is entered; every neuron that vanishes
on a facet is decided again beyond it; searching pushes the neighbour that the line enters; a region with a facet to a
region of the other label is also near the boundary; a region keeps all of its non-redundant half-spaces.
"""

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

import numpy as np

from ...attention.measures.distance import DISTANCE
from ...budget import Budget
from ...errors import OptionError
from ...labels import Label, Property
from ...question import Question
from ...tolerances import AREA
from ..contract import CORNER, W_DELTA, W_SHARE, RunOptions
from .boundary_follower import BoundaryFollower
from .search_tiling import SearchTiling
from .visited import Holds, TraversedRegion, Visited
from .visited_shares import unknown_shares, visited_shares
from .walker import SearchLine, Walker, check_visited

OTHER = {Holds.EVERYWHERE: Holds.NOWHERE, Holds.NOWHERE: Holds.EVERYWHERE}


def search(
    question: Question, method: str, budget: Budget, options: RunOptions, progress: Callable[[int], None] | None = None
) -> SearchTiling:
    """Visit regions of a problem one by one: all of them (bfs), or those near the outermost boundary (gbs, boundary).

    If the budget ends first, the tiling holds the regions visited so far. `progress` receives their number now and
    then.
    """
    domain = question.perturbed.domain
    path = (
        None
        if method == "bfs"
        else SearchLine.through(domain, _parse_end(CORNER if options.line is None else options.line))
    )
    usual = W_DELTA if question.attention.measure == DISTANCE else W_SHARE
    w_delta = usual if options.w_delta is None else options.w_delta
    delta = question.own_limit
    walker = Walker(question, delta, budget, asks_everything=method == "bfs", progress=progress)
    components = None
    if path is None:
        visited = breadth_first(walker, np.clip(domain.zero_in_t, 0.0, 1.0))
    elif method == "boundary":
        visited, components = BoundaryFollower(walker, path).run()
    else:
        visited = BoundarySearch(walker, path, w_delta if question.property.asks_attention else 0.0).run()
    # Before `_is_whole`, which looks across facets again.
    face_checks, lps = walker.traversal.face_checks, walker.traversal.programs.solved
    is_whole = _is_whole(walker, visited)
    check_visited(question, visited, walker.traversal.accuracy(), walker.is_late)
    needs_shares = is_whole or method == "bfs"
    shares = visited_shares(walker.labeller, visited, walker.is_late) if needs_shares else unknown_shares()
    return SearchTiling(
        question=question,
        method=method,
        w_delta=w_delta,
        line=None if path is None else domain.to_theta(path.start + path.step),
        visited=visited,
        face_checks=face_checks,
        lps=lps,
        failures=walker.failures,
        shares=shares,
        stopped=walker.stopped,
        is_whole=is_whole,
        components=components,
    )


def _volume(visited: list[Visited]) -> float:
    return float(sum(one.region.volume for one in visited))


def _is_whole(walker: Walker, visited: list[Visited]) -> bool:
    """Whether the visited regions are all regions: beyond their facets lie only visited regions and the border.

    The volumes must add up to the domain as well; alone, this test would miss a corner of volume AREA.
    """
    if walker.stopped is not None or walker.failures or not visited or abs(_volume(visited) - 1.0) > AREA:
        return False
    keys: set[bytes | None] = {None, *(one.region.key for one in visited)}
    facets = ((one.region, facet) for one in visited for facet in range(len(one.region.halfspaces)))
    found = all(walker.goes_on() and walker.key_beyond(region, facet) in keys for region, facet in facets)
    return found and not walker.failures


def _parse_end(line: str | Sequence[float] | np.ndarray) -> np.ndarray | None:
    """The theta at the end of the line; None for the corner."""
    if isinstance(line, str) and line == CORNER:
        return None
    try:
        end = np.array([float(word) for word in (line.split(",") if isinstance(line, str) else line)])
    except (ValueError, TypeError):
        end = np.array([np.nan])
    if not np.isfinite(end).all():
        raise OptionError(
            f"line {line!r} is not known; expected corner, or one number for each parameter, such as 0.5,1"
        )
    return end


def breadth_first(walker: Walker, start: np.ndarray) -> list[Visited]:
    """Visit all regions, by their distance in facets from the region at `start` (d,); the budget may end it early."""
    visited: list[Visited] = []
    region = walker.attempt(walker.traversal.region_at, start)
    if region is None:
        return visited
    seen, queue = {region.key}, deque([region])
    while queue and walker.goes_on(len(visited)):
        region = queue.popleft()
        visited.append(walker.labeller.label(region))
        for facet in range(len(region.halfspaces)):
            key = walker.key_beyond(region, facet)
            beyond = None if key is None or key in seen else walker.cross(region, facet)
            if beyond is not None and beyond.key not in seen:
                seen.add(beyond.key)
                queue.append(beyond)
    return visited


class BoundarySearch:
    """GBS: search along the line for the boundary, then follow it; holds the queue Q and the observed patterns OBS."""

    def __init__(self, walker: Walker, line: SearchLine, w_delta: float) -> None:
        self.walker, self.line, self.w_delta = walker, line, w_delta
        self.queue: list[tuple[float, int, TraversedRegion, bool]] = []
        self.observed: set[bytes] = set()
        self.known: dict[bytes, Visited] = {}
        self.made: dict[bytes, TraversedRegion] = {}
        self.order = count()

    def run(self) -> list[Visited]:
        """Visit the regions on the line and near the outermost boundary; the budget may end the search early."""
        visited: list[Visited] = []
        first = self.walker.attempt(self.walker.traversal.region_beyond, self.line.start, self.line.step)
        if first is None:
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
        """Push the neighbours of a region to visit next."""
        region, is_following = one.region, one.is_following
        passage = self.line.passage(region)
        leaves_at, facet = (0.0, -1) if passage is None else passage[1:]
        farther = self.line.distance(leaves_at)
        if is_following and facet >= 0 and farther > distance:
            is_following = False  # 1:17–18, back on the line, farther out
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
        """2:4: whether a region is on the boundary, closer to it than w^δ, or has a facet to one of the other label."""
        wanted, holds = self.walker.property, one.holds(self.walker.property)
        if holds in (Holds.PARTLY, Holds.UNKNOWN):
            return True
        if wanted is Property.CR:
            # The margin is continuous: a neighbour of a region that keeps the label keeps it at least in part.
            return False
        delta = self.walker.labeller.delta
        if one.classification != Label.MR and any(abs(end - delta) <= self.w_delta for end in one.inconsistency):
            return True
        return self._touches_other(one, OTHER[holds])

    def _touches_other(self, one: Visited, other: Holds) -> bool:
        """Whether a region shares a facet with one that has, or may have, the other label."""
        region, walker = one.region, self.walker
        is_pattern_enough = walker.question.perturbed.moving_axis is None and walker.property is Property.AR
        for facet in range(len(region.halfspaces)):
            if is_pattern_enough:
                key = walker.key_beyond(region, facet)
                label = None if key is None else walker.labeller.attend_pattern(key[len(key) - len(region.pattern) :])
                if label in (Label.UNDECIDED, Label.AR if other is Holds.EVERYWHERE else Label.IR):
                    return True
                continue
            beyond = self._beyond(region, facet)
            if beyond is not None and self._label(beyond).holds(walker.property) in (other, Holds.UNKNOWN):
                return True
        return False

    def _label(self, region: TraversedRegion) -> Visited:
        if region.key not in self.known:
            self.known[region.key] = self.walker.labeller.label(region)
        return self.known[region.key]

    def _beyond(self, region: TraversedRegion, facet: int) -> TraversedRegion | None:
        """The region beyond a facet, made only once."""
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
        # At equal distances, last in, first out: then consecutive regions are neighbours.
        heapq.heappush(self.queue, (-distance, -next(self.order), region, is_following))
