"""The oracle of any dimension against the one for the plane, against all patterns by brute force, and by hand."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from steadygaze.perturbation import parse_spec
from support.networks.hand_solved import NETWORKS, Tiny
from support.networks.layered_networks import crossing_layers, dyadic_layers, make_compound, on_unit_square
from support.oracles import exact_maps, rational_polygons
from support.oracles.exact_polytopes import at, box, corners_of, homogeneous, integer, overlap, plain, shadow
from support.oracles.exact_regions import ExactLayer, ExactMap, exact_compound_map, exact_layers, exact_map, is_border

HALF = Fraction(1, 2)


def on_unit_cube(tiny: Tiny) -> list[ExactLayer]:
    low, high = (np.array(ends, dtype=float) for ends in (tiny.low, tiny.high))
    return exact_layers(on_unit_square(tiny.floats, low, high))


def random_layers(seed: int, dimension: int, *, most: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng([seed, dimension, 5])
    hidden = [int(rng.integers(2, most)), int(rng.integers(1, most))]
    points = rng.integers(0, 5, size=(3, dimension)) / 4
    sizes = [dimension, *hidden, 3]
    layers = dyadic_layers(rng, sizes) if seed % 2 else crossing_layers(rng, sizes, points)
    weight, bias = layers[0]
    weight[1], bias[1] = weight[0] * (scale := rng.choice([1.0, 2.0, -1.0])), bias[0] * scale
    return layers


def assert_sound(found: ExactMap, layers: list[ExactLayer]) -> None:
    """Volumes add up, facets face each other, patterns and logits are those of a forward pass inside."""
    assert sum(region.polytope.volume for region in found.regions) == 1
    pairs = {(a, b) for a, row in enumerate(found.neighbours) for b in row if b is not None}
    assert pairs == {(b, a) for a, b in pairs}
    for region, row in zip(found.regions, found.neighbours, strict=True):
        facets = region.polytope.facets
        assert [is_border(facet) for facet in facets] == [other is None for other in row]
        assert corners_of(facets) == set(region.polytope.vertices)
        inside = region.polytope.middle
        pattern, logits = forward(layers, inside)
        assert region.key == (0, *pattern)
        assert logits == [sum(a * x for a, x in zip(form, (*inside, 1), strict=True)) for form in region.logits]


def forward(layers: list[ExactLayer], point: tuple[Fraction, ...]) -> tuple[list[int], list[Fraction]]:
    values, pattern = list(point), []
    for number, layer in enumerate(layers):
        sums = [
            (sum(w * x for w, x in zip(row, values, strict=True)) + b) / layer.denominator
            for row, b in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)
        ]
        if number == len(layers) - 1:
            return pattern, sums
        pattern += [int(value > 0) for value in sums]
        values = [max(value, Fraction(0)) for value in sums]
    raise AssertionError


@pytest.mark.parametrize("tiny", NETWORKS, ids=lambda tiny: tiny.name)
def test_networks_solved_by_hand(tiny: Tiny) -> None:
    layers = on_unit_cube(tiny)
    found = exact_map(layers, len(tiny.low))
    volume = rational_polygons.area(rational_polygons.box(tiny.low, tiny.high))
    assert {region.key[1:]: region.polytope.volume * volume for region in found.regions} == tiny.areas
    assert_sound(found, layers)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("seed", range(10))
def test_the_other_oracle_agrees(seed: int, dimension: int) -> None:
    floats = random_layers(seed, dimension, most=5)
    layers = exact_layers(floats)
    found = exact_map(layers, dimension)
    other = rational_polygons.split_regions(
        exact_maps.rational_layers(floats), [Fraction(0)] * dimension, [Fraction(1)] * dimension
    )
    assert {region.pattern: (region.area, set(region.polygon)) for region in other} == {
        region.key[1:]: (region.polytope.volume, set(map(plain, region.polytope.vertices))) for region in found.regions
    }
    assert_sound(found, layers)
    for label in range(3):
        margins = [region.margin(label) for region in found.regions]
        for region, (low, up) in zip(other, margins, strict=True):
            kept, lost, tied = rational_polygons.label_areas([region], label)
            assert (lost + tied == 0 and kept > 0) == (low >= 0 and up > 0)
            assert (kept == 0) == (up <= 0)
            assert (kept > 0 and lost > 0) == (low < 0 < up)


@pytest.mark.parametrize("dimension", [3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_all_patterns_by_brute_force(seed: int, dimension: int) -> None:
    """Of all 2^n patterns those whose half-spaces enclose a volume, vertices by solving every d of them."""
    layers = exact_layers(random_layers(seed, dimension, most=4))
    found = exact_map(layers, dimension)
    assert_sound(found, layers)
    hidden = [len(layer.bias) for layer in layers[:-1]]
    cube = box([0] * dimension, [1] * dimension).facets
    expected = {}
    for pattern in product((0, 1), repeat=sum(hidden)):
        forms = forms_under(layers, pattern, dimension)
        if any(bit and not any(form) for bit, form in zip(pattern, forms, strict=True)):
            continue
        sides = [integer(f if bit else [-a for a in f]) for bit, f in zip(pattern, forms, strict=True) if any(f)]
        flat = [side for side in sides if not any(side[:-1])]
        if any(side[-1] < 0 for side in flat):
            continue
        corners = corners_of([*{side for side in sides if any(side[:-1])}, *cube])
        if corners is not None:
            expected[pattern] = corners
    assert {region.key[1:]: set(region.polytope.vertices) for region in found.regions} == expected


def forms_under(layers: list[ExactLayer], pattern: tuple[int, ...], dimension: int) -> list[list[Fraction]]:
    values = [[Fraction(int(i == k)) for k in range(dimension + 1)] for i in range(dimension)]
    forms: list[list[Fraction]] = []
    for layer in layers[:-1]:
        current = []
        for row, constant in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True):
            sums = [sum(w * value[k] for w, value in zip(row, values, strict=True)) for k in range(dimension + 1)]
            sums[-1] += constant
            current.append([Fraction(number) / layer.denominator for number in sums])
        bits = pattern[len(forms) : len(forms) + len(current)]
        values = [[number * bit for number in form] for bit, form in zip(bits, current, strict=True)]
        forms += current
    return forms


@pytest.mark.parametrize("seed", range(6))
def test_compound_networks(seed: int) -> None:
    """The same regions and shares as the other oracle on images that move, are patched and brightened."""
    rng = np.random.default_rng([seed, 3])
    specs = (("translate:dx=2:-0.5..1.5", "brightness"), ("patch:x=0,y=0,w=2,h=1", "darkness:-0.5..0.5"))[seed % 2]
    layers = dyadic_layers(rng, [3, 3, 2])
    compound = make_compound(layers, [parse_spec(spec) for spec in specs], rng.choice([0, 0.25, 1], size=(1, 1, 3)))
    found = exact_compound_map(compound)
    expected = exact_maps.exact_compound_map(compound, layers)
    assert {region.key: region.polytope.volume for region in found.regions} == {
        key: share for key, (share, _) in expected.items()
    }
    assert sum(region.polytope.volume for region in found.regions) == 1
    for region in found.regions:
        assert np.allclose(np.array(region.logits, dtype=float).T, expected[region.key][1])
    assert len(found.neighbours) == len(found.regions)


def test_a_cube_without_a_corner() -> None:
    """x + y + z ≥ 1/2 cuts a simplex of volume 1/48 off the cube and leaves 7 facets and 10 vertices."""
    corner, rest = box([0, 0, 0], [1, 1, 1]).cut((2, 2, 2, -1))
    assert corner is not None and rest is not None
    assert (corner.volume, rest.volume) == (Fraction(1, 48), Fraction(47, 48))
    assert (len(corner.facets), len(rest.facets), len(rest.vertices)) == (4, 7, 10)
    assert shadow(rest, 6).volume == Fraction(1, 8)
    assert overlap(corner, 3, rest, 6) and not overlap(corner, 0, rest, 6)


def test_a_four_dimensional_box_in_half() -> None:
    """Through two opposite corners: the volumes are equal, and the cut is an octahedron."""
    below, above = box([0] * 4, [1] * 4).cut((1, 1, 1, 1, -2))
    assert below is not None and above is not None
    assert below.volume == above.volume == HALF
    assert len(shadow(above, len(above.facets) - 1).vertices) == 6


def test_facets_overlap_only_partly() -> None:
    left, right = box([0, 0], [1, 1]), box([1, HALF], [2, 3])
    assert overlap(left, 1, right, 0)
    assert not overlap(left, 1, box([1, 1], [2, 2]), 0)  # they touch in a point
    assert not overlap(left, 1, box([2, 0], [3, 1]), 0)


def test_a_margin_that_peaks_inside() -> None:
    """Logits (1/4, |t − 1/2|-like tent): the margin 1/4 − max(t − 1/2, 1/2 − t) is highest inside one region."""
    layers = [
        ExactLayer.of([[1]], [1]),
        ExactLayer.of([[0], [1], [-1]], [Fraction(1, 4), Fraction(-3, 2), Fraction(3, 2)]),
    ]
    (region,) = exact_map(layers, 1).regions
    assert region.margin(0) == (Fraction(-1, 4), Fraction(1, 4))
    assert region.margin(1) == (Fraction(-1), HALF - Fraction(1, 4))


def test_points_and_forms_are_in_lowest_terms() -> None:
    assert homogeneous([HALF, Fraction(2, 3)]) == (3, 4, 6)
    assert integer([Fraction(2, 3), Fraction(4, 3)]) == (1, 2)
    assert at((1, 1, -1), homogeneous([HALF, HALF])) == 0


def test_a_dropped_region_is_noticed() -> None:
    found = exact_map(exact_layers(random_layers(0, 3, most=4)), 3)
    with pytest.raises(AssertionError, match="one owner"):
        _ = ExactMap(found.regions[1:]).neighbours
