"""Curves ai(τ) = Σ_j ‖u_j − τ·v_j‖ in exact numbers, and the same curves as the package stores them.

u and v hold dyadic rationals, so the stored sums are exact and every error comes from evaluation. Square roots have 60
decimal digits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import fmpq

from steadygaze.attention.inconsistency import Inconsistency
from steadygaze.attention.map_errors import RecomputedCurves
from support.oracles.exact_numbers import rational, to_decimal

Vector = tuple[Fraction, ...]


class GivenErrors:
    """Stands in for `MapErrors` where the maps are off by at most `coarse`, or by `own` once a curve is settled."""

    def __init__(self, curves: Inconsistency, coarse: float = 0.0, own: float | None = None) -> None:
        self.curves, self.coarse, self.own = curves, coarse, coarse if own is None else own
        self.finest = 1e-9

    def settle(self, chosen: np.ndarray, spans: object) -> RecomputedCurves:
        regions = np.flatnonzero(np.isin(self.curves.curve, chosen))
        slack = np.full(len(self.curves.curve_cell), self.own)
        return RecomputedCurves(regions, replace(self.curves, curve=self.curves.curve[regions]), slack)


@dataclass(frozen=True)
class Curve:
    """One pair (u, v) per class; `dist` is l1 or l2."""

    pairs: tuple[tuple[Vector, Vector], ...]
    dist: str

    def value(self, tau: Fraction | float | fmpq) -> Decimal:
        """ai(τ), to 60 digits."""
        tau = rational(tau)
        with localcontext() as context:
            context.prec = 60
            if self.dist == "l1":
                return sum((to_decimal(sum(abs(a - tau * b) for a, b in pair)) for pair in self._terms), Decimal(0))
            squares = (alpha - 2 * tau * beta + tau * tau * gamma for alpha, beta, gamma in self._squares)
            return sum((to_decimal(square).sqrt() for square in squares), Decimal(0))

    @cached_property
    def _terms(self) -> list[list[tuple[fmpq, fmpq]]]:
        """The entries of u and v side by side."""
        return [[(rational(a), rational(b)) for a, b in zip(u, v, strict=True)] for u, v in self.pairs]

    @cached_property
    def _squares(self) -> list[list[fmpq]]:
        """u·u, u·v and v·v: ‖u − τ·v‖² is a polynomial in τ."""
        return [[rational(number) for number in products(u, v)] for u, v in self.pairs]

    def lowest(self, low: float, high: float) -> tuple[Fraction, Decimal]:
        """Where the curve is lowest on [low, high] (to 36 digits, exactly for l1), and its value."""
        left, right = Fraction(low), Fraction(high)
        if self.dist == "l1":
            kinks = [a / b for u, v in self.pairs for a, b in zip(u, v, strict=True) if b]
            places = [left, right, *(kink for kink in kinks if left < kink < right)]
            best = min(places, key=self.value)
            return best, self.value(best)
        kinks = [Fraction(low), Fraction(high)]
        for u, v in self.pairs:
            meets = {a / b for a, b in zip(u, v, strict=True) if b}
            if len(meets) == 1 and left < min(meets) < right:
                kinks.append(min(meets))
        with localcontext() as context:
            context.prec = 60
            forms = [tuple(map(to_decimal, products(u, v))) for u, v in self.pairs]
            below, above = to_decimal(left), to_decimal(right)
            for _ in range(130):
                middle = (below + above) / 2
                if _rise(forms, middle) < 0:
                    below = middle
                else:
                    above = middle
            kinks.append(min(max(Fraction(middle), left), right))
        best = min(kinks, key=self.value)
        return best, self.value(best)

    def slab(self, low: Fraction, high: Fraction, delta: Fraction) -> tuple[Fraction, Fraction] | None:
        """Where ai ≤ δ on [low, high], its ends to 30 digits; None where nowhere."""
        limit = to_decimal(delta)
        bottom, least = self.lowest(low, high)
        if least > limit:
            return None
        ends = []
        for end in (rational(low), rational(high)):
            inside, outside = rational(bottom), end
            if self.value(end) <= limit:
                inside = end
            else:
                for _ in range(100):
                    middle = (inside + outside) / 2
                    inside, outside = (middle, outside) if self.value(middle) <= limit else (inside, middle)
            ends.append(inside)
        first, last = (Fraction(int(end.numerator), int(end.denominator)) for end in ends)
        return first, last


def _rise(forms: list[tuple[Decimal, ...]], tau: Decimal) -> Decimal:
    """The derivative of Σ √(α − 2 β τ + γ τ²)."""
    squares = [(alpha - 2 * beta * tau + gamma * tau * tau, gamma * tau - beta) for alpha, beta, gamma in forms]
    return sum((rise / square.sqrt() for square, rise in squares if square > 0), Decimal(0))


def products(u: Vector, v: Vector) -> list[Fraction]:
    """u·u, u·v and v·v."""
    return [sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0)) for x, y in ((u, u), (u, v), (v, v))]


def stored(curves: Sequence[Curve], ranges: Sequence[tuple[float, float]]) -> tuple[Inconsistency, np.ndarray]:
    """The curves of one kind as the package stores them, a region each, and their ranges of τ (R, 2)."""
    count, taus = len(curves), np.array(ranges, dtype=float)
    numbers = np.arange(count)
    none = np.zeros(0)
    empty = (none, np.zeros((0, len(curves[0].pairs), 3)), np.zeros((0, 3)), np.zeros(1, dtype=np.int64), none, none)
    constant, quadratic, start, breaks, places, jumps = empty
    if curves[0].dist == "l2":
        quadratic = np.array([[_coefficients(u, v) for u, v in curve.pairs] for curve in curves])
    else:
        broken = [_broken(curve, low) for curve, (low, _) in zip(curves, ranges, strict=True)]
        start = np.array([begin for begin, _, _ in broken])
        breaks = np.concatenate([[0], np.cumsum([len(at) for _, at, _ in broken])])
        places, jumps = (np.concatenate([part[i] for part in broken]).astype(float) for i in (1, 2))
    cells = np.zeros(count, dtype=np.int64)
    return Inconsistency(numbers, cells, numbers, constant, quadratic, start, breaks, places, jumps), taus


def _coefficients(u: Vector, v: Vector) -> tuple[float, float, float]:
    exact = products(u, v)
    assert all(Fraction(float(number)) == number for number in exact), "not exact as floats"
    return tuple(map(float, exact))  # type: ignore[return-value]


def _broken(curve: Curve, low: float) -> tuple[tuple[float, float, float], list[float], list[float]]:
    begin, value, slope = Fraction(low), Fraction(0), Fraction(0)
    found = []
    for u, v in curve.pairs:
        for a, b in zip(u, v, strict=True):
            here = a - begin * b
            value += abs(here)
            slope += abs(b) if here == 0 else (-b if here > 0 else b)
            if b and a / b > begin:
                found.append((float(a / b), 2 * float(abs(b))))
    found.sort()
    return (float(value), float(slope), low), [at for at, _ in found], [jump for _, jump in found]
