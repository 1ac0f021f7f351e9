"""Convex polytopes in one to three dimensions, in whole numbers: split by affine forms, and measured, without rounding.

A point is homogeneous, (X_1, …, X_d, W) with W > 0 standing for X/W; a form (a_1, …, a_d, c) is a·x + c up to a
positive factor. Every vertex carries the facets that it lies on as bits, and edges follow from those alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from math import factorial, gcd

Whole = tuple[int, ...]


@dataclass(frozen=True)
class Polytope:
    """A polytope with volume: its vertices, and for each the facets through it (bit k: facet k of `facet_count`)."""

    vertices: tuple[Whole, ...]
    facets: tuple[int, ...]
    facet_count: int

    @property
    def dimension(self) -> int:
        return len(self.vertices[0]) - 1

    def values(self, form: Whole) -> list[int]:
        """The form at every vertex, times the vertex's W: the signs are those of the form."""
        return [sum(a * x for a, x in zip(form, vertex, strict=True)) for vertex in self.vertices]

    def range(self, form: Whole) -> tuple[Fraction, Fraction]:
        """Smallest and largest value of a form."""
        found = [Fraction(value, vertex[-1]) for value, vertex in zip(self.values(form), self.vertices, strict=True)]
        return min(found), max(found)

    def points(self) -> list[tuple[Fraction, ...]]:
        """The vertices as rational points."""
        return [tuple(Fraction(x, vertex[-1]) for x in vertex[:-1]) for vertex in self.vertices]

    def centre(self) -> tuple[Fraction, ...]:
        """The mean of the vertices, which lies inside."""
        points = self.points()
        return tuple(sum(axis, Fraction(0)) / len(points) for axis in zip(*points, strict=True))


def box(low: Sequence[Fraction], high: Sequence[Fraction]) -> Polytope:
    """The box [low, high].

    >>> volume(box([Fraction(0), Fraction(1)], [Fraction(1, 3), Fraction(2)]))
    Fraction(1, 3)
    """
    vertices, facets = [], []
    for sides in product((0, 1), repeat=len(low)):
        corner = [(high if side else low)[axis] for axis, side in enumerate(sides)]
        vertices.append(homogeneous(corner))
        facets.append(sum(1 << (2 * axis + side) for axis, side in enumerate(sides)))
    return Polytope(tuple(vertices), tuple(facets), 2 * len(low))


def homogeneous(point: Sequence[Fraction]) -> Whole:
    """A rational point in whole numbers."""
    weight = 1
    for number in point:
        weight = weight * number.denominator // gcd(weight, number.denominator)
    return (*(int(number * weight) for number in point), weight)


def split(polytope: Polytope, form: Whole) -> tuple[Polytope | None, Polytope | None]:
    """The parts with volume where the form is ≤ 0 and where it is > 0; a form that vanishes everywhere is ≤ 0.

    >>> left, right = split(box([Fraction(0)], [Fraction(1)]), (4, -1))
    >>> volume(left), volume(right)
    (Fraction(1, 4), Fraction(3, 4))
    """
    values = polytope.values(form)
    if max(values) <= 0:
        return polytope, None
    if min(values) >= 0:
        return None, polytope
    new = 1 << polytope.facet_count
    met = _crossings(polytope, values)
    parts = []
    for sign in (-1, 1):
        vertices, facets = [point for point, _ in met], [bits | new for _, bits in met]
        for vertex, bits, value in zip(polytope.vertices, polytope.facets, values, strict=True):
            if sign * value >= 0:
                vertices.append(vertex)
                facets.append(bits if value else bits | new)
        parts.append(Polytope(tuple(vertices), tuple(facets), polytope.facet_count + 1))
    return parts[0], parts[1]


def _crossings(polytope: Polytope, values: list[int]) -> list[tuple[Whole, int]]:
    """Where edges from the negative to the positive side meet the plane, each with the facets of its edge."""
    least = polytope.dimension - 1
    found = []
    below = [i for i, value in enumerate(values) if value < 0]
    above = [i for i, value in enumerate(values) if value > 0]
    for p in below:
        for q in above:
            common = polytope.facets[p] & polytope.facets[q]
            if common.bit_count() < least:
                continue
            # Two vertices span an edge if no third one lies on all the facets that they share.
            if any(bits & common == common for k, bits in enumerate(polytope.facets) if k not in (p, q)):
                continue
            pair = zip(polytope.vertices[p], polytope.vertices[q], strict=True)
            point = [x * values[q] - y * values[p] for x, y in pair]
            shared = gcd(*point)
            found.append((tuple(x // shared for x in point), common))
    return found


def volume(polytope: Polytope | None) -> Fraction:
    """Length, area or volume; 0 for None."""
    if polytope is None:
        return Fraction(0)
    indices = frozenset(range(len(polytope.vertices)))
    total = Fraction(0)
    for simplex in _simplices(polytope, indices, polytope.dimension):
        corners = [polytope.vertices[i] for i in simplex]
        weight = 1
        for corner in corners:
            weight *= corner[-1]
        total += Fraction(abs(_determinant(corners)), weight)
    return total / factorial(polytope.dimension)


def _simplices(polytope: Polytope, face: frozenset[int], dimension: int) -> list[tuple[int, ...]]:
    """A triangulation of a face: cones from its first vertex over its own facets that do not contain it."""
    if dimension == 0:
        return [tuple(face)]
    apex = min(face)
    parts = {frozenset(i for i in face if polytope.facets[i] >> k & 1) for k in range(polytope.facet_count)}
    parts = {part for part in parts if part and part != face}
    largest = [part for part in parts if not any(part < other for other in parts)]
    return [
        (apex, *simplex)
        for part in largest
        if apex not in part
        for simplex in _simplices(polytope, part, dimension - 1)
    ]


def _determinant(rows: Sequence[Whole]) -> int:
    if len(rows) == 1:
        return rows[0][0]
    total = 0
    for column, entry in enumerate(rows[0]):
        if entry:
            minor = [(*row[:column], *row[column + 1 :]) for row in rows[1:]]
            total += (-1) ** column * entry * _determinant(minor)
    return total


def cells(low: Fraction, high: Fraction, knots: Sequence[int]) -> list[tuple[Fraction, Fraction]]:
    """The parts of a range between neighbouring knots.

    >>> [(str(a), str(b)) for a, b in cells(Fraction(0), Fraction(3, 2), [1])]
    [('0', '1'), ('1', '3/2')]
    """
    return list(pairwise([low, *(Fraction(knot) for knot in knots if low < knot < high), high]))
