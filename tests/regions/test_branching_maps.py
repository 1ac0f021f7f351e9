"""Maps of graphs with branches and windows against exact rationals and plain passes, and false maps."""

from dataclasses import replace

import numpy as np
import pytest

from steadygaze.errors import InternalError
from steadygaze.network.graph import patterns
from steadygaze.network.layers import CARRIED, ENTRY
from steadygaze.regions.check import check_map
from steadygaze.regions.forward_error import forward_errors, kink_share
from steadygaze.regions.subdivide import subdivide, subdivide_cells
from support.networks.branching import random_graph
from support.networks.pooled import branching_compound, pooled_graph, winner_graph
from support.oracles.exact_branches import exact_branching_map
from support.oracles.exact_polytopes import plain
from support.readers.maps import affine_logits, assert_tiles, clip_bits, owners, pattern_bits
from support.stand_ins.false_maps import flip_bit, largest

SPECS = (
    ("brightness:-0.5..0.5",),
    ("brightness:-0.5..0.5", "patch:x=0,y=0,w=2,h=1"),
    ("brightness:-0.5..0.5", "patch:x=0,y=0,w=2,h=1", "darkness:0..0.25"),
)
BACKGROUND = np.pad(np.array([[0.5, 1.0], [0.25, 0.75]]), 2)[None]
KERNEL = np.array([[[[1.0, -0.5, 0.25], [0.75, 1.0, -1.0], [0.5, -0.25, 0.5]]]])


def random_compound(seed, parameters):
    image = np.random.default_rng(seed).integers(0, 9, (1, 2, 2)) / 8.0
    return branching_compound(random_graph(seed), image, *SPECS[parameters - 1])


def assert_exact(compound, regions):
    """Regions by patterns, their volumes and logits are those of the exact map, logits up to their proved error."""
    expected = exact_branching_map(compound)
    bits = np.hstack([clip_bits(compound, regions), pattern_bits(regions, compound.hidden)])
    keys = [(int(cell), *map(int, row)) for cell, row in zip(regions.cell, bits, strict=True)]
    assert set(keys) == set(expected)
    assert regions.pattern_count == len(expected)
    volumes = dict.fromkeys(expected, 0.0)
    error, slopes = forward_errors(compound, regions.accuracy)[-1], compound.domain.dimension
    for key, volume, logits in zip(keys, regions.polytopes.volumes, regions.logits, strict=True):
        volumes[key] += volume
        polytope, forms = expected[key]
        for vertex in map(plain, polytope.vertices):
            value = sum(row * x for row, x in zip(forms, (*vertex, 1), strict=True)).astype(float)
            found = np.array([float(x) for x in vertex]) @ logits[:slopes] + logits[-1]
            assert (np.abs(found - value) <= error + 1e-15).all()
    assert error.max() < 1e-10
    for key, volume in volumes.items():
        assert abs(volume - float(expected[key][0].volume)) <= 1e-9


@pytest.mark.parametrize("parameters", [1, 2])
@pytest.mark.parametrize("seed", range(40))
def test_flat_maps_are_exact(seed, parameters):
    compound = random_compound(seed, parameters)
    regions = subdivide(compound)
    check_map(compound, regions)
    assert_tiles(regions)
    assert_exact(compound, regions)


@pytest.mark.parametrize("seed", range(12))
def test_solid_maps_are_exact(seed):
    compound = random_compound(seed, 3)
    regions = subdivide(compound)
    check_map(compound, regions)
    assert_exact(compound, regions)


