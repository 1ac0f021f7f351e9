"""Images that are not piecewise affine in theta: their definition, and enclosures on boxes of thetas.

Movements come first, with one look-up; then the changes of light are added, each computed from the moved image. The
clip to [0, 1] is left to the callers.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..tolerances import LEAST, gamma
from .base import FloatArray, Perturbation
from .lights import Light
from .movement import Moved, movements_of
from .scalar_forms import Box, Form

COORDINATES = 8.0
"""The largest factor by which a looked-up pixel multiplies the rounding of its coordinates: a few operations, between
pixels that differ by up to 1 along each of two axes."""


@dataclass(frozen=True, eq=False)
class Curve:
    """An image x0 (C, H, W) under perturbations, before the clip, as a function of theta."""

    perturbations: tuple[Perturbation, ...]
    x0: FloatArray

    @cached_property
    def moved(self) -> Moved | None:
        """The movements; None if nothing moves."""
        found = movements_of(self.perturbations)
        return Moved(found) if found else None

    @cached_property
    def lights(self) -> tuple[Light, ...]:
        """The changes of light."""
        shape, still = self.x0.shape, self.x0 if self.moved is None else None
        return tuple(Light(axis, one, shape, still) for axis, one in enumerate(self.perturbations) if not one.moves)

    def images(self, thetas: FloatArray) -> FloatArray:
        """The images (B, C, H, W) at thetas (B, d), straight from the definitions."""
        if self.moved is None:
            images = np.repeat(self.x0[None], len(thetas), axis=0)
        else:
            images = self.moved.images(self.x0, thetas)
        changed = images.copy()
        for moved, total, theta in zip(images, changed, thetas, strict=True):
            for light in self.lights:
                np.add(total, light.family.apply(moved, theta[light.axis, None])[0] - moved, out=total)
        return changed

    def enclose(self, box: Box) -> Form:
        """The pixels on boxes: coefficients (B, 1 + d, pixels) and radius (B, pixels); exact zeros have radius zero."""
        (boxes, d), size = box.middle.shape, self.x0.size
        if self.moved is None:
            coefficients = np.zeros((boxes, 1 + d, size))
            coefficients[:, 0] = self.x0.ravel()
            moved = Form(coefficients, np.zeros((boxes, size)))
        else:
            found = self.moved.enclose(self.x0, box)
            moved = Form(found.coefficients.reshape(boxes, 1 + d, size), found.radius.reshape(boxes, size))
        total = moved
        for light in self.lights:
            total = total + light.enclose(moved, box)
        # The pixels of x0 were rounded when they were read.
        is_zero = (total.radius == 0.0) & (total.coefficients == 0.0).all(axis=1)
        return Form(total.coefficients, np.where(is_zero, 0.0, total.radius + gamma(2) * total.size + LEAST))

    def magnitudes(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Magnitudes (pixels,): times a few unit roundoffs, they bound the rounding of the image on a box (d,)."""
        box = Box.of(np.zeros((1, len(low))), np.ones((1, len(low))), low, high - low)
        largest = np.abs(self.x0).ravel()
        if self.moved is not None:
            height, width = self.x0.shape[1:]
            factor = max(float(form.size[0]) for row in self.moved.enclose_source(box) for form in row)
            largest = np.full(self.x0.size, 1.0 + COORDINATES * (1.0 + factor) * (height + width))
        return largest + sum(light.size(largest, box) for light in self.lights)
