"""From a polytope in t to exact convex parts, one list for each knot cell that it meets."""

from collections.abc import Callable, Iterator
from itertools import product
from math import inf

import numpy as np
from flint import fmpz

from steadygaze.compound import Compound
from steadygaze.errors import OptionError
from steadygaze.perturbation import KnotCell

from .convex_parts import Part, clip, cut, hull_of
from .simplices import Corner, Form, evaluate, make_corner
from .whole_numbers import from_floats, to_rational


def polytope_parts(
    compound: Compound, vertices: np.ndarray, inflation: float, counted: Callable[[int], None]
) -> list[Part]:
    """The hull of vertices (V, D), enlarged by `inflation` along every axis, inside the unit cube.

    The second coordinate of a single parameter is left out. Raises OptionError for vertices that are no points in t,
    and where the polytope at most touches the unit cube.
    """
    dimension = compound.domain.dimension
    vertices = np.asarray(vertices, dtype=np.float64)
    if vertices.ndim != 2 or vertices.shape[1] != compound.coordinates or not len(vertices):
        raise OptionError(f"vertices have shape {vertices.shape}; expected (V, {compound.coordinates}) with V > 0")
    if not np.isfinite(vertices).all() or not 0.0 <= inflation < inf:
        raise OptionError("vertices must be finite, and the inflation finite and not negative")
    given = from_floats(np.append(vertices[:, :dimension].ravel(), inflation))
    radius = given.numbers[-1]
    steps = list(product((-radius, radius), repeat=dimension)) if radius else [(fmpz(0),) * dimension]
    corners = [
        make_corner((*(x + step for x, step in zip(row, chosen, strict=True)), given.denominator))
        for row in given.numbers[:-1].reshape(-1, dimension)
        for chosen in steps
    ]
    parts = [hull_of(corners, counted)]
    for axis in range(dimension):
        parts = clip(parts, _beyond(axis, dimension, fmpz(0), fmpz(1)), counted)
        parts = clip(parts, tuple(-number for number in _beyond(axis, dimension, fmpz(1), fmpz(1))), counted)
    if not parts:
        raise OptionError("the polytope lies outside of the unit cube; give its vertices in t")
    return parts


def parts_by_cell(
    compound: Compound, parts: list[Part], counted: Callable[[int], None]
) -> Iterator[tuple[KnotCell, list[Part]]]:
    """Cut parts at the knots, which are exact, and give those of every knot cell."""
    domain = compound.domain
    knots: list[tuple[int, float, Form]] = []
    for axis in range(domain.dimension):
        low, high = (to_rational(ends[axis]) for ends in (domain.low, domain.high))
        for theta in sorted({float(cell.low[axis]) for cell in compound.cells}):
            place = (to_rational(theta) - low) / (high - low)
            knots.append((axis, theta, _beyond(axis, domain.dimension, place.p, place.q)))
    for _, _, form in knots:
        parts = cut(parts, form, counted)
    groups: dict[tuple[float, ...], list[Part]] = {}
    for part in parts:
        starts = domain.low.tolist()
        for axis, theta, form in knots:
            if all(evaluate(form, corner) >= 0 for corner in part.corners):
                starts[axis] = theta
        groups.setdefault(tuple(starts), []).append(part)
    cells = {tuple(cell.low.tolist()): cell for cell in compound.cells}
    for begin, group in groups.items():
        yield cells[begin], group


def unit_corner(compound: Compound, theta: np.ndarray) -> Corner:
    """The exact point t of a theta (d,)."""
    domain = compound.domain
    places = [
        (to_rational(value) - to_rational(low)) / (to_rational(high) - to_rational(low))
        for value, low, high in zip(theta, domain.low, domain.high, strict=True)
    ]
    weight = fmpz(1)
    for place in places:
        weight *= place.q
    return make_corner((*(place.p * (weight // place.q) for place in places), weight))


def _beyond(axis: int, dimension: int, numerator: fmpz, denominator: fmpz) -> Form:
    """The form t[axis] − numerator/denominator, up to a positive factor."""
    return (*(denominator if other == axis else fmpz(0) for other in range(dimension)), -numerator)
