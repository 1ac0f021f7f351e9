"""The arrays of a map: polygons, packed patterns, and cuts that name their origin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadygaze.perturbation import Brightness, Translate
from steadygaze.polytopes import Cut, Polygons
from steadygaze.regions.patterns import distinct_rows, unpack
from steadygaze.regions.subdivide import subdivide
from support.networks.layered_networks import make_compound, plain_map

TRIANGLE = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]
SQUARE = [(0.5, 0.5), (1.0, 0.5), (1.0, 1.0), (0.5, 1.0)]


@pytest.fixture
def polygons() -> Polygons:
    return Polygons(np.array(TRIANGLE + SQUARE), np.array([0, 3, 7]), np.array([1, 5, 3, -5, 2, 4, -6]))


def test_areas_centres_and_lengths(polygons: Polygons) -> None:
    assert polygons.volumes.tolist() == [0.5, 0.25]
    assert np.allclose(polygons.centres, [[1 / 3, 1 / 3], [0.75, 0.75]])
    assert np.allclose(polygons.facet_sizes, [1, np.sqrt(2), 1, 0.5, 0.5, 0.5, 0.5])
    assert polygons.owner.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert polygons.following.tolist() == [1, 2, 0, 4, 5, 6, 3]


def test_take_keeps_points_and_edges_together(polygons: Polygons) -> None:
    taken = polygons.take(np.array([1, 0, 1]))
    assert len(taken) == 3
    assert [taken[i].tolist() for i in range(3)] == [polygons[i].tolist() for i in (1, 0, 1)]
    assert taken.facets.tolist() == [-5, 2, 4, -6, 1, 5, 3, -5, 2, 4, -6]
    assert len(polygons.take(np.array([], dtype=int))) == 0


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 40), st.integers(0, 4), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_distinct_rows_by_definition(count: int, width: int, values: int, seed: int) -> None:
    rows = np.random.default_rng(seed).integers(values, size=(count, width)).astype(np.uint8)
    ids, distinct = distinct_rows(np.array_split(rows, 1 + seed % 3))
    seen: list[bytes] = []
    for number, row in enumerate(rows):
        if row.tobytes() not in seen:
            seen.append(row.tobytes())
        assert ids[number] == seen.index(row.tobytes())
    assert [row.tobytes() for row in distinct] == seen


def test_every_layer_starts_at_a_new_byte() -> None:
    packed = np.array([[0b10100000, 0b11111111, 0b01000000]], dtype=np.uint8)
    first, second = unpack(packed, (3, 10))
    assert first.tolist() == [[True, False, True]]
    assert second.tolist() == [[True] * 8 + [False, True]]


def test_cuts_name_border_and_neuron() -> None:
    """ReLU(t2 − 1/4), then ReLU(ReLU(t1) − 1/2): two lines across the square, one in each layer."""
    layers = [
        (np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([-0.25, 0.0])),
        (np.array([[0.0, 0.0], [0.0, 1.0]]), np.array([-1.0, -0.5])),
        (np.ones((1, 2)), np.zeros(1)),
    ]
    regions = plain_map(layers)
    assert len(regions) == 4
    used = {tuple(regions.cuts[abs(edge) - 1]) for edge in regions.polytopes.facets}
    borders = {(Cut.BORDER, axis, side) for axis in (0, 1) for side in (0, 1)}
    assert used == borders | {(Cut.NEURON, 0, 0), (Cut.NEURON, 1, 1)}
    for place, edge in enumerate(regions.polytopes.facets):
        kind, axis, side = regions.cuts[abs(edge) - 1]
        if kind == Cut.BORDER:
            ends = regions.polytopes.points[[place, regions.polytopes.following[place]]]
            assert (ends[:, axis] == side).all()


def test_cuts_name_knots_and_the_cell_above_them() -> None:
    layers = [(np.ones((1, 3)), np.array([1.0])), (np.ones((1, 1)), np.zeros(1))]
    compound = make_compound(layers, [Brightness(range=(0.0, 0.25)), Translate(dx=3)], np.full((1, 1, 3), 0.5))
    regions = subdivide(compound)
    polygons = regions.polytopes
    seen = set()
    for place, edge in enumerate(polygons.facets):
        kind, axis, above = regions.cuts[abs(edge) - 1]
        if kind != Cut.KNOT:
            continue
        seen.add(int(above))
        ends = polygons.points[[place, polygons.following[place]]]
        assert axis == 1
        assert np.allclose(ends[:, 1], compound.programs[above].low[1])
        owner = regions.cell[polygons.owner[place]]
        assert owner == (above if edge > 0 else above - 1)
    assert seen == {1, 2}
