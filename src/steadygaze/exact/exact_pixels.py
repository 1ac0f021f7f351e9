"""The unclipped pixels as exact affine forms on a knot cell, and a polytope in t as exact parts of the knot cells.

If all pixels equal fl(v/255) for whole v, the rationals v/255 are the pixels; otherwise the floats themselves are.
Theta is low + t·(high − low); the ends of the domain are taken as exact.

A family's `change` is called with images of whole numbers (the numerators of the pixels, in pieces of 40 bits). It is
affine in the image, so these calls determine it. If the results are whole numbers too, as for every family that adds
whole multiples of pixels, float64 has not rounded, and the forms are exact. The slope of a `Ramp` is the stored array,
by definition. Other families are enclosed: `change` is assumed to be accurate to `ASSUMED` of its largest entry, which
allows for about thirty roundings.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import inf

import numpy as np
from flint import fmpq, fmpz

from ..compound import Compound
from ..errors import OptionError
from ..perturbation import Domain, KnotCell, Perturbed, Ramp
from .network_forms import WholeForms
from .simplices import ConvexPart, Corner, Form, clip, cut, evaluate, hull_of, make_corner
from .whole_numbers import from_floats, to_array, to_rational


def polytope_parts(
    compound: Compound, vertices: np.ndarray, inflation: float, counted: Callable[[int], None]
) -> list[ConvexPart]:
    """The hull of vertices (V, D), enlarged by `inflation` along every axis, inside the unit cube.

    With a single parameter, the second coordinate is dropped. Raises OptionError for vertices that are not points in t,
    and for a polytope that at most touches the unit cube.
    """
    dimension = compound.domain.dimension
    vertices = np.asarray(vertices, dtype=np.float64)
    if vertices.ndim != 2 or vertices.shape[1] != compound.coordinates or not len(vertices):
        raise OptionError(f"vertices have shape {vertices.shape}; expected (V, {compound.coordinates}) with V > 0")
    if not np.isfinite(vertices).all() or not 0.0 <= inflation < inf:
        raise OptionError("vertices and inflation must be finite, and the inflation not negative")
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
        raise OptionError("the polytope lies outside the unit cube; give its vertices in t")
    return parts


def parts_by_cell(
    compound: Compound, parts: list[ConvexPart], counted: Callable[[int], None]
) -> Iterator[tuple[KnotCell, list[ConvexPart]]]:
    """Cut parts at the knots, which are exact, and yield the parts of every knot cell."""
    domain = compound.domain
    knots: list[tuple[int, float, Form]] = []
    for axis in range(domain.dimension):
        for theta in sorted({float(cell.low[axis]) for cell in compound.cells}):
            place = _place(domain, axis, theta)
            knots.append((axis, theta, _beyond(axis, domain.dimension, place.p, place.q)))
    for _, _, form in knots:
        parts = cut(parts, form, counted)
    groups: dict[tuple[float, ...], list[ConvexPart]] = {}
    for part in parts:
        starts = domain.low.tolist()
        for axis, theta, form in knots:
            if all(evaluate(form, corner) >= 0 for corner in part.corners):
                starts[axis] = theta
        groups.setdefault(tuple(starts), []).append(part)
    boxes = {tuple(cells[0].low.tolist()): cells for cells in compound.perturbed.boxes}
    for begin, group in groups.items():
        for cell in boxes[begin]:
            own = group if cell.side is None else clip(group, _side(domain, cell.side), counted)
            if own:
                yield cell, own


def unit_corner(compound: Compound, theta: np.ndarray) -> Corner:
    """The exact point t of a theta (d,)."""
    places = [_place(compound.domain, axis, value) for axis, value in enumerate(theta.tolist())]
    weight = fmpz(1)
    for place in places:
        weight *= place.q
    return make_corner((*(place.p * (weight // place.q) for place in places), weight))


def _side(domain: Domain, side: np.ndarray) -> Form:
    """A form (d+1,) of theta as a form of t, up to a positive factor."""
    ends = [(to_rational(low), to_rational(high)) for low, high in zip(domain.low, domain.high, strict=True)]
    slopes = [to_rational(slope) for slope in side[:-1]]
    rows = [slope * (high - low) for slope, (low, high) in zip(slopes, ends, strict=True)]
    rows.append(sum((slope * low for slope, (low, _) in zip(slopes, ends, strict=True)), start=to_rational(side[-1])))
    denominator = fmpz(1)
    for number in rows:
        denominator = denominator.lcm(number.q)
    return tuple((number * denominator).p for number in rows)


def _place(domain: Domain, axis: int, theta: float) -> fmpq:
    """The exact coordinate t of a theta along one axis."""
    low, high = to_rational(domain.low[axis]), to_rational(domain.high[axis])
    return (to_rational(theta) - low) / (high - low)


def _beyond(axis: int, dimension: int, numerator: fmpz, denominator: fmpz) -> Form:
    """The form t[axis] − numerator/denominator, up to a positive factor."""
    return (*(denominator if other == axis else fmpz(0) for other in range(dimension)), -numerator)


PIECE = 40
LARGEST_WHOLE = 2.0**52
ASSUMED = fmpq(1, 2**48)
ChangeOf = Callable[[np.ndarray], tuple[np.ndarray, ...]]
FINER = fmpz(1) << 64
"""The denominator of enclosed changes is the denominator of the pixels times this."""


@dataclass(frozen=True, eq=False)
class _Change:
    """Offset, and slopes by parameter, over the pixels' denominator times `finer`, with an error up to `error`."""

    offset: np.ndarray
    slopes: dict[int, np.ndarray]
    error: fmpq
    finer: fmpz


class ExactPixels:
    """The pixels of a perturbed image, exact or enclosed."""

    def __init__(self, perturbed: Perturbed) -> None:
        self.perturbed = perturbed
        grey = np.rint(perturbed.x0 * 255.0)
        if np.array_equal(grey / 255.0, perturbed.x0):
            self.numerators, self.denominator = to_array(_wholes(grey), grey.shape), fmpz(255)
        else:
            constants = from_floats(perturbed.x0)
            self.numerators, self.denominator = constants.numbers, constants.denominator
        self._pieces = self._split()
        self._known: dict[int, WholeForms] = {}

    def on_cell(self, cell: KnotCell) -> WholeForms:
        """The pixels (C, H, W) as forms of t."""
        domain = self.perturbed.domain
        forms = self._in_theta(cell)
        ends = from_floats(np.stack([domain.low, domain.high]))
        low, high = ends.numbers
        numbers = forms.numbers * ends.denominator
        numbers[..., -1] += (forms.numbers[..., :-1] * low).sum(axis=-1)
        numbers[..., :-1] = forms.numbers[..., :-1] * (high - low)
        radii = None if forms.radii is None else forms.radii * ends.denominator
        return WholeForms(numbers, radii, forms.denominator * ends.denominator)

    @property
    def original(self) -> WholeForms:
        """The pixels (C, H, W) of the unperturbed image, as constant forms."""
        return WholeForms(self.numerators[..., None], None, self.denominator)

    def at(self, theta: np.ndarray) -> WholeForms:
        """The pixels (C, H, W) at one theta (d,), as constant forms."""
        forms = self._in_theta(self.perturbed.cell_of(theta))
        point = from_floats(theta)
        values = (forms.numbers[..., :-1] * point.numbers).sum(axis=-1) + forms.numbers[..., -1] * point.denominator
        radii = None if forms.radii is None else forms.radii * point.denominator
        return WholeForms(values[..., None], radii, forms.denominator * point.denominator)

    def _in_theta(self, cell: KnotCell) -> WholeForms:
        if cell.index not in self._known:
            self._known[cell.index] = self._add_up(cell)
        return self._known[cell.index]

    def _add_up(self, cell: KnotCell) -> WholeForms:
        perturbed, triangles = self.perturbed, self.perturbed.triangles
        changes = []
        for axis, perturbation in enumerate(perturbed.perturbations):
            if triangles is None or axis not in triangles.axes:
                alone = partial(perturbation.change, low=float(cell.low[axis]), high=float(cell.high[axis]))
                is_stored = isinstance(perturbation, Ramp)
                changes.append(self._stored(axis, alone) if is_stored else self._change((axis,), alone, cell))
        if triangles is not None:
            both = partial(triangles.change, low=cell.low, is_above=cell.is_above)
            changes.append(self._change(triangles.axes, both, cell))
        finer = max(change.finer for change in changes)  # powers of two
        numbers = np.full((*self.numerators.shape, len(perturbed.perturbations) + 1), fmpz(0), dtype=object)
        numbers[..., -1] += self.numerators * finer
        for change in changes:
            for axis, slope in change.slopes.items():
                numbers[..., axis] += slope * (finer // change.finer)
            numbers[..., -1] += change.offset * (finer // change.finer)
        denominator = self.denominator * finer
        error = sum((change.error for change in changes), start=fmpq(0))
        radius = (error * denominator).ceil()
        radii = np.full(self.numerators.shape, radius, dtype=object) if radius else None
        return WholeForms(numbers, radii, denominator)

    def _change(self, axes: Sequence[int], change: ChangeOf, cell: KnotCell) -> _Change:
        """Offset and slopes along axes over the pixels' denominator; `change` computes them for an image."""
        base = change(np.zeros(self.numerators.shape))
        found = [change(piece) for piece, _ in self._pieces]
        doubled = [change(2.0 * piece) for piece, _ in self._pieces]
        parts = []
        for number in range(1 + len(axes)):
            constant = base[number]
            linear = [result[number] - constant for result in found]
            twice = [result[number] - constant for result in doubled]
            is_whole = all(_are_whole(values) for values in (constant, *linear, *twice))
            if not is_whole or not all(np.array_equal(2.0 * a, b) for a, b in zip(linear, twice, strict=True)):
                return self._enclosed(axes, change, cell)
            total = to_array(_wholes(constant), constant.shape) * self.denominator
            for values, (_, weight) in zip(linear, self._pieces, strict=True):
                total = total + to_array(_wholes(values), values.shape) * weight
            parts.append(total)
        return _Change(parts[0], dict(zip(axes, parts[1:], strict=True)), fmpq(0), fmpz(1))

    def _stored(self, axis: int, change: ChangeOf) -> _Change:
        """The change of a ramp: floats are whole multiples of a power of two."""
        offset, slope = change(self.perturbed.x0)
        exact = from_floats(slope)
        nothing = to_array([fmpz(0)] * offset.size, offset.shape)
        return _Change(nothing, {axis: exact.numbers * self.denominator}, fmpq(0), exact.denominator)

    def _enclosed(self, axes: Sequence[int], change: ChangeOf, cell: KnotCell) -> _Change:
        denominator = self.denominator * FINER
        reaches = [to_rational(float(max(abs(cell.low[axis]), abs(cell.high[axis])))) for axis in axes]
        parts, largest = [], fmpq(1)
        for values, factor in zip(change(self.perturbed.x0), (fmpq(1), *reaches), strict=True):
            floors = [(to_rational(value) * denominator).floor() for value in values.ravel().tolist()]
            parts.append(to_array(floors, values.shape))
            largest += to_rational(float(np.abs(values).max(initial=0.0))) * factor
        error = largest * ASSUMED + (1 + sum(reaches, start=fmpq(0))) / denominator
        return _Change(parts[0], dict(zip(axes, parts[1:], strict=True)), error, FINER)

    def _split(self) -> list[tuple[np.ndarray, fmpz]]:
        """The numerators as a sum of images with at most 40 bits, each with its weight."""
        listed = [int(number) for number in self.numerators.ravel()]
        longest = max((number.bit_length() for number in listed), default=0)
        mask = (1 << PIECE) - 1
        return [
            (
                np.array([float((number >> place) & mask) for number in listed]).reshape(self.numerators.shape),
                fmpz(1) << place,
            )
            for place in range(0, max(longest, 1), PIECE)
        ]


def _are_whole(values: np.ndarray) -> bool:
    return bool((np.rint(values) == values).all() and (np.abs(values) < LARGEST_WHOLE).all())


def _wholes(values: np.ndarray) -> list[int]:
    return values.astype(np.int64).ravel().tolist()
