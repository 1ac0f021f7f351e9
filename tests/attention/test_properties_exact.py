"""Every property of attention against rationals on tiny networks, with kept and moving maps; planted errors show."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from steadygaze.attention import inconsistency
from steadygaze.attention.measures.alike import Alike
from steadygaze.attention.measures.object import OnObject
from steadygaze.errors import InternalError
from support.networks.layered_models import ask
from support.oracles.exact_losses import ExactLosses
from support.readers.piece_labels import disagreements

KEPT = (("brightness:-0.25..0.5", "patch:x=1,y=0,w=2,h=3"), ("darkness",))
MOVED = (
    ("translate:dx=2", "brightness:-0.25..0.5"),
    ("translate:dx=-3:-1.5..2.25",),
    ("patch:x=0,y=0,w=2,h=2", "translate:dy=1"),
)
CUBES = (
    ("brightness:0..0.5", "patch:x=1,y=0,w=2,h=3", "darkness:0..0.25"),
    ("translate:dx=1", "brightness", "darkness"),
)
FILTERS = ("identity", "abs", "mean")
GREY, COLOUR = (1, 4, 5), (3, 3, 3)

PROPERTIES = {
    "object": ({"tau": 0.375}, Fraction(3, 8)),
    "pointing": ({}, None),
    "alike": ({"gamma": 0.75}, Fraction(3, 4)),
    "topk": ({"top": "5:0.6"}, (5, Fraction(3, 5))),
}
"""By name: the options of a question, and the threshold in exact numbers."""


def tiny(name, specs, *, shape=GREY, seed=0, dead=False, grey=False, **options):
    """A map of a random network of three classes on an image with black, white and equal pixels."""
    rng = np.random.default_rng([*shape, seed])
    sizes = [int(np.prod(shape)), 6, 5, 3]
    layers = [(np.round(rng.normal(size=(b, a)), 3), np.round(0.3 * rng.normal(size=b), 3)) for a, b in pairwise(sizes)]
    image = rng.choice([0.0, 0.25, 0.25, 0.75, 1.0], size=shape)
    image.ravel()[:2] = 0.25, 1.0
    if dead:
        # The last neurons are on at zero, and off where the image is brighter: the maps are zero there.
        first, second = np.abs(layers[0][0]), np.abs(layers[1][0])
        layers[:2] = [(first, np.zeros(6)), (-second, np.round(1.15 * second @ first @ image.ravel(), 3))]
    given, threshold = PROPERTIES[name]
    if name in ("object", "pointing"):
        weights = (image > 0.5).any(axis=0).astype(float)
        weights[0, 0] = 0.0
        greys = rng.choice([0.25, 0.75, 1.0], weights.shape)
        given = given | {"mask": weights * greys if grey else weights}
    result = ask(layers, image, specs, method="map", attention=name, **given, **options)
    return result, ExactLosses.of(result, threshold)


CASES = [
    (name, specs, *((GREY, FILTERS[number % 3], 0), (COLOUR, "identity", 1))[(place + number) % 2])
    for place, name in enumerate(PROPERTIES)
    for number, specs in enumerate((*KEPT, *MOVED))
]
"""Every property with every perturbation, grey and coloured images in turn."""


@pytest.mark.parametrize(("name", "specs", "shape", "word", "seed"), CASES)
def test_labels_agree_with_rationals(name, specs, shape, word, seed):
    result, truth = tiny(name, specs, shape=shape, seed=seed, filter=word, grey=bool(seed), classes="all")
    wrong, decided = disagreements(result, truth)
    assert not wrong
    # Top k with moving maps may split a region more than once.
    assert decided > (0.75 if name == "topk" and truth.axis is not None else 1.0 - 1e-5)


@pytest.mark.parametrize("name", PROPERTIES)
@pytest.mark.parametrize("specs", CUBES)
def test_labels_agree_with_rationals_in_three_dimensions(name, specs):
    result, truth = tiny(name, specs, seed=3)
    wrong, decided = disagreements(result, truth)
    assert not wrong and decided > (0.9 if name == "topk" else 1.0 - 1e-5)


@pytest.mark.parametrize("name", PROPERTIES)
@pytest.mark.parametrize("specs", [KEPT[0], MOVED[0]])
def test_slabs_end_where_rationals_say(name, specs):
    """Inner slabs are kept up to their ends, and what lies outside the outer ones is lost."""
    ends = sum(checked_ends(*tiny(name, specs, seed=seed, classes="all")) for seed in range(4, 8))
    assert ends > 0


def checked_ends(result, truth):
    """How many ends of slabs were compared with rationals."""
    answer, compound = result.answer, result.question.compound
    regions, axis = answer.answers.regions, truth.axis
    ends = 0
    for number in range(len(regions)):
        labels, edges = answer.labels, answer.labels.ends[number]
        pattern = list(result.regions[number].pattern)

        def is_kept(t, pattern=pattern):
            theta = [Fraction(0)] * compound.domain.dimension
            if axis is not None:
                low, width = (Fraction(float(part[axis])) for part in (compound.domain.low, compound.domain.widths))
                theta[axis] = low + width * Fraction(float(t))
            return truth.is_kept(pattern, theta)

        first, last = labels.inner[number]
        if first <= last:
            ends += 1
            # Scaling τ to t rounds a few times.
            inward = min(1e-14, 0.5 * (last - first))
            assert is_kept(first + inward) and is_kept(last - inward) and is_kept(0.5 * (first + last))
        before, after = labels.outer[number]
        if before > after:
            assert not is_kept(edges[0]) and not is_kept(edges[1])
            continue
        for end, beyond in ((before, -1e-9), (after, 1e-9)):
            if edges[0] < end < edges[1]:
                ends += 1
                assert not is_kept(end + beyond)
    return ends


@pytest.mark.parametrize("name", PROPERTIES)
def test_maps_that_vanish_have_no_attention(name):
    result, truth = tiny(name, KEPT[0], seed=1, dead=True, classes="all")
    low, high = result.zero_share
    assert 0.0 < low <= high < low + 1e-6
    assert result.areas["IR"][0] >= low - 1e-9
    wrong, decided = disagreements(result, truth)
    assert not wrong and decided > 1.0 - 1e-6
    assert result.summary()["zero_attention_share"] == [low, high]


def test_relative_thresholds_are_shares_of_the_unperturbed_image():
    result, _ = tiny("object", KEPT[0], seed=2)
    share = 1.0 - result.at([0.0, 0.0]).inconsistency
    assert result.question.base == pytest.approx(share, abs=1e-15)
    assert result.with_threshold("80%").answer.delta == pytest.approx(1.0 - 0.8 * share, abs=1e-15)
    assert result.with_threshold("0.8").answer.delta == pytest.approx(0.2, abs=1e-15)


def unmoved(compound, cell, original, options):
    return replace(inconsistency_true(compound, cell, original, options), weight_slope=None, slope=None)


inconsistency_true = inconsistency.expectation


@pytest.mark.parametrize("name", ["object", "alike", "topk", "pointing"])
def test_a_mask_or_map_that_does_not_move_is_caught(name, monkeypatch):
    monkeypatch.setattr(inconsistency, "expectation", unmoved)
    inconsistency.cell_curves.cache_clear()
    inconsistency.cell_facts.cache_clear()
    with pytest.raises((InternalError, AssertionError)):
        found = [tiny(name, MOVED[0], seed=seed, classes="all") for seed in range(3)]
        assert not any(disagreements(*one)[0] for one in found)
    monkeypatch.undo()
    inconsistency.cell_curves.cache_clear()
    inconsistency.cell_facts.cache_clear()


def test_a_wrong_class_is_caught(monkeypatch):
    true = OnObject.sums
    monkeypatch.setattr(OnObject, "sums", lambda self, maps, at: true(self, maps[:, ::-1][:, :1], at))
    with pytest.raises((InternalError, AssertionError)):
        found = [tiny("object", KEPT[0], seed=seed, classes="all") for seed in range(3)]
        assert not any(disagreements(*one)[0] for one in found)


def test_a_direction_without_the_slope_of_the_expected_map_is_caught(monkeypatch):
    true = Alike.sums
    monkeypatch.setattr(Alike, "sums", lambda self, maps, at: true(self, maps, at) * [1, 0, 1, 1, 1, 1])
    with pytest.raises((InternalError, AssertionError)):
        found = [tiny("alike", MOVED[0], seed=seed, classes="all") for seed in range(3)]
        assert not any(disagreements(*one)[0] for one in found)
