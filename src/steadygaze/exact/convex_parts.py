"""Convex parts of the domain with exact corners, cut along forms.

A part knows its corners and, for each, the planes that it lies on; that is enough to find its edges, and so to cut it.
Cuts add one plane and keep all others: a plane that only touches a part does no harm.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from flint import fmpz

from .simplices import Corner, Form, Simplex, contains, evaluate, make_corner, project, rank, triangulate, volume


@dataclass(frozen=True, eq=False)
class Part:
    """A convex polytope: corners, for each the planes through it as bits, the dimension and the number of planes."""

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
        """Whether a point lies in a part with volume, its border included; False for a flat part."""
        return any(contains(simplex, point) for simplex in self.simplices)

    def cut(self, form: Form, values: dict[Corner, fmpz]) -> list["Part"]:
        """The parts with form ≤ 0 and with form ≥ 0, or the part itself if the form does not change sign on it.

        `values` are those of the form at corners seen so far; new corners are added.
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
            sides.append(Part(corners, masks, self.dimension, self.planes + 1))
        return sides

    def _crossings(self, at: list[fmpz]) -> list[tuple[Corner, int]]:
        """Where a form vanishes inside edges, given its values at the corners, and the planes of each edge."""
        below = [i for i, value in enumerate(at) if value < 0]
        above = [i for i, value in enumerate(at) if value > 0]
        found = []
        for i in below:
            for j in above:
                common = self.masks[i] & self.masks[j]
                # Two corners make an edge if no third one lies on all the planes that both lie on.
                if common.bit_count() < self.dimension - 1 or any(
                    mask & common == common for k, mask in enumerate(self.masks) if k not in (i, j)
                ):
                    continue
                ends = zip(self.corners[i], self.corners[j], strict=True)
                found.append((make_corner(at[j] * x - at[i] * y for x, y in ends), common))
        return found


def hull_of(points: Iterable[Corner], counted: Callable[[int], None]) -> Part:
    """The convex hull of points, at least one; see `triangulate`."""
    listed = list(dict.fromkeys(points))
    hull = triangulate(listed, counted)
    dimension = len(hull.axes)
    corners, masks = [], []
    for point in listed:
        place = project(point, hull.axes)
        through = [number for number, plane in enumerate(hull.planes) if evaluate(plane, place) == 0]
        # Only at a corner do the planes meet in a single point.
        if rank([hull.planes[number] for number in through]) == dimension:
            corners.append(point)
            masks.append(sum(1 << number for number in through))
    return Part(tuple(corners), tuple(masks), dimension, len(hull.planes))


def cut(parts: Iterable[Part], form: Form, counted: Callable[[int], None]) -> list[Part]:
    """Cut parts where the form changes sign; `counted` is told how many parts each cut adds and may raise to stop."""
    values: dict[Corner, fmpz] = {}
    found: list[Part] = []
    for part in parts:
        sides = part.cut(form, values)
        counted(len(sides) - 1)
        found.extend(sides)
    return found


def clip(parts: Iterable[Part], form: Form, counted: Callable[[int], None]) -> list[Part]:
    """The parts where form ≥ 0; what only touches them from outside is dropped."""
    return [part for part in cut(parts, form, counted) if all(evaluate(form, c) >= 0 for c in part.corners)]
