"""Shares of a search: they enclose the exact ones, and a complete bfs has shares like a map."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import steadygaze
from steadygaze import Budget, Limits, StoreError, load
from steadygaze.engines import run
from steadygaze.engines.search.search_engines import read_search_arrays
from steadygaze.labels import Verdict
from steadygaze.question import make_question
from support.networks.search_problems import random_problem, search_alone
from support.oracles.attention_by_definition import Question
from support.oracles.exact_shares import NAMES, ExactShares

NARROW = 1e-6
CASES = [(d, seed) for d, count in ((1, 16), (2, 32), (3, 16)) for seed in range(count)]


def truth_of(seed: int, dimension: int) -> tuple[ExactShares, float]:
    problem = random_problem(seed, dimension)
    truth = ExactShares(problem.compound, problem.label, Question())
    levels = truth.levels()
    return truth, levels[len(levels) // 2]


@pytest.mark.parametrize(("dimension", "seed"), CASES)
def test_shares_of_a_whole_search_are_narrow_and_true(dimension: int, seed: int) -> None:
    """Regions of several labels count by their parts, kinks are added up: every label, in one to three parameters."""
    truth, delta = truth_of(seed, dimension)
    result = search_alone(random_problem(seed, dimension, delta=delta), method="bfs")
    exact, found = truth.shares(delta), result.areas
    assert result.tiling.is_whole
    for name in NAMES:
        low, high = found[name]
        assert low <= exact[name] <= high, name
    tied = float(exact["tied"])
    doubtful = sum(one.region.volume for one in result.tiling.visited if one.is_doubtful)
    if doubtful == 0.0 and result.sliver_share is not None:
        assert result.sliver_share < NARROW
        assert all(found[name][1] - found[name][0] <= NARROW + tied for name in NAMES)
    else:
        assert dimension > 1 or tied or doubtful, "only uncertain patterns may make shares unknown"


@pytest.mark.parametrize(("dimension", "seed"), CASES[::3])
def test_shares_of_a_partial_search_are_true(dimension: int, seed: int) -> None:
    truth, delta = truth_of(seed, dimension)
    problem = random_problem(seed, dimension, delta=delta)
    result = run(problem, "bfs", budget=Budget(Limits(max_regions=2)))
    exact = truth.shares(delta)
    for name in NAMES:
        low, high = result.areas[name]
        assert low <= exact[name] <= high
    visited = sum(one.region.volume for one in result.tiling.visited)
    assert sum(result.areas[name][0] for name in ("CR", "MR")) <= visited + 1e-9


def test_most_shares_are_known() -> None:
    """The oracle above is not satisfied by [0, 1]."""
    known = 0
    for dimension, seed in CASES[::4]:
        _, delta = truth_of(seed, dimension)
        known += search_alone(random_problem(seed, dimension, delta=delta), method="bfs").sliver_share is not None
    assert known > 0.8 * len(CASES[::4])


@pytest.mark.parametrize(
    "specs",
    [
        ["brightness:0..0.3"],
        ["brightness:0..0.3", "patch:x=12,y=12,w=4,h=4"],
        ["translate:dx=2:0..0.5", "brightness:0..0.1"],
        ["translate:dx=1:0..0.2", "patch:x=12,y=12,w=4,h=4:0..0.2", "brightness:0..0.05"],
    ],
)
def test_shares_agree_with_the_map(specs: list[str]) -> None:
    question = make_question("M-FNN-100", "mnist:69990", specs, delta="25%")
    found, mapped = run(question, "bfs"), run(question, "map")
    assert found.tiling.is_whole and found.sliver_share is not None and found.sliver_share < NARROW
    for name, (low, high) in mapped.areas.items():
        if name != "undecided":
            assert found.areas[name][0] <= high and low <= found.areas[name][1]
            assert found.areas[name][1] - found.areas[name][0] < NARROW


def test_a_proof_for_every_theta_settles_the_share() -> None:
    found = steadygaze.search("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], method="bfs", property="cr")
    assert found.verdict is Verdict.ROBUST
    assert found.areas["CR"] == (1.0, 1.0) and found.areas["MR"] == (0.0, 0.0)
    unconfirmed = replace(found, tiling=replace(found.tiling, confirmation=None))
    assert unconfirmed.areas["CR"][0] < 1.0 == unconfirmed.areas["CR"][1]


def test_shares_are_stored_and_checked(tmp_path: Path) -> None:
    result = steadygaze.search("M-FNN-100", "mnist:69990", ["brightness:0..0.2"], method="bfs", delta=3.0)
    folder = result.save(tmp_path / "out")
    assert load(folder).areas == result.areas and result.sliver_share is not None
    path = folder / "regions.npz"
    with np.load(path) as stored:
        arrays = dict(stored)
    shares = arrays["shares"].copy()
    shares[[0, 2]] = shares[[2, 0]]  # AR and IR exchanged
    np.savez_compressed(path, **arrays | {"shares": shares})
    with pytest.raises(StoreError):
        load(folder)


def test_searches_without_stored_shares_still_load(tmp_path: Path) -> None:
    result = steadygaze.search("M-FNN-100", "mnist:69990", ["brightness:0..0.02"], method="bfs", property="ar")
    arrays = result.tiling.arrays()
    earlier = {name: array for name, array in arrays.items() if name != "shares"}
    path = tmp_path / "regions.npz"
    np.savez_compressed(path, **earlier)
    assert read_search_arrays(path)["shares"].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0, 1]
