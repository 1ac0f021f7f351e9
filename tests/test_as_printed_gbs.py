"""The printed boundary search follows the paper, and a network shows each error that its README lists."""

import numpy as np
import pytest

from as_printed import gbs as printed_gbs
from as_printed.gbs import Element, Judgement, Queue, gbs, judge, together
from as_printed.question import Translation, forward, plain_problem, problem_from, shift_source
from as_printed.region import LinearPrograms, calc_interior_point_on_line, construct_activation_region
from as_printed.verify import calc_range_ar, calc_range_cr, calc_range_cr_literal
from support.networks.hand_solved import one_line_many_times, wrong_side

MINUTE = 60.0
ACROSS, UP = (1.0, 2.25, 3.5), (1.25, 2.0, 3.0)  # the diagonal of [0,4]² meets no crossing of these lines


def tiny_problem(tiny, delta=1.0):
    return plain_problem(tiny.floats, low=np.array(tiny.low, float), high=np.array(tiny.high, float), delta=delta)


def on_a_line(values, delta=1.0):
    """θ ∈ [0, n]: logits (0, v(θ)) with v piecewise linear through values[0..n], kinks at 1, …, n−1: n regions."""
    values = np.array(values, dtype=float)
    kinks = np.arange(1, len(values) - 1, dtype=float)
    slopes = np.diff(values)
    first = (np.ones((len(kinks) + 1, 1)), np.append(-kinks, 1.0))  # the last neuron carries θ + 1, always active
    weights = np.append(np.diff(slopes), slopes[0])
    last = (np.stack([np.zeros(len(weights)), weights]), np.array([0.0, values[0] - slopes[0]]))
    return plain_problem([first, last], low=[0], high=[len(values) - 1], delta=delta)


def grid(threshold):
    """θ ∈ [0,4]² cut by the lines ACROSS and UP into 16 regions; logits (threshold, θ1 + θ2): label 0."""
    matrix = np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 3 + [[1.0, 1.0]])
    first = (matrix, np.array([*(-cut for cut in ACROSS + UP), 1.0]))
    out = np.zeros((2, 7))
    out[1, 6] = 1.0
    return plain_problem([first, (out, np.array([threshold, -1.0]))], low=[0, 0], high=[4, 4], delta=1.0)


def cells(search):
    """Column and row of every visited region of the grid."""
    return [(sum(q.p[:3]), sum(q.p[3:6])) for q in search.visited]


def counts(search):
    return {name: len(regions) for name, regions in search.found.items() if regions}


RISING = [-7, -5, -3, -1, 9, 8, 7, 6, 5]


def test_search_stops_behind_the_boundary():
    """v rises through 0 between 3 and 4: three regions CR, one CB, and one MR, where nothing is pushed any more."""
    search = gbs(on_a_line(RISING), MINUTE, kind="CR")
    assert search.finished
    assert counts(search) == {"CR": 3, "CB": 1, "MR": 1}
    assert [q.line_distance for q in search.visited] == [0, 1, 2, 3, 4]
    assert [q.is_following for q in search.visited] == [False] * 4 + [True]


def test_following_turns_back_to_searching_farther_out():
    """v is above 0 from 3 1/2 to beyond 4. [5,6] is reached following, meets the line again, and is left searching."""
    search = gbs(on_a_line([-7, -5, -3, -1, 1, -9, -8, -7, -6]), MINUTE, kind="CR")
    assert counts(search) == {"CR": 6, "CB": 2}
    assert [q.is_following for q in search.visited] == [False] * 4 + [True, True] + [False, False]


def test_following_without_the_line_ends_where_the_boundary_is_left():
    """Kept apart from the line, a robust region that is not near pushes nothing: line 7 of Algorithm 2."""
    question = on_a_line([-7, -5, -3, -1, 1])
    simple = construct_activation_region(question, forward(question.layers, np.array([1.5]))[0])
    waiting = [Element(b"", True, 3.0)]
    for is_following, left in ((True, []), (False, waiting)):
        q = Element(simple.pattern, is_following, 3.0)
        sets = {name: [] for name in ("CR", "MR", "CB")}
        assert printed_gbs.verify(question, simple, q, waiting, "CR", 0.2, sets, LinearPrograms(MINUTE)) == left
        assert sets["CR"] == [simple]


def test_the_farthest_along_the_line_comes_first():
    queue = Queue(Element(b"a", False, 1.0))
    queue.push([Element(b"b", True, 2.0), Element(b"c", False, 2.0), Element(b"d", False, 0.5)])
    assert [queue.pop_max_line_distance().p for _ in range(4)] == [b"b", b"c", b"a", b"d"]
    assert len(queue) == 0


def test_points_on_the_line():
    """The diagonal of [0,4]² enters the second column at (1, 1), where the first row still holds."""
    question = grid(100.0)
    first = construct_activation_region(question, forward(question.layers, np.zeros(2))[0])
    far = np.array([4.0, 4.0])
    assert calc_interior_point_on_line(first, 0, far).tolist() == [1.0, 1.0]
    assert calc_interior_point_on_line(first, 3, far) is None  # θ2 = 1 1/4 comes after θ1 = 1
    assert calc_interior_point_on_line(first, 0, np.array([0.0, 4.0])) is None  # parallel
    layers = [(np.array([[1.0, -1.0], [1.0, 0.0]]), np.array([0.0, -1.0])), (np.ones((2, 2)), np.zeros(2))]
    within = plain_problem(layers, low=[0, 0], high=[4, 4], delta=1.0)
    above = construct_activation_region(within, b"\0\1")
    assert calc_interior_point_on_line(above, 0, far).tolist() == [2.5, 2.5]  # from (1, 1) to (4, 4) on the face
    assert calc_interior_point_on_line(construct_activation_region(within, b"\0\0"), 0, far).tolist() == [0.5, 0.5]


def test_searching_visits_every_satisfying_region():
    search = gbs(grid(100.0), MINUTE, kind="CR")
    assert search.finished
    assert counts(search) == {"CR": 16}
    on_the_line = {(sum(x > c for c in ACROSS), sum(x > c for c in UP)) for x in np.linspace(0, 4, 1000)}
    assert len(on_the_line) == 7
    assert set(cells(search)) > on_the_line
    assert not any(q.is_following for q in search.visited)


def test_simplified_regions_invent_boundary_regions():
    """v crosses 0 at 3 1/2 and rises on: four of the five regions called CB lose the label everywhere.

    Without its face towards the region it was reached from, [4,5] reaches back to zero, where its form is negative.
    """
    question = on_a_line([-7, -5, -3, -1, 1, 2, 3, 4, 5])
    search = gbs(question, MINUTE, kind="CR")
    assert counts(search) == {"CR": 3, "CB": 5}
    lp = LinearPrograms(MINUTE)
    full = [construct_activation_region(question, region.pattern) for region in search.found["CB"]]
    sides = [judge(*calc_range_cr(question, region, lp), delta=0.0, w=0.0).side for region in full]
    assert sides == ["boundary"] + ["violated"] * 4


def test_a_region_is_lost_when_first_tried_through_the_wrong_side():
    tiny = wrong_side()
    search = gbs(tiny_problem(tiny, delta=100.0), MINUTE, kind="AR")
    assert search.finished
    assert counts(search) == {"AR": 3}
    assert set(tiny.areas) - {tuple(q.p) for q in search.visited} == {(1, 1, 1)}


def test_a_region_is_lost_behind_a_violated_one():
    """Two lines cross and make four regions; ai is 0, √20, √5, √13 on them, δ = 4.

    The line meets the one of √20 first, which observes its neighbour and drops it; from the one of √5, which touches
    the same neighbour, it is never reached, although it is robust.
    """
    first = (np.array([[1.0, 0.5], [1.0, -0.5]]), np.array([-1.25, -0.5]))
    last = (np.array([[0.0, 0.0], [4.0, -2.0]]), np.array([100.0, 0.0]))
    question = plain_problem([first, last], low=[0, 0], high=[2, 2], delta=4.0)
    search = gbs(question, MINUTE, kind="AR")
    assert search.finished
    assert counts(search) == {"AR": 2, "IR": 1}
    assert [tuple(q.p) for q in search.visited] == [(0, 0), (1, 0), (0, 1)]
    lost = construct_activation_region(question, b"\1\1")
    assert calc_range_ar(question, lost, LinearPrograms(MINUTE)) == pytest.approx((13**0.5, 13**0.5))


@pytest.mark.parametrize("copies", [1, 2, 5])
def test_coincident_lines_make_patterns_without_volume(copies):
    search = gbs(tiny_problem(one_line_many_times(copies), delta=100.0), MINUTE, kind="AR")
    assert search.finished
    assert search.popped == 2**copies


def test_the_queue_grows_with_patterns_without_volume():
    """Brightness on m black pixels: one region; after k patterns at θ = 0 the queue has m + (m−1) + … (k) − k + 1."""
    m, k = 8, 5
    chain = [(np.ones((1, m)), np.array([1.0])), (np.array([[1.0], [0.0]]), np.array([0.0, -1.0]))]
    question = problem_from(chain, np.zeros(m), np.zeros(m), np.ones((1, m)), low=[0], high=[1], delta=3.0)
    search = gbs(question, MINUTE, kind="CR", limit_patterns=k)
    assert not search.finished
    assert search.queued == sum(m - i for i in range(k)) - k + 1
    assert all(q.line_distance == 0.0 for q in search.visited)
    assert counts(search) == {"CR": k}


def jump():
    """θ ∈ [0,4]² with the lines of the grid; logit 1 bends by 4 at θ1 = 2 1/4: ai is 0, then 4, over δ = 3."""
    matrix = np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 3)
    out = np.zeros((2, 6))
    out[1, 1] = 4.0
    layers = [(matrix, np.array([-cut for cut in ACROSS + UP])), (out, np.array([100.0, 0.0]))]
    return plain_problem(layers, low=[0, 0], high=[4, 4], delta=3.0)


def test_following_never_starts_when_ai_jumps_over_the_band():
    search = gbs(jump(), MINUTE, kind="AR", w=0.2)
    assert search.finished
    assert not any(q.is_following for q in search.visited)
    assert len(search.found["AR"]) == 8
    assert 0 < len(search.found["IR"]) <= 4
    assert {column for column, _ in cells(search)} == {0, 1, 2}  # IR regions push nothing: the last column is not seen


def test_following_starts_when_the_band_is_as_wide_as_the_jump():
    search = gbs(jump(), MINUTE, kind="AR", w=1.0)
    assert any(q.is_following for q in search.visited)


def test_literal_range_swaps_kept_and_changed_labels():
    """v < 0 up to 3 1/2: [1,2] keeps the label, [5,6] has lost it."""
    question = on_a_line([-7, -5, -3, -1, 1, 2, 3])
    lp = LinearPrograms(MINUTE)
    answers = []
    for theta in (1.5, 5.5):
        region = construct_activation_region(question, forward(question.layers, np.array([theta]))[0])
        sensible, literal = calc_range_cr(question, region, lp), calc_range_cr_literal(question, region, lp)
        assert literal == pytest.approx((-sensible[1], -sensible[0]))
        answers.append(tuple(judge(*pair, delta=0.0, w=0.0).side for pair in (sensible, literal)))
    assert answers == [("robust", "violated"), ("violated", "robust")]


def test_range_is_the_minimum_of_a_maximum():
    """Logits (3/5, θ−1, 1/2−θ) on [0,2]: the larger rival is lowest at θ = 3/4, where both are −1/4, and 1 at θ = 2."""
    first = (np.array([[1.0]]), np.array([1.0]))
    last = (np.array([[0.0], [1.0], [-1.0]]), np.array([0.6, -2.0, 1.5]))
    question = plain_problem([first, last], low=[0], high=[2], delta=1.0)
    assert question.label == 0
    region = construct_activation_region(question, b"\1")
    lp = LinearPrograms(MINUTE)
    assert calc_range_cr(question, region, lp) == pytest.approx((-0.85, 0.4))
    assert calc_range_cr_literal(question, region, lp) == pytest.approx((-0.4, 2.1))


def test_range_of_a_moving_map():
    """Two pixels, logit x1, moved one to the right: ai = √2·t, on a region with t ∈ [1/2, 3/4]."""
    chain = [(np.eye(2), np.ones(2)), (np.array([[1.0, 0.0]]), np.zeros(1))]
    image = np.array([0.5, 0.5])
    move = Translation(axis=0, source=shift_source((1, 1, 2), dx=1))
    question = problem_from(chain, image, image, np.zeros((1, 2)), low=[0.5], high=[0.75], delta=1.0, translation=move)
    region = construct_activation_region(question, forward(question.layers, np.array([0.6]))[0])
    lo, up = calc_range_ar(question, region, LinearPrograms(MINUTE))
    assert (lo, up) == pytest.approx((0.5 * 2**0.5, 0.75 * 2**0.5), abs=1e-6)


ROBUST, NEAR = Judgement("robust", False), Judgement("robust", True)
CROSSED, JUST, BEYOND = Judgement("boundary", True), Judgement("violated", True), Judgement("violated", False)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (ROBUST, ROBUST, ROBUST),
        (ROBUST, NEAR, NEAR),
        (ROBUST, CROSSED, CROSSED),
        (CROSSED, JUST, JUST),
        (CROSSED, BEYOND, BEYOND),
        (JUST, BEYOND, BEYOND),
    ],
)
def test_judgement_about_both_properties(first, second, expected):
    assert together([first, second]) == together([second, first]) == expected
    assert together([first]) == first


def test_both_properties_at_once():
    """[3,4] holds the decision boundary, and its ai is 8. With δ = 1/2 it is beyond AR; with δ = 9 it is not."""
    strict, loose = on_a_line(RISING, delta=0.5), on_a_line(RISING, delta=9.0)
    assert counts(gbs(strict, MINUTE, kind="AR")) == {"AR": 3, "IR": 1}
    assert counts(gbs(strict, MINUTE, kind="CRAR")) == {"CR": 3, "CB": 1, "AR": 3, "IR": 1}
    assert counts(gbs(loose, MINUTE, kind="CRAR")) == {"CR": 3, "CB": 1, "MR": 1, "AR": 5}


def test_an_empty_region_satisfies_nothing():
    assert judge(float("nan"), float("nan"), delta=3.0, w=0.2) == Judgement("boundary", False)


@pytest.mark.parametrize("kind", ["CR", "AR", "CRAR"])
def test_the_time_limit_ends_the_search(kind):
    search = gbs(grid(5.0), 0.0, kind=kind)
    assert not search.finished
    assert search.linear_programs == 0
    assert search.popped == len(search.visited) == 1
