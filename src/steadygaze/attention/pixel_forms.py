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


class WholeForms(NamedTuple):
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
        self.lines, self.line_of = program.root, program.line_of
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
        values = shapes.points @ self.lines[:-1] + self.lines[-1]
        low, high = (
            end.reduceat(values, shapes.starts[:-1], axis=0) if len(shapes) else values
            for end in (np.minimum, np.maximum)
        )
        may_vanish = self.baseline == 0.0 and not self.factor.any()
        is_nothing = (
            np.all((high <= self.off) & (low < -self.off), axis=1) if may_vanish else np.zeros(len(high), dtype=bool)
        )
        low, high = low - self.off, high + self.off
        middle = 0.5 * (low + high)
        least, most = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        is_black, is_white = middle <= 0.0, middle >= 1.0
        is_clipped = is_black | is_white
        end = is_white.astype(np.float64)
        beyond = np.maximum(np.maximum(-low, high - 1.0), 0.0) + self.off
        error = np.where(is_clipped, np.maximum(most - end, end - least), beyond)
        least, most = least - self.baseline, most - self.baseline
        sign = np.where((least + most >= 0.0) | is_signed, 1.0, -1.0)
        if not is_signed:
            # Beyond the baseline, the form has the wrong sign.
            error += 2.0 * np.maximum(np.where(sign > 0.0, -least, most), 0.0)
        slope = np.where(is_clipped, 0.0, sign)
        constant = sign * (np.where(is_clipped, end, 0.0) - self.baseline)
        error += share * (np.abs(slope) * np.abs(self.lines).sum(axis=0) + np.abs(constant))
        return PixelForms(slope, constant, error, np.maximum(np.abs(least), np.abs(most)), is_nothing)

    def whole(self, shapes: Polytopes, *, is_signed: bool) -> WholeForms:
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
        return WholeForms(functions, off, largest, found.is_nothing)
