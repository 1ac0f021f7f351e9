"""Polynomials in the coordinates of t: values, expansions about points, and enclosures by affine forms on boxes."""

from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from math import comb, prod
from typing import NamedTuple

import numpy as np

from ..tolerances import LEAST, LEAST_ROOT, gamma, up

ROUNDINGS = 512
"""More than the roundings of an expansion: up to 35 terms, each a few factors and up to 6 times a coefficient."""


class ConvexParts(NamedTuple):
    """N convex parts: corners (V, D), those of part n are starts[n]:starts[n+1]; middles and half widths (N, D)."""

    points: np.ndarray
    starts: np.ndarray
    middle: np.ndarray
    half: np.ndarray

    @classmethod
    def of(cls, points: np.ndarray, starts: np.ndarray) -> "ConvexParts":
        """The parts with given corners."""
        low, high = (
            end.reduceat(points, starts[:-1], axis=0) if len(starts) > 1 else np.zeros((0, points.shape[1]))
            for end in (np.minimum, np.maximum)
        )
        # A little wider: the middle is rounded.
        return cls(points, starts, 0.5 * (low + high), 0.5 * (high - low) * up(4) + 2.0**-52)

    @property
    def owner(self) -> np.ndarray:
        """The part of every corner (V,)."""
        return np.repeat(np.arange(len(self.middle)), np.diff(self.starts))

    def along(self, slope: np.ndarray) -> np.ndarray:
        """slope · (corner − middle) (V, k) at all corners, for slopes (N, k, D) of every part."""
        found, owner = np.zeros((len(self.points), slope.shape[1])), self.owner
        from_middle = self.points - self.middle[owner]
        for axis in range(slope.shape[2]):
            found += from_middle[:, axis : axis + 1] * slope[owner, :, axis]
        return found

    @property
    def middles(self) -> "ConvexParts":
        """The middles of the parts alone."""
        return ConvexParts(self.middle, np.arange(len(self.middle) + 1), self.middle, 0.0 * self.half)

    def narrowed(self, axis: int) -> "ConvexParts":
        """The parts, half as wide along an axis, with the same middles."""
        scale = np.where(np.arange(self.middle.shape[1]) == axis, 0.5, 1.0)
        middle = self.middle[self.owner]
        return self._replace(points=middle + scale * (self.points - middle), half=self.half * scale)

    def ends_of(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest values (N, …) at the corners of every part, from all values (V, …)."""
        if not len(self.middle):
            return values[:0], values[:0]
        return (np.minimum.reduceat(values, self.starts[:-1]), np.maximum.reduceat(values, self.starts[:-1]))


class Squares(NamedTuple):
    """The values at the corners (V, k) of k sums of squares of affine functions on N parts.

    error (N, k): how far values and tangents may be off.
    """

    corners: np.ndarray
    error: np.ndarray


@dataclass(frozen=True, eq=False)
class LocalForms:
    """Functions on N convex parts, k on each: value + slope · (t − middle), up to a remainder between low and high.

    value, low, high (N, k); slope (N, k, D). least and most (N, k) enclose the functions on their parts. size (N, k):
    the sum of all |terms|, which rounding is relative to. squares: for sums of squares of affine functions.
    """

    parts: ConvexParts
    value: np.ndarray
    slope: np.ndarray
    low: np.ndarray
    high: np.ndarray
    least: np.ndarray
    most: np.ndarray
    size: np.ndarray
    squares: Squares | None = None

    def one(self, number: int) -> "LocalForms":
        """One of the functions, as (N, 1)."""
        chosen = slice(number, number + 1)
        found = LocalForms(self.parts, *(getattr(self, name)[:, chosen] for name in COLUMNS))
        squares = None if self.squares is None else Squares(*(part[:, chosen] for part in self.squares))
        return replace(found, squares=squares)

    def some(self, numbers: list[int]) -> "LocalForms":
        """Some of the functions, (N, len(numbers))."""
        return LocalForms(self.parts, *(getattr(self, name)[:, numbers] for name in COLUMNS))

    def largest(self) -> "LocalForms":
        """The largest of all affine functions, (N, 1): it is convex, so corners bound it.

        A function whose `low` is −∞ is only a bound: it may be smaller.
        """
        parts, everyone = self.parts, np.arange(len(self.value))
        place = np.argmax(np.where(np.isfinite(self.low), self.value, -np.inf), axis=1)
        corners = self.value[parts.owner] + parts.along(self.slope)
        upper = (corners + self.high[parts.owner]).max(axis=1)
        above = parts.ends_of(upper - corners[np.arange(len(corners)), place[parts.owner]])[1]
        value, slope, low = (part[everyone, place][:, None] for part in (self.value, self.slope, self.low))
        least, size = (part.max(axis=1, keepdims=True) for part in (self.least, self.size))
        most = parts.ends_of(upper)[1][:, None]
        return LocalForms(parts, value, slope, low, above[:, None], least, most, size).rounded()

    @property
    def vanishes(self) -> np.ndarray:
        """Which functions (N, k) are zero everywhere, for sure."""
        return (self.size == 0.0) & (self.most <= 8.0 * LEAST)

    def widened(self, error: np.ndarray) -> "LocalForms":
        """Functions that differ from these by at most an error (N, k)."""
        return replace(
            self, low=self.low - error, high=self.high + error, least=self.least - error, most=self.most + error
        )

    def rounded(self) -> "LocalForms":
        """The forms with room for the roundings of a few operations."""
        return self.widened(gamma(ROUNDINGS) * self.size + LEAST)

    def sharper(self) -> "LocalForms":
        """The forms, rounded, with enclosures as narrow as the planes around the functions make them."""
        first, last = self.parts.ends_of(self.parts.along(self.slope))
        least = np.fmax(self.least, self.value + first + self.low)
        most = np.fmin(self.most, self.value + last + self.high)
        return replace(self, least=least, most=most).rounded()

    def less(self, number: float) -> "LocalForms":
        """The functions minus a number of at least 0."""
        found = replace(
            self, value=self.value - number, least=self.least - number, most=self.most - number,
            size=self.size + number,
        )  # fmt: skip
        return found.rounded()

    def negated(self) -> "LocalForms":
        """The functions times −1."""
        return LocalForms(
            self.parts, -self.value, -self.slope, -self.high, -self.low, -self.most, -self.least, self.size
        )

    def roots(self) -> "LocalForms":
        """The square roots of functions that are not negative, whatever their enclosures say.

        √q − a q lies between its smaller end and 1 / (4 a), for any a > 0; a belongs to the chord.
        """
        least, most = np.sqrt(np.maximum(self.least, 0.0)), np.sqrt(np.maximum(self.most, 0.0))
        is_zero = ~(most > LEAST_ROOT)
        share = 1.0 / np.where(is_zero, 1.0, least + most)
        ends = np.minimum(least - share * least * least, most - share * most * most)
        share, ends = np.where(is_zero, 0.0, share), np.where(is_zero, 0.0, ends)
        top = np.where(is_zero, most, 0.25 / np.where(is_zero, 1.0, share))
        size = share * self.size + 2.0 * most
        with np.errstate(invalid="ignore"):
            found = LocalForms(
                self.parts, share * self.value, share[..., None] * self.slope,
                share * self.low + ends, share * self.high + top, least, most, size,
            )  # fmt: skip
        return found.rounded() if self.squares is None else self._norms(self.squares, found.rounded())

    def _norms(self, squares: Squares, other: "LocalForms") -> "LocalForms":
        """The roots of sums of squares of affine functions: norms, which are convex; `other` where they may be 0.

        A norm lies above its tangent, and below the plane parallel to it through the highest corner. Let P be the
        exact sum of squares, whose coefficients were rounded, and E the error: |√Q − √P| ≤ E / √P for the true Q, and
        the tangent of √P is computed up to a few times E / √P.
        """
        parts, (corners, error) = self.parts, squares
        is_far = self.least > 256.0 * error + LEAST
        centre = np.sqrt(np.where(is_far, self.value, 1.0))
        slope = self.slope / (2.0 * centre)[..., None]
        off = 8.0 * error / np.sqrt(np.where(is_far, self.least, 1.0))
        roots = np.sqrt(np.maximum(corners, 0.0))
        along = parts.along(slope)
        top = parts.ends_of(roots - centre[parts.owner] - along)[1]
        least = np.maximum(other.least, centre + parts.ends_of(along)[0] - off)
        most = np.minimum(other.most, parts.ends_of(roots)[1] + off)
        size = 4.0 * centre + np.abs(slope).sum(axis=2)
        found = LocalForms(parts, centre, slope, -off, np.maximum(top, 0.0) + off, least, most, size).rounded()
        columns = {
            name: np.where(is_far[..., None] if name == "slope" else is_far, getattr(found, name), getattr(other, name))
            for name in COLUMNS
        }
        return LocalForms(parts, **columns)

    def total(self) -> "LocalForms":
        """The sum of all functions, (N, 1)."""
        return LocalForms(self.parts, *(getattr(self, name).sum(axis=1, keepdims=True) for name in COLUMNS)).sharper()

    def plus(self, other: "LocalForms", factor: float | np.ndarray) -> "LocalForms":
        """These functions plus a multiple of others, by one factor or one for each (N, k)."""
        ends = [(factor * low, factor * high) for low, high in ((other.low, other.high), (other.least, other.most))]
        (low, high), (least, most) = (np.sort(np.stack(pair), axis=0) for pair in ends)
        slope = self.slope + np.broadcast_to(factor, other.value.shape)[..., None] * other.slope
        found = LocalForms(
            self.parts, self.value + factor * other.value, slope,
            self.low + low, self.high + high, self.least + least, self.most + most,
            self.size + np.abs(factor) * other.size,
        )  # fmt: skip
        return found.sharper()

    def times(self, other: "LocalForms") -> "LocalForms":
        """The products of functions that are not negative."""
        (first, last), (start, end) = ((np.maximum(forms.least, 0.0), forms.most) for forms in (self, other))
        ours, theirs = 0.5 * (first + last), 0.5 * (start + end)
        # (f − a) (g − b) + a g + b f − a b, where a and b are the middles of f and g.
        rest = 0.25 * (last - first) * (end - start)
        value = ours * other.value + theirs * self.value - ours * theirs
        slope = ours[..., None] * other.slope + theirs[..., None] * self.slope
        found = LocalForms(
            self.parts, value, slope,
            ours * other.low + theirs * self.low - rest, ours * other.high + theirs * self.high + rest,
            first * start, last * end,
            self.size * (theirs + end) + other.size * (ours + last),
        )  # fmt: skip
        return found.sharper()


COLUMNS = ("value", "slope", "low", "high", "least", "most", "size")
"""The arrays of forms."""


class Monomials:
    """All monomials of D variables up to a degree: first the constant, then the variables, then by degree."""

    def __init__(self, dimension: int, degree: int) -> None:
        found = [powers for powers in product(range(degree + 1), repeat=dimension) if sum(powers) <= degree]
        found.sort(key=lambda powers: (sum(powers), tuple(-power for power in powers)))
        self.dimension, self.degree = dimension, degree
        self.powers = np.array(found, dtype=np.int64).reshape(-1, dimension)
        self.number = {powers: place for place, powers in enumerate(found)}

    def __len__(self) -> int:
        return len(self.powers)

    @cached_property
    def table(self) -> np.ndarray:
        """The number (M, M) of the product of two monomials; −1 if its degree is too high.

        >>> monomials(2, 2).table[:3, :3].tolist()
        [[0, 1, 2], [1, 3, 4], [2, 4, 5]]
        """
        found = np.full((len(self), len(self)), -1, dtype=np.int64)
        for i, first in enumerate(self.powers.tolist()):
            for j, second in enumerate(self.powers.tolist()):
                found[i, j] = self.number.get(tuple(a + b for a, b in zip(first, second, strict=True)), -1)
        return found

    @cached_property
    def _moves(self) -> list[tuple[int, int, int, int]]:
        """Terms of an expansion: to the first monomial, the second adds a factor times the third of the shift."""
        rows = []
        for place, wanted in enumerate(self.powers.tolist()):
            for other, powers in enumerate(self.powers.tolist()):
                rest = tuple(b - a for a, b in zip(wanted, powers, strict=True))
                if min(rest) >= 0:
                    ways = prod(comb(b, a) for a, b in zip(wanted, powers, strict=True))
                    rows.append((place, other, ways, self.number[rest]))
        return rows

    def at(self, points: np.ndarray) -> np.ndarray:
        """The values (N, M) of all monomials at points (N, D).

        >>> monomials(2, 2).at(np.array([[2.0, 3.0]])).tolist()
        [[1.0, 2.0, 3.0, 4.0, 6.0, 9.0]]
        """
        found = np.ones((len(points), len(self)))
        for axis in range(self.dimension):
            column = np.ones((self.degree + 1, len(points)))
            for power in range(1, self.degree + 1):
                column[power] = column[power - 1] * points[:, axis]
            found *= column[self.powers[:, axis]].T
        return found

    def expanded(self, coefficients: np.ndarray, at: np.ndarray) -> np.ndarray:
        """The coefficients (N, k, M) of the same polynomials about points (N, D)."""
        found, values = np.zeros_like(coefficients), self.at(at)
        for place, other, ways, rest in self._moves:
            found[:, :, place] += ways * coefficients[:, :, other] * values[:, None, rest]
        return found

    def values(self, coefficients: np.ndarray, points: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """The values (V, k) of polynomials (N, k, M) at points (V, D), each of one of the N (V,), up to rounding."""
        powers, found = self.at(points), np.zeros((len(points), coefficients.shape[1]))
        for number in range(len(self)):
            found += coefficients[owner, :, number] * powers[:, number : number + 1]
        return found

    def enclose(
        self, coefficients: np.ndarray, error: np.ndarray, origin: np.ndarray, parts: ConvexParts, *, are_squares: bool
    ) -> LocalForms:
        """Polynomials (N, k, M) of t − origin (N, D) with errors (N, k), as forms on parts; |t − origin| is at most 1.

        The terms of degree two and more are bounded on the box around each part. are_squares: some are sums of squares
        of affine functions; only roots of those may be taken.
        """
        d = self.dimension
        own = self.expanded(coefficients, parts.middle - origin)
        value, slope = own[:, :, 0], own[:, :, 1 : 1 + d]
        rest = own[:, :, 1 + d :] * self.at(parts.half)[:, None, 1 + d :]
        is_even = (self.powers[1 + d :] % 2 == 0).all(axis=1)
        low = np.where(is_even, np.minimum(rest, 0.0), -np.abs(rest)).sum(axis=2)
        high = np.where(is_even, np.maximum(rest, 0.0), np.abs(rest)).sum(axis=2)
        least, most = parts.ends_of(parts.along(slope))
        size = np.abs(coefficients).sum(axis=2)
        found = LocalForms(parts, value, slope, low, high, value + least + low, value + most + high, size)
        found = found.widened(error).rounded()
        if not are_squares:
            return found
        corners = self.values(own, parts.points - parts.middle[parts.owner], parts.owner)
        return replace(found, squares=Squares(corners, error + gamma(ROUNDINGS) * size + LEAST))


@cache
def monomials(dimension: int, degree: int) -> Monomials:
    """The monomials of so many variables up to a degree."""
    return Monomials(dimension, degree)
