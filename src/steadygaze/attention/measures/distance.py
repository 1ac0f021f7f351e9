"""Distance, the paper's property: the maps stay close to the expected maps, Σ_j dist(map_j, expected_j) ≤ δ."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...threshold import Threshold, ThresholdDirection
from ...tolerances import LEAST_ROOT, down, gamma, up
from ...words import ALL_DIGITS, comparison, rounded
from .. import curve_kernels, polynomial_sums
from ..distances import Distance
from ..polynomial_sums import Sums
from . import Border, Ends, Expectation, Measure, Slabs
from .enclosing_kernels import map_distances
from .wording import Clauses, Stated

if TYPE_CHECKING:
    from ..filters import Intervals
    from ..inconsistency import Inconsistency
    from ..polynomials import LocalForms


@dataclass(frozen=True)
class Inconsistent(Measure):
    """The loss is the inconsistency ai itself; δ is absolute, or relative to the size of the original maps.

    Its curves have their own form (see `inconsistency`), so `sums` is never called.
    """

    name: ClassVar[str] = "distance"
    option: ClassVar[str | None] = "delta"
    default: ClassVar[str] = "25%"
    is_quasiconvex: ClassVar[bool] = True
    marks: ClassVar[tuple[str, ...]] = ("10%", "25%", "50%", "100%")
    direction: ClassVar[ThresholdDirection] = ThresholdDirection.AT_MOST
    symbol: ClassVar[str] = "δ"
    noun: ClassVar[str] = "inconsistency"
    asks: ClassVar[str] = "is the map as expected?"
    loss_noun: ClassVar[str] = "inconsistency"
    threshold_axis: ClassVar[str] = "allowed difference δ of the attention maps"
    page_form: ClassVar[str] = "distance"
    page_script: ClassVar[str] = """const SgMeasure = {
  loss(actual, expected, weights, facts) {
    return actual.reduce((sum, map, k) => sum + SgMaps.size(SgMaps.minus(map, expected[k]), facts.distance), 0);
  },
};"""

    @property
    def loss_limit(self) -> str:
        return self.symbol

    @property
    def short(self) -> Clauses:
        return Clauses("differs by ≤ δ", "differs by more")

    def clauses(self, stated: Stated) -> Clauses:
        differ = "the attention maps differ from the expected ones by"
        allowed = f"the allowed distance of {rounded(stated.limit, ALL_DIGITS)}"
        if stated.is_relative:
            allowed = f"the allowed {stated.percent} of the original maps' size"
        return Clauses(f"{differ} at most {allowed}", f"{differ} more than {allowed}")

    def threshold_words(self, stated: Stated, digits: int = ALL_DIGITS) -> str:
        if stated.is_relative:
            value, size = (rounded(number, min(digits, 5)) for number in (stated.limit, stated.base))
            return f"{value} ({stated.percent} of the original maps' size {size})"
        return rounded(stated.limit, digits)

    def kept_row(self, stated: Stated) -> str:
        return f"{self.short.kept} = {rounded(stated.limit, 4)}"

    def value_text(self, loss: float, digits: int = 4) -> str:
        return "unknown" if np.isnan(loss) else rounded(loss, digits)

    def compared(self, loss: float, limit: float) -> str:
        return comparison(loss, limit)

    def slider(self, threshold: Threshold) -> tuple[Threshold, ...]:
        return ()

    def parse_threshold(self, text: str | float) -> Threshold:
        return Threshold.parse(text)

    def limit(self, threshold: Threshold, base: float) -> float:
        return threshold.value(base)

    def threshold_at(self, limit: float, base: float) -> float:
        return limit

    def base(self, original: np.ndarray, weights: np.ndarray | None, norm: Distance) -> float:
        return float(sum(norm.size(part) for part in original))

    def losses(
        self, actual: np.ndarray, expected: np.ndarray, weights: np.ndarray | None, norm: Distance
    ) -> np.ndarray:
        return np.array([float(sum(norm.size(part) for part in maps)) for maps in actual - expected])

    def sums(self, maps: np.ndarray, at: Expectation) -> np.ndarray:
        raise NotImplementedError("distances have no sums: `inconsistency` computes their curves")

    def takes_factor(self, norm: Distance) -> bool:
        return norm is Distance.L1

    def subtracted_maps(self, at: Expectation) -> np.ndarray:
        return at.maps

    def term_weights(self, at: Expectation) -> np.ndarray:
        return np.ones((1, at.maps[0].size))

    def takes_polynomials(self, norm: Distance) -> bool:
        return norm is Distance.L2

    def polynomial_count(self, classes: int) -> int:
        return classes

    def add_polynomials(self, sums: Sums, out: np.ndarray) -> None:
        """The square of the distance of every class."""
        polynomial_sums.add_distances(sums, out)

    def border(self, forms: "LocalForms", limit: float, error: np.ndarray) -> Border:
        found = forms.roots().total().widened(error[:, None])
        reach = np.stack([np.maximum(found.least[:, 0], 0.0), found.most[:, 0]], axis=1)
        return Border(found.less(limit), reach)

    def polynomial_losses(self, values: np.ndarray) -> np.ndarray:
        return np.sqrt(np.maximum(values, 0.0)).sum(axis=1)

    def count(self, shape: tuple[int, ...], *, moves: bool) -> int:
        return 0

    def slabs(self, curves: "Inconsistency", taus: np.ndarray, limit: float, error: np.ndarray) -> Slabs:
        count = len(curves.curve)
        if not curves.moves:
            value, doubt = curves.constant[curves.curve], error[curves.curve]
            reach = np.stack([value - doubt, value + doubt], axis=1)
            whole, nothing = taus, np.broadcast_to([1.0, 0.0], (count, 2))
            inner = np.where((reach[:, 1] <= limit)[:, None], whole, nothing)
            outer = np.where((reach[:, 0] > limit)[:, None], nothing, whole)
            return Slabs(inner, outer, reach)
        out, reach = np.zeros((count, 4)), np.zeros((count, 2))
        curve_kernels.slabs(
            curves.quadratic, curves.start, curves.breaks, curves.places, curves.jumps,
            curves.curve, taus, limit, error, curves.rounding, out, reach,
        )  # fmt: skip
        return Slabs(out[:, :2], out[:, 2:], reach)

    def values(self, curves: "Inconsistency", curve: np.ndarray, tau: np.ndarray) -> np.ndarray:
        if not curves.moves:
            return curves.constant[curve]
        if len(curves.quadratic):
            alpha, beta, gamma = np.moveaxis(curves.quadratic[curve], 2, 0)
            squares = alpha - 2.0 * beta * tau[:, None] + gamma * tau[:, None] ** 2
            return np.sqrt(np.maximum(squares, 0.0)).sum(axis=1)
        none = np.zeros((0, 3))
        values = np.empty(len(tau))
        for place, (number, at) in enumerate(zip(curve, tau, strict=True)):
            part = slice(curves.breaks[number], curves.breaks[number + 1])
            values[place] = curve_kernels.curve_value(
                none, curves.start[number], curves.places[part], curves.jumps[part], at, curves.rounding
            )[0]
        return values

    def slack(self, curves: "Inconsistency", curve: int, taus: np.ndarray, error: float) -> float:
        return error

    def enclose(self, maps: "Intervals", expected: Ends, weights: Ends | None, norm: Distance) -> np.ndarray:
        boxes, classes = maps.centre.shape[:2]
        centre, radius = (part.reshape(boxes, classes, -1) for part in (maps.centre, maps.radius))
        sums = np.empty((boxes, classes, 2))
        map_distances(centre, radius, *expected, gamma(2), norm.value, sums)
        if norm is Distance.L2:
            # A sum of squares that overflowed gives no lower bound.
            sums[:, :, 0] = np.where(np.isfinite(sums[:, :, 0]), sums[:, :, 0], 0.0)
            sums = np.sqrt(sums)
        lower, upper = sums.sum(axis=1).T
        terms, tiny = classes + centre.shape[2] + 8, classes * LEAST_ROOT
        least, most = np.maximum(lower * down(terms) - tiny, 0.0), upper * up(terms) + tiny
        # If maps and expected maps are exactly zero, so is the distance; otherwise a zero sum may be an underflow.
        for box in np.flatnonzero(upper == 0.0) if not any(end.any() for end in expected) else ():
            most[box] = tiny if centre[box].any() or radius[box].any() else 0.0
        # After an overflow, nothing is known.
        return np.stack([np.where(np.isfinite(least), least, 0.0), np.where(np.isnan(most), np.inf, most)], axis=1)


DISTANCE = Inconsistent()
