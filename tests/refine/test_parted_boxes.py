"""Boxes parted by planes: shares of half-spaces, proofs on either side, and questions with four parameters."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import factorial

import numpy as np
import pytest

import steadygaze as sg
from steadygaze.engines.refine import parted_boxes
from steadygaze.engines.refine.boxes import State
from steadygaze.engines.refine.pointwise import PointPasses
from steadygaze.engines.refine.self_check import parted_contradictions
from steadygaze.errors import StoreError
from support.networks.dense_files import write_dense

LIGHTS = [f"patch:x={n},y=0,w=1,h=1:0..0.5" for n in range(4)]


def exact_share(slopes, offset):
    """The share of [−1, 1]^d where slopes · e + offset > 0, in rationals."""
    widths = [2 * abs(Fraction(float(slope))) for slope in slopes if slope]
    end = sum(widths, Fraction(0)) / 2 + Fraction(float(offset))
    if not widths:
        return Fraction(int(offset > 0))
    corners = product((0, 1), repeat=len(widths))
    powers = [
        (-1) ** sum(corner) * max(end - sum(w * v for w, v in zip(widths, corner, strict=True)), 0) ** len(widths)
        for corner in corners
    ]
    return sum(powers, Fraction(0)) / factorial(len(widths)) / Fraction(np.prod([Fraction(w) for w in widths]))


def test_shares_of_halfspaces_enclose_exact_ones():
    random = np.random.default_rng(4)
    for case in range(200):
        d = 1 + case % 5
        slopes = random.normal(size=d) * 10.0 ** random.integers(-4, 2, d)
        if case % 3 == 0:
            slopes[random.integers(d)] = 0.0
        reach = np.abs(slopes).sum()
        offset = random.choice([0.0, reach, -reach]) if case % 7 == 0 else reach * random.uniform(-1.1, 1.1)
        (low,), (high,) = parted_boxes.halfspace_shares(slopes[None], np.array([offset]))
        share = exact_share(slopes, offset)
        assert Fraction(float(low)) <= share <= Fraction(float(high))
        if slopes.any() and case % 7 and np.abs(slopes[slopes != 0.0]).min() > 0.1 * np.abs(slopes).max():
            assert high - low < 1e-6


def test_halfspaces_without_numbers_say_nothing():
    low, high = parted_boxes.halfspace_shares(
        np.array([[np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0]]), np.array([0.0, 0.0, 0.0])
    )
    assert low.tolist() == [0.0] * 3 and high.tolist() == [1.0] * 3


@pytest.fixture(scope="module")
def stalled(tmp_path_factory):
    """Random 10-2-2 networks with four parameters: name and image."""
    found = {}
    for seed in (0, 2, 5):
        random = np.random.default_rng(seed)
        layers = [(random.normal(size=(b, a)), 0.5 * random.normal(size=b)) for a, b in ((10, 2), (2, 2))]
        path = tmp_path_factory.mktemp("stalled") / f"{seed}.onnx"
        found[seed] = write_dense(path, layers), random.random((1, 1, 10)) * 0.5
    return found


@pytest.fixture(scope="module")
def refined(stalled):
    return {seed: sg.verify(*asked, LIGHTS, method="refine", until=0.01, threads=1) for seed, asked in stalled.items()}


@pytest.mark.parametrize("seed", [0, 2, 5])
def test_a_plane_through_four_parameters_needs_few_boxes(refined, seed):
    """Halving alone left 1.1 %, 1.5 % and everything open after about a million boxes."""
    result = refined[seed]
    assert result.areas["undecided"][1] <= 0.01 and len(result.tiling.boxes) < 500
    thetas = np.random.default_rng(9).random((20_000, 4)) * 0.5
    passes = PointPasses(result.question)
    keeps, same = passes.margins(thetas) > 0.0, passes.inconsistencies(thetas) <= result.question.own_limit
    for name, share in (("CR", keeps), ("AR", same), ("CR&AR", keeps & same), ("MR&AR", ~keeps & same)):
        low, high = result.areas[name]
        assert low - 0.01 <= share.mean() <= high + 0.01


def test_stored_planes_answer_the_same(refined, tmp_path):
    result = refined[0]
    assert len(result.tiling.parted) == int((result.tiling.boxes.state == State.PARTED).sum()) > 0
    folder = result.save(tmp_path / "result")
    loaded = sg.load(folder)
    assert loaded.summary() == result.summary()
    assert loaded.with_delta("60%").areas == result.with_delta("60%").areas
    parted = replace(result.tiling.parted, slack=-1.0 - result.tiling.parted.slack)
    damaged = replace(result, tiling=replace(result.tiling, parted=parted))
    with pytest.raises(StoreError, match="negative slack"):
        sg.load(damaged.save(tmp_path / "damaged"))


def test_planes_beside_violations_give_witnesses_and_distances(refined):
    result = refined[2]
    nearest = result.nearest["AR"]
    assert 0.2 < nearest.low <= nearest.high < 0.3
    assert result.at(nearest.theta).inconsistency > result.question.own_limit


@pytest.mark.parametrize("fault", ["swapped", "shifted"])
def test_the_self_check_finds_wrong_planes(refined, fault):
    result, parted = refined[2], refined[2].tiling.parted
    boxes = result.tiling.boxes
    assert not parted_contradictions(result.question, boxes, parted, 500)
    wrong = {
        "swapped": replace(parted, inconsistency=parted.inconsistency[:, ::-1]),
        "shifted": replace(parted, offset=parted.offset + 0.5 * np.abs(parted.slopes).sum(axis=1)),
    }[fault]
    assert parted_contradictions(result.question, boxes, wrong, 500)


def test_a_box_is_parted_only_where_both_sides_are_decided(refined):
    result = refined[0]
    label, attention = result.tiling.parted.codes(result.question.own_limit)
    assert np.isin(label, (0, 2)).all() and np.isin(attention, (0, 2)).all()
    strips = result.tiling.parted.strips
    assert (strips > 0.0).all() and strips.max() <= max(0.005, parted_boxes.LEAST_STRIP)


def test_resumed_runs_part_boxes_again(stalled, refined, tmp_path):
    coarse = sg.verify(*stalled[0], LIGHTS, method="refine", until=0.5, threads=1)
    folder = coarse.save(tmp_path / "coarse")
    fine = sg.verify(*stalled[0], LIGHTS, method="refine", until=0.01, threads=1, resume=folder)
    assert fine.areas["undecided"][1] <= 0.01
    for name in ("CR", "AR"):
        assert fine.areas[name][0] <= refined[0].areas[name][1] and refined[0].areas[name][0] <= fine.areas[name][1]
