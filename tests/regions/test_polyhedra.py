"""Convex polyhedra: cuts conserve volume and incidence, also through vertices and edges; volumes against hulls."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from steadygaze.polytopes import Polyhedra, polyhedron_kernels
from support.readers.polyhedra import CUBE, LIMIT, split


def cut_all(forms: np.ndarray, solids: list[Polyhedra] | None = None) -> list[Polyhedra]:
    """Cut the cube (or solids) by planes one after another; plane n is cut 7 + n."""
    solids = solids or [CUBE]
    for number, form in enumerate(forms, start=7):
        solids = [part for solid in solids for part in split(solid, form, number)]
    return solids


def planes_of(forms: np.ndarray) -> np.ndarray:
    """The planes (·, 4) of all cuts, the borders of the cube first."""
    borders = [[*(-side if a == axis else 0 for a in range(3)), 0] for axis in range(3) for side in (1, -1)]
    borders = np.array(borders, dtype=float)
    borders[1::2, 3] = -1.0
    return np.vstack([borders, forms])


def bits(solid: Polyhedra) -> np.ndarray:
    """The incidence (V, F) as booleans."""
    facets = np.arange(len(solid.facets))
    return (solid.incidence[:, facets // 64] >> (facets % 64).astype(np.uint64)) & np.uint64(1) == 1


def assert_sound(solids: list[Polyhedra], forms: np.ndarray) -> None:
    """Volumes are those of hulls and add up; vertices lie on their facets' planes; facets have two sides."""
    planes = planes_of(forms)
    total, sides = 0.0, {}
    for solid in solids:
        on = bits(solid)
        values = np.hstack([solid.points, np.ones((len(solid.points), 1))]) @ planes[np.abs(solid.facets) - 1].T
        assert np.abs(values[on]).max() < 1e-9
        assert (on.sum(axis=1) >= 3).all() and (on.sum(axis=0) >= 3).all()
        assert len(set(np.abs(solid.facets))) == len(solid.facets)
        # A facet of cut +k lies where the solid is positive; borders point outward by their number alone.
        inner = solid.facets[np.abs(solid.facets) > 6]
        centre = planes[np.abs(inner) - 1] @ np.append(solid.centres[0], 1.0)
        assert (centre * np.sign(inner) > 0).all()
        assert solid.volumes[0] == pytest.approx(ConvexHull(solid.points, qhull_options="QJ").volume, abs=1e-9)
        assert len(solid.points) - len(edges(solid)) + len(solid.facets) == 2
        total += solid.volumes[0]
        for facet, area in zip(solid.facets, solid.facet_sizes, strict=True):
            sides.setdefault(int(facet), []).append(area)
        assert np.abs(solid.facet_vectors.sum(axis=0)).max() < 1e-12
    assert total == pytest.approx(1.0, abs=1e-12)
    for facet, areas in sides.items():
        other = [1.0] if abs(facet) <= 6 else sides[-facet]
        assert sum(areas) == pytest.approx(sum(other), abs=1e-9)


def edges(solid: Polyhedra) -> set[tuple[int, int]]:
    """Edges as pairs of neighbours around the facets."""
    places, starts = solid.cycles
    rings = [places[a:b] for a, b in pairwise(starts)]
    return {tuple(sorted(pair)) for ring in rings for pair in zip(ring, np.roll(ring, 1), strict=True)}


def test_the_cube() -> None:
    assert CUBE.volumes.tolist() == [1.0]
    assert CUBE.facet_sizes.tolist() == [1.0] * 6
    assert np.allclose(CUBE.facet_vectors, np.repeat(np.eye(3), 2, axis=0) * np.tile([-1, 1], 3)[:, None])
    assert CUBE.centres.tolist() == [[0.5, 0.5, 0.5]]
    assert len(edges(CUBE)) == 12
    for axis in range(3):
        assert [end.tolist() for end in CUBE.extent(axis)] == [[0.0], [1.0]]


@pytest.mark.parametrize(
    "form",
    [
        (1, 0, 0, -0.5),  # parallel to two facets
        (1, 1, 1, -1.5),  # a hexagon
        (1, 1, 1, -1),  # through three vertices
        (1, -1, 0, 0),  # through two edges
        (1, 1, 0, -0.5),  # along an edge
        (1, 1, -1, 0),  # through one vertex
        (2, 1, 1, -2),  # through two vertices
    ],
)
def test_one_plane_through_the_cube(form: tuple[float, ...]) -> None:
    forms = np.array([form], dtype=float)
    solids = cut_all(forms)
    assert len(solids) == 2
    assert_sound(solids, forms)


@pytest.mark.parametrize("form", [(1, 0, 0, 0), (1, 1, 0, 0), (1, 1, 1, 0), (1, 1, 1, 1), (1, 0, 0, -5e-11)])
def test_planes_that_only_touch_do_not_cut(form: tuple[float, ...]) -> None:
    assert split(CUBE, np.array(form, dtype=float), 7) == [CUBE]


def test_a_tetrahedron_has_the_volume_of_its_formula() -> None:
    corner, rest = split(CUBE, np.array([1.0, 1.0, 1.0, -1.0]), 7)
    assert corner.volumes[0] == pytest.approx(1 / 6, abs=1e-15)
    assert rest.volumes[0] == pytest.approx(5 / 6, abs=1e-15)
    assert corner.facets.tolist() == [1, 3, 5, -7]
    assert rest.facets.tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_coincident_planes_cut_once() -> None:
    form = np.array([0.3, -0.7, 0.2, 0.1])
    forms = np.stack([form, 2 * form, -form, form + 1e-12])
    solids = cut_all(forms)
    assert len(solids) == 2
    assert_sound(solids, forms)


def test_planes_through_one_point_and_through_one_line() -> None:
    normals = np.array([p for p in product((-1.0, 0.0, 1.0), repeat=3) if p > (0, 0, 0)])
    forms = np.hstack([normals, -0.5 * normals.sum(axis=1, keepdims=True)])
    solids = cut_all(forms)
    assert len(solids) == 96  # the 13 mirror planes of this kind
    assert_sound(solids, forms)


def test_more_facets_than_a_word_has_bits() -> None:
    """Planes that touch a ball: the part that holds it has a facet for each of them."""
    rng = np.random.default_rng(5)
    normals = rng.normal(size=(150, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    forms = np.hstack([normals, -0.4 - 0.5 * normals.sum(axis=1, keepdims=True)])
    solid, pieces = CUBE, []
    for number, form in enumerate(forms, start=7):
        solid, *rest = split(solid, form, number, room=2000)
        pieces += rest
    assert len(solid.facets) > 128 and solid.incidence.shape[1] >= 3
    assert_sound([solid, *pieces], forms)


def test_too_little_room_is_told_and_nothing_written() -> None:
    for room in range(8, 16):
        points = np.full((room, 3), np.nan)
        code = polyhedron_kernels.split_polyhedron(
            1.0, 1.0, 1.0, -1.5, LIMIT, 7, CUBE.points, CUBE.incidence, CUBE.facets, 8, 6, points,
            np.zeros((room, 1), dtype=np.uint64), np.zeros(room, dtype=np.int64), 0, 0, np.zeros(8),
            np.zeros((2, 6), dtype=np.int64), np.zeros((2, 6), dtype=np.int64),
        )[0]  # fmt: skip
        assert code == polyhedron_kernels.NEED_ROOM
        assert np.isnan(points).all()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_random_planes(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    normals = rng.normal(size=(count, 3))
    forms = np.hstack([normals, -(normals * rng.random((count, 3))).sum(axis=1, keepdims=True)])
    assert_sound(cut_all(forms), forms)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_planes_of_few_small_numbers(seed: int, count: int) -> None:
    """Quarters: planes through vertices and edges, parallel and coincident ones; forms are scaled at will."""
    rng = np.random.default_rng(seed)
    normals = rng.integers(-2, 3, size=(count, 3)).astype(float)
    normals[~normals.any(axis=1), 0] = 1.0
    forms = np.hstack([normals, -(normals * rng.integers(0, 5, size=(count, 3)) / 4).sum(axis=1, keepdims=True)])
    forms /= np.linalg.norm(forms[:, :3], axis=1, keepdims=True)
    assert_sound(cut_all(forms), forms)


def nearly_degenerate_plane(rng: np.random.Generator, solids: Polyhedra, eps: float) -> np.ndarray | None:
    """A plane that misses three vertices, an edge, a facet or a vertex of one of the solids by about `eps`."""
    kind = rng.integers(4)
    vertices = solids[rng.integers(len(solids))]
    through = vertices[rng.permutation(len(vertices))[:3]]
    if kind == 1:
        places, starts = solids.cycles
        facet = rng.integers(len(solids.facets))
        through = solids.points[places[starts[facet] : starts[facet + 1]]][:3]
    elif kind > 1:
        through[4 - kind :] = rng.random((kind - 1, 3))
    through = through + rng.normal(size=(3, 3)) * eps * rng.integers(0, 2, size=(3, 1))
    normal = np.cross(through[1] - through[0], through[2] - through[0])
    length = np.linalg.norm(normal)
    if length < 1e-7:
        return None
    return np.array([*normal / length, -(through @ normal / length).mean()])


@pytest.mark.parametrize("seed", range(150))
def test_planes_that_nearly_hit_vertices_edges_and_facets(seed: int) -> None:
    """Distances around the limit: volume and areas of both sides hold, and vertices have three facets."""
    rng = np.random.default_rng([seed, 77])
    eps = 10.0 ** rng.uniform(-12, -6)
    solids = [CUBE]
    for number in range(7, 7 + rng.integers(4, 12)):
        form = nearly_degenerate_plane(rng, Polyhedra.join([*solids]), eps)
        if form is not None:
            solids = [part for solid in solids for part in split(solid, form, number)]
    whole = Polyhedra.join([*solids])
    assert whole.volumes.sum() == pytest.approx(1.0, abs=1e-9)
    areas = np.zeros((2, 20))
    np.add.at(areas, ((whole.facets < 0).astype(int), np.abs(whole.facets)), whole.facet_sizes)
    assert np.abs(areas[0, 7:] - areas[1, 7:]).max() < 1e-8
    assert all(bits(solid).sum(axis=1).min() >= 3 for solid in solids)


def test_take_and_joined_keep_everything_together() -> None:
    forms = np.array([[1.0, 0.4, -0.3, -0.5], [0.2, 1.0, 0.5, -0.8], [1, 1, 1, -1.4]])
    solids = cut_all(forms)
    whole = Polyhedra.join([solids[0], Polyhedra.join([*solids[1:]])])
    assert len(whole) == len(solids)
    assert whole.volumes.sum() == pytest.approx(1.0, abs=1e-12)
    taken = whole.take(np.array([3, 0, 3]))
    assert len(taken) == 3
    for place, number in enumerate((3, 0, 3)):
        assert taken[place].tolist() == solids[number].points.tolist()
        own = slice(taken.facet_starts[place], taken.facet_starts[place + 1])
        assert taken.facets[own].tolist() == solids[number].facets.tolist()
        assert np.allclose(taken.facet_sizes[own], solids[number].facet_sizes)
    assert taken.volumes.tolist() == whole.volumes[[3, 0, 3]].tolist()
    assert taken.owner.tolist() == np.repeat([0, 1, 2], np.diff(taken.starts)).tolist()
    assert taken.facet_owner.tolist() == np.repeat([0, 1, 2], np.diff(taken.facet_starts)).tolist()


def test_no_polyhedra_at_all() -> None:
    for none in (Polyhedra.join([]), CUBE.take(np.array([], dtype=int))):
        assert len(none) == 0
        assert none.volumes.shape == (0,) and none.centres.shape == (0, 3)
        assert none.facet_sizes.shape == (0,) and none.facet_centres.shape == (0, 3)
        assert none.extent(2)[0].shape == (0,)
