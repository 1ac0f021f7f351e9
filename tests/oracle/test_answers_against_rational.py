"""Shares of the domain against exact rationals on tiny images: CR, MR, AR, IR and combinations, for every option."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from steadygaze.compound import Compound
from steadygaze.labels import Kept
from steadygaze.perturbation import Brightness, Patch, Perturbation, parse_spec
from support.networks.hand_solved import IMAGES, TinyImage
from support.networks.layered_models import make_answers
from support.networks.layered_networks import crossing_layers, dyadic_layers, make_compound
from support.oracles.attention_by_definition import Question
from support.oracles.exact_shares import NAMES, ExactShares

ROUNDING = 1e-12
"""Of adding the areas of some hundred pieces in floats."""

EXACT = 1e-8
"""How much of the domain may stay undecided where nothing is tied and ai crosses δ with a slope."""

QUESTIONS = tuple(
    Question(words, dist, classes)
    for words in ("identity", "abs", "mean", "abs+mean")
    for dist, classes in (("l1", None), ("l2", None), ("l1", (0,)), ("l2", (1, 2)))
)
PROBLEMS = (
    ((1, 2, 2), ("brightness:-0.5..0.5", "patch:x=0,y=0,w=1,h=2")),
    ((1, 1, 3), ("translate:dx=1", "brightness:0..0.5")),
    ((2, 1, 2), ("darkness:0..0.75", "translate:dx=-2:-0.5..1.5")),
    ((1, 3, 1), ("translate:dy=2",)),
    ((1, 2, 2), ("patch:x=1,y=0,w=1,h=1,tone=-1:-1..1",)),
)


def random_compound(seed: int, shape: tuple[int, int, int], specs: tuple[str, ...], grey: np.ndarray) -> Compound:
    rng = np.random.default_rng(seed)
    sizes = [int(np.prod(shape)), *rng.integers(2, 5, size=rng.integers(1, 3)), 3]
    points = rng.integers(0, 5, size=(3, sizes[0])) / 4
    layers = dyadic_layers(rng, sizes) if seed % 2 else crossing_layers(rng, sizes, points)
    return make_compound(layers, [parse_spec(spec) for spec in specs], rng.choice(grey, size=shape))


def thresholds(exact: ExactShares) -> list[float]:
    """Between the values that occur, where a small change of δ changes little."""
    values = sorted({round(float(exact.curve(region).value(0)), 9) for region in exact.map.regions})
    middles = [(a + b) / 2 for a, b in pairwise(values)]
    return [*middles[:: max(1, len(middles) // 2)], values[-1] / 3 + 0.015625]


def assert_shares_enclose(exact: ExactShares, delta: float) -> None:
    answer = make_answers(exact.compound, exact.label, exact.question).at(delta)
    assert_encloses(exact, delta, answer.shares.named())


def assert_encloses(exact: ExactShares, delta: float, found: dict[str, tuple[float, float]]) -> None:
    truth = exact.shares(delta)
    for name in NAMES:
        low, high = found[name]
        assert 0 <= low <= high <= 1
        assert low - ROUNDING <= float(truth[name]) <= high + ROUNDING, name
    # Ties belong to nobody and are undecided, and so is where ai stays at δ; nothing else may be.
    assert found["CR"][1] - found["CR"][0] <= float(truth["tied"]) + EXACT
    if found["undecided"][0] > float(truth["tied"]) + EXACT:
        below = exact.shares(delta - 1e-9)["AR"] if delta > 1e-9 else 0
        flat = float(exact.shares(delta + 1e-9)["AR"] - below)
        assert found["undecided"][0] <= float(truth["tied"]) + flat + EXACT
        assert found["AR"][1] - found["AR"][0] <= flat + EXACT


@pytest.mark.parametrize(("shape", "specs"), PROBLEMS, ids=lambda part: "+".join(map(str, part)))
@pytest.mark.parametrize("seed", range(8))
def test_random_networks(seed: int, shape: tuple[int, int, int], specs: tuple[str, ...]) -> None:
    """Every option in turn, pixels of quarters."""
    compound = random_compound(seed, shape, specs, np.array([0.0, 0.0, 0.25, 0.5, 1.0, 1.0]))
    number = 8 * [problem[1] for problem in PROBLEMS].index(specs) + seed
    exact = ExactShares(compound, seed % 3, QUESTIONS[(5 * number) % len(QUESTIONS)])
    for delta in thresholds(exact):
        assert_shares_enclose(exact, delta)


@pytest.mark.parametrize("seed", range(6))
def test_eight_bit_pixels(seed: int) -> None:
    """Pixels v/255, which floats do not hold exactly: coincident lines must stay one."""
    shape, specs = PROBLEMS[seed % 3]
    compound = random_compound(seed + 100, shape, specs, np.array([0, 0, 51, 77, 128, 255]) / 255)
    exact = ExactShares(compound, seed % 3, QUESTIONS[seed], denominator=255)
    for delta in thresholds(exact):
        assert_shares_enclose(exact, delta)


@pytest.mark.parametrize("question", QUESTIONS[:2], ids=["l1", "l2"])
@pytest.mark.parametrize("seed", range(6))
def test_a_threshold_that_occurs(seed: int, question: Question) -> None:
    """δ equal to the ai of some regions, which are undecided then."""
    compound = random_compound(seed + 200, *PROBLEMS[seed % 2], np.array([0.0, 0.25, 0.5, 1.0]))
    exact = ExactShares(compound, 0, question)
    values = sorted({float(exact.curve(region).value(0)) for region in exact.map.regions})
    for delta in (0.0, values[len(values) // 2], values[-1]):
        assert_shares_enclose(exact, delta)


@pytest.mark.parametrize("tiny", IMAGES, ids=lambda tiny: tiny.name)
def test_images_solved_by_hand(tiny: TinyImage) -> None:
    perturbations: dict[str, list[Perturbation]] = {
        "two pixels brighter": [Brightness()],
        "brighter and patched": [Brightness(), Patch(x=0, y=0, w=1, h=1)],
        "patch on white": [Patch(x=0, y=0, w=2, h=1)],
    }
    image = np.array(tiny.offset, dtype=float).reshape(1, 1, -1)
    compound = make_compound(tiny.floats, perturbations[tiny.name], image)
    for dist, classes, steps in (("l2", (tiny.watched,), tiny.steps), ("l1", None, tiny.l1)):
        answers = make_answers(compound, tiny.label, Question(dist=dist, classes=classes))
        reached = 0.0
        for size, share in steps:
            value = float(size) ** (0.5 if dist == "l2" else 1.0)
            below = answers.at(max(0.0, value - 1e-6)).shares.bounds(None, Kept.YES) if value else (0.0, 0.0)
            assert below == pytest.approx((reached, reached), abs=1e-9)
            reached += float(share)
            assert answers.at(value + 1e-6).shares.bounds(None, Kept.YES) == pytest.approx((reached, reached), abs=1e-9)
        strict = float(tiny.strict[tiny.label])
        assert answers.at(1.0).shares.bounds(Kept.YES, None) == pytest.approx((strict, strict), abs=1e-9)


def test_a_tie_of_two_classes_on_an_area_is_undecided() -> None:
    """x = b; logits (ReLU(1 − 2b), 0, −1): classes 0 and 1 are tied for b > 1/2, whichever is the label."""
    layers = [(np.array([[-2.0]]), np.array([1.0])), (np.array([[1.0], [0.0], [0.0]]), np.array([0.0, 0.0, -1.0]))]
    compound = make_compound(layers, [Brightness()], np.zeros((1, 1, 1)))
    for label, decided in ((0, {"CR": 0.5, "MR": 0.0}), (1, {"CR": 0.0, "MR": 0.5}), (2, {"CR": 0.0, "MR": 1.0})):
        answer = make_answers(compound, label, Question()).at(10.0)
        found = answer.shares.named()
        for name, share in decided.items():
            assert found[name][0] == pytest.approx(share, abs=1e-9) and found[name][0] <= share
        assert found["undecided"][0] == pytest.approx(0.0 if label == 2 else 0.5, abs=1e-9)
        assert answer.sets["CR"] + answer.sets["MR"] + answer.sets["CB"] <= (2 if label == 2 else 1)


def test_a_rival_tie_does_not_matter() -> None:
    """Logits (x, 1/2, 1/2) with x = b: the two rivals are tied everywhere, the label leads above 1/2."""
    layers = [(np.eye(1), np.zeros(1)), (np.array([[1.0], [0.0], [0.0]]), np.array([0.0, 0.5, 0.5]))]
    compound = make_compound(layers, [Brightness()], np.zeros((1, 1, 1)))
    found = make_answers(compound, 0, Question()).at(10.0).shares.named()
    assert found["CR"] == pytest.approx((0.5, 0.5), abs=1e-9)
    assert found["MR"] == pytest.approx((0.5, 0.5), abs=1e-9)


def test_three_classes_meet_in_a_point() -> None:
    """x = (b + p, b) with p a patch; logits (x1, 2 x2, 3/4): three pieces of one region meet at b = p = 3/8."""
    layers = [(np.eye(2), np.zeros(2)), (np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), np.array([0.0, 0.0, 0.75]))]
    specs = ("brightness:0..0.5", "patch:x=0,y=0,w=1,h=1:0..0.5")
    compound = make_compound(layers, [parse_spec(spec) for spec in specs], np.zeros((1, 1, 2)))
    for label in range(3):
        exact = ExactShares(compound, label, Question())
        assert_shares_enclose(exact, 1.0)
        assert 0 < exact.shares(1.0)["CR"] < 1


PLANTED: dict[str, Callable[[Question], Question]] = {
    "other distance": lambda question: replace(question, dist="l1"),
    "filter forgotten": lambda question: replace(question, filter="identity"),
    "filters in the wrong order": lambda question: replace(question, filter="mean+abs"),
    "class left out": lambda question: replace(question, classes=(0, 1)),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_caught(bug: str) -> None:
    """An answer to a slightly different question does not enclose the truth about this one."""
    compound = random_compound(1, *PROBLEMS[1], np.array([0.0, 0.25, 0.5, 1.0]))
    exact = ExactShares(compound, 0, Question("abs+mean", "l2"))
    wrong = make_answers(compound, 0, PLANTED[bug](exact.question))
    right = make_answers(compound, 0, exact.question)
    deltas = [part * right.size for part in (0.1, 0.2, 0.3, 0.5)]
    for delta in deltas:
        assert_encloses(exact, delta, right.at(delta).shares.named())
    with pytest.raises(AssertionError):
        for delta in deltas:
            assert_encloses(exact, delta, wrong.at(delta).shares.named())


def test_a_wrong_label_is_caught() -> None:
    compound = random_compound(1, *PROBLEMS[1], np.array([0.0, 0.25, 0.5, 1.0]))
    exact = ExactShares(compound, 0, Question())
    shares = [exact.shares(1.0)["CR"], ExactShares(compound, 1, Question()).shares(1.0)["CR"]]
    assert shares[0] != shares[1]
    with pytest.raises(AssertionError):
        assert_encloses(exact, 1.0, make_answers(compound, 1, Question()).at(1.0).shares.named())
