"""The share of the domain that depends on the rule for ties: random graphs by brute force, small networks by hand."""

from fractions import Fraction

import numpy as np
import pytest

from steadygaze.attention.options import AttentionOptions
from steadygaze.compound import Compound
from steadygaze.exact import ExactLabels
from steadygaze.network.graph import lower
from steadygaze.network.joins import Concat, Sum, Winner
from steadygaze.network.layers import RELU
from steadygaze.network.operators import MatMul, Relu, Reshape
from steadygaze.network.windows import Conv, Window
from steadygaze.perturbation import compose, parse_spec
from steadygaze.properties import ties
from steadygaze.properties.pattern_points import PatternPoints
from steadygaze.properties.tie_moves import TieMove
from steadygaze.regions.patterns import unpack
from support.networks.branching import Builder, random_graph
from support.networks.layered_networks import batch_norm
from support.oracles.exact_intervals import Piece, pattern_at, pieces, theta_of
from support.oracles.exact_ties import regions_of, true_share

NOTHING = np.zeros(0, dtype=np.int64)
POINTS = Window((1, 1), (1, 1), (1, 1), (0, 0), (0, 0))


def compound_of(graph, image, spec="brightness:0..0.5"):
    return Compound(graph, lower(graph), compose([parse_spec(spec)], np.asarray(image, dtype=float)))


def tie_share(compound, regions, options, uncertain, *, missing=0.0, slack=0.0):
    return ties.tie_volumes(compound, regions, options, uncertain).bounds(missing=missing, slack=slack)


def check(compound, classes=None):
    """Compare every interval with brute force; return the share as proved, and the true one."""
    options = AttentionOptions(classes=classes)
    found, flags, share = true_share(compound, options.targets(compound.graph.classes))
    regions = regions_of(compound, found)
    for group, matters in ties.depending(compound, regions, options, np.arange(len(found))):
        assert all(matters in (None, flags[region]) for region in group)
    low, high = tie_share(compound, regions, options, NOTHING)
    assert low <= float(share) * (1 + 1e-12) and float(share) <= high * (1 + 1e-12)
    return (low, high), float(share)


SPECS = ("brightness:-0.75..0.5", "translate:dx=1:-1..1", "patch:x=0,y=0,w=2,h=1", "darkness:-0.5..0.5")


@pytest.mark.parametrize("seed", range(8))
def test_random_graphs(seed):
    graph = random_graph(seed, width=4)
    image = np.random.default_rng([5, seed]).choice([0.0, 0.0, 51.0, 51.0, 255.0], size=graph.input_shape) / 255
    check(compound_of(graph, image, SPECS[seed % 4]))


def tied_problem(seed):
    """Copies of few pixels with few weights, maxima of maxima, and logits that read some of them: full of ties."""
    rng = np.random.default_rng([11, seed])
    builder = Builder((1, 2, 3))
    value = builder.add(Reshape((1, 6)), 0)
    for width in (6, 4):
        size = builder.shape(value)[1]
        weight = np.zeros((size, width))
        weight[rng.integers(size, size=width), np.arange(width)] = rng.choice([1.0, 1.0, 1.0, 0.5, -1.0], size=width)
        linear = builder.add(MatMul(weight, rng.choice([0.0, 0.0, 0.0, -0.25], size=width)), value)
        inner = builder.add(Relu(), linear) if rng.random() < 0.8 else linear
        index = np.stack([rng.permutation(width)[:2] for _ in range(3)])
        value = builder.add(Winner(index, (1, 3)), inner)
    builder.add(MatMul(rng.choice([0.0, 0.0, 1.0, -1.0], size=(3, 2)), np.zeros(2)), value)
    image = rng.choice([0.0, 51.0, 51.0, 153.0], size=(1, 2, 3)) / 255
    return compound_of(builder.graph(), image, SPECS[seed % 4])


def test_networks_full_of_ties():
    """Most intervals are decided, and ties that matter, ties that do not and none at all occur."""
    tight, shares = 0, []
    for seed in range(48):
        (low, high), share = check(tied_problem(seed))
        tight += high - low < 1e-9
        shares.append(share)
    assert sum(0.0 < share < 1.0 for share in shares) >= 5
    assert sum(share == 0.0 for share in shares) >= 10
    assert tight >= 46


def pooled(operators, index, weights, shape=(1, 2, 2)):
    """Pixels as (1, C, H, W), operators, maxima over windows, and logits."""
    builder = Builder(shape)
    value = builder.add(Reshape((1, *shape)), 0)
    for operator in operators:
        value = builder.add(operator, value)
    value = builder.add(Winner(np.array(index), (1, len(index))), value)
    builder.add(MatMul(np.array(weights, dtype=float), np.zeros(np.shape(weights)[1])), value)
    return builder.graph()


def channels(*weights):
    """One filter of 1×1 for each number."""
    return Conv(np.array(weights, dtype=float).reshape(-1, 1, 1, 1), np.zeros(len(weights)), POINTS)


GREY = np.full((1, 2, 2), 51 / 255)
EVERYTHING, NONE = (1.0, 1.0), (0.0, 0.0)


def test_equal_channels_have_the_same_gradient():
    """max(c1, c2) of two equal channels at the same place: the same gradient, whichever wins."""
    graph = pooled([channels(1.0, 1.0), Relu()], [[0, 4], [1, 5], [2, 6], [3, 7]], [[1, -1]] * 4)
    assert check(compound_of(graph, GREY)) == (NONE, 0.0)


def test_a_constant_background_depends_on_the_rule_everywhere():
    """The largest of four equal pixels: the gradient lies on the first of them."""
    graph = pooled([Relu()], [[0, 1, 2, 3]], [[1, -1]])
    assert check(compound_of(graph, GREY)) == (EVERYTHING, 1.0)


def test_dead_entries_do_not_matter():
    """Four negative channels: whichever zero wins, no gradient passes."""
    graph = pooled([channels(-1.0), Relu()], [[0, 1, 2, 3]], [[1, -1]])
    assert check(compound_of(graph, GREY)) == (NONE, 0.0)


def test_dead_and_living_entries_share_a_window():
    """Darkness 0 … 0.4 turns the right pixels (0.2) black in the middle, the left ones (0.4) at the end."""
    image = np.array([[[102.0, 51.0], [102.0, 51.0]]]) / 255
    graph = pooled([Relu()], [[0, 2], [1, 3]], [[1, -1], [2, 0]])
    compound = compound_of(graph, image, "darkness:0..0.4")
    # The upper and the lower pixel of a column always tie; that stops to matter when both are black.
    (low, high), share = check(compound)
    assert low == high == pytest.approx(share) == 1.0
    alone = pooled([Relu()], [[1, 3]], [[1, -1]])
    (low, high), share = check(compound_of(alone, image, "darkness:0..0.4"))
    assert low == high == pytest.approx(share) == pytest.approx(0.5)


def test_no_gradient_arrives():
    """The window's logit does not count, or its weight is zero."""
    graph = pooled([Relu()], [[0, 1, 2, 3], [0, -1, -1, -1]], [[1, 0], [0, 1]])
    assert check(compound_of(graph, GREY))[1] == 1.0
    assert check(compound_of(graph, GREY), classes=(1,)) == (NONE, 0.0)


def test_a_saturated_image_ties_where_it_is_white():
    """Pixels 0.6 and 0.8 both become 1 from brightness 0.4 on: in the second half of 0 … 0.8."""
    image = np.array([[[153.0, 204.0]]]) / 255
    graph = pooled([Relu()], [[0, 1]], [[1, -1]], (1, 1, 2))
    (low, high), share = check(compound_of(graph, image, "brightness:0..0.8"))
    assert low == high == pytest.approx(share) == pytest.approx(0.5)


def test_ties_behind_an_irrational_root_are_equal_by_construction():
    norm = batch_norm([0.1, 0.2], [1.0, 1.5], [2.0, 3.0], [0.0, 0.25], 1e-5)
    graph = pooled([channels(1.0, 0.5), norm, Relu()], [[0, 1, 2, 3], [4, 5, 6, 7]], [[1, -1], [0, 2]])
    regions = regions_of(*_one_piece(compound := compound_of(graph, GREY, "brightness:0..0.1")))
    assert tie_share(compound, regions, AttentionOptions(), NOTHING) == pytest.approx((1.0, 1.0))


def _one_piece(compound):
    """The whole domain as one interval, with the pattern in its middle."""
    pattern = pattern_at(compound, theta_of(compound, Fraction(1, 2)))
    return compound, [Piece(Fraction(0), Fraction(1), pattern, ([], []))]


def test_values_that_happen_to_be_equal_stay_open():
    """1.5 x and x + 0.5 x are equal, but not by construction: the rule may matter, and that is all that is said."""
    builder = Builder((1, 1, 2))
    row = builder.add(Reshape((1, 2)), 0)
    one = builder.add(MatMul(np.array([[1.5], [0.0]]), np.zeros(1)), row)
    two = builder.add(MatMul(np.array([[0.0], [1.5]]), np.zeros(1)), row)
    three = builder.add(Sum((1, 1)), builder.add(MatMul(np.array([[0.0], [0.5]]), np.zeros(1)), row), two)
    four = builder.add(Sum((1, -1)), three, builder.add(MatMul(np.array([[0.0], [0.5]]), np.zeros(1)), row))
    joined = builder.add(Concat(1), one, four)
    builder.add(MatMul(np.array([[1.0, -1.0]]), np.zeros(2)), builder.add(Winner(np.array([[0, 1]]), (1, 1)), joined))
    (low, high), share = check(compound_of(builder.graph(), np.full((1, 1, 2), 51 / 255)))
    assert share == 1.0 and (low, high) == (0.0, 1.0)


def test_ties_of_ties():
    """Two levels of windows: the upper one chooses between equal lower ones; moving either changes nothing alone.

    Lower windows A = max(x0, x1) and B = max(x0, x2), upper max(A, B), all pixels equal: the first winners of A and B
    lead to x0, their second entries to x1 and x2.
    """
    builder = Builder((1, 1, 3))
    row = builder.add(Reshape((1, 3)), 0)
    lower_windows = builder.add(Winner(np.array([[0, 1], [0, 2]]), (1, 2)), row)
    upper = builder.add(Winner(np.array([[0, 1]]), (1, 1)), lower_windows)
    builder.add(MatMul(np.array([[1.0, -1.0]]), np.zeros(2)), upper)
    assert check(compound_of(builder.graph(), np.full((1, 1, 3), 51 / 255))) == (EVERYTHING, 1.0)


def test_uncertain_regions_missing_parts_and_kinks_widen_the_share():
    graph = pooled([Relu()], [[0, 1, 2, 3]], [[1, -1]])
    compound = compound_of(graph, GREY)
    regions = regions_of(*_one_piece(compound))
    options = AttentionOptions()
    assert tie_share(compound, regions, options, np.array([0])) == (0.0, 1.0)
    assert tie_share(compound, regions, options, NOTHING, slack=0.25) == (0.75, 1.0)
    dead = pooled([channels(-1.0), Relu()], [[0, 1, 2, 3]], [[1, -1]])
    compound = compound_of(dead, GREY)
    regions = regions_of(*_one_piece(compound))
    assert tie_share(compound, regions, options, NOTHING, missing=0.125, slack=0.0625) == (0.0, 0.1875)


def test_work_is_limited(monkeypatch):
    monkeypatch.setattr(ties, "MOST_WORK", 0)
    compound = compound_of(pooled([Relu()], [[0, 1, 2, 3]], [[1, -1]]), GREY)
    assert tie_share(compound, regions_of(*_one_piece(compound)), AttentionOptions(), NOTHING) == (0.0, 1.0)


def test_what_is_exactly_known_is_sure_and_nothing_else():
    """Every pattern is sure, up to values that only happen to be equal; no other winner or sign is."""
    sure = count = 0
    for seed in range(4):
        compound = tied_problem(seed)
        found = pieces(compound, Fraction(0), Fraction(1))
        regions, points = regions_of(compound, found), PatternPoints(compound)
        for region, piece in enumerate(found):
            sure += points.is_sure(regions, region)
            count += 1
            packed = regions.patterns[region].copy()
            for number, layer in enumerate(compound.graph.layers):
                for neuron in range(len(layer)):
                    bits = unpack(packed[None], compound.graph.hidden)
                    _move(layer, bits[number][0], neuron)
                    regions.patterns[region] = np.concatenate([np.packbits(own[0]) for own in bits])
                    is_other = bytes(regions.patterns[region]) != piece.pattern
                    assert not (is_other and points.is_sure(regions, region))
            regions.patterns[region] = packed
    assert sure > 0.9 * count


def _move(layer, bits, neuron):
    """Turn a ReLU, or let an entry win."""
    if layer.kind[neuron] == RELU:
        bits[neuron] ^= True
    else:
        bits[slice(*(ends[neuron] for ends in layer.ends))] = False
        bits[neuron] = True


@pytest.mark.parametrize("seed", range(20))
def test_the_pattern_at_the_unperturbed_image(seed):
    compound = tied_problem(seed)
    found = PatternPoints(compound).at_original()
    if found is not None:
        assert b"".join(np.packbits(layer).tobytes() for layer in found) == pattern_at(compound, [0])
    exact = ExactLabels(compound, 0).pattern_at_original()
    assert b"".join(np.packbits(layer).tobytes() for layer in exact) == pattern_at(compound, [0])


def test_the_pattern_at_single_thetas():
    """Dyadic thetas, where exact pixels tie in many ways: every claimed pattern is the exact one."""
    told = 0
    for seed in range(20):
        compound = tied_problem(seed)
        low, high = (float(end[0]) for end in (compound.domain.low, compound.domain.high))
        points = PatternPoints(compound)
        for theta in [low, high, *(low + (high - low) * np.array([0.125, 0.5, 0.71875]))]:
            found = points.at(np.array([theta]))
            if found is not None:
                told += 1
                packed = b"".join(np.packbits(layer).tobytes() for layer in found)
                assert packed == pattern_at(compound, [Fraction(theta)])
    assert told > 80


def test_the_pattern_at_an_image_with_a_flat_background_behind_a_root():
    """Exact arithmetic only encloses a root; entries that are equal by construction are known all the same."""
    norm = batch_norm([0.1, 0.2], [1.0, 1.5], [2.0, 3.0], [0.0, 0.25], 1e-5)
    graph = pooled([channels(1.0, 0.5), norm, Relu()], [[0, 1, 2, 3], [4, 5, 6, 7]], [[1, -1], [0, 2]])
    compound = compound_of(graph, GREY)
    assert ExactLabels(compound, 0).pattern_at_original() is None
    found = PatternPoints(compound).at_original()
    assert found is not None and found[1].tolist() == [True, False, False, False] * 2


def test_moves_apply_only_where_entries_have_the_same_number():
    """All pairs of entries of all windows, on all intervals of networks full of ties, against numbers of all values."""
    applied, equal = 0, 0
    for seed in range(24):
        compound = tied_problem(seed)
        found, _, _ = true_share(compound, AttentionOptions().targets(compound.graph.classes))
        regions = regions_of(compound, found)
        points, hidden = PatternPoints(compound), compound.hidden
        bits = unpack(regions.patterns[regions.pattern], hidden)
        states = np.stack(
            [
                points.states(int(cell), regions.clips[clip])
                for cell, clip in zip(regions.cell, regions.clip, strict=True)
            ]
        )
        for layer, own in enumerate(compound.graph.layers):
            pairs = [(i, k) for i in own.entries for k in own.entries if i != k and own.window[i] == own.window[k]]
            for winner, entry in pairs:
                move = TieMove.between(points.numbered, layer, int(winner), int(entry))
                if move is None:
                    continue
                applies = move.applies(bits, points.same_pixels(move.pixels, regions.cell, states))
                for region in range(len(regions)):
                    pattern = [part[region] for part in bits]
                    numbers = points.value_numbers(pattern, int(regions.cell[region]), states[region])[layer]
                    is_equal = bool(pattern[layer][winner]) and numbers[winner] == numbers[entry]
                    assert is_equal or not applies[region]
                    applied, equal = applied + bool(applies[region]), equal + is_equal
    assert applied > 0.5 * equal > 0


def test_a_move_of_one_region_is_tried_on_the_others(monkeypatch):
    """Without moves that are kept, more regions are numbered."""
    numbered, original = [], PatternPoints.value_numbers
    monkeypatch.setattr(PatternPoints, "value_numbers", lambda *given: (numbered.append(1), original(*given))[1])
    counts = []
    for most in (ties.MOVES, 0):
        monkeypatch.setattr(ties, "MOVES", most)
        numbered.clear()
        for seed in range(24):
            check(tied_problem(seed))
        counts.append(len(numbered))
    assert counts[0] < counts[1]
