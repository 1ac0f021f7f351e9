"""Which polytopes touch: against all pairs of edges by plain geometry, against sampled points beside facets in 3-D."""

from itertools import combinations, pairwise, product

import numpy as np
import pytest

from steadygaze.perturbation import Brightness, Translate
from steadygaze.polytopes import Polygons, Polyhedra
from steadygaze.regions.subdivide import subdivide
from support.networks.layered_networks import crossing_layers, dyadic_layers, make_compound, plain_map
from support.readers.polyhedra import CUBE, split

WIDE = 1e-8
QUARTERS = np.array(list(product(np.arange(5) / 4, repeat=2)))


def common_lengths(polygons: Polygons) -> dict[tuple[int, int], float]:
    """The length of the common border of all pairs of polygons, from their vertices alone."""
    found = {}
    for a, b in combinations(range(len(polygons)), 2):
        one, other = polygons[a], polygons[b]
        if (one.min(axis=0) > other.max(axis=0) + WIDE).any() or (other.min(axis=0) > one.max(axis=0) + WIDE).any():
            continue
        length = sum(overlap(p, q, r, s) for p, q in pairwise([*one, one[0]]) for r, s in pairwise([*other, other[0]]))
        if length > WIDE:
            found[a, b] = length
    return found


def overlap(p: np.ndarray, q: np.ndarray, r: np.ndarray, s: np.ndarray) -> float:
    """The length of the common part of the segments p q and r s; 0 unless they are on one line."""
    size = np.hypot(*(q - p))
    if size < WIDE:
        return 0.0
    (dx, dy) = (q - p) / size
    if max(abs(dx * (e[1] - p[1]) - dy * (e[0] - p[0])) for e in (r, s)) > 1e-9:
        return 0.0
    ends = sorted(dx * (e[0] - p[0]) + dy * (e[1] - p[1]) for e in (r, s))
    return max(0.0, min(size, ends[1]) - max(0.0, ends[0]))


def found_lengths(polygons: Polygons) -> dict[tuple[int, int], float]:
    adjacency = polygons.touching()
    pairs = [tuple(sorted(pair)) for pair in zip(adjacency.first.tolist(), adjacency.second.tolist(), strict=True)]
    lengths = adjacency.measure
    ends = adjacency.extent
    assert np.hypot(*(ends[:, 1] - ends[:, 0]).T) == pytest.approx(lengths)
    return {pair: lengths[[other == pair for other in pairs]].sum() for pair in pairs}


@pytest.mark.parametrize("seed", range(8))
def test_polygons_against_all_pairs_of_edges(seed: int) -> None:
    """Coincident lines, lines through vertices and edges that are split on one side only abound in these maps."""
    rng = np.random.default_rng(seed)
    layers = crossing_layers(rng, (2, 5, 4, 3), QUARTERS) if seed % 2 else dyadic_layers(rng, (2, 6, 5, 3))
    polygons = plain_map(layers).polytopes
    expected, found = common_lengths(polygons), found_lengths(polygons)
    assert found.keys() == expected.keys()
    assert all(found[pair] == pytest.approx(expected[pair], abs=1e-9) for pair in found)


def test_knots_have_two_sides() -> None:
    rng = np.random.default_rng(0)
    layers = dyadic_layers(rng, (4, 4, 2))
    image = np.array([[[0.2, 0.7, 0.4, 1.0]]])
    regions = subdivide(make_compound(layers, [Translate(dx=3), Brightness(range=(-0.5, 0.5))], image))
    assert len(set(regions.cell)) == 3
    assert found_lengths(regions.polytopes).keys() == common_lengths(regions.polytopes).keys()


def test_polytopes_that_meet_in_a_vertex_do_not_touch() -> None:
    """ReLU(t1 − 1/2) and ReLU(t2 − 1/2): four squares; opposite ones do not touch."""
    regions = plain_map([(np.eye(2), np.full(2, -0.5)), (np.ones((1, 2)), np.zeros(1))])
    adjacency = regions.polytopes.touching()
    assert len(regions) == 4 and len(adjacency) == 4
    assert adjacency.measure.tolist() == [0.5] * 4
    centres = regions.polytopes.centres
    steps = np.abs(centres[adjacency.first] - centres[adjacency.second])
    assert sorted(map(tuple, steps.tolist())) == [(0.0, 0.5)] * 2 + [(0.5, 0.0)] * 2


def test_many_edges_on_both_sides_of_a_cut() -> None:
    """500 bands below a line and 333 above it: as many common edges as there are distinct ends."""
    counts, polygons = (500, 333), []
    for side, count in enumerate(counts):
        ends = np.linspace(0, 1, count + 1)
        polygons += [[(a, side), (b, side), (b, side + 1), (a, side + 1)] for a, b in pairwise(ends)]
    edges = [[1, 2, -9, 3]] * counts[0] + [[9, 2, 4, 3]] * counts[1]
    tiling = Polygons(np.array(polygons, dtype=float).reshape(-1, 2), np.arange(0, 4 * 833 + 1, 4), np.ravel(edges))
    adjacency = tiling.touching()
    ends = {n * 333 for n in range(501)} | {n * 500 for n in range(334)}
    across = adjacency.take(adjacency.cut == 9)
    assert len(across) == len(ends) - 1
    assert (across.first < 500).all() and (across.second >= 500).all()
    assert across.measure == pytest.approx(np.diff(sorted(ends)) / (500 * 333), abs=1e-12)


def test_borders_count_for_the_parameters_alone() -> None:
    """ReLU(t1 − 1/4) and ReLU(t1 − 3/4): three bands; the middle one has borders along the second axis only."""
    regions = plain_map([(np.ones((2, 1)), np.array([-0.25, -0.75])), (np.ones((1, 2)), np.zeros(1))])
    order = np.argsort(regions.polytopes.centres[:, 0])
    assert regions.polytopes.on_border(regions.cuts, 1)[order].tolist() == [True, False, True]
    assert regions.polytopes.on_border(regions.cuts, 2).all()


def random_solids(rng: np.random.Generator, count: int) -> Polyhedra:
    """The cube cut again and again, each cut through one part only; every other one at right angles to an axis."""
    solids, cut = [CUBE], 7
    while len(solids) < count:
        solid = solids.pop(int(np.argmax([one.volumes[0] * rng.uniform(0.2, 1) for one in solids])))
        normal = rng.normal(size=3) if cut % 2 else np.eye(3)[rng.integers(3)]
        through = solid.centres[0] if cut % 3 else np.round(solid.centres[0] * 4) / 4
        solids += split(solid, np.append(normal, -normal @ through), cut)
        cut += 1
    return Polyhedra.join(solids)


def owner_of(solids: Polyhedra, points: np.ndarray) -> np.ndarray:
    """The polyhedron of each point (B, 3), by the planes of the facets; −1 near a border."""
    owner = np.full(len(points), -1)
    for number in range(len(solids)):
        facets = np.flatnonzero(solids.facet_owner == number)
        normals = solids.facet_vectors[facets] / solids.facet_sizes[facets, None]
        depth = -((points[:, None] - solids.facet_centres[facets]) * normals).sum(axis=2)
        owner[(depth > 1e-9).all(axis=1)] = number
    return owner


@pytest.mark.parametrize("seed", range(4))
def test_polyhedra_against_points_beside_facets(seed: int) -> None:
    """Points of a facet, moved a little to both sides, lie in polyhedra that touch; areas follow their frequency."""
    rng = np.random.default_rng(seed)
    solids = random_solids(rng, 40)
    adjacency = solids.touching()
    covered = np.zeros(len(solids.facets))
    cycles, starts = solids.cycles
    for facet in np.flatnonzero(solids.facets < 0):
        corners = solids.points[cycles[starts[facet] : starts[facet + 1]]]
        shares = rng.dirichlet(np.ones(len(corners)), size=200)
        normal = solids.facet_vectors[facet] / solids.facet_sizes[facet]
        across = owner_of(solids, shares @ corners + 1e-6 * normal)
        own = solids.facet_owner[facet]
        facing = np.flatnonzero((adjacency.first == own) & (adjacency.cut == -solids.facets[facet]))
        mine = dict(zip(adjacency.second[facing], adjacency.measure[facing], strict=True))
        assert len(mine) == len(facing)
        assert set(across[across >= 0]) <= mine.keys()
        covered[facet] = sum(mine.values())
        # Whoever has a third of the facet is met by 200 points spread over it.
        assert {b for b, size in mine.items() if size > solids.facet_sizes[facet] / 3} <= set(across)
    below = solids.facets < 0
    assert covered[below] == pytest.approx(solids.facet_sizes[below], abs=1e-9)


def test_boxes_that_share_an_edge_only() -> None:
    """Four columns of a cube: opposite ones have an edge in common and do not touch; each has border facets."""
    half = 0.5
    corners = [(0, 0), (half, 0), (0, half), (half, half)]
    walls = [(1, -7, 3, -8), (7, 2, 3, -9), (1, -10, 8, 4), (10, 2, 9, 4)]
    columns = Polyhedra.join(
        [
            Polyhedra.boxes(
                np.array([[x, y, 0.0]]), np.array([[x + half, y + half, 1.0]]), np.reshape([*wall, 5, 6], (1, 3, 2))
            )
            for (x, y), wall in zip(corners, walls, strict=True)
        ]
    )
    adjacency = columns.touching()
    assert sorted(zip(adjacency.first, adjacency.second, strict=True)) == [(0, 1), (0, 2), (1, 3), (2, 3)]
    assert adjacency.measure == pytest.approx(np.full(4, 0.5))
    first = adjacency.extent[adjacency.cut.tolist().index(7)]
    assert first == pytest.approx(np.array([[0.5, 0.0, 0.0], [0.5, 0.5, 1.0]]))
    cuts = np.array([[0, axis, side] for axis in range(3) for side in (0, 1)] + [[2, 0, 0]] * 4)
    assert columns.on_border(cuts, 3).all()


def test_nothing_touches_in_an_empty_or_single_tiling() -> None:
    empty = Polygons(np.zeros((0, 2)), np.zeros(1, dtype=int), np.zeros(0, dtype=int))
    square = Polygons(np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]]), np.array([0, 4]), np.array([3, 2, 4, 1]))
    for polytopes in (empty, square, CUBE, CUBE.take(np.zeros(0, dtype=int))):
        adjacency = polytopes.touching()
        assert len(adjacency) == 0 and adjacency.extent.shape[1] == 2
