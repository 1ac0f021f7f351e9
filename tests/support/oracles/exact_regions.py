"""From a tiny network or compound network to its exact map: regions with volume, their neighbours, margins and labels.

Everything is in t, the domain scaled to the unit cube of its own dimension (1 to 4), and exact. The inputs
are definitions: the knot cells' affine images and the weights of the chain. A pattern lists per pixel value > 0,
then 1 − ReLU(value) > 0, then the classifier's neurons; a plain network has the last part alone. A neuron that is
identically zero on a region counts as inactive.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np

from steadygaze.compound import Compound
from steadygaze.perturbation import KnotCell
from support.oracles.exact_numbers import ExactChain, on_grid
from support.oracles.exact_polytopes import Form, Point, Polytope, box, homogeneous, integer, reduced

Pattern = tuple[int, ...]
Key = tuple[int, ...]  # the knot cell, then the pattern
Bounds = tuple[Fraction, Fraction]


@dataclass(frozen=True, eq=False)
class ExactLayer:
    """W (n_out, n_in) and b (n_out,) as integers over one denominator."""

    weight: np.ndarray
    bias: np.ndarray
    denominator: int

    @classmethod
    def of(cls, weight: Sequence[Sequence[Fraction]], bias: Sequence[Fraction]) -> "ExactLayer":
        """Rows and bias of rationals."""
        rows = [[*map(Fraction, row), Fraction(constant)] for row, constant in zip(weight, bias, strict=True)]
        scale = lcm(*(number.denominator for row in rows for number in row))
        whole = np.array([[int(number * scale) for number in row] for row in rows], dtype=object)
        return cls(whole[:, :-1], whole[:, -1], scale)

    def apply(self, forms: np.ndarray, denominator: int) -> tuple[np.ndarray, int]:
        """Forms (n_in, d+1) over a denominator → forms (n_out, d+1) over another."""
        result = self.weight @ forms
        result[:, -1] += self.bias * denominator
        return result, self.denominator * denominator


@dataclass(frozen=True, eq=False)
class ExactRegion:
    """A region with volume. `logits` are forms in t (K rows of d slopes and the constant)."""

    key: Key
    polytope: Polytope
    logits: tuple[tuple[Fraction, ...], ...]

    @property
    def cell(self) -> int:
        """The knot cell."""
        return self.key[0]

    def margin(self, label: int) -> Bounds:
        """The least and the largest value of f_label − max of the others over the closed region."""
        leads = self.leads(label)
        values = [piece.range(lead) for piece, lead in least_pieces(self.polytope, leads)]
        scale = self._scale
        return min(low for low, _ in values) / scale, max(high for _, high in values) / scale

    def leads(self, label: int) -> list[Form]:
        """Integer forms of f_label − f_j for all other j, all times the same positive number."""
        ours, scale = self.logits[label], self._scale
        return [
            tuple(int((a - b) * scale) for a, b in zip(ours, theirs, strict=True))
            for j, theirs in enumerate(self.logits)
            if j != label
        ]

    @cached_property
    def _scale(self) -> int:
        return lcm(*(number.denominator for form in self.logits for number in form))


@dataclass(frozen=True, eq=False)
class ExactMap:
    """All regions with volume of a domain, the unit cube of t."""

    regions: tuple[ExactRegion, ...]

    @cached_property
    def by_key(self) -> dict[Key, int]:
        """The number of every region."""
        keys = {region.key: number for number, region in enumerate(self.regions)}
        assert len(keys) == len(self.regions), "two regions share a pattern"
        return keys

    @cached_property
    def neighbours(self) -> tuple[tuple[int | None, ...], ...]:
        """Per region and facet: the region on the other side, None at the border of the domain.

        A network's regions meet face to face; that is checked: every facet inside the domain has exactly two owners.
        """
        owners: dict[frozenset[Point], list[tuple[int, int]]] = {}
        for number, region in enumerate(self.regions):
            for facet in range(len(region.polytope.facets)):
                owners.setdefault(region.polytope.on_facet(facet), []).append((number, facet))
        found: list[list[int | None]] = [[None] * len(region.polytope.facets) for region in self.regions]
        for sides in owners.values():
            if len(sides) == 1:
                number, facet = sides[0]
                assert is_border(self.regions[number].polytope.facets[facet]), "a facet inside has one owner"
                continue
            (first, one), (second, other) = sides
            found[first][one], found[second][other] = second, first
        return tuple(map(tuple, found))

    def at(self, point: Sequence[Fraction]) -> list[int]:
        """The regions whose closure contains a point of t."""
        place = homogeneous(point)
        return [number for number, region in enumerate(self.regions) if region.polytope.contains(place)]


def is_border(form: Form) -> bool:
    """Whether a form's plane bounds the unit cube."""
    slopes = [number for number in form[:-1] if number]
    return len(slopes) == 1 and ((slopes[0] > 0 and form[-1] == 0) or (slopes[0] < 0 and form[-1] == -slopes[0]))


def least_pieces(polytope: Polytope, forms: Sequence[Form]) -> list[tuple[Polytope, Form]]:
    """The parts of a polytope where each form is the least, the first of equal ones; only parts with volume."""
    found = []
    for own, form in enumerate(forms):
        part: Polytope | None = polytope
        for other, rival in enumerate(forms):
            if part is None or other == own:
                continue
            difference = tuple(b - a for a, b in zip(form, rival, strict=True))
            if any(difference):
                part = part.cut(reduced(difference))[1]
            elif other < own:
                part = None
        if part is not None:
            found.append((part, form))
    return found


def exact_map(layers: Sequence[ExactLayer], dimension: int) -> ExactMap:
    """The map of a network from t to logits, a ReLU after all layers but the last."""
    return ExactMap(tuple(split(layers, box([0] * dimension, [1] * dimension), 0)))


def exact_compound_map(compound: Compound, *, denominator: int = 2**20) -> ExactMap:
    """The map of a compound network; pixels are multiples of 1/denominator, also where their floats are not."""
    low, high = _exact(compound.domain.low), _exact(compound.domain.high)
    widths = [b - a for a, b in zip(low, high, strict=True)]
    chain = [
        (weights.fractions().tolist(), bias.fractions().tolist())
        for weights, bias in ExactChain.of(compound.chain).layers
    ]
    rows, constants = chain[0]
    entry = ExactLayer.of(
        [[-number for number in row] for row in rows],
        [constant + sum(row) for row, constant in zip(rows, constants, strict=True)],
    )
    rest = [ExactLayer.of(*layer) for layer in chain[1:]]
    regions: list[ExactRegion] = []
    for number, cell in enumerate(compound.cells):
        slope = [[on_grid(v, denominator) for v in row] for row in cell.slope.reshape(len(low), -1)]
        offset = [on_grid(v, denominator) for v in (compound.perturbed.x0 + cell.offset).ravel()]
        pixels = range(len(offset))
        lower = ExactLayer.of(
            [[slope[axis][i] * widths[axis] for axis in range(len(low))] for i in pixels],
            [offset[i] + sum(slope[axis][i] * low[axis] for axis in range(len(low))) for i in pixels],
        )
        upper = ExactLayer.of([[-int(i == k) for k in pixels] for i in pixels], [1] * len(offset))  # type: ignore[arg-type]
        regions += split([lower, upper, entry, *rest], cell_polytope(compound, cell), number)
    return ExactMap(tuple(regions))


def cell_polytope(compound: Compound, cell: KnotCell) -> Polytope:
    """A knot cell in t: a box, or the half of one where its side is not negative."""
    low, high = _exact(compound.domain.low), _exact(compound.domain.high)
    widths = [b - a for a, b in zip(low, high, strict=True)]
    ends = [
        [(a - start) / width for a, start, width in zip(_exact(end), low, widths, strict=True)]
        for end in (cell.low, cell.high)
    ]
    whole = box(*ends)
    if cell.side is None:
        return whole
    *slopes, constant = _exact(cell.side)
    form = [slope * width for slope, width in zip(slopes, widths, strict=True)]
    half = whole.cut(integer([*form, constant + sum(a * b for a, b in zip(slopes, low, strict=True))]))[1]
    assert half is not None
    return half


def exact_layers(layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[ExactLayer]:
    """The layers' floats, exactly."""
    return [ExactLayer.of([_exact(row) for row in weight], _exact(bias)) for weight, bias in layers]


def split(layers: Sequence[ExactLayer], domain: Polytope, cell: int) -> list[ExactRegion]:
    """All regions with volume of a network from t to logits inside a polytope."""
    d = domain.dimension
    start = np.array([[int(i == k) for k in range(d + 1)] for i in range(d)], dtype=object)
    pieces: list[tuple[Polytope, Pattern, np.ndarray, int]] = [(domain, (), start, 1)]
    for layer in layers[:-1]:
        deeper = []
        for polytope, pattern, values, denominator in pieces:
            forms, scale = layer.apply(values, denominator)
            for part, bits in _split_by(polytope, [tuple(form) for form in forms.tolist()]):
                active = np.array(bits, dtype=object)
                deeper.append((part, pattern + bits, forms * active[:, None], scale))
        pieces = deeper
    found = []
    for polytope, pattern, values, denominator in pieces:
        forms, scale = layers[-1].apply(values, denominator)
        logits = tuple(tuple(Fraction(number, scale) for number in form) for form in forms.tolist())
        found.append(ExactRegion((cell, *pattern), polytope, logits))
    return found


def _split_by(polytope: Polytope, forms: Sequence[Form]) -> list[tuple[Polytope, Pattern]]:
    parts: list[tuple[Polytope, Pattern]] = [(polytope, ())]
    for form in forms:
        following = []
        for part, bits in parts:
            negative, positive = part.cut(form)
            following += [(side, (*bits, bit)) for bit, side in enumerate((negative, positive)) if side is not None]
        parts = following
    return parts


def _exact(values: Sequence[float] | np.ndarray) -> list[Fraction]:
    return [Fraction(float(value)) for value in values]


def floats(form: Form) -> np.ndarray:
    """A half-space with a unit normal, in floats."""
    values = np.array([float(number) for number in form])
    return values / np.linalg.norm(values[:-1])


def scaled(form: Sequence[Fraction]) -> Form:
    """A form of rationals as integers, up to a positive factor."""
    return integer(form)
