"""Where ai ≤ δ on a curve: reach, inner and outer slabs against exact numbers, at generic and at special thresholds."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from steadygaze.attention.spans import Spans
from steadygaze.properties.attention import AttentionLabels, _replaced, label_attention, reaches
from support.oracles.exact_curves import Curve, GivenErrors, stored

SLACK = Decimal("1e-6")
"""The root of a square that cancels to rounding is off by its root: 1e-8 of the terms."""


def curve(dist: str, *pairs: tuple[list[float], list[float]]) -> Curve:
    return Curve(tuple((tuple(map(Fraction, u)), tuple(map(Fraction, v))) for u, v in pairs), dist)


def label(one: Curve, low: float, high: float, delta: float, error: float = 0.0) -> AttentionLabels:
    curves, taus = stored([one], [(low, high)])
    return label_attention(curves, Spans(taus), delta, GivenErrors(curves, error))  # type: ignore[arg-type]


def assert_sound(one: Curve, labels: AttentionLabels, error: float = 0.0) -> None:
    """Every claim holds for the exact curve, also when the maps are off by `error`."""
    (low, high), delta, doubt = labels.ends[0], Decimal(labels.delta), Decimal(error)
    bottom, least = one.lowest(low, high)
    most = max(one.value(low), one.value(high))
    assert Decimal(labels.reach[0, 0]) + doubt <= least
    assert Decimal(labels.reach[0, 1]) - doubt >= most
    if labels.is_kept[0]:
        assert most + doubt <= delta
    if labels.is_lost[0]:
        assert least - doubt > delta
    first, last = labels.inner[0]
    if first <= last:
        # Convex: what holds at both ends holds between them.
        assert low <= first and last <= high
        assert one.value(first) + doubt <= delta and one.value(last) + doubt <= delta
    first, last = labels.outer[0]
    if first > last:
        assert least - doubt > delta
        return
    assert low <= first and last <= high
    if first > low:
        assert one.value(first) - doubt >= delta and bottom >= first
    if last < high:
        assert one.value(last) - doubt >= delta and bottom <= last


def assert_tight(one: Curve, labels: AttentionLabels) -> None:
    """Undecided parts are within rounding of δ."""
    (low, high), delta = labels.ends[0], Decimal(labels.delta)
    _, least = one.lowest(low, high)
    size = 1 + max(one.value(low), one.value(high))
    assert least - Decimal(labels.reach[0, 0]) < SLACK * size
    assert Decimal(labels.reach[0, 1]) - max(one.value(low), one.value(high)) < SLACK * size
    inner, outer = labels.inner[0], labels.outer[0]
    if outer[0] > outer[1]:
        return
    for side, end in ((0, low), (1, high)):
        if outer[side] != end:
            assert one.value(outer[side]) - delta < SLACK * size
    if inner[0] > inner[1]:
        assert delta - least < SLACK * size
        return
    for side, end in ((0, low), (1, high)):
        if inner[side] != end:
            assert delta - one.value(inner[side]) < SLACK * size


dyadic = st.integers(-24, 24).map(lambda n: n / 8)


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    pixels = draw(st.integers(1, 5))
    row = st.lists(dyadic, min_size=pixels, max_size=pixels)
    pairs = draw(st.lists(st.tuples(row, row), min_size=1, max_size=3))
    if draw(st.booleans()):
        # A class whose actual and expected maps meet at a place of the range.
        place = draw(st.integers(-8, 16)) / 8
        pairs[0] = ([place * v for v in pairs[0][1]], pairs[0][1])
    return curve(draw(st.sampled_from(["l1", "l2"])), *pairs)


ENDS = ((0.0, 1.0), (0.25, 0.375), (0.0, 0.001), (0.3, 1.0))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(curves(), st.sampled_from(ENDS), st.floats(0, 1), st.sampled_from([0.0, 0.125]))
def test_random_curves_and_thresholds(one: Curve, ends: tuple[float, float], share: float, doubt: float) -> None:
    """Thresholds from the least to the largest value."""
    least, most = one.lowest(*ends)[1], max(one.value(end) for end in ends)
    error = doubt * float(most - least)
    assert_sound(one, label(one, *ends, float(least + Decimal(share) * (most - least)), error), error)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(curves(), st.sampled_from(ENDS), st.floats(0, 1))
def test_little_stays_undecided(one: Curve, ends: tuple[float, float], share: float) -> None:
    least, most = one.lowest(*ends)[1], max(one.value(end) for end in ends)
    assert_tight(one, label(one, *ends, float(least + Decimal(share) * (most - least))))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(curves(), st.sampled_from(["least", "most", "low", "high", "middle"]), st.sampled_from([-1, 0, 1]))
def test_thresholds_at_special_values(one: Curve, where: str, step: int) -> None:
    """δ is the float nearest to a value of the curve at a special place, or one float beside it."""
    assert_sound(one, label(one, 0.0, 1.0, special_threshold(one, where, step)))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(curves(), st.sampled_from(["least", "most", "low", "high", "middle"]), st.sampled_from([-1, 0, 1]))
def test_little_stays_undecided_at_special_values(one: Curve, where: str, step: int) -> None:
    """In the middle of the range too, which a bisection meets exactly."""
    assert_tight(one, label(one, 0.0, 1.0, special_threshold(one, where, step)))


def special_threshold(one: Curve, where: str, step: int) -> float:
    values = {"low": one.value(0.0), "high": one.value(1.0), "middle": one.value(0.5)}
    values |= {"least": one.lowest(0.0, 1.0)[1], "most": max(values["low"], values["high"])}
    delta = float(values[where])
    return max(0.0, float(np.nextafter(delta, step * np.inf))) if step else delta


@settings(max_examples=60, deadline=None, derandomize=True)
@given(curves())
@example(Curve((((Fraction(9, 8),), (Fraction(9, 8),)),), "l2"))
def test_reach_against_scipy(one: Curve) -> None:
    stored_curves, taus = stored([one], [(0.0, 1.0)])
    low, high = reaches(stored_curves, Spans(taus))[0]
    pairs = [(np.array(u, dtype=float), np.array(v, dtype=float)) for u, v in one.pairs]
    order = 1 if one.dist == "l1" else 2
    ai = lambda tau: sum(np.linalg.norm(u - tau * v, ord=order) for u, v in pairs)  # noqa: E731
    best = minimize_scalar(ai, bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
    found = min(best.fun, ai(0.0), ai(1.0))
    # Near a zero of ai the root of a rounded square is off by √ε times the size of u, which is ai(0).
    assert low <= found * (1 + 1e-14) and found - low < 1e-7 * (1 + ai(0.0))
    grid = [ai(tau) for tau in np.linspace(0, 1, 21)]
    assert low <= min(grid) * (1 + 1e-14) and max(grid) * (1 - 1e-14) <= high


def test_a_parabola_under_a_root() -> None:
    """√((1−τ)² + 4) on [0, 3]: 2 at τ = 1, √5 at 0 and 2, √8 at 3."""
    one = curve("l2", ([1, 2], [1, 0]))
    labels = label(one, 0, 3, float(np.sqrt(5)) + 1e-12)
    assert labels.inner[0] == pytest.approx([0, 2], abs=1e-9) and labels.outer[0] == pytest.approx([0, 2], abs=1e-9)
    assert labels.is_mixed[0] and not labels.is_kept[0] and not labels.is_lost[0]
    assert labels.reach[0] == pytest.approx([2, np.sqrt(8)], rel=1e-12)
    assert label(one, 0, 3, 3.0).is_kept[0] and not label(one, 0, 3, 3.0).is_mixed[0]
    assert label(one, 0, 3, 1.999).is_lost[0] and not label(one, 0, 3, 1.999).is_mixed[0]


def test_tangent_threshold() -> None:
    """δ equal to the least value, which is reached at one τ: neither AR nor IR as a whole, and that τ is not IR."""
    one = curve("l2", ([1, 2], [1, 0]))
    labels = label(one, 0, 3, 2.0)
    assert not labels.is_lost[0] and not labels.is_kept[0]
    assert labels.outer[0, 0] <= 1 <= labels.outer[0, 1]
    assert np.ptp(labels.outer[0]) < 1e-5
    assert_sound(one, labels)


def test_flat_bottom() -> None:
    """|1−τ| + |2−τ| is 1 on [1, 2]; at δ = 1 nothing outside is AR and nothing inside is IR."""
    one = curve("l1", ([1, 2], [1, 1]))
    labels = label(one, 0, 4, 1.0)
    assert labels.outer[0] == pytest.approx([1, 2], abs=1e-9)
    assert labels.outer[0, 0] <= 1 and labels.outer[0, 1] >= 2
    higher = label(one, 0, 4, 1.5)
    assert higher.inner[0] == pytest.approx([0.75, 2.25], abs=1e-9)
    assert higher.outer[0] == pytest.approx([0.75, 2.25], abs=1e-9)


def test_maps_that_meet() -> None:
    """‖u − τ·v‖ with u = v/2 vanishes at 1/2: AR around it for every δ > 0, and at δ = 0 never IR there."""
    for dist in ("l1", "l2"):
        one = curve(dist, ([1, -2], [2, -4]))
        for delta in (0.0, 1e-3, 0.5):
            labels = label(one, 0, 1, delta)
            assert_sound(one, labels)
            assert not labels.is_lost[0]
            assert labels.outer[0, 0] <= 0.5 <= labels.outer[0, 1]
        assert labels.inner[0, 0] < 0.5 < labels.inner[0, 1]


def test_constant_curves() -> None:
    for dist, size in (("l1", 7.0), ("l2", 5.0)):
        one = curve(dist, ([3, 4], [0, 0]))
        assert label(one, 0, 1, size + 1e-9).is_kept[0]
        assert label(one, 0, 1, size - 1e-9).is_lost[0]
        equal = label(one, 0, 1, size)
        assert not equal.is_lost[0] and not equal.is_mixed[0]


@pytest.mark.parametrize("dist", ["l1", "l2"])
def test_an_error_of_the_maps_widens_what_is_undecided(dist: str) -> None:
    one = curve(dist, ([0], [1]))
    sharp, blurred = label(one, 0, 1, 0.5), label(one, 0, 1, 0.5, 0.125)
    assert sharp.inner[0, 1] == pytest.approx(0.5, abs=1e-9) and sharp.outer[0, 1] == pytest.approx(0.5, abs=1e-9)
    assert blurred.inner[0, 1] == pytest.approx(0.375, abs=1e-9)
    assert blurred.outer[0, 1] == pytest.approx(0.625, abs=1e-9)
    assert blurred.reach[0] == pytest.approx([-0.125, 1.125])
    assert not label(one, 0, 1, 1.0, 0.125).is_kept[0]
    assert not label(curve(dist, ([1], [0])), 0, 1, 1.0, 0.125).is_lost[0]


def test_the_finer_error_is_asked_for_where_the_coarse_one_leaves_doubt() -> None:
    curves, taus = stored([curve("l2", ([0], [1])), curve("l2", ([8], [1]))], [(0, 1), (0, 1)])
    labels = label_attention(curves, Spans(taus), 0.5, GivenErrors(curves, 1.0, own=0.125))  # type: ignore[arg-type]
    assert labels.inner[0, 1] == pytest.approx(0.375, abs=1e-9)
    assert labels.is_lost.tolist() == [False, True]
    assert labels.reach[1] == pytest.approx([6, 9]), "the second was decided by the coarse error"


def test_labels_from_scratch_bring_the_directions_that_their_places_lie_along():
    every, first = np.tile([0.0, 1.0], (2, 1)), np.tile([1.0, 0.0], (2, 1))
    before = AttentionLabels(0.5, every, every, every, every, first)
    again = AttentionLabels(0.5, *[np.array([[-1.0, 0.25]])] * 2, np.array([[-1.0, 0.5]]), every[:1], -first[:1])
    found = _replaced(before, np.array([1]), again)
    assert found.along.tolist() == [[1.0, 0.0], [-1.0, 0.0]]
    assert found.ends.tolist() == [[0.0, 1.0], [-1.0, 0.5]] and found.inner.tolist() == [[0.0, 1.0], [-1.0, 0.25]]
    assert _replaced(before, np.array([0]), AttentionLabels(0.5, *[every[:1]] * 4)).along is before.along
