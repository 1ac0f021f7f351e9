"""Answers of a refinement: bounds that enclose the map, verdicts that claim no more, and every degenerate mixture."""

from dataclasses import replace

import numpy as np
import pytest

from steadygaze.engines.refine.boxes import State
from steadygaze.errors import InternalError, OptionError
from steadygaze.labels import Kept, Property, Stop, Verdict
from steadygaze.results.claims import Violation
from steadygaze.results.result import Result
from steadygaze.results.sample_check import confirmed
from support.stand_ins.made_up_refinements import (
    LINE,
    MOVING,
    MOVING_LINE,
    PLANE,
    blank,
    box_of_theta,
    four,
    full_map,
    made,
    with_tiling,
)

ROBUST = ("brightness:0..0.001",)
MADE = {
    "boxes": (PLANE, 8, ()),
    "all exact": (PLANE, 0, (0,)),
    "an exact knot cell": (MOVING, 6, (1,)),
    "one parameter": (LINE, 6, ()),
    "one parameter with knots": (MOVING_LINE, 4, (0,)),
}


@pytest.fixture(params=MADE, scope="module")
def pair(request: pytest.FixtureRequest) -> tuple:
    specs, levels, exact = MADE[request.param]
    return made(specs, levels, exact), full_map(specs, property="both", delta="25%")


def with_boxes(result: Result, **changes: np.ndarray) -> Result:
    return with_tiling(result, boxes=replace(result.tiling.boxes, **changes))


def test_shares_enclose_those_of_the_map(pair: tuple):
    ours, theirs = pair
    for name, (low, high) in theirs.areas.items():
        if name != "undecided":
            assert ours.areas[name][0] <= low + 1e-9 and high - 1e-9 <= ours.areas[name][1], name
    for name, (low, high) in theirs.kept_shares.items():
        assert ours.kept_shares[name][0] <= low + 1e-9 and high - 1e-9 <= ours.kept_shares[name][1]
    assert sum(sum(row) for row in ours.answer.shares.cells) == pytest.approx(1.0, abs=1e-12)
    assert sum(ours.answer.guarantee_shares.values()) == pytest.approx(1.0, abs=1e-12)
    assert ours.answer.guarantee_shares["undecided"] == pytest.approx(ours.areas["undecided"][0])


def test_exact_regions_alone_give_the_shares_of_the_map():
    ours, theirs = made(PLANE, 0, (0,)), full_map(PLANE, property="both", delta="25%")
    for name, bounds in theirs.areas.items():
        # Their error bounds differ a little: a box is walked in another way than the whole domain.
        assert ours.areas[name] == pytest.approx(bounds, abs=1e-9), name
    assert (ours.verdict, ours.answer.sets, ours.enough_delta) == (
        theirs.verdict, theirs.answer.sets, theirs.enough_delta
    )  # fmt: skip
    assert ours.boundary().reachable_share == pytest.approx(theirs.boundary().reachable_share, abs=1e-9)
    assert ours.answer.guarantee_shares["rounding-sound"] == 0.0


def test_another_delta_is_answered_from_the_enclosures():
    ours, theirs = made(MOVING, 6, (1,)), full_map(MOVING, property="both", delta="25%")
    for delta in ("3.0", "60%"):
        low, high = theirs.with_delta(delta).areas["AR"]
        bounds = ours.with_delta(delta).areas["AR"]
        assert bounds[0] <= low + 1e-9 and high - 1e-9 <= bounds[1]
    assert ours.with_delta("60%").areas["AR"][0] > ours.with_delta("3.0").areas["AR"][1]


def test_nearest_violations_enclose_those_of_the_map(pair: tuple):
    ours, theirs = pair
    for name in ("CR", "AR"):
        mine, exact = ours.nearest[name], theirs.nearest[name]
        assert mine.low <= exact.low + 1e-9 and mine.high >= exact.high - 1e-6
        if mine.theta is not None:
            point = ours.at(mine.theta)
            assert point.margin < 0.0 if name == "CR" else point.inconsistency > ours.answer.delta
            box = box_of_theta(ours, mine.theta)
            codes = ours.answer.label_codes if name == "CR" else ours.answer.attention_codes
            assert ours.tiling.boxes.state[box] == State.EXACT or codes[box] == Kept.NO


def test_the_threshold_that_is_enough_is_at_least_the_exact_one(pair: tuple):
    ours, theirs = pair
    assert ours.enough_delta is not None and ours.enough_delta >= theirs.enough_delta
    kept = ours.with_delta(ours.enough_delta)
    assert kept.areas["AR"] == (1.0 - kept.sliver_share, 1.0)


def test_the_reachable_part_lies_within_that_of_the_map(pair: tuple):
    ours, theirs = pair
    for wanted in ("cr", "ar", "both"):
        mine, exact = ours.boundary(wanted), theirs.boundary(wanted)
        assert mine.reachable_share <= exact.reachable_share + 1e-9
        assert mine.is_certain == (not len(mine.undecided))
    assert len(ours.boundary("ar").undecided) > 0 or ours.answer.guarantee_shares["undecided"] < 1e-6


def test_boxes_and_regions_touch_across_a_knot():
    result = made(MOVING, 6, (1,))
    found = result.boundary("cr")
    # The label is kept everywhere, so all of it hangs together, through both knots.
    assert found.reachable.all() and found.starts == 1 and not found.components


def test_robust_needs_every_box():
    result = made(ROBUST, 3)
    assert result.verdict is Verdict.ROBUST and result.areas["CR&AR"] == (1.0, 1.0)
    assert result.boundary().reachable_share == 1.0 and result.nearest["AR"].low == np.inf
    for unknown in ((-np.inf, np.inf), (np.nan, np.nan), (0.0, 1.0)):
        margin = result.tiling.boxes.margin.copy()
        margin[2] = unknown
        planted = with_boxes(result, margin=margin)
        assert planted.verdict_of(Property.CR) is Verdict.UNDECIDED
        assert planted.verdict_of(Property.AR) is Verdict.ROBUST
        assert planted.areas["CR"][0] == pytest.approx(1.0 - 1.0 / 8.0)
        assert planted.nearest["CR"].low == pytest.approx(2.0 / 8.0)


def test_nothing_known_is_undecided_and_nothing_more():
    result = blank(made(PLANE, 8))
    assert result.verdict is Verdict.UNDECIDED
    assert all(bounds == (0.0, 1.0) for name, bounds in result.areas.items() if name != "undecided")
    assert result.areas["undecided"] == (1.0, 1.0) and result.enough_delta is None
    assert (result.nearest["CR"].low, result.nearest["CR"].high) == (0.0, np.inf)
    assert result.witnesses == () and result.regions == () and result.region_at([0.5, 0.5]) is None
    found = result.boundary()
    assert found.farthest is None and len(found.undecided) == 1
    assert "Nothing is proved" in result.summary()["guarantee"]


def test_a_theta_that_violates_decides_the_verdict():
    theta = np.array([[1.0, 0.0]])
    result = blank(made(PLANE, 8), points=theta)
    assert result.verdict is Verdict.NOT_ROBUST
    assert result.nearest["CR"].low == 0.0 and result.nearest["CR"].high == pytest.approx(1.0)
    assert {witness.kind for witness in result.witnesses} == {Violation.LABEL, Violation.ATTENTION}
    assert "Single thetas are proved to violate" in result.summary()["guarantee"]
    # One that satisfies everything shows nothing, and the threshold counts.
    assert blank(result, points=np.zeros((1, 2))).verdict is Verdict.UNDECIDED
    assert blank(result, points=np.array([[0.5, 0.5]])).verdict_of(Property.CR) is Verdict.UNDECIDED
    assert blank(result, points=theta).with_delta(1e6).verdict_of(Property.AR) is Verdict.UNDECIDED


def test_a_theta_that_contradicts_its_box_is_a_bug():
    result = made(PLANE, 8)
    margin = np.tile([1.0, 2.0], (len(result.tiling.boxes), 1))
    planted = with_tiling(with_boxes(result, margin=margin), points=np.array([[1.0, 0.0]]))
    with pytest.raises(InternalError, match="claims that the label is kept"):
        confirmed(planted)


def test_a_box_that_claims_too_much_is_caught_by_its_witness():
    result = made(ROBUST, 3)
    planted = with_boxes(result, margin=np.tile([-2.0, -1.0], (len(result.tiling.boxes), 1)))
    with pytest.raises(InternalError, match="claims a violation \\(label\\)"):
        _ = planted.witnesses
    planted = with_boxes(result, inconsistency=np.tile([90.0, 99.0], (len(result.tiling.boxes), 1)))
    with pytest.raises(InternalError, match="claims a violation \\(attention\\)"):
        _ = planted.witnesses


def test_witnesses_lie_in_what_violates(pair: tuple):
    ours, _ = pair
    assert ours.witnesses
    for witness in ours.witnesses:
        point, box = witness.point, box_of_theta(ours, witness.point.theta)
        assert witness.is_deep and witness.replay.agrees
        if witness.kind is not Violation.ATTENTION:
            assert (point.margin < 0.0) == (witness.kind is Violation.LABEL)
        if witness.kind is not Violation.LABEL:
            assert point.inconsistency > ours.answer.delta
        assert (ours.region_at(point.theta) is not None) == (ours.tiling.boxes.state[box] == State.EXACT)


def test_every_theta_has_a_box(pair: tuple):
    ours, _ = pair
    domain = ours.question.compound.domain
    generator = np.random.default_rng(3)
    for theta in domain.low + generator.random((20, domain.dimension)) * domain.widths:
        box, point = box_of_theta(ours, theta), ours.question.compound.to_unit(theta[None])[0]
        inside = (ours.tiling.boxes.low[box] <= point) & (point <= ours.tiling.boxes.high[box])
        assert inside[: domain.dimension].all()
        found = ours.at(theta)
        if ours.tiling.boxes.state[box] == State.EXACT:
            np.testing.assert_allclose(ours.regions[found.region].logits(theta), found.logits, atol=1e-9)
        else:
            assert ours.tiling.boxes.margin[box, 0] <= found.margin <= ours.tiling.boxes.margin[box, 1]
            assert (
                ours.tiling.boxes.inconsistency[box, 0]
                <= found.inconsistency
                <= ours.tiling.boxes.inconsistency[box, 1]
            )
    assert box_of_theta(ours, domain.high + 1.0) is None


def test_the_label_alone_does_not_measure_attention():
    for exact in ((), (1,)):
        result = made(MOVING, 6, exact, property="cr")
        assert result.verdict is Verdict.ROBUST and result.areas["CR"] == (1.0, 1.0)
        assert result.areas["AR"] == (0.0, 1.0) and result.areas["undecided"] == (0.0, 0.0)
        assert result.summary()["measures"] == ["label"] and result.enough_delta is None
        assert result.verdict_of(Property.AR) is Verdict.UNDECIDED
        assert result.boundary().reachable_share == 1.0
        with pytest.raises(OptionError, match="did not measure"):
            result.boundary("ar")


def test_an_exact_box_without_regions_is_undecided():
    result = made(ROBUST, 3)
    state = result.tiling.boxes.state.copy()
    state[1] = State.EXACT
    planted = with_boxes(result, state=state)
    assert planted.verdict is Verdict.UNDECIDED
    assert planted.areas["undecided"][0] == pytest.approx(1.0 / 8.0)
    assert planted.nearest["CR"].low == pytest.approx(1.0 / 8.0) and planted.enough_delta is None


def test_a_partial_map_of_an_exact_box_is_never_robust():
    result = made(MOVING, 6, (1,), property="cr")
    assert result.verdict is Verdict.ROBUST
    answers = result.tiling.answers
    partial = replace(answers, regions=replace(answers.regions, stopped=Stop("timeout of 1 s")))
    planted = with_tiling(result, answers=partial)
    assert planted.verdict is Verdict.UNDECIDED and planted.areas["undecided"][0] > 0.0


def test_regions_of_another_table_of_cuts_are_a_bug():
    result = made(MOVING, 6, (1,))
    cuts = result.tiling.boxes.cuts.copy()
    cuts[-1] = 4, 0, 0
    with pytest.raises(InternalError, match="different tables of cuts"):
        with_boxes(result, cuts=cuts).boundary()


def test_a_limit_ends_in_a_partial_result_that_says_so():
    result = with_tiling(made(PLANE, 8), stopped=Stop("timeout of 5 s"))
    summary = result.summary()
    assert not result.is_complete and summary["status"] == "Timeout" and summary["verdict"] == "not robust"
    assert summary["boxes"]["open"] > 0 and "ended (timeout of 5 s)" in summary["guarantee"]
    assert result.boundary().reachable_share > 0.0


def test_four_parameters_have_answers_but_no_pieces(tmp_path):
    result = four()
    assert result.verdict is Verdict.UNDECIDED and result.verdict_of(Property.CR) is Verdict.ROBUST
    assert result.areas["AR"] == (15.0 / 16.0, 1.0) and result.areas["CR"] == (1.0, 1.0)
    assert result.nearest["AR"].low == pytest.approx(1.0) and result.nearest["CR"].low == np.inf
    assert box_of_theta(result, [0.1, 0.1, 0.1, 0.1]) == 15 and result.summary()["boxes"]["open"] == 1
    assert [path.name for path in result.plot(tmp_path / "map")] == ["map.png"], "sections through the domain"
    with pytest.raises(OptionError, match="up to 3 parameters"):
        result.boundary()
