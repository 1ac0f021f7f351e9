"""Boxes that are halved, the regions inside them, and comparison with a whole map, pattern by pattern."""

from dataclasses import replace

import numpy as np
import pytest

from steadygaze.compound import Compound
from steadygaze.engines.refine.boxes import Boxes
from steadygaze.regions.region import RegionSet
from steadygaze.regions.subdivide import BoxRegions, subdivide_boxes
from support.readers.maps import clip_bits, pattern_bits


def halved(compound: Compound, times: int, rng: np.random.Generator | None = None) -> Boxes:
    """The knot cells halved again and again: along the axes in turn, or some of them along random axes."""
    boxes = Boxes.of(compound)
    for time in range(times):
        axes = np.full(len(boxes), time % compound.domain.dimension)
        if rng is None:
            boxes = boxes.split(axes)
            continue
        axes = rng.integers(compound.domain.dimension, size=len(boxes))
        chosen = rng.random(len(boxes)) < 0.7
        rest, halves = boxes.take(~chosen), boxes.take(chosen).split(axes[chosen])
        names = ("cell", "low", "high", "sides", "margin", "inconsistency", "state")
        both = {name: np.concatenate([getattr(rest, name), getattr(halves, name)]) for name in names}
        boxes = replace(halves, **both)
    return boxes


def inside(compound: Compound, boxes: Boxes, **options: object) -> BoxRegions:
    """The regions inside boxes."""
    return subdivide_boxes(compound, boxes.cell, boxes.low, boxes.high, boxes.sides, boxes.cuts, **options)


def by_pattern(compound: Compound, regions: RegionSet) -> dict[bytes, tuple[float, np.ndarray]]:
    """Volume and logits of every knot cell and pattern."""
    rows = np.hstack([clip_bits(compound, regions), pattern_bits(regions, compound.hidden)])
    found: dict[bytes, tuple[float, np.ndarray]] = {}
    for cell, row, volume, logits in zip(regions.cell, rows, regions.polytopes.volumes, regions.logits, strict=True):
        key = bytes([cell]) + np.packbits(row).tobytes()
        found[key] = (found.get(key, (0.0, logits))[0] + volume, logits)
    return found


def assert_same_map(compound: Compound, parts: RegionSet, whole: RegionSet) -> None:
    """Every pattern has the same volume and the same logits in both."""
    one, other = by_pattern(compound, parts), by_pattern(compound, whole)
    nothing = (0.0, None)
    for key in one.keys() | other.keys():
        (volume, logits), (expected, affine) = one.get(key, nothing), other.get(key, nothing)
        assert volume == pytest.approx(expected, abs=1e-9)
        if logits is not None and affine is not None:
            np.testing.assert_allclose(logits, affine, rtol=0, atol=1e-9 * (1 + np.abs(affine).max()))


def assert_within(boxes: Boxes, found: BoxRegions) -> None:
    """Every region lies in its box, and those of a box fill it."""
    for axis in range(boxes.low.shape[1]):
        low, high = found.regions.polytopes.extent(axis)
        assert (low >= boxes.low[found.box, axis] - 1e-9).all() and (high <= boxes.high[found.box, axis] + 1e-9).all()
    volumes = np.bincount(found.box, found.regions.polytopes.volumes, len(boxes))
    np.testing.assert_allclose(volumes, np.where(found.complete, boxes.volumes, 0.0), rtol=1e-9, atol=0)
    assert np.array_equal(found.regions.cell, boxes.cell[found.box])
