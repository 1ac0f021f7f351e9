"""Pointing: the largest absolute value of the maps lies on the object, where the mask's weight is at least 0.5."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...errors import OptionError
from ...threshold import Threshold
from .. import polynomial_sums
from ..distances import Distance
from ..polynomial_sums import Sums
from ..polynomials import LocalForms
from . import NO_ATTENTION, WEIGHT_ERROR, Border, Ends, Expectation, Measure, Slabs
from .wording import NONE as NOWHERE
from .wording import TOO_LARGE, Clauses, Stated

if TYPE_CHECKING:
    from ..filters import Intervals
    from ..inconsistency import Inconsistency
    from ..masks import Mask

HALF = 0.5
FLAT = 0.01
"""If a weight changes by less than this per pixel, its crossing of 0.5 counts as uncertain."""
AROUND = 1e-8
"""A bound on the error of a crossing of 0.5: WEIGHT_ERROR / FLAT."""
NONE = -1.0
"""The largest value of an empty set of pixels."""
STRONGEST = 8
"""Where maps are affine: the most pixels on the object that a region keeps, and off it; each is strongest somewhere."""

ON, OFF, RISE, RISE_AT, RISE_OTHER, FALL, FALL_AT, FALL_OTHER, UNSURE = range(9)
"""Columns of the sums: the largest value on the object (ON), off it (OFF), among pixels that the object reaches (RISE)
or leaves (FALL) within the knot cell, and among pixels with an uncertain crossing (UNSURE). _AT: the τ of that pixel's
crossing; _OTHER: the largest value among such pixels with another crossing."""


@dataclass(frozen=True)
class Pointing(Measure):
    """The loss is 0 if a largest entry lies on the object, and 1 otherwise; there is no threshold.

    A map that is zero everywhere points nowhere: its loss is `NO_ATTENTION`.
    """

    name: ClassVar[str] = "pointing"
    option: ClassVar[str | None] = None
    default: ClassVar[str] = "0.5"
    needs_mask: ClassVar[bool] = True
    classes: ClassVar[str] = "predicted"
    uses_expected: ClassVar[bool] = False
    norm: ClassVar[Distance | None] = Distance.L2
    squares_maps: ClassVar[bool] = False
    polynomials_move: ClassVar[bool] = False
    polynomial_degree: ClassVar[int] = 1
    marks: ClassVar[tuple[str, ...]] = ()
    symbol: ClassVar[str] = "1"
    noun: ClassVar[str] = "largest value"
    asks: ClassVar[str] = "does it point at the object?"
    loss_noun: ClassVar[str] = "off the object"
    threshold_axis: ClassVar[str] = "largest value on the object"
    page_form: ClassVar[str] = "side"
    page_script: ClassVar[str] = """const SgMeasure = {
  loss(actual, expected, weights) {
    let largest = 0, on = 0;
    for (const map of actual) {
      for (let i = 0; i < map.length; i++) {
        const size = Math.abs(map[i]);
        largest = Math.max(largest, size);
        if (weights[i % weights.length] >= 0.5) on = Math.max(on, size);
      }
    }
    return largest === 0 ? SG_NO_ATTENTION : on >= largest ? 0 : 1;
  },
};"""

    @property
    def loss_limit(self) -> str:
        return "the object's border"

    @property
    def short(self) -> Clauses:
        return Clauses("points at the object", "points elsewhere")

    def clauses(self, stated: Stated) -> Clauses:
        value = stated.of_maps("largest value")
        return Clauses(f"{value} stays on the object", f"{value} is not on the object")

    def left_text(self, stated: Stated, before: float | None, after: float) -> str:
        value = stated.of_maps("largest value")
        return f"{value} is zero there" if after > TOO_LARGE else f"{value} is not on the object there"

    def went_text(self, place: str) -> str:
        return f"it lies {place}"

    def kept_row(self, stated: Stated) -> str:
        return self.short.kept

    def stated_text(self, stated: Stated, digits: int = 4) -> str:
        return "largest value on the object"

    def value_text(self, loss: float, digits: int = 4) -> str:
        if np.isnan(loss):
            return "unknown"
        return NOWHERE if loss > TOO_LARGE else "on the object" if loss < HALF else "off the object"

    def compared(self, loss: float, limit: float) -> str:
        return self.value_text(loss)

    def check_mask(self, mask: "Mask") -> None:
        is_on = mask.weights >= HALF
        if is_on.all() or not is_on.any():
            pixels = "all pixels count" if is_on.all() else "no pixel counts"
            raise OptionError(
                f"mask {mask.text}: {pixels} as the object for {self.name}, which takes weights from {HALF} on; give "
                "the object such weights, and the rest smaller ones"
            )

    def slider(self, threshold: Threshold) -> tuple[Threshold, ...]:
        return (threshold,)

    def threshold_text(self, threshold: Threshold) -> str | None:
        return None

    def losses(
        self, actual: np.ndarray, expected: np.ndarray, weights: np.ndarray | None, norm: Distance
    ) -> np.ndarray:
        assert weights is not None
        sizes = np.abs(actual).max(axis=(1, 2))
        largest, on = sizes.max(axis=(1, 2)), np.where(weights >= HALF, sizes, 0.0).max(axis=(1, 2))
        found = np.where(largest == 0.0, NO_ATTENTION, np.where(on >= largest, 0.0, 1.0))
        return np.where(np.isnan(largest), np.nan, found)

    def strayed(self, actual: np.ndarray, expected: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
        """The pixels with the largest value."""
        sizes = np.abs(actual).max(axis=(0, 1))
        return (sizes == sizes.max()) & (sizes > 0.0)

    def sums(self, maps: np.ndarray, at: Expectation) -> np.ndarray:
        """The largest values on and off the object; the columns are `ON` to `UNSURE`."""
        assert at.weights is not None
        sizes = np.abs(maps).max(axis=(1, 2)).reshape(len(maps), -1)
        weights = at.weights.ravel()
        found = np.full((len(maps), 9), NONE)
        found[:, [RISE_AT, FALL_AT]] = 0.0
        if at.weight_slope is None:
            found[:, ON], found[:, OFF] = _largest(sizes, weights >= HALF), _largest(sizes, weights < HALF)
            return found
        slope = at.weight_slope.ravel()
        ends = np.stack([weights, weights + slope])  # a knot cell is at most one pixel wide
        is_on, is_off = ends.min(axis=0) > HALF + WEIGHT_ERROR, ends.max(axis=0) < HALF - WEIGHT_ERROR
        is_sure = (np.abs(slope) >= FLAT) & ~is_on & ~is_off
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = np.where(is_sure, (HALF - weights) / slope, 0.0)
        found[:, ON], found[:, OFF] = _largest(sizes, is_on), _largest(sizes, is_off)
        found[:, UNSURE] = _largest(sizes, ~is_on & ~is_off & ~is_sure)
        for column, chosen in ((RISE, is_sure & (slope > 0.0)), (FALL, is_sure & (slope < 0.0))):
            places = np.flatnonzero(chosen)
            if len(places):
                own = sizes[:, places]
                best = places[np.argmax(own, axis=1)]
                found[:, column], found[:, column + 1] = own.max(axis=1), crossing[best]
                is_other = np.abs(crossing[places] - crossing[best][:, None]) > WEIGHT_ERROR
                found[:, column + 2] = np.where(is_other, own, NONE).max(axis=1)
        return found

    def takes_polynomials(self, norm: Distance) -> bool:
        return True

    def polynomial_count(self, classes: int) -> int:
        return 2 * STRONGEST + 2

    def add_polynomials(self, sums: Sums, out: np.ndarray) -> None:
        """The strongest pixels on the object, those off it, and bounds on the others of both kinds that may decide."""
        assert sums.moved.weights is not None
        is_on = sums.moved.weights[:, 0] >= HALF
        polynomial_sums.add_strongest(sums, np.tile(is_on, sums.maps.shape[2] // len(is_on)), out)

    def border(self, forms: LocalForms, limit: float, error: np.ndarray) -> Border:
        # The last function of each kind only bounds the others.
        is_bound = np.arange(2 * STRONGEST + 2) >= 2 * STRONGEST
        bounded = replace(
            forms, low=np.where(is_bound, -np.inf, forms.low), least=np.where(is_bound, 0.0, forms.least)
        )  # fmt: skip
        on, off = (
            bounded.some([*range(kind * STRONGEST, (kind + 1) * STRONGEST), 2 * STRONGEST + kind]).largest()
            for kind in (ON, OFF)
        )
        found = off.plus(on, -1.0).widened(2.0 * error[:, None])
        is_there = np.maximum(on.least, off.least)[:, 0] > error
        low = np.where(found.least[:, 0] > 0.0, 1.0, 0.0)
        high = np.where(is_there, np.where(found.most[:, 0] <= 0.0, 0.0, 1.0), NO_ATTENTION)
        is_nothing = forms.vanishes.all(axis=1) & (error == 0.0)
        reach = np.where(is_nothing[:, None], NO_ATTENTION, np.stack([low, high], axis=1))
        # A limit of 1 or more is weaker than pointing: only zero maps have a larger loss.
        return Border(found if limit < 1.0 else found.widened(np.full_like(found.low, np.inf)), reach)

    def polynomial_losses(self, values: np.ndarray) -> np.ndarray:
        on, off = values[:, :STRONGEST].max(axis=1), values[:, STRONGEST : 2 * STRONGEST].max(axis=1)
        return np.where(np.maximum(on, off) <= 0.0, NO_ATTENTION, np.where(on >= off, 0.0, 1.0))

    def count(self, shape: tuple[int, ...], *, moves: bool) -> int:
        return 9

    def slabs(self, curves: "Inconsistency", taus: np.ndarray, limit: float, error: np.ndarray) -> Slabs:
        sums, error = curves.sums[curves.curve], error[curves.curve]
        largest = np.delete(sums, [RISE_AT, FALL_AT], axis=1).max(axis=1)
        edges, is_there, state = self._segments(sums, taus, error)
        is_kept, is_open = state == 0, state == 1
        low = np.where((is_there & (is_kept | is_open)).any(axis=1), 0.0, 1.0)
        high = np.where((is_there & ~is_kept).any(axis=1), 1.0, 0.0)
        is_zero, is_unknown = (largest == 0.0) & (error == 0.0), ~(largest > error)
        low = np.where(is_zero, NO_ATTENTION, np.where(is_unknown, 0.0, low))
        high = np.where(is_zero | is_unknown, NO_ATTENTION, high)
        inner, outer = _longest(edges, is_there & is_kept), _hull(edges, is_there & (is_kept | is_open))
        nothing = np.array([1.0, 0.0])
        inner = np.where(is_unknown[:, None], nothing, inner)
        outer = np.where(is_zero[:, None], nothing, np.where(is_unknown[:, None], taus, outer))
        if limit < 1.0:
            return Slabs(inner, outer, np.stack([low, high], axis=1))
        # A limit of 1 or more is weaker than pointing: only zero maps have a larger loss.
        inner = np.where((high <= limit)[:, None], taus, nothing)
        outer = np.where((low > limit)[:, None], nothing, taus)
        return Slabs(inner, outer, np.stack([low, high], axis=1))

    def _segments(
        self, sums: np.ndarray, taus: np.ndarray, error: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Edges (R, 6) of five segments of τ, whether each segment (R, 5) touches the range, and its state (R, 5).

        States: 0 kept, 1 open, 2 lost.
        """
        rise, fall = sums[:, RISE_AT], sums[:, FALL_AT]
        first, last = np.minimum(rise, fall), np.maximum(rise, fall)
        infinite = np.full(len(sums), np.inf)
        borders = np.stack([first - AROUND, first + AROUND, last - AROUND, last + AROUND], axis=1)
        borders = np.maximum.accumulate(borders, axis=1)
        ends = np.column_stack([-infinite, borders, infinite])
        starts, stops = ends[:, :-1], ends[:, 1:]
        is_there = (starts <= taus[:, 1:]) & (stops >= taus[:, :1])
        state = np.ones(starts.shape, dtype=np.int64)
        for k in range(starts.shape[1]):
            begin, end = starts[:, k], stops[:, k]
            comes, goes = begin >= rise + AROUND, end <= fall - AROUND
            not_yet, gone = end <= rise - AROUND, begin >= fall + AROUND
            nothing = np.full(len(sums), NONE)
            sure_on = np.max(
                [sums[:, ON], np.where(comes, sums[:, RISE], NONE), np.where(goes, sums[:, FALL], NONE)], 0
            )
            sure_off = np.max(
                [sums[:, OFF], np.where(not_yet, sums[:, RISE], NONE), np.where(gone, sums[:, FALL], NONE)], axis=0
            )
            others = np.max([sums[:, RISE_OTHER], sums[:, FALL_OTHER], sums[:, UNSURE]], axis=0)
            maybe = np.max(
                [
                    others,
                    np.where(comes | not_yet, nothing, sums[:, RISE]),
                    np.where(goes | gone, nothing, sums[:, FALL]),
                ],
                axis=0,
            )
            is_kept = (sure_on >= 0.0) & (sure_on - np.maximum(sure_off, maybe) >= 2.0 * error)
            is_lost = (sure_off >= 0.0) & (sure_off - np.maximum(sure_on, maybe) > 2.0 * error)
            state[:, k] = np.where(is_kept, 0, np.where(is_lost, 2, 1))
        return np.clip(ends, taus[:, :1], taus[:, 1:]), is_there, state

    def values(self, curves: "Inconsistency", curve: np.ndarray, tau: np.ndarray) -> np.ndarray:
        sums = curves.sums[curve]
        comes, stays = tau >= sums[:, RISE_AT], tau <= sums[:, FALL_AT]
        risen, fallen = sums[:, [RISE, RISE_OTHER]].max(axis=1), sums[:, [FALL, FALL_OTHER]].max(axis=1)
        on = np.max([sums[:, ON], np.where(comes, risen, NONE), np.where(stays, fallen, NONE)], axis=0)
        off = np.max(
            [sums[:, OFF], sums[:, UNSURE], np.where(comes, NONE, risen), np.where(stays, NONE, fallen)], axis=0
        )
        return np.where(np.maximum(on, off) <= 0.0, NO_ATTENTION, np.where(on >= off, 0.0, 1.0))

    def enclose(self, maps: "Intervals", expected: Ends, weights: Ends | None, norm: Distance) -> np.ndarray:
        assert weights is not None
        least, most = absolute_ends(maps, weights[0].shape[1])
        least, most = least.max(axis=1), most.max(axis=1)
        is_on, is_off = weights[0] >= HALF, weights[1] < HALF
        on_least, other_most = np.where(is_on, least, NONE).max(axis=1), np.where(is_on, NONE, most).max(axis=1)
        off_least, rest_most = np.where(is_off, least, NONE).max(axis=1), np.where(is_off, NONE, most).max(axis=1)
        is_kept = (on_least > 0.0) & (on_least >= other_most)
        is_lost = (off_least > 0.0) & (off_least > rest_most)
        low = np.where(is_lost, 1.0, 0.0)
        high = np.where(is_kept, 0.0, np.where(least.max(axis=1) > 0.0, 1.0, NO_ATTENTION))
        is_zero = most.max(axis=1) == 0.0
        low, high = np.where(is_zero, NO_ATTENTION, low), np.where(is_zero, NO_ATTENTION, high)
        is_unknown = ~np.isfinite(most).all(axis=1)
        return np.stack([np.where(is_unknown, 0.0, low), np.where(is_unknown, NO_ATTENTION, high)], axis=1)


def absolute_ends(maps: "Intervals", pixels: int) -> Ends:
    """Proved bounds (B, N, pixels) on the absolute values of maps (B, K', C, H, W); 0 and infinity for NaN."""
    low, high = (end.reshape(len(maps.centre), -1, pixels) for end in maps.ends)
    least = np.where((low < 0.0) & (high > 0.0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    most = np.maximum(np.abs(low), np.abs(high))
    is_known = np.isfinite(low) & np.isfinite(high)
    return np.where(is_known, least, 0.0), np.where(is_known, most, np.inf)


def _largest(sizes: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    return np.where(chosen, sizes, NONE).max(axis=1)


def _longest(edges: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The longest run (R, 2) of chosen segments (R, S) with edges (R, S + 1); (1, 0) for none."""
    best = np.tile([1.0, 0.0], (len(edges), 1))
    start, is_running = edges[:, 0].copy(), np.zeros(len(edges), dtype=bool)
    for k in range(chosen.shape[1]):
        start = np.where(is_running, start, edges[:, k])
        is_running = chosen[:, k]
        is_longer = is_running & (edges[:, k + 1] - start >= best[:, 1] - best[:, 0])
        best = np.where(is_longer[:, None], np.stack([start, edges[:, k + 1]], axis=1), best)
    return best


def _hull(edges: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The hull (R, 2) of chosen segments (R, S) with edges (R, S + 1); (1, 0) for none."""
    start = np.where(chosen, edges[:, :-1], np.inf).min(axis=1)
    stop = np.where(chosen, edges[:, 1:], -np.inf).max(axis=1)
    return np.where(np.isfinite(start)[:, None], np.stack([start, stop], axis=1), [1.0, 0.0])
