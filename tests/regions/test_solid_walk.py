"""The walk in three dimensions: sampling, cuts and knots, buffers that grow, threads, budgets."""

import numpy as np
import pytest

from steadygaze.budget import Budget, Limits
from steadygaze.compound import Compound
from steadygaze.errors import OptionError
from steadygaze.perturbation import Brightness, Darkness, Patch, Translate
from steadygaze.polytopes import Cut
from steadygaze.regions import subdivide as engine
from steadygaze.regions import walks
from steadygaze.regions.check import check_map
from steadygaze.regions.region import RegionSet
from steadygaze.regions.subdivide import subdivide
from support.networks.bundled import bundled
from support.networks.layered_networks import crossing_layers, make_compound, plain_map
from support.readers.maps import assert_forward_agrees

FAMILIES = [Translate(dx=2), Patch(x=0, y=1, w=2, h=1), Brightness(range=(-0.25, 0.75))]


def small_compound(seed: int = 1) -> Compound:
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, size=(1, 3, 3)) / 255
    layers = [(rng.normal(size=(8, 9)), rng.normal(size=8)), (rng.normal(size=(6, 8)), rng.normal(size=6))]
    return make_compound([*layers, (rng.normal(size=(3, 6)), np.zeros(3))], FAMILIES, image)


@pytest.fixture(scope="module")
def compound() -> Compound:
    return small_compound()


@pytest.fixture(scope="module")
def regions(compound: Compound) -> RegionSet:
    return subdivide(compound)


def owners(regions: RegionSet, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The region that contains each point (B, 3) deepest, and how deep."""
    solids = regions.polytopes
    constant = (solids.normals * solids.facet_centres).sum(axis=1)
    depth = np.minimum.reduceat(constant - points @ solids.normals.T, solids.facet_starts[:-1], axis=1)
    return depth.argmax(axis=1), depth.max(axis=1)


def same(first: RegionSet, second: RegionSet) -> bool:
    """Whether two maps are equal to the last bit."""
    pairs = [
        (getattr(first, name), getattr(second, name)) for name in vars(first) if name not in ("polytopes", "accuracy")
    ]
    pairs += list(zip(vars(first.accuracy).values(), vars(second.accuracy).values(), strict=True))
    pairs += [(getattr(first.polytopes, n), getattr(second.polytopes, n)) for n in ("points", "starts", "facets")]
    pairs += [(getattr(first.polytopes, n), getattr(second.polytopes, n)) for n in ("facet_starts", "incidence")]
    return all(np.array_equal(a, b) for a, b in pairs)


def test_random_thetas_have_the_pattern_and_logits_of_their_region(compound: Compound, regions: RegionSet) -> None:
    assert len(regions) > 200 and regions.stopped is None
    assert regions.logits.shape == (len(regions), 4, 3)
    assert regions.polytopes.volumes.sum() == pytest.approx(1.0, abs=1e-12)
    points = np.random.default_rng(2).random((2000, 3))
    owner, depth = owners(regions, points)
    assert (depth > -1e-9).all()
    clear = depth > 1e-9
    assert_forward_agrees(compound, regions, owner[clear], points[clear])
    assert_forward_agrees(compound, regions, np.arange(len(regions)), regions.polytopes.centres)


def test_cuts_name_borders_knots_and_neurons(compound: Compound, regions: RegionSet) -> None:
    solids = regions.polytopes
    kind, first, second = regions.cuts[np.abs(solids.facets) - 1].T
    places, starts = solids.cycles
    for facet in np.flatnonzero(kind == Cut.BORDER):
        assert (solids.points[places[starts[facet] : starts[facet + 1]], first[facet]] == second[facet]).all()
    knots = np.flatnonzero(kind == Cut.KNOT)
    assert len(knots) and (first[knots] == 0).all() and (second[knots] == 1).all()
    assert np.allclose(solids.facet_centres[knots, 0], compound.programs[1].low[0])
    assert (regions.cell[solids.facet_owner[knots]] == (solids.facets[knots] > 0)).all()
    neurons = np.flatnonzero(kind == Cut.NEURON)
    assert set(first[neurons]) == {0, 1, 2, 3}
    widths = [compound.programs[cell].widths for cell in range(2)]
    assert all(second[n] < widths[regions.cell[solids.facet_owner[n]]][first[n]] for n in neurons)


def test_forms_of_neurons_vanish_on_their_facets(compound: Compound, regions: RegionSet) -> None:
    """First ReLU layer of the classifier (layer 2): its preactivations at the middle of facets that it made."""
    solids = regions.polytopes
    kind, layer, neuron = regions.cuts[np.abs(solids.facets) - 1].T
    own = np.flatnonzero((kind == Cut.NEURON) & (layer == 2))
    images = compound.perturbed.images(compound.to_theta(solids.facet_centres[own]))
    values = compound.graph.trace(images)[0][0]
    assert len(own) > 100
    assert np.abs(values[np.arange(len(own)), neuron[own]]).max() < 1e-9


def test_small_buffers_change_nothing(compound: Compound, regions: RegionSet, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STACK_ROOM", "SOLID_ROOM", "SOLID_CAPACITY"):
        monkeypatch.setattr(walks, name, 1)
    assert same(subdivide(compound), regions)


def test_threads_change_nothing(compound: Compound, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "SMALL", 0)
    one = subdivide(compound, threads=1)
    assert same(subdivide(compound, threads=3), one)
    assert one.polytopes.volumes.sum() == pytest.approx(1.0, abs=1e-12)
    check_map(compound, one)


def test_runs_find_the_same_regions(compound: Compound, regions: RegionSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "SMALL", 0)
    runs = subdivide(compound)
    assert len(runs) == len(regions)
    assert np.array_equal(runs.patterns[runs.pattern], regions.patterns[regions.pattern])
    assert np.allclose(runs.polytopes.volumes, regions.polytopes.volumes, rtol=1e-9, atol=1e-15)


def test_a_budget_stops_the_walk(compound: Compound, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "SOLID_NODES", 50)
    part = subdivide(compound, budget=Budget(Limits(max_regions=40)))
    assert part.stopped == "limit of 40 regions"
    assert 40 <= len(part) < 200 and part.polytopes.volumes.sum() < 0.9
    check_map(compound, part)
    none = Budget()
    none.cancelled.set()
    stopped = subdivide(compound, budget=none)
    assert stopped.stopped == "interrupted" and stopped.logits.shape[1:] == (4, 3)
    check_map(compound, stopped)


def test_a_region_with_more_facets_than_a_word_has_bits() -> None:
    """Planes that touch a ball: none of the neurons is active inside, and each bounds that region."""
    normals = np.random.default_rng(3).normal(size=(75, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    first = (normals, -0.47 - 0.5 * normals.sum(axis=1))
    regions = plain_map([first, (np.ones((1, 75)), np.zeros(1))])
    solids = regions.polytopes
    assert solids.incidence.shape[1] == 2
    assert np.diff(solids.facet_starts).max() > 64
    assert solids.volumes.sum() == pytest.approx(1.0, abs=1e-12)
    assert len(regions.patterns) == len(regions)
    ball = int(np.argmax(np.diff(solids.facet_starts)))
    assert solids.volumes[ball] > 4 / 3 * np.pi * 0.47**3
    logits = np.maximum(solids.centres @ normals.T + first[1], 0.0).sum(axis=1)
    claimed = np.einsum("ri,ri->r", np.column_stack([solids.centres, np.ones(len(solids))]), regions.logits[:, :, 0])
    assert np.allclose(logits, claimed, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_degenerate_maps_pass_the_check(seed: int) -> None:
    rng = np.random.default_rng([seed, 4])
    layers = crossing_layers(rng, [4, 4, 3, 2], rng.integers(0, 5, size=(3, 4)) / 4)
    image = rng.choice([0.0, 0.25, 1.0], size=(1, 2, 2))
    families = [Translate(dx=2), Brightness() if seed % 2 else Darkness(), Patch(x=0, y=0, w=1, h=2)]
    compound = make_compound(layers, families, image)
    regions = subdivide(compound)
    check_map(compound, regions)
    assert regions.accuracy.slivers < 1e-9


def test_a_convolutional_network() -> None:
    """Sparse layers are brought up to date entry by entry."""
    specs = ("translate:dx=1:0..0.06", "patch:x=12,y=12,w=4,h=4:0..0.06", "brightness:0..0.03")
    compound = bundled("M-CNN-S", "mnist:69991", *specs)
    regions = subdivide(compound)
    assert len(regions) > 200
    check_map(compound, regions)


def test_parallel_directions() -> None:
    """Brightness, darkness and a patch over everything: theta enters through one number, regions are slabs."""
    layers = [(np.array([[1.0, 0.5]]), np.array([-0.6])), (np.ones((2, 1)), np.zeros(2))]
    families = [Brightness(), Darkness(), Patch(x=0, y=0, w=2, h=1)]
    compound = make_compound(layers, families, np.array([[[0.25, 0.5]]]))
    check_map(compound, subdivide(compound))


def test_four_parameters_are_refused() -> None:
    families = [*FAMILIES, Darkness()]
    compound = make_compound([(np.ones((1, 9)), np.zeros(1)), (np.ones((2, 1)), np.zeros(2))], families,
                             np.full((1, 3, 3), 0.5))  # fmt: skip
    with pytest.raises(OptionError, match=r"received 4 parameters .* takes up to 3"):
        subdivide(compound)
