"""Encloses functions of single parameters on boxes by affine forms with proved remainders, and multiplies such forms.

A box is theta_i = middle_i + half_i · e_i with e in [−1, 1]^d. A form is centre + Σ_i coefficient_i · e_i + r with
|r| ≤ radius. Every radius includes the rounding of its form.
"""

from dataclasses import dataclass

import numpy as np

from ..tolerances import LEAST, UNIT, gamma
from .base import FloatArray

TRIGONOMETRIC = 32.0 * UNIT
"""Error bound for a sine or cosine of an angle up to ±180°: the angle in radians is at most 3.2 and rounded twice, and
common libraries compute the value to within 4 units in the last place."""


@dataclass(frozen=True, eq=False)
class Box:
    """Boxes of thetas: middle and half width (B, d), rounded outward to cover the boxes that they represent."""

    middle: FloatArray
    half: FloatArray

    @classmethod
    def of(cls, low: FloatArray, high: FloatArray, start: FloatArray, widths: FloatArray) -> "Box":
        """The boxes from low to high (B, d) in t, where theta is start + t · widths."""
        middle = 0.5 * (low + high)
        reach = np.maximum(high - middle, middle - low) * (1.0 + 4.0 * UNIT)
        # The conversion to theta rounds a few times, relative to its terms.
        rounding = 8.0 * UNIT * (np.abs(start) + (np.abs(middle) + reach) * widths)
        return cls(start + middle * widths, reach * widths * (1.0 + 4.0 * UNIT) + rounding)


@dataclass(frozen=True, eq=False)
class Form:
    """A number on each of B boxes: coefficients (B, 1 + d, ...), the centre first, and radius (B, ...)."""

    coefficients: FloatArray
    radius: FloatArray

    @classmethod
    def constant(cls, value: float, box: Box) -> "Form":
        """A number that is the same on all boxes."""
        boxes, d = box.middle.shape
        coefficients = np.zeros((boxes, 1 + d))
        coefficients[:, 0] = value
        return cls(coefficients, np.zeros(boxes))

    @classmethod
    def along(cls, axis: int, box: Box, centre: FloatArray, slope: FloatArray, radius: FloatArray) -> "Form":
        """A function of one parameter: centre, coefficient and radius, (B,) each."""
        boxes, d = box.middle.shape
        coefficients = np.zeros((boxes, 1 + d))
        coefficients[:, 0], coefficients[:, 1 + axis] = centre, slope
        return cls(coefficients, radius)

    @property
    def size(self) -> FloatArray:
        """A bound (B, ...) of the number's size, in rounded arithmetic."""
        return np.abs(self.coefficients).sum(axis=1) + self.radius

    def __add__(self, other: "Form") -> "Form":
        total = self.coefficients + other.coefficients
        rounding = gamma(2) * (self.size + other.size)
        return Form(total, (self.radius + other.radius + rounding) * (1.0 + 4.0 * UNIT))

    def times(self, other: "Form") -> "Form":
        """The product of two forms of the same shape; e_i² lies in [0, 1], and e_i · e_j in [−1, 1]."""
        (a, b), (c, d) = ((one.coefficients[:, 0], one.coefficients[:, 1:]) for one in (self, other))
        product = np.empty(np.broadcast_shapes(self.coefficients.shape, other.coefficients.shape))
        square = (b * d).sum(axis=1)
        product[:, 0] = a * c + 0.5 * square
        product[:, 1:] = a[:, None] * d + c[:, None] * b
        radius = 0.5 * np.abs(b * d).sum(axis=1)
        count = b.shape[1]
        for i in range(count):
            for j in range(i + 1, count):
                radius = radius + np.abs(b[:, i] * d[:, j] + b[:, j] * d[:, i])
        radius = radius + self.radius * other.size + other.radius * self.size
        rounding = gamma(8 + 4 * count) * self.size * other.size
        return Form(product, (radius + rounding) * (1.0 + gamma(8 + count)))


def parameter(axis: int, box: Box) -> Form:
    """The parameter itself."""
    return Form.along(axis, box, box.middle[:, axis], box.half[:, axis], np.zeros(len(box.middle)))


def cosine(axis: int, box: Box, *, quarter: int = 0) -> Form:
    """The cosine of a parameter in degrees, minus `quarter` quarter turns: 1 gives the sine.

    With h the half width, cos(m + h e) is cos m cos(h e) − sin m sin(h e). cos(h e) lies in [cos h, 1]; sin(h e)
    differs from e sin h by at most an eighth of its largest second derivative, h² sin h.
    """
    middle, half = np.deg2rad(box.middle[:, axis]), np.deg2rad(box.half[:, axis]) * (1.0 + 8.0 * UNIT)
    half = np.minimum(half, np.pi)
    first, second = (np.cos(middle), np.sin(middle)) if not quarter else (np.sin(middle), -np.cos(middle))
    drop = np.sin(0.5 * half) ** 2  # half of 1 − cos h
    bend = half * half * np.minimum(half, 1.0) / 8.0
    radius = np.abs(first) * drop + np.abs(second) * bend + 4.0 * TRIGONOMETRIC
    return Form.along(axis, box, first * (1.0 - drop), -second * np.sin(half), radius)


def reciprocal(axis: int, box: Box) -> Form:
    """1 / (1 + theta): below its chord by at most an eighth of its largest second derivative times the width squared.

    The radius is infinite where 1 + theta may vanish.
    """
    middle = 1.0 + box.middle[:, axis]
    half = box.half[:, axis] + 4.0 * UNIT * (np.abs(middle) + box.half[:, axis])
    low, high = middle - half, middle + half
    is_known = low > LEAST
    low, high = np.where(is_known, low, 1.0), np.where(is_known, high, 2.0)
    drop = 0.5 * half * half / low**3
    centre, slope = 0.5 * (1.0 / low + 1.0 / high) - drop, 0.5 * (1.0 / high - 1.0 / low)
    radius = np.where(is_known, drop * (1.0 + 16.0 * UNIT) + 32.0 * UNIT / low * (1.0 + 1.0 / low), np.inf)
    return Form.along(axis, box, centre, slope, radius)


def fold(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Enclose max(s, 0) for s in [low, high] (any shape) by slope · s + offset, up to a rest.

    >>> [part.tolist() for part in fold(np.array([-1.0, 0.0, -1.0]), np.array([3.0, 2.0, 0.0]))]
    [[0.75, 1.0, 0.0], [0.375, 0.0, 0.0], [0.37500000000000033, 0.0, 0.0]]
    """
    is_bent = (low < 0.0) & (high > 0.0)
    slope = np.where(is_bent, high / np.where(is_bent, high - low, 1.0), low >= 0.0)
    # The chord lies above the function by at most −slope · low, reached at zero.
    half = np.where(is_bent, -0.5 * slope * low, 0.0)
    return slope, half, half * (1.0 + 8.0 * UNIT)
