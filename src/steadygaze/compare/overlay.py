"""Two tilings of one domain → the shares where both keep a property, only one of them, or neither.

With one and two parameters the pieces are overlaid, and areas are exact up to rounding. With more, the shares of the
two results give bounds that hold wherever the parts lie.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..compiling import compiled
from ..labels import Kept, Label, Property
from ..polytopes.polygon_kernels import shared_area
from ..polytopes.protocol import join_rows, join_starts
from ..properties.joint import Shares
from ..results.delta_answer import Block
from ..results.result import Result
from ..tolerances import AREA, UNIT

Bounds = tuple[float, float]

COMBINATIONS = {
    "both": (Kept.YES, Kept.YES),
    "first": (Kept.YES, Kept.NO),
    "second": (Kept.NO, Kept.YES),
    "neither": (Kept.NO, Kept.NO),
}
"""Who keeps a property, and the codes of the two results there."""

LARGEST_SIDE = 1024  # side of the grid that finds overlapping pieces: a million squares


@dataclass(frozen=True, eq=False)
class ResultOverlay:
    """Shares of the domain by the codes of two results.

    cells (3, 3): areas by `Kept` codes of the first and of the second result. doubt (2, 3, 3): bounds of the parts of
    each area too close to a threshold of the first and of the second result. `missing`: the share that one of them did
    not reach. `kinks`: the share on kinks of either, where the attention may differ.
    """

    cells: np.ndarray
    doubt: np.ndarray
    missing: float
    kinks: float = 0.0

    def bounds(self, first: Kept, second: Kept) -> Bounds:
        """Lower and upper bound of the share where the first result has one code and the second the other."""
        may_be_first = np.isin(np.arange(3), (first, Kept.UNKNOWN))[:, None]
        may_be_second = np.isin(np.arange(3), (second, Kept.UNKNOWN))[None]
        # A part that is doubtful in one result only keeps its code in the other.
        in_doubt = np.select([may_be_second, may_be_first], self.doubt, self.doubt.min(axis=0))
        low = float(self.cells[first, second] - self.doubt[:, first, second].sum())
        high = float(np.where(may_be_first & may_be_second, self.cells, in_doubt).sum()) + self.missing
        # The whole domain and none of it are exactly 1 and 0, despite the rounding of the sum.
        total = float(self.cells.sum()) + self.missing
        # Rounding may open a gap between two borders on one line; it does not count.
        low, high = (1.0 if low >= total else low if low > AREA else 0.0), (1.0 if high >= total else high)
        return max(0.0, low - self.kinks), min(1.0, high + self.kinks)

    @property
    def undecided(self) -> float:
        """An upper bound of the share that one of the two leaves undecided."""
        is_open = np.zeros((3, 3), dtype=bool)
        is_open[Kept.UNKNOWN] = is_open[:, Kept.UNKNOWN] = True
        open_cells = np.where(is_open, self.cells, np.minimum(self.doubt.sum(axis=0), self.cells))
        return min(1.0, float(open_cells.sum()) + self.missing + self.kinks)

    def shares(self) -> dict[str, Bounds]:
        """Bounds of all combinations, and of the undecided share."""
        named = {name: self.bounds(*codes) for name, codes in COMBINATIONS.items()}
        return named | {Label.UNDECIDED: (self.undecided, self.undecided)}


def lay_over(first: Result, second: Result, wanted: Property) -> ResultOverlay:
    """Overlay the pieces of two results on the same domain of one or two parameters.

    The larger one of two maps in chunks passes block by block; of the other, all outlines are held.

    The areas of all combinations add up to the domain, those of one result's codes to its own areas, up to the gaps
    that rounding leaves between pieces.
    """
    if second.answer.is_in_chunks and second.tiling.region_count > first.tiling.region_count:
        turned = lay_over(second, first, wanted)
        return replace(turned, cells=turned.cells.T, doubt=turned.doubt[::-1].transpose(0, 2, 1))
    held = _join([_tiling(block, wanted) for block in second.answer.blocks()])
    side = int(np.clip(np.sqrt(len(held[-1])), 1, LARGEST_SIDE))
    starts, members = _grid(held, side)
    cells, doubt = np.zeros((3, 3)), np.zeros((2, 3, 3))
    for block in first.answer.blocks():
        _add_shared_areas(_tiling(block, wanted), held, side, starts, members, cells, doubt)
    missing = 1.0 - float(cells.sum())
    is_partial = any(_is_partial(result) for result in (first, second))
    kinks = 0.0 if wanted is Property.CR else sum(result.sliver_share or 0.0 for result in (first, second))
    return ResultOverlay(cells, doubt, max(missing, UNIT) if is_partial or missing > AREA else 0.0, kinks)


def combine(first: Shares, second: Shares, wanted: Property) -> dict[str, Bounds]:
    """Bounds of the combinations from the shares of two results, wherever their parts lie in the domain.

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
    return named | {Label.UNDECIDED: (undecided, undecided)}


def kept_share(shares: Shares, wanted: Property) -> Bounds:
    """Bounds of the share where a property holds."""
    label = None if wanted is Property.AR else Kept.YES
    attention = None if wanted is Property.CR else Kept.YES
    return shares.bounds(label, attention)


def lost_share(shares: Shares, wanted: Property) -> Bounds:
    """Bounds of the share where a property is violated; `both` is violated where one of the two is."""
    if wanted is not Property.BOTH:
        return shares.bounds(*((Kept.NO, None) if wanted is Property.CR else (None, Kept.NO)))
    cells = np.array(shares.cells)
    total = float(cells.sum())
    low = float(cells[Kept.NO].sum() + cells[: Kept.NO, Kept.NO].sum())
    high = total - float(cells[Kept.YES, Kept.YES]) if cells[Kept.YES, Kept.YES] > 0.0 else total
    low, high = (1.0 if low == total else min(low, 1.0)), (1.0 if high == total else min(max(high, low), 1.0))
    # If the label is lost, kinks change nothing.
    return max(float(cells[Kept.NO].sum()), low - shares.slivers, 0.0), min(1.0, high + shares.slivers)


def _tiling(block: Block, wanted: Property) -> tuple[np.ndarray, ...]:
    """The arrays of pieces for the loops: vertices, starts, bounding boxes, codes and strips."""
    polygons, (codes, strips) = block.joint.polytopes, block.joint.kept(wanted)
    x, y = np.ascontiguousarray(polygons.points.T)
    ends = [np.ascontiguousarray(end) for axis in (0, 1) for end in polygons.extent(axis)]
    # An undecided piece has no strip of its own.
    strips = np.where(codes == Kept.UNKNOWN, 0.0, strips)
    return x, y, polygons.starts.astype(np.int64), *ends, codes.astype(np.int64), strips


def _join(tilings: list[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
    """The arrays of several blocks as one; empties the list along the way to save memory."""
    if len(tilings) == 1:
        return tilings[0]
    x, y, starts, *columns = map(list, zip(*tilings, strict=True))
    tilings.clear()
    return join_rows(x), join_rows(y), join_starts(starts), *map(join_rows, columns)


def _grid(tiling: tuple[np.ndarray, ...], side: int) -> tuple[np.ndarray, np.ndarray]:
    """The polygons that may meet each square of a grid: starts (side² + 1,) and members."""
    boxes = tiling[3:7]
    counts = np.zeros(side * side + 1, dtype=np.int64)
    nothing = np.zeros(0, dtype=np.int64)
    _fill_grid(*boxes, side, counts, nothing, True)
    starts = np.cumsum(counts)
    members = np.zeros(int(starts[-1]), dtype=np.int64)
    _fill_grid(*boxes, side, starts[:-1].copy(), members, False)
    return starts, members


def _is_partial(result: Result) -> bool:
    regions = result.tiling.exact_regions
    if regions is None:
        return result.tiling.kind == "map" and not result.is_complete
    return regions.stopped is not None


@compiled
def _square(at: float, side: int) -> int:
    """The row or column of the grid that a coordinate of the unit square lies in."""
    return min(max(int(at * side), 0), side - 1)


@compiled
def _fill_grid(
    low_x: np.ndarray, high_x: np.ndarray, low_y: np.ndarray, high_y: np.ndarray, side: int, starts: np.ndarray,
    members: np.ndarray, is_counting: bool
) -> None:  # fmt: skip
    """Enter every polygon into all squares of a side × side grid that its bounding box meets.

    With `is_counting` only their number is added to starts[square + 1]; otherwise they are written to `members`, and
    starts[square] moves on to the end of the square's part.
    """
    for p in range(low_x.shape[0]):
        for row in range(_square(low_y[p], side), _square(high_y[p], side) + 1):
            for column in range(_square(low_x[p], side), _square(high_x[p], side) + 1):
                square = row * side + column
                if is_counting:
                    starts[square + 1] += 1
                else:
                    members[starts[square]] = p
                    starts[square] += 1


@compiled
def _add_shared_areas(
    first: tuple[np.ndarray, ...], second: tuple[np.ndarray, ...], side: int, starts: np.ndarray, members: np.ndarray,
    cells: np.ndarray, doubt: np.ndarray
) -> None:  # fmt: skip
    """Add the common areas of all pairs to cells (3, 3) by their codes, and the parts in doubt to doubt (2, 3, 3).

    first and second are (x, y, starts, low_x, high_x, low_y, high_y, code, strip) of two tilings of the unit square;
    starts and members hold the second one in a grid. The strip of a polygon may lie anywhere in it, so as much of it as
    fits counts as doubtful in every pair.
    """
    x, y, ends, low_x, high_x, low_y, high_y, code, strip = first
    u, v, other_ends, low_u, high_u, low_v, high_v, other_code, other_strip = second
    for p in range(code.shape[0]):
        for row in range(_square(low_y[p], side), _square(high_y[p], side) + 1):
            for column in range(_square(low_x[p], side), _square(high_x[p], side) + 1):
                square = row * side + column
                for place in range(starts[square], starts[square + 1]):
                    q = members[place]
                    corner_x, corner_y = max(low_x[p], low_u[q]), max(low_y[p], low_v[q])
                    if corner_x >= min(high_x[p], high_u[q]) or corner_y >= min(high_y[p], high_v[q]):
                        continue
                    # A pair meets in many squares; it counts in the square of the lower left corner of its overlap.
                    if _square(corner_x, side) != column or _square(corner_y, side) != row:
                        continue
                    area = shared_area(
                        x, y, ends[p], ends[p + 1] - ends[p],
                        u, v, other_ends[q], other_ends[q + 1] - other_ends[q], min(low_y[p], low_v[q])
                    )  # fmt: skip
                    area = max(area, 0.0)
                    cells[code[p], other_code[q]] += area
                    doubt[0, code[p], other_code[q]] += min(area, strip[p])
                    doubt[1, code[p], other_code[q]] += min(area, other_strip[q])
