"""The arrays that hold convex polyhedra with the cut behind every facet. Data only; `geometry.polyhedron` cuts them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..geometry import polyhedron


@dataclass(frozen=True, eq=False)
class Polyhedra:
    """Convex polyhedra in the unit cube.

    points (V, 3); polyhedron r has the vertices starts[r]:starts[r+1] and the facets facet_starts[r]:facet_starts[r+1].
    facets (F,) are signed cuts (numbered from 1); two polyhedra that touch along a cut carry it with opposite signs.
    incidence (V, words) uint64: bit f % 64 of word f // 64 is set when the vertex lies on facet f of its own
    polyhedron, counted from facet_starts[r].
    """

    points: np.ndarray
    starts: np.ndarray
    facets: np.ndarray
    facet_starts: np.ndarray
    incidence: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        return self.points[self.starts[index] : self.starts[index + 1]]

    @cached_property
    def owner(self) -> np.ndarray:
        """The polyhedron of every vertex (V,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @cached_property
    def facet_owner(self) -> np.ndarray:
        """The polyhedron of every facet (F,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.facet_starts))

    @cached_property
    def volumes(self) -> np.ndarray:
        """Volume of every polyhedron (R,), in shares of the unit cube."""
        out = np.empty(len(self))
        polyhedron.volumes(self.points, self.incidence, self.starts, self.facet_starts, out, *self._scratch)
        return out

    @cached_property
    def centres(self) -> np.ndarray:
        """The mean of the vertices of every polyhedron (R, 3): a point strictly inside."""
        if not len(self):
            return np.zeros((0, 3))
        return np.add.reduceat(self.points, self.starts[:-1], axis=0) / np.diff(self.starts)[:, None]

    def extent(self, axis: int) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest coordinate of every polyhedron along an axis, (R,) each."""
        if not len(self):
            return np.zeros(0), np.zeros(0)
        along, starts = self.points[:, axis], self.starts[:-1]
        return np.minimum.reduceat(along, starts), np.maximum.reduceat(along, starts)

    @cached_property
    def cycles(self) -> tuple[np.ndarray, np.ndarray]:
        """Vertices of all facets, counter-clockwise seen from outside: places in `points`, and starts (F+1,)."""
        incidences = int(np.unpackbits(self.incidence.view(np.uint8)).sum())
        places, starts = np.empty(incidences, dtype=np.int64), np.zeros(len(self.facets) + 1, dtype=np.int64)
        polyhedron.cycles(
            self.points, self.incidence, self.starts, self.facet_starts, places, starts, *self._scratch
        )  # fmt: skip
        return places, starts

    @cached_property
    def area_vectors(self) -> np.ndarray:
        """A vector for every facet (F, 3): it points outward at right angles and is as long as the facet's area."""
        places, starts = self.cycles
        facet = np.repeat(np.arange(len(self.facets)), np.diff(starts))
        following = np.arange(1, len(places) + 1)
        filled = np.diff(starts) > 0
        following[starts[1:][filled] - 1] = starts[:-1][filled]
        middle = self.facet_centres[facet]
        vectors = 0.5 * np.cross(self.points[places] - middle, self.points[places[following]] - middle)
        return np.stack([np.bincount(facet, vectors[:, axis], len(self.facets)) for axis in range(3)], axis=1)

    @cached_property
    def areas(self) -> np.ndarray:
        """Area of every facet (F,)."""
        return np.linalg.norm(self.area_vectors, axis=1)

    @cached_property
    def normals(self) -> np.ndarray:
        """Outward unit normal of every facet (F, 3); zero where a facet has no area."""
        return self.area_vectors / np.maximum(self.areas, 1e-300)[:, None]

    @cached_property
    def facet_centres(self) -> np.ndarray:
        """The mean of the vertices of every facet (F, 3): a point inside of it."""
        places, starts = self.cycles
        facet = np.repeat(np.arange(len(self.facets)), np.diff(starts))
        sums = [np.bincount(facet, self.points[places, axis], len(self.facets)) for axis in range(3)]
        return np.stack(sums, axis=1) / np.maximum(np.diff(starts), 1)[:, None]

    def take(self, chosen: np.ndarray) -> "Polyhedra":
        """The chosen polyhedra (an index array) in that order."""
        starts, places = _gather(self.starts, chosen)
        facet_starts, facets = _gather(self.facet_starts, chosen)
        return Polyhedra(self.points[places], starts, self.facets[facets], facet_starts, self.incidence[places])

    @property
    def _scratch(self) -> tuple[np.ndarray, np.ndarray]:
        most = int(np.diff(self.starts).max(initial=0))
        return np.empty(most, dtype=np.int64), np.empty(most)


def box(low: np.ndarray, high: np.ndarray, facets: np.ndarray) -> Polyhedra:
    """One box with the given signed cuts (6,): low and high side of the first axis, then of the others.

    >>> box(np.zeros(3), np.full(3, 0.5), np.arange(1, 7)).volumes.tolist()
    [0.125]
    """
    return boxes(low[None], high[None], facets[None])


def boxes(low: np.ndarray, high: np.ndarray, facets: np.ndarray) -> Polyhedra:
    """Boxes from low (B, 3) to high (B, 3), each with six signed cuts (B, 6) as `box` takes them."""
    count = len(low)
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
    on = np.stack([corners == 0, corners == 1], axis=2).reshape(8, 6)
    incidence = (on.astype(np.uint64) << np.arange(6, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    points = np.where(corners == 1, high[:, None], low[:, None]).astype(np.float64)
    return Polyhedra(
        points.reshape(-1, 3),
        8 * np.arange(count + 1),
        np.asarray(facets, dtype=np.int64).ravel(),
        6 * np.arange(count + 1),
        np.tile(incidence, count)[:, None],
    )


def joined(parts: list[Polyhedra]) -> Polyhedra:
    """All polyhedra of several arrays in order; rows of the incidence are made equally long."""
    words = max((part.incidence.shape[1] for part in parts), default=1)
    return Polyhedra(
        np.concatenate([np.zeros((0, 3)), *(part.points for part in parts)]),
        _chain([part.starts for part in parts]),
        np.concatenate([np.zeros(0, dtype=np.int64), *(part.facets for part in parts)]),
        _chain([part.facet_starts for part in parts]),
        np.concatenate([np.zeros((0, words), dtype=np.uint64), *(widened(part.incidence, words) for part in parts)]),
    )


def widened(incidence: np.ndarray, words: int) -> np.ndarray:
    """The same incidence in rows of at least `words` words."""
    return np.pad(incidence, ((0, 0), (0, max(0, words - incidence.shape[1]))))


def _chain(starts: list[np.ndarray]) -> np.ndarray:
    sizes = [np.zeros(0, dtype=np.int64), *(np.diff(part) for part in starts)]
    return np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)


def _gather(starts: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """New starts of the chosen runs, and the places of their members."""
    sizes = np.diff(starts)[chosen]
    new = np.concatenate([[0], np.cumsum(sizes)])
    return new, np.repeat(starts[chosen] - new[:-1], sizes) + np.arange(new[-1])
