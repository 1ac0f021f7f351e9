"""Cuts boxes along a line into polygons, and in three dimensions along a plane parallel to an axis into prisms.

A vertex counts as lying on the plane if it does up to the rounding of the form; no other tolerance is used.
"""

import numpy as np

from ..tolerances import UNIT
from .polygons import Polygons
from .polyhedra import Polyhedra
from .protocol import Polytopes, join_rows

ROUNDING = 8.0 * UNIT
"""A few roundings of the form's terms, and of the corners of boxes."""


def halve_boxes(
    low: np.ndarray, high: np.ndarray, sides: np.ndarray, form: np.ndarray, cut: int
) -> tuple[Polytopes, np.ndarray, np.ndarray]:
    """Cut boxes from low to high (B, D), with signed cuts (B, D, 2) at their sides, where a form (D+1,) vanishes.

    The form depends on at most two coordinates. Returns the pieces, in the order of the boxes; the box of each (P,);
    and whether the form is positive there (P,). `cut` is the number of the new cut, with + on its positive side.

    >>> both, box, is_above = halve_boxes(
    ...     np.zeros((1, 2)), np.ones((1, 2)), np.array([[[1, 2], [3, 4]]]), np.array([1.0, -1.0, 0.0]), 5
    ... )
    >>> both.volumes.tolist(), is_above.tolist(), both.facets.tolist()
    ([0.5, 0.5], [False, True], [-5, 4, 1, 3, 2, 5])
    """
    chosen = np.flatnonzero(form[:-1])
    plane = np.concatenate([chosen, np.setdiff1d(np.arange(low.shape[1]), chosen)])[:2]
    plane.sort()
    flat = form[[*plane, -1]]
    parts: list[Polytopes] = []
    box, is_above = [], []
    rectangles = Polygons.boxes(low[:, plane], high[:, plane], sides[:, plane])
    for number in range(len(low)):
        edges = rectangles.facets[4 * number : 4 * number + 4]
        for sign in (-1, 1):
            points, facets = _clip(rectangles[number], edges, sign * flat, sign * cut)
            if not len(points):
                continue
            box.append(number)
            is_above.append(sign > 0)
            starts = np.array([0, len(points)])
            parts.append(
                Polygons(points, starts, facets)
                if low.shape[1] == 2
                else _prism(points, facets, plane, low[number], high[number], sides[number])
            )
    kind = Polygons if low.shape[1] == 2 else Polyhedra
    return kind.join(parts), np.array(box, dtype=np.int64), np.array(is_above, dtype=bool)  # type: ignore[arg-type]


def _clip(points: np.ndarray, edges: np.ndarray, form: np.ndarray, cut: int) -> tuple[np.ndarray, np.ndarray]:
    """The part of a polygon (V, 2) where a form is positive, with the cuts of its edges (V,); empty without area."""
    values = points @ form[:-1] + form[-1]
    values[np.abs(values) <= ROUNDING * (np.abs(form[:-1]) @ np.abs(points).T + abs(form[-1]))] = 0.0
    if values.max() <= 0.0:
        return np.zeros((0, 2)), np.zeros(0, dtype=np.int64)
    kept: list[np.ndarray] = []
    made: list[int] = []
    for i in range(len(points)):
        j = (i + 1) % len(points)
        leaves = values[j] < 0.0
        if values[i] >= 0.0:
            kept.append(points[i])
            # At a vertex on the line, the cut replaces the edge that leaves the part.
            made.append(cut if values[i] == 0.0 and leaves else int(edges[i]))
        if values[i] * values[j] < 0.0:
            share = values[i] / (values[i] - values[j])
            kept.append(points[i] + share * (points[j] - points[i]))
            made.append(cut if leaves else int(edges[i]))
    return np.array(kept), np.array(made, dtype=np.int64)


def _prism(
    points: np.ndarray, facets: np.ndarray, plane: np.ndarray, low: np.ndarray, high: np.ndarray, sides: np.ndarray
) -> Polyhedra:
    """A prism over a polygon in a plane of two coordinates; the sides of the box bound the third coordinate."""
    (up,) = np.setdiff1d(np.arange(3), plane)
    count = len(points)
    corners = np.empty((2 * count, 3))
    corners[:, plane] = np.concatenate([points, points])
    corners[:count, up], corners[count:, up] = low[up], high[up]
    around = np.arange(count, dtype=np.uint64)
    one = np.uint64(1)
    # A vertex lies on its own edge, on the one before it, and on the bottom or the top.
    walls = (one << around) | (one << np.roll(around, 1))
    ends = [walls | (one << np.uint64(count)), walls | (one << np.uint64(count + 1))]
    return Polyhedra(
        corners,
        np.array([0, 2 * count]),
        np.concatenate([facets, sides[up]]).astype(np.int64),
        np.array([0, count + 2]),
        join_rows(ends)[:, None],
    )
