"""Convex polygons: shapes of maps with one or two parameters. Drives the compiled loops of `polygon_kernels`.

A domain with one parameter is mapped on the unit square, where nothing depends on the second coordinate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..errors import InternalError
from . import polygon_kernels as kernels
from .adjacency import Adjacency, touching_polygons
from .protocol import Polytopes, join_rows, join_starts, take_runs


@dataclass(frozen=True, eq=False)
class Polygons(Polytopes):
    """Convex polygons in the unit square, counter-clockwise.

    facets (V,) holds the signed cut of the edge from each vertex to the next: edges and vertices share their numbers.
    """

    dimension: ClassVar[int] = 2

    @cached_property
    def following(self) -> np.ndarray:
        """The index of the next vertex around the polygon, for every vertex (V,)."""
        following = np.arange(1, len(self.points) + 1)
        following[self.starts[1:] - 1] = self.starts[:-1]
        return following

    @cached_property
    def volumes(self) -> np.ndarray:
        """The area of every polygon (R,), in shares of the unit square.

        >>> Polygons(np.array([[0.0, 0], [1, 0], [0, 1]]), np.array([0, 3]), np.array([1, 2, 3])).volumes.tolist()
        [0.5]
        """
        areas = np.empty(len(self))
        kernels.areas(*np.ascontiguousarray(self.points.T), self.starts, areas)
        return areas

    def take(self, chosen: np.ndarray) -> "Polygons":
        starts, places = take_runs(self.starts, chosen)
        return Polygons(self.points[places], starts, self.facets[places])

    def bare(self) -> "Polygons":
        return Polygons(self.points, self.starts, self.facets)

    @classmethod
    def _concatenate(cls, parts: list["Polygons"]) -> "Polygons":
        starts = join_starts([part.starts for part in parts])
        points = [np.zeros((0, 2)), *(part.points for part in parts)]
        facets = [np.zeros(0, dtype=np.int64), *(part.facets for part in parts)]
        parts.clear()
        return cls(join_rows(points), starts, join_rows(facets))

    @classmethod
    def boxes(cls, low: np.ndarray, high: np.ndarray, sides: np.ndarray) -> "Polygons":
        """
        >>> Polygons.boxes(np.zeros((1, 2)), np.ones((1, 2)), np.array([[[1, 2], [3, 4]]])).facets.tolist()
        [3, 2, 4, 1]
        """
        corners = np.empty((len(low), 4, 2))
        corners[:, 0::3, 0], corners[:, 1:3, 0] = low[:, :1], high[:, :1]
        corners[:, 0:2, 1], corners[:, 2:4, 1] = low[:, 1:], high[:, 1:]
        # From the lower left corner on: bottom, right, top, left.
        edges = sides.reshape(-1, 4)[:, [2, 1, 3, 0]]
        return cls(corners.reshape(-1, 2), 4 * np.arange(len(low) + 1), edges.ravel().astype(np.int64, copy=False))

    def arrays(self) -> dict[str, np.ndarray]:
        return {"points": self.points, "starts": self.starts, "edges": self.facets}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Polygons":
        return cls(arrays["points"], arrays["starts"], arrays["edges"])

    @property
    def facet_starts(self) -> np.ndarray:
        return self.starts

    @property
    def facet_owner(self) -> np.ndarray:
        return self.owner

    @cached_property
    def facet_sizes(self) -> np.ndarray:
        """The length of every edge (V,)."""
        return np.hypot(*(self.points[self.following] - self.points).T)

    @property
    def facet_widths(self) -> np.ndarray:
        return self.facet_sizes

    def facet_planes(self, chosen: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray]:
        start, end = self.points[chosen], self.points[self.following[chosen]]
        along = (end - start) / np.maximum(self.facet_sizes[chosen], 1e-300)[:, None]
        return 0.5 * (start + end), np.stack([along[:, 1], -along[:, 0]], axis=1)

    def facet_bends(self) -> np.ndarray:
        return np.zeros(len(self.facets))  # edges are straight

    def touching(self) -> Adjacency:
        """
        >>> points = np.array([[0, 0], [0.5, 0], [0.5, 1], [0, 1], [0.5, 0], [1, 0], [1, 1], [0.5, 1.0]])
        >>> halves = Polygons(points, np.array([0, 4, 8]), np.array([1, 5, 3, 4, 1, 2, 3, -5]))
        >>> found = halves.touching()
        >>> found.first, found.second, found.cut, found.measure
        (array([1]), array([0]), array([5]), array([1.]))
        """
        return touching_polygons(self)

    def split_by_argmax(
        self, logits: np.ndarray, noise: float, base: int
    ) -> tuple["Polygons", np.ndarray, np.ndarray, np.ndarray]:
        x, y = np.ascontiguousarray(self.points.T)
        for growth in (2, 8, 64, 512):
            count = len(self) + growth * 1024 + growth * len(self) // 8
            vertices = len(self.points) + 8 * (count - len(self))
            side = 64 * (self._widest + 64)
            room = (
                np.zeros(side), np.zeros(side), np.zeros(side, dtype=np.int64), np.zeros(side),
                np.zeros((4096, 2), dtype=np.int64), np.zeros(side), np.zeros(side), np.zeros(side, dtype=np.int64),
            )  # fmt: skip
            out = _Output(count, vertices)
            winner, pairs = np.zeros(count, dtype=np.int64), np.zeros((count, 2), dtype=np.int64)
            pieces, cuts = kernels.split_by_argmax(
                logits, noise, x, y, self.facets, self.starts, base, room, *out.arrays, winner, pairs
            )
            if pieces >= 0:
                made = out.polygons(pieces) if cuts else self
                return made, out.origin[:pieces].copy(), winner[:pieces].copy(), pairs[:cuts].copy()
        raise InternalError("no room for all argmax pieces of a region: please report this model and image")

    def split_by_slab(
        self, slab: np.ndarray, along: np.ndarray, base: int
    ) -> tuple["Polygons", np.ndarray, np.ndarray, int]:
        x, y = np.ascontiguousarray(self.points.T)
        side = 8 * (self._widest + 8)
        room = (np.zeros(side), np.zeros(side), np.zeros(side, dtype=np.int64), np.zeros(side))
        out = _Output(3 * len(self), 3 * len(self.points) + 8 * len(self))
        inside = np.zeros(3 * len(self), dtype=np.uint8)
        pieces, cuts = kernels.split_by_slab(
            np.ascontiguousarray(slab), np.ascontiguousarray(along), x, y, self.facets, self.starts, base, room,
            *out.arrays, inside,
        )  # fmt: skip
        if pieces < 0:
            raise InternalError("no room for all pieces of a slab cut: please report this model and image")
        return out.polygons(pieces), out.origin[:pieces], inside[:pieces].astype(bool), int(cuts)

    def clipped_volumes(self, chosen: np.ndarray, forms: np.ndarray) -> np.ndarray:
        areas, room = np.zeros(len(chosen)), 4 * (self._widest + forms.shape[1] + 8)
        kernels.clipped_areas(
            *np.ascontiguousarray(self.points.T), self.starts, chosen, forms,
            np.zeros((3, room)), np.zeros(room, dtype=np.int64), areas,
        )  # fmt: skip
        return areas

    def section(self, axis: int | None, at: float) -> tuple["Polygons", np.ndarray]:
        return self, np.arange(len(self))

    def on_line(self, axis: int, point: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """
        >>> triangle = Polygons(np.array([[0.0, 0], [1, 0], [0, 1]]), np.array([0, 3]), np.array([1, 2, 3]))
        >>> [part.tolist() for part in triangle.on_line(0, np.array([0.0, 0.25]))]
        [[0.0], [0.75], [0]]
        >>> len(triangle.on_line(0, np.array([0.0, 2.0]))[0])
        0
        """
        start, end = self.points, self.points[self.following]
        across, at = 1 - axis, float(point[1 - axis])
        # An edge includes its lower end only, so a line meets two edges of a convex polygon, or none.
        chosen = np.flatnonzero((start[:, across] < at) != (end[:, across] < at))
        first, last = start[chosen], end[chosen]
        share = (at - first[:, across]) / (last[:, across] - first[:, across])
        along = (first[:, axis] + share * (last[:, axis] - first[:, axis])).reshape(-1, 2)
        return along.min(axis=1), along.max(axis=1), self.owner[chosen][::2]

    @staticmethod
    def clip_hull(vertices: np.ndarray, form: np.ndarray) -> np.ndarray:
        values = vertices @ form[:2] + form[2]
        points = []
        for i, value in enumerate(values):
            j = (i + 1) % len(values)
            if value >= 0.0:
                points.append(vertices[i])
            if (value >= 0.0) != (values[j] >= 0.0):
                points.append(vertices[i] + value / (value - values[j]) * (vertices[j] - vertices[i]))
        return np.array(points).reshape(-1, 2)

    @staticmethod
    def nearest_points_of(point: np.ndarray, points: np.ndarray, starts: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        out = np.zeros((len(chosen), 3))
        kernels.distances_to(point[0], point[1], *np.ascontiguousarray(points.T), starts, chosen, out)
        return out

    @property
    def _widest(self) -> int:
        """The largest number of vertices of a polygon, at least 4."""
        return int(np.diff(self.starts).max(initial=4))


class _Output:
    """Output arrays for pieces and their vertices."""

    def __init__(self, pieces: int, vertices: int) -> None:
        self.x, self.y, self.edge = np.zeros(vertices), np.zeros(vertices), np.zeros(vertices, dtype=np.int64)
        self.starts, self.origin = np.zeros(pieces + 1, dtype=np.int64), np.zeros(pieces, dtype=np.int64)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arrays that the compiled loops fill."""
        return self.x, self.y, self.edge, self.starts, self.origin

    def polygons(self, pieces: int) -> Polygons:
        """The pieces that were written."""
        used = self.starts[pieces]
        points = np.stack([self.x[:used], self.y[:used]], axis=1)
        return Polygons(points, self.starts[: pieces + 1].copy(), self.edge[:used].copy())
