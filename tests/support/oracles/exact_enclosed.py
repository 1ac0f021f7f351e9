"""Losses of moved maps, and of maps that contain the image, in exact rationals; shares no code with the package.

The network and its copies are those of `exact_factored`. Expected maps and masks move along one axis, or along two on
triangles. Roots are compared in integers: no rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, isqrt

import numpy as np
from flint import fmpq

from steadygaze.perturbation import Translate
from support.oracles.exact_attention import shifted
from support.oracles.exact_factored import ExactFactored
from support.oracles.exact_numbers import as_rationals, rational

BITS = 400
"""Roots are computed to so many bits behind the point."""


@dataclass(frozen=True, eq=False)
class ExactEnclosed(ExactFactored):
    """Whether attention is kept: `object` (a mask and τ), `pointing` (a mask), `distance` (L2 and δ) or `alike` (γ).

    has_factor: whether maps contain the image; filtered: a function of maps, before they are multiplied or moved.
    """

    measure: str = "distance"
    has_factor: bool = True

    def moved(self, maps: np.ndarray, theta: Sequence[Fraction]) -> np.ndarray:
        """Maps (…, H, W) at a theta, moved like the image."""
        steps = [
            (int(np.sign(one.dx)), int(np.sign(one.dy)), value)
            for one, value in zip(self.perturbed.perturbations, theta, strict=True)
            if isinstance(one, Translate)
        ]
        if not steps:
            return maps
        wholes = [floor(Fraction(int(value.p), int(value.q))) for *_, value in steps]
        shares = [value - whole for (*_, value), whole in zip(steps, wholes, strict=True)]
        # From the low corner to the high one, along the axis with the larger share first.
        order = sorted(range(len(steps)), key=lambda number: -shares[number])
        corners = [tuple(wholes)]
        for number in order:
            corners.append(tuple(w + (k == number) for k, w in enumerate(corners[-1])))
        ends = [rational(1), *(shares[number] for number in order), rational(0)]
        total = maps * 0
        for corner, first, last in zip(corners, ends, ends[1:], strict=False):
            dx = sum(step * count for (step, _, _), count in zip(steps, corner, strict=True))
            dy = sum(step * count for (_, step, _), count in zip(steps, corner, strict=True))
            total = total + (first - last) * shifted(maps, dx, dy)
        return total

    def image(self, theta: Sequence[Fraction]) -> np.ndarray:
        """The image at a theta: moved, then changed by light, then clipped."""
        image = self.moved(as_rationals(self.perturbed.x0), theta)
        for one, value in zip(self.perturbed.perturbations, theta, strict=True):
            if not isinstance(one, Translate):
                image = image + value * as_rationals(one.change(self.perturbed.x0, *one.range or (0.0, 1.0))[1])
        return np.minimum(np.maximum(image, rational(0)), rational(1))

    def is_kept_at(self, theta: Sequence[Fraction]) -> bool:
        """Whether attention is kept at a theta."""
        theta, threshold = [rational(value) for value in theta], rational(self.threshold)
        image = self.image(theta)
        factor = image - rational(self.baseline) if self.has_factor else image * 0 + 1
        actual = self.gradient(image) * factor
        if self.measure == "object":
            mass = np.abs(actual).sum(axis=(0, 1))
            on = (mass * self.moved(as_rationals(self.mask), theta)).sum()
            return bool(mass.sum() > 0 and on >= threshold * mass.sum())
        if self.measure == "pointing":
            sizes, is_on = np.abs(actual).max(axis=(0, 1)), 2 * self.moved(as_rationals(self.mask), theta) >= 1
            return bool(sizes.max() > 0 and sizes[is_on.astype(bool)].max() == sizes.max())
        expected = self.moved(self.original_gradient, theta) * factor
        if self.measure == "distance":
            squares = [(own * own).sum() for own in actual - expected]
            return sum(_root(square) for square in squares) <= threshold * 2**BITS
        across, ours, theirs = ((one * other).sum() for one, other in
                                ((actual, expected), (actual, actual), (expected, expected)))  # fmt: skip
        return bool(
            ours > 0 and theirs > 0 and across >= 0 and across * across >= threshold * threshold * ours * theirs
        )


def _root(square: fmpq) -> int:
    """The root of a rational times 2^BITS, rounded down."""
    return isqrt(int(square.p) * 4**BITS // int(square.q))
