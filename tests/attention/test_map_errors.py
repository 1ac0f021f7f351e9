"""The claimed error of ai bounds it: curves compared with exact rationals on networks where rounding accumulates.

ai as stored must be within the bound for all curves of the exact value, and within the bound of its own pattern once it
is settled (computed from scratch); the rounding of evaluating a curve, which the evaluation states, comes on top.
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from steadygaze.attention import curve_kernels, map_errors
from steadygaze.attention.distances import Distance
from steadygaze.attention.filters import Filter
from steadygaze.attention.inconsistency import Inconsistency, original_maps
from steadygaze.attention.map_errors import MapErrors
from steadygaze.attention.measuring import measure
from steadygaze.attention.options import AttentionOptions
from steadygaze.attention.spans import Spans
from steadygaze.compound import Compound
from steadygaze.perturbation import parse_spec
from steadygaze.regions.patterns import unpack
from steadygaze.regions.region import RegionSet
from steadygaze.regions.subdivide import subdivide
from support.networks.layered_networks import FloatLayer, make_compound
from support.oracles.attention_by_definition import Question
from support.oracles.exact_attention import ExactAttention

MOST_PATTERNS = 25


def deep_layers(rng: np.random.Generator, pixels: int, *, depth: int = 16, width: int = 10) -> list[FloatLayer]:
    """Deep and narrow, with weights that keep the signal alive."""
    sizes = [pixels, *[width] * depth, 3]
    return [(rng.normal(size=(b, a)) * np.sqrt(2 / a), 0.1 * rng.normal(size=b)) for a, b in pairwise(sizes)]


def uneven_layers(rng: np.random.Generator, pixels: int) -> list[FloatLayer]:
    """One neuron in six matters a million times more than the others, where it is active."""
    weight = np.abs(rng.normal(size=(6, pixels)))
    inputs = rng.random((6, pixels))
    top = rng.normal(size=(2, 6))
    top[:, rng.integers(6)] *= 1e6
    return [(weight, -(weight * inputs).sum(axis=1)), (top, np.zeros(2))]


def one_layer(rng: np.random.Generator, pixels: int) -> list[FloatLayer]:
    """A linear classifier: its maps are known exactly, and only their transport and their norms round."""
    return [(rng.normal(size=(3, pixels)), rng.normal(size=3))]


NETWORKS: dict[str, Callable[[np.random.Generator, int], list[FloatLayer]]] = {
    "deep": deep_layers,
    "uneven": uneven_layers,
    "linear": one_layer,
}
PROBLEMS = (("brightness:-0.5..0.5",), ("translate:dx=2:-0.7..1.9",), ("translate:dy=-1", "brightness:0..0.1"))


def make(
    network: str, specs: tuple[str, ...], question: Question, seed: int
) -> tuple[Compound, RegionSet, Inconsistency, MapErrors]:
    rng = np.random.default_rng(seed)
    shape = (1, 2, 3)
    compound = make_compound(NETWORKS[network](rng, 6), [parse_spec(spec) for spec in specs], rng.random(shape))
    regions = subdivide(compound)
    options = AttentionOptions(Filter.parse(question.filter), Distance.parse(question.dist), question.classes)
    curves = measure(compound, regions, options, original_maps(compound, options))
    return compound, regions, curves, MapErrors(compound, regions.patterns, curves, options)


def evaluate(curves: Inconsistency, q: int, tau: float) -> tuple[float, float]:
    """The package's own value of a curve and the rounding error that it states for the evaluation."""
    if len(curves.constant):
        return float(curves.constant[q]), 0.0
    form = curves.quadratic[q] if len(curves.quadratic) else curves.quadratic[:0, 0]
    start = curves.start[q] if len(curves.start) else curves.start[:, 0]
    inside = slice(curves.breaks[q], curves.breaks[q + 1]) if len(curves.start) else slice(0, 0)
    value, _, error = curve_kernels.curve_value(
        form, start, curves.places[inside], curves.jumps[inside], tau, curves.rounding
    )
    return float(value), float(error)


def actual_and_claimed(network: str, specs: tuple[str, ...], question: Question, seed: int) -> np.ndarray:
    """For up to 25 curves |stored − exact| at a theta of a region, the bound, and both again once settled, (S, 4).

    What the evaluation states as its error is taken off the differences.
    """
    compound, regions, curves, errors = make(network, specs, question, seed)
    exact = ExactAttention(compound, question)
    bits = unpack(regions.patterns[regions.pattern], compound.hidden)
    axis, spans = compound.perturbed.moving_axis, Spans.of_regions(compound, regions)
    chosen = np.unique(np.linspace(0, curves.curve.max(), MOST_PATTERNS).astype(int))
    settled = errors.settle(chosen, spans)
    rows = []
    for number, q in enumerate(chosen):
        region = int(np.flatnonzero(curves.curve == q)[-1])
        theta = [Fraction(0)] * compound.domain.dimension
        tau = 0.0
        if axis is not None:
            tau = float(spans.taus[region] @ [0.25, 0.75])
            theta[axis] = Fraction(tau) + Fraction(float(compound.cells[regions.cell[region]].low[axis]))
        truth = exact.inconsistency([layer[region] for layer in bits], theta)
        row = []
        for some, place, bound in ((curves, q, errors.coarse), (settled.curves, number, settled.slack[number])):
            value, rounding = evaluate(some, place, tau)
            row += [float(abs(Decimal(value) - truth)) - rounding, bound]
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("question", [Question(), Question("abs+mean", "l1"), Question("mean", "l2", (1,))])
@pytest.mark.parametrize("specs", PROBLEMS, ids="+".join)
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("seed", range(2))
def test_claimed_errors_bound_the_actual_ones(
    network: str, specs: tuple[str, ...], question: Question, seed: int
) -> None:
    if network == "uneven":
        question = Question(question.filter, question.dist, (0,) if question.classes else None)
    stored, coarse, settled, own = actual_and_claimed(network, specs, question, seed).T
    assert (stored <= coarse).all()
    assert (settled <= own).all()
    assert (own <= coarse).all()


def test_an_unsound_bound_is_caught() -> None:
    """Bounds a million times too small fail the same comparison."""
    _, _, settled, own = actual_and_claimed("deep", PROBLEMS[0], Question(), 0).T
    assert (settled > 1e-6 * own).any()
    stored, coarse, _, _ = actual_and_claimed("uneven", PROBLEMS[0], Question(), 0).T
    assert (stored > 1e-6 * coarse).any()


@pytest.mark.parametrize("is_linear", [True, False])
@pytest.mark.parametrize("dist", ["l1", "l2"])
@pytest.mark.parametrize("step", [0.1, 0.3, 0.7])
def test_sums_over_many_equal_pixels(dist: str, step: float, is_linear: bool) -> None:
    """A sum of thousands of equal terms rounds the same way again and again.

    Every second pixel has the gradient `step`, so that moved by half a pixel each is off by half of it. Towards θ = 0
    the squares of L2 cancel.
    """
    pixels = 2000
    row = np.tile([step, 0.0], pixels // 2)
    layers = [(np.stack([row, -row]), np.zeros(2))]
    if not is_linear:
        layers = [(row[None], np.array([1.0])), (np.array([[1.0], [-1.0]]), np.zeros(2))]
    compound = make_compound(layers, [parse_spec("translate:dx=1:-0.5..0")], np.zeros((1, 1, pixels)))
    regions = subdivide(compound)
    options = AttentionOptions(distance=Distance.parse(dist))
    curves = measure(compound, regions, options, original_maps(compound, options))
    errors = MapErrors(compound, regions.patterns, curves, options)
    exact = ExactAttention(compound, Question(dist=dist))
    bits = unpack(regions.patterns[regions.pattern], compound.hidden)
    assert len(regions) == 1
    _, settled, slack = errors.settle(np.array([0]), Spans.of_regions(compound, regions))
    for tau in (0.0, 0.125, 0.3, 0.499, 0.4999999, 0.5):
        truth = exact.inconsistency([layer[0] for layer in bits], [Fraction(tau) - Fraction(1, 2)])
        for some, bound in ((curves, errors.coarse), (settled, slack[0])):
            value, rounding = evaluate(some, 0, tau)
            assert abs(Decimal(value) - truth) <= Decimal(rounding) + Decimal(float(bound))


def test_own_bounds_are_smaller_on_deep_networks() -> None:
    """Products of absolute weights grow with the depth, the signed gradients of one pattern do not."""
    _, coarse, _, own = actual_and_claimed("deep", PROBLEMS[0], Question(), 0).T
    assert (own < 0.1 * coarse).all()
    assert (own < 1e-9).all()


def test_a_pattern_is_bounded_once_for_all_thresholds(monkeypatch: pytest.MonkeyPatch):
    _, regions, curves, errors = make("deep", PROBLEMS[0], Question(), seed=3)
    chosen = np.arange(len(curves.curve_cell))
    first = errors.of(chosen)
    other = errors.for_curves(regions.patterns, curves)
    monkeypatch.setattr(map_errors, "pattern_error", lambda *arguments: pytest.fail("bounded again"))
    np.testing.assert_array_equal(other.of(chosen), first)
