"""Bounds of graphs with branches and windows: all samples lie inside, and planted errors are found."""

import numpy as np
import pytest

from steadygaze.bounds.decisions import OFF, ON, OPEN, decide
from steadygaze.bounds.forms import Forms, HullCorners
from steadygaze.network.layers import CARRIED, ENTRY, RELU, Layer
from support.readers.sampled_enclosures import BranchingCase, false_claims, is_exact
from support.stand_ins.unsound_windows import PLANTED

SEEDS = range(24)
SAMPLES = 2_000  # of each of the five boxes of a graph


@pytest.mark.parametrize("seed", SEEDS)
def test_ten_thousand_samples_lie_in_the_bounds(seed: int) -> None:
    case = BranchingCase.random(seed)
    assert is_exact(case)
    assert not list(false_claims(case, SAMPLES))


@pytest.mark.parametrize("seed", SEEDS)
def test_points_are_decided(seed: int) -> None:
    """At a single theta only rounding is left: every open bit is a tie, or a ReLU at zero."""
    case = BranchingCase.random(seed)
    bounder = case.bounder()
    found = bounder.bound(0, case.low[-1:], case.high[-1:])
    assert found.margin[0, 1] - found.margin[0, 0] < 1e-6
    inputs, _ = case.graph.trace(case.perturbed.images(case.thetas(4, 1, np.random.default_rng(0))))
    passed = bounder.pass_forward(0, case.low[-1:], case.high[-1:])
    for layer, values, bits in zip(case.graph.layers, inputs, passed.bits, strict=True):
        for place in np.flatnonzero(bits[0] == OPEN):
            first, end = (ends[place] for ends in layer.ends)
            rivals = values[0, first:end] if layer.kind[place] == ENTRY else np.array([values[0, place], 0.0])
            assert np.sort(rivals)[-1] - np.sort(rivals)[-2] < 1e-6


@pytest.mark.parametrize("name", PLANTED)
def test_planted_mistakes_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, kind = PLANTED[name]
    plant(monkeypatch)
    assert any(kind in false_claims(BranchingCase.random(seed), 200) for seed in range(60))


def window(*rows: list[float], remainder: list[float] | None = None, corners: HullCorners | None = None) -> tuple:
    """A layer of one window whose entries have these forms (centre, coefficients …), decided."""
    table = np.array(rows).T[None].copy()
    layer = Layer(np.full(len(rows), ENTRY, np.uint8), np.zeros(len(rows), np.int32))
    rest = np.array([remainder or [0.0] * len(rows)])
    return layer, decide(layer, Forms(table, rest, corners), table.shape[1] - 1)


def test_differences_decide_what_bounds_of_values_do_not() -> None:
    _, found = window([1.0, 5.0], [0.5, 5.0], [1.0, 4.0])
    np.testing.assert_array_equal(found.bits, [[OPEN, OFF, OPEN]])
    assert found.unstable[0] == 1
    np.testing.assert_allclose(found.pull, [[1.0]])


def test_of_equal_entries_the_first_wins() -> None:
    _, found = window([1.0, 2.0], [1.0, 2.0], [0.5, 2.0])
    np.testing.assert_array_equal(found.bits, [[ON, OFF, OFF]])
    assert found.unstable[0] == 0
    np.testing.assert_array_equal(found.output.forms[0], [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    np.testing.assert_array_equal(found.output.remainder, [[0.0, 0.0, 0.0]])
    # With a remainder nobody knows, but nothing can be split there either.
    _, found = window([1.0, 2.0], [1.0, 2.0], remainder=[0.0, 1e-12])
    np.testing.assert_array_equal(found.bits, [[OPEN, OPEN]])
    assert found.unstable[0] == 1


def test_two_candidates_are_enclosed_like_a_relu() -> None:
    """max(e, −e) = |e| on [−1, 1]: the mean of both is 0, and |e| exceeds it by at most 1."""
    _, found = window([0.0, 1.0], [0.0, -1.0])
    total = found.output.forms[0].sum(axis=1)
    np.testing.assert_allclose(total, [0.5, 0.0])
    np.testing.assert_allclose(found.output.remainder.sum(), 0.5)


def test_corners_decide_what_boxes_do_not() -> None:
    """Entry 1 beats entry 0 on the triangle above the diagonal only."""
    points = np.array([[[-1.0, -0.5], [-1.0, 1.0], [0.5, 1.0]]])
    corners = HullCorners(points, np.zeros((1, 2)))
    rows = ([0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(window(*rows)[1].bits, [[OPEN, OPEN]])
    np.testing.assert_array_equal(window(*rows, corners=corners)[1].bits, [[OFF, ON]])


def test_what_is_not_known_stays_open() -> None:
    with np.errstate(invalid="ignore"):
        _, found = window([np.nan, 1.0], [0.0, 1.0])
    np.testing.assert_array_equal(found.bits, [[OPEN, OPEN]])
    assert np.isinf(found.output.remainder).any()
    low, high = found.output.bounds()
    assert np.isinf(low).any()
    assert np.isinf(high).any()


def test_carried_values_pass_unchanged() -> None:
    layer = Layer(np.array([RELU, CARRIED], np.uint8), np.full(2, -1, np.int32))
    values = Forms(np.array([[[0.0, 0.0], [1.0, 1.0]]]), np.array([[0.25, 0.25]]))
    found = decide(layer, values, 1)
    np.testing.assert_array_equal(found.bits, [[OPEN, ON]])
    np.testing.assert_array_equal(found.output.forms[0, :, 1], [0.0, 1.0])
    np.testing.assert_allclose(found.output.remainder[0, 1], 0.25)
    np.testing.assert_allclose(found.pull, [[1.0]])
    assert found.unstable[0] == 1
