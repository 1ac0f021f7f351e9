"""The arrays that hold a map: polygons with the cut behind every edge, patterns, affine logits. Data only."""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np

from ..accuracy import Accuracy
from ..geometry import polygon
from ..labels import Stop
from .patterns import PatternTable
from .polyhedra import Polyhedra, boxes


class Cut(IntEnum):
    """What a cut is: the first column of a cut table; the other two say which."""

    BORDER = 0  # axis, 0 low or 1 high
    KNOT = 1  # axis, number of the knot cell above it
    NEURON = 2  # layer (0 and 1 are the clip), neuron
    ARGMAX = 3  # two classes
    SLAB = 4  # moving axis, 0
    SPLIT = 5  # axis, 0: where a refinement halves a box


@dataclass(frozen=True, eq=False)
class Polygons:
    """Convex polygons in the unit square, counter-clockwise.

    points (V, 2); polygon r has the vertices starts[r]:starts[r+1]; edges (V,) the signed cut (numbered from 1) of
    the edge from a vertex to the next; two polygons that touch along a cut carry it with opposite signs.
    """

    points: np.ndarray
    starts: np.ndarray
    edges: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        return self.points[self.starts[index] : self.starts[index + 1]]

    @cached_property
    def owner(self) -> np.ndarray:
        """The polygon of every vertex (V,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @cached_property
    def following(self) -> np.ndarray:
        """The place of the next vertex around the polygon, for every vertex (V,)."""
        following = np.arange(1, len(self.points) + 1)
        following[self.starts[1:] - 1] = self.starts[:-1]
        return following

    @cached_property
    def volumes(self) -> np.ndarray:
        """Area of every polygon (R,), in shares of the unit square."""
        return polygon_areas(self.points, self.starts)

    @cached_property
    def centres(self) -> np.ndarray:
        """The mean of the vertices of every polygon (R, 2): a point strictly inside."""
        if not len(self):
            return np.zeros((0, 2))
        return np.add.reduceat(self.points, self.starts[:-1], axis=0) / np.diff(self.starts)[:, None]

    def extent(self, axis: int) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest coordinate of every polygon along an axis, (R,) each."""
        if not len(self):
            return np.zeros(0), np.zeros(0)
        along, starts = self.points[:, axis], self.starts[:-1]
        return np.minimum.reduceat(along, starts), np.maximum.reduceat(along, starts)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Length of every edge (V,)."""
        return np.hypot(*(self.points[self.following] - self.points).T)

    def bare(self) -> "Polygons":
        """The same polygons, for a use that ends: what it derives from them is not kept with these."""
        return Polygons(self.points, self.starts, self.edges)

    def take(self, chosen: np.ndarray) -> "Polygons":
        """The chosen polygons (an index array) in that order."""
        sizes = np.diff(self.starts)[chosen]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.repeat(self.starts[chosen] - starts[:-1], sizes) + np.arange(starts[-1])
        return Polygons(self.points[places], starts, self.edges[places])


Polytopes = Polygons | Polyhedra
"""What a map consists of: polygons in two dimensions, polyhedra in three."""


def box_polytopes(low: np.ndarray, high: np.ndarray, sides: np.ndarray) -> Polytopes:
    """Boxes from low (B, D) to high (B, D) as polygons or polyhedra, D = 2 or 3.

    sides (B, D, 2) are the signed cuts at the low and at the high side of every axis.

    >>> square = box_polytopes(np.zeros((1, 2)), np.ones((1, 2)), np.array([[[1, 2], [3, 4]]]))
    >>> square.edges.tolist()
    [3, 2, 4, 1]
    """
    count = len(low)
    if low.shape[1] > 2:
        return boxes(low, high, sides.reshape(count, 6))
    x, y = np.stack([low[:, 0], high[:, 0]], axis=1), np.stack([low[:, 1], high[:, 1]], axis=1)
    corners = np.stack([x[:, [0, 1, 1, 0]], y[:, [0, 0, 1, 1]]], axis=2)
    # From the lower left corner on: bottom, right, top, left.
    edges = np.stack([sides[:, 1, 0], sides[:, 0, 1], sides[:, 1, 1], sides[:, 0, 0]], axis=1)
    return Polygons(corners.reshape(-1, 2), 4 * np.arange(count + 1), edges.ravel().astype(np.int64))


@dataclass(frozen=True, eq=False)
class RegionSet:
    """All regions that a run has found: R polytopes, each with the pattern and the logits that hold on it.

    cuts (E, 3): kind, and which (see `Cut`). cell (R,) is the knot cell. pattern (R,) counts into patterns (P, bytes),
    the classifier's packed bits; clip (R,) into clips (Q, bytes), those of the clip. logits (R, D+1, K): slope in
    t and constant. `stopped` says why the map is partial. doubtful (R,) is 1 where the value of some neuron of the
    classifier is nothing but rounding, or exactly zero, on the whole region: then its sign, and with it the attention
    map, is not certain. `accuracy` holds what bounds all errors.
    """

    polytopes: Polytopes
    cuts: np.ndarray
    cell: np.ndarray
    pattern: np.ndarray
    patterns: PatternTable
    clip: np.ndarray
    clips: np.ndarray
    logits: np.ndarray
    doubtful: np.ndarray
    accuracy: Accuracy
    stopped: Stop | None

    def __len__(self) -> int:
        return len(self.polytopes)


def polygon_areas(points: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Areas (R,) of polygons given as vertices (V, 2) and starts (R+1,).

    >>> polygon_areas(np.array([[0.0, 0], [1, 0], [0, 1]]), np.array([0, 3])).tolist()
    [0.5]
    """
    areas = np.empty(len(starts) - 1)
    polygon.areas(np.ascontiguousarray(points[:, 0]), np.ascontiguousarray(points[:, 1]), starts, areas)
    return areas
