"""Laws of rankings: a place is claimed only if it holds for all values within the bounds."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.compare.overlay import lost_share
from steadygaze.compare.ranking import RISK, ROBUSTNESS, find_contrary, make_rankings, rank, value_of
from steadygaze.labels import Property
from support.networks.compared_networks import answered

shares = st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 1.0])
bounds = st.tuples(shares, shares).map(lambda pair: (min(pair), max(pair)))
measures = st.sampled_from(["CR", "nearest IR"])


@given(st.lists(st.tuples(bounds, st.floats(0.0, 1.0)), min_size=2, max_size=6), measures)
def test_the_true_rank_is_within_the_range(given_values, measure):
    values = [value for value, _ in given_values]
    truth = [low + at * (high - low) for (low, high), at in given_values]
    ranking = rank(measure, "", values)
    assert sorted(one.result for one in ranking.ranks) == list(range(len(values)))
    for one in ranking.ranks:
        own = truth[one.result]
        before = sum(other < own if measure != "CR" else other > own for other in truth)
        equal = sum(other == own for other in truth)
        assert one.first <= before + equal and before + 1 <= one.last
        assert 1 <= one.first <= one.last <= len(values)


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6, unique=True), measures)
def test_known_values_have_one_rank_each(values, measure):
    ranks = rank(measure, "", [(value, value) for value in values]).ranks
    assert [(one.first, one.last, one.is_tied) for one in ranks] == [
        (place, place, False) for place in range(1, len(values) + 1)
    ]
    ordered = [values[one.result] for one in ranks]
    assert ordered == sorted(values, reverse=measure == "CR")


@given(st.lists(bounds, min_size=2, max_size=5), measures)
def test_a_proved_order_excludes_the_other_one(values, measure):
    ranking = rank(measure, "", values)
    place = {one.result: one for one in ranking.ranks}
    for a in range(len(values)):
        for b in range(len(values)):
            if ranking.is_before(a, b):
                assert not ranking.is_before(b, a) and place[a].first < place[b].last and place[b].first > 1
                order = [one.result for one in ranking.ranks]
                assert order.index(a) < order.index(b)
    assert not find_contrary(ranking, ranking)


def test_ties_and_open_orders_are_told_apart():
    ranks = rank("CR", "", [(0.5, 0.5), (0.5, 0.5), (0.75, 0.875)]).ranks
    assert [(one.result, one.first, one.last, one.is_tied) for one in ranks] == [
        (2, 1, 1, False), (0, 2, 3, True), (1, 2, 3, True),
    ]  # fmt: skip
    assert not any(one.is_tied for one in rank("CR", "", [(0.5, 0.6), (0.5, 0.6)]).ranks)


def test_no_violation_is_farther_than_any():
    ranks = rank("nearest MR", "", [(math.inf, math.inf), (0.25, 0.25), (0.5, math.inf)]).ranks
    assert [(one.result, one.first, one.last) for one in ranks] == [(1, 1, 1), (2, 2, 3), (0, 2, 3)]


def test_contrary_orders_are_found_in_the_direction_of_the_first():
    first, second = rank("CR", "", [(0.9, 0.9), (0.1, 0.2)]), rank("AR", "", [(0.3, 0.4), (0.5, 0.6)])
    assert find_contrary(first, second) == ((0, 1),) and find_contrary(second, first) == ((1, 0),)
    assert find_contrary(first, rank("AR", "", [(0.3, 0.5), (0.5, 0.6)])) == ()


def test_measures_follow_what_differs():
    results = [answered(seed, "moving") for seed in (0, 1)]
    assert {one.measure for one in make_rankings(results, ["network"])} == set(ROBUSTNESS)
    assert {one.measure for one in make_rankings(results, ["perturbation"])} == set(RISK)
    assert {one.measure for one in make_rankings(results, ["network", "perturbation"])} == {*ROBUSTNESS, *RISK}
    assert {one.measure for one in make_rankings(results, ["perturbation", "delta"])} == set(RISK)
    assert {one.measure for one in make_rankings(results, ["delta"])} == set(ROBUSTNESS)
    assert make_rankings(results, []) == ()


@pytest.mark.parametrize("kind", ["kept", "moving", "line", "solid"])
@pytest.mark.parametrize("seed", range(4))
def test_values_are_those_of_the_result(kind, seed):
    result = answered(seed, kind)
    for name in ("CR", "MR", "AR", "IR", "CR&AR"):
        assert value_of(result, name) == result.areas[name]
    low, high = value_of(result, "MR or IR")
    kept = result.areas["CR&AR"]
    assert low <= 1.0 - kept[0] + 1e-12 and high == pytest.approx(1.0 - kept[0], abs=1e-12)
    assert max(result.areas["MR"][0], result.areas["IR"][0]) <= low + 1e-12
    assert value_of(result, "nearest IR") == (result.nearest["AR"].low, result.nearest["AR"].high)
    assert lost_share(result.answer.shares, Property.CR) == result.areas["MR"]
