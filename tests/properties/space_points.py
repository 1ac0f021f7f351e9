"""Which polyhedron holds a point, plainly: half-spaces from the vertices of every facet. Many points at once."""

import numpy as np

from steadygaze.polytopes import Polyhedra


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
