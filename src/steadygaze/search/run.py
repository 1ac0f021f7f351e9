"""search(problem, method=…) -> SearchResult: checks the options, runs one search, and collects its counts."""

import time
from collections.abc import Callable, Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from ..attention.inconsistency import original_maps
from ..budget import Budget
from ..errors import OptionError
from ..problem import Problem
from ..tolerances import AREA
from ..verdict import Property
from .bfs import breadth_first
from .check import check_visited
from .follow import BoundaryFollower
from .gbs import BoundarySearch
from .line import Line
from .outcome import SearchResult, Visited
from .walker import Walker

METHODS = ("bfs", "gbs", "boundary")


def search(
    problem: Problem,
    *,
    method: str = "gbs",
    w_delta: float = 0.2,
    line: str | Sequence[float] | np.ndarray = "corner",
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
) -> SearchResult:
    """Visit regions of a problem one by one: all of them (bfs), or those near the outermost boundary (gbs, boundary).

    w_delta: how far from δ ai may be for a region to count as near the boundary (gbs, for AR). line: where the search
    line leads from zero, "corner" for the vertex of the domain that is farthest from it. A budget that ends first gives
    what was visited until then. `progress` is called now and then with the number of regions visited.
    """
    if method not in METHODS:
        raise OptionError(f"method {method!r} is not known; expected {', '.join(METHODS)}, or map")
    if not 0.0 <= w_delta < float("inf"):
        raise OptionError(f"w-delta is {w_delta}; expected a number of at least 0")
    domain = problem.perturbed.domain
    path = None if method == "bfs" else Line.through(domain, _end(line))
    started = time.perf_counter()
    size = sum(problem.attention.distance.size(part) for part in original_maps(problem.compound, problem.attention))
    delta = problem.delta.value(float(size))
    # Sums of a matrix product depend on the number of threads of BLAS; the products here are small.
    with threadpool_limits(limits=1):
        walker = Walker(problem, delta, budget or Budget(), asks_everything=method == "bfs", progress=progress)
        components = None
        if path is None:
            nearest = np.clip(-domain.low / domain.widths, 0.0, 1.0)
            visited = breadth_first(walker, nearest)
        elif method == "boundary":
            visited, components = BoundaryFollower(walker, path).run()
        else:
            visited = BoundarySearch(walker, path, 0.0 if problem.property is Property.CR else w_delta).run()
        face_checks, lps = walker.traversal.face_checks, walker.traversal.lps  # before what follows looks again
        is_whole = _is_whole(walker, visited)
        check_visited(problem, visited, walker.traversal.accuracy())
    return SearchResult(
        problem=problem,
        method=method,
        delta=delta,
        w_delta=w_delta,
        line=None if path is None else path.start + path.step,
        visited=visited,
        face_checks=face_checks,
        lps=lps,
        failures=walker.failures,
        # What no visited region covers although nothing lies beyond their facets.
        sliver_share=walker.traversal.sliver_share + (max(0.0, 1.0 - _volume(visited)) if is_whole else 0.0),
        stopped=walker.stopped,
        seconds=time.perf_counter() - started,
        is_whole=is_whole,
        components=components,
    )


def _volume(visited: list[Visited]) -> float:
    return float(sum(one.region.volume for one in visited))


def _is_whole(walker: Walker, visited: list[Visited]) -> bool:
    """Whether the visited regions are all there are: nothing but them and the border lies beyond their facets.

    The volumes must add up as well; they alone would let a corner of volume AREA go unnoticed.
    """
    if walker.stopped is not None or walker.failures or not visited:
        return False
    if abs(_volume(visited) - 1.0) > AREA:
        return False
    keys: set[bytes | None] = {one.region.key for one in visited}
    keys.add(None)
    facets = ((one.region, facet) for one in visited for facet in range(len(one.region.halfspaces)))
    return all(walker.key_beyond(region, facet) in keys for region, facet in facets) and not walker.failures


def _end(line: str | Sequence[float] | np.ndarray) -> np.ndarray | None:
    """The theta at the end of the line, or None for the corner."""
    if isinstance(line, str):
        if line == "corner":
            return None
        words: Sequence[float | str] = line.split(",")
    else:
        words = list(line)
    try:
        end = np.array([float(word) for word in words])
    except ValueError:
        end = np.array([np.nan])
    if not np.isfinite(end).all():
        raise OptionError(f"line {line!r} is not known; expected corner, or one number for each parameter: 0.5,1")
    return end
