"""Exact attention maps and their distances, as functions of the parameter that moves them."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isqrt

BITS = 160
"""Square roots are enclosed to 2^-160 of their size."""
DEPTH = 48
"""A border is enclosed to 2^-48 of the range that it lies in."""

Pattern = tuple[tuple[bool, ...], ...]
Expected = list[tuple[list[Fraction], list[Fraction]]]
Slabs = list[tuple[str, Fraction]]


class Maps:
    """Gradients of a network's logits for a pattern. `layers` hold rows of (index, whole number), bias, exponent."""

    def __init__(self, layers: list, dist: str, inputs: int) -> None:
        self.layers = layers
        self.dist = dist
        self.inputs = inputs
        self.known: dict[Pattern, list[list[Fraction]]] = {}

    def of(self, pattern: Pattern) -> list[list[Fraction]]:
        """One row of fractions per class: ∂f_j/∂x_i."""
        if pattern not in self.known:
            self.known[pattern] = self._gradient(pattern)
        return self.known[pattern]

    def _gradient(self, pattern: Pattern) -> list[list[Fraction]]:
        rows, _, exponent = self.layers[-1]
        found = [dict(row) for row in rows]
        for (inner, _, shift), bits in zip(self.layers[-2::-1], pattern[::-1], strict=True):
            exponent += shift
            outer, found = found, []
            for row in outer:
                total: dict[int, int] = {}
                for neuron, weight in row.items():
                    if bits[neuron]:
                        for i, value in inner[neuron]:
                            total[i] = total.get(i, 0) + weight * value
                found.append(total)
        return [[Fraction(row.get(i, 0), 2**exponent) for i in range(self.inputs)] for row in found]

    def distance(self, actual: list[list[Fraction]], expected: Expected) -> "Distance":
        """The distance of actual maps from expected ones, as a function of the moving parameter."""
        parts = []
        for row, (constant, slope) in zip(actual, expected, strict=True):
            parts.append([(a - c, -s) for a, c, s in zip(row, constant, slope, strict=True)])
        return Distance(parts, self.dist)


@dataclass(frozen=True)
class Distance:
    """Σ over classes of the norm of u + t·v; parts[class] lists (u, v) per pixel. A convex function of t."""

    parts: list[list[tuple[Fraction, Fraction]]]
    dist: str

    @cached_property
    def is_constant(self) -> bool:
        return all(v == 0 for part in self.parts for _, v in part)

    @cached_property
    def squares(self) -> list[tuple[Fraction, Fraction, Fraction]]:
        """The coefficients of ‖u + t·v‖² = a + b·t + c·t² for each class."""
        return [
            (
                sum((u * u for u, _ in part if u), Fraction(0)),
                sum((2 * u * v for u, v in part if u and v), Fraction(0)),
                sum((v * v for _, v in part if v), Fraction(0)),
            )
            for part in self.parts
        ]

    def bounds(self, t: Fraction) -> tuple[Fraction, Fraction]:
        """The distance at t, enclosed; exact for L1."""
        if self.dist == "l1":
            size = sum((abs(u + t * v) for part in self.parts for u, v in part if u or v), Fraction(0))
            return size, size
        low = high = Fraction(0)
        for a, b, c in self.squares:
            below, above = root_bounds(a + t * (b + t * c))
            low, high = low + below, high + above
        return low, high

    def at_most(self, t: Fraction, limit: Fraction) -> bool | None:
        """Whether the distance at t is at most a limit; None if 160 bits do not suffice."""
        low, high = self.bounds(t)
        return True if high <= limit else (False if low > limit else None)


def root_bounds(square: Fraction) -> tuple[Fraction, Fraction]:
    """The square root of a fraction, enclosed; exact for squares of fractions.

    >>> root_bounds(Fraction(9, 4))
    (Fraction(3, 2), Fraction(3, 2))
    """
    if square == 0:
        return Fraction(0), Fraction(0)
    # √(n/d) = √(n·d)/d, with enough bits below the point for n·d of any size.
    product = square.numerator * square.denominator
    bits = max(0, BITS - product.bit_length() // 2)
    root = isqrt(product << (2 * bits))
    scale = square.denominator << bits
    above = root if root * root == product << (2 * bits) else root + 1
    return Fraction(root, scale), Fraction(above, scale)


def slabs(distance: Distance, start: Fraction, stop: Fraction, limit: Fraction) -> Slabs:
    """The parts of a range by label, for a limit on the distance: pairs (name, end), ascending, from `start` to `stop`.

    The name is AR where the distance is at most the limit, IR where it is larger, and "" within 2^-48 of a border.
    """
    found: Slabs = []

    def visit(low: Fraction, high: Fraction, depth: int) -> None:
        name = _judged(distance, low, high, limit)
        if name is None and depth < DEPTH:
            middle = (low + high) / 2
            visit(low, middle, depth + 1)
            visit(middle, high, depth + 1)
        elif found and found[-1][0] == (name or ""):
            found[-1] = (name or "", high)
        else:
            found.append((name or "", high))

    visit(start, stop, 0)
    return found


def _judged(distance: Distance, low: Fraction, high: Fraction, limit: Fraction) -> str | None:
    """AR, IR, or None if neither is certain on the whole range."""
    left, middle, right = (distance.bounds(t) for t in (low, (low + high) / 2, high))
    if left[1] <= limit and right[1] <= limit:
        return "AR"  # convex: at most the values at the ends
    # Convex: on either half, at least the extended chord of the other half.
    least = min(middle[0], 2 * middle[0] - left[1], 2 * middle[0] - right[1])
    return "IR" if least > limit else None
