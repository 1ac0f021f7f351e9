"""Movements of the camera: every pixel looks up another place of the image, bilinearly.

Coordinates count pixels from the image's centre ((W − 1) / 2, (H − 1) / 2), columns to the right and rows downwards.
Several movements compose: a pixel's coordinates pass through the last movement first, and one look-up follows.
`Moved` gives the definition at single thetas, and encloses whole boxes of thetas.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, cast

import numpy as np

from ..errors import InternalError
from ..tolerances import LEAST, gamma
from . import moving_kernels as kernels
from .base import FloatArray, Perturbation
from .scalar_forms import Box, Form

BORDERS = ("zero", "edge")
"""The pixels outside the image: zero, or the nearest pixel of the edge."""
Matrix = tuple[tuple[Form, Form, Form], tuple[Form, Form, Form]]
"""An affine map of coordinates (2, 3): the factors of column and row, and a constant."""


@dataclass(frozen=True, kw_only=True)
class Movement(Perturbation):
    """A perturbation that moves the image and the expected map, by one affine map of the coordinates."""

    moves: ClassVar[bool] = True

    @property
    def outside(self) -> str:
        """The pixels outside the image, one of BORDERS."""
        return "zero"

    @abstractmethod
    def source(self, thetas: FloatArray) -> FloatArray:
        """Return the affine maps (B, 2, 3) from a pixel's coordinates to those that it looks up, at thetas (B,)."""

    @property
    @abstractmethod
    def script(self) -> str:
        """`source` at one theta t as a JavaScript function, for the report's page: (t) => [[…], […]]."""

    @abstractmethod
    def enclose_source(self, axis: int, box: Box) -> Matrix:
        """Enclose `source` on boxes; theta is parameter number `axis`."""


@dataclass(frozen=True, kw_only=True)
class CurvedMovement(Movement):
    """A movement about the image's centre that is curved in theta; border: zero, or edge for the nearest pixel."""

    is_curved: ClassVar[bool] = True

    border: str = "zero"

    @property
    def outside(self) -> str:
        """The border."""
        return self.border

    def check_fields(self) -> None:
        """Refuse an unknown border."""
        if self.border not in BORDERS:
            self.refuse(f"border={self.border} is not known; give zero or edge, for example {self.keyword}:border=edge")

    def knots(self) -> tuple[float, ...]:
        """Return zero if it lies inside the range."""
        # At zero every pixel looks up itself, so all pixels have a kink there at once.
        return (0.0,) if self.low < 0.0 < self.high else ()

    def apply(self, image: FloatArray, thetas: FloatArray) -> FloatArray:
        """Return the images (B, C, H, W) for thetas (B,)."""
        return look_up(image, self.source(thetas), self.outside)

    def change(self, image: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
        """Raise InternalError: a curved image has no offset and slope."""
        raise InternalError(f"{self.keyword} is curved: it has no affine form")


def linear(box: Box, *entries: Form | float) -> Matrix:
    """An affine map of coordinates from its six entries, row by row; numbers are constants."""
    forms = [entry if isinstance(entry, Form) else Form.constant(entry, box) for entry in entries]
    return cast(Matrix, (tuple(forms[:3]), tuple(forms[3:])))


def look_up(pixels: FloatArray, source: FloatArray, outside: str) -> FloatArray:
    """Look up pixels (..., H, W) bilinearly at the coordinates given by source (B, 2, 3): (B, ..., H, W).

    >>> half = np.array([[[1.0, 0.0, -0.5], [0.0, 1.0, 0.0]]])
    >>> look_up(np.array([[0.0, 1.0]]), half, "zero")
    array([[[0. , 0.5]]])
    """
    images = np.ascontiguousarray(pixels, dtype=np.float64).reshape(-1, *pixels.shape[-2:])
    moved = np.empty((len(source), *images.shape))
    kernels.look_up_all(pad(images, outside), np.ascontiguousarray(source), moved)
    return moved.reshape(len(source), *pixels.shape)


def pad(pixels: FloatArray, outside: str) -> FloatArray:
    """Surround pixels (..., H, W) by one pixel: zero, or the nearest one."""
    around = [(0, 0)] * (pixels.ndim - 2) + [(1, 1), (1, 1)]
    return np.pad(pixels, around) if outside == "zero" else np.pad(pixels, around, mode="edge")


@dataclass(frozen=True, eq=False)
class Moved:
    """Movements in the order given, each with the number of its parameter."""

    movements: tuple[tuple[int, Movement], ...]

    @cached_property
    def outside(self) -> str:
        """The pixels outside the image; the same for all movements."""
        return self.movements[0][1].outside

    def source(self, thetas: FloatArray) -> FloatArray:
        """The composed maps (B, 2, 3) at thetas (B, d)."""
        total = np.tile(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), (len(thetas), 1, 1))
        # The first movement moves the image first, so a pixel's coordinates pass through it last.
        for axis, movement in reversed(self.movements):
            own = movement.source(thetas[:, axis])
            last = own[:, :, :2] @ total
            last[:, :, 2] += own[:, :, 2]
            total = last
        return total

    def images(self, pixels: FloatArray, thetas: FloatArray) -> FloatArray:
        """Pixels or maps (..., H, W) moved to thetas (B, d): (B, ..., H, W), straight from the definition."""
        return look_up(pixels, self.source(thetas), self.outside)

    def enclose_source(self, box: Box) -> Matrix:
        """The composed maps on boxes."""
        total: Matrix | None = None
        for axis, movement in reversed(self.movements):
            own = movement.enclose_source(axis, box)
            total = own if total is None else _after(own, total)
        assert total is not None
        return total

    def enclose(self, pixels: FloatArray, box: Box) -> Form:
        """Pixels or maps (C, H, W) moved over boxes: coefficients (B, 1 + d, C, H, W) and radius (B, C, H, W)."""
        matrix = self.enclose_source(box)
        coordinates = np.stack([np.stack([one.coefficients for one in row], axis=-1) for row in matrix], axis=1)
        radii = np.stack([np.stack([one.radius for one in row], axis=-1) for row in matrix], axis=1)
        boxes, rows = coordinates.shape[0], coordinates.shape[2]
        forms, radius = np.empty((boxes, rows, *pixels.shape)), np.empty((boxes, *pixels.shape))
        most = max(pixels.shape[-2:]) + 4
        kernels.enclose_moved(
            np.ascontiguousarray(pad(pixels, self.outside)), coordinates, radii, gamma(16 + 4 * rows), LEAST,
            np.empty(rows), np.empty(rows), np.empty((2, most)), np.empty((2, most), dtype=np.int64),
            np.empty((2, most)), np.empty(rows), forms, radius,
        )  # fmt: skip
        return Form(forms, radius)


def _after(second: Matrix, first: Matrix) -> Matrix:
    """The composition of two affine maps of coordinates."""
    rows = []
    for a, b, c in second:
        entries = [a.times(first[0][k]) + b.times(first[1][k]) for k in range(3)]
        rows.append((entries[0], entries[1], entries[2] + c))
    return cast(Matrix, tuple(rows))


def movements_of(perturbations: Sequence[Perturbation]) -> tuple[tuple[int, Movement], ...]:
    """The movements among perturbations, each with the number of its parameter."""
    return tuple((axis, one) for axis, one in enumerate(perturbations) if isinstance(one, Movement))
