"""Algorithm 3 of the paper, BFS: every region of the domain, from one to the next through its facets."""

from collections import deque

import numpy as np

from ..traversal import TraversedRegion
from .outcome import Visited
from .walker import Walker


def breadth_first(walker: Walker, start: np.ndarray) -> list[Visited]:
    """Visit all regions, from the one at `start` (d,) on, nearest (in facets) first; ends early with the budget.

    A pattern is marked as seen when its region is entered, and beyond a face every neuron that vanishes on it is
    decided again: the two corrections that make the search complete (docs/paper.md).
    """
    visited: list[Visited] = []
    region = walker.region_at(start)
    if region is None:
        return visited
    seen, queue = {region.key}, deque([region])
    while queue and walker.goes_on(len(visited)):
        region = queue.popleft()
        visited.append(walker.label(region))
        for facet in range(len(region.halfspaces)):
            beyond = _unseen(walker, region, facet, seen)
            if beyond is not None:
                seen.add(beyond.key)
                queue.append(beyond)
    return visited


def _unseen(walker: Walker, region: TraversedRegion, facet: int, seen: set[bytes]) -> TraversedRegion | None:
    """The region beyond a facet, if there is one that was not seen."""
    key = walker.key_beyond(region, facet)
    if key is None or key in seen:
        return None
    beyond = walker.cross(region, facet)
    return None if beyond is None or beyond.key in seen else beyond
