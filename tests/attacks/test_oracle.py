"""The oracle of the attacks: against networks solved by hand, another exact splitter, and plain evaluation."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from adversary.attention import root_bounds
from adversary.nets import add_dead, beside, deepen, duplicate, random_net, single
from adversary.oracle import Change, Oracle, Question, TooLargeError
from adversary.polytopes import box, split, volume
from adversary.wild import make_wild
from support.oracles.rational_polygons import compound, label_areas, split_regions

HALF = Fraction(1, 2)


def patch(x, *, low=0.0, high=1.0):
    return Change("patch", low, high, x=x)


def ask(layers, image, changes, *, delta=1.0, dist="l2"):
    rounded = single([(np.array(weight, dtype=float), np.array(bias, dtype=float)) for weight, bias in layers])
    return Oracle(Question(rounded, np.array(image, dtype=float), tuple(changes), dist, delta))


def both(share):
    return share, share


def ball(count, peak, gain, height):
    """f = (1, height·ReLU(peak − gain·Σ|x_k − 1/2|)) over `count` pixels."""
    rows = np.repeat(np.eye(count), 2, axis=0) * np.tile([1, -1], count)[:, None]
    return [
        (rows, np.tile([-0.5, 0.5], count)),
        (np.full((1, 2 * count), -gain), [peak]),
        ([[0.0], [height]], [1.0, 0.0]),
    ]


# Networks solved by hand


def test_one_kink():
    """f = (ReLU(x − 1/4), 1/8), x = θ: the label 1 is kept below 3/8; the map of class 0 is 0, then 1 from 1/4 on."""
    truth = ask([([[1]], [-0.25]), ([[1], [0]], [0, 0.125])], [[[0.0]]], [patch(0)], delta=0.5).truth
    assert truth.label == 1
    assert truth.shares["CR"] == both(Fraction(3, 8))
    assert truth.shares["MR"] == both(Fraction(5, 8))
    assert truth.shares["AR"] == both(Fraction(1, 4))
    assert truth.shares["CR&IR"] == both(Fraction(1, 8))
    assert truth.least_margin == Fraction(-5, 8)
    assert truth.inconsistencies == (0.0, 1.0)


@pytest.mark.parametrize(("count", "small", "large"), [(1, 2, 2), (2, 2, 2), (3, Fraction(4, 3), Fraction(4, 3))])
def test_balls_of_the_one_norm(count, small, large):
    """2·ReLU(1 − 8·Σ|x − 1/2|) exceeds 1 on a ball of radius 1/16 and has a gradient on one of radius 1/8."""
    image = [[[0.0] * count]]
    truth = ask(ball(count, 1, 8, 2), image, [patch(k) for k in range(count)]).truth
    assert truth.label == 0
    assert truth.shares["MR"] == both(small * Fraction(1, 16) ** count)
    assert truth.shares["IR"] == both(large * Fraction(1, 8) ** count)
    assert truth.least_margin == -1
    assert truth.is_violated("cr")
    assert truth.is_violated("ar")


def test_clip():
    """x = clip(1/2 + θ) over −1..1 and f = (x, 1/4): kept for θ > −1/4, lost by 1/4 at most."""
    truth = ask([([[1], [0]], [0, 0.25])], [[[0.5]]], [Change("brightness", -1.0, 1.0)]).truth
    assert truth.shares["CR"] == both(Fraction(5, 8))
    assert truth.least_margin == Fraction(-1, 4)
    assert truth.region_count == 3


def test_darkness_and_tone():
    """Both subtract θ from one pixel of two."""
    layers = [([[1, 1], [0, 0]], [0, 0.75])]
    dark = ask(layers, [[[0.5, 0.5]]], [Change("darkness", 0.0, 0.5)]).truth
    toned = ask(layers, [[[0.5, 0.5]]], [Change("patch", 0.0, 0.5, x=1, tone=-1)]).truth
    assert dark.shares["CR"] == both(Fraction(1, 4))  # 1 − 2θ > 3/4
    assert toned.shares["CR"] == both(HALF)  # 1 − θ > 3/4


def test_tie_is_neither_kept_nor_lost():
    """f = (ReLU(1/2 − x), 0) is tied from 1/2 on."""
    truth = ask([([[-1]], [0.5]), ([[1], [0]], [0, 0])], [[[0.0]]], [patch(0)]).truth
    assert (truth.shares["CR"], truth.shares["MR"], truth.tied) == (both(HALF), both(Fraction(0)), HALF)
    assert truth.least_margin == 0
    assert truth.is_violated("cr")
    assert truth.violated_share("cr") == HALF


@pytest.mark.parametrize(("dist", "rate"), [("l1", 3.0), ("l2", 1 + sqrt(2))])
def test_translation_moves_the_expected_map(dist, rate):
    """f = (x_1, x_2) on (1, 0) moved right: the maps (1, 0) and (0, 1) become (1 − t, t) and (0, 1 − t)."""
    changes = [Change("translate", 0.0, 1.0, dx=1)]
    truth = ask([([[1, 0], [0, 1]], [0, 0])], [[[1.0, 0.0]]], changes, delta=0.5, dist=dist).truth
    assert truth.shares["CR"] == both(HALF)
    low, high = truth.shares["AR"]
    assert high - low <= Fraction(1, 2**46)
    assert float(low) == pytest.approx(0.5 / rate, abs=1e-12)


def test_translation_over_a_knot():
    """x_1 of (1/2, 1/4, 1) moved left is 1/2 − t/4 up to 1, 1/4 + 3/4·(t − 1) up to 2, and 1 − (t − 2) after that.

    It is below 3/8 from t = 1/2 to t = 7/6 only, which is 2/3 of 5/2.
    """
    changes = [Change("translate", 0.0, 2.5, dx=-3)]
    oracle = ask([([[1, 0, 0], [0, 0, 0]], [0, 0.375])], [[[0.5, 0.25, 1.0]]], changes)
    assert oracle.truth.shares["MR"] == both(Fraction(2, 3) / Fraction(5, 2))
    assert [oracle.image_at([t])[0] for t in (Fraction(1), Fraction(2))] == [Fraction(1, 4), 1]


# Parts of the oracle


def test_square_roots():
    low, high = root_bounds(Fraction(2))
    assert low * low < 2 < high * high
    assert high - low < Fraction(1, 2**150)


def test_split_through_vertices_conserves_volume():
    cube = box([Fraction(0)] * 3, [Fraction(1)] * 3)
    low, high = split(cube, (1, 1, 1, -1))  # the plane through three vertices
    assert (volume(low), volume(high)) == (Fraction(1, 6), Fraction(5, 6))
    assert split(cube, (1, 1, 1, 0)) == (None, cube)
    assert split(cube, (0, 0, 0, 0)) == (cube, None)


def test_too_many_regions_are_refused():
    random = np.random.default_rng(0)
    layers = single(random_net(random, [4, 20, 2], scale=3.0))
    question = Question(layers, random.random((1, 2, 2)), (patch(0), patch(1)))
    with pytest.raises(TooLargeError):
        _ = Oracle(question, most_regions=3).truth


# Against other computations


def small_question(seed, count):
    random = np.random.default_rng(seed)
    image = random.integers(0, 9, (1, 2, 2)) / 8
    layers = single(random_net(random, [4, 4, 3, 2 + seed % 2], scale=2.0))
    changes = [Change("brightness", -0.25, 0.5), patch(0, low=-0.5), Change("patch", 0.0, 1.0, x=1, y=1)]
    return Question(layers, image, tuple(changes[:count]), "l2", 0.75)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [1, 2])
def test_against_the_other_splitter(seed, count):
    question = small_question(seed, count)
    oracle = Oracle(question)
    slope = [[change.added(oracle.pixels, 0)[1].ravel()[i] for i in range(4)] for change in question.changes]
    chain = [
        ([[Fraction(float(w)) for w in row] for row in weight], [Fraction(float(b)) for b in bias])
        for weight, bias in question.layers
    ]
    layers = compound(list(oracle.pixels.ravel()), slope, chain)
    low = [Fraction(change.low) for change in question.changes]
    high = [Fraction(change.high) for change in question.changes]
    kept, lost, tied = label_areas(split_regions(layers, low, high), oracle.label)
    truth = oracle.truth
    whole = oracle.domain_volume
    assert (truth.shares["CR"], truth.shares["MR"], truth.tied) == (
        both(kept / whole),
        both(lost / whole),
        tied / whole,
    )


@pytest.mark.parametrize("seed", range(3))
def test_volumes_values_and_gradients_in_three_dimensions(seed):
    """Regions tile the domain, their forms are the forward pass, and the maps are its differences."""
    question = small_question(seed, 3)
    oracle = Oracle(question)
    assert sum(region.volume for region in oracle.regions) == oracle.domain_volume
    for region in oracle.regions[:20]:
        centre = region.polytope.centre()
        logits = oracle.logits_at(centre)
        point = (*centre, Fraction(1))
        assert logits == [
            sum(a * x for a, x in zip(form, point, strict=True)) / 2**region.exponent for form in region.logits
        ]
        pixels = oracle.image_at(centre)
        step = Fraction(1, 2**60)
        for i in range(4):
            moved = [pixel + step * (k == i) for k, pixel in enumerate(pixels)]
            slopes = [(b - a) / step for a, b in zip(logits, oracle._forward(moved)[1], strict=True)]
            assert slopes == [row[i] for row in oracle.maps.of(region.pattern)]


@pytest.mark.parametrize("seed", range(3))
def test_shares_by_sampling(seed):
    """Plain float64 at 2,000 random thetas: the shares of CR and AR within five standard deviations."""
    question = small_question(seed, 2)
    oracle = Oracle(question)
    random = np.random.default_rng(seed)
    low = np.array([change.low for change in question.changes])
    high = np.array([change.high for change in question.changes])
    thetas = random.uniform(low, high, (2000, 2))
    kept = np.mean([plain_margin(question, theta, oracle.label) > 0 for theta in thetas])
    near = np.mean([oracle.at(theta).inconsistency[1] <= Fraction(0.75) for theta in thetas[:300]])
    assert kept == pytest.approx(float(oracle.truth.shares["CR"][0]), abs=5 * 0.5 / sqrt(2000))
    assert near == pytest.approx(float(oracle.truth.shares["AR"][0]), abs=5 * 0.5 / sqrt(300))


def plain_margin(question, theta, label):
    """The margin in numpy, for brightness and a patch on the first pixel."""
    image = question.image + theta[0]
    image[0, 0, 0] += theta[1]
    values = np.clip(image, 0.0, 1.0).ravel()
    for number, (weight, bias) in enumerate(question.layers):
        values = weight.astype(float) @ values + bias
        if number < len(question.layers) - 1:
            values = np.maximum(values, 0.0)
    return values[label] - np.delete(values, label).max()


def test_wild_networks_have_a_sound_truth():
    """At the vertices and centres of the regions the margin is never below the least one."""
    for one in map(make_wild, (0, 2, 3, 4, 6, 8, 9)):
        oracle = Oracle(one.question)
        for region in oracle.regions[:5]:
            for theta in [region.polytope.centre(), *region.polytope.points()]:
                assert oracle.at(theta).margin >= one.truth.least_margin


def test_operations_on_networks_keep_the_function():
    random = np.random.default_rng(3)
    net = [(np.round(w * 64) / 64, np.round(b * 64) / 64) for w, b in random_net(random, [4, 3, 2, 2])]
    image, thetas = random.integers(0, 9, (1, 2, 2)) / 8, [[Fraction(k, 7)] for k in range(8)]

    def values(layers):
        oracle = Oracle(Question(single(layers), image, (patch(0),)))
        return [oracle.logits_at(theta) for theta in thetas]

    half = [*net[:-1], tuple(part / 2 for part in net[-1])]
    for other in (deepen(net, 6, random), add_dead(net, random, 3), duplicate(net), beside(half, half)):
        assert values(other) == values(net)
