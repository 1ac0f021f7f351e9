"""The self-check of a refinement passes correct results with one to four parameters, and catches planted errors."""

from dataclasses import replace

import numpy as np
import pytest

from steadygaze.attention.inconsistency import original_maps
from steadygaze.bounds.bounder import Bounder
from steadygaze.budget import Budget
from steadygaze.engines.refine import self_check
from steadygaze.engines.refine.boxes import Boxes, BoxQuestion, ExactBoxes, Frontier, State, label_codes
from steadygaze.engines.refine.self_check import (
    Sampler,
    check_boxes,
    check_refined,
    check_tiling,
    sample_contradictions,
)
from steadygaze.errors import InternalError
from steadygaze.labels import Property
from steadygaze.question import Question, make_question
from steadygaze.results.answer import Answers

PATCH = "patch:x=12,y=12,w=4,h=4"
DELTA = 15.0
SPECS = {
    "line": ["brightness"],
    "plane": ["brightness", PATCH],
    "moving": ["translate:dx=2:-0.5..1.2", "brightness:0.6..1"],
    "space": ["translate:dx=1", "brightness:0.8..1", PATCH],
    "four": ["translate:dx=1", "brightness", PATCH, "patch:x=2,y=2,w=4,h=4"],
}
ROUNDS = {"line": 5, "plane": 9, "moving": 8, "space": 10, "four": 9}
HANDED = {"line": 4, "plane": 12, "moving": 6, "space": 1, "four": 0}

Refined = tuple[Question, Boxes, Answers | None]


def refined(name: str, **options: object) -> Refined:
    """A refinement by hand: a number of rounds of bounds and splits, and exact regions for a few of the open boxes."""
    question = make_question("M-FNN-100", "mnist:69992", SPECS[name], delta=DELTA, **options)
    bounder = Bounder(question.model.graph, question.perturbed, question.label, question.attention)
    frontier = Frontier(bounder, BoxQuestion(Property.BOTH, DELTA), threads=1)
    start = Boxes.of(question.compound)
    cuts, open_boxes, done = start.cuts, start, []
    for round_number in range(ROUNDS[name]):
        halves = []
        for block in frontier.blocks(open_boxes):
            seen = frontier.bound(block)
            done.append(seen.boxes.take(seen.boxes.state != State.OPEN))
            rest = seen.boxes.state == State.OPEN
            if round_number == ROUNDS[name] - 1:
                done.append(seen.boxes.take(rest))
                continue
            split = replace(seen.boxes.take(rest), cuts=cuts).split(seen.split_axes[rest])
            cuts = split.cuts
            halves.append(split)
        open_boxes = Boxes.join(halves, cuts) if halves else start.take(np.zeros(0, dtype=np.int64))
    boxes = Boxes.join(done, cuts)
    # The smallest boxes have the fewest regions.
    is_open = boxes.state == State.OPEN
    handed = np.flatnonzero(is_open)[np.argsort(boxes.volumes[is_open], kind="stable")[: HANDED[name]]]
    exact = ExactBoxes(question, original_maps(question.compound, question.attention), 1, measures=True)
    if len(handed):
        assert exact.add(boxes.take(handed), Budget()).all()
        boxes.state[handed] = State.EXACT
    return question, boxes, exact.answers(boxes.cuts, 44.0)


@pytest.fixture(scope="module")
def plane() -> Refined:
    return refined("plane")


@pytest.fixture(scope="module")
def moving() -> Refined:
    return refined("moving")


@pytest.mark.parametrize("name", SPECS)
def test_a_right_refinement_passes(name):
    question, boxes, answers = refined(name)
    compared = check_refined(question, boxes, answers, DELTA)
    assert compared.tiling_error <= 1e-12
    sampled = check_boxes(question, boxes, answers, DELTA)
    claims = int((boxes.state != State.EXACT).sum())
    wanted = int(np.clip(self_check.EACH[0] * claims, *self_check.MARGINS))
    assert sampled.inside + sampled.beside >= wanted >= 500
    assert sampled.beside == -(-wanted // 2)
    assert sampled.inconsistencies >= 50
    assert not sampled.contradictions


def test_other_filters_and_distances_pass():
    for options in ({"dist": "l1", "filter": "abs"}, {"filter": "mean", "classes": "3,7"}):
        question, boxes, answers = refined("moving", **options)
        assert not sample_contradictions(question, boxes, answers, DELTA, 500, 300, 1_000).contradictions


def decided(boxes: Boxes) -> np.ndarray:
    """Boxes that say something about the label, the largest first; sampled boxes are among the first."""
    known = np.flatnonzero((label_codes(boxes.margin) != 1) & (boxes.state != State.EXACT))
    return known[np.argsort(-boxes.volumes[known], kind="stable")]


def with_row(boxes: Boxes, name: str, place: int, row: tuple[float, float]) -> Boxes:
    table = getattr(boxes, name).copy()
    table[place] = row
    return replace(boxes, **{name: table})


def test_a_margin_that_is_too_large_or_too_small_is_caught(plane):
    question, boxes, answers = plane
    largest = decided(boxes)[0]
    low, high = boxes.margin[largest]
    for row in ((high, high + 1.0), (low - 1.0, low), (np.nan, np.nan)):
        wrong = with_row(boxes, "margin", largest, row)
        with pytest.raises(InternalError, match=f"box {largest} claims a margin"):
            check_boxes(question, wrong, answers, DELTA)


def test_swapped_labels_are_caught(plane):
    question, boxes, answers = plane
    with pytest.raises(InternalError, match="claims a margin"):
        check_boxes(question, replace(boxes, margin=-boxes.margin[:, ::-1]), answers, DELTA)


@pytest.mark.parametrize("fixture", ["plane", "moving"])
def test_a_wrong_inconsistency_is_caught(fixture, request):
    question, boxes, answers = request.getfixturevalue(fixture)
    known = np.isfinite(boxes.inconsistency[:, 1]) & (boxes.state != State.EXACT)
    largest = int(np.argmax(np.where(known, boxes.volumes, 0.0)))
    low, high = boxes.inconsistency[largest]
    for row in ((high, 2.0 * high), (0.0, low)):
        wrong = with_row(boxes, "inconsistency", largest, row)
        with pytest.raises(InternalError, match=f"box {largest} claims an inconsistency"):
            check_boxes(question, wrong, answers, DELTA)


def test_an_error_beside_a_border_is_caught(plane):
    """Claims that hold in all but the outermost fiftieth of a box, along each side."""
    question, boxes, answers = plane
    plain = self_check.PointPasses(question)
    samples = Sampler(boxes, answers, DELTA, 2).draw(2_000)
    beside = samples.take(np.flatnonzero(samples.is_beside & ~samples.is_piece))
    low, high = boxes.low[beside.place], boxes.high[beside.place]
    depth = np.minimum(beside.points - low, high - beside.points) / (high - low)
    assert (depth > 0.0).all() and (depth.min(axis=1) <= 0.011).all()
    ticks = np.stack(np.meshgrid(*[np.linspace(0.02, 0.98, 9)] * 2), axis=2).reshape(-1, 2)
    points = low[:, None] + ticks * (high - low)[:, None]
    inner = plain.margins(question.compound.to_theta(points.reshape(-1, 2))).reshape(len(beside), -1)
    assert self_check._margin_contradictions(plain, replace(beside, margin=_reach(inner)), 0)


def _reach(values: np.ndarray) -> np.ndarray:
    return np.stack([values.min(axis=1), values.max(axis=1)], axis=1)


def test_samples_lie_in_what_they_are_compared_with(moving):
    _, boxes, answers = moving
    samples = Sampler(boxes, answers, DELTA, 2).draw(3_000)
    own = samples.take(np.flatnonzero(~samples.is_piece))
    assert (own.points >= boxes.low[own.place]).all() and (own.points <= boxes.high[own.place]).all()
    assert samples.is_piece.sum() >= 200
    again = Sampler(boxes, answers, DELTA, 2).draw(3_000)
    assert samples.points.tobytes() == again.points.tobytes()


@pytest.mark.parametrize("fixture", ["plane", "moving"])
def test_wrong_exact_pieces_are_caught(fixture, request):
    question, boxes, answers = request.getfixturevalue(fixture)
    pieces = answers.pieces
    other = np.where(pieces.keeps_label, (pieces.label + 1) % 10, pieces.label)
    with pytest.raises(InternalError, match="exact piece"):
        check_boxes(question, boxes, replace(answers, pieces=replace(pieces, winner=other)), DELTA)
    curves = answers.curves
    stretched = replace(curves, constant=1.1 * curves.constant, quadratic=1.1 * curves.quadratic)
    with pytest.raises(InternalError, match=r"exact piece .* claims an inconsistency"):
        check_boxes(question, boxes, replace(answers, curves=stretched), DELTA)


def test_missing_and_overlapping_boxes_are_caught(plane):
    _, boxes, _ = plane
    with pytest.raises(InternalError, match="add up to"):
        check_tiling(boxes.take(np.arange(1, len(boxes))))
    assert check_tiling(boxes) <= 1e-12
    wide = decided(boxes)[0]
    sides = boxes.sides.copy()
    sides[wide, 0, 0] *= -1
    with pytest.raises(InternalError, match="only one side"):
        check_tiling(replace(boxes, sides=sides))


def test_rounding_is_no_contradiction(plane):
    """Enclosures that are as tight as a plain pass, moved by less than its rounding, pass; moved by more, they fail."""
    question, boxes, answers = plane
    sampled = Sampler(boxes, answers, DELTA, 2).draw(400)
    plain = self_check.PointPasses(question)
    margins = plain.margins(question.compound.to_theta(sampled.points))
    for off, is_caught in ((1e-14, False), (1e-6, True)):
        tight = replace(sampled, margin=np.stack([margins + off, margins + 2 * off], axis=1))
        assert bool(self_check._margin_contradictions(plain, tight, 50)) == is_caught


def test_a_graph_that_computes_something_else_is_caught(plane, monkeypatch):
    question, boxes, answers = plane
    logits = question.model.graph.logits
    label = question.label
    monkeypatch.setattr(type(question.model.graph), "logits", lambda _, images: logits(images) * 3.0)
    assert question.label == label
    with pytest.raises(InternalError, match="claims a margin"):
        check_boxes(question, boxes, answers, DELTA)


def test_large_networks_are_sampled_less(plane, monkeypatch):
    question, boxes, answers = plane
    monkeypatch.setattr(self_check, "WORK", 1)
    sampled = check_boxes(question, boxes, answers, DELTA)
    assert sampled.inside + sampled.beside == self_check.FEWEST
    assert sampled.inconsistencies <= self_check.FEWEST
