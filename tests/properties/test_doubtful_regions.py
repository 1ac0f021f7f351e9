"""Neurons whose value is only rounding on an area: the label may be certain there, the attention is not."""

import numpy as np
import pytest

from steadygaze.attention.inconsistency import original_maps
from steadygaze.attention.map_errors import MapErrors
from steadygaze.attention.measuring import measure
from steadygaze.attention.options import AttentionOptions
from steadygaze.perturbation import Brightness
from steadygaze.properties import settling
from steadygaze.properties.classification import classify
from steadygaze.regions.forward_error import forward_errors
from steadygaze.regions.subdivide import subdivide
from steadygaze.results.answer import Answers
from support.networks.layered_networks import make_compound


def answers_of(layers, image, perturbations):
    compound = make_compound(layers, perturbations, image)
    regions = subdivide(compound)
    options = AttentionOptions()
    original = original_maps(compound, options)
    curves = measure(compound, regions, options, original)
    errors = MapErrors(compound, regions.patterns, curves, options)
    size = sum(options.distance.size(part) for part in original)
    return Answers(compound, regions, classify(compound, regions, 0), curves, errors, float(size))


LAYERS = [
    (np.array([[-1e3], [1.0]]), np.array([1e-10, 1.0])),
    (np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([1.0, 0.0])),
]
"""h0 = ReLU(−1000 x + 1e-10) is active where x is clipped to 0, by a value that rounding could make."""


def test_a_tiny_bias_on_an_area_of_black_pixels_is_settled_exactly():
    found = answers_of(LAYERS, np.full((1, 1, 1), 0.5), [Brightness(range=(-1, 0))])
    assert found.regions.doubtful.tolist().count(1) == 1
    shares = found.at(0.25).shares.named()
    assert shares["AR"] == pytest.approx((0.5, 0.5), abs=1e-9)
    assert shares["CR"] == (1.0, 1.0)
    assert found.enough_delta == pytest.approx(1000.0)


def test_a_neuron_that_is_exactly_zero_is_certain():
    layers = [(np.array([[1.0], [1.0]]), np.array([0.0, 1.0])), (np.array([[1.0, 1.0], [0.0, 0.0]]), np.zeros(2))]
    found = answers_of(layers, np.full((1, 1, 1), 0.5), [Brightness(range=(-1, 0))])
    assert not found.regions.doubtful.any()
    assert found.at(10.0).shares.named()["AR"] == (1.0, 1.0)


def missed_value():
    """h = p1 − p2 − 0.25 + 2e-15 is set inactive as rounding, but a weight of 1e12 makes it decide the label."""
    layers = [
        (np.array([[1.0, -1.0]]), np.array([-0.25 + 2e-15])),
        (np.array([[0.0], [1e12]]), np.array([1e-4, 0.0])),
    ]
    compound = make_compound(layers, [Brightness(range=(0, 0.4))], np.array([[[0.5, 0.25]]]))
    return compound, subdivide(compound)


def test_the_missed_part_of_an_inactive_neuron_counts_in_the_logits():
    compound, regions = missed_value()
    assert regions.accuracy.missed.max() == pytest.approx(2e-15, rel=0.1)
    assert forward_errors(compound, regions.accuracy)[-1][1] >= 1e-3
    pieces = classify(compound, regions, 0)
    assert pieces.has_strip.all()


def test_exact_arithmetic_finds_the_label_that_was_missed():
    compound, regions = missed_value()
    pieces = settling.label_pieces(compound, regions, 0)
    assert not pieces.has_strip.any()
    assert not pieces.keeps_label.any()
