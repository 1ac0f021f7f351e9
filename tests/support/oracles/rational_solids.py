"""From a tiny ReLU network of three inputs to its activation regions and volumes, in exact rationals.

Written from the definitions, without the package. A polytope is the planes that cut it out and its vertices; a vertex
is a point where the planes that vanish span the space. Exact and slow: for networks of a dozen neurons.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

from support.oracles.rational_polygons import (
    Form,
    Layer,
    Point,
    Region,
    _affine,
    _box_sides,
    _gate,
    _hull,
    _negative,
    area,
    evaluate,
)


@dataclass(frozen=True)
class Solid:
    """{form ≥ 0 for all planes}: no two planes coincide, and every one of them bounds it."""

    planes: tuple[Form, ...]
    vertices: tuple[Point, ...]


def box(low: Sequence[Fraction], high: Sequence[Fraction]) -> Solid:
    """The domain."""
    corners = product(*zip(low, high, strict=True))
    return Solid(tuple(_box_sides(low, high)), tuple(tuple(map(Fraction, corner)) for corner in corners))


def split_regions(layers: Sequence[Layer], low: Sequence[Fraction], high: Sequence[Fraction]) -> tuple[Region, ...]:
    """As `rational_polygons.split_regions`, in three dimensions; `polygon` holds the vertices, `area` the volume."""
    theta = tuple(tuple(Fraction(i == k) for k in range(4)) for i in range(3))
    pieces = [(box(low, high), (), theta)]
    for layer in layers[:-1]:
        pieces = [
            (part, pattern + bits, tuple(_gate(bit, form) for bit, form in zip(bits, forms, strict=True)))
            for solid, pattern, values in pieces
            for forms in [_affine(layer, values)]
            for part, bits in _split_by(solid, forms)
        ]
    return tuple(
        Region(pattern, solid.vertices, volume(solid), _affine(layers[-1], values)) for solid, pattern, values in pieces
    )


def _split_by(solid: Solid, forms: Sequence[Form]) -> list[tuple[Solid, tuple[int, ...]]]:
    parts: list[tuple[Solid, tuple[int, ...]]] = [(solid, ())]
    for form in forms:
        split = []
        for part, bits in parts:
            values = [evaluate(form, vertex) for vertex in part.vertices]
            if max(values) <= 0:
                split.append((part, (*bits, 0)))
            elif min(values) >= 0:
                split.append((part, (*bits, 1)))
            else:
                split += [(clip(part, _negative(form)), (*bits, 0)), (clip(part, form), (*bits, 1))]
        parts = split
    return parts


def clip(solid: Solid, form: Form) -> Solid:
    """The part with form ≥ 0 of a solid that the plane cuts."""
    values = {vertex: evaluate(form, vertex) for vertex in solid.vertices}
    points = {vertex for vertex, value in values.items() if value >= 0}
    for v, w in combinations(solid.vertices, 2):
        if values[v] * values[w] < 0:
            share = values[v] / (values[v] - values[w])
            points.add(tuple(a + share * (b - a) for a, b in zip(v, w, strict=True)))
    planes = [*solid.planes, form]
    vertices = tuple(sorted(point for point in points if _is_vertex(planes, point)))
    bounding = [plane for plane in planes if sum(evaluate(plane, vertex) == 0 for vertex in vertices) > 2]
    return Solid(tuple(bounding), vertices)


def _is_vertex(planes: Sequence[Form], point: Point) -> bool:
    tight = [plane for plane in planes if evaluate(plane, point) == 0]
    return any(_determinant(*three) != 0 for three in combinations(tight, 3))


def _determinant(a: Form, b: Form, c: Form) -> Fraction:
    return (
        a[0] * (b[1] * c[2] - b[2] * c[1])
        - a[1] * (b[0] * c[2] - b[2] * c[0])
        + a[2] * (b[0] * c[1] - b[1] * c[0])
    )  # fmt: skip


def volume(solid: Solid) -> Fraction:
    """Pyramids over the facets: each from its shadow along an axis that it is not parallel to.

    >>> volume(box([Fraction(0)] * 3, [Fraction(1), Fraction(2), Fraction(1, 2)]))
    Fraction(1, 1)
    """
    top, total = solid.vertices[0], Fraction(0)
    for plane in solid.planes:
        axis = max(range(3), key=lambda k: abs(plane[k]))
        others = [k for k in range(3) if k != axis]
        shadow = sorted((v[others[0]], v[others[1]]) for v in solid.vertices if evaluate(plane, v) == 0)
        total += area(_hull(shadow)) * evaluate(plane, top) / abs(plane[axis])
    return total / 3
