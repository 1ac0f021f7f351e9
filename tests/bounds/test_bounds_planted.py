"""Unsound bounds, planted one at a time: the check that the true bounds pass must find each of them."""

import numpy as np
import pytest

from steadygaze.bounds.bounder import Bounder
from steadygaze.bounds.passes import Passed
from support.networks.bound_cases import KINDS, Case, random_case
from support.readers.enclosures import violations
from support.stand_ins.unsound_bounds import PLANTED

MOST_TRIALS = 80


def trial(number: int) -> Case:
    """Every kind of network in turn."""
    return random_case(1000 + number // len(KINDS), kind=KINDS[number % len(KINDS)])


@pytest.mark.parametrize("name", PLANTED)
def test_planted_unsound_bounds_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[name](monkeypatch)
    for number in range(MOST_TRIALS):
        # What a box is decided by must be seen to be wrong, not only what it is made of.
        if any("margin" in line or "inconsistency" in line for line in violations(trial(number), points=4)):
            return
    pytest.fail(f"not found in {MOST_TRIALS} trials")


def test_the_same_trials_pass_without_them() -> None:
    for number in range(0, MOST_TRIALS, 8):
        assert violations(trial(number), points=4) == []


def test_a_claim_that_is_not_a_number_is_not_accepted() -> None:
    case = trial(0)

    class Nothing(Bounder):
        def margin_bounds(self, passed: Passed) -> np.ndarray:
            return np.full((len(passed.last.forms), 2), np.nan)

    bounds = Nothing(case.graph, case.perturbed, case.label, case.options)
    assert any("margin" in line for line in violations(case, bounder=bounds, points=2))
