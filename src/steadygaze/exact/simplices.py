"""Convex parts of the domain with exact corners: simplices, the triangulation of a hull, and cuts along forms.

A corner has homogeneous coordinates: whole numbers, the last of which, w, is the common denominator. A part stores the
planes through each of its corners; cuts need nothing else.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import factorial
from typing import NamedTuple

from flint import fmpz, fmpz_mat

Corner = tuple[fmpz, ...]
Simplex = tuple[Corner, ...]
Form = tuple[fmpz, ...]


class Hull(NamedTuple):
    """The convex hull of points: simplices that tile it, and the planes of its facets (forms, negative inside).

    Planes use the coordinates `axes`: all of them, or, for a flat hull, as many as it has dimensions.
    """

    simplices: list[Simplex]
    planes: list[Form]
    axes: list[int]


def make_corner(numbers: Iterable[fmpz]) -> Corner:
    """Divide homogeneous coordinates by their common divisor.

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
    """Whether a point lies in a simplex or on its border; False for a simplex without volume."""
    if len(simplex) != len(point):
        return False
    whole = _determinant(simplex)
    shares = (_determinant((*simplex[:i], point, *simplex[i + 1 :])) for i in range(len(simplex)))
    return bool(whole) and all(share * whole >= 0 for share in shares)


def triangulate(points: Iterable[Corner], counted: Callable[[int], None]) -> Hull:
    """Triangulate the convex hull of points, at least one.

    Adds one point at a time, the farthest from the middle first, and joins it with the facets visible from it. Points
    on a plane or a line give simplices of lower dimension. `counted` receives 0 at every point and may raise to stop.
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
                # A ridge between two visible facets lies inside the new hull.
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
    """The coordinates to keep, as many as the hull has dimensions: projected to them, the points span as many."""
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


@dataclass(frozen=True, eq=False)
class ConvexPart:
    """A convex polytope: its corners, a bit mask of planes for each corner, its dimension, and its number of planes."""

    corners: tuple[Corner, ...]
    masks: tuple[int, ...]
    dimension: int
    planes: int

    @cached_property
    def simplices(self) -> list[Simplex]:
        """A triangulation."""
        return triangulate(self.corners, lambda _: None).simplices

    @cached_property
    def volume(self) -> Fraction:
        """The exact volume; 0 for a flat part."""
        return sum(map(volume, self.simplices), start=Fraction(0))

    def contains(self, point: Corner) -> bool:
        """Whether a point lies in the part or on its border; False for a flat part."""
        return any(contains(simplex, point) for simplex in self.simplices)

    def cut(self, form: Form, values: dict[Corner, fmpz]) -> list["ConvexPart"]:
        """The parts with form ≤ 0 and with form ≥ 0, or the part itself if the form does not change sign on it.

        `values` holds the values of the form at corners seen so far; those at new corners are added.
        """
        for corner in self.corners:
            if corner not in values:
                values[corner] = evaluate(form, corner)
        at = [values[corner] for corner in self.corners]
        if min(at) >= 0 or max(at) <= 0:
            return [self]
        fresh = self._crossings(at)
        for corner, _ in fresh:
            values[corner] = fmpz(0)
        bit = 1 << self.planes
        sides = []
        for sign in (-1, 1):
            kept = [
                (corner, mask | (0 if value else bit))
                for corner, mask, value in zip(self.corners, self.masks, at, strict=True)
                if value * sign >= 0
            ]
            corners, masks = zip(*kept, *((corner, mask | bit) for corner, mask in fresh), strict=True)
            sides.append(ConvexPart(corners, masks, self.dimension, self.planes + 1))
        return sides

    def _crossings(self, at: list[fmpz]) -> list[tuple[Corner, int]]:
        """The points inside edges where a form vanishes, given its values `at` corners, and the planes of each edge."""
        below = [i for i, value in enumerate(at) if value < 0]
        above = [i for i, value in enumerate(at) if value > 0]
        found = []
        for i in below:
            for j in above:
                common = self.masks[i] & self.masks[j]
                # Two corners form an edge if no third one lies on all the planes that they share.
                if common.bit_count() < self.dimension - 1 or any(
                    mask & common == common for k, mask in enumerate(self.masks) if k not in (i, j)
                ):
                    continue
                ends = zip(self.corners[i], self.corners[j], strict=True)
                found.append((make_corner(at[j] * x - at[i] * y for x, y in ends), common))
        return found


def hull_of(points: Iterable[Corner], counted: Callable[[int], None]) -> ConvexPart:
    """The convex hull of points, at least one; see `triangulate`."""
    listed = list(dict.fromkeys(points))
    hull = triangulate(listed, counted)
    dimension = len(hull.axes)
    corners, masks = [], []
    for point in listed:
        place = project(point, hull.axes)
        through = [number for number, plane in enumerate(hull.planes) if evaluate(plane, place) == 0]
        # The planes meet in a single point only at a corner.
        if rank([hull.planes[number] for number in through]) == dimension:
            corners.append(point)
            masks.append(sum(1 << number for number in through))
    return ConvexPart(tuple(corners), tuple(masks), dimension, len(hull.planes))


def cut(parts: Iterable[ConvexPart], form: Form, counted: Callable[[int], None]) -> list[ConvexPart]:
    """Cut parts where the form changes sign; `counted` receives the number of added parts and may raise to stop."""
    values: dict[Corner, fmpz] = {}
    found: list[ConvexPart] = []
    for part in parts:
        sides = part.cut(form, values)
        counted(len(sides) - 1)
        found.extend(sides)
    return found


def clip(parts: Iterable[ConvexPart], form: Form, counted: Callable[[int], None]) -> list[ConvexPart]:
    """The parts where form ≥ 0; drops parts that only touch this half-space from outside."""
    return [part for part in cut(parts, form, counted) if all(evaluate(form, c) >= 0 for c in part.corners)]
