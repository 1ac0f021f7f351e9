"""Simplices with exact corners, in any dimension: the triangulation of a hull with its facets, volume, containment.

A corner is homogeneous: whole numbers (x_1, …, x_d, w) without a common divisor, w > 0, for the point x/w. A simplex is
a tuple of corners; k + 1 of them span a simplex of dimension k ≤ d. A form is a row of whole numbers (a_1, …, a_d, b);
its value at a corner, a·x + b·w, has the sign of the form there. Nothing is rounded.
"""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from math import factorial
from typing import NamedTuple

from flint import fmpz, fmpz_mat

Corner = tuple[fmpz, ...]
Simplex = tuple[Corner, ...]
Form = tuple[fmpz, ...]


class Hull(NamedTuple):
    """The convex hull of points: simplices that make it up, and the planes of its facets (forms, negative inside).

    Planes are in the coordinates `axes`: all of them, or for flat hulls as many as the hull has dimensions.
    """

    simplices: list[Simplex]
    planes: list[Form]
    axes: list[int]


def make_corner(numbers: Iterable[fmpz]) -> Corner:
    """Homogeneous numbers without their common divisor.

    >>> make_corner((fmpz(2), fmpz(4)))
    (1, 2)
    """
    listed = list(numbers)
    divisor = fmpz(0)
    for number in listed:
        divisor = divisor.gcd(number)
    return tuple(number // divisor for number in listed) if divisor != 1 else tuple(listed)


def evaluate(form: Sequence[fmpz], corner: Corner) -> fmpz:
    """The form at a corner, times the corner's w."""
    return sum((a * x for a, x in zip(form, corner, strict=True)), start=fmpz(0))


def volume(simplex: Simplex) -> Fraction:
    """The exact volume; 0 for a simplex of lower dimension.

    >>> volume(((fmpz(0), fmpz(1)), (fmpz(1), fmpz(3))))
    Fraction(1, 3)
    """
    dimension = len(simplex[0]) - 1
    if len(simplex) <= dimension:
        return Fraction(0)
    weight = factorial(dimension)
    for corner in simplex:
        weight *= int(corner[-1])
    return Fraction(abs(int(_determinant(simplex))), weight)


def contains(simplex: Simplex, point: Corner) -> bool:
    """Whether a point lies in a simplex with volume, its border included; False for one without volume."""
    if len(simplex) != len(point):
        return False
    whole = _determinant(simplex)
    shares = (_determinant((*simplex[:i], point, *simplex[i + 1 :])) for i in range(len(simplex)))
    return bool(whole) and all(share * whole >= 0 for share in shares)


def triangulate(points: Iterable[Corner], counted: Callable[[int], None]) -> Hull:
    """Triangulate the convex hull of points, at least one.

    Points are placed one after the other, the farthest from their middle first, and joined with what they see of the
    hull so far. Points without volume (on a plane, a line) give simplices of lower dimension. `counted` is told of 0
    parts at every point; it may raise to stop.
    """
    distinct = list(dict.fromkeys(points))
    axes = _spanning_axes(distinct)
    if len(axes) < len(distinct[0]) - 1:
        flat = {project(point, axes): point for point in distinct}
        hull = triangulate(flat, counted)
        return Hull([tuple(flat[corner] for corner in simplex) for simplex in hull.simplices], hull.planes, axes)
    ordered = _far_first(distinct)
    first: list[Corner] = []
    for point in ordered:
        if rank((*first, point)) > len(first):
            first.append(point)
    if len(first) == 1:
        return Hull([tuple(first)], [], axes)
    # A sum of homogeneous corners is a point between them.
    inside = tuple(sum(column, start=fmpz(0)) for column in zip(*first, strict=True))
    found: list[Simplex] = [tuple(first)]
    facets = {facet: _plane(facet, inside) for facet in combinations(first, len(first) - 1)}
    for point in ordered:
        counted(0)
        seen = [facet for facet, plane in facets.items() if evaluate(plane, point) > 0]
        ridges: dict[frozenset[Corner], Simplex] = {}
        for facet in seen:
            found.append((*facet, point))
            del facets[facet]
            for ridge in combinations(facet, len(facet) - 1):
                # A ridge between two facets that are both seen lies inside the new hull.
                if ridges.pop(frozenset(ridge), None) is None:
                    ridges[frozenset(ridge)] = ridge
        for ridge in ridges.values():
            facets[(*ridge, point)] = _plane((*ridge, point), inside)
    return Hull(found, list(dict.fromkeys(facets.values())), axes)


def project(corner: Corner, axes: Sequence[int]) -> Corner:
    """A corner in some of its coordinates."""
    return make_corner((*(corner[axis] for axis in axes), corner[-1]))


def rank(rows: Sequence[Sequence[fmpz]]) -> int:
    """The rank of rows of equal length; 0 without rows."""
    return fmpz_mat(len(rows), len(rows[0]), [number for row in rows for number in row]).rank() if rows else 0


def _far_first(points: list[Corner]) -> list[Corner]:
    """A good order for `triangulate`, in floats: any order is correct."""
    places = [[float(Fraction(int(x), int(point[-1]))) for x in point[:-1]] for point in points]
    middle = [sum(column) / len(points) for column in zip(*places, strict=True)]
    distances = [sum((x - m) ** 2 for x, m in zip(place, middle, strict=True)) for place in places]
    return [points[i] for i in sorted(range(len(points)), key=lambda i: -distances[i])]


def _spanning_axes(points: list[Corner]) -> list[int]:
    """Coordinates in which the points are still all different and span as much: as many as the hull has dimensions."""
    dimension = rank(points) - 1
    axes: list[int] = []
    for axis in range(len(points[0]) - 1):
        if len(axes) == dimension:
            break
        chosen = [*axes, axis]
        if rank([(*(point[i] for i in chosen), point[-1]) for point in points]) == len(chosen) + 1:
            axes.append(axis)
    return axes


def _plane(facet: Simplex, inside: Corner) -> tuple[fmpz, ...]:
    """The form that vanishes on a facet and is negative at a point inside."""
    size = len(inside)
    numbers = [
        _determinant([[x for i, x in enumerate(corner) if i != left_out] for corner in facet]) * (-1) ** left_out
        for left_out in range(size)
    ]
    plane = make_corner(numbers)
    return tuple(-number for number in plane) if evaluate(plane, inside) > 0 else plane


def _determinant(rows: Sequence[Sequence[fmpz]]) -> fmpz:
    return fmpz_mat(len(rows), len(rows), [number for row in rows for number in row]).det()
