"""The oracle against itself, against hand-solved networks, and against planted bugs."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.networks.hand_solved import (
    IMAGES,
    NETWORKS,
    Tiny,
    TinyImage,
    brighter_and_patched,
    layer,
    one_line_many_times,
    wrong_side,
)
from support.oracles.rational_polygons import (
    area,
    box,
    brute_force_patterns,
    clip,
    compound,
    evaluate,
    forward,
    gradient,
    l1_robust_area,
    l2_robust_area,
    l2_sum_robust_area,
    label_areas,
    map_changes,
    roots_at_most,
    split_regions,
    strict_areas,
)

ZERO, ONE = Fraction(0), Fraction(1)


def by_name(question):
    return question.name.replace(" ", "_")


def domain_area(low, high):
    return area(box(low, high))


def centre(polygon):
    return tuple(sum(column) / len(polygon) for column in zip(*polygon, strict=True))


@pytest.mark.parametrize("tiny", NETWORKS, ids=by_name)
def test_hand_solved_networks(tiny: Tiny):
    regions = split_regions(tiny.layers, tiny.low, tiny.high)
    assert {region.pattern: region.area for region in regions} == tiny.areas
    assert len(regions) == len(tiny.areas)
    assert strict_areas(regions) == tiny.strict
    assert sum(tiny.areas.values()) == domain_area(tiny.low, tiny.high)


@pytest.mark.parametrize("tiny", NETWORKS, ids=by_name)
def test_label_areas_of_hand_solved_networks(tiny: Tiny):
    kept, lost, tied = label_areas(split_regions(tiny.layers, tiny.low, tiny.high), tiny.label)
    logits = forward(tiny.layers, [ZERO] * len(tiny.low))[1]
    assert tiny.label == logits.index(max(logits))
    assert kept == tiny.strict[tiny.label]
    assert kept + lost + tied == domain_area(tiny.low, tiny.high)
    if tiny.name == "tied":
        assert (lost, tied) == (0, 1)


@pytest.mark.parametrize("tiny", [t for t in NETWORKS if t.name != "coincident grid"], ids=by_name)
def test_brute_force_on_hand_solved_networks(tiny: Tiny):
    found = brute_force_patterns(tiny.layers, tiny.low, tiny.high)
    assert {pattern: area(polygon) for pattern, polygon in found.items()} == tiny.areas


@pytest.mark.parametrize("tiny", NETWORKS, ids=by_name)
def test_floats_are_exact(tiny: Tiny):
    for (matrix, bias), (rows, constants) in zip(tiny.floats, tiny.layers, strict=True):
        assert [[Fraction(w) for w in row] for row in matrix.tolist()] == [list(row) for row in rows]
        assert [Fraction(b) for b in bias.tolist()] == list(constants)


@pytest.mark.parametrize("tiny", IMAGES, ids=by_name)
def test_hand_solved_images(tiny: TinyImage):
    regions = split_regions(compound(tiny.offset, tiny.slope, tiny.chain), tiny.low, tiny.high)
    assert len(regions) == tiny.regions
    assert strict_areas(regions) == tiny.strict
    assert forward(tiny.chain, tiny.offset)[1].index(max(forward(tiny.chain, tiny.offset)[1])) == tiny.label
    changes = map_changes(regions, tiny.chain, tiny.offset)
    tiny_bit = Fraction(1, 10**9)
    reached = ZERO
    for square, share in tiny.steps:
        reached += share
        # From the step on all of it counts, just below nothing of it does.
        assert l2_robust_area(regions, changes, delta_squared=square, watched=tiny.watched) == reached
        below = l2_robust_area(regions, changes, delta_squared=square - tiny_bit, watched=tiny.watched)
        assert below == reached - share
    reached = ZERO
    classes = range(len(tiny.strict))
    for distance, share in tiny.l1:
        reached += share
        assert l1_robust_area(regions, changes, delta=distance, classes=classes) == reached
        assert l1_robust_area(regions, changes, delta=distance - tiny_bit, classes=classes) == reached - share


def test_distances_of_several_classes_add_up():
    """Brighter and patched: class 0 always √2 from its kept map, class 1 another 1 on half of the domain."""
    tiny = brighter_and_patched()
    regions = split_regions(compound(tiny.offset, tiny.slope, tiny.chain), tiny.low, tiny.high)
    changes = map_changes(regions, tiny.chain, tiny.offset)
    for delta, expected in ((Fraction(7, 5), ZERO), (Fraction(3, 2), Fraction(1, 2)), (Fraction(5, 2), ONE)):
        assert l2_sum_robust_area(regions, changes, delta=delta, classes=[0, 1, 2]) == expected


small = st.integers(-2, 2)
halves = st.integers(-4, 4).map(lambda n: Fraction(n, 2))


@st.composite
def networks(draw, dimension: int, most: int):
    """Small integers make coincident and parallel lines, dead neurons and lines through corners common."""
    widths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(lambda w: sum(w) <= most))
    layers, inputs = [], dimension
    for width in [*widths, 2]:
        rows = draw(st.lists(st.lists(small, min_size=inputs, max_size=inputs), min_size=width, max_size=width))
        bias = draw(st.lists(halves, min_size=width, max_size=width))
        if width > 1 and draw(st.booleans()):
            scale = draw(st.sampled_from([1, 2, -1]))  # the same line once more, perhaps the other way round
            rows[1], bias[1] = [scale * weight for weight in rows[0]], scale * bias[0]
        layers.append(layer(rows, bias))
        inputs = width
    low = tuple(draw(halves) for _ in range(dimension))
    high = tuple(edge + draw(st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(3)])) for edge in low)
    return tuple(layers), low, high


def check_agreement(layers, low, high):
    regions = split_regions(layers, low, high)
    brute = brute_force_patterns(layers, low, high)
    assert {r.pattern: set(r.polygon) for r in regions} == {p: set(polygon) for p, polygon in brute.items()}
    assert all(region.area == area(brute[region.pattern]) > 0 for region in regions)
    assert len(regions) == len(brute)
    assert sum(region.area for region in regions) == domain_area(low, high)
    for region in regions:
        inside = centre(region.polygon)
        pattern, logits = forward(layers, inside)
        assert pattern == region.pattern
        assert logits == tuple(evaluate(form, inside) for form in region.logits)
    for label in range(2):
        kept, lost, tied = label_areas(regions, label)
        strict = strict_areas(regions)
        assert (kept, lost) == (strict[label], strict[1 - label])
        assert kept + lost + tied == domain_area(low, high)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(networks(dimension=1, most=7))
def test_two_oracles_agree_on_a_line(network):
    check_agreement(*network)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(networks(dimension=2, most=7))
def test_two_oracles_agree_in_the_plane(network):
    check_agreement(*network)


def test_two_oracles_agree_on_ten_neurons():
    rows = [[1, 0], [2, 0], [0, 1], [1, 1], [1, -1]]
    deep = [[1, -1, 0, 1, 0], [0, 1, -2, 0, 1], [-1, 0, 1, 1, -1], [-1, -1, -1, -1, -1], [1, -1, 0, 1, 0]]
    last = layer([[1, -1, 1, 0, 2], [0, 1, 1, 1, -1]], [0, Fraction(1, 2)])
    bias = [-1, -2, -1, -2, 0]
    layers = (layer(rows, bias), layer(deep, [Fraction(-1, 2), 1, 0, 0, Fraction(-1, 2)]), last)
    check_agreement(layers, (ZERO, ZERO), (Fraction(2), Fraction(2)))


def test_brute_force_refuses_what_it_cannot_finish():
    tiny = one_line_many_times(11)
    with pytest.raises(ValueError, match="at most 10"):
        brute_force_patterns(tiny.layers, tiny.low, tiny.high)


def test_gradient_is_the_slope_of_the_logits():
    tiny = wrong_side()  # the pixels are theta itself, so the gradient is the linear part of the logits
    for region in split_regions(tiny.layers, tiny.low, tiny.high):
        assert gradient(tiny.layers, region.pattern) == tuple(form[:-1] for form in region.logits)


def test_clip_keeps_the_original_pixels_in_the_unit_interval():
    chain = (layer([[1, 0], [0, 1]], [0, 0]), layer([[1, 0], [0, 1]], [0, 0]))
    layers = compound((Fraction(1, 4), Fraction(3, 4)), ((ONE, -ONE),), chain)
    for theta in (Fraction(-3, 2), Fraction(-1, 8), ZERO, Fraction(1, 8), Fraction(3, 2)):
        clipped = tuple(min(max(pixel, ZERO), ONE) for pixel in (Fraction(1, 4) + theta, Fraction(3, 4) - theta))
        assert forward(layers, (theta,))[1] == clipped


def test_moving_map_in_l1():
    """One region [0,1] × [0,1], change (1, −1/2), step (2, 1): |1−2t| + |−1/2−t| ≤ 1 for 1/2 ≥ t ≥ 1/2, i.e. a line.

    For t < 1/2 the sum is 3/2−t, above it 3t−1/2: at most 5/4 on 1/4 ≤ t ≤ 7/12.
    """
    regions = split_regions((layer([[0, 0]], [1]), layer([[1]], [0])), (ZERO, ZERO), (ONE, ONE))
    changes, step = [[[ONE, Fraction(-1, 2)]]], [[Fraction(2), ONE]]
    for delta, expected in ((ONE, ZERO), (Fraction(5, 4), Fraction(1, 3)), (Fraction(5, 2), ONE)):
        assert l1_robust_area(regions, changes, delta=delta, classes=[0], step=step, axis=1) == expected


def test_roots_are_compared_exactly():
    assert roots_at_most([Fraction(4, 9), ZERO], Fraction(2, 3))
    assert not roots_at_most([Fraction(4, 9)], Fraction(2, 3) - Fraction(1, 10**40))
    assert not roots_at_most([Fraction(2)], Fraction(14142135623730950488, 10**19))
    assert roots_at_most([Fraction(2)], Fraction(14142135623730950489, 10**19))


def test_clip_of_a_touching_line_leaves_no_area():
    square = box((ZERO, ZERO), (ONE, ONE))
    assert area(clip(square, (-ONE, -ONE, ZERO))) == 0
    assert clip(square, (ONE, ONE, ZERO)) == square
    assert clip(square, (ONE, ONE, -ONE)) == ((ONE, ZERO), (ONE, ONE), (ZERO, ONE))


def test_planted_bugs_are_noticed():
    tiny = wrong_side()
    regions = split_regions(tiny.layers, tiny.low, tiny.high)
    dropped = regions[1:]
    assert sum(region.area for region in dropped) != domain_area(tiny.low, tiny.high)
    (rows, bias), *rest = tiny.layers
    turned = ((tuple(tuple(-w for w in row) for row in rows), bias), *rest)
    assert {r.pattern for r in split_regions(turned, tiny.low, tiny.high)} != {r.pattern for r in regions}
