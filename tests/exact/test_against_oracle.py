"""Random tiny networks and polytopes in one to three dimensions: outcomes against the oracle's exact map, margins
against plain fractions, and laws that need no oracle.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadygaze.exact import ExactLabels, LabelOutcome
from support.networks.search_problems import random_problem
from support.oracles import exact_margin
from support.oracles.exact_outcomes import regions_within, true_outcome

SEEDS = st.integers(0, 10_000)


def grid_points(rng: np.random.Generator, dimension: int, most: int = 3) -> np.ndarray:
    """Points with a hull that has volume, on a grid of eighths: kinks run through them and along their edges."""
    while True:
        points = rng.integers(0, 9, size=(dimension + 1 + int(rng.integers(most)), dimension)) / 8
        if np.linalg.matrix_rank(points[1:] - points[0]) == dimension:
            return points


def in_t(points: np.ndarray) -> np.ndarray:
    """With the second coordinate that a single parameter has."""
    return points if points.shape[1] > 1 else np.hstack([points, np.zeros_like(points)])


def check(question, points: np.ndarray, inflation: float) -> None:
    compound = question.compound
    regions = regions_within(compound, points, inflation)
    for label in range(compound.graph.classes):
        labels = ExactLabels(compound, label)
        settlement = labels.settle(in_t(points), inflation, limit_seconds=60, max_parts=10**6)
        assert settlement.outcome is true_outcome(regions, label)
        if settlement.witness is not None:
            assert exact_margin.margin(compound, label, settlement.witness) < 0
        assert settlement.outcome not in (LabelOutcome.LOST, LabelOutcome.MIXED) or settlement.witness is not None


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.0625, 2.0**-40]))
def test_outcomes_in_one_dimension(seed, inflation):
    check(random_problem(seed, 1), grid_points(np.random.default_rng(seed), 1), inflation)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.0625, 2.0**-40]))
def test_outcomes_in_two_dimensions(seed, inflation):
    check(random_problem(seed, 2), grid_points(np.random.default_rng(seed), 2), inflation)


@settings(max_examples=10, deadline=None)
@given(SEEDS, st.sampled_from([0.0, 2.0**-40]))
def test_outcomes_in_three_dimensions(seed, inflation):
    check(random_problem(seed, 3), grid_points(np.random.default_rng(seed), 3, 1 if inflation else 4), inflation)


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(1, 2))
def test_shares_are_the_oracles(seed, dimension):
    question = random_problem(seed, dimension)
    points = grid_points(np.random.default_rng(seed), dimension)
    settlement = ExactLabels(question.compound, 0).settle(
        in_t(points), 0.0, limit_seconds=60, max_parts=10**6, with_shares=True
    )
    kept = lost = Fraction(0)
    for region in regions_within(question.compound, points):
        part = region.polytope
        for lead in region.leads(0):
            part = part.cut(lead)[1] if part is not None and any(lead) else part
        some = Fraction(0) if part is None else part.volume
        kept += Fraction(0) if not all(map(any, region.leads(0))) else some
        lost += region.polytope.volume - some
    for share, truth in zip(settlement.shares, (kept, lost), strict=True):
        assert Fraction(share[0]) <= truth <= Fraction(share[1])
        assert share[1] - share[0] <= 1e-15


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 3))
def test_margins_are_those_of_plain_fractions(seed, dimension):
    compound = random_problem(seed, dimension).compound
    rng = np.random.default_rng(seed)
    labels = ExactLabels(compound, 0)
    for share in [*rng.random((4, dimension)), np.zeros(dimension), np.ones(dimension)]:
        theta = np.clip(compound.domain.low + share * compound.domain.widths, compound.domain.low, compound.domain.high)
        truth = exact_margin.margin(compound, 0, theta)
        assert labels.margin_at(theta) == (truth, truth)


@pytest.mark.parametrize("seed", range(12))
def test_random_thetas_agree_with_the_outcome(seed):
    """Vertices that are no round numbers, without an oracle of regions."""
    compound = random_problem(seed, 1 + seed % 3).compound
    d, rng = compound.domain.dimension, np.random.default_rng(seed)
    points = rng.random((d + 2, d))
    labels = ExactLabels(compound, 0)
    settlement = labels.settle(in_t(points), 1e-13, limit_seconds=60, max_parts=10**6)
    weights = rng.dirichlet(np.ones(len(points)), size=200)
    signs = set()
    for theta in compound.to_theta(in_t(weights @ points)):
        value = exact_margin.margin(compound, 0, theta)
        signs.add((value > 0) - (value < 0))
    allowed = {
        LabelOutcome.KEPT: {1},
        LabelOutcome.LOST: {-1},
        LabelOutcome.MIXED: {-1, 0, 1},
        LabelOutcome.TIED: {0, 1} if settlement.has_kept else {0, -1},
    }
    assert signs <= allowed[settlement.outcome]


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_a_union_has_the_shares_of_its_parts(seed):
    compound = random_problem(seed, 2).compound
    labels = ExactLabels(compound, 0)
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    middle = np.random.default_rng(seed).random((1, 2))
    options = {"limit_seconds": 60, "max_parts": 10**6, "with_shares": True}
    whole = labels.settle(square, 0.0, **options)
    parts = [labels.settle(np.vstack([square[[i, (i + 1) % 4]], middle]), 0.0, **options) for i in range(4)]
    assert whole.has_kept == any(part.has_kept for part in parts)
    assert whole.has_lost == any(part.has_lost for part in parts)
    assert whole.shares.kept[0] == pytest.approx(sum(part.shares.kept[0] for part in parts), abs=1e-12)
    assert whole.shares.lost[0] == pytest.approx(sum(part.shares.lost[0] for part in parts), abs=1e-12)
