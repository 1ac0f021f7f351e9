"""Convex polyhedra of the traversal: the region of a pattern in three dimensions, and parts of regions.

`clipping_kernels` has the compiled cuts; this module owns their buffers.
"""

from typing import NamedTuple

import numpy as np

from ...compound import CellProgram
from ...tolerances import THIN
from . import clipping_kernels as kernels
from .traversal_kernels import Standing


class Faces(NamedTuple):
    """The faces of a polyhedron: loops of vertices, counter-clockwise from outside.

    Face f has the vertices loops[starts[f]:starts[f+1]]. facets (F,): the faces wide enough to lead to a neighbour.
    """

    loops: np.ndarray
    starts: np.ndarray
    facets: np.ndarray

    def loop(self, facet: int) -> np.ndarray:
        """The vertices around a facet."""
        face = self.facets[facet]
        return self.loops[self.starts[face] : self.starts[face + 1]]


class SolidRegion(NamedTuple):
    """A region as a polyhedron: rows, sources and centres of its facets; a point inside; vertices, faces, volume.

    Rounding may bend faces; `bent` bounds how much of the volume then depends on their triangulation.
    """

    halfspaces: np.ndarray
    sources: np.ndarray
    centres: np.ndarray
    inside: np.ndarray
    vertices: np.ndarray
    faces: Faces
    volume: float
    bent: float


class SolidPart(NamedTuple):
    """A part of a polyhedron: vertices (V, 3), volume, `bent` as above; on_rows (V,): whether each is on a new face."""

    vertices: np.ndarray
    volume: float
    bent: float
    on_rows: np.ndarray


class BrokenSolidError(Exception):
    """Rounding left a polyhedron whose faces do not close."""


class SolidCutter:
    """Cuts polyhedra, in buffers that grow on demand."""

    def __init__(self) -> None:
        self._solid = kernels.Solid.make(64)

    def region(self, cell: CellProgram, standing: Standing) -> SolidRegion | None:
        """The region of the standing pattern; None if it has no inside. Raises BrokenSolidError."""
        inside, sizes = np.empty(3), np.empty(2)
        while True:
            room = len(self._solid.points)
            rows, centres, chosen = np.empty((room, 4)), np.empty((room, 3)), np.empty(room, dtype=np.int64)
            found = kernels.make_region(
                cell.program,
                standing,
                cell.low,
                cell.high,
                cell.sides,
                THIN,
                self._solid,
                rows,
                centres,
                chosen,
                inside,
                sizes,
            )
            if found != kernels.NO_ROOM:
                break
            self._grow()
        if found == kernels.TROUBLE:
            raise BrokenSolidError
        volume, bent = sizes.tolist()
        if found < 4 or not volume > 0.0:
            return None
        loops, starts = self._faces()
        facets, solid = chosen[:found].copy(), self._solid
        return SolidRegion(
            halfspaces=rows[:found].copy(),
            sources=solid.sources[0, facets],
            centres=centres[:found].copy(),
            inside=inside,
            vertices=solid.points[: solid.counts[kernels.VERTICES]].copy(),
            faces=Faces(loops, starts, facets),
            volume=volume,
            bent=bent,
        )

    def part(self, vertices: np.ndarray, faces: Faces, rows: np.ndarray) -> SolidPart | None:
        """The part of a polyhedron where rows (M, 4) are ≥ 0; None if it has no volume. Raises BrokenSolidError."""
        room, sources = len(self._solid.points), np.full(len(faces.starts) - 1, -1)
        while len(vertices) >= room or len(faces.loops) >= 6 * room or len(faces.starts) >= room:
            self._grow()
            room = len(self._solid.points)
        rows = np.ascontiguousarray(rows)
        while True:
            kernels.set_solid(self._solid, vertices, faces.loops, faces.starts, sources)
            code = kernels.clip(self._solid, rows)
            if code != kernels.NO_ROOM:
                break
            self._grow()
        if code == kernels.TROUBLE:
            raise BrokenSolidError
        if code == kernels.EMPTY:
            return None
        inside, sizes = np.empty(3), np.empty(2)
        kernels.measure(self._solid, inside, sizes)
        volume, bent = sizes.tolist()
        points = self._solid.points[: self._solid.counts[kernels.VERTICES]].copy()
        on_rows = np.zeros(len(points), dtype=bool)
        loops, starts = self._faces()
        for face in np.flatnonzero(self._solid.sources[0, : len(starts) - 1] >= 0):
            on_rows[loops[starts[face] : starts[face + 1]]] = True
        return SolidPart(points, volume, bent, on_rows)

    def _faces(self) -> tuple[np.ndarray, np.ndarray]:
        solid = self._solid
        starts = solid.starts[0, : solid.counts[kernels.FACES] + 1].copy()
        return solid.loops[0, : starts[-1]].copy(), starts

    def _grow(self) -> None:
        self._solid = kernels.Solid.make(2 * len(self._solid.points))
