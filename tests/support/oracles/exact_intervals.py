"""Any graph after a perturbation with one parameter, exactly: the intervals between its kinks, in plain fractions.

Every value of the graph is followed as a pair of numbers, at the two ends of an interval on which it is affine. Where a
value bends inside, the interval is halved there and everything is computed again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from math import prod

import numpy as np

from steadygaze.compound import Compound
from steadygaze.exact import LabelOutcome
from steadygaze.network.joins import Winner
from steadygaze.network.operators import Relu
from support.oracles.exact_margin import apply, exact_pixels, exact_values

Ends = tuple[list[Fraction], list[Fraction]]


@dataclass(frozen=True)
class Piece:
    """An interval of t without a kink inside, the pattern there, and the logits at its ends."""

    low: Fraction
    high: Fraction
    pattern: bytes
    logits: Ends

    @property
    def width(self) -> Fraction:
        return self.high - self.low


class _KinkError(Exception):
    """A value bends at this share of the interval."""


def pieces(compound: Compound, low: Fraction, high: Fraction) -> list[Piece]:
    """The intervals of [low, high] in t, in order."""
    ends = sorted({low, high, *(t for t in _pixel_kinks(compound) if low < t < high)})
    return [piece for one, two in pairwise(ends) for piece in _cut(compound, one, two)]


def patterns(found: list[Piece]) -> dict[bytes, Fraction]:
    """The width of every pattern."""
    widths: dict[bytes, Fraction] = {}
    for piece in found:
        widths[piece.pattern] = widths.get(piece.pattern, Fraction(0)) + piece.width
    return widths


def outcome(found: list[Piece], label: int) -> tuple[LabelOutcome, Fraction, Fraction]:
    """The sign of the margin on all pieces, and the widths where the label is kept and lost."""
    kept = lost = Fraction(0)
    at_ends = set()
    for piece in found:
        leads = [
            (piece.logits[0][label] - piece.logits[0][j], piece.logits[1][label] - piece.logits[1][j])
            for j in range(len(piece.logits[0]))
            if j != label
        ]
        places = sorted({Fraction(0), Fraction(1), *(a / (a - b) for a, b in leads if a * b < 0)})
        at_ends |= {_sign(min(a + s * (b - a) for a, b in leads)) for s in places}
        for one, two in pairwise(places):
            middle = _sign(min(a + (one + two) / 2 * (b - a) for a, b in leads))
            kept += (two - one) * piece.width if middle > 0 else 0
            lost += (two - one) * piece.width if middle < 0 else 0
    if kept and lost:
        return LabelOutcome.MIXED, kept, lost
    if at_ends == {1}:
        return LabelOutcome.KEPT, kept, lost
    return (LabelOutcome.LOST if at_ends == {-1} else LabelOutcome.TIED), kept, lost


def pattern_at(compound: Compound, theta: list[Fraction]) -> bytes:
    """The packed pattern at one theta, layer by layer."""
    values, packed = exact_values(compound, theta), b""
    for frame in compound.graph.frames:
        bits: list[bool] = []
        for number in frame.nodes:
            node = compound.graph.nodes[number - 1]
            inputs = values[node.inputs[0]]
            if isinstance(node.operator, Winner):
                for window in node.operator.index.tolist():
                    entries = [inputs[entry] for entry in window if entry >= 0]
                    bits += [place == entries.index(max(entries)) for place in range(len(entries))]
            else:
                bits += [value > 0 for value in inputs]
        bits += [True] * sum(prod(compound.graph.shape_of(number)) for number in frame.carried)
        packed += np.packbits(np.array(bits, dtype=bool)).tobytes()
    return packed


def theta_of(compound: Compound, t: Fraction) -> list[Fraction]:
    """The theta of a compound network with one parameter."""
    low, high = Fraction(compound.domain.low[0]), Fraction(compound.domain.high[0])
    return [low + t * (high - low)]


def _sign(number: Fraction) -> int:
    return (number > 0) - (number < 0)


def _pixel_kinks(compound: Compound) -> Iterator[Fraction]:
    """Where a pixel can meet the clip or a knot, and perhaps more places."""
    low, high = Fraction(compound.domain.low[0]), Fraction(compound.domain.high[0])
    grid = {Fraction(0), Fraction(1)}
    grey = np.rint(compound.perturbed.x0 * 255)
    is_grey = bool((grey / 255 == compound.perturbed.x0).all())
    image = {Fraction(int(v), 255) for v in grey.ravel()}
    if not is_grey:
        image = {Fraction(float(v)) for v in compound.perturbed.x0.ravel()}
    for value in {*grid, *image, *(1 - v for v in image), *map(Fraction, range(-3, 4))}:
        for theta in (value, -value):
            yield (theta - low) / (high - low)


def _cut(compound: Compound, low: Fraction, high: Fraction) -> list[Piece]:
    try:
        logits = _affine(compound, low, high)
    except _KinkError as kink:
        place = low + kink.args[0] * (high - low)
        return [*_cut(compound, low, place), *_cut(compound, place, high)]
    return [Piece(low, high, pattern_at(compound, theta_of(compound, (low + high) / 2)), logits)]


def _affine(compound: Compound, low: Fraction, high: Fraction) -> Ends:
    """The logits at both ends; raises _KinkError if a value bends between them."""
    values = [tuple(exact_pixels(compound, theta_of(compound, t)) for t in (low, high))]
    for node in compound.graph.nodes:
        first, last = ([values[value][end] for value in node.inputs] for end in (0, 1))
        if isinstance(node.operator, Relu):
            _check(list(zip(first[0], last[0], strict=True)))
        elif isinstance(node.operator, Winner):
            for window in node.operator.index.tolist():
                entries = [(first[0][entry], last[0][entry]) for entry in window if entry >= 0]
                _check([(a - c, b - d) for (a, b), (c, d) in combinations(entries, 2)])
        shapes = [compound.graph.shape_of(value) for value in node.inputs]
        values.append((apply(node.operator, first, shapes), apply(node.operator, last, shapes)))
    return values[-1]


def _check(pairs: list[tuple[Fraction, Fraction]]) -> None:
    for a, b in pairs:
        if a * b < 0:
            raise _KinkError(a / (a - b))
