"""Neurons whose value is nothing but rounding on an area: the label may be certain there, the attention is not."""

import numpy as np
import pytest

from regions.tiny_compounds import make_compound
from steadygaze.attention.error import MapErrors
from steadygaze.attention.inconsistency import measure, original_maps
from steadygaze.attention.options import AttentionOptions
from steadygaze.perturbation import Brightness
from steadygaze.properties.classification import classify
from steadygaze.properties.logit_error import logit_errors
from steadygaze.regions.subdivide import subdivide
from steadygaze.results.answer import Answers


def answers_of(layers, image, perturbations):
    compound = make_compound(layers, perturbations, image)
    regions = subdivide(compound)
    options = AttentionOptions()
    original = original_maps(compound, options)
    curves = measure(compound, regions, options, original)
    errors = MapErrors(compound, regions.patterns, curves, options)
    size = sum(options.distance.size(part) for part in original)
    return Answers(compound, regions, classify(compound, regions, 0), curves, errors, float(size))


@pytest.mark.parametrize(("weight", "bias"), [(-1e3, 1e-10), (-1.0, 1e-13)])
def test_a_tiny_bias_on_an_area_of_black_pixels_leaves_the_attention_open(weight, bias):
    """h0 = ReLU(weight·x + bias) is active where x is clipped to 0, by a value that rounding could make."""
    layers = [
        (np.array([[weight], [1.0]]), np.array([bias, 1.0])),
        (np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([1.0, 0.0])),
    ]
    found = answers_of(layers, np.full((1, 1, 1), 0.5), [Brightness(range=(-1, 0))])
    shares = found.at(0.25).shares.named()
    assert shares["AR"] == pytest.approx((0.5, 1.0), abs=1e-9)
    assert shares["CR"] == (1.0, 1.0)
    assert found.enough_delta is None


def test_a_neuron_that_is_exactly_zero_is_certain():
    layers = [(np.array([[1.0], [1.0]]), np.array([0.0, 1.0])), (np.array([[1.0, 1.0], [0.0, 0.0]]), np.zeros(2))]
    found = answers_of(layers, np.full((1, 1, 1), 0.5), [Brightness(range=(-1, 0))])
    assert not found.regions.doubtful.any()
    assert found.at(10.0).shares.named()["AR"] == (1.0, 1.0)


def test_what_is_missed_of_an_inactive_neuron_counts_in_the_logits():
    """h = p1 − p2 − 0.25 + 5e-13 is set inactive as rounding, but a weight of 1e9 makes it decide the label."""
    layers = [
        (np.array([[1.0, -1.0]]), np.array([-0.25 + 5e-13])),
        (np.array([[0.0], [1e9]]), np.array([1e-4, 0.0])),
    ]
    compound = make_compound(layers, [Brightness(range=(0, 0.4))], np.array([[[0.5, 0.25]]]))
    regions = subdivide(compound)
    assert regions.missed.max() == pytest.approx(5e-13, rel=1e-3)
    assert logit_errors(compound, regions, np.arange(len(regions.patterns)))[:, 1].max() >= 4e-4
    pieces = classify(compound, regions, 0)
    assert pieces.has_strip.all()
