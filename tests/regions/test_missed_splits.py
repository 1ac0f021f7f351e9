"""Planted bugs: a map without the splits of one neuron still tiles the domain, and the check must stop it."""

import numpy as np
import pytest

from steadygaze.errors import InternalError
from steadygaze.perturbation import Brightness, Patch, Perturbation, Translate
from steadygaze.regions.check import check_map
from steadygaze.regions.subdivide import subdivide
from support.networks.layered_networks import make_compound
from support.readers.maps import pattern_bits

IMAGE = np.array([0.0, 0.5, 1.0, 0.25]).reshape(1, 2, 2)
PLANE: list[Perturbation] = [Brightness(range=(-0.5, 0.5)), Patch(x=0, y=0, w=2, h=1)]
SPACE = [*PLANE, Translate(dx=1)]


@pytest.mark.parametrize("perturbations", [PLANE, SPACE], ids=["plane", "space"])
@pytest.mark.parametrize("neuron", range(4))
def test_a_missed_split_is_caught(neuron: int, perturbations: list[Perturbation]) -> None:
    """The map of a network in which one neuron is never active tiles the domain as well, with fewer regions."""
    layers = [
        (np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 1.0], [1.0, 1.0, 1.0, 0], [0, 0, 1.0, -1.0]]), np.full(4, -0.625)),
        (np.ones((2, 4)), np.zeros(2)),
    ]
    compound = make_compound(layers, perturbations, IMAGE)
    check_map(compound, subdivide(compound))
    bias = layers[0][1].copy()
    bias[neuron] = -100.0
    missed = subdivide(make_compound([(layers[0][0], bias), layers[1]], perturbations, IMAGE))
    assert len(missed) < len(subdivide(compound))
    assert abs(missed.polytopes.volumes.sum() - 1) < 1e-12
    with pytest.raises(InternalError):
        check_map(compound, missed)


@pytest.mark.parametrize("perturbations", [PLANE, SPACE], ids=["plane", "space"])
def test_a_missed_split_without_influence_on_the_logits_is_caught(perturbations: list[Perturbation]) -> None:
    """Pattern alone is wrong then, on half of a region: inside or beside a facet it must show."""
    weights = np.array([[1.0, 0, 0, 0], [0, 0, 0, 1.0]])
    after = np.array([[1.0, 0.0], [2.0, 0.0]])
    full = make_compound([(weights, np.array([-0.5, -0.5])), (after, np.zeros(2))], perturbations, IMAGE)
    other = make_compound([(weights, np.array([-0.5, -9.0])), (after, np.zeros(2))], perturbations, IMAGE)
    broken = subdivide(other)
    assert broken.polytopes.volumes.sum() == pytest.approx(1.0, abs=1e-12)
    assert not pattern_bits(broken, (2,))[:, 1].any()
    with pytest.raises(InternalError):
        check_map(full, broken)
