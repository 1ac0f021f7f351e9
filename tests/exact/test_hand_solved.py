"""Small networks whose margins are written out by hand: every outcome, ties, coincident lines, cancelling weights."""

from fractions import Fraction

import numpy as np
import pytest

from steadygaze.compound import Compound
from steadygaze.errors import OptionError
from steadygaze.exact import ExactLabels, LabelOutcome
from steadygaze.perturbation import Brightness, Patch, compose
from steadygaze.question import make_question
from support.networks.layered_models import make_model
from support.networks.search_problems import free_pixels

SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def on_cube(layers) -> Compound:
    """A network of t itself: black pixels, each with a patch of its own over 0..1."""
    arrays = [(np.array(w, dtype=float), np.array(b, dtype=float)) for w, b in layers]
    model, image, specs = free_pixels(arrays, in_middle=False)
    return make_question(model, image, list(specs)).compound


def settle(compound: Compound, vertices, inflation=0.0, label=0, **options):
    return ExactLabels(compound, label).settle(np.array(vertices), inflation, limit_seconds=20, **options)


def slope(threshold: float) -> Compound:
    """Logits (threshold, t_1): the margin is threshold − t_1."""
    return on_cube([([[1, 0]], [0]), ([[0], [1]], [threshold, 0])])


@pytest.mark.parametrize(
    ("threshold", "outcome", "signs"),
    [
        (1.5, LabelOutcome.KEPT, (True, False)),
        (1.0, LabelOutcome.TIED, (True, False)),
        (0.5, LabelOutcome.MIXED, (True, True)),
        (0.0, LabelOutcome.TIED, (False, True)),
        (-0.5, LabelOutcome.LOST, (False, True)),
    ],
)
def test_every_outcome(threshold, outcome, signs):
    settlement = settle(slope(threshold), SQUARE, with_shares=True)
    assert settlement.outcome is outcome
    assert (settlement.has_kept, settlement.has_lost) == signs
    assert settlement.shares.kept == (min(max(threshold, 0), 1),) * 2
    assert settlement.shares.lost == (1 - min(max(threshold, 0), 1),) * 2
    assert (settlement.witness is not None) == settlement.has_lost
    if settlement.has_lost:
        assert settlement.witness[0] > threshold


def test_inflation_counts():
    triangle = [[0.0, 0.0], [0.5, 0.0], [0.0, 0.5]]
    assert settle(slope(0.625), triangle).outcome is LabelOutcome.KEPT
    assert settle(slope(0.625), triangle, 0.125).outcome is LabelOutcome.TIED
    settlement = settle(slope(0.625), triangle, 0.25, with_shares=True)
    assert settlement.outcome is LabelOutcome.MIXED
    assert settlement.shares.kept == (0.125, 0.125) and settlement.shares.lost == (0.0, 0.0)
    assert 0.625 < settlement.witness[0] <= 0.75


def test_vertices_just_outside_of_the_unit_cube():
    beyond = [[1.0 + 2.0**-40, 0.0], [1.0 + 2.0**-39, 0.5], [1.0 + 2.0**-40, 1.0]]
    settlement = settle(slope(0.5), beyond, 2.0**-30, with_shares=True)
    assert settlement.outcome is LabelOutcome.LOST
    assert settlement.shares == ((0.0, 0.0), (0.0, 0.0))
    assert 0.5 < settlement.witness[0] <= 1.0


def test_a_tie_with_volume():
    """Logits (ReLU(t1), ReLU(2 t1)/2, −1): tied everywhere."""
    compound = on_cube([([[1, 0], [2, 0]], [0, 0]), ([[1, 0], [0, 0.5], [0, 0]], [0, 0, -1])])
    settlement = settle(compound, SQUARE, with_shares=True)
    assert settlement.outcome is LabelOutcome.TIED
    assert (settlement.has_kept, settlement.has_lost) == (False, False)
    assert settlement.shares.kept == settlement.shares.lost == (0.0, 0.0)


def test_lost_to_two_rivals():
    """Logits (0, t1 − t2 + 1/8, t2 − t1 + 1/8): the label loses everywhere, to neither rival everywhere."""
    compound = on_cube([([[1, 0], [0, 1]], [0, 0]), ([[0, 0], [1, -1], [-1, 1]], [0, 0.125, 0.125])])
    assert settle(compound, SQUARE).outcome is LabelOutcome.LOST


def test_kept_inside_although_every_corner_is_tied():
    """Logits (1, 1 − t1, 1 − t2, t1 + t2) on the triangle t1, t2 ≥ 0, t1 + t2 ≤ 1: a tie on each side."""
    compound = on_cube([([[1, 0], [0, 1]], [0, 0]), ([[0, 0], [-1, 0], [0, -1], [1, 1]], [1, 1, 1, 0])])
    settlement = settle(compound, SQUARE[:3], with_shares=True)
    assert settlement.outcome is LabelOutcome.TIED
    assert settlement.has_kept and not settlement.has_lost
    assert settlement.shares.kept == (0.5, 0.5)


def test_coincident_lines():
    """h = t1 − 1/2, 2h and −h: their ReLUs add up to 3·max(h, 0) + max(−h, 0), which exceeds 1/4 off [1/4, 7/12]."""
    compound = on_cube([([[1, 0], [2, 0], [-1, 0]], [-0.5, -1, 0.5]), ([[0, 0, 0], [1, 1, 1]], [0.25, 0])])
    settlement = settle(compound, SQUARE, with_shares=True)
    assert settlement.outcome is LabelOutcome.MIXED
    kept = Fraction(7, 12) - Fraction(1, 4)
    assert Fraction(settlement.shares.kept[0]) <= kept <= Fraction(settlement.shares.kept[1])
    assert settle(compound, [[0.3, 0.1], [0.58, 0.2], [0.4, 0.9]]).outcome is LabelOutcome.KEPT
    assert settle(compound, [[0.25, 0.1], [0.5, 0.2], [0.4, 0.9]]).outcome is LabelOutcome.TIED


def test_a_line_through_a_vertex_and_along_an_edge():
    """h = t1 − t2 vanishes on a side of one triangle and at a vertex of the other; margin 1/2 − ReLU(h)."""
    compound = on_cube([([[1, -1]], [0]), ([[0], [1]], [0.5, 0])])
    assert settle(compound, [[0, 0], [1, 1], [0, 1]], max_parts=0).outcome is LabelOutcome.KEPT
    assert settle(compound, [[0, 0], [0.25, 0], [0.25, 0.125]], max_parts=0).outcome is LabelOutcome.KEPT


def test_dead_neurons_and_dead_layers():
    """z = ReLU(−t1 − t2 − 1) is dead, like the neurons it feeds: the margin is the bias 2⁻⁶⁰, whatever the weights."""
    layers = [([[-1, -1]], [-1]), ([[1e30]], [0]), ([[-1e30], [1e30]], [2.0**-60, 0])]
    assert settle(on_cube(layers), SQUARE).outcome is LabelOutcome.KEPT


def test_cancelling_huge_weights():
    """2²⁰(1 − 1) + 2⁻²⁰ θ, times 2²⁴: a term that looks like noise decides. The margin is 4 − ReLU(16 θ + 1 − 9)."""
    layers = [
        ([[2.0**20, -(2.0**20), 2.0**-20, 0], [0, 0, 0, 1]], [0, 0]),
        ([[2.0**24, 1]], [-9]),
        ([[-1], [0]], [4, 0]),
    ]
    model = make_model(layers, (1, 2, 2))
    image = np.array([[[1.0, 1.0], [0.0, 1.0]]])
    compound = make_question(model, image, ["patch:x=0,y=1,w=1,h=1"]).compound
    labels = ExactLabels(compound, 0)
    assert labels.margin_at(np.array([0.9])) == (4 - 16 * Fraction(0.9) + 8,) * 2
    assert labels.settle(np.array([[0.0, 0.0], [0.75, 1.0]]), 0.0, limit_seconds=5).outcome is LabelOutcome.TIED
    assert labels.settle(np.array([[0.0, 0.0], [0.7499, 1.0]]), 1e-9, limit_seconds=5).outcome is LabelOutcome.KEPT
    assert labels.settle(np.array([[0.7501, 0.0], [1.0, 1.0]]), 1e-9, limit_seconds=5).outcome is LabelOutcome.LOST
    settlement = labels.settle(np.array([[0.0, 0.0], [1.0, 1.0]]), 1e-9, limit_seconds=5)
    assert settlement.outcome is LabelOutcome.MIXED and settlement.witness[0] > 0.75


def test_a_kink_that_rounding_moves():
    """Huge terms that nearly cancel, beside a kink: float64 moves the kink, exact arithmetic does not."""
    rng = np.random.default_rng(3)
    image = np.round(rng.random((1, 2, 4)), 3)
    image[0, 1, 3] = 0.0
    row = np.zeros(8)
    row[:7] = rng.normal(size=7).astype(np.float32) * 2.0**38
    # Pixel 6 and the bias undo the rest up to 2⁻⁴⁰ or so, which float32 weights cannot do better.
    total = sum(Fraction(float(w)) * Fraction(float(p)) for w, p in zip(row[:7], image.ravel()[:7], strict=True))
    bias = float(-total)
    row[7] = 1.0
    layers = [
        ([row, [0] * 7 + [1]], [bias, 0]),
        ([[1, 2.0**-10], [0, 1]], [-0.5, 0]),
        ([[-(2.0**20), 0], [0, 1]], [1, 0]),
    ]
    compound = make_question(make_model(layers, (1, 2, 4)), image, ["patch:x=3,y=1,w=1,h=1"]).compound
    labels = ExactLabels(compound, 0)
    rest = total + Fraction(bias)
    for theta in (0.25, 0.499, 0.5, 0.5001, 1.0):
        inner = max(rest + Fraction(theta), 0) + Fraction(theta) / 1024 - Fraction(1, 2)
        assert labels.margin_at(np.array([theta])).low == 1 - 2**20 * max(inner, 0) - Fraction(theta)


def test_a_single_parameter_ignores_the_second_coordinate():
    compound = on_cube([([[1]], [0]), ([[0], [1]], [0.5, 0])])
    for height in (0.0, 1.0):
        settlement = settle(compound, [[0.0, height], [0.25, 0.0]], with_shares=True)
        assert settlement.outcome is LabelOutcome.KEPT and settlement.shares.kept == (0.25, 0.25)


def test_points_and_lines_are_polytopes_too():
    assert settle(slope(0.5), [[0.25, 0.5]]).outcome is LabelOutcome.KEPT
    assert settle(slope(0.5), [[0.5, 0.5]] * 3).outcome is LabelOutcome.TIED
    assert settle(slope(0.5), [[0.25, 0.25], [0.75, 0.75]]).outcome is LabelOutcome.MIXED
    assert settle(slope(0.5), [[0.5, 0.25], [0.5, 0.75], [0.5, 0.5]]).outcome is LabelOutcome.TIED


def test_limits_leave_it_open():
    """Many parallel kinks: more parts than allowed, or no time."""
    layers = [([[1, 0]] * 9, [-i / 10 for i in range(1, 10)]), ([[0] * 9, [2.0**-i for i in range(9)]], [5, 0])]
    compound = on_cube(layers)
    assert settle(compound, SQUARE).outcome is LabelOutcome.KEPT
    stopped = settle(compound, SQUARE, max_parts=5)
    assert stopped.outcome is LabelOutcome.OPEN and stopped.reason == "max_parts is reached"
    late = ExactLabels(compound, 0).settle(SQUARE, 0.0, limit_seconds=0.0)
    assert late.outcome is LabelOutcome.OPEN and late.reason == "limit_seconds is reached"


def test_refusals():
    labels = ExactLabels(slope(0.5), 0)
    for vertices, inflation in ((SQUARE + 2.0, 0.0), (SQUARE[:, :1], 0.0), (SQUARE * np.nan, 0.0), (SQUARE, -1.0)):
        with pytest.raises(OptionError):
            labels.settle(vertices, inflation, limit_seconds=1)
    with pytest.raises(OptionError):
        labels.margin_at(np.array([2.0, 0.0]))
    with pytest.raises(OptionError):
        ExactLabels(slope(0.5), 2)


def test_grey_pixels_are_fractions_of_255():
    """Logits (p, 0) with p = 51/255 − θ: tied at fl(0.2), if that float is 1/5; it is not, so the sign is exact."""
    model = make_model([([[1], [-1]], [0, 0]), ([[1, -1], [0, 0]], [0, 0])], (1, 1, 1))
    image = np.full((1, 1, 1), 51 / 255)
    perturbed = compose([Brightness(range=(-0.5, 0.5)), Patch(x=0, y=0, w=1, h=1)], image)
    compound = Compound(model.graph, model.chain, perturbed)
    low = ExactLabels(compound, 0).margin_at(np.array([-0.2, 0.0])).low
    assert low == max(Fraction(1, 5) - Fraction(0.2), 0)
