"""Verdicts: robust, not robust or undecided for each property; ties and kinks at the unperturbed image."""

import numpy as np
import pytest

from steadygaze.api import verify
from steadygaze.budget import Budget
from steadygaze.engines import run
from steadygaze.errors import ImageError, OptionError
from steadygaze.labels import Verdict
from steadygaze.question import Threshold, make_question
from steadygaze.results.answer import round_up
from support.networks.layered_models import ask, interrupted, make_model

ROBUST, NOT_ROBUST, UNDECIDED = Verdict.ROBUST, Verdict.NOT_ROBUST, Verdict.UNDECIDED

# h1 = ReLU(x1), h2 = ReLU(x2 − 1/2); logits (h1, h2 + 1/4): from x0 = (3/4, 0), a patch on the second pixel makes h2
# active at 1/2 (the map of class 1 jumps from (0, 0) to (0, 1)), and h2 + 1/4 reaches 3/4 only at 1.
LAYERS = [(np.eye(2), np.array([0.0, -0.5])), (np.eye(2), np.array([0.0, 0.25]))]
IMAGE = np.array([[[0.75, 0.0]]])


@pytest.mark.parametrize(
    ("ends", "delta", "verdicts"),
    [
        ("0..0.4", 0.5, {"cr": ROBUST, "ar": ROBUST, "both": ROBUST}),
        ("0..0.9", 0.5, {"cr": ROBUST, "ar": NOT_ROBUST, "both": NOT_ROBUST}),
        ("0..0.9", 1.5, {"cr": ROBUST, "ar": ROBUST, "both": ROBUST}),
        ("0..0.9", 1.0, {"cr": ROBUST, "ar": UNDECIDED, "both": UNDECIDED}),
    ],
)
def test_verdicts_by_hand(ends: str, delta: float, verdicts: dict[str, Verdict]) -> None:
    for wanted, verdict in verdicts.items():
        result = ask(LAYERS, IMAGE, [f"patch:x=1,y=0,w=1,h=1:{ends}"], delta=delta, property=wanted)
        assert result.verdict is verdict, wanted


def test_a_lost_label_with_kept_attention() -> None:
    """Linear logits (x1, x2): the maps never change, the label does."""
    layers = [(np.eye(2), np.ones(2)), (np.eye(2), np.zeros(2))]
    spec = "patch:x=1,y=0,w=1,h=1"
    verdicts = {
        wanted: ask(layers, IMAGE, [spec], property=wanted, delta=1.0).verdict for wanted in ("cr", "ar", "both")
    }
    assert verdicts == {"cr": NOT_ROBUST, "ar": ROBUST, "both": NOT_ROBUST}


def test_a_margin_within_rounding_is_undecided() -> None:
    """Logits (1/4, ReLU(b)) on b ≤ 1/4: equal at the end of the domain, so strictly more is never claimed there."""
    layers = [(np.eye(1), np.zeros(1)), (np.array([[0.0], [1.0]]), np.array([0.25, 0.0]))]
    result = ask(layers, np.zeros((1, 1, 1)), ["brightness:0..0.25"], property="cr")
    assert result.verdict is UNDECIDED
    low, high = result.areas["CR"]
    assert 1 - 1e-9 < low < high == 1.0
    assert ask(layers, np.zeros((1, 1, 1)), ["brightness:0..0.249"], property="cr").verdict is ROBUST
    assert ask(layers, np.zeros((1, 1, 1)), ["brightness:0..0.251"], property="cr").verdict is NOT_ROBUST


def test_a_tie_on_an_area_is_undecided() -> None:
    """Logits (ReLU(1 − 2b), 0): nothing above the label, but tied with it on half of the domain."""
    layers = [(np.array([[-2.0]]), np.ones(1)), (np.array([[1.0], [0.0]]), np.zeros(2))]
    result = ask(layers, np.zeros((1, 1, 1)), ["brightness"], property="cr")
    assert result.verdict is UNDECIDED
    assert result.areas["CR"] == pytest.approx((0.5, 1.0), abs=1e-9)
    assert result.answer.sets["CR"] <= 1, "a tied region is not CR"


def test_a_tie_at_zero_is_an_error_that_says_so() -> None:
    layers = [(np.eye(2), np.zeros(2)), (np.eye(2), np.zeros(2))]
    with pytest.raises(ImageError, match=r"tied.*image") as caught:
        ask(layers, np.full((1, 1, 2), 0.5), ["brightness"], names=["cat", "dog"])
    assert "cat, dog" in str(caught.value) and "\n" not in str(caught.value)


def test_all_logits_zero_is_a_tie() -> None:
    layers = [(np.eye(2), np.full(2, -5.0)), (np.eye(2), np.zeros(2))]
    with pytest.raises(ImageError, match="tied"):
        ask(layers, IMAGE, ["brightness"])


@pytest.mark.parametrize("lead", [1e-6, 1e-13, 1e-300])
def test_a_label_is_no_tie_however_small_its_lead(lead: float) -> None:
    layers = [(np.eye(2), np.zeros(2)), (np.eye(2), np.array([0.0, lead]))]
    assert ask(layers, np.full((1, 1, 2), 0.5), ["brightness:0..0.25"]).label == 1


def test_logits_that_are_not_finite_are_an_error() -> None:
    layers = [(np.eye(2), np.zeros(2)), (np.array([[1.0, 0.0], [np.inf, 1.0]]), np.zeros(2))]
    with np.errstate(invalid="ignore"):
        question = make_question(make_model(layers, (1, 1, 2)), IMAGE, ["brightness"])
    with pytest.raises(ImageError, match="finite"):
        _ = question.label


def test_a_kink_at_the_unperturbed_image_is_noted() -> None:
    """h2 = ReLU(x2 − 1/2) is on its kink at x2 = 1/2 and counts as inactive."""
    on_kink = make_question(make_model(LAYERS, (1, 1, 2)), np.array([[[0.75, 0.5]]]), ["brightness"])
    assert any("1 neuron of" in note and "on its kink" in note for note in on_kink.notes)
    beside = make_question(make_model(LAYERS, (1, 1, 2)), np.array([[[0.75, 0.5 + 1e-6]]]), ["brightness"])
    assert not any("kink" in note for note in beside.notes)
    result = run(on_kink, "map", threads=1)
    assert np.array_equal(result.question.original[1], np.zeros((1, 1, 2)))


def test_a_partial_map_without_a_violation_is_undecided() -> None:
    specs = ("translate:dy=2:0..1.5", "brightness:0..0.3")
    whole = verify("M-FNN-100", "mnist:69990", specs, property="cr", threads=1)
    assert whole.verdict is ROBUST
    part = interrupted("M-FNN-100", "mnist:69990", specs, calls=1, property="cr")
    assert not part.is_complete and part.verdict is UNDECIDED
    low, high = part.areas["CR"]
    assert low == pytest.approx(part.tiling.answers.regions.polytopes.volumes.sum()) and high == 1.0
    assert part.areas["MR"] == pytest.approx((0.0, 1.0 - low))
    assert part.tiling.answers.enough_delta is None


@pytest.mark.parametrize("dist", ["l1", "l2"])
@pytest.mark.parametrize("spec", ["brightness", "translate:dx=2"])
def test_a_budget_that_ends_at_once_leaves_everything_undecided(spec: str, dist: str) -> None:
    budget = Budget()
    budget.cancelled.set()
    result = verify("M-FNN-100", "mnist:69990", [spec], dist=dist, budget=budget, threads=1)
    assert result.verdict is UNDECIDED
    assert result.areas["undecided"] == (1.0, 1.0)
    assert all(bounds == (0.0, 1.0) for name, bounds in result.areas.items() if name != "undecided")
    assert all(found.low == 0.0 and np.isinf(found.high) for found in result.answer.nearest.values())


def test_a_region_thinner_than_the_tolerance_keeps_its_label() -> None:
    """A triangle of 7.5e-11 × 3e-10 lies in a domain where ai stays far below δ; it is not a violation.

    x = (1 − τ + b, τ + b, …) is not clipped, so (τ, b) are affine in it: lines at t1 = 1/2, t2 = 4 t1 − 3/2 and, one
    layer further, t2 = 1/2 + 3e-10.
    """
    rows = [line(1.0, 0.0, -0.5), line(-4.0, 1.0, 1.5), line(0.0, 1.0, -0.5 - 3e-10)]
    first = np.array([[*rows[0][0], 0.0], [*rows[1][0], 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    second = np.array([[0.0, 0.0, *rows[2][0]], [0.0, 0.0, 1.0, 2.0]])
    layers = [
        (first, np.array([rows[0][1], rows[1][1], 0.0, 0.0])),
        (second, np.array([rows[2][1], 1.0])),
        (np.array([[0.0, 1.0], [0.0, 0.5]]), np.zeros(2)),
    ]
    specs = ["translate:dx=1:0.25..0.75", "brightness:0..0.25"]
    result = ask(layers, np.array([[[1.0, 0.0, 0.5]]]), specs, property="ar", delta=100.0)
    extents = [
        np.ptp(result.tiling.answers.regions.polytopes[i][:, 0]) for i in range(len(result.tiling.answers.regions))
    ]
    assert min(extents) < 1e-10, "the thin region is there"
    assert result.answer.sets["AR"] == len(extents)
    assert result.verdict is ROBUST
    assert result.areas["IR"] == (0.0, 0.0)


def line(a: float, b: float, c: float) -> tuple[list[float], float]:
    """a·t1 + b·t2 + c with τ = 1/4 + t1/2 and b = t2/4, in terms of x1 = 1 − τ + b and x2 = τ + b."""
    along, up = a * 2.0, b * 4.0
    return [(up - along) / 2, (up + along) / 2], c + along / 2 - up / 2 - a * 0.5


@pytest.mark.parametrize(
    ("text", "size", "value"), [("25%", 8.0, 2.0), ("3.0", 8.0, 3.0), (0.5, 8.0, 0.5), ("0%", 8.0, 0.0)]
)
def test_thresholds(text: str | float, size: float, value: float) -> None:
    assert Threshold.parse(text).value(size) == value


@pytest.mark.parametrize(
    "text", ["25%", "3.0", "0", "1.23456789", "33.333333333%", "0.1%", "1e-9%", 1 / 3, f"{1 / 3!r}%"]
)
def test_the_text_of_a_threshold_is_read_as_the_same(text: str | float) -> None:
    delta = Threshold.parse(text)
    assert Threshold.parse(str(delta)) == delta


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "many", "25 percent", "", "-5%"])
def test_thresholds_that_make_no_sense(text: str) -> None:
    with pytest.raises(OptionError, match="threshold"):
        Threshold.parse(text)


@pytest.mark.parametrize("number", [1e-300, 1.23456781, 0.1, 1 / 3, 2 / 3, 99999999.5, 123456789.0, 1e300, 9.99999999])
def test_rounding_up(number: float) -> None:
    found = round_up(number)
    assert number <= found <= number * (1 + 2e-7)
    assert float(f"{found:.7e}") == found
