"""Convex polytopes with volume in exact rationals, in one to four dimensions: cuts, volumes, facets, overlaps.

Written from the definitions, without the package. A point is homogeneous and integer, (x_1 w, …, x_d w, w), w > 0; a
form is integer, (a_1, …, a_d, c), and stands for a·x + c. Both are divided by their common factor, so equal points and
equal half-spaces are equal tuples. `corners_of` is a second way from half-spaces to vertices that shares no geometry
with the cuts. Exact and slow: for polytopes of a few dozen vertices.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import factorial, gcd, lcm, prod
from operator import mul

Point = tuple[int, ...]
Form = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Polytope:
    """Vertices, non-redundant half-spaces (form ≥ 0 inside), and for each vertex the facets it lies on, as bits."""

    vertices: tuple[Point, ...]
    facets: tuple[Form, ...]
    masks: tuple[int, ...]

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return len(self.vertices[0]) - 1

    @cached_property
    def volume(self) -> Fraction:
        """The volume, from simplices that have one vertex in common."""
        total = sum((_simplex(corners) for corners in self._simplices(range(len(self.vertices)), self.dimension)), ZERO)
        return total / factorial(self.dimension)

    @property
    def middle(self) -> tuple[Fraction, ...]:
        """The mean of the vertices, a point of the interior."""
        count = len(self.vertices)
        return tuple(sum(column, ZERO) / count for column in zip(*map(plain, self.vertices), strict=True))

    def on_facet(self, facet: int) -> frozenset[Point]:
        """The vertices of a facet."""
        if facet not in self._on_facets:
            own = (v for v, mask in zip(self.vertices, self.masks, strict=True) if mask >> facet & 1)
            self._on_facets[facet] = frozenset(own)
        return self._on_facets[facet]

    @cached_property
    def _on_facets(self) -> dict[int, frozenset[Point]]:
        return {}

    @cached_property
    def shadows(self) -> dict[int, "Polytope"]:
        """The facets of which `shadow` was asked, as polytopes of one dimension less."""
        return {}

    def contains(self, point: Point) -> bool:
        """Whether a point lies in the closed polytope."""
        return all(at(facet, point) >= 0 for facet in self.facets)

    def range(self, form: Form) -> tuple[Fraction, Fraction]:
        """The least and the largest value of a form."""
        values = [Fraction(at(form, vertex), vertex[-1]) for vertex in self.vertices]
        return min(values), max(values)

    def cut(self, form: Form) -> tuple["Polytope | None", "Polytope | None"]:
        """The parts with form ≤ 0 and with form ≥ 0, each None where it has no volume.

        >>> negative, positive = box([0, 0], [1, 1]).cut((2, 2, -1))
        >>> negative.volume, positive.volume, len(positive.facets)
        (Fraction(1, 8), Fraction(7, 8), 5)
        >>> box([0, 0], [1, 1]).cut((1, 1, 0))[0] is None
        True
        """
        values = [at(form, vertex) for vertex in self.vertices]
        if max(values) <= 0:
            return self, None
        if min(values) >= 0:
            return None, self
        fresh = self._crossings(values)
        own = reduced(form)
        negative = self._part([-value for value in values], fresh, tuple(-number for number in own))
        return negative, self._part(values, fresh, own)

    def _crossings(self, values: Sequence[int]) -> list[tuple[Point, int]]:
        """Where a plane meets the edges between vertices on its two sides, with the common facets of each edge."""
        below = [i for i, value in enumerate(values) if value < 0]
        above = [i for i, value in enumerate(values) if value > 0]
        found = []
        for i in below:
            for j in above:
                common = self.masks[i] & self.masks[j]
                if common.bit_count() < self.dimension - 1:
                    continue
                if [mask & common for mask in self.masks].count(common) > 2:  # i, j and another vertex
                    continue
                ends = zip(self.vertices[i], self.vertices[j], strict=True)
                found.append((reduced([p * values[j] - q * values[i] for p, q in ends]), common))
        return found

    def _part(self, values: Sequence[int], fresh: list[tuple[Point, int]], form: Form) -> "Polytope":
        """The part with values ≥ 0, its new facet last. A facet stays if one of its vertices is strictly inside."""
        inside = [mask for mask, value in zip(self.masks, values, strict=True) if value > 0]
        stay = [f for f in range(len(self.facets)) if any(mask >> f & 1 for mask in inside)]
        new_bit = 1 << len(stay)
        corners: list[tuple[Point, int]] = []
        for vertex, mask, value in zip(self.vertices, self.masks, values, strict=True):
            if value >= 0:
                corners.append((vertex, _moved(mask, stay) | (new_bit if value == 0 else 0)))
        corners += [(point, _moved(mask, stay) | new_bit) for point, mask in fresh]
        facets = (*(self.facets[f] for f in stay), form)
        return Polytope(tuple(c[0] for c in corners), facets, tuple(c[1] for c in corners))

    def _simplices(self, indices: Iterable[int], dimension: int) -> Iterable[list[Point]]:
        """Simplices of a face: pyramids from its first vertex over those of its facets that leave the vertex out."""
        face = list(indices)
        apex, rest = face[0], face[1:]
        if len(face) == dimension + 1:
            yield [self.vertices[i] for i in face]
            return
        sides = {
            frozenset(i for i in rest if self.masks[i] >> f & 1)
            for f in range(len(self.facets))
            if not self.masks[apex] >> f & 1
        }
        for side in sides:
            if len(side) >= dimension and rank([self.vertices[i] for i in side]) == dimension:
                for simplex in self._simplices(sorted(side), dimension - 1):
                    yield [self.vertices[apex], *simplex]


ZERO = Fraction(0)


def box(low: Sequence[Fraction | int], high: Sequence[Fraction | int]) -> Polytope:
    """The box between two corners."""
    d = len(low)
    facets = []
    for axis in range(d):
        for sign, end in ((1, low[axis]), (-1, high[axis])):
            facets.append(integer([*(sign * int(k == axis) for k in range(d)), -sign * Fraction(end)]))
    corners = []
    for number in range(2**d):
        ends = [(number >> axis) & 1 for axis in range(d)]
        point = [Fraction((low, high)[end][axis]) for axis, end in enumerate(ends)]
        corners.append((homogeneous(point), sum(1 << (2 * axis + end) for axis, end in enumerate(ends))))
    return Polytope(tuple(c[0] for c in corners), tuple(facets), tuple(c[1] for c in corners))


def overlap(first: Polytope, facet: int, second: Polytope, other: int) -> bool:
    """Whether two facets on one plane, seen from opposite sides, share more than a lower-dimensional set."""
    form = first.facets[facet]
    if second.facets[other] != tuple(-number for number in form):
        return False
    if first.on_facet(facet) == second.on_facet(other) or first.dimension == 1:
        return True
    part: Polytope | None = shadow(first, facet)
    for side in shadow(second, other).facets:
        if part is None:
            return False
        part = part.cut(side)[1]
    return part is not None


def shadow(polytope: Polytope, facet: int) -> Polytope:
    """A facet as a polytope of one dimension less, by leaving out the first coordinate that its plane is not along."""
    if facet not in polytope.shadows:
        polytope.shadows[facet] = _shadow(polytope, facet)
    return polytope.shadows[facet]


def _shadow(polytope: Polytope, facet: int) -> Polytope:
    form = polytope.facets[facet]
    axis = next(k for k, number in enumerate(form[:-1]) if number)
    corners = sorted(polytope.on_facet(facet))
    points = [reduced([*corner[:axis], *corner[axis + 1 :]]) for corner in corners]
    sides: dict[frozenset[int], Form] = {}
    for number, other in enumerate(polytope.facets):
        if number == facet:
            continue
        shared = polytope.on_facet(number)
        ends = frozenset(i for i, corner in enumerate(corners) if corner in shared)
        if len(ends) >= polytope.dimension - 1 and rank([points[i] for i in ends]) == polytope.dimension - 1:
            # On the plane the left-out coordinate is the others' form divided by −form[axis].
            sign = 1 if form[axis] > 0 else -1
            mixed = [sign * (a * form[axis] - other[axis] * b) for a, b in zip(other, form, strict=True)]
            sides[ends] = reduced([*mixed[:axis], *mixed[axis + 1 :]])
    masks = tuple(sum(1 << k for k, ends in enumerate(sides) if i in ends) for i in range(len(points)))
    return Polytope(tuple(points), tuple(sides.values()), masks)


def corners_of(halfspaces: Sequence[Form]) -> set[Point] | None:
    """The vertices of a bounded intersection of half-spaces by solving every d of them; None without volume."""
    d = len(halfspaces[0]) - 1
    found = set()
    for chosen in combinations(halfspaces, d):
        point = _meet(chosen)
        if point is not None and all(at(form, point) >= 0 for form in halfspaces):
            found.add(point)
    return found if found and rank(list(found)) == d + 1 else None


def at(form: Form, point: Point) -> int:
    """The value of a form at a point, times the weight of the point."""
    return sum(map(mul, form, point))


def reduced(numbers: Sequence[int]) -> tuple[int, ...]:
    """Numbers without their common factor."""
    factor = gcd(*numbers) or 1
    return tuple(number // factor for number in numbers)


def integer(numbers: Sequence[Fraction | int]) -> tuple[int, ...]:
    """Rationals times their common denominator, without a common factor."""
    scale = lcm(*(Fraction(number).denominator for number in numbers))
    return reduced([int(number * scale) for number in numbers])


def homogeneous(point: Sequence[Fraction | int]) -> Point:
    """A point as integers.

    >>> homogeneous([Fraction(1, 2), Fraction(1, 3)])
    (3, 2, 6)
    """
    return integer([*point, 1])


def plain(point: Point) -> tuple[Fraction, ...]:
    """A point as rationals."""
    return tuple(Fraction(number, point[-1]) for number in point[:-1])


def rank(points: Sequence[Sequence[int]]) -> int:
    """The rank of integer rows: for points, one more than the dimension that they span."""
    rows = [list(point) for point in points]
    done = 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(done, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[done], rows[pivot] = rows[pivot], rows[done]
        for i in range(done + 1, len(rows)):
            if rows[i][column]:
                mixed = [rows[done][column] * a - rows[i][column] * b for a, b in zip(rows[i], rows[done], strict=True)]
                rows[i] = list(reduced(mixed))
        done += 1
    return done


def _moved(mask: int, stay: Sequence[int]) -> int:
    return sum(1 << place for place, facet in enumerate(stay) if mask >> facet & 1)


def _simplex(corners: Sequence[Point]) -> Fraction:
    return Fraction(abs(determinant([list(corner) for corner in corners])), prod(corner[-1] for corner in corners))


def determinant(rows: list[list[int]]) -> int:
    if len(rows) == 1:
        return rows[0][0]
    total = 0
    for place, number in enumerate(rows[0]):
        if number:
            minor = [[*row[:place], *row[place + 1 :]] for row in rows[1:]]
            total += (-1) ** place * number * determinant(minor)
    return total


def _meet(forms: Sequence[Form]) -> Point | None:
    """The point where d forms vanish, by Cramer's rule; None where they are dependent."""
    d = len(forms)
    minors = [determinant([[*form[:k], *form[k + 1 :]] for form in forms]) * (-1) ** k for k in range(d + 1)]
    if not minors[-1]:
        return None
    return reduced([number * (1 if minors[-1] > 0 else -1) for number in minors])
