"""Properties of attention, one file each: `find_measures` finds every file of this folder that defines a `Measure`.

Every property is a *loss*, a number of at least 0 for each theta: attention is kept where the loss is at most a limit.
A measure has several forms: the plain definition; numbers for each pattern, which determine the loss for any limit and
any error of the maps; an enclosure for boxes; words; and the script for the report's page.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ...errors import OptionError, did_you_mean
from ...threshold import Threshold, ThresholdDirection
from .. import find_kinds
from ..distances import Distance
from ..polynomial_sums import Sums
from .wording import Wording

if TYPE_CHECKING:
    from ..filters import Intervals
    from ..inconsistency import Inconsistency
    from ..masks import Mask
    from ..polynomials import LocalForms

NO_ATTENTION = 3.0
"""The loss of a map that is zero everywhere: no limit allows it. All other losses are at most 2 (a cosine of −1)."""
WEIGHT_ERROR = 1e-10
"""A bound on the error of a moved weight: a few roundings of numbers up to the width of an image of 10⁴ pixels."""
MOVED = 1e-12
"""A bound on the error of a moved map, relative to its size: a few roundings of numbers up to the image's width."""

Ends = tuple[np.ndarray, np.ndarray]


class Slabs(NamedTuple):
    """For R regions: proved kept for τ in inner (R, 2), proved lost outside outer (R, 2); an empty interval is (1, 0).

    reach (R, 2) encloses the loss.
    """

    inner: np.ndarray
    outer: np.ndarray
    reach: np.ndarray


@dataclass(frozen=True, eq=False)
class Expectation:
    """The expected maps (K', C, H, W) and the mask's weights (H, W) at the low end of a knot cell.

    Slopes are changes per unit of θ_T; None if nothing moves. weights is None without a mask.
    """

    maps: np.ndarray
    slope: np.ndarray | None = None
    weights: np.ndarray | None = None
    weight_slope: np.ndarray | None = None


class Border(NamedTuple):
    """On N parts of regions: a function (N, 1) that is above 0 where the loss exceeds a limit, and at most 0 elsewhere.

    It is 0 wherever a map is zero everywhere. reach (N, 2) encloses the loss.
    """

    form: "LocalForms"
    reach: np.ndarray


class Measure(Wording):
    """A property of attention. Frozen: equal measures define the same property.

    name: its word in `--attention`. option: the option for its threshold, None if it has none. default: the default
    threshold. needs_mask: whether it needs a mask. classes: the default classes. uses_expected: whether it depends on
    the expected maps. is_quasiconvex: whether, for every limit below 1 (for distances, every limit), the τ with a loss
    up to the limit form an interval. norm: the norm that bounds errors of maps, None if the question chooses it. marks:
    thresholds for which every summary gives the share of AR. squares_maps: whether its polynomials are sums of products
    of maps, not of absolute values; polynomials_move: whether they allow masks that move; polynomial_degree: their
    degree for maps that are affine in t.
    """

    name: ClassVar[str]
    option: ClassVar[str | None]
    default: ClassVar[str]
    needs_mask: ClassVar[bool] = False
    classes: ClassVar[str] = "all"
    uses_expected: ClassVar[bool] = True
    is_quasiconvex: ClassVar[bool] = False
    norm: ClassVar[Distance | None] = None
    marks: ClassVar[tuple[str, ...]]
    squares_maps: ClassVar[bool] = True
    polynomials_move: ClassVar[bool] = True
    polynomial_degree: ClassVar[int] = 2
    direction: ClassVar[ThresholdDirection] = ThresholdDirection.AT_LEAST

    @staticmethod
    def parse(text: str) -> "Measure":
        """Read the name of a property of attention."""
        known = find_measures()
        if text not in known:
            raise OptionError(
                f"attention {text!r} is not known; expected {', '.join(known)}.{did_you_mean(str(text), known)}"
            )
        return known[text]

    def with_threshold(self, text: str | float) -> tuple["Measure", Threshold]:
        """Read a threshold; the measure changes too if the text sets more than the threshold."""
        return self, self.parse_threshold(text)

    def check_pixels(self, count: int) -> None:
        """Raise OptionError if the measure needs more pixels than the image has."""
        return

    def check_mask(self, mask: "Mask") -> None:
        """Raise OptionError if no map, or every map, keeps the property with this mask."""
        return

    def parse_threshold(self, text: str | float) -> Threshold:
        """Read a threshold above 0 and up to 1; OptionError names the option."""
        words = str(text).strip()
        try:
            number = float(words)
        except ValueError:
            number = float("nan")
        if not 0.0 < number <= 1.0:
            raise OptionError(
                f"{self.option} {words!r} is not a threshold; expected a number above 0 and up to 1, such as 0.9"
            )
        return Threshold(number, False, self.direction)

    def threshold_text(self, threshold: Threshold) -> str | None:
        """The text from which `with_threshold` restores measure and threshold; None if the threshold is fixed."""
        return str(threshold)

    def limit(self, threshold: Threshold, base: float) -> float:
        """The largest loss at which the attention is kept; relative thresholds are shares of `base`."""
        return 1.0 - threshold.value(base)

    def threshold_at(self, limit: float, base: float) -> float:
        """The absolute threshold, in its own unit, that corresponds to a limit."""
        return 1.0 - limit

    def slider(self, threshold: Threshold) -> tuple[Threshold, ...]:
        """Thresholds for which a report shows the map, from strict to lax; none if the report chooses them itself."""
        return tuple(Threshold(round(number / 100.0, 2), False, self.direction) for number in range(100, 0, -1))

    def base(self, original: np.ndarray, weights: np.ndarray | None, norm: Distance) -> float:
        """The base of relative thresholds, from the filtered maps (K', C, H, W) of the unperturbed image."""
        return 1.0

    @abstractmethod
    def losses(
        self, actual: np.ndarray, expected: np.ndarray, weights: np.ndarray | None, norm: Distance
    ) -> np.ndarray:
        """The losses (B,) of filtered maps (B, K', C, H, W): the definition, and the reference for every other form.

        expected (B or 1, K', C, H, W): the expected maps; weights (B or 1, H, W): the mask.
        """

    @property
    def tells_strayed(self) -> bool:
        """Whether `strayed` returns pixels."""
        return type(self).strayed is not Measure.strayed

    def strayed(self, actual: np.ndarray, expected: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
        """The pixels (H, W) to which the attention of maps (K', C, H, W) has strayed.

        None if the property does not locate attention.
        """
        return None

    @abstractmethod
    def sums(self, maps: np.ndarray, at: Expectation) -> np.ndarray:
        """Numbers (P, S) that determine the losses of filtered maps (P, K', C, H, W) in a knot cell."""

    def cell_facts(self, at: Expectation) -> Any:
        """Data about a knot cell that `slabs` and `values` need in addition to the sums."""
        return None

    def takes_factor(self, norm: Distance) -> bool:
        """Whether losses of gradients times the image are ratios of affine functions on a region (see `factored`).

        `subtracted_maps` and `term_weights` then define these functions. Requires that expected maps do not move.
        """
        return False

    def subtracted_maps(self, at: Expectation) -> np.ndarray:
        """The maps (K', C, H, W) that the loss subtracts from filtered gradients; the expected ones are gradients, too.

        For every pixel and channel, it multiplies the sum of the absolute differences by the distance from the
        baseline.
        """
        raise NotImplementedError(f"losses of {self.name} are not affine on regions")

    def term_weights(self, at: Expectation) -> np.ndarray:
        """Non-negative weights (2, pixels) of these products: the loss is the first weighted sum divided by the second.

        A single row means that the loss is the first sum itself.
        """
        raise NotImplementedError(f"losses of {self.name} are not affine on regions")

    def largest_loss(self, bound: np.ndarray) -> np.ndarray:
        """The largest losses that upper bounds (N,) on the ratio allow; a bound is infinite if the divisor may be 0."""
        return bound

    def takes_polynomials(self, norm: Distance) -> bool:
        """Whether losses are functions of a few polynomials, if the actual or the expected maps are affine in t.

        Then `add_polynomials`, `border` and `polynomial_losses` say which.
        """
        return False

    def polynomial_count(self, classes: int) -> int:
        """The number of polynomials for so many classes."""
        raise NotImplementedError(f"losses of {self.name} are no functions of polynomials")

    def add_polynomials(self, sums: Sums, out: np.ndarray) -> None:
        """Write the polynomials of N regions to out (N, k, M+1): coefficients, and bounds on their errors."""
        raise NotImplementedError(f"losses of {self.name} are no functions of polynomials")

    def border(self, forms: "LocalForms", limit: float, error: np.ndarray) -> Border:
        """Where the loss is at most a limit, from the polynomials on N parts; error (N,) bounds that of the maps."""
        raise NotImplementedError(f"losses of {self.name} are no functions of polynomials")

    def polynomial_losses(self, values: np.ndarray) -> np.ndarray:
        """The losses (N,) that follow from the values (N, k) of the polynomials, up to rounding."""
        raise NotImplementedError(f"losses of {self.name} are no functions of polynomials")

    @abstractmethod
    def count(self, shape: tuple[int, ...], *, moves: bool) -> int:
        """The number of columns of `sums` for images of a shape (C, H, W)."""

    @abstractmethod
    def slabs(self, curves: "Inconsistency", taus: np.ndarray, limit: float, error: np.ndarray) -> Slabs:
        """Find where the loss is at most a limit on regions with ranges taus (R, 2); error (Q,) bounds errors of maps.

        Holds over the real numbers, whatever the rounding of the sums.
        """

    @abstractmethod
    def values(self, curves: "Inconsistency", curve: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """The losses (N,) of given curves (N,) at τ (N,), up to rounding."""

    @abstractmethod
    def enclose(self, maps: "Intervals", expected: Ends, weights: Ends | None, norm: Distance) -> np.ndarray:
        """Proved bounds (B, 2) on the loss over boxes, given intervals of the filtered maps (B, K', C, H, W).

        expected: lower and upper ends of the expected maps, each (B or 1, K', pixels). weights: those of the mask, each
        (B or 1, pixels).
        """

    def slack(self, curves: "Inconsistency", curve: int, taus: np.ndarray, error: float) -> float:
        """How much errors of the maps can change the losses of one curve on a range of τ (2,), without rounding."""
        both = replace(curves, curve=np.full(2, curve))
        ends = np.repeat(taus[:, None], 2, axis=1)
        reaches = (self.slabs(both, ends, 0.0, np.full(len(curves.curve_cell), one)).reach for one in (error, 0.0))
        wide, narrow = (reach[:, 1] - reach[:, 0] for reach in reaches)
        return float(0.5 * np.maximum(wide - narrow, 0.0).max())


@cache
def find_measures() -> dict[str, Measure]:
    """Every measure of this folder by its name, in alphabetical order.

    >>> "distance" in find_measures()
    True
    """
    return find_kinds(__path__, __name__, Measure)  # type: ignore[type-abstract]
