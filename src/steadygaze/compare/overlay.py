"""From two tilings of one domain to the shares of their combinations: where both keep a property, one of them, neither.

With one and two parameters the pieces are laid over each other, and areas are exact up to rounding. With more, only the
two results' own shares are combined: bounds that hold however their parts lie to each other.
"""

from dataclasses import dataclass

import numpy as np

from ..properties.joint import Kept, Shares
from ..regions.region import Polygons
from ..results.domain_result import DomainResult
from ..tolerances import AREA, UNIT
from ..verdict import Property
from . import kernels

Bounds = tuple[float, float]

COMBINATIONS = {
    "both": (Kept.YES, Kept.YES),
    "first": (Kept.YES, Kept.NO),
    "second": (Kept.NO, Kept.YES),
    "neither": (Kept.NO, Kept.NO),
}
"""Who keeps a property, and the codes of the two results there."""

LARGEST_SIDE = 1024
"""Of the grid that finds the pieces that may meet: a million squares."""


@dataclass(frozen=True, eq=False)
class Overlay:
    """Shares of the domain by the codes of two results.

    cells (3, 3) are the areas by `Kept` codes of the first and of the second result; doubt (2, 3, 3) bounds what of
    each is within the error of a threshold of the one and of the other; `missing` is what one of them did not reach;
    `kinks` is what lies on kinks of either, where attention may be another one.
    """

    cells: np.ndarray
    doubt: np.ndarray
    missing: float
    kinks: float = 0.0

    def bounds(self, first: Kept, second: Kept) -> Bounds:
        """Lower and upper bound of the share where the first result has one code and the second the other."""
        may_be_first = np.isin(np.arange(3), (first, Kept.UNKNOWN))[:, None]
        may_be_second = np.isin(np.arange(3), (second, Kept.UNKNOWN))[None]
        # What is doubtful in one result alone stays what it is in the other.
        in_doubt = np.select([may_be_second, may_be_first], self.doubt, self.doubt.min(axis=0))
        low = float(self.cells[first, second] - self.doubt[:, first, second].sum())
        high = float(np.where(may_be_first & may_be_second, self.cells, in_doubt).sum()) + self.missing
        # Everything or nothing is said exactly, whatever the rounding of the sum.
        total = float(self.cells.sum()) + self.missing
        # Two borders that are the same line may be apart by rounding; what lies between them is not there.
        low, high = (1.0 if low >= total else low if low > AREA else 0.0), (1.0 if high >= total else high)
        return max(0.0, low - self.kinks), min(1.0, high + self.kinks)

    @property
    def undecided(self) -> float:
        """An upper bound of the share that is not decided for one of the two."""
        is_open = np.zeros((3, 3), dtype=bool)
        is_open[Kept.UNKNOWN] = is_open[:, Kept.UNKNOWN] = True
        open_cells = np.where(is_open, self.cells, np.minimum(self.doubt.sum(axis=0), self.cells))
        return min(1.0, float(open_cells.sum()) + self.missing + self.kinks)

    def shares(self) -> dict[str, Bounds]:
        """Bounds of all combinations, and of what is undecided."""
        named = {name: self.bounds(*codes) for name, codes in COMBINATIONS.items()}
        return named | {"undecided": (self.undecided, self.undecided)}


def lay_over(first: DomainResult, second: DomainResult, wanted: Property) -> Overlay:
    """Lay the pieces of two results on the same domain of one or two parameters over each other.

    The areas of all combinations add up to the domain, and those of one result's codes to its own areas, up to the gaps
    that rounding leaves between pieces.
    """
    tilings = [_tiling(result, wanted) for result in (first, second)]
    side = int(np.clip(np.sqrt(len(tilings[1][-1])), 1, LARGEST_SIDE))
    starts, members = _grid(tilings[1], side)
    cells, doubt = np.zeros((3, 3)), np.zeros((2, 3, 3))
    kernels.add_shared_areas(tilings[0], tilings[1], side, starts, members, cells, doubt)
    missing = 1.0 - float(cells.sum())
    is_partial = any(_is_partial(result) for result in (first, second))
    kinks = 0.0 if wanted is Property.CR else sum(result.sliver_share for result in (first, second))
    return Overlay(cells, doubt, max(missing, UNIT) if is_partial or missing > AREA else 0.0, kinks)


def combine(first: Shares, second: Shares, wanted: Property) -> dict[str, Bounds]:
    """Bounds of the combinations from the shares of two results alone, wherever their parts lie in the domain.

    >>> sure = Shares(((1.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
    >>> half = Shares(((0.5, 0.0, 0.5), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
    >>> combine(sure, half, Property.AR)["first"], combine(half, half, Property.AR)["first"]
    ((0.5, 0.5), (0.0, 0.5))
    """
    own = [{Kept.YES: kept_share(shares, wanted), Kept.NO: lost_share(shares, wanted)} for shares in (first, second)]
    named = {}
    for name, codes in COMBINATIONS.items():
        (low, high), (other_low, other_high) = (shares[code] for shares, code in zip(own, codes, strict=True))
        named[name] = max(0.0, low + other_low - 1.0), min(high, other_high)
    spans = [max(0.0, shares[Kept.YES][1] - shares[Kept.YES][0]) for shares in own]
    undecided = min(1.0, sum(spans))
    return named | {"undecided": (undecided, undecided)}


def kept_share(shares: Shares, wanted: Property) -> Bounds:
    """Bounds of the share where a property holds."""
    label = None if wanted is Property.AR else Kept.YES
    attention = None if wanted is Property.CR else Kept.YES
    return shares.bounds(label, attention)


def lost_share(shares: Shares, wanted: Property) -> Bounds:
    """Bounds of the share where a property does not hold: of both, where one of them does not."""
    if wanted is not Property.BOTH:
        return shares.bounds(*((Kept.NO, None) if wanted is Property.CR else (None, Kept.NO)))
    cells = np.array(shares.cells)
    total = float(cells.sum())
    low = float(cells[Kept.NO].sum() + cells[: Kept.NO, Kept.NO].sum())
    high = total - float(cells[Kept.YES, Kept.YES]) if cells[Kept.YES, Kept.YES] > 0.0 else total
    low, high = (1.0 if low == total else min(low, 1.0)), (1.0 if high == total else min(max(high, low), 1.0))
    # Where the label is lost, kinks change nothing.
    return max(float(cells[Kept.NO].sum()), low - shares.slivers, 0.0), min(1.0, high + shares.slivers)


def _tiling(result: DomainResult, wanted: Property) -> tuple[np.ndarray, ...]:
    """What the loops take of a result: vertices, starts, bounding boxes, codes and strips of its pieces."""
    joint = result.answer.joint
    polygons, (codes, strips) = joint.polytopes, joint.kept(wanted)
    assert isinstance(polygons, Polygons)
    x, y = np.ascontiguousarray(polygons.points.T)
    ends = [np.ascontiguousarray(end) for axis in (0, 1) for end in polygons.extent(axis)]
    # What is not decided at all has no strip beside that.
    strips = np.where(codes == Kept.UNKNOWN, 0.0, strips)
    return x, y, polygons.starts.astype(np.int64), *ends, codes.astype(np.int64), strips


def _grid(tiling: tuple[np.ndarray, ...], side: int) -> tuple[np.ndarray, np.ndarray]:
    """The polygons that may meet each square of a grid: starts (side² + 1,) and members."""
    boxes = tiling[3:7]
    counts = np.zeros(side * side + 1, dtype=np.int64)
    nothing = np.zeros(0, dtype=np.int64)
    kernels.fill_grid(*boxes, side, counts, nothing, True)
    starts = np.cumsum(counts)
    members = np.zeros(int(starts[-1]), dtype=np.int64)
    kernels.fill_grid(*boxes, side, starts[:-1].copy(), members, False)
    return starts, members


def _is_partial(result: DomainResult) -> bool:
    return result.exact_regions is not None and result.exact_regions.stopped is not None
