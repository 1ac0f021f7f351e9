"""A polygon is visited under one pattern only, whatever the weights: a neuron that is only rounding is inactive."""

from pathlib import Path

import numpy as np
import pytest

import steadygaze
from adversary.files import write_onnx
from adversary.wild import make_wild


@pytest.mark.parametrize("seed", [1551084378])
def test_visited_regions_do_not_overlap(seed: int, tmp_path: Path):
    """Weights over twelve orders: a neuron rises by more than its noise over the domain, but not on its polygon."""
    wild = make_wild(seed)
    path = write_onnx(tmp_path / "wild.onnx", wild.question.layers, wild.question.image.shape)
    options = {"property": wild.wanted, "delta": wild.question.delta, "dist": wild.question.dist}
    result = steadygaze.search(path, wild.question.image, wild.question.specs, method="bfs", **options)
    regions = [one.region for one in result.tiling.visited]
    assert sum(region.volume for region in regions) == pytest.approx(1.0, abs=1e-9)
    for point in np.random.default_rng(0).random((1_000, 2)):
        assert sum(region.contains(point, within=-1e-9) for region in regions) <= 1
    for name, (least, most) in wild.truth.shares.items():
        low, high = result.areas[name]
        assert low <= most and least <= high
