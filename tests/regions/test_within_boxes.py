"""Regions inside boxes are those of the full map, cut by the boxes: the same areas, patterns and logits."""

import numpy as np
import pytest

from steadygaze.budget import Budget, Limits
from steadygaze.compound import Compound
from steadygaze.errors import InternalError
from steadygaze.polytopes import Cut
from steadygaze.question import make_question
from steadygaze.regions import subdivide as engine
from steadygaze.regions.check import check_map
from steadygaze.regions.region import join_region_sets, take_regions
from steadygaze.regions.subdivide import subdivide
from support.networks.search_problems import random_problem
from support.readers.boxed_maps import assert_same_map, assert_within, halved, inside

PATCH = "patch:x=12,y=12,w=4,h=4"
BUNDLED = {
    "one parameter": ("M-FNN-100", ("brightness",)),
    "knots": ("M-FNN-100", ("translate:dy=2", "brightness:0..0.5")),
    "convolutions": ("M-CNN-S", ("brightness:0.3..0.34", f"{PATCH}:0.3..0.34")),
    "three": ("M-FNN-100", ("translate:dy=2:0.5..1.25", "brightness:0.3..0.4", f"{PATCH}:0.3..0.4")),
}


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_small_problems(seed: int, dimension: int) -> None:
    compound = random_problem(seed, dimension).compound
    boxes = halved(compound, 5, np.random.default_rng(seed))
    found = inside(compound, boxes)
    assert found.complete.all() and found.regions.stopped is None
    assert_within(boxes, found)
    assert_same_map(compound, found.regions, subdivide(compound))
    assert np.array_equal(found.regions.cuts[: len(boxes.cuts)], boxes.cuts)
    assert (found.regions.cuts[len(boxes.cuts) :, 0] == Cut.NEURON).all()
    check_map(compound, found.regions)


@pytest.fixture(scope="module", params=list(BUNDLED))
def compound(request: pytest.FixtureRequest) -> Compound:
    model, specs = BUNDLED[request.param]
    return make_question(model, "mnist:69990", list(specs)).compound


@pytest.mark.parametrize("times", [0, 2, 7])
def test_bundled_networks(compound: Compound, times: int) -> None:
    whole = subdivide(compound)
    boxes = halved(compound, times)
    found = inside(compound, boxes, threads=2)
    assert_within(boxes, found)
    assert_same_map(compound, found.regions, whole)
    if times == 0:
        assert len(found.regions) == len(whole)
    one = inside(compound, boxes)
    for name in ("cuts", "cell", "pattern", "patterns", "clip", "clips", "logits", "doubtful"):
        assert np.array_equal(getattr(one.regions, name), getattr(found.regions, name)), name
    for name, value in vars(one.regions.accuracy).items():
        assert np.array_equal(value, getattr(found.regions.accuracy, name)), name
    assert np.array_equal(one.regions.polytopes.points, found.regions.polytopes.points)
    assert np.array_equal(one.box, found.box)


def test_neighbours_across_the_sides_of_boxes(compound: Compound) -> None:
    boxes = halved(compound, 2)
    found = inside(compound, boxes)
    pairs = found.regions.polytopes.touching()
    is_split = boxes.cuts[:, 0] == Cut.SPLIT
    lengths = np.bincount(pairs.cut, pairs.measure, len(found.regions.cuts) + 1)[1 : len(boxes.cuts) + 1]
    for number in np.flatnonzero(is_split):
        beside = (boxes.sides == number + 1).any(axis=(1, 2))
        axis = boxes.cuts[number, 1]
        expected = (boxes.volumes / (boxes.high - boxes.low)[:, axis])[beside].sum()
        assert lengths[number] == pytest.approx(expected, abs=1e-8)
    across = pairs.take(is_split[np.minimum(pairs.cut, len(boxes.cuts)) - 1] & (pairs.cut <= len(boxes.cuts)))
    regions = found.regions
    assert (found.box[across.first] != found.box[across.second]).all()
    same = regions.pattern[across.first] == regions.pattern[across.second]
    assert across.measure[~same].sum() < 1e-8


def test_some_of_the_boxes_are_checked(compound: Compound) -> None:
    boxes = halved(compound, 4)
    boxes = boxes.take(np.arange(0, len(boxes), 3))
    found = inside(compound, boxes)
    covered = float(boxes.volumes.sum())
    checked = check_map(compound, found.regions, expected_volume=covered, inside=500)
    assert checked.inside == min(500, len(found.regions)) and checked.beside > 20
    with pytest.raises(InternalError, match="add up"):
        check_map(compound, found.regions, expected_volume=covered + 1e-8)
    with pytest.raises(InternalError, match="add up"):
        check_map(compound, found.regions)
    largest = int(np.argmax(found.regions.polytopes.volumes))
    missing = take_regions(found.regions, np.delete(np.arange(len(found.regions)), largest))
    left = float(missing.polytopes.volumes.sum())
    with pytest.raises(InternalError, match="side"):
        check_map(compound, missing, expected_volume=left)


def test_a_box_with_a_single_region_is_checked() -> None:
    compound = make_question("M-FNN-100", "mnist:69990", ["brightness", PATCH]).compound
    boxes = halved(compound, 20).take(np.array([700_000]))
    found = inside(compound, boxes)
    assert len(found.regions) == 1
    check_map(compound, found.regions, expected_volume=float(boxes.volumes.sum()))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("times", "most"), [(2, 300), (8, 300), (8, 1)])
def test_whole_boxes_alone_count_when_the_budget_ends(
    times: int, most: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steadygaze.regions.walks.NODES", 100)
    model, specs = BUNDLED["knots"]
    compound = make_question(model, "mnist:69990", list(specs)).compound
    boxes = halved(compound, times)
    whole = inside(compound, boxes)
    part = inside(compound, boxes, budget=Budget(Limits(max_regions=most)), threads=threads)
    assert str(most) in part.regions.stopped
    assert not part.complete.all() and (times == 2 or most == 1 or part.complete.any())
    assert_within(boxes, part)
    check_map(compound, part.regions)
    kept = take_regions(whole.regions, np.flatnonzero(part.complete[whole.box]))
    assert len(part.regions) == len(kept)
    assert_same_map(compound, part.regions, kept)


def test_no_time_at_all() -> None:
    compound = random_problem(0, 2).compound
    boxes = halved(compound, 3)
    budget = Budget()
    budget.cancelled.set()
    nothing = inside(compound, boxes, budget=budget)
    assert nothing.regions.stopped == "interrupted" and len(nothing.regions) == 0 and not nothing.complete.any()
    found = inside(compound, boxes)
    joined = join_region_sets([nothing.regions, found.regions])
    assert joined.stopped == "interrupted" and len(joined) == len(found.regions)
    assert_same_map(compound, joined, found.regions)


def test_no_box_at_all() -> None:
    compound = random_problem(0, 2).compound
    found = inside(compound, halved(compound, 1).take(np.zeros(0, dtype=np.int64)))
    assert len(found.regions) == len(found.box) == len(found.complete) == 0 and found.regions.stopped is None


@pytest.mark.parametrize("dimension", [2, 3])
def test_sets_are_joined_while_boxes_are_still_split(dimension: int) -> None:
    """The second set has more rows of splits before its neurons than the first one."""
    for seed in range(6):
        compound = random_problem(seed, dimension).compound
        boxes = halved(compound, 2)
        first, rest = boxes.take(np.arange(2)), boxes.take(np.arange(2, len(boxes)))
        halves = rest.split(np.ones(len(rest), dtype=np.int64))
        parts = [inside(compound, first).regions, inside(compound, halves).regions]
        joined = join_region_sets(list(parts))
        assert len(joined) == len(parts[0]) + len(parts[1])
        assert np.array_equal(joined.cuts[: len(halves.cuts)], halves.cuts)
        assert len(np.unique(joined.patterns, axis=0)) == len(joined.patterns)
        check_map(compound, joined)
        assert_same_map(compound, joined, subdivide(compound))
        pairs = joined.polytopes.touching()
        lengths = np.bincount(pairs.cut, pairs.measure)
        assert lengths[: len(halves.cuts) + 1].sum() > 0.99
        more = np.concatenate([halves.cuts, [[Cut.SPLIT, 0, 0]]])
        assert np.array_equal(join_region_sets(list(parts), cuts=more).cuts[: len(more)], more)
        with pytest.raises(InternalError, match="begin differently"):
            join_region_sets([parts[0], parts[1]], cuts=more[1:])


def test_boxes_that_are_not_filled_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    compound = random_problem(1, 2).compound
    boxes = halved(compound, 6)
    original = engine.box_polytopes
    monkeypatch.setattr(engine, "box_polytopes", lambda low, high, sides: original(low, high - 1e-8, sides))
    with pytest.raises(InternalError, match="add up to"):
        inside(compound, boxes)
