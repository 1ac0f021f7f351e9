"""Falsification finds the violations of the map, claims none that the map refutes, and stays within its work limit."""

from dataclasses import replace

import numpy as np
import pytest

from steadygaze.attention.gradients import gradient_maps
from steadygaze.attention.inconsistency import expected_maps, original_maps
from steadygaze.budget import Budget
from steadygaze.engines import run
from steadygaze.engines.refine.falsify import FEWEST, MOST_POINTS, FoundViolations, falsify
from steadygaze.engines.refine.pointwise import PointPasses
from steadygaze.labels import Kept, Property
from steadygaze.question import Question, make_question
from support.networks.layered_models import make_model
from support.oracles.attention_by_definition import pattern_at

PATCH = "patch:x=12,y=12,w=4,h=4"
SPACE = ["brightness:0.85..0.9", f"{PATCH}:0..0.05", "translate:dx=1:0..0.05"]
PROBLEMS = {
    "M-FNN-100 BP": ("M-FNN-100", "mnist:69990", ["brightness", PATCH], {"delta": 3.0}),
    "M-FNN-100 BP half": ("M-FNN-100", "mnist:69992", ["brightness", PATCH], {"delta": "50%"}),
    "M-FNN-100 TB": ("M-FNN-100", "mnist:69992", ["translate:dx=2:-0.1..0.9", "brightness:0.8..1"], {"delta": "50%"}),
    "F-FNN-100 TP": ("F-FNN-100", "fashion:69995", ["translate:dy=-2", PATCH], {"delta": 2.0, "filter": "abs+mean"}),
    "line": ("M-FNN-100", "mnist:69992", ["brightness"], {"delta": "50%"}),
    "line beside zero": ("M-FNN-100", "mnist:69992", ["brightness:0.3..0.9"], {"delta": 3.0}),
    "robust": ("M-FNN-100", "mnist:69990", ["brightness:0..0.001", f"{PATCH}:-0.001..0.001"], {"delta": "25%"}),
    "space": ("M-FNN-100", "mnist:69992", SPACE, {"delta": 3.0}),
}


def absolute(question: Question) -> float:
    original = original_maps(question.compound, question.attention)
    return question.threshold.value(sum(question.attention.distance.size(part) for part in original))


def distances(question: Question, found: FoundViolations) -> np.ndarray:
    """How far each violation is from zero, each axis divided by its width."""
    return np.linalg.norm(found.thetas / question.perturbed.domain.widths, axis=1)


@pytest.mark.parametrize("name", PROBLEMS)
def test_it_agrees_with_the_map(name):
    model, image, specs, options = PROBLEMS[name]
    question = make_question(model, image, specs, **options)
    result, delta = run(question, "map", threads=1), absolute(question)
    found = falsify(question, delta)
    assert found.is_label.any() or result.areas["MR"][1] <= 0.01
    assert found.is_attention.any() or result.areas["IR"][1] <= 0.01
    assert len(found.thetas) <= MOST_POINTS
    joint = result.answer.joint
    for theta, margin, ai in zip(found.thetas, found.measured.margin, found.measured.inconsistency, strict=True):
        point = result.at(theta)
        assert margin == pytest.approx(point.margin, abs=1e-9)
        assert ai == pytest.approx(point.inconsistency, rel=1e-9)
        assert margin < 0.0 or ai > delta
        piece = joint.polytopes.deepest(question.compound.to_unit(theta[None])[0])
        assert piece is not None
        if margin < 0.0:
            assert not joint.pieces.keeps_label[piece]
        if ai > delta:
            assert joint.attention[piece] != Kept.YES
    distance = distances(question, found)
    for key, violates in (("CR", found.measured.margin < 0.0), ("AR", found.measured.inconsistency > delta)):
        nearest = result.answer.nearest[key]
        assert (distance[violates] >= nearest.low).all()
        # The walk towards zero comes close, on these problems within a tenth of the distance.
        assert violates.any() == np.isfinite(nearest.high)
        assert distance[violates].min(initial=np.inf) <= 1.1 * nearest.high


def test_the_problems_hold_both_outcomes():
    found = {
        name: falsify(question := make_question(m, i, s, **o), absolute(question))
        for name, (m, i, s, o) in PROBLEMS.items()
    }
    assert not len(found["robust"].thetas)
    assert sum(one.is_label.any() for one in found.values()) >= 4
    assert sum(one.is_attention.any() for one in found.values()) >= 6


@pytest.fixture(scope="module")
def wide() -> Question:
    """Four parameters; one of them moves the map over several knots."""
    specs = ["translate:dx=2:-0.5..2", PATCH, "brightness", "patch:x=2,y=2,w=4,h=4"]
    return make_question("M-FNN-100", "mnist:69992", specs, delta=3.0)


def test_four_parameters_by_the_plain_definitions(wide):
    found = falsify(wide, 3.0)
    assert found.is_label.any() and found.is_attention.any()
    assert (found.measured.margin[found.is_label] < 0.0).all()
    assert (found.measured.inconsistency[found.is_attention] > 3.0).all()
    compound, chain = wide.compound, wide.model.chain
    original = original_maps(compound, wide.attention)
    for theta, margin, ai in zip(found.thetas, found.measured.margin, found.measured.inconsistency, strict=True):
        assert wide.perturbed.domain.contains(theta)
        image = wide.perturbed.image(theta)
        logits = wide.model.graph.logits(image[None])[0]
        assert logits[wide.label] - np.delete(logits, wide.label).max() == pytest.approx(margin, abs=1e-9)
        actual = gradient_maps(chain, pattern_at(chain, image.reshape(1, -1)))[0].reshape(original.shape)
        cell = wide.perturbed.cell_of(theta)
        expected, slope = expected_maps(compound, cell, original)
        expected = expected + (theta[0] - cell.low[0]) * slope
        assert sum(np.linalg.norm((a - e).ravel()) for a, e in zip(actual, expected, strict=True)) == pytest.approx(ai)


def test_only_the_wanted_property_is_looked_for(wide):
    label, attention = (falsify(wide, 3.0, wanted=wanted) for wanted in (Property.CR, Property.AR))
    assert not label.is_attention.any() and np.isnan(label.measured.inconsistency).all()
    assert label.is_label.all() and (label.measured.margin < 0.0).all()
    assert not attention.is_label.any() and (attention.measured.inconsistency > 3.0).all()


def test_the_same_thetas_every_time_and_without_the_chain(wide):
    first, second = falsify(wide, 3.0), falsify(replace(wide, model=replace(wide.model, chain=None)), 3.0)
    assert first.thetas.tobytes() == second.thetas.tobytes()
    assert first.measured.inconsistency.tobytes() == second.measured.inconsistency.tobytes()
    assert first.evaluations == second.evaluations


def test_given_maps_of_the_unperturbed_image_are_used(wide):
    original = PointPasses(wide).original
    assert np.allclose(original, original_maps(wide.compound, wide.attention), rtol=1e-12, atol=1e-12)
    given = falsify(wide, 3.0, wanted=Property.AR, original=original + 1.0)
    assert given.is_attention.any()
    own = falsify(wide, 3.0, wanted=Property.AR)
    assert given.measured.inconsistency.max() > own.measured.inconsistency.max() + 100.0


@pytest.mark.parametrize("work", [1, 50_000_000])
def test_work_is_bounded_by_a_count(wide, work):
    found = falsify(wide, 3.0, work=work)
    plain = PointPasses(wide)
    each = 1 + len(plain.classes)
    # The grid has the corners and the centre in any case; measuring a theta takes about seven evaluations.
    least = max(FEWEST, 2**4 + 1)
    allowed = max(work, least * plain.work) + max(work, least * each * plain.work)
    assert found.multiplications <= allowed + (MOST_POINTS + 1) * 8 * each * plain.work
    assert found.evaluations < falsify(wide, 3.0).evaluations
    assert found.is_label.any() and found.is_attention.any()


def test_an_exhausted_budget_ends_the_search(wide):
    budget = Budget()
    budget.cancelled.set()
    found = falsify(wide, 3.0, budget=budget)
    assert not len(found.thetas)


def narrow_dip(depth: float) -> Question:
    """Margin 1 − ReLU(θ1 + θ2 − 1.9)·depth·10 on [0, 1]²: violated only in the corner, where it is 1 − depth."""
    first = [[1.0, 1.0, 0.0]], [-1.9]
    last = [[-10.0 * depth], [0.0]], [1.0, 0.0]
    image = np.zeros((1, 1, 3))
    specs = ["patch:x=0,y=0,w=1,h=1", "patch:x=1,y=0,w=1,h=1"]
    return make_question(make_model([first, last], image.shape), image, specs, delta=1e9)


def test_a_corner_is_found_and_a_tie_is_no_violation():
    assert falsify(narrow_dip(1.5), 1e9).is_label.any()
    assert not len(falsify(narrow_dip(1.0 - 1e-13), 1e9).thetas)
    assert not len(falsify(narrow_dip(1.0 + 1e-15), 1e9).thetas)


def test_the_descent_finds_what_lies_between_the_points_of_the_grid():
    """Margin |θ − c|·2 − w beyond any tick: only a window of width w around c = 0.4371 violates."""
    centre, width = 0.4371, 1e-3
    layers = [([[1.0], [-1.0]], [-centre, centre]), ([[2.0, 2.0], [0.0, 0.0]], [-width, 0.0])]
    image = np.zeros((1, 1, 1))
    question = make_question(make_model(layers, image.shape), image, ["brightness"], delta=1e9)
    found = falsify(question, 1e9, wanted=Property.CR)
    assert (np.abs(found.thetas[:, 0] - centre) < width / 2).all() and found.is_label.any()
    assert distances(question, found).min() == pytest.approx(centre - width / 2, abs=1e-5)
