"""The pixels of regions less a baseline, as affine functions of t, with bounds on their errors.

On a region a pixel is a line of t, or it is clipped to an end of [0, 1]. Its error bounds how far it may differ from
that.
"""

from typing import NamedTuple

import numpy as np

from ..accuracy import Accuracy
from ..compound import Compound
from ..polytopes import Polytopes
from ..regions.forward_error import pixel_errors
from ..tolerances import gamma
from .factored_kernels import clipped_forms

ROUNDINGS = 16
"""The number of roundings in a pixel's line, its value at a vertex, and its distance from the baseline."""


class PixelForms(NamedTuple):
    """Clipped lines less a baseline on N regions for L lines: slope · line + constant, up to an error; all (N, L).

    is_nothing (N,): all pixels are zero, except near an end of the clip, which counts as a kink of pixels.
    """

    slope: np.ndarray
    constant: np.ndarray
    error: np.ndarray
    largest: np.ndarray
    is_nothing: np.ndarray


class RegionForms(NamedTuple):
    """All pixels less a baseline on N regions: functions (N, pixels, D+1), constants first, of t − origin.

    off and largest (N, pixels): bounds on their errors, and on their sizes; is_nothing (N,): as in `PixelForms`.
    """

    functions: np.ndarray
    off: np.ndarray
    largest: np.ndarray
    is_nothing: np.ndarray


class PixelLines:
    """The pixels of one knot cell: lines that several pixels may share, and pixels that stay as they are."""

    def __init__(self, compound: Compound, cell: int, baseline: float, accuracy: Accuracy) -> None:
        program = compound.programs[cell]
        self.baseline, self.origin = baseline, program.low
        self.lines, self.line_of = np.ascontiguousarray(program.root), program.line_of
        moving = np.flatnonzero(self.line_of >= 0)
        self.off = np.zeros(self.lines.shape[1])
        np.maximum.at(self.off, self.line_of[moving], pixel_errors(compound, accuracy)[moving])
        self.moving = moving[np.argsort(self.line_of[moving], kind="stable")]
        self.first = np.searchsorted(self.line_of[self.moving], np.arange(len(self.off)))
        self.still = np.flatnonzero(self.line_of < 0)
        self.constant = program.constant[self.still] - baseline
        self.factor = np.abs(self.constant)
        self.factor_error = gamma(ROUNDINGS) * compound.perturbed.magnitudes[self.still]

    def forms(self, shapes: Polytopes, share: float, *, is_signed: bool = False) -> PixelForms:
        """|clipped line − baseline| on regions, or the difference itself: affine functions, with bounds on errors.

        share: the relative error of sums of them, which counts as an error of each.
        """
        may_vanish = self.baseline == 0.0 and not self.factor.any()
        is_nothing = np.full(len(shapes), may_vanish)
        slope, constant, error, largest = np.empty((4, len(shapes), len(self.off)))
        clipped_forms(
            shapes.points, shapes.starts, self.lines, self.off, np.abs(self.lines).sum(axis=0), self.baseline, share,
            is_signed, np.empty(len(self.off)), slope, constant, error, largest, is_nothing,
        )  # fmt: skip
        return PixelForms(slope, constant, error, largest, is_nothing)

    def heaviest(self, weights: np.ndarray) -> np.ndarray:
        """The largest of weights (W, pixels) on the pixels of each line, (W, L+1).

        Last comes the largest weight of the other pixels times their distance from the baseline.
        """
        found = np.zeros((len(weights), len(self.off) + 1))
        for own, weight in zip(found, weights, strict=True):
            np.maximum.at(own, self.line_of[self.moving], weight[self.moving])
            own[-1] = (weight[self.still] * (self.factor + self.factor_error)).max(initial=0.0)
        return found

    def whole(self, shapes: Polytopes, *, is_signed: bool) -> RegionForms:
        """All pixels on regions, as functions of t − origin; rounding relative to their sizes is not counted."""
        found = self.forms(shapes, gamma(2 * ROUNDINGS), is_signed=is_signed)
        count, pixels = len(found.slope), len(self.line_of)
        functions = np.zeros((count, pixels, len(self.lines)))
        off, largest = np.zeros((count, pixels)), np.zeros((count, pixels))
        line = self.line_of[self.moving]
        start = self.origin @ self.lines[:-1] + self.lines[-1]
        functions[:, self.moving, 0] = (found.slope * start + found.constant)[:, line]
        functions[:, self.moving, 1:] = (found.slope[:, :, None] * self.lines[:-1].T)[:, line]
        functions[:, self.still, 0] = self.constant if is_signed else self.factor
        off[:, self.moving], off[:, self.still] = found.error[:, line], self.factor_error
        largest[:, self.moving] = found.largest[:, line]
        largest[:, self.still] = self.factor + self.factor_error
        return RegionForms(functions, off, largest, found.is_nothing)
