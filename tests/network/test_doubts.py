"""Errors at the bends of a layer: no real values within the errors contradict the claims about bits and outputs."""

import numpy as np
import pytest

from steadygaze.network.doubts import (
    count_kinks,
    doubtful_bits,
    is_on_kink,
    kink_functions,
    passed_errors,
    pattern_errors,
    spread_over_windows,
)
from steadygaze.network.joins import Winner
from steadygaze.network.layers import CARRIED, ENTRY, RELU, Layer
from steadygaze.network.operators import Relu
from support.networks.branching import Builder, dense

MIXED = Layer(
    np.array([RELU, RELU, ENTRY, ENTRY, ENTRY, ENTRY, ENTRY, CARRIED], np.uint8),
    np.array([-1, -1, 0, 0, 0, 1, 1, -1], np.int32),
)


def window_sums(outputs: np.ndarray) -> np.ndarray:
    """The input of the next layer: the entries of each window added up."""
    return np.stack(
        [*outputs[:, :2].T, outputs[:, 2:5].sum(axis=1), outputs[:, 5:7].sum(axis=1), outputs[:, 7]], axis=1
    )


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Computed values (1, n), errors (1, n), and real values (4000, n) within them."""
    rng = np.random.default_rng([41, seed])
    values = rng.integers(-3, 4, size=(1, 8)) / 2.0
    errors = rng.choice([0.0, 0.25, 0.5, 1.0], size=(1, 8))
    shares = rng.choice([-1.0, 1.0, 0.5, 0.0], size=(4000, 8))
    return values, errors, values + shares * errors


@pytest.mark.parametrize("seed", range(60))
def test_bits_without_doubt_are_those_of_all_real_values(seed: int) -> None:
    values, errors, real = drawn(seed)
    doubts = doubtful_bits(MIXED, values, errors)
    assert ((MIXED.bits(real) == MIXED.bits(values)) | doubts).all()
    assert not doubts[:, 7].any()


@pytest.mark.parametrize("seed", range(60))
def test_outputs_are_off_by_no_more_than_said(seed: int) -> None:
    values, errors, real = drawn(seed)
    difference = np.abs(window_sums(MIXED.apply(real)) - window_sums(MIXED.apply(values)))
    assert (difference <= window_sums(passed_errors(MIXED, values, errors))).all()


@pytest.mark.parametrize("seed", range(60))
def test_a_bend_adds_no_more_than_said(seed: int) -> None:
    """Under the computed pattern, real inputs give the real outputs up to the errors of doubtful neurons."""
    values, errors, real = drawn(seed)
    under_pattern = np.where(MIXED.bits(values), real, 0.0)
    difference = np.abs(window_sums(MIXED.apply(real)) - window_sums(under_pattern))
    assert (difference <= window_sums(pattern_errors(MIXED, values, errors)) + 1e-15).all()


def test_exact_values_are_certain_even_in_a_tie() -> None:
    values, none = np.zeros((1, 8)), np.zeros((1, 8))
    assert not doubtful_bits(MIXED, values, none).any()
    assert not pattern_errors(MIXED, values, none).any()
    np.testing.assert_array_equal(is_on_kink(MIXED, values, none)[0], [True, True] + 6 * [False])


def test_nan_is_in_doubt() -> None:
    values = np.array([[1.0, 1.0, np.nan, 2.0, 1.0, 3.0, 1.0, 0.0]])
    assert doubtful_bits(MIXED, values, np.full((1, 8), 1e-9))[0, 2:5].any()


def test_distances_to_kinks() -> None:
    values, bits = np.array([[1.0, -2.0, 3.0, 5.0, 4.5, 0.0, 0.0, 7.0]]), np.zeros((1, 8), dtype=bool)
    bits[0, [0, 3, 5, 7]] = True
    distances, errors = kink_functions(MIXED, bits, values, np.full((1, 8), 0.25))
    np.testing.assert_array_equal(distances, [[1.0, -2.0, 2.0, 0.0, 0.5, 0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(errors, [[0.25, 0.25, 0.5, 0.0, 0.5, 0.0, 0.5, 0.0]])


def test_the_bits_of_a_window_go_together() -> None:
    chosen = np.array([[True, False, False, True, False, False, False, False]])
    np.testing.assert_array_equal(spread_over_windows(MIXED, chosen)[0], [1, 0, 1, 1, 1, 0, 0, 0])
    np.testing.assert_array_equal(spread_over_windows(Layer.relus(8), chosen), chosen)


def test_ties_at_zero_are_not_counted() -> None:
    builder = Builder((1, 2, 2))
    rectified = builder.add(Relu(), 0)
    builder.add(Winner(np.array([[0, 1], [2, 3]]), (1, 2)), rectified)
    dense(np.random.default_rng(0), builder, 2, 2)
    graph = builder.graph()
    assert count_kinks(graph, np.array([0.0, 0.0, 0.5, 0.5])) == (2, 1)
    assert count_kinks(graph, np.array([0.25, 0.5, 0.5, 0.25])) == (0, 0)
