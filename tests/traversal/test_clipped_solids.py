"""Polyhedra of the traversal against Qhull, against programs, and in degenerate positions."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull, HalfspaceIntersection

from steadygaze.compound import plain_program
from steadygaze.engines.search.solids import Faces, SolidCutter
from steadygaze.engines.search.traversal import Traversal
from support.networks.layered_networks import crossing_layers

BOX = np.vstack([np.column_stack([np.eye(3), np.zeros(3)]), np.column_stack([-np.eye(3), np.ones(3)])])
LOOPS = np.array([0, 4, 6, 2, 1, 3, 7, 5, 0, 1, 5, 4, 2, 6, 7, 3, 0, 2, 3, 1, 4, 5, 7, 6])
CUBE = np.array([[(n >> i) & 1 for i in range(3)] for n in range(8)], dtype=np.float64)
FACES = Faces(LOOPS, np.arange(0, 25, 4), np.arange(6))


def rows_around(rng: np.random.Generator, point: np.ndarray, count: int) -> np.ndarray:
    normals = rng.normal(size=(count, 3))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    return np.column_stack([normals, rng.uniform(0.02, 0.4, count) - normals @ point])


@pytest.mark.parametrize("seed", range(60))
def test_parts_of_the_cube_have_the_volume_that_qhull_finds(seed: int):
    rng = np.random.default_rng(seed)
    rows = rows_around(rng, np.full(3, 0.5), int(rng.integers(1, 80)))
    part = SolidCutter().part(CUBE, FACES, rows)
    corners = HalfspaceIntersection(-np.vstack([rows, BOX]), np.full(3, 0.5)).intersections
    assert part is not None and part.bent < 1e-12
    assert part.volume == pytest.approx(ConvexHull(corners).volume, abs=1e-12)
    values = part.vertices @ rows[:, :-1].T + rows[:, -1]
    assert values.min() > -1e-12
    assert ((np.abs(values) < 1e-12).any(axis=1) == part.on_rows).all()


@pytest.mark.parametrize(
    ("row", "volume"),
    [
        ((1.0, 1.0, 1.0, -1.0), 5 / 6),  # through three vertices
        ((1.0, -1.0, 0.0, 0.0), 1 / 2),  # through two edges
        ((1.0, 1.0, 0.0, -1.0), 1 / 2),
        ((1.0, 0.0, 0.0, 0.0), 1.0),  # along a face
        ((-1.0, 0.0, 0.0, 0.0), None),
        ((1.0, 1.0, 1.0, -3.0), None),  # through the last vertex alone
        ((2.0, 2.0, -1.0, 0.0), 23 / 24),  # 1 less a tetrahedron with corners at 0 and e_3, half as long elsewhere
    ],
)
def test_planes_through_vertices_and_edges(row: tuple[float, ...], volume: float | None):
    part = SolidCutter().part(CUBE, FACES, np.array([row]))
    if volume is None:
        assert part is None
        return
    assert part is not None
    assert part.volume == pytest.approx(volume, abs=1e-14)


@pytest.mark.parametrize("seed", range(40))
def test_regions_are_those_of_the_programs(seed: int):
    """Clipping and linear programs find the same facets; planes that coincide or meet in points included."""
    rng = np.random.default_rng(seed)
    layers = crossing_layers(rng, [3, 6, 4, 2], rng.integers(0, 5, size=(3, 3)) / 4)
    if seed % 2:
        weight, bias = layers[0]
        weight[1], bias[1] = -2.0 * weight[0], -2.0 * bias[0]
    cell = plain_program(layers)
    fast, slow = Traversal([cell], 3), Traversal([cell], 3, by_programs=True)
    for point in rng.random((12, 3)):
        one, other = fast.region_at(point), slow.region_at(point)
        assert one.key == other.key and one.faces is not None and other.faces is None
        assert one.volume == pytest.approx(other.volume, abs=1e-8)
        assert sorted(one.sources.tolist()) == sorted(other.sources.tolist())
        for facet, source in enumerate(one.sources):
            twin = other.sources.tolist().index(source)
            assert np.allclose(one.halfspaces[facet], other.halfspaces[twin], atol=1e-8)
            assert one.contains(one.centres[facet], within=1e-12)
            beyond, same = fast.key_beyond(one, facet), slow.key_beyond(other, twin)
            assert beyond == same
    assert fast.programs.solved == 0 < slow.programs.solved
