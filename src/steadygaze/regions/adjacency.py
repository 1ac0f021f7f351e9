"""From polytopes with signed cuts to the pairs of them that touch along a facet.

Two polytopes touch when they carry the same cut with opposite signs and their facets on it overlap. No vertices are
matched: a vertex of one side may lie inside a facet of the other. What has no more than a vertex (in three dimensions:
an edge) in common does not touch.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import InternalError
from ..tolerances import TOUCH
from . import adjacency_kernels as kernels
from .region import Cut, Polygons


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Common facets of polytopes, in the order of their cuts.

    first and second (E,): the polytopes below and above the cut (those that carry it with − and with +); cut (E,),
    numbered from 1; measure (E,): length or area of the common facet; extent (E, 2, D): its two ends, or, in three
    dimensions, two corners of its bounding box.
    """

    first: np.ndarray
    second: np.ndarray
    cut: np.ndarray
    measure: np.ndarray
    extent: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    def take(self, chosen: np.ndarray) -> "Adjacency":
        """The chosen facets (an index or boolean array)."""
        return Adjacency(
            self.first[chosen], self.second[chosen], self.cut[chosen], self.measure[chosen], self.extent[chosen]
        )


def touching(polygons: Polygons) -> Adjacency:
    """All pairs of polygons with a common edge wider than the tolerance. Exact up to that.

    >>> points = np.array([[0, 0], [0.5, 0], [0.5, 1], [0, 1], [0.5, 0], [1, 0], [1, 1], [0.5, 1.0]])
    >>> halves = Polygons(points, np.array([0, 4, 8]), np.array([1, 5, 3, 4, 1, 2, 3, -5]))
    >>> found = touching(halves)
    >>> found.first, found.second, found.cut, found.measure
    (array([1]), array([0]), array([5]), array([1.]))
    """
    edges = np.flatnonzero(polygons.lengths > TOUCH)
    edges = edges[_has_two_sides(polygons.edges[edges])]
    start, end = polygons.points[edges], polygons.points[polygons.following[edges]]
    cut = np.unique(np.abs(polygons.edges[edges]), return_inverse=True)[1]
    origin, direction = _lines(cut, start, end, polygons.lengths[edges])
    along = np.stack([((point - origin[cut]) * direction[cut]).sum(axis=1) for point in (start, end)])
    low, high = along.min(axis=0), along.max(axis=0)
    is_above = polygons.edges[edges] > 0
    order = np.lexsort((low, is_above, cut))
    below, above = _overlaps(cut[order], is_above[order], low[order], high[order])
    below, above = order[below], order[above]
    ends = np.stack([np.maximum(low[below], low[above]), np.minimum(high[below], high[above])], axis=1)
    which = cut[below]
    return Adjacency(
        first=polygons.owner[edges[below]],
        second=polygons.owner[edges[above]],
        cut=np.abs(polygons.edges[edges[below]]),
        measure=ends[:, 1] - ends[:, 0],
        extent=origin[which, None] + ends[:, :, None] * direction[which, None],
    )


def on_border(polygons: Polygons, cuts: np.ndarray, dimension: int) -> np.ndarray:
    """Which polygons (R,) have an edge on the border of the domain, given the table of cuts (E, 3).

    With a single parameter only the first axis has a border: nothing depends on the second coordinate.
    """
    kind, axis, _ = cuts[np.abs(polygons.edges) - 1].T
    is_border = (kind == Cut.BORDER) & (axis < dimension) & (polygons.lengths > TOUCH)
    return np.bincount(polygons.owner[is_border], minlength=len(polygons)) > 0


def _has_two_sides(signed: np.ndarray) -> np.ndarray:
    """Whether the cut of each edge (signed, (E,)) is carried with both signs by some of them."""
    sides = np.zeros((2, np.abs(signed).max(initial=0) + 1), dtype=bool)
    sides[(signed > 0).astype(np.int64), np.abs(signed)] = True
    return sides.all(axis=0)[np.abs(signed)]


def _lines(cut: np.ndarray, start: np.ndarray, end: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A point and a unit direction (C, 2) of every cut, from its longest edge."""
    order = np.lexsort((lengths, cut))
    longest = order[np.append(np.diff(cut[order]), 1) > 0] if len(order) else order
    return start[longest], (end[longest] - start[longest]) / lengths[longest, None]


def _overlaps(
    cut: np.ndarray, is_above: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Places (E,) of the intervals that overlap across a cut; given by cut, then side, then low end."""
    first = np.flatnonzero(np.diff(cut, prepend=-1))
    middle = np.flatnonzero(is_above & (np.diff(2 * cut + is_above, prepend=-1) != 0))
    bounds = np.stack([first, middle, np.append(first[1:], len(cut))], axis=1) if len(cut) else np.zeros((0, 3), int)
    for room in (2, 16, 256):
        below, above = np.zeros((2, room * len(cut)), dtype=np.int64)
        found = kernels.overlaps(bounds, low, high, TOUCH, np.zeros(len(cut)), below, above)
        if found >= 0:
            return below[:found], above[:found]
    raise InternalError("edges on one side of a cut lie above each other: please report this model and image")
