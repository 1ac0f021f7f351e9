"""Gaps that a cut leaves between the two parts of a polyhedron: they are measured, and never deeper than measured."""

import numpy as np
import pytest
from scipy.optimize import nnls

from steadygaze.polytopes import Polyhedra, polyhedron_kernels
from steadygaze.tolerances import UNIT

CUBE = Polyhedra.boxes(np.zeros((1, 3)), np.ones((1, 3)), np.arange(1, 7).reshape(1, 3, 2))
ROOM = 200


def cut(solid: Polyhedra, form: np.ndarray, limit: float = 1e-10, number: int = 7) -> tuple[list[Polyhedra], float]:
    """Both parts of a polyhedron, and the depth of the gaps between them; itself and 0 if it is not cut."""
    points, incidence = np.zeros((ROOM, 3)), np.zeros((ROOM, solid.incidence.shape[1]), dtype=np.uint64)
    facets, value = np.zeros(ROOM, dtype=np.int64), np.zeros(ROOM)
    vertices = len(solid.points)
    code, left, below, right, above, _ = polyhedron_kernels.split_polyhedron(
        *form, limit, number, solid.points, solid.incidence, solid.facets, vertices, len(solid.facets), points,
        incidence, facets, 0, 0, value, np.zeros((2, ROOM), dtype=np.int64), np.zeros((2, ROOM), dtype=np.int64),
    )  # fmt: skip
    if code != polyhedron_kernels.SPLIT:
        return [solid], 0.0
    deep = polyhedron_kernels.gap(
        *form, solid.points, value, vertices, points, incidence, left, below - 1, np.zeros(ROOM, dtype=np.int64),
        np.zeros(ROOM),
    )  # fmt: skip
    parts = [
        Polyhedra(points[a : a + n], np.array([0, n]), facets[f : f + m], np.array([0, m]), incidence[a : a + n])
        for a, n, f, m in ((0, left, 0, below), (left, right, below, above))
    ]
    return parts, deep


def distance(vertices: np.ndarray, point: np.ndarray) -> float:
    """The distance of a point from a hull: the best mixture of its vertices, its weights adding up to 1."""
    weight = 1e3
    rows = np.vstack([vertices.T, np.full((1, len(vertices)), weight)])
    return float(nnls(rows, np.append(point, weight))[1])


def deepest(solid: Polyhedra, parts: list[Polyhedra], rng: np.random.Generator, count: int = 60) -> float:
    """How far mixtures of a polyhedron's vertices are from both of its parts, at most."""
    mixtures = rng.dirichlet(np.full(len(solid.points), 0.3), size=count) @ solid.points
    return max(min(distance(part.points, point) for part in parts) for point in mixtures)


@pytest.mark.parametrize("seed", range(20))
def test_cuts_away_from_vertices_leave_nothing_but_rounding(seed):
    rng = np.random.default_rng(seed)
    solids = [CUBE]
    for number in range(7, 12):
        normal = rng.normal(size=3)
        form = np.append(normal, -normal @ rng.random(3))
        found = [cut(solid, form, number=number) for solid in solids]
        assert max(deep for _, deep in found) <= 16 * UNIT
        solids = [part for parts, _ in found for part in parts]


@pytest.mark.parametrize("seed", range(40))
def test_no_point_lies_deeper_in_a_gap_than_was_measured(seed):
    """With a coarse limit, many vertices are taken to lie on planes that miss them."""
    rng = np.random.default_rng([seed, 5])
    solids, limit = [CUBE], 10.0 ** rng.uniform(-3, -1)
    seen = 0.0
    for number in range(7, 12):
        normal = rng.normal(size=3)
        normal /= np.linalg.norm(normal)
        vertices = solids[rng.integers(len(solids))].points
        form = np.append(normal, -normal @ vertices[rng.integers(len(vertices))] + limit * rng.uniform(-1, 1))
        following = []
        for solid in solids:
            parts, deep = cut(solid, form, limit, number)
            assert deepest(solid, parts, rng) <= deep + 1e-7
            following += parts
            seen = max(seen, deep)
        solids = following
    assert 0.0 < seen < 20 * limit


def test_a_lost_incidence_is_a_gap():
    """One vertex forgets a facet: the crossing of an edge is not found, and a corner of the section is missing."""
    form = np.array([0.0, 0.0, 1.0, -0.5])
    parts, deep = cut(CUBE, form)
    assert deep <= 16 * UNIT
    incidence = CUBE.incidence.copy()
    vertex = int(np.argmin(CUBE.points.sum(axis=1)))
    incidence[vertex] &= ~np.uint64(1)
    broken = Polyhedra(CUBE.points, CUBE.starts, CUBE.facets, CUBE.facet_starts, incidence)
    parts, deep = cut(broken, form)
    assert deep == pytest.approx(np.sqrt(0.5), abs=1e-12)
    assert deepest(CUBE, parts, np.random.default_rng(1), count=300) > 0.05
