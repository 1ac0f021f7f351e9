"""Input×gradient and integrated gradients: maps that contain the image, at single thetas, in bounds, in refinements."""

from functools import cache

import numpy as np
import pytest

from steadygaze.api import load, verify
from steadygaze.attention.distances import Distance
from steadygaze.attention.filters import Filter
from steadygaze.attention.masks import Mask
from steadygaze.attention.measures import Measure
from steadygaze.attention.measures.distance import DISTANCE
from steadygaze.attention.methods import Method, attended
from steadygaze.attention.options import AttentionOptions
from steadygaze.bounds.bounder import Bounder
from steadygaze.engines.refine.pointwise import PointPasses
from steadygaze.errors import OptionError
from steadygaze.labels import Label
from steadygaze.perturbation import compose, parse_spec
from support.networks.branching import random_graph
from support.networks.layered_models import ask, model_of

IMAGE = np.array([[[0.1, 0.7], [0.4, 0.3]]])
WEIGHTS = np.array([[0.0, 1.0], [0.6, 0.0]])
KEPT = ("brightness:0..0.6", "patch:x=0,y=0,w=1,h=2:0..0.5")
MOVED = ("brightness:-0.2..0.4", "translate:dx=2:0..1.8")
METHODS = ("input-x-gradient", "integrated:steps=3,baseline=0.25")
MEASURES = (("distance", "l2"), ("distance", "l1"), ("object", "l1"))


def shifted(array, pixels):
    """An array (…, H, W) moved to the right by whole pixels; zeros enter."""
    width = array.shape[-1]
    found = np.zeros_like(array)
    if pixels < width:
        found[..., pixels:] = array[..., : width - pixels]
    return found


def moved_along(array, theta, specs):
    """An array that moves with the image, at a theta: the definition of translations to the right."""
    if "translate" not in specs[1]:
        return array
    whole = int(np.floor(theta[1]))
    return (1.0 - theta[1] + whole) * shifted(array, whole) + (theta[1] - whole) * shifted(array, whole + 1)


@cache
def perturbed_by(specs):
    return compose([parse_spec(spec) for spec in specs], IMAGE)


def definition(graph, options, specs, theta, plain=None):
    """The loss at a theta, from the method's definition and the expected maps in words.

    plain: the `gradient_part` at the image as it is, if it is known.
    """
    method, classes = options.method, options.chosen(graph.classes)
    image = perturbed_by(specs).image(theta)
    factor = image - method.factor_baseline
    plain = gradient_part(method, graph, IMAGE, classes) if plain is None else plain
    actual = options.filter(gradient_part(method, graph, image, classes) * factor)
    np.testing.assert_allclose(actual, options.filter(method.maps(graph, image, classes)), rtol=1e-12, atol=1e-12)
    expected = options.filter(moved_along(plain, theta, specs) * factor)
    weights = None if options.mask is None else moved_along(options.mask.weights, theta, specs)[None]
    return float(options.losses(actual[None], expected[None], weights)[0])


def gradient_part(method, graph, image, classes):
    """The mean gradient (K', C, H, W) on the way from the baseline, or the gradient itself."""
    if method.name == "input-x-gradient":
        return Method.parse("gradient").maps(graph, image, classes)
    steps, baseline = method.settings["steps"], method.settings["baseline"]
    points = [baseline + (k + 0.5) / steps * (image - baseline) for k in range(steps)]
    return sum(Method.parse("gradient").maps(graph, point, classes) for point in points) / steps


def options_of(method, measure, norm, filter_text, graph):
    kind = Measure.parse(measure)
    mask = Mask(WEIGHTS, "given") if kind.needs_mask else None
    fitted = Method.parse(method).fit(graph)
    return AttentionOptions(Filter.parse(filter_text), Distance.parse(norm), None, fitted, kind, mask)


def check_enclosures(method, measure, norm, filter_text, specs, *, seeds, boxes, samples):
    """Bounds on random boxes hold the losses at random thetas in them; returns how many were tight."""
    tight = 0
    for seed in seeds:
        graph, rng = random_graph(seed), np.random.default_rng(seed)
        perturbed = perturbed_by(specs)
        options = options_of(method, measure, norm, filter_text, graph)
        bounder = Bounder(attended(options.method, graph), perturbed, 0, options)
        plain = gradient_part(options.method, graph, IMAGE, options.chosen(graph.classes))
        for _ in range(boxes):
            theta = rng.uniform(perturbed.domain.low, perturbed.domain.high)
            cell = perturbed.cell_of(theta)
            low, high = (perturbed.domain.to_unit(end[None])[0] for end in (cell.low, cell.high))
            centre = perturbed.domain.to_unit(theta[None])[0]
            half = 10.0 ** rng.uniform(-4, -0.5) * (high - low)
            low, high = np.maximum(low, centre - half), np.minimum(high, centre + half)
            ends = bounder.bound(cell.index, low[None], high[None]).inconsistency[0]
            tight += ends[1] - ends[0] < 0.1
            for place in rng.uniform(low, high, (samples, 2)):
                loss = definition(graph, options, specs, perturbed.domain.to_theta(place[None])[0], plain)
                assert ends[0] - 1e-9 <= loss <= ends[1] + 1e-9
    return tight


@pytest.mark.parametrize("specs", [KEPT, MOVED], ids=["kept", "moved"])
@pytest.mark.parametrize(("measure", "norm"), MEASURES)
@pytest.mark.parametrize("method", METHODS)
def test_bounds_hold_the_losses_of_samples(method, measure, norm, specs):
    assert check_enclosures(method, measure, norm, "identity", specs, seeds=(1, 3), boxes=8, samples=12) > 3


@pytest.mark.parametrize("filter_text", ["abs", "mean", "abs+mean"])
def test_bounds_hold_with_filters(filter_text):
    check_enclosures("input-x-gradient", "distance", "l2", filter_text, MOVED, seeds=(1,), boxes=8, samples=12)


def test_an_unmoved_expected_map_is_caught(monkeypatch):
    monkeypatch.setattr("steadygaze.bounds.expected.MovedAlong.ends", lambda self, cell, low, high: unmoved(self))

    def unmoved(self):
        count = len(self.original.centre)
        return tuple(end.reshape(1, count, -1) for end in self.original.ends)

    with pytest.raises(AssertionError):
        check_enclosures("input-x-gradient", "distance", "l2", "identity", MOVED, seeds=(1, 3), boxes=8, samples=12)


@pytest.mark.parametrize("specs", [KEPT, MOVED], ids=["kept", "moved"])
@pytest.mark.parametrize("method", METHODS)
def test_points_and_passes_are_those_of_the_definition(method, specs):
    model = model_of(random_graph(1))
    result = verify(model, IMAGE, specs, explain=method, method="refine", until=0.5, threads=1, delta="40%")
    question, domain = result.question, result.question.perturbed.domain
    thetas = np.random.default_rng(2).uniform(domain.low, domain.high, (40, 2))
    passes = PointPasses(question)
    values = passes.inconsistencies(thetas)
    measured = passes.measure(thetas, has_attention=True)
    for theta, value, slack in zip(thetas, values, measured.inconsistency_slack, strict=True):
        loss = definition(model.graph, question.attention, specs, theta)
        assert result.at(theta).inconsistency == pytest.approx(loss, abs=1e-11)
        assert value == pytest.approx(loss, abs=1e-11)
        assert slack < 1e-9 or slack == np.inf


@pytest.mark.parametrize("method", METHODS)
def test_a_refinement_agrees_with_samples(method, tmp_path):
    model = model_of(random_graph(1))
    options = {"attention": "object", "mask": WEIGHTS, "tau": "0.6", "classes": "all"}
    result = verify(model, IMAGE, KEPT, explain=method, until=0.1, threads=1, **options)
    assert result.method == "refine"
    assert result.areas["undecided"][1] <= 0.1 + 1e-9
    thetas = np.random.default_rng(5).uniform([0, 0], [0.6, 0.5], (400, 2))
    losses = np.array([definition(model.graph, result.question.attention, KEPT, theta) for theta in thetas])
    low, high = result.areas[Label.AR]
    share = float((losses <= 0.4).mean())
    assert low - 0.08 <= share <= high + 0.08


def test_a_linear_network_keeps_its_attention_under_brightness():
    """The expected map contains the brighter image: no part of a linear network looks elsewhere."""
    layers = [(np.array([[1.0, -2.0, 0.5, 3.0], [0.0, 1.0, 1.0, -1.0]]), np.zeros(2))]
    result = ask(layers, IMAGE, ["brightness:0..0.3"], explain="input-x-gradient", delta=1e-9, property="ar")
    assert result.areas[Label.AR][0] >= 0.999


CURVED = {"attention": "topk", "top": "20:0.8"}


def test_engines_that_label_whole_regions_refuse_curved_borders_with_the_reason():
    for engine in ("map", "bfs", "gbs", "boundary"):
        with pytest.raises(OptionError, match="maps of input-x-gradient change within a region"):
            verify("M-FNN-100", "mnist:69990", "brightness:0..0.1", explain="input-x-gradient", method=engine, **CURVED)
    result = verify("M-FNN-100", "mnist:69990", "brightness:0..0.1", explain="input-x-gradient", property="cr")
    # Labels alone are those of whole regions.
    assert (result.method, result.is_measured) == ("map", False)
    assert result.areas[Label.CR][0] > 0.99


def test_results_are_stored_and_read_again(tmp_path):
    result = verify("M-FNN-100", "mnist:69990", "brightness:0..0.02", explain="integrated:steps=2", until=0.3)
    result.save(tmp_path / "one")
    again = load(tmp_path / "one")
    assert again.question.attention == result.question.attention
    assert again.areas == result.areas
    assert again.question.attention.measure == DISTANCE
