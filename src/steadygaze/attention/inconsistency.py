"""The loss of attention on each region, as numbers and curves from which any threshold can be answered later.

A loss depends only on the classifier's pattern, the knot cell and τ = θ_T − (low end of the cell). The loss of the
distance is the inconsistency ai. If the expected map is kept, ai is one number. If it moves, ai is a convex function of
τ: Σ_j √(α_j − 2 β_j τ + γ_j τ²) for L2, a broken line for L1. The losses of the other measures follow from a few sums.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compound import Compound
from ..lazily import is_sparse
from ..network.graph import Chain
from ..perturbation import KnotCell
from ..polytopes.protocol import join_rows
from ..regions.patterns import PatternTable, unpack
from ..regions.region import RegionSet
from ..tolerances import UNIT
from . import curve_kernels as kernels
from .distances import Distance
from .filters import IDENTITY
from .gradients import AimedChain, gradient_maps, maps_under
from .measures import Expectation, Measure
from .measures.distance import DISTANCE
from .methods import GradientMethod
from .options import AttentionOptions
from .rows import Maps, blank_maps, compress, lay_out

if TYPE_CHECKING:
    from .enclosed import NumberShape

# How many blocks of patterns to aim for, and their sizes. A thread computes a block in a row, its first pattern from
# scratch.
BLOCKS, SMALLEST_BLOCK, LARGEST_BLOCK = 16, 1024, 2048
TAKEN = 200_000  # map values passed on at once, but at least one batch
BATCH = 32  # patterns per matrix product: few enough to stay in the cache
WORTH_COMPRESSING = 128  # number of patterns from which compression pays (one QR decomposition, milliseconds)
BREAKPOINT_ROOM = 1 << 20


@dataclass(frozen=True, eq=False)
class Inconsistency:
    """The loss of every region, as a function of τ.

    curve (R,): the curve (of Q) of each region; curve_cell (Q,): its knot cell; curve_pattern (Q,): its pattern.
    constant (Q,): ai if the expected map does not move. quadratic (Q, K, 3): α, β, γ of each class (L2, moving maps).
    L1 and moving maps: start (Q, 3) holds value, slope and τ where a curve begins; its breakpoints, ascending, are
    places[k] with slope changes jumps[k] for breaks[q] ≤ k < breaks[q+1]. sums (Q, S): the numbers of another measure;
    facts: its data about each knot cell. If maps are multiplied by the image (is_factored), every region has its own
    curve, with the numbers of `factored`. layout: every region has its own curve, with numbers laid out like this, if
    its border is enclosed. Unused arrays are empty. `terms` counts the terms of each sum.
    """

    curve: np.ndarray
    curve_cell: np.ndarray
    curve_pattern: np.ndarray
    constant: np.ndarray
    quadratic: np.ndarray
    start: np.ndarray
    breaks: np.ndarray
    places: np.ndarray
    jumps: np.ndarray
    terms: int = 1
    sums: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    measure: Measure = DISTANCE
    facts: Mapping[int, Any] = field(default_factory=dict)
    is_factored: bool = False
    layout: "NumberShape | None" = None

    @classmethod
    def empty(
        cls, curve: np.ndarray, cells: np.ndarray, patterns: np.ndarray, classes: int, terms: int = 1
    ) -> "Inconsistency":
        """Curves of given cells and patterns (Q,), without values."""
        none, breaks = np.zeros(0), np.zeros(1, dtype=np.int64)
        quadratic, start = np.zeros((0, classes, 3)), np.zeros((0, 3))
        return cls(curve, cells, patterns, none, quadratic, start, breaks, none, none, terms)

    @property
    def rounding(self) -> float:
        """The relative error of a sum over all pixels, accumulated in at least four partial sums."""
        return 2.0 * (self.terms / 4 + 4) * UNIT

    @property
    def has_shapes(self) -> bool:
        """Whether losses change within regions in all directions, so their shapes matter."""
        return self.is_factored or self.layout is not None

    @property
    def moves(self) -> bool:
        """Whether ai depends on θ_T within a region; meaningful for distances only."""
        return bool(len(self.quadratic) or len(self.start))


_JOINED = ("curve_cell", "constant", "quadratic", "start", "places", "jumps", "sums")
"""Arrays of curves that are joined row by row."""


def join_curves(found: list[Inconsistency], regions: RegionSet) -> Inconsistency:
    """Join the curves of several sets of regions, in the order in which the sets were joined; empties the list."""
    starts = np.cumsum([0, *(len(curves.curve_cell) for curves in found)])
    curve = np.concatenate([one.curve + start for one, start in zip(found, starts, strict=False)])
    numbers, first = np.unique(curve, return_index=True)
    pattern = np.zeros(int(starts[-1]), dtype=np.int64)
    pattern[numbers] = regions.pattern[first]
    before = np.cumsum([0, *(int(one.breaks[-1]) for one in found)])
    breaks = [np.zeros(1, dtype=np.int64), *(one.breaks[1:] + start for one, start in zip(found, before, strict=False))]
    first_one, columns = found[0], {name: [getattr(one, name) for one in found] for name in _JOINED}
    found.clear()
    joined: dict[str, Any] = {name: join_rows(columns.pop(name)) for name in _JOINED}
    return replace(first_one, curve=curve, curve_pattern=pattern, breaks=np.concatenate(breaks), **joined)


@lru_cache(maxsize=4)
def aimed_chain(compound: Compound, options: AttentionOptions) -> AimedChain:
    """The classifier with outputs whose gradients are the maps."""
    return AimedChain.of(compound.chain, options.targets(compound.graph.classes))


@lru_cache(maxsize=4)
def original_gradients(compound: Compound, options: AttentionOptions) -> np.ndarray:
    """The gradients (K', C, H, W) behind the maps of the unperturbed image, under its pattern."""
    graph = compound.graph
    maps = maps_under(graph, compound.original_pattern, options.targets(graph.classes))
    return maps.reshape(-1, *compound.perturbed.x0.shape)


def original_maps(compound: Compound, options: AttentionOptions) -> np.ndarray:
    """The filtered maps (K', C, H, W) of the unperturbed image, under its pattern if they are made of gradients."""
    if not isinstance(options.method, GradientMethod):
        return options.filter(options.explained(compound.graph, compound.perturbed.x0))
    return options.finish(original_gradients(compound, options), compound.perturbed.x0)


def expected_maps(compound: Compound, cell: KnotCell, original: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Expected maps at the low end of a cell, and their change per unit of θ_T; None if they do not move.

    Maps that move along two axes stay as they are: see `enclosed`.
    """
    moved = None if compound.perturbed.has_enclosed_maps else compound.perturbed.transport(original, cell)
    if moved is None:
        return original, None
    offset, slope = moved
    return original + offset + cell.low[compound.perturbed.moving_axis] * slope, slope


def expectation(compound: Compound, cell: KnotCell, original: np.ndarray, options: AttentionOptions) -> Expectation:
    """The expected maps and the mask at the low end of a cell, and their changes per unit of θ_T."""
    maps, slope = expected_maps(compound, cell, original)
    if options.mask is None:
        return Expectation(maps, slope)
    weights, weight_slope = expected_maps(compound, cell, options.mask.weights)
    return Expectation(maps, slope, weights, weight_slope)


class CellFacts(dict[int, Any]):
    """A measure's data about each knot cell, computed on first use."""

    def __init__(self, compound: Compound, options: AttentionOptions, original: np.ndarray) -> None:
        super().__init__()
        self.compound, self.options, self.original = compound, options, original

    def __missing__(self, cell: int) -> Any:
        at = expectation(self.compound, self.compound.cells[cell], self.original, self.options)
        self[cell] = self.options.measure.cell_facts(at)
        return self[cell]


@lru_cache(maxsize=4)
def cell_facts(compound: Compound, options: AttentionOptions, original: "SharedArray") -> CellFacts:
    """A measure's data about the knot cells of a question, shared by all its curves."""
    return CellFacts(compound, options, original.values)


def expected_at(
    compound: Compound, theta: np.ndarray, original: np.ndarray, options: AttentionOptions
) -> tuple[np.ndarray, np.ndarray | None]:
    """The expected maps (K', C, H, W) and the mask's weights (H, W), or None without a mask, at a theta (d,).

    If a method multiplies gradients by the image, its expected maps are the moved gradients of the unperturbed image
    times the image at theta.
    """
    perturbed, has_factor = compound.perturbed, options.method.factor_baseline is not None
    maps = perturbed.expected(original_gradients(compound, options) if has_factor else original, theta)
    weights = None if options.mask is None else np.clip(perturbed.expected(options.mask.weights, theta), 0.0, 1.0)
    return options.finish(maps, compound.perturbed.image(theta)) if has_factor else maps, weights


def single_curve(measure: Measure, maps: np.ndarray, at: Expectation) -> Inconsistency:
    """The curve of one region with given filtered maps (K', C, H, W), for a measure other than the distance."""
    first = np.zeros(1, dtype=np.int64)
    found = Inconsistency.empty(first, first, first, len(maps), maps.size)
    return replace(found, sums=measure.sums(maps[None], at), measure=measure, facts={0: measure.cell_facts(at)})


def curve_ranges(curve: np.ndarray, taus: np.ndarray, count: int) -> np.ndarray:
    """The range of τ (Q, 2) over all regions of each of `count` curves."""
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, curve, taus[:, 0])
    np.maximum.at(high, curve, taus[:, 1])
    return np.stack([low, high], axis=1)


class CurveTable:
    """The sums or breakpoints of curves, given by patterns (Q,) in knot cells (Q,); original: as in `measure`."""

    def __init__(
        self,
        compound: Compound,
        options: AttentionOptions,
        original: np.ndarray,
        cells: np.ndarray,
        patterns: np.ndarray,
    ) -> None:
        self.compound, self.options, self.original = compound, options, original
        self.cells, self.patterns = cells, patterns
        self.sums = np.zeros((len(cells), len(original), 3))
        self.numbers: np.ndarray | None = None  # of a measure other than the distance
        self.lock = Lock()
        self.take: Callable[[np.ndarray, np.ndarray, Expectation], None] | None = None  # takes maps in place of sums
        self.start = np.zeros((len(cells), 3))
        self.places: list[np.ndarray] = [np.zeros(0)] * len(cells)
        self.jumps: list[np.ndarray] = [np.zeros(0)] * len(cells)

    def fill(
        self, rows: PatternTable, ranges: np.ndarray, *, max_flips: int = 0, threads: int = 1, may_compress: bool = True
    ) -> None:
        """Compute all curves over ranges (Q, 2) of τ; patterns index `rows`. Threads share the blocks of each cell."""
        with ThreadPoolExecutor(threads) as pool:
            for number in np.unique(self.cells):
                places = np.flatnonzero(self.cells == number)
                is_worth = may_compress and len(places) >= WORTH_COMPRESSING
                shared = SharedArray(self.original)
                cell = cell_curves(self.compound, int(number), self.options, shared, max_flips, is_worth)
                size = min(max(len(places) // BLOCKS, SMALLEST_BLOCK), LARGEST_BLOCK)

                def compute(block: np.ndarray, cell: CellCurves = cell) -> None:
                    cell.compute(np.ascontiguousarray(rows[self.patterns[block]]), ranges[block], self, block)

                blocks = [places[i : i + size] for i in range(0, len(places), size)]
                run_all: Callable = map if threads == 1 or len(blocks) == 1 else pool.map
                list(run_all(compute, blocks))

    def finish(self, curve: np.ndarray) -> Inconsistency:
        """The finished curves; curve (R,): the curve of each region."""
        if self.options.measure != DISTANCE:
            return self._finish_sums(curve)
        is_square = self.options.distance is Distance.L2
        classes, terms = self.sums.shape[1], self.original[0].size
        found = Inconsistency.empty(curve, self.cells, self.patterns, classes, terms)
        if self.compound.perturbed.moving_axis is None:
            sums = self.sums[:, :, 0]
            return replace(found, constant=(np.sqrt(sums) if is_square else sums).sum(axis=1))
        if is_square:
            return replace(found, quadratic=self.sums)
        breaks = np.cumsum([0, *(len(part) for part in self.places)])
        places, jumps = (np.concatenate([np.zeros(0), *parts]) for parts in (self.places, self.jumps))
        return replace(found, start=self.start, breaks=breaks, places=places, jumps=jumps)

    def _finish_sums(self, curve: np.ndarray) -> Inconsistency:
        found = Inconsistency.empty(curve, self.cells, self.patterns, len(self.original), self.original.size)
        numbers = np.zeros((0, 0)) if self.numbers is None else self.numbers
        facts = cell_facts(self.compound, self.options, SharedArray(self.original))
        return replace(found, sums=numbers, measure=self.options.measure, facts=facts)

    def put(self, places: np.ndarray, numbers: np.ndarray) -> None:
        """Write the numbers (B, S) of a measure to places (B,)."""
        with self.lock:
            if self.numbers is None:
                self.numbers = np.zeros((len(self.cells), numbers.shape[1]))
        self.numbers[places] = numbers


class SharedArray:
    """An array as the key of a cache: equal only to itself."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedArray) and self.values is other.values

    def __hash__(self) -> int:
        return id(self.values)


@lru_cache(maxsize=4)
def cell_curves(
    compound: Compound,
    number: int,
    options: AttentionOptions,
    original: SharedArray,
    max_flips: int,
    may_compress: bool,
) -> "CellCurves":
    """The prepared computation for one knot cell, shared by all chunks of a map."""
    return CellCurves(compound, number, options, original.values, max_flips, may_compress)


class CellCurves:
    """Computes the curves of patterns in one knot cell."""

    def __init__(
        self,
        compound: Compound,
        number: int,
        options: AttentionOptions,
        original: np.ndarray,
        max_flips: int,
        may_compress: bool,
    ) -> None:
        maps, steps = aimed_chain(compound, options).maps, options.filter
        self.at = expectation(compound, compound.cells[number], original, options)
        expected, slope = self.at.maps, self.at.slope
        self.norm, self.shape, self.measure = options.distance, original.shape[1:], options.measure
        is_distance = self.measure == DISTANCE
        flat = expected.reshape(len(original), -1)
        moved = None if slope is None else slope.reshape(len(original), -1)
        self.is_broken = is_distance and moved is not None and self.norm is Distance.L1
        smaller = None
        if may_compress and is_distance and self.norm is Distance.L2 and len(maps) > 1:
            smaller = compress(maps[0], self.shape, steps, flat, moved)
        if smaller is not None:
            first, flat, moved = smaller
            maps, steps = (first, *maps[1:]), IDENTITY
        # Dense layers: one matrix product for many patterns is faster than pattern by pattern.
        self.is_dense = not self.is_broken and not any(is_sparse(affine.matrix) for affine in maps[:-1])
        self.chain, self.filter, self.hidden = Chain(maps), steps, compound.hidden
        self.rows = lay_out(maps, max_flips)
        self.expected = np.ascontiguousarray(flat)
        self.slope = np.zeros((len(flat), 0)) if moved is None else np.ascontiguousarray(moved)

    def compute(self, packed: np.ndarray, ranges: np.ndarray, table: CurveTable, places: np.ndarray) -> None:
        """Write the curves of packed patterns (B, bytes) over ranges (B, 2) of τ to rows `places` (B,) of a table."""
        if table.take is not None:
            size = max(BATCH, TAKEN // self.expected.size)
            for start in range(0, len(packed), size):
                part = slice(start, start + size)
                table.take(places[part], np.concatenate(list(self._filtered_maps(packed[part]))), self.at)
            return
        if self.measure != DISTANCE:
            numbers = [self.measure.sums(part, self.at) for part in self._filtered_maps(packed)]
            table.put(places, np.concatenate(numbers))
            return
        sums = np.zeros((len(packed), len(self.expected), 2))
        if self.is_dense:
            self._sum_products(packed, sums)
        else:
            maps = blank_maps(self.rows)
            packed = np.pad(packed, ((0, 0), (0, len(maps.packed) - packed.shape[1])))
            if self.is_broken:
                self._find_breakpoints(packed, ranges, maps, table, places)
                return
            kernels.distances(
                self.rows, maps, packed, packed.view(np.uint64), 0, len(packed), self.filter.codes, self.shape,
                self.norm.value, self.expected, self.slope, np.zeros((2, self.expected.shape[1])), sums,
            )  # fmt: skip
        table.sums[places, :, :2], table.sums[places, :, 2] = sums, (self.slope**2).sum(axis=1)

    def _filtered_maps(self, packed: np.ndarray) -> Iterator[np.ndarray]:
        """The filtered maps (B, K', C, H, W) of packed patterns, a batch at a time."""
        count = len(self.expected)
        if self.is_dense:
            for start in range(0, len(packed), BATCH):
                found = gradient_maps(self.chain, unpack(packed[start : start + BATCH], self.hidden))
                yield self.filter(found.reshape(-1, count, *self.shape))
            return
        maps, scratch = blank_maps(self.rows), np.zeros((2, self.expected.shape[1]))
        packed = np.pad(packed, ((0, 0), (0, len(maps.packed) - packed.shape[1])))
        for start in range(0, len(packed), BATCH):
            end = min(start + BATCH, len(packed))
            out = np.zeros((end - start, count, self.expected.shape[1]))
            kernels.collect_maps(
                self.rows, maps, packed, packed.view(np.uint64), start, end, self.filter.codes, self.shape, scratch, out
            )
            yield out.reshape(-1, count, *self.shape)

    def _sum_products(self, packed: np.ndarray, sums: np.ndarray) -> None:
        for start in range(0, len(packed), BATCH):
            part = slice(start, start + BATCH)
            maps = gradient_maps(self.chain, unpack(packed[part], self.hidden))
            if self.filter.steps:
                maps = self.filter(maps.reshape(*maps.shape[:2], *self.shape)).reshape(maps.shape)
            maps -= self.expected
            powers = np.abs(maps) if self.norm is Distance.L1 else maps * maps
            sums[part, :, 0] = powers.sum(axis=2)
            if self.slope.shape[1]:
                sums[part, :, 1] = np.einsum("pki,ki->pk", maps, self.slope)

    def _find_breakpoints(
        self, packed: np.ndarray, ranges: np.ndarray, maps: Maps, table: CurveTable, places: np.ndarray
    ) -> None:
        count, scratch = len(packed), np.zeros((2, self.expected.shape[1]))
        start, counts = np.zeros((count, 2)), np.zeros(count, dtype=np.int64)
        breaks, jumps = np.zeros((2, max(BREAKPOINT_ROOM, self.expected.size)))
        done = 0
        while done < count:
            end = kernels.breakpoints(
                self.rows, maps, packed, packed.view(np.uint64), done, count, ranges, self.filter.codes, self.shape,
                self.expected, self.slope, scratch, start, breaks, jumps, counts,
            )  # fmt: skip
            used = 0
            for q in range(done, end):
                order = np.argsort(breaks[used : used + counts[q]], kind="stable") + used
                table.places[places[q]], table.jumps[places[q]] = breaks[order], jumps[order]
                used += counts[q]
            done = end
        table.start[places] = np.hstack([start, ranges[:, :1]])
