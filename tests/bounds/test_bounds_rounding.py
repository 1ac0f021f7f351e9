"""Cases where float64 alone would be wrong: values that are only rounding, thresholds met to the last digit."""

from fractions import Fraction

import numpy as np
import pytest

from steadygaze.perturbation import compose, parse_spec
from steadygaze.tolerances import down, gamma, up
from support.networks.bound_cases import Case
from support.networks.layered_networks import make_graph
from support.oracles.attention_by_definition import Question
from support.oracles.exact_attention import exact_image
from support.oracles.exact_graph import Whole
from support.oracles.exact_numbers import as_fractions
from support.readers.enclosures import expected_at_zero, roots, violations


def cancelling(seed: int) -> Case:
    """Logits (h, 0) with h = ReLU(w·x + b) + ReLU(−w·x − b)·(−1), b = −(w·x in floats) at one theta: rounding alone."""
    rng = np.random.default_rng([6, seed])
    pixels = rng.integers(0, 256, size=(1, 2, 3)) / 255
    perturbed = compose([parse_spec("brightness:-0.1..0.1")], pixels)
    t = rng.random()
    image = perturbed.image([perturbed.domain.low[0] + t * perturbed.domain.widths[0]])
    weight = rng.normal(size=(1, 6)) * 10.0 ** rng.integers(-2, 3)
    bias = -(weight @ image.ravel())
    layers = [
        (np.vstack([weight, -weight]), np.concatenate([bias, -bias])),
        (np.array([[1.0, -1.0], [0.0, 0.0]]), np.zeros(2)),
    ]
    place = np.array([[t]])
    return Case(f"cancelling {seed}", make_graph(layers, (1, 2, 3)), perturbed, 0, Question(), 0, place, place, 0)


def exact_margin(case: Case) -> Fraction:
    first, last = (Fraction(float(end[0])) for end in (case.perturbed.domain.low, case.perturbed.domain.high))
    theta = first + Fraction(float(case.low[0, 0])) * (last - first)
    image = exact_image(case.perturbed, [theta])
    logits = case.network.trace(Whole.of(image.reshape(-1, 1)))[-1].rationals()[:, 0]
    return logits[0] - logits[1]


def test_margins_that_are_nothing_but_rounding_are_never_decided_wrongly() -> None:
    wrong = 0
    for seed in range(150):
        case = cancelling(seed)
        exact = exact_margin(case)
        theta = case.perturbed.domain.low + case.low[0] * case.perturbed.domain.widths
        plain = float(np.subtract(*case.graph.logits(case.perturbed.image(theta)[None])[0]))
        wrong += (plain > 0) != (exact > 0) or (plain < 0) != (exact < 0)
        low, high = case.bounder().bound(0, case.low, case.high).margin[0]
        assert low <= exact <= high
        assert low <= 0.0 <= high, "decided by rounding"
        assert high - low < 1e-9, "far wider than rounding"
    assert wrong > 50, "these cases are meant to be wrong in plain float64"


def test_inconsistencies_at_a_point_hold_to_the_last_digit() -> None:
    """Maps of 3 and 0 tenths: Σ √(n · 0.3²) is irrational and never a float; plain sums end on both sides of it."""
    sides = set()
    for seed in range(60):
        rng = np.random.default_rng([7, seed])
        weight = rng.integers(1, 256, size=(2, 6)) / 255
        layers = [(weight, np.array([-0.5, -1.0])), (rng.integers(-9, 10, size=(3, 2)) / 10, np.zeros(3))]
        perturbed = compose([parse_spec("brightness")], np.zeros((1, 2, 3)))
        place = np.array([[0.75]])
        question = Question("identity", ("l1", "l2")[seed % 2])
        case = Case(f"maps {seed}", make_graph(layers, (1, 2, 3)), perturbed, 0, question, 0, place, place, 0)
        assert violations(case) == []
        low, high = case.bounder().bound(0, place, place).inconsistency[0]
        assert high - low <= 1e-13 * high
        plain = _plain_inconsistency(layers, question.dist)
        exact = _exact_inconsistency(case)
        sides.add((Fraction(plain) > exact) - (Fraction(plain) < exact))
    assert {-1, 1} <= sides, "plain sums are meant to miss the truth on both sides"


def _plain_inconsistency(layers: list, dist: str) -> float:
    maps = layers[1][0] @ layers[0][0]
    return float(np.abs(maps).sum() if dist == "l1" else np.sqrt((maps**2).sum(axis=1)).sum())


def _exact_inconsistency(case: Case) -> Fraction:
    """Both neurons are active at the theta and none at zero; roots to 60 digits."""
    slopes = case.network.gradients([np.ones(2, dtype=bool)])
    assert not expected_at_zero(case).any()
    if case.question.dist == "l1":
        return sum(map(abs, slopes.ravel().tolist()), Fraction(0))
    return roots([sum((x * x for x in row), Fraction(0)) for row in slopes.tolist()], 200)[0]


@pytest.mark.parametrize("terms", [1, 2, 10, 1000, 10**6])
def test_factors_cover_their_sums(terms: int) -> None:
    u = Fraction(1, 2**53)
    proved = terms * u / (1 - terms * u)
    assert Fraction(gamma(terms)) >= proved
    # A computed sum of non-negative products is at least 1 − γ of the exact one; the last product rounds too.
    assert Fraction(up(terms)) * (1 - proved) * (1 - u) >= 1
    assert Fraction(down(terms)) * (1 + proved) * (1 + u) <= 1


def test_sums_of_products_in_any_order_stay_within_gamma() -> None:
    rng = np.random.default_rng(8)
    for _ in range(50):
        size = int(rng.integers(2, 60))
        a, b = (rng.normal(size=size) * 10.0 ** rng.integers(-8, 9, size) for _ in range(2))
        exact = sum((x * y for x, y in zip(as_fractions(a), as_fractions(b), strict=True)), Fraction(0))
        total = sum((abs(x * y) for x, y in zip(as_fractions(a), as_fractions(b), strict=True)), Fraction(0))
        for computed in (float(a @ b), float(sum(a * b)), float((a * b)[::-1].sum())):
            assert abs(Fraction(computed) - exact) <= Fraction(gamma(size)) * total
