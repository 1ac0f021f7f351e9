"""Convex polyhedra: shapes of maps with three parameters. Drives the compiled loops of `polyhedra_kernels`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..errors import InternalError
from . import hull_kernels, polyhedra_kernels
from .adjacency import Adjacency, touching_polyhedra
from .polygons import Polygons
from .polyhedra_kernels import Room, Solids
from .protocol import Polytopes, join_rows, join_starts, take_runs

GROWTH = (1, 4, 16, 64)
"""The sizes of scratch space to try, in multiples of the size that usually suffices."""


@dataclass(frozen=True, eq=False)
class Polyhedra(Polytopes):
    """Convex polyhedra in the unit cube.

    facet_starts (R+1,): polyhedron r has the facets facet_starts[r]:facet_starts[r+1]. incidence (V, words) uint64: bit
    f % 64 of word f // 64 is set if the vertex lies on facet f of its own polyhedron, counted from facet_starts[r].
    """

    facet_starts: np.ndarray
    incidence: np.ndarray

    dimension: ClassVar[int] = 3

    @cached_property
    def facet_owner(self) -> np.ndarray:
        return np.repeat(np.arange(len(self)), np.diff(self.facet_starts))

    @cached_property
    def volumes(self) -> np.ndarray:
        out = np.empty(len(self))
        polyhedra_kernels.volumes(self.points, self.incidence, self.starts, self.facet_starts, out, *self._scratch)
        return out

    @cached_property
    def cycles(self) -> tuple[np.ndarray, np.ndarray]:
        """Vertices of all facets, counter-clockwise seen from outside: indices into `points`, and starts (F+1,)."""
        incidences = int(np.unpackbits(self.incidence.view(np.uint8)).sum())
        places, starts = np.empty(incidences, dtype=np.int64), np.zeros(len(self.facets) + 1, dtype=np.int64)
        polyhedra_kernels.cycles(
            self.points, self.incidence, self.starts, self.facet_starts, places, starts, *self._scratch
        )  # fmt: skip
        return places, starts

    @cached_property
    def facet_centres(self) -> np.ndarray:
        """The mean of the vertices of every facet (F, 3): a point inside the facet."""
        places, starts = self.cycles
        sums = [np.bincount(self._facet, self.points[places, axis], len(self.facets)) for axis in range(3)]
        return np.stack(sums, axis=1) / np.maximum(np.diff(starts), 1)[:, None]

    @cached_property
    def facet_vectors(self) -> np.ndarray:
        """The outward normal of every facet (F, 3), with the facet's area as its length."""
        (places, starts), facet = self.cycles, self._facet
        following = np.arange(1, len(places) + 1)
        filled = np.diff(starts) > 0
        following[starts[1:][filled] - 1] = starts[:-1][filled]
        middle = self.facet_centres[facet]
        vectors = 0.5 * np.cross(self.points[places] - middle, self.points[places[following]] - middle)
        return np.stack([np.bincount(facet, vectors[:, axis], len(self.facets)) for axis in range(3)], axis=1)

    @cached_property
    def facet_sizes(self) -> np.ndarray:
        return np.linalg.norm(self.facet_vectors, axis=1)

    @cached_property
    def normals(self) -> np.ndarray:
        """Outward unit normal of every facet (F, 3); zero if a facet has no area."""
        return self.facet_vectors / np.maximum(self.facet_sizes, 1e-300)[:, None]

    @property
    def facet_widths(self) -> np.ndarray:
        radius = np.zeros(len(self.facets))
        np.maximum.at(radius, self._facet, np.linalg.norm(self._from_centres, axis=1))
        return self.facet_sizes / np.maximum(2.0 * radius, 1e-300)

    def facet_planes(self, chosen: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray]:
        return self.facet_centres[chosen], self.normals[chosen]

    def facet_bends(self) -> np.ndarray:
        bends = np.zeros(len(self.facets))
        np.maximum.at(bends, self._facet, np.abs((self._from_centres * self.normals[self._facet]).sum(axis=1)))
        return bends

    def touching(self) -> Adjacency:
        return touching_polyhedra(self)

    def take(self, chosen: np.ndarray) -> "Polyhedra":
        starts, places = take_runs(self.starts, chosen)
        facet_starts, facets = take_runs(self.facet_starts, chosen)
        return Polyhedra(self.points[places], starts, self.facets[facets], facet_starts, self.incidence[places])

    def bare(self) -> "Polyhedra":
        return self

    @classmethod
    def _concatenate(cls, parts: list["Polyhedra"]) -> "Polyhedra":
        words = max((part.incidence.shape[1] for part in parts), default=1)
        starts, facet_starts = (join_starts([getattr(p, name) for p in parts]) for name in ("starts", "facet_starts"))
        points = [np.zeros((0, 3)), *(part.points for part in parts)]
        facets = [np.zeros(0, dtype=np.int64), *(part.facets for part in parts)]
        incidence = [np.zeros((0, words), dtype=np.uint64), *(widened(part.incidence, words) for part in parts)]
        parts.clear()
        return cls(join_rows(points), starts, join_rows(facets), facet_starts, join_rows(incidence))

    @classmethod
    def boxes(cls, low: np.ndarray, high: np.ndarray, sides: np.ndarray) -> "Polyhedra":
        """
        >>> Polyhedra.boxes(np.zeros((1, 3)), np.full((1, 3), 0.5), np.arange(1, 7).reshape(1, 3, 2)).volumes.tolist()
        [0.125]
        """
        count = len(low)
        corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
        on = np.stack([corners == 0, corners == 1], axis=2).reshape(8, 6)
        incidence = (on.astype(np.uint64) << np.arange(6, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
        points = np.where(corners == 1, high[:, None], low[:, None]).astype(np.float64)
        return cls(
            points.reshape(-1, 3),
            8 * np.arange(count + 1),
            np.asarray(sides, dtype=np.int64).ravel(),
            6 * np.arange(count + 1),
            np.tile(incidence, count)[:, None],
        )

    def arrays(self) -> dict[str, np.ndarray]:
        # Leave out unused words of the incidence.
        used = max(1, -(-int(np.diff(self.facet_starts).max(initial=1)) // 64))
        return {
            "points": self.points,
            "starts": self.starts,
            "facets": self.facets,
            "facet_starts": self.facet_starts,
            "incidence": np.ascontiguousarray(self.incidence[:, :used]).view(np.int64),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Polyhedra":
        incidence = np.ascontiguousarray(arrays["incidence"]).view(np.uint64)
        return cls(arrays["points"], arrays["starts"], arrays["facets"], arrays["facet_starts"], incidence)

    def split_by_argmax(
        self, logits: np.ndarray, noise: float, base: int
    ) -> tuple["Polyhedra", np.ndarray, np.ndarray, np.ndarray]:
        for growth, room in self._rooms():
            count = len(self) + growth * (1024 + len(self) // 2)
            out = self._output(room, count, growth)
            origin, winner = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
            pairs = np.zeros((count, 2), dtype=np.int64)
            pieces, cuts = polyhedra_kernels.split_by_argmax(
                logits, noise, self._solids, base, room, out, origin, winner, pairs
            )
            if pieces >= 0:
                made = _used(out, pieces) if cuts else self
                return made, origin[:pieces].copy(), winner[:pieces].copy(), pairs[:cuts].copy()
        raise InternalError("no room for all argmax pieces of a region: please report this model and image")

    def split_by_slab(
        self, slab: np.ndarray, along: np.ndarray, base: int
    ) -> tuple["Polyhedra", np.ndarray, np.ndarray, int]:
        for growth, room in self._rooms():
            count = 3 * len(self)
            out = self._output(room, min(count, len(self) + growth * (1024 + len(self) // 2)), growth)
            origin, inside = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.uint8)
            pieces, cuts = polyhedra_kernels.split_by_slab(
                np.ascontiguousarray(slab), np.ascontiguousarray(along), self._solids, base, room, out, origin, inside
            )
            if pieces >= 0:
                return _used(out, pieces), origin[:pieces].copy(), inside[:pieces].astype(bool), int(cuts)
        raise InternalError("no room for all pieces of a slab cut: please report this model and image")

    def clipped_volumes(self, chosen: np.ndarray, forms: np.ndarray) -> np.ndarray:
        found = np.zeros(len(chosen))
        for _, room in self._rooms():
            if polyhedra_kernels.clipped_volumes(self._solids, chosen, forms, room, found):
                return found
        raise InternalError("no room for all vertices of a clipped region: please report this model and image")

    def section(self, axis: int | None, at: float) -> tuple[Polygons, np.ndarray]:
        assert axis is not None, "a section of polyhedra fixes one axis"
        low, high = self.extent(axis)
        chosen = np.flatnonzero((low < at) & (high > at))
        # A polygon has at most as many edges as its polyhedron has facets.
        room = int(np.diff(self.facet_starts)[chosen].sum())
        points, edges = np.zeros((room, 2)), np.zeros(room, dtype=np.int64)
        starts = np.zeros(len(chosen) + 1, dtype=np.int64)
        most, words = int(np.diff(self.starts).max(initial=0)) ** 2 // 4 + 1, self.incidence.shape[1]
        polyhedra_kernels.sections(
            self._solids, chosen, axis, at, np.zeros((most, 3)), np.zeros((most, words), dtype=np.uint64),
            points, edges, starts,
        )  # fmt: skip
        polygons = Polygons(points[: starts[-1]], starts, edges[: starts[-1]])
        is_there = np.diff(starts) >= 3
        return polygons.take(np.flatnonzero(is_there)), chosen[is_there]

    def on_line(self, axis: int, point: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        held = max({0, 1, 2} - {axis})
        polygons, piece = self.section(held, float(point[held]))
        low, high, which = polygons.on_line(axis if axis < held else axis - 1, np.delete(point, held))
        return low, high, piece[which]

    @staticmethod
    def clip_hull(vertices: np.ndarray, form: np.ndarray) -> np.ndarray:
        # Use all pairs of vertices: crossings of pairs that are not edges lie inside the hull.
        values = vertices @ form[:3] + form[3]
        above, below = values >= 0.0, values < 0.0
        start, end = vertices[above][:, None], vertices[below][None]
        share = values[above][:, None] / (values[above][:, None] - values[below][None])
        crossings = start + share[:, :, None] * (end - start)
        return np.concatenate([vertices[above], crossings.reshape(-1, 3)])

    @staticmethod
    def nearest_points_of(point: np.ndarray, points: np.ndarray, starts: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        out = np.zeros((len(chosen), 4))
        hull_kernels.distances_to(np.asarray(point), points, starts, chosen, np.zeros((7, 4)), out)
        return out

    @property
    def _facet(self) -> np.ndarray:
        """The facet of every vertex of `cycles`."""
        return np.repeat(np.arange(len(self.facets)), np.diff(self.cycles[1]))

    @property
    def _from_centres(self) -> np.ndarray:
        """The vertices of `cycles`, relative to the centres of their facets."""
        return self.points[self.cycles[0]] - self.facet_centres[self._facet]

    @property
    def _scratch(self) -> tuple[np.ndarray, np.ndarray]:
        most = int(np.diff(self.starts).max(initial=0))
        return np.empty(most, dtype=np.int64), np.empty(most)

    @property
    def _solids(self) -> Solids:
        return Solids(self.points, self.starts, self.facets, self.facet_starts, self.incidence)

    def _rooms(self) -> Iterator[tuple[int, Room]]:
        """Yield scratch space for the parts of one polyhedron, larger every time."""
        vertices = int(np.diff(self.starts).max(initial=8)) + 32
        facets = int(np.diff(self.facet_starts).max(initial=6)) + 16
        for growth in GROWTH:
            widest, most = growth * vertices, growth * facets
            # Cutting adds few facets to a part, so it needs more words only if the part already has many facets.
            words = -(-most // 64)
            room = Room(
                points=np.zeros((32 * widest, 3)),
                incidence=np.zeros((32 * widest, words), dtype=np.uint64),
                facets=np.zeros(32 * most, dtype=np.int64),
                stack=np.zeros((4096, 4), dtype=np.int64),
                here_points=np.zeros((widest, 3)),
                here_incidence=np.zeros((widest, words), dtype=np.uint64),
                here_facets=np.zeros(most, dtype=np.int64),
                value=np.zeros(widest),
                rank=np.zeros((2, most), dtype=np.int64),
                pairs=np.zeros((2, widest), dtype=np.int64),
            )
            yield growth, room

    def _output(self, room: Room, count: int, growth: int) -> Solids:
        """Arrays for `count` pieces."""
        more = count - len(self)
        vertices = len(self.points) + (8 + 8 * growth) * more
        facets = len(self.facets) + (6 + 6 * growth) * more
        return Solids(
            points=np.zeros((vertices, 3)),
            starts=np.zeros(count + 1, dtype=np.int64),
            facets=np.zeros(facets, dtype=np.int64),
            facet_starts=np.zeros(count + 1, dtype=np.int64),
            incidence=np.zeros((vertices, room.incidence.shape[1]), dtype=np.uint64),
        )


def widened(incidence: np.ndarray, words: int) -> np.ndarray:
    """Widen the rows of an incidence to at least `words` words."""
    return np.pad(incidence, ((0, 0), (0, max(0, words - incidence.shape[1]))))


def _used(out: Solids, pieces: int) -> Polyhedra:
    """The pieces written to `out`, with no more words than their facets need."""
    vertices, facets = out.starts[pieces], out.facet_starts[pieces]
    starts, facet_starts = out.starts[: pieces + 1].copy(), out.facet_starts[: pieces + 1].copy()
    words = -(-int(np.diff(facet_starts).max(initial=1)) // 64)
    return Polyhedra(
        out.points[:vertices].copy(),
        starts,
        out.facets[:facets].copy(),
        facet_starts,
        np.ascontiguousarray(out.incidence[:vertices, :words]),
    )
