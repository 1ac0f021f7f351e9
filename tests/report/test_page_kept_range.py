"""The box around zero in which a property is proved: it holds at sampled thetas, and could not be larger."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steadygaze
from steadygaze.labels import Property
from steadygaze.properties.kept_box import Suspects, kept_box
from steadygaze.results.description import find_kept_range
from steadygaze.results.result import Result

PATCH = "patch:x=12,y=12,w=4,h=4"
QUESTIONS = {
    "line": (["brightness:-0.2..0.5"], {}),
    "kept": (["brightness:0..0.3", PATCH], {}),
    "moving": (["brightness:-0.1..0.4", "translate:dx=1:-0.2..0.6"], {"delta": "40%"}),
    "refined": (["brightness:0..0.3", PATCH], {"method": "refine", "until": 0.3}),
    "solid": (["brightness:0..0.1", PATCH, "translate:dx=1:0..0.1"], {"delta": "40%"}),
}


@pytest.fixture(scope="module", params=QUESTIONS)
def result(request: pytest.FixtureRequest) -> Result:
    specs, options = QUESTIONS[request.param]
    return steadygaze.verify("M-FNN-100", "mnist:69990", specs, **options)


@pytest.mark.parametrize("wanted", Property)
def test_every_theta_of_the_box_keeps_the_property(result: Result, wanted: Property):
    found = find_kept_range(result, wanted)
    assert found is not None
    low, high = np.array(found.low), np.array(found.high)
    domain = result.question.perturbed.domain
    assert (low <= 0.0).all() and (high >= 0.0).all() and (low >= domain.low).all() and (high <= domain.high).all()
    rng = np.random.default_rng(5)
    # Corners are where a box is most likely to stick out.
    shares = np.concatenate([rng.random((40, len(low))), rng.integers(0, 2, (20, len(low)))])
    for theta in np.clip(low + shares * (high - low), low, high):
        point = result.at(theta)
        assert wanted is Property.AR or point.margin > 0.0
        assert wanted is Property.CR or point.inconsistency <= result.answer.delta


def test_the_box_cannot_grow(result: Result):
    """Just beyond a side of the box something is violated or undecided, or the domain ends."""
    found = find_kept_range(result, Property.BOTH)
    assert found is not None and not found.is_all
    domain = result.question.perturbed.domain
    low, high = np.array(found.low), np.array(found.high)
    grown_low, grown_high = np.maximum(low * 1.02 - 1e-6, domain.low), np.minimum(high * 1.02 + 1e-6, domain.high)
    compound, joint = result.question.compound, result.answer.joint
    ends = compound.to_unit(np.stack([grown_low, grown_high]))
    extents = [joint.polytopes.extent(axis) for axis in range(domain.dimension)]
    overlaps = np.all(
        [(first < ends[1, axis]) & (last > ends[0, axis]) for axis, (first, last) in enumerate(extents)], axis=0
    )
    fails = (joint.label_codes != 0) | (joint.attention_codes != 0)
    assert (overlaps & fails).any()


def test_the_whole_domain_is_said_to_be_all():
    result = steadygaze.verify("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], method="refine", property="cr")
    found = find_kept_range(result, Property.CR)
    assert found is not None and found.is_all and (found.low, found.high) == ((0.0,), (0.1,))
    assert find_kept_range(result, Property.BOTH) is None, "attention was not measured"


def test_a_domain_without_zero_and_a_partial_map_have_none():
    away = steadygaze.verify("M-FNN-100", "mnist:69990", ["brightness:0.1..0.2"])
    assert find_kept_range(away, Property.CR) is None
    budget = steadygaze.Budget(steadygaze.Limits(max_regions=100))
    specs = ["translate:dx=1", "brightness"]
    partial = steadygaze.verify("M-FNN-100", "mnist:69992", specs, method="map", budget=budget)
    assert partial.stopped is not None and find_kept_range(partial, Property.CR) is None


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 3), st.integers(0, 2**31), st.integers(3, 7), st.booleans())
def test_no_point_of_a_suspect_lies_inside_the_box(d: int, seed: int, count: int, is_corner: bool):
    rng = np.random.default_rng(seed)
    zero = np.zeros(d) if is_corner else rng.random(d)
    hulls = [rng.random((count, d)) * 0.5 + 0.5 * rng.random(d) for _ in range(4)]
    low, high = (np.array([end(axis=0) for end in ends]) for ends in zip(*((h.min, h.max) for h in hulls), strict=True))
    ends = kept_box(zero, [Suspects(low, high, lambda n: [hulls[n]])])
    for hull in hulls:
        weights = rng.dirichlet(np.full(count, 0.5), 2000)
        points = np.concatenate([weights @ hull, hull])
        # Numerical noise of the points themselves.
        inside = ((points > ends[0] + 1e-12) | (zero == 0.0)) & (points < ends[1] - 1e-12)
        assert not inside.all(axis=1).any()
    looser = kept_box(zero, [Suspects(low, high)])
    assert (ends[1] >= looser[1] - 1e-8).all(), "parts tell at least as much as the boxes around them"


def test_a_single_triangle_is_met_where_it_is():
    """The triangle (0.6, 0), (0, 0.6), (1, 1) seen from zero: the box 0.3 × 0.3 touches its long side."""
    triangle = np.array([[0.6, 0.0], [0.0, 0.6], [1.0, 1.0]])
    suspects = Suspects(np.array([[0.0, 0.0]]), np.array([[1.0, 1.0]]), lambda n: [triangle])
    low, high = kept_box(np.zeros(2), [suspects])
    assert low.tolist() == [0.0, 0.0] and np.allclose(high, 0.3, atol=1e-8) and (high <= 0.3).all()


def test_a_suspect_in_the_last_corner_is_not_passed_over():
    """A corner of the domain that is not kept, as small as rounding: the box is not said to be all of the domain."""
    corner = 1.0 + 4e-16 * np.array([[1.0, 1.0], [2.0, 1.0], [1.0, 2.0]])
    suspects = Suspects(corner.min(axis=0)[None], corner.max(axis=0)[None], lambda n: [corner])
    _, high = kept_box(np.array([0.3, 0.0]), [suspects])
    assert (high < 1.0).all() and np.allclose(high, 1.0, atol=1e-8)


def test_directions_of_a_single_parameter_are_told_apart():
    suspects = Suspects(np.array([[0.0], [0.9]]), np.array([[0.1], [1.0]]))
    low, high = kept_box(np.array([0.5]), [suspects])
    assert np.allclose([low[0], high[0]], [0.1, 0.9], atol=1e-8) and low[0] >= 0.1 and high[0] <= 0.9
    assert [end.tolist() for end in kept_box(np.array([0.5]), [])] == [[0.0], [1.0]]
    touching = Suspects(np.array([[0.5]]), np.array([[0.6]]))
    low, high = kept_box(np.array([0.5]), [touching])
    assert high[0] == 0.5
