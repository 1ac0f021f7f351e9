"""Encloses changes of light for moving images and curved factors, as sums Σ_f factor_f(theta) · part_f(image).

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

PROBED = 64  # pixels whose influence is computed in one batch
MOST_PIXELS, MOST_ENTRIES = 1 << 14, 1 << 24
"""Limits for a moving image with a change that depends on its pixels: its pixels, and the weights of the dependence."""


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
