"""The δ-curve: it encloses the share of AR at every δ, and is exact where the map is."""

import numpy as np
import pytest

import steadygaze
from steadygaze.labels import Kept
from steadygaze.report import thresholds
from steadygaze.report.thresholds import make_delta_curve, make_thresholds
from steadygaze.results.result import Result

PATCH = "patch:x=12,y=12,w=4,h=4"
QUESTIONS = {
    "kept": (["brightness:0..0.3", PATCH], {}),
    "moving": (["brightness:0..0.4", "translate:dx=1"], {}),
    "refined": (["brightness:0..0.3", PATCH], {"method": "refine", "until": 0.3}),
    "partial": (["brightness:0..0.9", "translate:dx=1"], {"method": "map"}),
}


@pytest.fixture(scope="module", params=QUESTIONS)
def result(request: pytest.FixtureRequest) -> Result:
    specs, options = QUESTIONS[request.param]
    budget = steadygaze.Budget(steadygaze.Limits(max_regions=100)) if request.param == "partial" else None
    return steadygaze.verify("M-FNN-100", "mnist:69992", specs, budget=budget, **options)


def test_the_share_lies_between_the_staircases_at_every_delta(result: Result):
    curve = make_delta_curve(result, make_thresholds(result))
    assert curve is not None and curve.delta[0] == 0.0
    assert (np.diff(curve.delta) > 0.0).all() and (curve.low <= curve.high).all()
    rng = np.random.default_rng(1)
    deltas = [*rng.random(12) * 1.3 * result.question.map_size, *curve.delta[:: max(1, len(curve.delta) // 6)]]
    for delta in deltas:
        low, high = result.with_delta(float(delta)).answer.shares.bounds(None, Kept.YES)
        first, last = curve.at(float(delta))
        assert first <= low + 1e-12 and last >= high - 1e-12
        assert result.question.perturbed.moving_axis is not None or result.method != "map" or high - low <= last - first


def test_it_is_exact_where_maps_are_kept():
    result = steadygaze.verify("M-FNN-100", "mnist:69992", ["brightness:0..0.3", PATCH])
    curve = make_delta_curve(result, make_thresholds(result))
    assert curve is not None and len(curve.delta) < thresholds.MOST_STEPS
    kinks = result.tiling.answers.slivers
    for name, (low, high) in result.kept_shares.items():
        first, last = curve.at(float(name.removesuffix("%")) / 100.0 * result.question.map_size)
        # Bounds may have decided the kinks too.
        assert low - kinks - 1e-12 <= first <= low + 1e-12 and high - 1e-12 <= last <= high + kinks + 1e-12
    assert result.enough_delta is not None and curve.at(1.001 * result.enough_delta) == (1.0 - kinks, 1.0)


def test_steps_are_thinned_outward(monkeypatch: pytest.MonkeyPatch):
    result = steadygaze.verify("M-FNN-100", "mnist:69992", ["brightness:0..0.3", PATCH])
    fine = make_delta_curve(result, make_thresholds(result))
    monkeypatch.setattr(thresholds, "MOST_STEPS", 10)
    coarse = make_delta_curve(result, make_thresholds(result))
    assert fine is not None and coarse is not None and len(coarse.delta) <= 12
    for delta in np.linspace(0.0, result.question.map_size, 50):
        (low, high), (first, last) = fine.at(delta), coarse.at(delta)
        assert first <= low and last >= high


def test_there_is_none_where_attention_was_not_measured():
    result = steadygaze.verify("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], method="refine", property="cr")
    assert make_delta_curve(result, make_thresholds(result)) is None
