"""The printed search follows the paper, and a tiny network shows each error that its README lists."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from as_printed import question as printed_problem
from as_printed import verify
from as_printed.bfs import bfs
from as_printed.question import Translation, plain_problem, problem_from, shift_source
from as_printed.region import LinearPrograms, construct_activation_region, flipped, is_stable
from support.networks.hand_solved import coincident_grid, layer, one_line_many_times, two_pixels_brighter, wrong_side
from support.oracles.rational_polygons import compound, forward, label_areas, split_regions

MINUTE = 60.0


def printed(tiny, delta=1.0):
    return plain_problem(tiny.floats, low=np.array(tiny.low, float), high=np.array(tiny.high, float), delta=delta)


def patterns(outcome, *names):
    return {tuple(region.pattern) for name in names for region in outcome.found[name]}


def interval(region):
    """The ends of a one-dimensional region."""
    low, high = region.bounds[0]
    moving = region.A[:, 0] != 0
    for slope, bound in zip(region.A[moving, 0], region.b[moving], strict=True):
        low, high = (low, min(high, bound / slope)) if slope > 0 else (max(low, bound / slope), high)
    return low, high


def three_lines():
    """θ ∈ [0,3]², ReLU of θ1−1, θ2−1, θ1+θ2−7/2 in general position; logits (Σ, 1/2): seven regions."""
    layers = (
        layer([[1, 0], [0, 1], [1, 1]], [-1, -1, Fraction(-7, 2)]),
        layer([[1, 1, 1], [0, 0, 0]], [0, Fraction(1, 2)]),
    )
    return layers, (Fraction(0),) * 2, (Fraction(3),) * 2


def test_general_position_in_one_layer_is_found_completely():
    layers, low, high = three_lines()
    floats = [(np.array(w, float), np.array(b, float)) for w, b in layers]
    outcome = bfs(plain_problem(floats, low=[0, 0], high=[3, 3], delta=1.0), MINUTE)
    assert outcome.finished
    assert outcome.queued == 0
    truth = {region.pattern for region in split_regions(layers, low, high)}
    assert len(truth) == 7
    assert patterns(outcome, "CR", "MR", "CB") == patterns(outcome, "AR", "IR", "AB") == truth
    assert outcome.popped == 7
    assert outcome.linear_programs > outcome.face_checks >= 6


def test_a_region_is_lost_when_first_tried_through_the_wrong_side():
    tiny = wrong_side()
    outcome = bfs(printed(tiny), MINUTE)
    found = patterns(outcome, "CR", "MR", "CB")
    assert outcome.finished
    assert outcome.popped == len(found) == 3
    assert set(tiny.areas) - found == {(1, 1, 1)}


def test_simplified_regions_overlap():
    outcome = bfs(printed(wrong_side()), MINUTE)
    ends = {tuple(r.pattern): interval(r) for name in ("CR", "MR", "CB") for r in outcome.found[name]}
    # Truly [0, 1/2], [1/2, 1], [1, 3/2]; the last one has no new neighbour, so nothing limits it.
    assert ends == {(1, 0, 1): (0, 0.5), (1, 0, 0): (0, 1), (1, 1, 0): (0, 2)}


@pytest.mark.parametrize("copies", [1, 2, 5])
def test_coincident_lines_make_patterns_without_volume(copies):
    tiny = one_line_many_times(copies)
    outcome = bfs(printed(tiny), MINUTE)
    assert len(split_regions(tiny.layers, tiny.low, tiny.high)) == 2
    assert outcome.finished
    assert outcome.popped == 2**copies


def test_coincident_lines_in_the_plane_drown_the_regions():
    """Three neurons on each of six lines: 16 regions, 22² patterns with a point."""
    tiny = coincident_grid()
    outcome = bfs(printed(tiny), MINUTE, limit_patterns=40)
    found = patterns(outcome, "CR", "MR", "CB")
    assert not outcome.finished
    assert outcome.queued > 0
    assert len(found) == outcome.popped == 40 > len(tiny.areas)
    assert len(found & set(tiny.areas)) < 8


def test_the_start_has_no_volume_on_black_pixels():
    """Brightness on m black pixels: one region, but after k patterns the queue has m + (m−1) + … (k terms) − k + 1."""
    m, k = 8, 5
    chain = [(np.ones((1, m)), np.array([1.0])), (np.array([[1.0], [0.0]]), np.array([0.0, -1.0]))]
    black = np.zeros(m)
    question = problem_from(chain, black, black, np.ones((1, m)), low=[0], high=[1], delta=3.0)
    outcome = bfs(question, MINUTE, limit_patterns=k)
    assert outcome.queued == sum(m - i for i in range(k)) - k + 1
    assert len(outcome.found["CR"]) == k
    for region in outcome.found["CR"]:
        full = construct_activation_region(question, region.pattern)
        assert interval(full) == (0, 0)


def test_compound_network_is_the_clip_then_the_classifier():
    tiny = two_pixels_brighter()
    question = problem_from(
        tiny.floats, np.array([0, 0.5]), np.array([0, 0.5]), np.ones((1, 2)), low=[0], high=[1], delta=1.0
    )
    layers = compound(tiny.offset, tiny.slope, tiny.chain)
    assert question.label == tiny.label
    for theta in (0.0, 0.125, 0.3125, 0.5, 0.75, 1.0):
        pattern, outputs = printed_problem.forward(question.layers, np.array([theta]))
        expected, logits = forward(layers, [Fraction(theta)])
        assert tuple(pattern) == expected
        assert outputs.tolist() == [float(logit) for logit in logits]


def test_sparse_and_dense_layers_give_the_same():
    rng = np.random.default_rng(5)
    dense = [(rng.normal(size=(4, 6)), rng.normal(size=4)), (rng.normal(size=(3, 4)), rng.normal(size=3))]
    thin = [(sparse.csr_array(matrix), bias) for matrix, bias in dense]
    image = rng.uniform(0.1, 0.9, size=6)
    slope = np.stack([np.ones(6), rng.uniform(size=6)])
    first, second = (
        bfs(problem_from(chain, image, image, slope, low=[0, 0], high=[0.5, 0.5], delta=1.0), MINUTE)
        for chain in (dense, thin)
    )
    assert first.finished
    assert first.popped > 4
    for name in first.found:
        assert patterns(first, name) == patterns(second, name)


def test_labels_of_regions():
    """Below θ = 1 the label leads alone, above 3/2 it has lost to the one other class: [0,1] CR, [1,2] CB, [2,3] MR."""
    layers = (layer([[1], [1]], [-1, -2]), layer([[0, 0], [2, 0]], [1, 0]))
    assert label_areas(split_regions(layers, [Fraction(0)], [Fraction(3)]), 0)[:2] == (Fraction(3, 2), Fraction(3, 2))
    question = plain_problem(
        [(np.array(w, float), np.array(b, float)) for w, b in layers], low=[0], high=[3], delta=1.0
    )
    lp = LinearPrograms(MINUTE)
    answers = []
    for p in (b"\0\0", b"\1\0", b"\1\1"):
        eta = construct_activation_region(question, p)
        answers.append((verify.solve_cr(question, eta, lp), verify.solve_mr(question, eta, lp)))
    assert answers == [(True, False), (False, False), (False, True)]


@pytest.mark.parametrize(
    ("delta", "robust", "inconsistent"), [(0.7, False, True), (0.8, False, False), (1.1, True, False)]
)
def test_moving_map(delta, robust, inconsistent):
    """Two pixels, logit x1, moved one to the right: ai = ‖(1,0) − (1−t, t)‖ = √2·t, on a region with t ∈ [1/2, 3/4]."""
    chain = [(np.eye(2), np.ones(2)), (np.array([[1.0, 0.0]]), np.zeros(1))]
    image = np.array([0.5, 0.5])
    move = Translation(axis=0, source=shift_source((1, 1, 2), dx=1))
    question = problem_from(
        chain, image, image, np.zeros((1, 2)), low=[0.5], high=[0.75], delta=delta, translation=move
    )
    eta = construct_activation_region(question, printed_problem.forward(question.layers, np.array([0.6]))[0])
    lp = LinearPrograms(MINUTE)
    assert verify.solve_ar(question, eta, lp) is robust
    assert verify.solve_ir(question, eta, lp) is inconsistent


def test_shift_source_vacates_one_border():
    source = shift_source((1, 2, 3), dx=1)
    assert source.tolist() == [-1, 0, 1, -1, 3, 4]
    assert shift_source((1, 2, 3), dy=-1).tolist() == [3, 4, 5, -1, -1, -1]


def test_is_stable_counts_zero_as_inactive():
    layers = [(np.array([[1.0], [-1.0], [1.0]]), np.array([0.0, 0.0, 1.0])), (np.ones((2, 3)), np.zeros(2))]
    question = plain_problem(layers, low=[0], high=[1], delta=1.0)
    p = b"\0\0\1"
    eta = construct_activation_region(question, p)
    # θ reaches above 0 and can flip; −θ never does; θ + 1 always is above.
    assert [is_stable(p, eta, k, question.vertices) for k in range(3)] == [False, True, True]
    assert flipped(p, 2) == b"\0\0\0"


def test_the_time_limit_ends_the_search():
    outcome = bfs(printed(wrong_side()), 0.0)
    assert not outcome.finished
    assert outcome.linear_programs == 0
    assert outcome.popped == 1
