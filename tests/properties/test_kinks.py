"""Attention on kinks: where several neurons bend together, patterns that belong to no region may meet."""

import numpy as np
import pytest

from steadygaze.labels import Verdict
from support.networks.layered_models import ask

IMAGE = np.array([[[0.5, 0.25]]])
SPEC = "patch:x=0,y=0,w=1,h=1:-0.5..0.5"


def pair(twist: float) -> list:
    """h1 = ReLU(x − 1/2 − twist) and h2 = ReLU(1/2 + twist − x): one of them is active, never both, nor none.

    Logits (h1 + h2 + 9, h1 − h2): where both were active, or none, the map would be another one than on either side.
    """
    first = (np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-0.5 - twist, 0.5 + twist]))
    return [first, (np.array([[1.0, 1.0], [1.0, -1.0]]), np.array([9.0, 0.0]))]


def test_two_neurons_that_bend_together_are_bounded_by_all_patterns_that_could_meet() -> None:
    """At the kink h1 and h2 change places. On the sides ai is 0 or 2; with one pattern for both it is between."""
    result = ask(pair(0.125), IMAGE, [SPEC], property="ar", delta=2.5, dist="l1")
    assert result.tiling.answers.slivers > 0.0
    assert result.verdict is Verdict.ROBUST
    assert result.areas["AR"] == (1.0, 1.0)


def test_a_threshold_that_only_the_kink_exceeds_is_not_called_robust() -> None:
    """h1 and h2 as above with weights (4, 4) in the first logit: (1, 1) and (0, 0) are farther from the map at zero."""
    layers = pair(0.125)
    layers[1] = (np.array([[4.0, -4.0], [0.0, 0.0]]), np.array([9.0, 0.0]))
    result = ask(layers, IMAGE, [SPEC], property="ar", delta=1.0, dist="l1")
    # The gradient is 4 on both sides; with none or both active it would be 0 or 8.
    assert result.answer.sets["AR"] == len(result.tiling.answers.regions)
    assert result.tiling.answers.kink_inconsistency == pytest.approx(4.0)
    assert result.verdict is Verdict.UNDECIDED
    assert result.areas["AR"][0] == pytest.approx(1.0, abs=1e-9) and result.areas["AR"][0] < 1.0


def test_absolute_values_of_maps_are_left_to_bounds() -> None:
    result = ask(pair(0.125), IMAGE, [SPEC], property="ar", delta=2.5, dist="l1", filter="abs")
    assert np.isinf(result.tiling.answers.kink_inconsistency)
