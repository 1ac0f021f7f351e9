"""Maps of graphs with branches and windows against exact rationals and plain passes, and false maps."""

from dataclasses import replace

import numpy as np
import pytest

from steadygaze.errors import InternalError
from steadygaze.network.graph import patterns
from steadygaze.network.layers import CARRIED, ENTRY
from steadygaze.network.operators import ScaleShift
from steadygaze.regions.check import check_map
from steadygaze.regions.forward_error import forward_errors, kink_share
from steadygaze.regions.subdivide import subdivide, subdivide_cells
from support.networks.branching import random_graph
from support.networks.pooled import branching_compound, pooled_graph, winner_graph
from support.oracles.exact_branches import exact_branching_map
from support.oracles.exact_polytopes import plain
from support.readers.maps import affine_logits, assert_tiles, clip_bits, owners, pattern_bits
from support.stand_ins.false_maps import flip_bit, largest

SPECS = (
    ("brightness:-0.5..0.5",),
    ("brightness:-0.5..0.5", "patch:x=0,y=0,w=2,h=1"),
    ("brightness:-0.5..0.5", "patch:x=0,y=0,w=2,h=1", "darkness:0..0.25"),
)
BACKGROUND = np.pad(np.array([[0.5, 1.0], [0.25, 0.75]]), (0, 6))[None]
KERNEL = np.array([[[[413.0, -127, 151], [333, 411, -389], [229, -61, 199]]]]) / 512


def random_compound(seed, parameters):
    image = np.random.default_rng(seed).integers(0, 9, (1, 2, 2)) / 8.0
    return branching_compound(random_graph(seed), image, *SPECS[parameters - 1])


def assert_exact(compound, regions):
    """Regions by patterns, their volumes and logits are those of the exact map, logits up to their proved error."""
    expected = exact_branching_map(compound)
    bits = np.hstack([clip_bits(compound, regions), pattern_bits(regions, compound.hidden)])
    keys = [(int(cell), *map(int, row)) for cell, row in zip(regions.cell, bits, strict=True)]
    assert set(keys) == set(expected)
    assert regions.pattern_count == len(expected)
    volumes = dict.fromkeys(expected, 0.0)
    error, slopes = forward_errors(compound, regions.accuracy)[-1], compound.domain.dimension
    for key, volume, logits in zip(keys, regions.polytopes.volumes, regions.logits, strict=True):
        volumes[key] += volume
        polytope, forms = expected[key]
        for vertex in map(plain, polytope.vertices):
            value = sum(row * x for row, x in zip(forms, (*vertex, 1), strict=True)).astype(float)
            found = np.array([float(x) for x in vertex]) @ logits[:slopes] + logits[-1]
            assert (np.abs(found - value) <= error + 1e-15).all()
    assert error.max() < 1e-9 * max(1.0, np.abs(regions.logits).max())
    for key, volume in volumes.items():
        assert abs(volume - float(expected[key][0].volume)) <= 1e-9


def assert_agrees_with_passes(compound, regions, points):
    """Pattern and logits at points (B, 2) are those of a plain pass, where nothing is close to a kink."""
    owner, depth = owners(regions, points)
    assert (depth > -1e-9).all()
    owner, points = owner[depth > 1e-9], points[depth > 1e-9]
    inputs, logits = compound.graph.trace(compound.perturbed.images(compound.to_theta(points)))
    np.testing.assert_allclose(affine_logits(regions, owner, points), logits, rtol=0, atol=1e-9)
    claimed = np.split(pattern_bits(regions, compound.hidden)[owner], np.cumsum(compound.hidden)[:-1], axis=1)
    computed = patterns(compound.graph, inputs)
    for layer, values, mine, theirs in zip(compound.graph.layers, inputs, claimed, computed, strict=True):
        for k in np.flatnonzero(layer.kind != ENTRY):
            clear = np.abs(values[:, k]) > 1e-9
            assert (mine[clear, k] == theirs[clear, k]).all()
        for first, end in {pair for k, pair in enumerate(zip(*layer.ends, strict=True)) if layer.kind[k] == ENTRY}:
            window = values[:, first:end]
            assert (mine[:, first:end].sum(axis=1) == 1).all()
            won = (window * mine[:, first:end]).sum(axis=1)
            assert (won >= window.max(axis=1) - 1e-9).all()


@pytest.mark.parametrize("parameters", [1, 2])
@pytest.mark.parametrize("seed", range(40))
def test_flat_maps_are_exact(seed, parameters):
    compound = random_compound(seed, parameters)
    regions = subdivide(compound)
    check_map(compound, regions)
    assert_tiles(regions)
    assert_exact(compound, regions)
    assert_agrees_with_passes(compound, regions, np.random.default_rng(seed).random((100, 2)))


@pytest.mark.parametrize("seed", range(12))
def test_solid_maps_are_exact(seed):
    compound = random_compound(seed, 3)
    regions = subdivide(compound)
    check_map(compound, regions)
    assert_exact(compound, regions)


def test_random_graphs_have_all_kinds_of_neurons():
    kinds = [np.concatenate([layer.kind for layer in random_graph(seed).layers]) for seed in range(40)]
    assert sum((kind == ENTRY).any() for kind in kinds) > 10
    assert sum((kind == CARRIED).any() for kind in kinds) > 10


def test_losers_that_change_places_split_nothing():
    weight = np.array([[0.0, 0, 0, 0], [1, 0, 0, 0], [-1, 0, 0, 0]])
    compound = branching_compound(
        winner_graph(weight, np.array([2.0, 0.0, 0.5])), np.full((1, 2, 2), 0.25), "brightness:0..0.5"
    )
    assert len(subdivide(compound)) == 1


def test_a_triple_point_counts_three_regions():
    """The largest of x, y and 3/4 − x − y on the square: three parts that meet in one point."""
    image = np.zeros((1, 2, 2))
    weight = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [-1, -1, 0, 0]])
    graph = winner_graph(weight, np.array([0.0, 0.0, 0.75]))
    compound = branching_compound(graph, image, "patch:x=0,y=0,w=1,h=1", "patch:x=1,y=0,w=1,h=1")
    regions = subdivide(compound)
    assert regions.pattern_count == 3
    assert 3 <= len(regions) <= 4
    assert_exact(compound, regions)


def assert_certain(compound):
    regions = subdivide(compound)
    check_map(compound, regions)
    assert not regions.doubtful.any()
    return regions


@pytest.mark.parametrize("is_rectified", [False, True])
@pytest.mark.parametrize("domain", ["0..0.25", "0..1", "-0.5..0.5"])
@pytest.mark.parametrize("bias", [0.0, 0.5, -1.0])
def test_ties_on_a_constant_background_are_certain(bias, domain, is_rectified):
    rng = np.random.default_rng(0)
    graph = pooled_graph(KERNEL, np.array([bias]), rng.normal(size=(9, 2)), (8, 8), is_rectified=is_rectified)
    compound = branching_compound(graph, BACKGROUND, f"brightness:{domain}", "patch:x=0,y=0,w=1,h=1")
    regions = assert_certain(compound)
    assert_exact(compound, regions)


@pytest.mark.parametrize("is_rectified", [False, True])
def test_ties_after_rounded_preprocessing_are_certain(is_rectified):
    rng, scale = np.random.default_rng(0), ScaleShift(mean=0.1307, divisor=0.3081)
    graph = pooled_graph(
        KERNEL, np.array([0.3]), rng.normal(size=(9, 2)), (8, 8), is_rectified=is_rectified, scale=scale
    )
    assert_certain(branching_compound(graph, BACKGROUND, "brightness:-0.25..1", "patch:x=0,y=0,w=1,h=1"))


@pytest.mark.parametrize("is_rectified", [False, True])
def test_equal_rows_are_certain_and_the_first_wins(is_rectified):
    row = np.array([0.3, -0.7, 0.1, 0.9])
    graph = winner_graph(np.stack([row - 0.25, row, row, row]), np.full(4, 0.125), is_rectified=is_rectified)
    compound = branching_compound(graph, np.full((1, 2, 2), 0.3), "brightness:0..0.5", "patch:x=0,y=0,w=1,h=1")
    regions = assert_certain(compound)
    won = pattern_bits(regions, compound.hidden)[:, -4:]
    assert won[:, 1].any()
    assert not won[:, 2:].any()


def test_dead_entries_are_certain():
    graph = winner_graph(-np.eye(4), np.full(4, -0.1), is_rectified=True)
    compound = branching_compound(graph, np.full((1, 2, 2), 0.3), "brightness:0..0.5")
    regions = assert_certain(compound)
    assert pattern_bits(regions, compound.hidden)[:, -4:].tolist() == [[True, False, False, False]] * len(regions)


@pytest.mark.parametrize(
    "rows",
    [
        [[0.1, 0.2, 0, 0], [0.3, 0, 0, 0]],  # equal but for the rounding of 0.1 + 0.2
        [[1.0, 2.0**-60, 0, 0], [1.0, 0, 0, 0]],  # the same float, another number
    ],
)
def test_ties_by_rounding_alone_are_doubtful(rows):
    compound = branching_compound(
        winner_graph(np.array(rows), np.zeros(2)), np.full((1, 2, 2), 0.25), "brightness:0..0.5"
    )
    assert subdivide(compound).doubtful.all()


def test_the_strip_beside_a_pair_is_measured():
    """max(x, 1/2 − x) for x from 0 to 1/2: the lead is |2x − 1/2|, at most e on a share 2e of the domain."""
    graph = winner_graph(np.array([[1.0, 0, 0, 0], [-1, 0, 0, 0]]), np.array([0.0, 0.5]))
    compound = branching_compound(graph, np.zeros((1, 2, 2)), "brightness:0..0.5")
    regions = subdivide(compound)
    assert len(regions) == 2
    errors = forward_errors(compound, regions.accuracy)
    assert 2 * errors[0].min() <= kink_share(compound, regions.accuracy, errors) <= 1e-12
    edges = regions.accuracy.beside[0]
    np.testing.assert_allclose(edges, [1.0, 1.0])  # half of the domain each, with a lead of up to 1/2


def residual_compound():
    """The first random graph with windows and carried neurons whose map has several regions with different winners."""
    for seed in range(100):
        compound = random_compound(seed, 2)
        kinds = np.concatenate([layer.kind for layer in compound.graph.layers])
        if (kinds == ENTRY).any() and (kinds == CARRIED).any():
            bits = pattern_bits(subdivide(compound), compound.hidden)[:, kinds == ENTRY]
            if (bits.any(axis=0) & ~bits.all(axis=0)).any():
                return compound
    raise AssertionError("no such graph")


def place_of(compound, layer, neuron):
    """The bit of a neuron in a packed pattern."""
    return 8 * sum(-(-size // 8) for size in compound.hidden[:layer]) + neuron


def neurons_of(compound, kind):
    return [(n, int(k)) for n, layer in enumerate(compound.graph.layers) for k in np.flatnonzero(layer.kind == kind)]


def test_a_wrong_winner_is_caught():
    compound = residual_compound()
    regions = subdivide(compound)
    check_map(compound, regions)
    region, caught = largest(regions), 0
    bits = np.split(pattern_bits(regions, compound.hidden)[region], np.cumsum(compound.hidden)[:-1])
    centre = compound.to_theta(regions.polytopes.centres[region : region + 1])
    inputs, _ = compound.graph.trace(compound.perturbed.images(centre))
    for layer, neuron in neurons_of(compound, ENTRY):
        first, end = (int(part[neuron]) for part in compound.graph.layers[layer].ends)
        winner = first + int(np.argmax(bits[layer][first:end]))
        if inputs[layer][0, winner] - inputs[layer][0, neuron] > 1e-6:
            false = regions
            for k in (winner, neuron):
                false = flip_bit(false, region, "pattern", place_of(compound, layer, k))
            with pytest.raises(InternalError, match="self-check failed"):
                check_map(compound, false)
            caught += 1
    assert caught


@pytest.mark.parametrize("kind", [CARRIED, ENTRY])
def test_a_window_without_a_single_winner_and_a_lost_branch_are_caught(kind):
    compound = residual_compound()
    regions = subdivide(compound)
    for layer, neuron in neurons_of(compound, kind):
        false = flip_bit(regions, largest(regions), "pattern", place_of(compound, layer, neuron))
        with pytest.raises(InternalError, match="self-check failed"):
            check_map(compound, false)


def test_a_carried_value_that_is_lost_is_caught():
    """A residual branch whose values a layer treats as ReLUs."""
    found = 0
    for seed in range(40):
        compound = random_compound(seed, 2)
        cells = [
            replace(
                cell, program=cell.program._replace(kind=np.where(cell.program.kind == CARRIED, 0, cell.program.kind))
            )
            for cell in compound.programs
        ]
        if not any((cell.program.kind == CARRIED).any() for cell in compound.programs):
            continue
        false = subdivide_cells(cells)
        if (pattern_bits(false, compound.hidden)[:, np.concatenate([x.carried for x in compound.graph.layers])]).all():
            continue  # all carried values are positive
        with pytest.raises(InternalError):
            check_map(compound, false)
        found += 1
    assert found


def test_a_stale_copy_is_caught():
    """Copies that read the output of a neighbour instead of their own."""
    rng = np.random.default_rng(0)
    graph = pooled_graph(KERNEL, np.array([-0.25]), rng.normal(size=(9, 2)), (8, 8), is_rectified=True)
    compound = branching_compound(graph, BACKGROUND, "brightness:0..0.5", "patch:x=0,y=0,w=1,h=1")
    (cell,) = compound.programs
    copied = cell.program.copied.copy()
    entries = np.flatnonzero(copied >= 0)
    assert len(entries) == 36
    copied[entries] = np.roll(copied[entries], 1)
    with pytest.raises(InternalError):
        check_map(compound, subdivide_cells([replace(cell, program=cell.program._replace(copied=copied))]))


def test_runs_and_threads_give_the_same_map():
    compound = residual_compound()
    one, two = subdivide(compound), subdivide(compound, threads=2)
    np.testing.assert_array_equal(one.polytopes.points, two.polytopes.points)
    np.testing.assert_array_equal(one.pattern, two.pattern)
