"""Laws of maps over random networks and images: tilings, symmetries of the network, halves of a domain, edges."""

from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from steadygaze.compound import Compound
from steadygaze.perturbation import Brightness, Darkness, Patch, Perturbation, Translate
from steadygaze.regions.region import Cut, RegionSet
from steadygaze.regions.subdivide import subdivide
from support.networks.layered_networks import FloatLayer, dyadic_layers, make_compound, plain_map
from support.readers.maps import (
    affine_logits,
    assert_tiles,
    assert_true_map,
    clip_bits,
    owners,
    pattern_bits,
)

SEEDS = st.integers(0, 2**32 - 1)
QUICK = settings(max_examples=40, deadline=None, derandomize=True)

Shares = dict[tuple[int, ...], float]


@st.composite
def networks(draw: st.DrawFn) -> list[FloatLayer]:
    """Two to four layers from t in the unit square; dyadic weights (degenerate) or normal ones (generic)."""
    rng = np.random.default_rng(draw(SEEDS))
    sizes = [2, *draw(st.lists(st.integers(2, 16), min_size=1, max_size=3)), 3]
    if draw(st.booleans()):
        return dyadic_layers(rng, sizes)
    return [(rng.normal(size=(after, before)), 0.3 * rng.normal(size=after)) for before, after in pairwise(sizes)]


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[FloatLayer], list[Perturbation], np.ndarray]:
    """Layers, one or two perturbations and an image of 8-bit pixels, many of them black or white."""
    rng = np.random.default_rng(draw(SEEDS))
    image = rng.choice([0, 0, 51, 128, 200, 255], size=(1, 3, 3)) / 255
    families: list[Perturbation] = [
        Brightness(range=draw(st.sampled_from([None, (-0.5, 0.5)]))),
        Darkness(),
        Patch(x=0, y=1, w=2, h=2, tone=draw(st.sampled_from([1, -1]))),
        Translate(dx=draw(st.sampled_from([-2, 1, 3]))),
    ]
    chosen = draw(st.lists(st.sampled_from(range(4)), min_size=1, max_size=2, unique=True))
    layers = [(rng.normal(size=(6, 9)), rng.normal(size=6)), *dyadic_layers(rng, [6, 4, 3])]
    return layers, [families[i] for i in chosen], image


def plain_shares(regions: RegionSet, hidden: tuple[int, ...]) -> Shares:
    """Area by pattern."""
    rows = pattern_bits(regions, hidden).astype(int).tolist()
    return _added(zip(map(tuple, rows), regions.polytopes.volumes, strict=True))


def compound_shares(compound: Compound, regions: RegionSet) -> Shares:
    """Area by the bits of the clip and the classifier."""
    rows = np.hstack([clip_bits(compound, regions), pattern_bits(regions, compound.hidden)]).astype(int).tolist()
    return _added(zip(map(tuple, rows), regions.polytopes.volumes, strict=True))


def _added(pairs: zip) -> Shares:
    shares: Shares = defaultdict(float)
    for pattern, area in pairs:
        shares[pattern] += area
    return dict(shares)


def assert_same_shares(first: Shares, second: Shares, *, error: float = 1e-9) -> None:
    assert first.keys() == second.keys()
    assert all(abs(area - second[pattern]) <= error for pattern, area in first.items())


def hidden_of(layers: list[FloatLayer]) -> tuple[int, ...]:
    return tuple(len(bias) for _, bias in layers[:-1])


# Symmetries of the network


@QUICK
@given(networks())
def test_areas_add_up_and_patterns_are_distinct(layers: list[FloatLayer]) -> None:
    regions = plain_map(layers)
    assert_tiles(regions)
    assert max(Counter(regions.pattern.tolist()).values()) == 1


@QUICK
@given(networks(), SEEDS)
def test_permuting_neurons_permutes_the_bits(layers: list[FloatLayer], seed: int) -> None:
    rng = np.random.default_rng(seed)
    order = [rng.permutation(len(bias)) for _, bias in layers[:-1]]
    permuted, before = [], np.arange(2)
    for (weight, bias), now in zip(layers, [*order, np.arange(3)], strict=True):
        permuted.append((weight[now][:, before], bias[now]))
        before = now
    starts = np.cumsum([0, *hidden_of(layers)])
    whole = np.concatenate([start + now for start, now in zip(starts[:-1], order, strict=True)])
    first, second = plain_map(layers), plain_map(permuted)
    assert np.allclose(np.sort(first.polytopes.volumes), np.sort(second.polytopes.volumes), rtol=0, atol=1e-9)
    moved = {tuple(np.array(pattern)[whole]): area for pattern, area in plain_shares(first, hidden_of(layers)).items()}
    assert_same_shares(moved, plain_shares(second, hidden_of(layers)))


@QUICK
@given(networks(), SEEDS)
def test_scaling_a_neuron_and_undoing_it_changes_nothing(layers: list[FloatLayer], seed: int) -> None:
    rng = np.random.default_rng(seed)
    scaled = list(layers)
    for layer in range(len(layers) - 1):
        (weight, bias), (after, after_bias) = scaled[layer : layer + 2]
        factors = 2.0 ** rng.integers(-12, 13, size=len(bias))
        scaled[layer] = (weight * factors[:, None], bias * factors)
        scaled[layer + 1] = (after / factors, after_bias)
    first, second = plain_map(layers), plain_map(scaled)
    assert_same_shares(plain_shares(first, hidden_of(layers)), plain_shares(second, hidden_of(layers)))
    points = rng.random((50, 2))
    values = [affine_logits(regions, owners(regions, points)[0], points) for regions in (first, second)]
    assert np.allclose(*values, rtol=0, atol=1e-9)


@QUICK
@given(networks(), SEEDS)
def test_duplicated_neurons_add_no_region(layers: list[FloatLayer], seed: int) -> None:
    """Every neuron again, with the opposite sign and scaled by three: its line exists already."""
    rng = np.random.default_rng(seed)
    (weight, bias), (after, after_bias), *rest = layers
    factors = rng.choice([3.0, -3.0], size=len(bias))
    doubled = [
        (np.vstack([weight, factors[:, None] * weight]), np.append(bias, factors * bias)),
        (np.hstack([after, np.zeros_like(after)]), after_bias),
        *rest,
    ]
    first, second = plain_map(layers), plain_map(doubled)
    assert len(first) == len(second)
    width = len(bias)
    kept = {(*p[:width], *p[2 * width :]): area for p, area in plain_shares(second, hidden_of(doubled)).items()}
    assert_same_shares(plain_shares(first, hidden_of(layers)), kept)


@QUICK
@given(networks(), SEEDS)
def test_a_finer_network_refines_the_map(layers: list[FloatLayer], seed: int) -> None:
    """One more neuron without influence: old patterns keep their areas, regions become no fewer."""
    rng = np.random.default_rng(seed)
    (weight, bias), (after, after_bias), *rest = layers
    more = [
        (np.vstack([weight, rng.normal(size=2)]), np.append(bias, 0.1 * rng.normal())),
        (np.hstack([after, np.zeros((len(after), 1))]), after_bias),
        *rest,
    ]
    first, second = plain_map(layers), plain_map(more)
    assert len(first) <= len(second) <= 2 * len(first)
    place = len(bias)
    merged = _added(
        zip(
            ((*p[:place], *p[place + 1 :]) for p in plain_shares(second, hidden_of(more))),
            plain_shares(second, hidden_of(more)).values(),
            strict=True,
        )
    )
    assert_same_shares(plain_shares(first, hidden_of(layers)), merged)


# Compound networks


@QUICK
@given(problems())
def test_maps_agree_with_forward_passes(
    question: tuple[list[FloatLayer], list[Perturbation], np.ndarray],
) -> None:
    compound = make_compound(*question)
    assert_true_map(compound, subdivide(compound), samples=60)


@QUICK
@given(problems(), st.sampled_from([(0.0, 0.5, 1.0), (-0.5, 0.25, 0.5), (0.0, 0.125, 0.25)]))
def test_the_map_of_a_union_is_the_union_of_maps(
    question: tuple[list[FloatLayer], list[Perturbation], np.ndarray], ends: tuple[float, float, float]
) -> None:
    layers, perturbations, image = question
    others = [other for other in perturbations[:1] if not isinstance(other, Brightness)]
    low, middle, high = ends
    left, right, whole = (
        make_compound(layers, [Brightness(range=part), *others], image)
        for part in ((low, middle), (middle, high), (low, high))
    )
    maps = [subdivide(compound) for compound in (left, right, whole)]
    shares = [compound_shares(compound, regions) for compound, regions in zip((left, right, whole), maps, strict=True)]
    weight = (middle - low) / (high - low)
    together = {p: weight * shares[0].get(p, 0) + (1 - weight) * shares[1].get(p, 0) for p in shares[0] | shares[1]}
    assert_same_shares(together, shares[2])
    thetas = whole.to_theta(np.random.default_rng(0).random((60, 2)))
    values = affine_logits(maps[2], owners(maps[2], whole.to_unit(thetas))[0], whole.to_unit(thetas))
    for compound, regions, chosen in (
        (left, maps[0], thetas[:, 0] <= middle),
        (right, maps[1], thetas[:, 0] >= middle),
    ):
        points = compound.to_unit(thetas[chosen])
        assert np.allclose(affine_logits(regions, owners(regions, points)[0], points), values[chosen], atol=1e-9)


@QUICK
@given(problems())
def test_the_order_of_parameters_only_swaps_the_axes(
    question: tuple[list[FloatLayer], list[Perturbation], np.ndarray],
) -> None:
    layers, perturbations, image = question
    first, second = (make_compound(layers, order, image) for order in (perturbations, perturbations[::-1]))
    assert_same_shares(compound_shares(first, subdivide(first)), compound_shares(second, subdivide(second)))


@QUICK
@given(problems())
def test_threads_do_not_change_a_byte(question: tuple[list[FloatLayer], list[Perturbation], np.ndarray]) -> None:
    compound = make_compound(*question)
    maps = [subdivide(compound, threads=threads) for threads in (1, 2, 3)]
    assert as_bytes(maps[0]) == as_bytes(maps[1]) == as_bytes(maps[2])


def as_bytes(regions: RegionSet) -> list[bytes]:
    polygons = regions.polytopes
    arrays = (polygons.points, polygons.starts, polygons.facets, regions.cuts, regions.cell, regions.pattern)
    more = (regions.patterns, regions.clip, regions.clips, regions.logits, np.array(regions.accuracy.slivers))
    return [np.asarray(array).tobytes() for array in (*arrays, *more)]


# Edges


def edges_by_cut(regions: RegionSet) -> dict[int, dict[int, list[int]]]:
    """Places of edges by the number of their cut and by side."""
    found: dict[int, dict[int, list[int]]] = defaultdict(lambda: {1: [], -1: []})
    for place, edge in enumerate(regions.polytopes.facets):
        assert 1 <= abs(edge) <= len(regions.cuts)
        found[abs(edge)][int(np.sign(edge))].append(place)
    return found


def assert_edges_match(regions: RegionSet) -> None:
    """Inside, both sides of a cut have the same length; each of the four borders has length 1 and one side."""
    for cut, sides in edges_by_cut(regions).items():
        above, below = (regions.polytopes.facet_sizes[sides[side]].sum() for side in (1, -1))
        if regions.cuts[cut - 1, 0] == Cut.BORDER:
            assert {round(above, 9), round(below, 9)} == {0.0, 1.0}
        else:
            assert abs(above - below) <= 1e-9


def neighbours(regions: RegionSet) -> list[tuple[int, int, np.ndarray]]:
    """Pairs of regions on both sides of a cut, with the two ends (2, 2) of the segment that they share."""
    polygons, found = regions.polytopes, []
    ends = np.stack([polygons.points, polygons.points[polygons.following]], axis=1)
    for cut, sides in edges_by_cut(regions).items():
        if regions.cuts[cut - 1, 0] == Cut.BORDER:
            continue
        longest = max(sides[1] + sides[-1], key=lambda place: polygons.facet_sizes[place])
        start, direction = ends[longest, 0], (ends[longest, 1] - ends[longest, 0]) / polygons.facet_sizes[longest]
        for above in sides[1]:
            for below in sides[-1]:
                (a, b), (c, d) = (np.sort((ends[place] - start) @ direction) for place in (above, below))
                low, high = max(a, c), min(b, d)
                if high - low > 1e-9:
                    segment = start + np.outer([low, high], direction)
                    found.append((int(polygons.owner[above]), int(polygons.owner[below]), segment))
    return found


def assert_continuous(regions: RegionSet) -> None:
    """Logits agree along what two regions share, and the regions there differ."""
    pairs = neighbours(regions)
    for above, below, segment in pairs:
        assert above != below
        values = [affine_logits(regions, np.array([number] * 2), segment) for number in (above, below)]
        assert np.allclose(*values, rtol=0, atol=1e-8)
    assert len({above for above, _, _ in pairs} | {below for _, below, _ in pairs}) == len(regions) or len(regions) == 1


@QUICK
@given(networks())
def test_both_sides_of_every_cut_of_a_plain_network(layers: list[FloatLayer]) -> None:
    regions = plain_map(layers)
    assert_edges_match(regions)
    assert_continuous(regions)


@QUICK
@given(problems())
def test_both_sides_of_every_cut_of_a_compound_network(
    question: tuple[list[FloatLayer], list[Perturbation], np.ndarray],
) -> None:
    compound = make_compound(*question)
    regions = subdivide(compound)
    assert_edges_match(regions)
    assert_continuous(regions)


@QUICK
@given(problems())
def test_a_cut_lies_where_its_neuron_vanishes(
    question: tuple[list[FloatLayer], list[Perturbation], np.ndarray],
) -> None:
    """The neuron that a cut names is zero in the middle of the edge, and active on the positive side alone."""
    compound = make_compound(*question)
    regions = subdivide(compound)
    polygons = regions.polytopes
    starts = np.cumsum([0, *compound.hidden])
    bits = pattern_bits(regions, compound.hidden)
    for place, edge in enumerate(polygons.facets):
        kind, layer, neuron = regions.cuts[abs(edge) - 1]
        if kind != Cut.NEURON or layer < 2 or polygons.facet_sizes[place] < 1e-7:
            continue
        middle = 0.5 * (polygons.points[place] + polygons.points[polygons.following[place]])[None]
        images = compound.perturbed.images(compound.to_theta(middle))
        assert abs(compound.graph.trace(images)[0][layer - 2][0, neuron]) < 1e-9
        assert bits[polygons.owner[place], starts[layer - 2] + neuron] == (edge > 0)
