"""Lines between differently coded polygons, and pixels of polygons, against point location on real maps."""

import numpy as np
import pytest

from steadygaze.api import verify
from steadygaze.labels import Kept
from steadygaze.polytopes import Cut, Polygons
from steadygaze.polytopes.grid import ASIDE, owners_on_grid
from steadygaze.report.drawing.raster import BLOCK, borders_between, colour_grid
from steadygaze.results.result import Result


@pytest.fixture(scope="module")
def result() -> Result:
    """With knots, slabs and argmax cuts."""
    return verify("M-FNN-100", "mnist:69998", ["translate:dx=2:-1..2", "brightness:0..1"], delta="50%")


def depths(polygons: Polygons, points: np.ndarray) -> np.ndarray:
    """How deep points (N, 2) lie in every polygon (N, P); negative outside."""
    start, end = polygons.points, polygons.points[polygons.following]
    edge = end - start
    cross = edge[:, 0] * (points[:, None, 1] - start[:, 1]) - edge[:, 1] * (points[:, None, 0] - start[:, 0])
    return np.minimum.reduceat(cross / polygons.facet_sizes, polygons.starts[:-1], axis=1)


def test_borders_separate_codes_and_none_is_missing(result: Result) -> None:
    joint = result.answer.joint
    kinds = joint.pieces.cuts[np.abs(joint.polytopes.facets) - 1, 0]
    assert {Cut.KNOT, Cut.NEURON, Cut.ARGMAX, Cut.SLAB} <= set(kinds.tolist())
    codes = 2 * (joint.attention == Kept.NO) + joint.pieces.keeps_label
    segments = borders_between(joint.polytopes.touching(), codes)
    middles = segments.mean(axis=1)
    along = segments[:, 1] - segments[:, 0]
    lengths = np.hypot(*along.T)
    aside = np.stack([-along[:, 1], along[:, 0]], axis=1) / lengths[:, None]
    chosen = np.flatnonzero(lengths > 1e-4)[::20]
    left, right = (
        np.argmax(depths(joint.polytopes, middles[chosen] + sign * 1e-6 * aside[chosen]), axis=1) for sign in (1, -1)
    )
    assert (codes[left] != codes[right]).all()
    # A random straight line changes its code only where it crosses a segment.
    draw = np.random.default_rng(1)
    for _ in range(5):
        low, high = draw.uniform(0, 1, (2, 2))
        share = np.linspace(0, 1, 150)[:, None]
        on_line = codes[np.argmax(depths(joint.polytopes, low + share * (high - low)), axis=1)]
        crossings = _crossings(segments, low, high)
        for place in np.flatnonzero(np.diff(on_line)):
            here, there = share[place, 0], share[place + 1, 0]
            assert ((crossings >= here - 1e-6) & (crossings <= there + 1e-6)).any()


def _crossings(segments: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Where the line from low to high crosses segments, as shares of its length."""
    line, along, gap = high - low, segments[:, 1] - segments[:, 0], segments[:, 0] - low
    across = line[0] * along[:, 1] - line[1] * along[:, 0]
    share = (gap[:, 0] * along[:, 1] - gap[:, 1] * along[:, 0]) / across
    place = (gap[:, 0] * line[1] - gap[:, 1] * line[0]) / across
    return share[(place >= -1e-6) & (place <= 1 + 1e-6)]


def test_one_code_has_no_borders(result: Result) -> None:
    polygons = result.answer.joint.polytopes
    assert borders_between(polygons.touching(), np.full(len(polygons), 3)).shape == (0, 2, 2)


def test_every_pixel_lies_in_its_polygon(result: Result) -> None:
    polygons, side = result.answer.joint.polytopes, 120
    owners = owners_on_grid(polygons, side)
    assert owners.min() >= 0
    draw = np.random.default_rng(2)
    rows, columns = draw.integers(0, side, (2, 300))
    points = (np.stack([columns, rows], axis=1) + ASIDE) / side
    found = depths(polygons, points)
    assert (found[np.arange(300), owners[rows, columns]] >= -1e-9).all()


def test_pixels_that_no_polygon_covers_are_transparent() -> None:
    points = np.array([[0.0, 0], [1, 0], [1, 0.5], [0, 0.5]])
    owners = owners_on_grid(Polygons(points, np.array([0, 4]), np.arange(1, 5)), 4 * BLOCK)
    colours = colour_grid(owners, np.array([[1.0, 0.5, 0.0, 1.0]]))
    assert colours[:2].reshape(-1, 4).tolist() == 8 * [[1.0, 0.5, 0.0, 1.0]]
    assert not colours[2:, :, 3].any()
