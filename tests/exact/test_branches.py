"""Graphs with branches, carried values and windows in exact arithmetic, against plain fractions."""

from fractions import Fraction

import numpy as np
import pytest

from steadygaze.compound import Compound
from steadygaze.exact import ExactLabels, LabelOutcome
from steadygaze.network.graph import lower
from steadygaze.network.joins import Concat, Sum, Winner
from steadygaze.network.operators import MatMul, Mean, Relu, Reshape
from steadygaze.perturbation import compose, parse_spec
from support.networks.branching import Builder, dense, random_graph
from support.networks.layered_networks import batch_norm
from support.oracles import exact_intervals, exact_margin

LIMITS = {"limit_seconds": 60, "max_parts": 10**6}
ONE = ("brightness:-0.75..0.5", "translate:dx=1:-1..1", "patch:x=0,y=0,w=2,h=1", "darkness:-0.5..0.5")
TWO = ("brightness:-0.5..0.5", "patch:x=0,y=0,w=1,h=2:-0.5..0.5")


def compound_of(graph, specs, seed=0):
    image = np.random.default_rng([7, seed]).choice([0.0, 0.0, 51.0, 102.0, 255.0], size=graph.input_shape) / 255
    return Compound(graph, lower(graph), compose([parse_spec(spec) for spec in specs], image))


@pytest.mark.parametrize("seed", range(30))
def test_patterns_outcomes_and_shares_on_an_interval(seed):
    compound = compound_of(random_graph(seed), [ONE[seed % 4]], seed)
    for low, high in ((0, 8), (1, 4)):
        truth = exact_intervals.pieces(compound, Fraction(low, 8), Fraction(high, 8))
        vertices = np.array([[low / 8, 0.0], [high / 8, 0.0]])
        assert ExactLabels(compound, 0).patterns(vertices, **LIMITS) == exact_intervals.patterns(truth)
        for label in range(2):
            found = ExactLabels(compound, label).settle(vertices, 0.0, with_shares=True, **LIMITS)
            expected, kept, lost = exact_intervals.outcome(truth, label)
            assert found.outcome is expected
            assert Fraction(found.shares.kept[0]) <= kept <= Fraction(found.shares.kept[1])
            assert Fraction(found.shares.lost[0]) <= lost <= Fraction(found.shares.lost[1])
            assert found.outcome not in (LabelOutcome.LOST, LabelOutcome.MIXED) or found.witness is not None
            if found.witness is not None:
                assert exact_margin.margin(compound, label, found.witness) < 0


@pytest.mark.parametrize("seed", range(30, 50))
def test_random_thetas_agree_on_a_square(seed):
    compound = compound_of(random_graph(seed), TWO, seed)
    labels, rng = ExactLabels(compound, 0), np.random.default_rng(seed)
    square = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    found = labels.patterns(square, **LIMITS)
    assert sum(found.values()) == 1
    settled = labels.settle(square, 0.0, **LIMITS)
    signs = set()
    for theta in compound.to_theta(rng.random((40, 2))):
        truth = exact_margin.margin(compound, 0, theta)
        assert labels.margin_at(theta) == (truth, truth)
        assert exact_intervals.pattern_at(compound, theta) in found
        signs.add((truth > 0) - (truth < 0))
    allowed = {
        LabelOutcome.KEPT: {1},
        LabelOutcome.LOST: {-1},
        LabelOutcome.MIXED: {-1, 0, 1},
        LabelOutcome.TIED: {-1, 0, 1},
    }
    assert signs <= allowed[settled.outcome]


@pytest.mark.parametrize("seed", range(20))
def test_the_pattern_at_the_unperturbed_image(seed):
    compound = compound_of(random_graph(seed), ["brightness:-0.5..0.5"], seed)
    found = ExactLabels(compound, 0).pattern_at_original()
    packed = b"".join(np.packbits(layer).tobytes() for layer in found)
    assert packed == exact_intervals.pattern_at(compound, [0])


def pooled(operators, weight):
    """2×2 pixels, some operators, the largest of all entries, and two logits."""
    builder = Builder((1, 2, 2))
    value = builder.add(Reshape((1, 1, 2, 2)), 0)
    for operator in operators:
        value = builder.add(operator, value)
    size = int(np.prod(builder.shape(value)))
    value = builder.add(Winner(np.arange(size)[None], (1, 1)), value)
    builder.add(MatMul(np.array([weight]), np.zeros(2)), value)
    return builder.graph()


def test_identical_entries_tie_and_the_first_wins():
    graph = pooled([], [1.0, -1.0])
    image = np.full((1, 2, 2), 102 / 255)
    compound = Compound(graph, lower(graph), compose([parse_spec("brightness:0..0.5")], image))
    found = ExactLabels(compound, 0).patterns(np.array([[0.0, 0.0], [1.0, 0.0]]), **LIMITS)
    assert found == {bytes([0b10000000]): 1}


def test_the_winner_changes_where_two_entries_meet():
    """The pixel in the corner is 0.2 below the others and brightens: it wins from t = 0.4 of 0.5 on."""
    graph = pooled([], [1.0, -1.0])
    image = np.array([[[51.0, 51.0], [51.0, 0.0]]]) / 255
    compound = Compound(graph, lower(graph), compose([parse_spec("patch:x=1,y=1,w=1,h=1:0..0.5")], image))
    found = ExactLabels(compound, 0).patterns(np.array([[0.0, 0.0], [1.0, 0.0]]), **LIMITS)
    assert found == {bytes([0b10000000]): Fraction(2, 5), bytes([0b00010000]): Fraction(3, 5)}


def test_losers_that_change_places_cut_nothing():
    """Pixels 1 and 2 cross below pixel 0."""
    graph = pooled([], [1.0, -1.0])
    image = np.array([[[255.0, 0.0], [51.0, 0.0]]]) / 255
    compound = Compound(graph, lower(graph), compose([parse_spec("patch:x=1,y=0,w=1,h=1:0..0.5")], image))
    found = ExactLabels(compound, 0).patterns(np.array([[0.0, 0.0], [1.0, 0.0]]), **LIMITS)
    assert found == {bytes([0b10000000]): 1}


def test_windows_behind_irrational_roots_are_enclosed():
    """Behind √2, a window's value is enclosed; the sign of a margin far from zero is still proved."""
    root = batch_norm([0.25], [1.0], [2.0], [0.5])
    graph = pooled([root, Relu()], [1.0, -1.0])
    image = np.array([[[51.0, 0.0], [102.0, 0.0]]]) / 255
    compound = Compound(graph, lower(graph), compose([parse_spec("brightness:0..0.5")], image))
    labels, ends = ExactLabels(compound, 0), np.array([[0.0, 0.0], [1.0, 0.0]])
    for theta in (0.0, 0.3, 0.5):
        low, high = labels.margin_at(np.array([theta]))
        truth = exact_margin.margin(compound, 0, np.array([theta]))
        assert low - Fraction(1, 10**70) <= truth <= high + Fraction(1, 10**70)
        assert 0 < high - low < Fraction(1, 2**200)
    assert labels.settle(ends, 0.0, **LIMITS).outcome is LabelOutcome.KEPT
    assert labels.patterns(ends, **LIMITS) is None
    assert labels.pattern_at_original()[1].tolist() == [False, False, True, False]


def test_dead_entries_tie_exactly_behind_a_root():
    graph = pooled([batch_norm([2.0], [1.0], [2.0], [0.0]), Relu()], [1.0, -1.0])
    image = np.array([[[51.0, 0.0], [102.0, 0.0]]]) / 255
    compound = Compound(graph, lower(graph), compose([parse_spec("brightness:0..0.5")], image))
    assert ExactLabels(compound, 0).pattern_at_original()[1].tolist() == [True, False, False, False]


def test_values_with_different_denominators_meet():
    """A mean of three pixels and the pixels themselves are added, joined and compared without rounding."""
    rng, builder = np.random.default_rng(3), Builder((1, 3, 1))
    row = builder.add(Reshape((1, 3)), 0)
    third = builder.add(Mean((1,)), row)
    both = builder.add(Concat(1), builder.add(Sum((1, -1)), row, third), row)
    builder.add(Winner(np.array([[0, 3, 5], [1, 4, -1]]), (1, 2)), both)
    dense(rng, builder, len(builder.nodes), 2)
    compound = compound_of(builder.graph(), ["brightness:-0.5..0.5"], 2)
    theta = np.array([0.2])
    truth = exact_margin.margin(compound, 0, theta)
    assert ExactLabels(compound, 0).margin_at(theta) == (truth, truth)
