"""Plain passes: gradients against finite differences, bounds of rounding against exact rationals and long doubles."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from steadygaze.engines.refine.point_rounding import bound_rounding, margin_slack
from steadygaze.engines.refine.pointwise import PointPasses
from steadygaze.network.doubts import doubtful_bits
from steadygaze.question import Question, make_question
from support.networks.layered_models import make_model

IMAGE = np.array([[[0.1, 0.3, 0.7], [0.2, 0.9, 0.4]]])
SPECS = ["brightness:-0.3..0.4", "patch:x=0,y=0,w=2,h=1:-0.5..0.5"]


def random_layers(seed: int, sizes: tuple[int, ...], scale: float = 1.0) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [
        (rng.normal(size=(after, before)) * np.sqrt(2.0 / before) * scale, rng.normal(size=after) * 0.1)
        for before, after in pairwise(sizes)
    ]


def ask(layers: list, **options: object) -> Question:
    return make_question(make_model(layers, IMAGE.shape), IMAGE, SPECS, delta=1.0, **options)


def some_thetas(question: Question, count: int) -> np.ndarray:
    domain = question.perturbed.domain
    return domain.low + np.random.default_rng(1).random((count, 2)) * domain.widths


def exact(layers: list, image: list[Fraction]) -> tuple[list[Fraction], list[list[Fraction]]]:
    """Logits and their gradients with respect to the pixels, in rationals."""
    values = image
    jacobian = [[Fraction(int(i == j)) for j in range(len(image))] for i in range(len(image))]
    for number, (weight, bias) in enumerate(layers):
        rows = [[Fraction(float(w)) for w in row] for row in weight]
        inputs = values
        values = [
            sum(w * x for w, x in zip(row, inputs, strict=True)) + Fraction(float(b))
            for row, b in zip(rows, bias, strict=True)
        ]
        jacobian = [[sum(w * jacobian[k][j] for k, w in enumerate(row)) for j in range(len(image))] for row in rows]
        if number < len(layers) - 1:
            jacobian = [row if v > 0 else [Fraction(0)] * len(image) for row, v in zip(jacobian, values, strict=True)]
            values = [max(v, Fraction(0)) for v in values]
    return values, jacobian


def exact_image(theta: np.ndarray) -> list[Fraction]:
    brightness, patch = (Fraction(float(value)) for value in theta)
    pixels = [Fraction(float(value)) + brightness for value in IMAGE.ravel()]
    pixels = [value + patch if place in (0, 1) else value for place, value in enumerate(pixels)]
    return [min(max(value, Fraction(0)), Fraction(1)) for value in pixels]


@pytest.mark.parametrize(("seed", "scale"), [(0, 1.0), (1, 1.0), (2, 1e6), (3, 1e-3)])
def test_bounds_hold_against_exact_rationals(seed, scale):
    layers = random_layers(seed, (6, 5, 7, 4, 3), scale)
    question = ask(layers, dist="l1")
    thetas = some_thetas(question, 25)
    measured = PointPasses(question).measure(thetas, has_attention=True)
    expected = exact(layers, [Fraction(float(value)) for value in IMAGE.ravel()])[1]
    assert np.isfinite(measured.inconsistency_slack).all()
    for number, theta in enumerate(thetas):
        logits, maps = exact(layers, exact_image(theta))
        others = max(value for place, value in enumerate(logits) if place != question.label)
        margin = logits[question.label] - others
        error = abs(margin - Fraction(float(measured.margin[number])))
        assert error <= Fraction(float(measured.margin_slack[number]))
        rows = zip(maps, expected, strict=True)
        ai = sum(abs(a - e) for actual, wanted in rows for a, e in zip(actual, wanted, strict=True))
        error = abs(ai - Fraction(float(measured.inconsistency[number])))
        assert error <= Fraction(float(measured.inconsistency_slack[number]))
        assert measured.margin_slack[number] <= 1e-10 * float(max(map(abs, logits))) + 1e-12
        assert (
            measured.inconsistency_slack[number]
            <= 1e-10 * float(ai) + 1e-10 * PointPasses(question).original.size * scale**4
        )


def test_cancelling_weights_make_the_bound_larger():
    """The logits are about 1, as differences of numbers about 1e9: their rounding is 1e-7, and the bound says so."""
    big = np.array([[1e9, 1e9, 1e9, 0, 0, 0], [1e9, 1e9, 1e9 - 8.0, 0, 0, 0]])
    layers = [(big, np.zeros(2)), (np.array([[1.0, -1.0], [0.0, 0.0]]), np.zeros(2))]
    question = ask(layers)
    measured = PointPasses(question).measure(some_thetas(question, 5), has_attention=False)
    assert (measured.margin_slack > 1e-7).all()


def test_a_neuron_on_its_kink_makes_the_map_uncertain():
    """The second neuron is 3·0.1 − 0.3 at zero: only rounding."""
    layers = [([[1, 0, 0, 0, 0, 0], [3, -1, 0, 0, 0, 0]], [0.0, 0.0]), ([[1.0, 5.0], [0.0, 0.0]], [0.0, 0.0])]
    question = ask(layers)
    passes = PointPasses(question)
    on, beside = np.array([[0.0, 1e-16]]), np.array([[0.0, 1e-6]])
    assert np.isinf(passes.measure(on, has_attention=True).inconsistency_slack).all()
    assert np.isfinite(passes.measure(beside, has_attention=True).inconsistency_slack).all()


def test_maps_of_one_class_over_one_row_of_pixels_are_measured():
    image = np.array([[[0.1, 0.8, 0.4]]])
    model = make_model(random_layers(0, (3, 4, 2)), image.shape)
    question = make_question(model, image, ["brightness:0..0.3"], delta=1.0, classes="predicted")
    measured = PointPasses(question).measure(np.array([[0.2]]), has_attention=True)
    assert measured.inconsistency.shape == (1,)
    assert 0.0 < measured.inconsistency_slack[0] < 1e-12


def test_deep_networks_are_measured_where_worst_cases_say_nothing():
    layers = random_layers(5, (6, *[96] * 30, 4))
    question = ask(layers)
    plain, thetas = PointPasses(question), some_thetas(question, 12)
    trace = plain.trace(thetas)
    rounding = bound_rounding(plain, thetas, trace)
    # Long doubles carry 64 bits: against them the error of float64 is seen.
    values = question.perturbed.images(thetas).reshape(12, -1).astype(np.longdouble)
    for number, (weight, bias) in enumerate(layers):
        values = values @ weight.T.astype(np.longdouble) + bias
        if number < len(layers) - 1:
            own, total = trace.values[number], rounding.total[number]
            assert (np.abs(values - own) <= total).all()
            assert doubtful_bits(plain.layers[number], own, total).sum() <= 2
            values = np.maximum(values, 0.0)
    rows = plain.against_rival(trace.logits)
    slack = margin_slack(plain, trace, rounding, rows[:, None])[:, 0]
    margins = (values * rows).sum(axis=1)
    error = np.abs(margins - plain.margins_of(trace.logits))
    assert (error <= slack).all()
    assert (error > 0.0).any()
    assert (slack <= 1e-7 * np.abs(trace.logits).max()).all()
    worst = np.abs(question.perturbed.images(thetas).reshape(12, -1))
    for weight, _ in layers:
        worst = worst @ np.abs(weight).T
    assert worst.min() * 2.0**-53 > 1e3 * np.abs(trace.logits).max()


def test_slopes_are_those_of_finite_differences():
    question = ask(random_layers(3, (6, 12, 12, 3)))
    plain, thetas = PointPasses(question), some_thetas(question, 20)
    margins, slopes = plain.margins(thetas), plain.slopes(thetas)
    step = 1e-7
    for axis in range(2):
        moved = thetas.copy()
        moved[:, axis] += step * question.perturbed.domain.widths[axis]
        differences = (plain.margins(moved) - margins) / step
        # A kink may lie within the step for one theta or other; not for most.
        assert np.median(np.abs(differences - slopes[:, axis])) < 1e-5
        assert np.abs(slopes[:, axis]).max() > 0.1
