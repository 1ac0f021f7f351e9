"""Object: at least a share τ of the maps' mass, Σ|map|, lies on the mask."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...errors import OptionError
from ...threshold import Threshold
from ...tolerances import LEAST, UNIT, down, gamma, up
from ...words import ALL_DIGITS, rounded, rounded_down, rounded_up
from .. import polynomial_sums
from ..distances import Distance
from ..polynomial_sums import Sums
from . import (
    NO_ATTENTION,
    WEIGHT_ERROR,
    Border,
    Ends,
    Expectation,
    Measure,
    Slabs,
)
from .enclosing_kernels import mass_ends
from .wording import TOO_LARGE, Clauses, Stated

if TYPE_CHECKING:
    from ..filters import Intervals
    from ..inconsistency import Inconsistency
    from ..polynomials import LocalForms

STOOD = 1e-12
"""Replaces WEIGHT_ERROR where the moved weights leave the mass unchanged: nothing moved, or whole pixels did."""


@dataclass(frozen=True)
class OnObject(Measure):
    """The loss is the share of the mass outside the mask. τ is absolute, or relative to the unperturbed image's share.

    The loss of a map that is zero everywhere is `NO_ATTENTION`.
    """

    name: ClassVar[str] = "object"
    option: ClassVar[str | None] = "tau"
    default: ClassVar[str] = "90%"
    needs_mask: ClassVar[bool] = True
    classes: ClassVar[str] = "predicted"
    uses_expected: ClassVar[bool] = False
    is_quasiconvex: ClassVar[bool] = True
    norm: ClassVar[Distance | None] = Distance.L1
    squares_maps: ClassVar[bool] = False
    polynomial_degree: ClassVar[int] = 1
    marks: ClassVar[tuple[str, ...]] = ("0.5", "50%", "75%", "90%")
    symbol: ClassVar[str] = "τ"
    noun: ClassVar[str] = "mass on the object"
    asks: ClassVar[str] = "is the mass on the object?"
    loss_noun: ClassVar[str] = "off the object"
    threshold_axis: ClassVar[str] = "required share τ of the mass on the object"
    page_form: ClassVar[str] = "percent"
    page_script: ClassVar[str] = """const SgMeasure = {
  loss(actual, expected, weights) {
    let outside = 0, total = 0;
    for (const map of actual) {
      for (let i = 0; i < map.length; i++) {
        const mass = Math.abs(map[i]);
        total += mass;
        outside += mass * (1 - weights[i % weights.length]);
      }
    }
    return total === 0 ? SG_NO_ATTENTION : outside / total;
  },
};"""

    def clauses(self, stated: Stated) -> Clauses:
        share, mass = 100.0 * (1.0 - stated.limit), stated.of_maps("mass")
        # Rounded in the direction that keeps each sentence true.
        least, most = rounded_down(_exact(share)), rounded_up(_exact(share))
        kept = f"at least {least} % of {mass} stays on the object"
        return Clauses(kept, f"less than {most} % of {mass} is on the object")

    def left_text(self, stated: Stated, before: float | None, after: float) -> str:
        mass = stated.of_maps("mass")
        if after > TOO_LARGE:
            return f"{mass} is zero there"
        was = "" if before is None else f"; without perturbation, {self.value_text(before)} is"
        # As many digits as it takes to differ from the threshold.
        limit = self.number(1.0 - stated.limit, ALL_DIGITS)
        left = next((text for d in (4, 6, 8) if (text := self.value_text(after, d)) != limit), f"just below {limit}")
        return f"{left} of {mass} is on the object there{was}"

    def number(self, value: float, digits: int = 4) -> str:
        return f"{rounded(_exact(100.0 * value), digits)} %"

    def threshold_words(self, stated: Stated, digits: int = ALL_DIGITS) -> str:
        if not stated.is_relative:
            return f"{self.number(1.0 - stated.limit, digits)} of the mass"
        share, before = self.number(1.0 - stated.limit), self.number(stated.base)
        return f"{share} of the mass ({stated.percent} of the unperturbed image's {before})"

    def relative_notes(self, stated: Stated) -> tuple[str, ...]:
        if not stated.is_relative:
            return ()
        before, asked = self.number(stated.base, 3), self.number(1.0 - stated.limit, 3)
        return (
            f"{before} of {stated.of_maps('mass')} is on the object at the unperturbed image, so {self.symbol} = "
            f"{stated.percent} requires at least {asked}; an absolute {self.symbol} requires the same of every network",
        )

    def parse_threshold(self, text: str | float) -> Threshold:
        words = str(text).strip()
        try:
            number = float(words.removesuffix("%"))
        except ValueError:
            number = float("nan")
        is_relative = words.endswith("%")
        number = number / 100.0 if is_relative else number
        if not 0.0 < number <= 1.0:
            raise OptionError(
                f"tau {words!r} is not a threshold; expected a share of the mass above 0 and up to 1, such as 0.5, or "
                "a percentage of the unperturbed image's share, such as 90%"
            )
        return Threshold(number, is_relative, self.direction)

    def base(self, original: np.ndarray, weights: np.ndarray | None, norm: Distance) -> float:
        return 1.0 - float(self.losses(original[None], original[None], weights, norm)[0])

    def losses(
        self, actual: np.ndarray, expected: np.ndarray, weights: np.ndarray | None, norm: Distance
    ) -> np.ndarray:
        assert weights is not None
        mass = np.abs(actual).sum(axis=(1, 2))
        outside, total = (mass * (1.0 - weights)).sum(axis=(1, 2)), mass.sum(axis=(1, 2))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(total == 0.0, NO_ATTENTION, outside / total)

    def strayed(self, actual: np.ndarray, expected: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
        """The fewest pixels off the object that hold half of the gain off the object, in shares of the total mass."""
        assert weights is not None
        ours, theirs = (np.abs(maps).sum(axis=(0, 1)) for maps in (actual, expected))
        gained = ours / (ours.sum() or 1.0) - theirs / (theirs.sum() or 1.0)
        gained = np.where(weights < 0.5, np.maximum(gained, 0.0), 0.0)
        order = np.argsort(-gained, axis=None, kind="stable")
        before = np.cumsum(gained.ravel()[order]) - gained.ravel()[order]
        found = np.zeros(gained.size, dtype=bool)
        found[order[(before < 0.5 * gained.sum()) & (gained.ravel()[order] > 0.0)]] = True
        return found.reshape(gained.shape)

    def sums(self, maps: np.ndarray, at: Expectation) -> np.ndarray:
        """The mass outside the mask at τ = 0, its change per unit of τ, and the total mass."""
        assert at.weights is not None
        mass = np.abs(maps).sum(axis=(1, 2)).reshape(len(maps), -1)
        columns = [1.0 - at.weights.ravel(), np.ones(mass.shape[1])]
        columns.insert(1, np.zeros(mass.shape[1]) if at.weight_slope is None else -at.weight_slope.ravel())
        return mass @ np.stack(columns, axis=1)

    def takes_factor(self, norm: Distance) -> bool:
        return True

    def subtracted_maps(self, at: Expectation) -> np.ndarray:
        return np.zeros(at.maps.shape)

    def term_weights(self, at: Expectation) -> np.ndarray:
        assert at.weights is not None
        outside = np.tile(1.0 - at.weights.ravel(), at.maps.shape[1])
        return np.stack([outside, np.ones(len(outside))])

    def largest_loss(self, bound: np.ndarray) -> np.ndarray:
        # If the mass may be zero, so may the attention.
        return np.where(np.isinf(bound), NO_ATTENTION, np.minimum(bound, 1.0))

    def takes_polynomials(self, norm: Distance) -> bool:
        return True

    def polynomial_count(self, classes: int) -> int:
        return 2

    def add_polynomials(self, sums: Sums, out: np.ndarray) -> None:
        """The mass outside the mask, and all mass."""
        assert sums.moved.weights is not None
        outside = -sums.moved.weights
        outside[:, 0] += 1.0
        outside = np.tile(outside, (sums.maps.shape[2] // len(outside), 1))
        polynomial_sums.add_masses(sums, outside, out)
        if outside[:, 1:].any():
            mass = np.abs(out[:, 1, :-1]).sum(axis=1) + out[:, 1, -1]
            out[:, 0, -1] += WEIGHT_ERROR * mass

    def border(self, forms: "LocalForms", limit: float, error: np.ndarray) -> Border:
        outside, mass = forms.one(0), forms.one(1)
        found = outside.plus(mass, -limit).widened((1.0 + limit) * error[:, None])
        least, most = mass.least[:, 0] - error, mass.most[:, 0] + error
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.maximum(outside.least[:, 0] - error, 0.0) / most * down(4)
            high = np.where(least > 0.0, np.maximum(outside.most[:, 0] + error, 0.0) / least * up(4), np.inf)
        reach = np.stack([np.where(low >= 0.0, low, 0.0), self.largest_loss(high)], axis=1)
        is_zero = mass.vanishes[:, 0] & (error == 0.0)
        return Border(found, np.where(is_zero[:, None], NO_ATTENTION, reach))

    def polynomial_losses(self, values: np.ndarray) -> np.ndarray:
        outside, mass = values.T
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(mass == 0.0, NO_ATTENTION, np.maximum(outside, 0.0) / mass)

    def count(self, shape: tuple[int, ...], *, moves: bool) -> int:
        return 3

    def slabs(self, curves: "Inconsistency", taus: np.ndarray, limit: float, error: np.ndarray) -> Slabs:
        outside, change, mass = curves.sums[curves.curve].T
        error = error[curves.curve]
        rounding = gamma(curves.terms + 16)
        # The exact masses differ from the computed ones by the error of the maps and by rounding.
        least = mass * (1.0 - rounding) - error * (1.0 + rounding)
        with np.errstate(divide="ignore", invalid="ignore"):
            slack = np.where(least > 0.0, 2.0 * error / least * (1.0 + 1e-9) + 8.0 * rounding, np.inf)
            slack = slack + np.where(change != 0.0, WEIGHT_ERROR, STOOD)
            loss = (outside[:, None] + taus * change[:, None]) / mass[:, None]
        is_zero = (mass == 0.0) & (error == 0.0)
        loss, slack = np.where(is_zero[:, None], NO_ATTENTION, loss), np.where(is_zero, 0.0, slack)
        return slabs_between(loss - slack[:, None], loss + slack[:, None], taus, limit)

    def values(self, curves: "Inconsistency", curve: np.ndarray, tau: np.ndarray) -> np.ndarray:
        outside, change, mass = curves.sums[curve].T
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(mass == 0.0, NO_ATTENTION, (outside + tau * change) / mass)

    def enclose(self, maps: "Intervals", expected: Ends, weights: Ends | None, norm: Distance) -> np.ndarray:
        assert weights is not None
        boxes, pixels = len(maps.centre), weights[0].shape[1]
        centre, radius = (part.reshape(boxes, -1, pixels) for part in (maps.centre, maps.radius))
        found = np.empty((boxes, 6))
        mass_ends(centre, radius, *weights, gamma(2), found)
        terms = centre.shape[1] * pixels + 8
        least, most = found[:, ::2] * down(terms) - LEAST, found[:, 1::2] * up(terms)
        is_unknown = ~np.isfinite(most).all(axis=1)
        least = np.maximum(least, 0.0)
        most = np.where(most > 0.0, most + LEAST, 0.0)
        (out_least, on_least, all_least), (out_most, on_most, all_most) = least.T, most.T
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.where(out_least > 0.0, out_least / (out_least + on_most) * down(4), 0.0)
            high = np.minimum(out_most / (out_most + on_least) * up(4), 1.0)
        # The map may be zero everywhere (high), or is proved to be (low).
        high = np.where(all_least > 0.0, high, NO_ATTENTION)
        low = np.where(all_most == 0.0, NO_ATTENTION, low)
        return np.stack([np.where(is_unknown, 0.0, low), np.where(is_unknown, NO_ATTENTION, high)], axis=1)


def _exact(percent: float) -> float:
    """A percentage without the rounding errors of its computation."""
    return round(percent, 10)


NOTHING = np.array([1.0, 0.0])
"""An empty interval."""


def slabs_between(low: np.ndarray, high: np.ndarray, taus: np.ndarray, limit: float) -> Slabs:
    """The slabs of losses between two lines, given by their values (R, 2) at the ends of the ranges taus (R, 2).

    Nothing is known about a region with a value that is not finite.

    >>> taus, line = np.array([[0.0, 1.0]]), np.array([[0.25, 0.75]])
    >>> slabs_between(line - 0.25, line + 0.25, taus, 0.5).outer.round(9).tolist()
    [[0.0, 1.0]]
    >>> slabs_between(line, line, taus, 0.5).inner.round(9).tolist()
    [[0.0, 0.5]]
    """
    is_known = np.isfinite(low).all(axis=1) & np.isfinite(high).all(axis=1)
    low, high = np.where(is_known[:, None], low, 0.0), np.where(is_known[:, None], high, NO_ATTENTION)
    inner, outer = _below(high, taus, limit, -1.0), _below(low, taus, limit, 1.0)
    reach = np.stack([np.maximum(low.min(axis=1), 0.0), high.max(axis=1)], axis=1)
    return Slabs(np.where(is_known[:, None], inner, NOTHING), np.where(is_known[:, None], outer, taus), reach)


def _below(values: np.ndarray, taus: np.ndarray, limit: float, side: float) -> np.ndarray:
    """The intervals (R, 2) where lines are at most a limit, rounded outward (side 1) or inward (side −1)."""
    is_below = values <= limit
    first, last = taus.T
    rise = values[:, 1] - values[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip((limit - values[:, 0]) / rise, 0.0, 1.0)
    crossing = first + share * (last - first)
    # Covers the rounding of the share, the product and the sum.
    off = side * 16.0 * UNIT * (np.abs(first) + np.abs(last))
    begins, ends = is_below[:, 0] & ~is_below[:, 1], ~is_below[:, 0] & is_below[:, 1]
    start = np.where(ends, np.clip(crossing - off, first, last), first)
    stop = np.where(begins, np.clip(crossing + off, first, last), last)
    # Inward rounding may leave only an end of the range; the value there is itself at most the limit.
    return np.where((is_below[:, 0] | is_below[:, 1])[:, None], np.stack([start, stop], axis=1), NOTHING)
