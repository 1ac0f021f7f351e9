"""From a tiling with codes to the lines between polygons of different codes.

Polygons that touch carry the same cut with opposite signs (see `regions.region.Polygons`), so the two sides of a cut
are compared along it: no vertices are matched, and a vertex of one side may lie inside an edge of the other.
"""

import numpy as np

from ..regions.region import Polygons

SHORTEST = 1e-9
"""Parts of a cut that are shorter than this come from the rounding of its two sides, not from the tiling."""


def borders_between(polygons: Polygons, codes: np.ndarray, *, passed_over: int = -1) -> np.ndarray:
    """Segments (S, 2, 2) in t where polygons of different codes (P,), whole numbers from 0 on, touch.

    Around polygons of the code `passed_over` there are none.

    >>> points = np.array([[0, 0], [0.5, 0], [0.5, 1], [0, 1], [0.5, 0], [1, 0], [1, 1], [0.5, 1.0]])
    >>> halves = Polygons(points, np.array([0, 4, 8]), np.array([1, 5, 3, 4, 1, 2, 3, -5]))
    >>> borders_between(halves, np.array([0, 1])).tolist(), len(borders_between(halves, np.array([7, 7])))
    ([[[0.5, 1.0], [0.5, 0.0]]], 0)
    """
    edges = np.flatnonzero(_may_separate(polygons, codes) & (polygons.lengths > SHORTEST))
    if not len(edges):
        return np.zeros((0, 2, 2))
    cut = np.unique(np.abs(polygons.edges[edges]), return_inverse=True)[1]
    start, end = polygons.points[edges], polygons.points[polygons.following[edges]]
    origin, direction = _cut_lines(cut, start, end, polygons.lengths[edges])
    along = np.stack([((point - origin[cut]) * direction[cut]).sum(axis=1) for point in (start, end)])
    # The ends of all edges as stations, cut after cut; an edge covers the parts between its two stations.
    stations = np.concatenate([along.min(axis=0), along.max(axis=0)])
    order = np.lexsort((stations, np.tile(cut, 2)))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    first, last = place.reshape(2, -1)
    code = codes[polygons.owner[edges]]
    left, right = (
        _codes_along(len(order), first[side], last[side], code[side])
        for side in (polygons.edges[edges] > 0, polygons.edges[edges] < 0)
    )
    low = stations[order]
    high = np.append(low[1:], -np.inf)
    is_border = (left != right) & (left > 0) & (right > 0) & (left != passed_over + 1) & (right != passed_over + 1)
    shown = np.flatnonzero(is_border & (high - low > SHORTEST))
    which = np.tile(cut, 2)[order][shown]
    ends = np.stack([low[shown], high[shown]], axis=1)
    return origin[which, None] + ends[:, :, None] * direction[which, None]


def _may_separate(polygons: Polygons, codes: np.ndarray) -> np.ndarray:
    """Whether the cut of each edge (V,) has polygons of different codes on it at all."""
    cut, code = np.abs(polygons.edges), codes[polygons.owner]
    lowest = np.full(cut.max(initial=0) + 1, np.iinfo(np.int64).max)
    highest = np.full(len(lowest), -1)
    np.minimum.at(lowest, cut, code)
    np.maximum.at(highest, cut, code)
    return (lowest < highest)[cut]


def _cut_lines(
    cut: np.ndarray, start: np.ndarray, end: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A point and a unit direction of every cut, from its longest edge."""
    order = np.lexsort((lengths, cut))
    longest = order[np.append(np.flatnonzero(np.diff(cut[order])), len(order) - 1)]
    return start[longest], (end[longest] - start[longest]) / lengths[longest, None]


def _codes_along(count: int, first: np.ndarray, last: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """One more than the code that covers each part behind a station; 0 where nothing does."""
    change = np.zeros(count, dtype=np.int64)
    np.add.at(change, first, codes + 1)
    np.add.at(change, last, -(codes + 1))
    return np.cumsum(change)
