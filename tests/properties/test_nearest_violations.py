"""The violation nearest to zero: proved bounds of the distance against hand-solved, gridded and sampled ones."""

import numpy as np
import pytest

from steadygaze.api import verify
from steadygaze.perturbation import parse_spec
from steadygaze.properties.nearest import Nearest
from steadygaze.results.result import Result
from support.networks.layered_models import ask, interrupted, make_answers
from support.networks.layered_networks import make_compound
from support.oracles.attention_by_definition import Question, chain_gradients, inconsistency

IDENTITY = [(np.eye(2), np.zeros(2)), (np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros(2))]
"""Two pixels are the two logits."""


def distance(result: Result, theta: np.ndarray) -> float:
    """From zero, each axis divided by its width."""
    return float(np.hypot.reduce(theta / result.question.perturbed.domain.widths))


def assert_consistent(result: Result, found: Nearest, *, is_label: bool) -> None:
    """theta lies in the domain, violates by definition, and is at distance `high`."""
    assert found.theta is not None and found.low <= found.high
    assert result.question.perturbed.domain.contains(found.theta)
    assert found.high == pytest.approx(distance(result, found.theta), rel=1e-9, abs=1e-12)
    point = result.at(found.theta)
    assert point.margin < 0 if is_label else point.inconsistency > result.answer.delta


def test_one_parameter_by_hand() -> None:
    """x = (3/4, 1/4 + p) with p on the second pixel: class 1 wins for p > 1/2."""
    image = np.array([[[0.75, 0.25]]])
    for ends, width in (("", 1.0), (":-1..1", 2.0), (":0.25..0.75", 0.5)):
        result = ask(IDENTITY, image, [f"patch:x=1,y=0,w=1,h=1{ends}"])
        found = result.answer.nearest["CR"]
        assert found.low <= 0.5 / width <= found.high + 1e-12
        assert found.high - found.low < 1e-6
        assert_consistent(result, found, is_label=True)


def test_each_axis_is_divided_by_its_width() -> None:
    """x = (1/2 − q, 1/4 + p): class 1 wins for p + q > 1/4. With widths 1/2 and 1 the line is p'/2 + q' = 1/4."""
    layers = [(np.eye(2), np.zeros(2)), (np.eye(2), np.zeros(2))]
    specs = ["patch:x=1,y=0,w=1,h=1:0..0.5", "patch:x=0,y=0,w=1,h=1,tone=-1:0..1"]
    result = ask(layers, np.array([[[0.5, 0.25]]]), specs)
    found = result.answer.nearest["CR"]
    exact = 0.25 / np.hypot(0.5, 1.0)
    assert found.low <= exact <= found.high
    assert found.high - found.low < 1e-6
    assert_consistent(result, found, is_label=True)
    assert found.theta == pytest.approx(np.array([0.5 * 0.5, 1.0]) * 0.25 / 1.25, abs=1e-6)


def test_a_domain_that_does_not_contain_zero() -> None:
    """The label holds up to p = 1/2; on [1/4, 1] the nearest violation is at 1/2, and on [3/4, 1] at 3/4."""
    image = np.array([[[0.75, 0.25]]])
    for low, nearest in ((0.25, 0.5), (0.75, 0.75)):
        result = ask(IDENTITY, image, [f"patch:x=1,y=0,w=1,h=1:{low}..1"])
        found = result.answer.nearest["CR"]
        width = 1 - low
        assert found.low <= nearest / width <= found.high + 1e-12
        assert found.high - found.low < 1e-6
        assert_consistent(result, found, is_label=True)


def test_infinite_when_robust() -> None:
    result = ask(IDENTITY, np.array([[[0.75, 0.25]]]), ["brightness:0..0.1"], delta=10.0)
    for name in ("CR", "AR"):
        found = result.answer.nearest[name]
        assert np.isinf(found.low) and np.isinf(found.high) and found.theta is None and found.piece is None


def test_attention_that_moves_by_hand() -> None:
    """A constant map (1, 0) that should move right by τ: ai = τ·(1 + 1) in L1, so δ = 1/2 is passed at 1/4."""
    layers = [(np.array([[1.0, 0.0]]), np.ones(1)), (np.array([[1.0], [0.0]]), np.zeros(2))]
    image = np.array([[[0.5, 0.25]]])
    for spec, width in (("translate:dx=1", 1.0), ("translate:dx=2:-1..1", 2.0), ("translate:dx=1:0.125..1", 0.875)):
        result = ask(layers, image, [spec], dist="l1", delta=0.5)
        found = result.answer.nearest["AR"]
        assert found.low <= 0.25 / width <= found.high + 1e-12
        assert found.high - found.low < 1e-6
        assert_consistent(result, found, is_label=False)


@pytest.mark.parametrize("part", [1e-6, 1e-8, 1e-9])
def test_with_one_parameter_nothing_else_counts(part: float) -> None:
    """A violation in the last millionth (or less) of [0, 1] is not farther than 1."""
    layers = [(np.array([[1.0, 0.0]]), np.ones(1)), (np.array([[1.0], [0.0]]), np.zeros(2))]
    result = ask(layers, np.array([[[0.5, 0.25]]]), ["translate:dx=1"], dist="l1", delta=2.0 * (1 - part))
    found = result.answer.nearest["AR"]
    assert 1 - 2 * part <= found.low <= found.high <= 1.0 + 1e-11
    assert_consistent(result, found, is_label=False)


def test_attention_that_jumps_at_zero() -> None:
    """h = ReLU(x1) is on its kink at x0 = 0 and active for every b > 0: the map changes at once."""
    layers = [(np.array([[1.0, 0.0]]), np.zeros(1)), (np.array([[1.0], [0.0]]), np.array([0.0, 0.5]))]
    result = ask(layers, np.zeros((1, 1, 2)), ["brightness"], delta=0.5)
    found = result.answer.nearest["AR"]
    assert found.low == 0.0 and found.high < 1e-6
    assert_consistent(result, found, is_label=False)


def test_a_tie_on_an_area_bounds_the_distance_from_below_only() -> None:
    """Logits (ReLU(1 − 2b), 0): tied for b > 1/2, so no violation is proved and none nearer than 1/2 is possible."""
    layers = [(np.array([[-2.0]]), np.ones(1)), (np.array([[1.0], [0.0]]), np.zeros(2))]
    result = ask(layers, np.zeros((1, 1, 1)), ["brightness"], delta=10.0)
    found = result.answer.nearest["CR"]
    assert found.low == pytest.approx(0.5, abs=1e-9) and found.low <= 0.5
    assert np.isinf(found.high) and found.theta is None


@pytest.mark.parametrize("question", [Question(), Question("abs", "l1")])
@pytest.mark.parametrize(
    "specs",
    [
        ("brightness:-0.5..1", "patch:x=0,y=0,w=2,h=2"),
        ("translate:dx=2:-0.75..1.5", "darkness:0..0.5"),
        ("translate:dy=1:0.25..1",),
        ("patch:x=1,y=0,w=2,h=1:0.125..0.875", "brightness:0.25..0.75"),
    ],
    ids="+".join,
)
@pytest.mark.parametrize("seed", range(3))
def test_against_a_grid(seed: int, specs: tuple[str, ...], question: Question) -> None:
    """No violation on a fine grid is nearer than `low`, and one within a grid step of `high` exists."""
    rng = np.random.default_rng(seed)
    layers = [(rng.normal(size=(6, 9)), 0.2 * rng.normal(size=6)), (rng.normal(size=(3, 6)), 0.2 * rng.normal(size=3))]
    image = rng.choice([0.0, 0.25, 0.6, 1.0], size=(1, 3, 3))
    compound = make_compound(layers, [parse_spec(spec) for spec in specs], image)
    label = int(np.argmax(compound.graph.logits(image[None])[0]))
    answers = make_answers(compound, label, question)
    count = 61 if len(specs) == 2 else 1001
    axes = [np.linspace(low, high, count) for low, high in zip(compound.domain.low, compound.domain.high, strict=True)]
    thetas = np.stack([part.ravel() for part in np.meshgrid(*axes)], axis=1)
    distances = np.sqrt(((thetas / compound.domain.widths) ** 2).sum(axis=1))
    logits = compound.graph.logits(compound.perturbed.images(thetas))
    margins = logits[:, label] - np.delete(logits, label, axis=1).max(axis=1)
    check_bounds(answers.at(1.0).nearest["CR"], distances[margins < -1e-9])
    gradients = chain_gradients(compound.chain, image.shape)
    chosen = rng.permutation(len(thetas))[:400]
    values = np.array([inconsistency(gradients, compound.perturbed, theta, question) for theta in thetas[chosen]])
    # Not a value that a whole region has: that would be undecided.
    for delta in np.quantile(values, [0.2, 0.7]) + 1e-4:
        found = answers.at(float(delta)).nearest["AR"]
        check_bounds(found, distances[chosen][values > delta + 1e-9])
        if found.theta is not None:
            assert inconsistency(gradients, compound.perturbed, found.theta, question) > delta


def check_bounds(found: Nearest, violations: np.ndarray) -> None:
    nearest = violations.min(initial=np.inf)
    assert found.low <= nearest
    assert found.low <= found.high and (found.high <= nearest + 1e-6 or np.isinf(nearest))
    # Generic maps have no ties: the infimum is known to within rounding.
    assert found.high - found.low < 1e-5 or np.isinf(found.low)


@pytest.mark.parametrize(
    ("name", "specs", "delta"),
    [
        ("M-FNN-100", ("brightness", "patch:x=12,y=12,w=4,h=4"), 3.0),
        ("M-FNN-100", ("translate:dy=1", "brightness:0.05..0.3"), "50%"),
    ],
)
def test_bundled_networks_by_sampling(name: str, specs: tuple[str, ...], delta: float | str) -> None:
    result = verify(name, "mnist:69990", specs, delta=delta, threads=2)
    rng = np.random.default_rng(3)
    compound = result.tiling.answers.compound
    for key, is_label in (("CR", True), ("AR", False)):
        found = result.answer.nearest[key]
        if found.theta is None:
            continue
        assert_consistent(result, found, is_label=is_label)
        zero = compound.to_unit(np.zeros((1, 2)))[0]
        angles = rng.uniform(0, np.pi / 2, size=300)
        points = zero + found.low * (1 - 1e-6) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        points = points[((points >= 0) & (points <= 1)).all(axis=1)]
        for theta in compound.to_theta(points):
            point = result.at(theta)
            assert point.margin > 0 if is_label else point.inconsistency <= result.answer.delta


def test_the_unreached_part_of_a_partial_map_may_hold_violations() -> None:
    """`low` is proved, so it cannot exceed the distance to the nearest violation that the whole map knows."""
    specs = ("translate:dy=2", "brightness")
    whole = verify("M-FNN-100", "mnist:69992", specs, delta=3.0, threads=1)
    part = interrupted("M-FNN-100", "mnist:69992", specs, calls=1, delta=3.0)
    assert not part.is_complete and len(part.tiling.answers.regions) < len(whole.tiling.answers.regions)
    for key in ("CR", "AR"):
        assert np.isfinite(whole.answer.nearest[key].high)
        assert part.answer.nearest[key].low <= whole.answer.nearest[key].high
