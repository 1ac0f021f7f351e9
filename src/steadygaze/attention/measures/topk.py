"""Top k: at least a given share of the k strongest expected pixels are among the k strongest actual pixels."""

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ...errors import OptionError
from ...threshold import Threshold
from ...tolerances import UNIT, gamma
from ..distances import Distance
from . import NO_ATTENTION, Ends, Expectation, Measure, Slabs
from .pointing import absolute_ends
from .rank_kernels import overlaps, segment_slabs
from .wording import TOO_LARGE, ZERO_THERE, Clauses, Stated

if TYPE_CHECKING:
    from ..filters import Intervals
    from ..inconsistency import Inconsistency

LEVELS = 10.0 ** np.arange(-9.0, -2.0)
"""Strengths closer together than this share of the largest one count as tied: higher levels allow larger errors."""

HALVINGS = 20
"""How often the range of a knot cell is halved to separate the thetas where the strongest expected pixels change."""

BITS = 32
"""The number of pixels packed into one number of the sums."""


class Strongest(NamedTuple):
    """The k strongest expected pixels on segments of τ, which cover a knot cell.

    ends (J + 1,): the ends of the segments. sure and likely (J, W): the pixels that are surely, and that may be, among
    the k strongest, packed.
    """

    ends: np.ndarray
    sure: np.ndarray
    likely: np.ndarray


class ExpectedTops:
    """The k strongest expected pixels in one knot cell, for errors of several sizes."""

    def __init__(self, at: Expectation, k: int) -> None:
        self.start = at.maps.reshape(-1, at.maps[0, 0].size)
        self.slope = np.zeros(self.start.shape) if at.slope is None else at.slope.reshape(self.start.shape)
        self.k = k
        self.largest = float((np.abs(self.start) + np.abs(self.slope)).sum(axis=0).max())
        self._found: dict[int, Strongest] = {}

    def levels(self, error: np.ndarray) -> np.ndarray:
        """The first level (N,) that allows errors (N,) of the expected maps; −1 if none does."""
        found = np.searchsorted(0.25 * LEVELS * self.largest, error)
        # NaN and infinity come last.
        return np.where(found < len(LEVELS), found, -1)

    def at(self, level: int) -> Strongest:
        """The strongest pixels with the ties of a level."""
        if level not in self._found:
            self._found[level] = self._separated(LEVELS[level] * self.largest)
        return self._found[level]

    def _separated(self, close: float) -> Strongest:
        speed = np.abs(self.slope).sum(axis=0)
        starts, sure, likely = [], [], []
        low, high = np.zeros(1), np.ones(1)
        for depth in range(HALVINGS + 1):
            middle, half = 0.5 * (low + high), 0.5 * (high - low)
            values = np.abs(self.start + middle[:, None, None] * self.slope).sum(axis=1)
            # Half of `close` covers the errors of the maps and the rounding here.
            reach = half[:, None] * speed + 0.5 * close
            is_in, may_be = ranked(values - reach, values + reach, self.k)
            is_done = (is_in.sum(axis=1) == self.k) | (depth == HALVINGS) | (not speed.any())
            # Not worth halving further: strengths change by much less than the width of a tie.
            is_done |= 2.0 * half * speed.max() < 0.1 * close
            starts.append(low[is_done])
            sure.append(is_in[is_done])
            likely.append(may_be[is_done])
            low, high, middle = low[~is_done], high[~is_done], middle[~is_done]
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
            if not len(low):
                break
        first = np.concatenate(starts)
        order = np.argsort(first, kind="stable")
        inside, may = np.concatenate(sure)[order], np.concatenate(likely)[order]
        # Neighbours with the same pixels are one segment.
        is_same = (inside[1:] == inside[:-1]).all(axis=1) & (may[1:] == may[:-1]).all(axis=1)
        is_new = np.concatenate([[True], ~is_same])
        borders = np.concatenate([[-np.inf], first[order][is_new][1:], [np.inf]])
        return Strongest(borders, packed(inside[is_new]), packed(may[is_new]))


def _no_threshold(text: object) -> OptionError:
    return OptionError(
        f"top {str(text).strip()!r} is not a threshold; expected a number of pixels and a share above 0 and up to 1, "
        "such as 50:0.8"
    )


def ranked(low: np.ndarray, high: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Which of the numbers between low and high (B, n) are surely among the k largest, and which may be."""
    count = low.shape[1]
    if k >= count:
        return np.ones(low.shape, dtype=bool), np.ones(low.shape, dtype=bool)
    least = np.partition(low, count - k, axis=1)[:, count - k]
    most = np.partition(high, count - k - 1, axis=1)[:, count - k - 1]
    return low > most[:, None], ~(high < least[:, None])


def packed(chosen: np.ndarray) -> np.ndarray:
    """Pack sets of pixels (B, n) into numbers (B, W) of `BITS` bits each.

    >>> packed(np.array([[True, False, True]])).tolist()
    [[5]]
    """
    count = -(-chosen.shape[1] // BITS)
    bits = np.zeros((len(chosen), count * BITS), dtype=np.uint64)
    bits[:, : chosen.shape[1]] = chosen
    weights = np.uint64(1) << np.arange(BITS, dtype=np.uint64)
    return (bits.reshape(len(chosen), count, BITS) * weights).sum(axis=2, dtype=np.uint64)


GAPS = 4
"""If so many pixels around rank k are too close to separate, nothing is known about the k strongest."""


@dataclass(frozen=True)
class TopK(Measure):
    """The loss is 1 − |top_k(E) ∩ top_k(G)| / k. The strength of a pixel sums over channels and chosen classes.

    Among equally strong pixels the first, row by row, ranks higher. The loss of a map that is zero everywhere is
    `NO_ATTENTION`.
    """

    name: ClassVar[str] = "topk"
    option: ClassVar[str | None] = "top"
    default: ClassVar[str] = "50:0.8"
    norm: ClassVar[Distance | None] = Distance.L1
    marks: ClassVar[tuple[str, ...]] = ("0.5", "0.7", "0.8", "0.9")
    symbol: ClassVar[str] = "share"
    noun: ClassVar[str] = "pixels kept"
    asks: ClassVar[str] = "the same strongest pixels?"
    loss_noun: ClassVar[str] = "pixels lost"
    threshold_axis: ClassVar[str] = "required share of the strongest pixels"
    page_form: ClassVar[str] = "count"
    page_script: ClassVar[str] = """const SgMeasure = {
  loss(actual, expected, weights, { shape, k }) {
    const n = shape[1] * shape[2];
    const strongest = (maps) => {
      const sums = new Float64Array(n);
      for (const map of maps) for (let i = 0; i < map.length; i++) sums[i % n] += Math.abs(map[i]);
      const order = Array.from(sums.keys()).sort((a, b) => sums[b] - sums[a] || a - b);
      return { first: new Set(order.slice(0, k)), largest: sums[order[0]] };
    };
    const ours = strongest(actual), theirs = strongest(expected);
    if (ours.largest === 0) return SG_NO_ATTENTION;
    return 1 - [...ours.first].filter((i) => theirs.first.has(i)).length / k;
  },
};"""

    k: int = 50

    def count_at(self, loss: float) -> int:
        """The least number of shared pixels with a loss of at most the given one."""
        return ceil((1.0 - loss) * self.k - 1e-6)

    def clauses(self, stated: Stated) -> Clauses:
        count = self.count_at(stated.limit)
        expected = f"of the {self.k} pixels that should be the strongest in the attention maps"
        if self.k == 1:
            return Clauses("the strongest pixel of the attention maps stays the same", "another pixel is the strongest")
        return Clauses(f"{expected}, at least {count} are", f"{expected}, fewer than {count} are")

    def number(self, value: float, digits: int = 4) -> str:
        return f"{self.count_at(1.0 - value)} of {self.k} pixels"

    @property
    def short(self) -> Clauses:
        return Clauses("enough pixels stay", "too few stay")

    def stated_text(self, stated: Stated, digits: int = 4) -> str:
        return f"at least {self.count_at(stated.limit)} of the {self.k} strongest pixels"

    def kept_row(self, stated: Stated) -> str:
        return f"{self.number(1.0 - stated.limit)} stay"

    def reached_text(self, value: float) -> str:
        return self.number(value)

    def left_text(self, stated: Stated, before: float | None, after: float) -> str:
        return ZERO_THERE if after > TOO_LARGE else f"{self.value_text(after)} are still among the strongest there"

    def compared(self, loss: float, limit: float) -> str:
        found = super().compared(loss, limit)
        return found.replace(f" {self.symbol} = ", " ").replace(f" of {self.k} pixels", "", 1)

    def slider(self, threshold: Threshold) -> tuple[Threshold, ...]:
        steps = range(self.k, 0, -max(1, self.k // 100))
        return tuple(Threshold(float(f"{count / self.k:.12g}"), False, self.direction) for count in steps)

    def with_threshold(self, text: str | float) -> tuple[Measure, Threshold]:
        count, colon, share = str(text).strip().partition(":")
        if not colon:
            return self, self.parse_threshold(text)
        try:
            found = self.parse_threshold(share)
        except OptionError:
            raise _no_threshold(text) from None
        if not count.strip().isdecimal() or int(count) < 1:
            raise _no_threshold(text)
        return TopK(int(count)), found

    def parse_threshold(self, text: str | float) -> Threshold:
        try:
            return super().parse_threshold(text)
        except OptionError:
            raise _no_threshold(text) from None

    def check_pixels(self, count: int) -> None:
        if self.k > count:
            raise OptionError(
                f"top asks for the {self.k} strongest pixels, but the image has {count}; give a smaller number"
            )

    def threshold_text(self, threshold: Threshold) -> str | None:
        return f"{self.k}:{threshold}"

    def limit(self, threshold: Threshold, base: float) -> float:
        # Half a pixel of room: the count decides, not the rounding of its share.
        return 1.0 - (ceil(threshold.number * self.k - 1e-9) - 0.5) / self.k

    def losses(
        self, actual: np.ndarray, expected: np.ndarray, weights: np.ndarray | None, norm: Distance
    ) -> np.ndarray:
        ours, theirs = (np.abs(maps).sum(axis=(1, 2)).reshape(len(maps), -1) for maps in (actual, expected))
        found = np.broadcast_to(self._tops(theirs), ours.shape)
        loss = 1.0 - (self._tops(ours) & found).sum(axis=1) / self.k
        loss = np.where(ours.any(axis=1), loss, NO_ATTENTION)
        return np.where(np.isnan(ours).any(axis=1), np.nan, loss)

    def strayed(self, actual: np.ndarray, expected: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
        """The pixels among the k strongest that are not expected to be."""
        ours, theirs = (np.abs(maps).sum(axis=(0, 1)).reshape(1, -1) for maps in (actual, expected))
        return (self._tops(ours) & ~self._tops(theirs)).reshape(actual.shape[2:])

    def _tops(self, strengths: np.ndarray) -> np.ndarray:
        """Whether each pixel (B, n) is among the k strongest; of equally strong ones, the first."""
        order = np.argsort(-strengths, axis=1, kind="stable")
        found = np.zeros(strengths.shape, dtype=bool)
        np.put_along_axis(found, order[:, : self.k], True, axis=1)
        return found

    def sums(self, maps: np.ndarray, at: Expectation) -> np.ndarray:
        """The largest strength, the gaps between the pixels around rank k, and the k strongest pixels, packed."""
        strengths = np.abs(maps).sum(axis=(1, 2)).reshape(len(maps), -1)
        ranked = -np.sort(-strengths, axis=1)
        beyond = ranked[:, self.k] if self.k < ranked.shape[1] else np.full(len(maps), -np.inf)
        gaps = [ranked[:, self.k - 1 - m] - beyond if m < self.k else np.full(len(maps), np.inf) for m in range(GAPS)]
        gaps = [np.where(np.isinf(gap), np.finfo(np.float64).max, gap) for gap in gaps]
        return np.column_stack([ranked[:, 0], *gaps, packed(self._tops(strengths)).astype(np.float64)])

    def count(self, shape: tuple[int, ...], *, moves: bool) -> int:
        return 1 + GAPS + -(-shape[1] * shape[2] // BITS)

    def cell_facts(self, at: Expectation) -> ExpectedTops:
        return ExpectedTops(at, self.k)

    def slabs(self, curves: "Inconsistency", taus: np.ndarray, limit: float, error: np.ndarray) -> Slabs:
        cell, unknown = curves.curve_cell[curves.curve], np.array([1.0, 0.0, 0.0, 0.0, 0.0, NO_ATTENTION])
        found = np.tile(unknown, (len(taus), 1))
        found[:, 2:4] = taus
        for number in np.unique(cell).tolist():
            levels = curves.facts[number].levels(error)[curves.curve]
            for level in np.unique(levels[(cell == number) & (levels >= 0)]).tolist():
                own = np.flatnonzero((cell == number) & (levels == level))
                found[own] = self._slabs(curves, curves.facts[number].at(level), own, taus[own], limit, error)
        return Slabs(found[:, :2], found[:, 2:4], found[:, 4:])

    def _slabs(
        self,
        curves: "Inconsistency",
        expected: Strongest,
        own: np.ndarray,
        taus: np.ndarray,
        limit: float,
        error: np.ndarray,
    ) -> np.ndarray:
        """Inner slab, outer slab and reach (N, 6) of the regions `own` (N,) with ranges of τ (N, 2)."""
        numbers, place = np.unique(curves.curve[own], return_inverse=True)
        sums, error = curves.sums[numbers], error[numbers]
        # How many of the k strongest pixels are uncertain, −1 if unknown.
        with np.errstate(invalid="ignore"):
            is_clear = sums[:, 1 : 1 + GAPS] > (2.0 * error + self._rounding(curves, sums))[:, None]
        unsure = np.where(is_clear.any(axis=1) & (sums[:, 0] > error), np.argmax(is_clear, axis=1), -1)
        out = np.zeros((len(own), 6))
        segment_slabs(
            np.ascontiguousarray(sums[:, 1 + GAPS :].astype(np.uint64)), unsure, place, np.ascontiguousarray(taus),
            expected.ends, expected.sure, expected.likely, self.k, limit, NO_ATTENTION, out,
        )  # fmt: skip
        is_zero = ((sums[:, 0] == 0.0) & (error == 0.0))[place]
        out[is_zero] = [1.0, 0.0, 1.0, 0.0, NO_ATTENTION, NO_ATTENTION]
        return out

    def _rounding(self, curves: "Inconsistency", sums: np.ndarray) -> np.ndarray:
        """The rounding of two strengths and their difference, (Q,)."""
        return 4.0 * gamma(curves.terms + 8) * sums[:, 0] + UNIT * sums[:, 0]

    def values(self, curves: "Inconsistency", curve: np.ndarray, tau: np.ndarray) -> np.ndarray:
        found = np.zeros(len(tau))
        cell = curves.curve_cell[curve]
        for number in np.unique(cell).tolist():
            facts, own = curves.facts[number].at(0), np.flatnonzero(cell == number)
            segment = np.searchsorted(facts.ends, tau[own], side="right") - 1
            bits = np.ascontiguousarray(curves.sums[curve[own], 1 + GAPS :].astype(np.uint64))
            counts = np.zeros((len(own), 2), dtype=np.int64)
            overlaps(bits, facts.sure[segment], facts.likely[segment], counts)
            found[own] = 1.0 - counts.mean(axis=1) / self.k
        return np.where(curves.sums[curve, 0] == 0.0, NO_ATTENTION, found)

    def enclose(self, maps: "Intervals", expected: Ends, weights: Ends | None, norm: Distance) -> np.ndarray:
        pixels = maps.centre[0, 0, 0].size
        ours = [part.sum(axis=1) for part in absolute_ends(maps, pixels)]
        low, high = (end.reshape(len(end), -1, pixels) for end in expected)
        least = np.where((low < 0.0) & (high > 0.0), 0.0, np.minimum(np.abs(low), np.abs(high)))
        theirs = [part.sum(axis=1) for part in (least, np.maximum(np.abs(low), np.abs(high)))]
        slack = gamma(low.shape[1] + 8)
        (in_ours, may_ours), (in_theirs, may_theirs) = (
            ranked(ends[0] * (1.0 - slack), ends[1] * (1.0 + slack), self.k) for ends in (ours, theirs)
        )
        least_common = (in_ours & in_theirs).sum(axis=1)
        most_common = np.minimum((may_ours & may_theirs).sum(axis=1), self.k)
        bounds = np.stack([1.0 - most_common / self.k, 1.0 - least_common / self.k], axis=1)
        bounds[:, 1] = np.where(ours[0].max(axis=1) > 0.0, bounds[:, 1], NO_ATTENTION)
        is_known = np.isfinite(ours[1]).all(axis=1) & np.isfinite(theirs[1]).all(axis=1)
        bounds = np.where(is_known[:, None], bounds, [0.0, NO_ATTENTION])
        return np.where((ours[1].max(axis=1) == 0.0)[:, None], NO_ATTENTION, bounds)
