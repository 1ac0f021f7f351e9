"""Losses that are functions of a few polynomials in t: where they are at most a limit, enclosed on parts of regions.

On a part the border of a limit lies between two parallel planes: a linear form of t with bounds on its difference from
the loss. The smaller the part, the closer the planes: `properties/enclosing.py` divides parts for that.
"""

from typing import NamedTuple

import numpy as np

from ..tolerances import LEAST, MORE, UNIT, gamma
from .inconsistency import Inconsistency
from .measures import Border
from .measures.distance import DISTANCE
from .polynomials import ConvexParts
from .spans import up_to


class Strips(NamedTuple):
    """The loss on N parts at one limit: surely kept for s in inner (N, 2), surely lost outside outer (N, 2).

    s is t times the direction in along (N, D); ends (N, 2) is its range. reach (N, 2) encloses the loss. doubt (N,):
    what errors of maps contribute to the distance between both planes. In units of the loss, gap (N,) is how far the
    border may be from a plane, and floor (N,) the part of it that errors cause, which halving a part does not reduce.
    """

    inner: np.ndarray
    outer: np.ndarray
    ends: np.ndarray
    reach: np.ndarray
    along: np.ndarray
    gap: np.ndarray
    doubt: np.ndarray
    floor: np.ndarray


class EnclosedLoss:
    """The losses of N parts of regions, which have given curves (N,).

    origins (N, D): the low corners of their knot cells; error (N,) bounds that of gradients.
    """

    def __init__(self, curves: Inconsistency, curve: np.ndarray, origins: np.ndarray, error: np.ndarray) -> None:
        assert curves.layout is not None
        self.layout, self.measure, self.origins = curves.layout, curves.measure, origins
        self.coefficients, self.errors, factor, other = self.layout.split(curves.sums[curve])
        if self.measure != DISTANCE:
            # A map that is surely zero has no attention, whatever the expected map.
            other = np.where(error == 0.0, 0.0, other)
        with np.errstate(invalid="ignore"):
            # No gradient counts where all factors are zero, whatever its error.
            self.error = np.where(factor > 0.0, (error + other) * factor, 0.0) * MORE
        # Polynomials of degree two are sums of squares of affine functions, unless they are those of absolute values.
        self.are_squares = self.measure.squares_maps and self.layout.powers.degree == 2

    def take(self, chosen: np.ndarray) -> "EnclosedLoss":
        """The losses of the chosen parts (an index array)."""
        found = object.__new__(EnclosedLoss)
        found.layout, found.measure, found.are_squares = self.layout, self.measure, self.are_squares
        for name in ("coefficients", "errors", "error", "origins"):
            setattr(found, name, getattr(self, name)[chosen])
        return found

    def strips(self, parts: ConvexParts, limit: float) -> Strips:
        """Where the losses are at most a limit, on parts. Holds over the real numbers."""
        border = self._border(parts, limit)
        form = border.form
        value, slope, low, high = form.value[:, 0], form.slope[:, 0], form.low[:, 0], form.high[:, 0]
        # The rounding of directions, and of places along them; kept where the form is below 0, not at 0.
        size = form.size[:, 0] + np.abs(slope).sum(axis=1)
        off = 16.0 * gamma(16) * size + LEAST
        length = np.linalg.norm(slope, axis=1)
        is_flat = ~(length > 64.0 * UNIT * size) | ~np.isfinite(length)
        first = np.eye(slope.shape[1])[0]
        along = np.where(is_flat[:, None], first, slope / np.where(is_flat, 1.0, length)[:, None])
        ends = np.stack(parts.ends_of((parts.points * along[parts.owner]).sum(axis=1)), axis=1)
        centre = (parts.middle * along).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            kept, lost = centre + (-high - off - value) / length, centre + (-low + off - value) / length
            gap, floor = high - low, self.remainder(parts.middles, limit)
            doubt = 2.0 * self.error / length
        kept = np.where(is_flat | np.isnan(kept), -np.inf, kept)
        lost = np.where(is_flat | np.isnan(lost), np.inf, lost)
        reach = border.reach
        is_kept = (reach[:, 1] <= limit) | (kept >= ends[:, 1])
        is_lost = (reach[:, 0] > limit) | (lost < ends[:, 0])
        is_kept &= ~is_lost
        reach[:, 1] = np.where(is_kept, np.minimum(reach[:, 1], limit), reach[:, 1])
        reach[:, 0] = np.where(is_lost, np.maximum(reach[:, 0], np.nextafter(limit, np.inf)), reach[:, 0])
        kept, lost = np.where(is_kept, np.inf, np.where(is_lost, -np.inf, kept)), np.where(is_lost, -np.inf, lost)
        return Strips(up_to(kept, ends), up_to(lost, ends), ends, reach, along, gap, doubt, floor)

    def reach(self, parts: ConvexParts) -> np.ndarray:
        """Bounds (N, 2) of the losses on parts."""
        return self._border(parts, 0.0).reach

    def remainder(self, parts: ConvexParts, limit: float) -> np.ndarray:
        """How far (N,) the border may be from a plane on parts, in units of the loss."""
        form = self._border(parts, limit).form
        return form.high[:, 0] - form.low[:, 0]

    def _border(self, parts: ConvexParts, limit: float) -> Border:
        with np.errstate(invalid="ignore", over="ignore"):
            forms = self.layout.powers.enclose(
                self.coefficients, self.errors * MORE, self.origins, parts, are_squares=self.are_squares
            )
            low, high = (found := self.measure.border(forms, limit, self.error)).reach.T
        # NaN bounds nothing.
        reach = np.stack([np.where(low >= 0.0, low, 0.0), np.where(np.isnan(high), np.inf, high)], axis=1)
        return found._replace(reach=reach)

    def values(self, points: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """The values (V, k) of the polynomials at points (V, D) of parts (V,), up to rounding."""
        return self.layout.powers.values(self.coefficients, points - self.origins[owner], owner)


def losses_at(curves: Inconsistency, curve: np.ndarray, points: np.ndarray, origins: np.ndarray) -> np.ndarray:
    """The losses (N,) of curves (N,) at points (N, D) in knot cells with low corners (N, D), up to rounding."""
    loss = EnclosedLoss(curves, curve, origins, np.zeros(len(curve)))
    return loss.measure.polynomial_losses(loss.values(points, np.arange(len(curve))))
