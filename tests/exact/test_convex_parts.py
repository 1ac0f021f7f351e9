"""Hulls, triangulations and cuts: volumes add up, every part is on one side, flat point sets give flat parts."""

from fractions import Fraction

import numpy as np
import pytest
from flint import fmpz
from hypothesis import given, settings
from hypothesis import strategies as st

from steadygaze.exact.simplices import clip, contains, cut, evaluate, hull_of, make_corner, triangulate, volume
from support.oracles.exact_outcomes import hull_planes
from support.oracles.exact_polytopes import box


def no_limit(_: int) -> None:
    """Count nothing."""


def corners(points: np.ndarray) -> list[tuple[fmpz, ...]]:
    """Points on a grid of eighths."""
    return [make_corner((*(fmpz(int(8 * x)) for x in point), fmpz(8))) for point in points]


def total(parts) -> Fraction:
    return sum((part.volume for part in parts), Fraction(0))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_a_triangulation_has_the_volume_of_the_hull(seed, dimension):
    points = np.random.default_rng(seed).integers(0, 9, size=(dimension + 4, dimension)) / 8
    if np.linalg.matrix_rank(points[1:] - points[0]) < dimension:
        return
    part = box([0] * dimension, [1] * dimension)
    for plane in hull_planes(points, 0.0):
        part = part.cut(plane)[1]
    found = triangulate(corners(points), no_limit).simplices
    assert sum(map(volume, found), Fraction(0)) == hull_of(corners(points), no_limit).volume == part.volume
    assert set(hull_of(corners(points), no_limit).corners) == set(part.vertices)
    assert all(volume(simplex) > 0 for simplex in found)
    assert all(any(contains(simplex, corner) for simplex in found) for corner in corners(points))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_a_cut_conserves_volume_and_leaves_no_change_of_sign(seed, dimension):
    rng = np.random.default_rng(seed)
    found = [hull_of(corners(rng.integers(0, 9, size=(dimension + 2, dimension)) / 8), no_limit)]
    for _ in range(3):
        form = tuple(fmpz(int(number)) for number in rng.integers(-4, 5, size=dimension + 1))
        before, found = total(found), cut(found, form, no_limit)
        assert total(found) == before
        for part in found:
            values = [evaluate(form, corner) for corner in part.corners]
            assert set(hull_of(part.corners, no_limit).corners) == set(part.corners)
            assert min(values) >= 0 or max(values) <= 0
        inside = clip(found, form, no_limit)
        outside = clip(found, tuple(-number for number in form), no_limit)
        if any(form):
            assert total(inside) + total(outside) == before


def test_flat_point_sets():
    line = corners(np.array([[0.0, 0.0, 0.0], [0.5, 0.5, 0.5], [1.0, 1.0, 1.0], [0.25, 0.25, 0.25]]))
    assert [len(simplex) for simplex in triangulate(line, no_limit).simplices] == [2]
    assert set(hull_of(line, no_limit).corners) == {line[0], line[2]}
    square = corners(np.array([[0, 0, 1.0], [1, 0, 1], [0, 1, 1], [1, 1, 1]]))
    assert [len(simplex) for simplex in triangulate(square, no_limit).simplices] == [3, 3]
    halves = cut([hull_of(square, no_limit)], (fmpz(2), fmpz(0), fmpz(0), fmpz(-1)), no_limit)
    assert [len(half.corners) for half in halves] == [4, 4]
    assert total(halves) == 0
    assert hull_of(line[:1] * 3, no_limit).corners == (line[0],)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_cubes(dimension):
    points = np.array(list(np.ndindex((2,) * dimension)), dtype=float)
    hull = hull_of(corners(points), no_limit)
    assert hull.volume == 1 and hull.planes == 2 * dimension and len(hull.corners) == 2**dimension
