"""Two translations at once, interpolated on triangles: the image is affine in both parameters on each of them.

Every unit cell of the two offsets is cut by the diagonal along which both parameters grow equally. On either triangle
the image interpolates the three whole-pixel shifts at its corners; vacated pixels are zero. The expected map and a mask
move in the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

import numpy as np

from ..errors import PerturbationError
from ..tolerances import LEAST, UNIT, gamma
from .base import SMALLEST_WIDTH, FloatArray, Perturbation, write_number
from .families.translate import TRIANGLE, Translate
from .scalar_forms import Box, Form, fold


@dataclass(frozen=True, eq=False)
class Triangles:
    """The parameters and the translations along both axes, the horizontal one first."""

    axes: tuple[int, int]
    parts: tuple[Translate, Translate]

    @classmethod
    def of(cls, perturbations: Sequence[Perturbation]) -> "Triangles | None":
        """The two translations with interp=triangle, None if there are fewer; refuses one beside other movements."""
        chosen = [(axis, one) for axis, one in enumerate(perturbations) if isinstance(one, Translate)]
        chosen = [(axis, one) for axis, one in chosen if one.interp == TRIANGLE]
        if not chosen:
            return None
        others = [one.spec for one in perturbations if one.moves and one not in [own for _, own in chosen]]
        reading = [one.spec for one in perturbations if one.reads_image]
        if len(chosen) > 2 or len({bool(one.dx) for _, one in chosen}) < len(chosen):
            others = [one.spec for _, one in chosen[1:]]
        if others:
            raise PerturbationError(
                f"{chosen[0][1].spec} with {', '.join(others)}: interp=triangle moves along one axis, or along both as "
                "in shift:dx=2,dy=2,interp=triangle; leave the other movements out, or give interp=bilinear"
            )
        if len(chosen) < 2:
            return None
        if reading:
            raise PerturbationError(
                f"interp=triangle with {', '.join(reading)}, which depends on the pixels, is not affine on triangles; "
                "give interp=bilinear"
            )
        (first, across), (second, down) = sorted(chosen, key=lambda pair: not pair[1].dx)
        return cls((first, second), (across, down))

    def shifted(self, pixels: FloatArray, across: int, down: int) -> FloatArray:
        """Pixels (..., H, W) moved by whole numbers of steps."""
        return self.parts[0].shift(self.parts[1].shift(pixels, down), across)

    def images(self, pixels: FloatArray, thetas: FloatArray) -> FloatArray:
        """Pixels or maps (..., H, W) moved to thetas (B, d): (B, ..., H, W), straight from the definition."""
        images = np.empty((len(thetas), *pixels.shape))
        offsets = thetas[:, self.axes]
        steps = np.floor(offsets)
        shares = offsets - steps
        keys = np.column_stack([steps, shares[:, 0] >= shares[:, 1]]).astype(np.int64)
        for i, j, is_above in np.unique(keys, axis=0).tolist():
            chosen = (keys == (i, j, is_above)).all(axis=1)
            own = shares[chosen]
            weights = np.stack([1.0 - own.max(axis=1), own.max(axis=1) - own.min(axis=1), own.min(axis=1)])
            places = ((i, j), (i + is_above, j + 1 - is_above), (i + 1, j + 1))
            corners = np.stack([self.shifted(pixels, *place) for place in places])
            images[chosen] = np.tensordot(weights, corners, axes=(0, 0))
        return images

    def side(self, low: FloatArray, dimension: int) -> FloatArray:
        """The form (d+1,) of theta that vanishes on the diagonal of the unit cell with this lower corner (d,)."""
        row = np.zeros(dimension + 1)
        row[list(self.axes)] = 1.0, -1.0
        row[-1] = floor(low[self.axes[1]]) - floor(low[self.axes[0]])
        return row

    def range_of_side(self, low: FloatArray, high: FloatArray) -> tuple[float, float]:
        """The range of `side` on a box inside one unit cell; refuses a corner that nearly touches the diagonal."""
        first, second = self.axes
        row = self.side(low, len(low))
        ends = [float(x - y + row[-1]) for x, y in ((low[first], high[second]), (high[first], low[second]))]
        for corner in (low, high):
            for other in (low, high):
                distance = abs(float(corner[first] - other[second] + row[-1]))
                if 0.0 < distance < SMALLEST_WIDTH:
                    place = f"({write_number(corner[first])}, {write_number(other[second])})"
                    raise PerturbationError(
                        f"shift: the corner {place} of the ranges lies {distance:.1g} px beside a diagonal: rounding "
                        "would decide; give ends that are multiples of 1/8, or of another power of 1/2"
                    )
        return ends[0], ends[1]

    def change(
        self, pixels: FloatArray, low: FloatArray, *, is_above: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Offset, and slopes along both axes, on one triangle of the unit cell with this lower corner (d,).

        Pixels (..., H, W) gain offset + Σ theta · slope. is_above: the triangle where `side` is positive.
        """
        i, j = floor(low[self.axes[0]]), floor(low[self.axes[1]])
        beside = (i + 1, j) if is_above else (i, j + 1)
        start, middle, end = (self.shifted(pixels, *place) for place in ((i, j), beside, (i + 1, j + 1)))
        slopes = (middle - start, end - middle) if is_above else (end - middle, middle - start)
        # Anchor at the corner nearest to 0: in the cells at 0 the offset is exactly zero.
        corners = {(i, j): start, beside: middle, (i + 1, j + 1): end}
        nearest = min(corners, key=lambda place: abs(place[0]) + abs(place[1]))
        return corners[nearest] - nearest[0] * slopes[0] - nearest[1] * slopes[1] - pixels, *slopes

    def enclose(self, pixels: FloatArray, box: Box) -> Form:
        """Pixels or maps (C, H, W) moved over boxes, each in one unit cell up to rounding.

        Coefficients are (B, 1 + d, C, H, W), the radius is (B, C, H, W). Across the diagonal, the part of one triangle
        beyond the other's form is a ReLU of `side`, enclosed between two parallels.
        """
        (boxes, d), (first, second) = box.middle.shape, self.axes
        coefficients, radius = np.zeros((boxes, 1 + d, *pixels.shape)), np.empty((boxes, *pixels.shape))
        spread = np.maximum(pixels.max(axis=(1, 2)), 0.0) - np.minimum(pixels.min(axis=(1, 2)), 0.0)
        for number, (middle, half) in enumerate(zip(box.middle, box.half, strict=True)):
            i, j = floor(middle[first]), floor(middle[second])
            u, v, wide, high = middle[first] - i, middle[second] - j, half[first], half[second]
            start, right, below, end = (self.shifted(pixels, i + a, j + b) for a, b in ((0, 0), (1, 0), (0, 1), (1, 1)))
            slope, offset, rest = fold(u - v - (wide + high), u - v + (wide + high))
            bend = right + below - start - end
            coefficients[number, 0] = start + u * (end - below) + v * (below - start)
            coefficients[number, 0] += (slope * (u - v) + offset) * bend
            coefficients[number, 1 + first] = wide * (end - below + slope * bend)
            coefficients[number, 1 + second] = high * (below - start - slope * bend)
            size = np.abs(start) + np.abs(right) + np.abs(below) + np.abs(end)
            # Where rounding leaves the unit cell, the pixels change by at most their range per unit.
            beyond = sum(max(0.0, width - at, at + width - 1.0) for at, width in ((u, wide), (v, high)))
            own = rest * np.abs(bend) * (1.0 + 8.0 * UNIT) + gamma(64) * size * (1.0 + wide + high)
            radius[number] = np.where(size > 0.0, own + LEAST, 0.0) + 4.0 * beyond * spread[:, None, None]
        return Form(coefficients, radius)
