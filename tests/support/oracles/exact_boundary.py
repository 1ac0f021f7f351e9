"""Turns an exact map into its outermost boundary, by definition: pieces, components, enclaves, the line from zero.

R is where the property holds, C0 the component of R (through facets) that contains zero. A component of the complement
of C0 that does not touch the border of the domain is an enclave. The rest of the boundary of C0 inside the domain is
the outermost boundary: one component for each component of the complement that touches the border.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from flint import fmpq

from support.oracles.exact_labels import ExactLabels
from support.oracles.exact_numbers import rational
from support.oracles.exact_polytopes import Form, Polytope, homogeneous, integer, overlap, plain
from support.oracles.exact_regions import ExactMap, is_border, least_pieces


@dataclass(frozen=True, eq=False)
class Piece:
    """A convex part of one region on which the property holds, or on which it does not."""

    region: int
    polytope: Polytope
    holds: bool


@dataclass(frozen=True, eq=False)
class Component:
    """A part of the complement of C0: its pieces, and the pairs (piece of C0, own piece) that face each other."""

    pieces: frozenset[int]
    faces: frozenset[tuple[int, int]]
    is_enclave: bool


@dataclass(frozen=True, eq=False)
class ExactBoundary:
    """The pieces of a domain, and how they hang together. `zero` is a point of t."""

    pieces: tuple[Piece, ...]
    zero: tuple[Fraction, ...]

    @cached_property
    def links(self) -> list[set[int]]:
        """The pieces that each piece shares a facet with."""
        by_plane: dict[Form, list[tuple[int, int]]] = {}
        for number, piece in enumerate(self.pieces):
            for facet, form in enumerate(piece.polytope.facets):
                by_plane.setdefault(max(form, _turned(form)), []).append((number, facet))
        found: list[set[int]] = [set() for _ in self.pieces]
        for sides in by_plane.values():
            for place, (first, one) in enumerate(sides):
                for second, other in sides[place + 1 :]:
                    if overlap(self.pieces[first].polytope, one, self.pieces[second].polytope, other):
                        found[first].add(second)
                        found[second].add(first)
        return found

    @cached_property
    def is_clear(self) -> bool:
        """Whether the definitions leave no choice: the property holds on all pieces at zero or on none, and what
        touches the border does so along a facet, not only in a lower-dimensional set."""
        if len({piece.holds for piece in self._at_zero}) > 1:
            return False
        return not any(
            component.is_enclave and any(_touches(self.pieces[number].polytope) for number in component.pieces)
            for component in self.components
        )

    @cached_property
    def inner(self) -> frozenset[int]:
        """The pieces of C0; empty where the property does not hold at zero."""
        start = [n for n, piece in enumerate(self.pieces) if piece.holds and piece in self._at_zero]
        holds = {number for number, piece in enumerate(self.pieces) if piece.holds}
        return frozenset(spread(start, lambda number: self.links[number] & holds))

    @cached_property
    def components(self) -> list[Component]:
        """The components of the complement of C0 that bound it."""
        left = set(range(len(self.pieces))) - self.inner
        found = []
        while left:
            own = frozenset(spread([min(left)], lambda number: self.links[number] - self.inner))
            left -= own
            faces = frozenset((ours, theirs) for theirs in own for ours in self.links[theirs] & self.inner)
            touches = any(is_border(facet) for number in own for facet in self.pieces[number].polytope.facets)
            if faces:
                found.append(Component(own, faces, not touches))
        return found

    @property
    def outermost(self) -> list[Component]:
        """Those that touch the border of the domain: the components of the outermost boundary."""
        return [component for component in self.components if not component.is_enclave]

    def regions(self, component: Component) -> set[int]:
        """The regions on both sides of a component of the boundary."""
        return {self.pieces[number].region for face in component.faces for number in face}

    @cached_property
    def _at_zero(self) -> list[Piece]:
        point = homogeneous(self.zero)
        return [piece for piece in self.pieces if piece.polytope.contains(point)]


def make_boundary(truth: ExactLabels, property: str, delta: float = 0.0) -> ExactBoundary:
    """The pieces for cr, ar or both at δ; regions on which the label is tied count as violating."""
    pieces = []
    for number, region in enumerate(truth.map.regions):
        parts: list[tuple[Polytope, bool]] = [(region.polytope, True)]
        if property in ("cr", "both"):
            parts = [part for polytope, _ in parts for part in _by_margin(polytope, region.leads(truth.label))]
        if property in ("ar", "both"):
            slab = _slab(truth, number, delta)
            parts = [(cut, holds and inside) for part, holds in parts for cut, inside in _by_slab(part, slab)]
        pieces += [Piece(number, polytope, holds) for polytope, holds in parts]
    domain = truth.compound.domain
    ends = [(Fraction(float(low)), Fraction(float(high))) for low, high in zip(domain.low, domain.high, strict=True)]
    return ExactBoundary(tuple(pieces), tuple(-low / (high - low) for low, high in ends))


@dataclass(frozen=True)
class Line:
    """The regions on the way from zero to a point of t, in order; `is_plain` if it meets facets only inside them."""

    regions: tuple[int, ...]
    is_plain: bool


def walk(exact: ExactMap, start: Sequence[Fraction], stop: Sequence[Fraction]) -> Line:
    """The regions along a segment."""
    begin = [rational(x) for x in start]
    step = [rational(b) - rational(a) for a, b in zip(start, stop, strict=True)]
    found = []
    for number, region in enumerate(exact.regions):
        enter, leave = fmpq(0), fmpq(1)
        for form in region.polytope.facets:
            here, rise = _value(form, begin), _value((*form[:-1], 0), step)
            if rise > 0:
                enter = max(enter, -here / rise)
            elif rise < 0:
                leave = min(leave, here / -rise)
            elif here < 0:
                enter, leave = fmpq(1), fmpq(0)
        if enter < leave:
            found.append((enter, leave, number))
    found.sort()
    numbers = tuple(number for _, _, number in found)
    tiles = all(a[1] == b[0] for a, b in pairwise(found))
    faces = all(b in exact.neighbours[a] for a, b in pairwise(numbers))
    inside = all(
        _strictly_inside_facet(exact.regions[a].polytope, [p + s * x for p, x in zip(begin, step, strict=True)])
        for (_, s, a) in found[:-1]
    )
    return Line(numbers, tiles and faces and inside)


def _value(form: Form, point: Sequence[fmpq]) -> fmpq:
    """The value of a form at a point."""
    return sum((a * x for a, x in zip(form, point, strict=False)), fmpq(form[-1]))


def spread(start: Iterable[int], links: Callable[[int], set[int]]) -> set[int]:
    """Every place that the start reaches."""
    found = set(start)
    queue = list(found)
    while queue:
        for other in links(queue.pop()) - found:
            found.add(other)
            queue.append(other)
    return found


def _strictly_inside_facet(polytope: Polytope, point: Sequence[fmpq]) -> bool:
    return sum(_value(facet, point) == 0 for facet in polytope.facets) == 1


def _by_margin(polytope: Polytope, leads: Sequence[Form]) -> list[tuple[Polytope, bool]]:
    """The parts where the least lead is above zero, and the others, each convex."""
    found: list[tuple[Polytope, bool]] = []
    for part, lead in least_pieces(polytope, leads):
        negative, positive = part.cut(lead)
        found += [(side, holds) for side, holds in ((negative, False), (positive, True)) if side is not None]
    return found


def _slab(truth: ExactLabels, number: int, delta: float) -> tuple[int, Fraction, Fraction] | bool:
    """Where ai ≤ δ on a region: everywhere, nowhere, or between two values of one coordinate of t."""
    region = truth.map.regions[number]
    axis, (start, stop) = truth.compound.perturbed.moving_axis, truth.taus(region)
    slab = truth.slab(region, delta)
    if slab is None or axis is None:
        return slab is not None
    if slab == (start, stop):
        return True
    domain = truth.compound.domain
    begin = Fraction(float(truth.compound.cells[region.cell].low[axis]) - float(domain.low[axis]))
    width = Fraction(float(domain.high[axis])) - Fraction(float(domain.low[axis]))
    return axis, (slab[0] + begin) / width, (slab[1] + begin) / width


def _by_slab(polytope: Polytope, slab: tuple[int, Fraction, Fraction] | bool) -> list[tuple[Polytope, bool]]:
    if isinstance(slab, bool):
        return [(polytope, slab)]
    axis, first, last = slab
    unit = [Fraction(int(k == axis)) for k in range(polytope.dimension)]
    before, rest = polytope.cut(integer([*unit, -first]))
    inside, after = rest.cut(integer([*unit, -last])) if rest is not None else (None, None)
    sides = ((before, False), (inside, True), (after, False))
    return [(part, holds) for part, holds in sides if part is not None]


def _touches(polytope: Polytope) -> bool:
    return any(x in (0, 1) for vertex in polytope.vertices for x in plain(vertex))


def _turned(form: Form) -> Form:
    return tuple(-number for number in form)
