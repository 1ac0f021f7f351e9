"""Changes of light as sums Σ_f factor_f(theta) · part_f(image): what encloses them where images move or factors bend.

Parts are affine in the image. An affine family has one factor, theta itself, and one part, its slope.
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
from .scalar_forms import Box, Form, parameter

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PROBED = 64  # pixels whose influence is found at a time


@dataclass(frozen=True, kw_only=True)
class CurvedLight(Perturbation):
    """A change of light with factors that are curved in theta."""

    is_curved: ClassVar[bool] = True

    @abstractmethod
    def parts(self, image: FloatArray) -> FloatArray:
        """Return the parts (F, C, H, W) of an image (C, H, W); they are affine in the image."""

    @abstractmethod
    def factors(self, axis: int, box: Box) -> tuple[Form, ...]:
        """Enclose the F factors on boxes, where theta is the parameter number `axis`."""

    def change(self, image: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
        """Refuse: there are no offset and slope."""
        raise InternalError(f"{self.keyword} is curved: no affine form holds")


@dataclass(frozen=True, eq=False)
class Light:
    """One change of light of images of a shape (C, H, W), with the number of its parameter."""

    axis: int
    family: Perturbation
    shape: tuple[int, int, int]

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
        """The parts (F, pixels) of a black image."""
        return self.parts(np.zeros(self.shape))

    @cached_property
    def operators(self) -> "list[csr_array]":
        """How each part depends on the pixels: matrices (pixels, pixels), found pixel by pixel."""
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
        """A bound (pixels,) of Σ|terms| of the change, for images of at most the given size (pixels,) on one box."""
        total = np.zeros(len(largest))
        for number, factor in enumerate(self.factors(box)):
            part = np.abs(self.constant[number])
            if self.family.reads_image:
                part = part + abs(self.operators[number]) @ largest
            total += factor.size[0] * part
        return total

    def _part(self, number: int, moved: Form) -> Form:
        """One part of the moved image."""
        boxes, rows, size = moved.coefficients.shape
        if not self.family.reads_image:
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
        """A factor for all pixels."""
        return Form(factor.coefficients[:, :, None], factor.radius[:, None])
