"""Finds the polyhedron that holds a point, and cuts polyhedra by the compiled split."""

import numpy as np

from steadygaze.polytopes import Polyhedra, polyhedron_kernels
from steadygaze.polytopes.polyhedra import widened

CUBE = Polyhedra.boxes(np.zeros((1, 3)), np.ones((1, 3)), np.arange(1, 7).reshape(1, 3, 2))
LIMIT = 1e-10


def half_spaces(vertices: np.ndarray, incidence: np.ndarray, count: int) -> np.ndarray:
    """Unit inward normals and offsets (F, 4) of a polyhedron; facets without area are left out."""
    middle = vertices.mean(axis=0)
    rows = []
    for facet in range(count):
        own = vertices[(incidence[:, facet // 64] >> np.uint64(facet % 64)) & np.uint64(1) == 1]
        normal = max(
            (np.cross(own[i] - own[0], own[j] - own[0]) for i in range(1, len(own)) for j in range(i + 1, len(own))),
            key=np.linalg.norm,
            default=np.zeros(3),
        )
        if np.linalg.norm(normal) < 1e-14:
            continue
        normal = normal / np.linalg.norm(normal)
        normal = normal if normal @ (middle - own[0]) > 0 else -normal
        rows.append([*normal, -normal @ own[0]])
    return np.array(rows)


def owners(polyhedra: Polyhedra, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The polyhedron (B,) that contains each point (B, 3) deepest, and how deep (B,): negative outside of all."""
    owner, depth = np.full(len(points), -1), np.full(len(points), -np.inf)
    for number in range(len(polyhedra)):
        vertices = polyhedra[number]
        near = np.flatnonzero(
            ((vertices.min(axis=0) - 1e-9 <= points) & (points <= vertices.max(axis=0) + 1e-9)).all(axis=1)
        )
        if not len(near):
            continue
        incidence = polyhedra.incidence[polyhedra.starts[number] : polyhedra.starts[number + 1]]
        count = polyhedra.facet_starts[number + 1] - polyhedra.facet_starts[number]
        planes = half_spaces(vertices, incidence, int(count))
        inside = (points[near] @ planes[:, :3].T + planes[:, 3]).min(axis=1)
        better = inside > depth[near]
        owner[near[better]], depth[near[better]] = number, inside[better]
    return owner, depth


def split(solid: Polyhedra, form: np.ndarray, cut: int, room: int = 400) -> list[Polyhedra]:
    """The parts of one polyhedron: two, or itself if it is not cut."""
    words = solid.incidence.shape[1]
    points, incidence = np.full((room, 3), np.nan), np.zeros((room, words), dtype=np.uint64)
    facets = np.zeros(room, dtype=np.int64)
    code, *sizes, snapped = polyhedron_kernels.split_polyhedron(
        *form, LIMIT, cut, solid.points, solid.incidence, solid.facets, len(solid.points), len(solid.facets),
        points, incidence, facets, 0, 0, np.zeros(room), np.zeros((2, room), dtype=np.int64),
        np.zeros((2, room), dtype=np.int64),
    )  # fmt: skip
    assert snapped <= LIMIT
    if code == polyhedron_kernels.UNCUT:
        return [solid]
    if code == polyhedron_kernels.NEED_WORDS:
        wider = widened(solid.incidence, words + 1)
        return split(Polyhedra(solid.points, solid.starts, solid.facets, solid.facet_starts, wider), form, cut, room)
    assert code == polyhedron_kernels.SPLIT
    left, below, right, above = sizes
    parts = []
    for first, size, first_facet, count in ((0, left, 0, below), (left, right, below, above)):
        own = slice(first, first + size)
        starts, facet_starts = np.array([0, size]), np.array([0, count])
        own_facets = facets[first_facet : first_facet + count].copy()
        parts.append(Polyhedra(points[own].copy(), starts, own_facets, facet_starts, incidence[own].copy()))
    return parts
