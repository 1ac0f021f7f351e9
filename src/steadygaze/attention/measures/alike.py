"""Alike: the maps point the same way as the expected maps; the cosine between them is at least γ."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...tolerances import LEAST, LEAST_ROOT, UNIT, down, gamma, up
from ...words import rounded
from .. import curve_kernels, polynomial_sums
from ..distances import Distance
from ..polynomial_sums import Sums
from . import MOVED, NO_ATTENTION, Border, Ends, Expectation, Measure, Slabs
from .wording import Clauses, Stated

if TYPE_CHECKING:
    from ..filters import Intervals
    from ..inconsistency import Inconsistency
    from ..polynomials import LocalForms

STEPS = np.linspace(0.0, 1.0, 9)
"""Where the cosine is computed along a range of τ."""


@dataclass(frozen=True)
class Alike(Measure):
    """The loss is 1 − cos(actual, expected), over pixels, channels and classes together; from 0 to 2.

    If the actual or the expected map is zero everywhere, there is no direction: the loss is `NO_ATTENTION`.
    """

    name: ClassVar[str] = "alike"
    option: ClassVar[str | None] = "gamma"
    default: ClassVar[str] = "0.9"
    is_quasiconvex: ClassVar[bool] = True
    norm: ClassVar[Distance | None] = Distance.L2
    marks: ClassVar[tuple[str, ...]] = ("0.5", "0.75", "0.9", "0.99")
    symbol: ClassVar[str] = "γ"
    noun: ClassVar[str] = "cosine"
    asks: ClassVar[str] = "does the map point the same way?"
    loss_noun: ClassVar[str] = "1 − cosine"
    threshold_axis: ClassVar[str] = "required cosine γ of actual and expected maps"
    page_script: ClassVar[str] = """const SgMeasure = {
  loss(actual, expected) {
    const largest = (maps) => maps.reduce((top, map) => map.reduce((a, b) => Math.max(a, Math.abs(b)), top), 0);
    const ours = largest(actual), theirs = largest(expected);
    if (ours === 0 || theirs === 0) return SG_NO_ATTENTION;
    let across = 0, own = 0, other = 0;
    actual.forEach((map, k) => map.forEach((value, i) => {
      const a = value / ours, e = expected[k][i] / theirs;
      across += a * e;
      own += a * a;
      other += e * e;
    }));
    return 1 - across / (Math.sqrt(own) * Math.sqrt(other));
  },
};"""

    def clauses(self, stated: Stated) -> Clauses:
        least = self.threshold_words(stated)
        way = "the attention maps {} the same way as the expected ones (cosine {})"
        return Clauses(way.format("point", f"at least {least}"), way.format("no longer point", f"below {least}"))

    def number(self, value: float, digits: int = 4) -> str:
        return rounded(round(value, 12), digits)

    def losses(
        self, actual: np.ndarray, expected: np.ndarray, weights: np.ndarray | None, norm: Distance
    ) -> np.ndarray:
        ours = actual.reshape(len(actual), -1)
        theirs = np.broadcast_to(expected, actual.shape).reshape(len(actual), -1)
        # Scaled first: squares may underflow or overflow.
        with np.errstate(divide="ignore", invalid="ignore"):
            ours, theirs = (part / np.abs(part).max(axis=1, keepdims=True) for part in (ours, theirs))
            sizes = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
            found = 1.0 - (ours * theirs).sum(axis=1) / sizes
        is_zero = ~np.abs(actual).any(axis=(1, 2, 3, 4)) | ~np.abs(expected).any(axis=(1, 2, 3, 4))
        return np.where(is_zero, NO_ATTENTION, found)

    def sums(self, maps: np.ndarray, at: Expectation) -> np.ndarray:
        """⟨G, E⟩ and ⟨G, V⟩, |G|, |E|², ⟨E, V⟩ and |V|², where the expected map is E + τ V."""
        ours, start = maps.reshape(len(maps), -1), at.maps.ravel()
        slope = np.zeros(start.shape) if at.slope is None else at.slope.ravel()
        columns = ours @ np.stack([start, slope], axis=1)
        of_cell = np.array([start @ start, start @ slope, slope @ slope])
        sizes = np.sqrt(np.einsum("pi,pi->p", ours, ours))
        return np.column_stack([columns, sizes, np.tile(of_cell, (len(maps), 1))])

    def takes_polynomials(self, norm: Distance) -> bool:
        return True

    def polynomial_count(self, classes: int) -> int:
        return 3

    def add_polynomials(self, sums: Sums, out: np.ndarray) -> None:
        """⟨G, E⟩, |G|² and |E|²."""
        polynomial_sums.add_cosines(sums, out)

    def border(self, forms: "LocalForms", limit: float, error: np.ndarray) -> Border:
        across, ours, theirs = forms.one(0), forms.one(1).roots(), forms.one(2).roots()
        sizes, error = ours.times(theirs), error[:, None]
        # |G| and |E| change by at most the error, ⟨G, E⟩ by as much times the sizes of both.
        off = (error * (ours.most + theirs.most) + error * error) * (1.0 + 1e-9)
        # Kept where γ |G| |E| − ⟨G, E⟩ ≤ 0.
        found = across.plus(sizes, limit - 1.0).widened(2.0 * off).negated()
        least = np.maximum(ours.least - error, 0.0) * np.maximum(theirs.least - error, 0.0) * down(8)
        most = (ours.most + error) * (theirs.most + error) * up(8)
        # With c the cosine in the middle, the loss is 1 − c + (c |G| |E| − ⟨G, E⟩) / (|G| |E|).
        with np.errstate(divide="ignore", invalid="ignore"):
            centre = np.clip(np.nan_to_num(across.value / sizes.value), -1.0, 1.0)
            change = across.plus(sizes, -centre).widened(2.0 * off).negated()
            low = change.least / np.where(change.least >= 0.0, most, least)
            high = change.most / np.where(change.most >= 0.0, least, most)
        reach = np.hstack([1.0 - centre + low, 1.0 - centre + high])
        reach += 8.0 * UNIT * (2.0 + np.abs(reach)) * np.array([-1.0, 1.0])
        is_known = (least > 0.0) & np.isfinite(most) & np.isfinite(reach).all(axis=1, keepdims=True)
        reach = np.where(is_known, np.clip(reach, 0.0, 2.0), [0.0, NO_ATTENTION])
        is_zero = forms.one(1).vanishes & (error == 0.0)
        return Border(found, np.where(is_zero, NO_ATTENTION, reach))

    def polynomial_losses(self, values: np.ndarray) -> np.ndarray:
        across, ours, theirs = values.T
        sizes = np.sqrt(np.maximum(ours, 0.0)) * np.sqrt(np.maximum(theirs, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(sizes == 0.0, NO_ATTENTION, 1.0 - across / sizes)

    def count(self, shape: tuple[int, ...], *, moves: bool) -> int:
        return 6

    def slabs(self, curves: "Inconsistency", taus: np.ndarray, limit: float, error: np.ndarray) -> Slabs:
        reach = self._reach(curves, taus, error[curves.curve])
        nothing = np.array([1.0, 0.0])
        inner = np.where((reach[:, 1] <= limit)[:, None], taus, nothing)
        outer = np.where((reach[:, 0] > limit)[:, None], nothing, taus)
        least = 1.0 - limit
        if not 0.0 <= least <= 1.0:
            return Slabs(inner, outer, reach)
        # Kept where γ|E| − ⟨G, E⟩/|G| ≤ 0: a convex function of τ, the root of a square and a line.
        across, change, size, start, mixed, square = curves.sums.T
        rounding = gamma(curves.terms + 16)
        largest = np.sqrt(start) + np.sqrt(square)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            off = error + MOVED * largest
            margin = 2.0 * off + 2.0 * error / size * (largest + off) + 8.0 * rounding * largest + LEAST
            margin = np.where(size * (1.0 - rounding) > error, margin * (1.0 + 1e-9), np.inf)
            line = np.stack([-across / size, -change / size, np.zeros(len(size))], axis=1)
        line, margin = np.where(np.isfinite(line), line, 0.0), np.where(np.isfinite(line).all(axis=1), margin, np.inf)
        squares = least * least * np.stack([start, -mixed, square], axis=1)[:, None]
        found, ends = np.zeros((len(taus), 4)), np.zeros((len(taus), 2))
        curve_kernels.slabs(
            np.ascontiguousarray(squares), line, np.zeros(len(line) + 1, dtype=np.int64), np.zeros(0), np.zeros(0),
            curves.curve, taus, 0.0, margin, 2.0 * rounding, found, ends,
        )  # fmt: skip
        is_kept, is_lost = ends[:, 1] <= 0.0, ends[:, 0] > 0.0
        has_more = (found[:, 0] <= found[:, 1])[:, None]
        inner = np.where((inner[:, :1] > inner[:, 1:]) & has_more, found[:, :2], inner)
        outer = np.where(outer[:, :1] > outer[:, 1:], outer, found[:, 2:])
        reach[:, 1] = np.where(is_kept, np.minimum(reach[:, 1], limit), reach[:, 1])
        reach[:, 0] = np.where(is_lost, np.maximum(reach[:, 0], np.nextafter(limit, 2.0)), reach[:, 0])
        return Slabs(inner, outer, reach)

    def _reach(self, curves: "Inconsistency", taus: np.ndarray, error: np.ndarray) -> np.ndarray:
        """Bounds (R, 2) on the loss over ranges of τ."""
        across, change, size, start, mixed, square = (part[:, None] for part in curves.sums[curves.curve].T)
        rounding = gamma(curves.terms + 16)
        at = taus[:, :1] + STEPS * (taus[:, 1:] - taus[:, :1])
        largest = (np.sqrt(start) + np.sqrt(square))[:, 0]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            bottom = np.clip(np.where(square > 0.0, -mixed / square, 0.0), taus[:, :1], taus[:, 1:])
            least = (start + 2.0 * mixed * bottom + square * bottom**2)[:, 0] - 4.0 * rounding * largest**2
            expected = np.sqrt(np.maximum(least, 0.0))
            off = error + MOVED * largest
            cosines = (across + change * at) / (size * np.sqrt(start + 2.0 * mixed * at + square * at**2))
            slack = 2.0 * error / size[:, 0] + 2.0 * off / expected
            slack = slack + 16.0 * rounding * (1.0 + (largest / expected) ** 2)
            # Between two steps, the cosine changes by at most half a step times the largest speed of a direction.
            between = np.sqrt(square[:, 0]) / expected * (taus[:, 1] - taus[:, 0]) / (2.0 * (len(STEPS) - 1))
            lowest = np.where((cosines[:, [0, -1]] >= 0.0).all(axis=1), cosines[:, [0, -1]].min(axis=1), -1.0)
            lowest = np.maximum(lowest, cosines.min(axis=1) - between)
            low, high = 1.0 - cosines.max(axis=1) - between - slack, 1.0 - lowest + slack
        is_known = (size[:, 0] * (1.0 - rounding) > error) & (expected > off) & np.isfinite(low) & np.isfinite(high)
        low, high = (
            np.where(is_known, np.maximum(low, 0.0), 0.0),
            np.where(is_known, np.minimum(high, 2.0), NO_ATTENTION),
        )
        is_zero = (size[:, 0] == 0.0) & (error == 0.0)
        return np.stack([np.where(is_zero, NO_ATTENTION, low), high], axis=1)

    def values(self, curves: "Inconsistency", curve: np.ndarray, tau: np.ndarray) -> np.ndarray:
        across, change, size, start, mixed, square = curves.sums[curve].T
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = np.sqrt(np.maximum(start + 2.0 * mixed * tau + square * tau**2, 0.0))
            return np.where(size * expected == 0.0, NO_ATTENTION, 1.0 - (across + change * tau) / (size * expected))

    def enclose(self, maps: "Intervals", expected: Ends, weights: Ends | None, norm: Distance) -> np.ndarray:
        boxes = len(maps.centre)
        low, high = (end.reshape(boxes, -1) for end in maps.ends)
        first, last = (np.broadcast_to(end.reshape(len(end), -1), low.shape) for end in expected)
        terms = low.shape[1] + 16
        with np.errstate(invalid="ignore", over="ignore"):
            products = np.stack([low * first, low * last, high * first, high * last])
            size = np.abs(products).max(axis=0).sum(axis=1)
            least, most = products.min(axis=0).sum(axis=1), products.max(axis=0).sum(axis=1)
            slack = gamma(terms) * size + LEAST
            sizes = [_norm_ends(*ends, terms) for ends in ((low, high), (first, last))]
            smallest, largest = sizes[0][0] * sizes[1][0] * down(4), sizes[0][1] * sizes[1][1] * up(4)
            least, most = least - slack, most + slack
        with np.errstate(divide="ignore", invalid="ignore"):
            lowest = np.where(least >= 0.0, least / largest, least / smallest)
            highest = np.where(most >= 0.0, most / smallest, most / largest)
        lowest, highest = np.maximum(lowest, -1.0) - 8.0 * UNIT, np.minimum(highest, 1.0) + 8.0 * UNIT
        is_known = (smallest > 0.0) & np.isfinite(largest) & np.isfinite(lowest) & np.isfinite(highest)
        found = np.stack([np.maximum(1.0 - highest, 0.0), np.minimum(1.0 - lowest, 2.0)], axis=1)
        found = np.where(is_known[:, None], found, [0.0, NO_ATTENTION])
        is_zero = (low == 0.0).all(axis=1) & (high == 0.0).all(axis=1)
        return np.where(is_zero[:, None], NO_ATTENTION, found)


def _norm_ends(low: np.ndarray, high: np.ndarray, terms: int) -> tuple[np.ndarray, np.ndarray]:
    """Proved bounds (B,) on the norms of vectors between low and high (B, n)."""
    least = np.where((low < 0.0) & (high > 0.0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    most = np.maximum(np.abs(low), np.abs(high))
    return np.sqrt((least**2).sum(axis=1)) * down(terms), np.sqrt((most**2).sum(axis=1)) * up(terms) + LEAST_ROOT
