"""Errors by their 2-norm, as deep networks need them: norms of steps, sums with hardly any rounding, sound bounds."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from steadygaze.attention.distances import Distance
from steadygaze.attention.filters import Filter
from steadygaze.attention.options import AttentionOptions
from steadygaze.bounds import bounder
from steadygaze.bounds import deep as deep_bounds
from steadygaze.bounds.bounder import Bounder
from steadygaze.bounds.deep import Norms, convolve, scaled_norm, spectral_norm
from steadygaze.network.steps import ConvStep, MatrixStep, OrderStep, ScaleStep, SumStep
from steadygaze.network.windows import Conv, Window
from steadygaze.perturbation import compose, parse_spec
from support.networks.bound_cases import KINDS, random_case
from support.networks.layered_networks import make_graph
from support.readers.enclosures import violations
from support.readers.sampled_enclosures import BranchingCase, false_claims


def random_conv(seed: int) -> ConvStep:
    rng = np.random.default_rng([61, seed])
    pairs = [tuple(rng.integers(*ends, size=2).tolist()) for ends in ((1, 4), (1, 3), (1, 3), (0, 3), (0, 3))]
    weight = rng.normal(size=(int(rng.integers(1, 5)), int(rng.integers(1, 4)), *pairs[0]))
    conv = Conv(weight.astype(np.float32).astype(np.float64), np.zeros(len(weight)), Window(*pairs))
    return ConvStep(conv, (1, weight.shape[1], int(rng.integers(5, 8)), int(rng.integers(5, 8))))


def dense(step: object) -> np.ndarray:
    matrix = step.affine()[0]  # type: ignore[attr-defined]
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


@pytest.mark.parametrize("seed", range(30))
def test_norms_of_convolutions(seed: int) -> None:
    step = random_conv(seed)
    true = np.linalg.norm(dense(step), ord=2)
    assert true <= spectral_norm(step)
    if step.conv.window.strides == (1, 1):
        assert spectral_norm(step) <= 1.6 * true
    factors = np.repeat(np.random.default_rng(seed).normal(size=len(step.weight)), step.sizes[1] // len(step.weight))
    scale = ScaleStep(factors, np.zeros(len(factors)))
    assert np.linalg.norm(factors[:, None] * dense(step), ord=2) <= scaled_norm(step, scale)
    if step.sizes[1] > len(step.weight):
        assert scaled_norm(step, ScaleStep(np.arange(len(factors)) + 1.0, np.zeros(len(factors)))) == np.inf


@pytest.mark.parametrize(
    "step",
    [
        MatrixStep(np.random.default_rng(0).normal(size=(7, 5)), np.zeros(7)),
        OrderStep(np.array([2, 0, 1])),
        ScaleStep(np.array([0.5, -3.0]), np.zeros(2)),
        SumStep(3, (1, -1, 1)),
    ],
)
def test_norms_of_other_steps(step: object) -> None:
    assert np.linalg.norm(dense(step), ord=2) <= spectral_norm(step)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(10))
def test_sums_in_slices_are_off_by_no_more_than_said(seed: int) -> None:
    step, rng = random_conv(seed), np.random.default_rng([62, seed])
    values = rng.normal(size=(2, step.sizes[0])) * 10.0 ** rng.integers(-9, 3, size=step.sizes[0])
    found, error = convolve(step, values)
    matrix = dense(step)
    largest = np.abs(matrix).sum(axis=1).max() * np.abs(values).max()
    for row, own, off in zip(values, found, error, strict=True):
        for weights, computed, bound in zip(matrix, own, off, strict=True):
            exact = sum((Fraction(w) * Fraction(x) for w, x in zip(weights, row, strict=True)), Fraction(0))
            assert abs(Fraction(computed) - exact) <= Fraction(bound)
            assert bound <= 4e-15 * (abs(computed) + 1e-4 * largest)


def test_groups_are_cut_joined_and_added() -> None:
    errors = np.array([[3.0, 4.0, 0.0, 12.0]])
    one = Norms.of(errors)
    assert one.total[0] == pytest.approx(13.0, rel=1e-4)
    two = Norms.join([one.part(0, 2), Norms.of(errors[:, 2:])])
    assert [group.size for group in two.groups] == [2, 2]
    assert two.groups[1].bound[0] == pytest.approx(12.0, rel=1e-4)
    total = two.through(SumStep(2, (1, 1)))
    assert total.groups[0].bound[0] == pytest.approx(13.0 + 12.0, rel=1e-4)
    np.testing.assert_allclose(two.each()[0], [13.0, 13.0, 12.0, 12.0], rtol=1e-4)
    assert np.isnan(Norms.of(np.array([[np.inf, 1.0]])).total[0])
    assert Norms.of(np.array([[1e-200, 1e-200]])).total[0] >= 1.4e-200


@pytest.fixture
def deep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every network counts as deep."""
    monkeypatch.setattr(bounder, "DEEP", 0)


@pytest.mark.usefixtures("deep")
@pytest.mark.parametrize("kind", KINDS)
def test_random_networks_against_exact_rationals(kind: str) -> None:
    for seed in range(3):
        assert violations(random_case(seed, kind=kind), points=4) == []


@pytest.mark.usefixtures("deep")
@pytest.mark.parametrize("seed", range(12))
def test_branching_graphs_against_samples(seed: int) -> None:
    case = BranchingCase.random(seed)
    assert not list(false_claims(replace(case, room=(0, 3, 100)[seed % 3]), 500))


@pytest.mark.usefixtures("deep")
@pytest.mark.parametrize("name", ["half the norm", "no norm of added errors", "no norm at the logits"])
def test_planted_mistakes_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "half the norm":
        true = deep_bounds.spectral_norm
        monkeypatch.setattr(deep_bounds, "spectral_norm", lambda step: 0.3 * true(step))
    elif name == "no norm of added errors":
        monkeypatch.setattr(Norms, "plus", lambda self, errors: self)
    else:
        monkeypatch.setattr(Norms, "total", property(lambda self: 0.0 * self.groups[0].before))
    assert any(
        kind in ("value", "margin")
        for seed in range(40)
        for kind in false_claims(replace(BranchingCase.random(seed), room=0), 200)
    )


def test_norms_decide_what_remainders_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a single theta of 18 random layers, only rounding is left; carried by absolute weights, it hides all."""
    rng, sizes = np.random.default_rng(7), [9, *[400] * 18, 3]
    layers = [(rng.normal(size=(b, a)) * np.sqrt(2.0 / a), 0.01 * rng.normal(size=b)) for a, b in pairwise(sizes)]
    graph = make_graph(layers, (1, 3, 3))
    perturbed = compose([parse_spec("brightness:0.1..0.3")], rng.random((1, 3, 3)) / 2)
    options = AttentionOptions(Filter.parse("identity"), Distance.parse("l2"))
    logits = graph.logits(perturbed.image([0.2])[None])[0]
    margin, place = logits[0] - logits[1:].max(), np.full((1, 1), 0.5)
    widths = []
    for limit in (16, 100):
        monkeypatch.setattr(bounder, "DEEP", limit)
        low, high = Bounder(graph, perturbed, 0, options).bound(0, place, place, np.array([False])).margin[0]
        assert low <= margin <= high
        widths.append(high - low)
    assert widths[0] < 0.1 * abs(margin) < widths[1]
