"""Images that are not piecewise affine in theta: their definition, and enclosures on boxes of thetas.

Movements come first, with one look-up; then the changes of light are added, each computed from the moved image. The
clip to [0, 1] is left to the callers.

A change of light is a sum Σ_f factor_f(theta) · part_f(image). Parts are affine in the image. An affine family has one
factor, theta itself, and one part, its slope.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..errors import InternalError
from ..lazily import scipy_sparse
from ..tolerances import LEAST, gamma
from .base import FloatArray, Perturbation
from .movement import Moved, movements_of
from .scalar_forms import Box, Form, parameter

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PROBED = 64  # pixels whose influence is computed in one batch
MOST_PIXELS, MOST_ENTRIES = 1 << 14, 1 << 24
"""Limits for a moving image with a change that depends on its pixels: its pixels, and the weights of the dependence."""
COORDINATES = 8.0
"""The largest factor by which a looked-up pixel multiplies the rounding of its coordinates: a few operations, between
pixels that differ by up to 1 along each of two axes."""


@dataclass(frozen=True, kw_only=True)
class CurvedLight(Perturbation):
    """A change of light with factors that are curved in theta."""

    is_curved: ClassVar[bool] = True

    @abstractmethod
    def parts(self, image: FloatArray) -> FloatArray:
        """Return the parts (F, C, H, W) of an image (C, H, W); they are affine in the image."""

    @abstractmethod
    def factors(self, axis: int, box: Box) -> tuple[Form, ...]:
        """Enclose the F factors on boxes; theta is parameter number `axis`."""

    @property
    @abstractmethod
    def script(self) -> str:
        """The factors at one theta t as a JavaScript function, for the report's page: (t) => […]."""

    def change(self, image: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
        """Raise InternalError: a curved image has no offset and slope."""
        raise InternalError(f"{self.keyword} is curved: it has no affine form")


@dataclass(frozen=True, eq=False)
class Light:
    """One change of light for images of shape (C, H, W), with the number of its parameter.

    still: the image if nothing moves it; its parts are then computed once, and all proofs are about these numbers.
    """

    axis: int
    family: Perturbation
    shape: tuple[int, int, int]
    still: FloatArray | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether the parts are the same at every theta."""
        return self.still is not None or not self.family.reads_image

    @property
    def is_too_large(self) -> bool:
        """Whether the image is too large, or has too many weights, to find how the parts depend on its pixels."""
        size = int(np.prod(self.shape))
        if self.is_fixed or size > MOST_PIXELS:
            return not self.is_fixed
        middle = np.zeros(size)
        middle[size // 2] = 1.0
        return size * int(np.count_nonzero(self.parts(middle.reshape(self.shape)) - self.constant)) > MOST_ENTRIES

    def parts(self, image: FloatArray) -> FloatArray:
        """The parts (F, pixels) of an image (C, H, W)."""
        if isinstance(self.family, CurvedLight):
            return self.family.parts(image).reshape(-1, image.size)
        return self.family.change(image, self.family.low, self.family.high)[1].reshape(1, -1)

    def factors(self, box: Box) -> tuple[Form, ...]:
        """The factors on boxes."""
        family = self.family
        return family.factors(self.axis, box) if isinstance(family, CurvedLight) else (parameter(self.axis, box),)

    @cached_property
    def constant(self) -> FloatArray:
        """The parts (F, pixels) of the still image, or of a black one if the image moves."""
        return self.parts(np.zeros(self.shape) if self.still is None else self.still)

    @cached_property
    def operators(self) -> "list[csr_array]":
        """The linear dependence of each part on the pixels: matrices (pixels, pixels), computed pixel by pixel."""
        size = int(np.prod(self.shape))
        found: list[list[csr_array]] = [[] for _ in self.constant]
        for first in range(0, size, PROBED):
            places = range(first, min(first + PROBED, size))
            rows = np.zeros((len(self.constant), len(places), size))
            for number, place in enumerate(places):
                image = np.zeros(size)
                image[place] = 1.0
                rows[:, number] = self.parts(image.reshape(self.shape)) - self.constant
            for part, kept in zip(rows, found, strict=True):
                kept.append(scipy_sparse.csr_array(part))
        return [scipy_sparse.csr_array(scipy_sparse.vstack(part).T) for part in found]

    def enclose(self, moved: Form, box: Box) -> Form:
        """The change of the moved image, whose coefficients are (B, 1 + d, pixels)."""
        total: Form | None = None
        for number, factor in enumerate(self.factors(box)):
            own = self._spread(factor).times(self._part(number, moved))
            total = own if total is None else total + own
        assert total is not None
        return total

    def size(self, largest: FloatArray, box: Box) -> FloatArray:
        """A bound (pixels,) of Σ|terms| of the change on one box, for images with pixels up to `largest` (pixels,)."""
        total = np.zeros(len(largest))
        for number, factor in enumerate(self.factors(box)):
            part = np.abs(self.constant[number])
            if not self.is_fixed:
                part = part + abs(self.operators[number]) @ largest
            total += factor.size[0] * part
        return total

    def _part(self, number: int, moved: Form) -> Form:
        """One part of the moved image."""
        boxes, rows, size = moved.coefficients.shape
        if self.is_fixed:
            coefficients = np.zeros((boxes, rows, size))
            coefficients[:, 0] = self.constant[number]
            return Form(coefficients, np.zeros((boxes, size)))
        matrix = self.operators[number]
        coefficients = (matrix @ moved.coefficients.reshape(boxes * rows, size).T).T.reshape(boxes, rows, size)
        terms = int(np.diff(matrix.indptr).max(initial=0)) + 4
        rounding = gamma(terms) * (moved.size + np.abs(self.constant[number]) + LEAST)
        radius = (abs(matrix) @ (moved.radius + rounding).T).T + rounding
        coefficients[:, 0] += self.constant[number]
        return Form(coefficients, radius * (1.0 + gamma(terms)))

    @staticmethod
    def _spread(factor: Form) -> Form:
        """A factor with an axis for the pixels."""
        return Form(factor.coefficients[:, :, None], factor.radius[:, None])


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
