"""The map of bundled networks against plain forward passes and onnxruntime at thousands of random thetas."""

import numpy as np
import pytest

from steadygaze.compound import Compound
from steadygaze.images import read_image
from steadygaze.network.model import Model, read_model
from steadygaze.perturbation import compose, parse_spec
from steadygaze.regions.region import RegionSet
from steadygaze.regions.subdivide import subdivide
from steadygaze.zoo import image_path, model_path
from support.readers.maps import affine_logits, assert_forward_agrees, assert_true_map, owners

PATCH = "patch:x=12,y=12,w=4,h=4"
PROBLEMS = (
    ("M-FNN-100", "mnist:69990", ("brightness", PATCH)),
    ("M-FNN-100", "mnist:69992", ("translate:dy=1", "brightness")),
    ("M-FNN-100", "mnist:69999", ("translate:dy=1", PATCH)),
    ("M-FNN-100", "mnist:69991", ("translate:dx=3",)),
    ("M-FNN-100", "mnist:69993", ("darkness",)),
    ("M-FNN-100", "mnist:69991", ("translate:dx=3:-1.5..2.25", "patch:x=2,y=2,w=20,h=20,tone=-1:-0.25..0.5")),
    ("M-CNN-S", "mnist:69990", ("brightness:0..0.1", PATCH)),
    ("M-CNN-S", "mnist:69994", ("translate:dx=1",)),
    ("M-CNN-S", "mnist:69991", ("translate:dx=-2:0.5..1.5", "darkness:0..0.125")),
)
SAMPLES = 2000
FLOAT32 = 2.0**-24
ROUNDINGS = 784 + 64
"""Roundings in float32 of one sum over the pixels, and of what follows; errors mostly cancel, this is generous."""


@pytest.fixture(scope="module", params=PROBLEMS, ids=lambda question: f"{question[0]}-{'+'.join(question[2])}")
def mapped(request: pytest.FixtureRequest) -> tuple[Model, Compound, RegionSet]:
    name, reference, specs = request.param
    model = read_model(model_path(name))
    image = read_image(image_path(reference)).pixels
    compound = Compound(model.graph, model.chain, compose([parse_spec(spec) for spec in specs], image))
    return model, compound, subdivide(compound)


def test_inside_every_region_and_at_random_thetas(mapped: tuple[Model, Compound, RegionSet]) -> None:
    _, compound, regions = mapped
    assert len(regions) > 10
    assert_true_map(compound, regions, samples=SAMPLES, seed=1)


def test_just_beside_the_edges(mapped: tuple[Model, Compound, RegionSet]) -> None:
    """Points a hair inside of edges: a line that is missing or in the wrong place shows here first."""
    _, compound, regions = mapped
    polygons = regions.polytopes
    chosen = np.random.default_rng(2).choice(len(polygons.points), size=min(SAMPLES, len(polygons.points)))
    chosen = chosen[polygons.facet_sizes[chosen] > 1e-6]
    middle = 0.5 * (polygons.points[chosen] + polygons.points[polygons.following[chosen]])
    owner = polygons.owner[chosen]
    towards = polygons.centres[owner] - middle
    beside = middle + 1e-3 * towards
    assert_forward_agrees(compound, regions, owner, beside)


def test_onnxruntime_gives_the_logits_of_the_map(mapped: tuple[Model, Compound, RegionSet]) -> None:
    model, compound, regions = mapped
    points = np.random.default_rng(3).random((SAMPLES, 2))
    thetas = compound.to_theta(points)
    points = compound.to_unit(thetas)
    owner, depth = owners(regions, points)
    assert (depth > -1e-9).all()
    replayed = model.replay.logits(compound.perturbed.images(thetas))
    found = affine_logits(regions, owner, points)
    size = max(1.0, float(np.abs(found).max()))
    assert np.abs(replayed - found).max() < ROUNDINGS * FLOAT32 * size
    assert (np.ptp(found, axis=0) > 1e-3).any()


def test_labels_of_onnxruntime(mapped: tuple[Model, Compound, RegionSet]) -> None:
    """Where the margin is well above float32 rounding, the class is that of the file itself."""
    model, compound, regions = mapped
    points = compound.to_unit(compound.to_theta(regions.polytopes.centres))[:SAMPLES]
    found = affine_logits(regions, np.arange(len(points)), points)
    first, second = np.sort(found, axis=1)[:, -1], np.sort(found, axis=1)[:, -2]
    clear = first - second > 1e-3
    replayed = model.replay.logits(compound.perturbed.images(compound.to_theta(points)))
    assert clear.sum() > len(points) / 2
    assert (replayed.argmax(axis=1) == found.argmax(axis=1))[clear].all()
