"""From regions to the attention inconsistency on each: what is stored answers any threshold later.

ai depends on the classifier's pattern and the knot cell alone. Where the expected map is kept it is one number; where
it moves it is a convex function of τ = θ_T − (low end of the cell): Σ_j √(α_j − 2 β_j τ + γ_j τ²) for L2, a broken line
for L1.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, issparse

from ..compound import Compound
from ..network.lower import Chain
from ..perturbation import KnotCell
from ..regions.pattern import distinct_rows
from ..regions.region import RegionSet
from . import kernels
from .distances import Distance
from .filters import IDENTITY, Filter
from .kernels import Maps, Rows
from .maps import gradient_maps, pattern_at

BLOCK = 512
"""Patterns that one thread computes in a row; the first of a block is computed from scratch."""

BREAKPOINT_ROOM = 1 << 20


@dataclass(frozen=True)
class AttentionOptions:
    """Which maps are compared and how: filter, distance, and the classes summed over (None: all)."""

    filter: Filter = IDENTITY
    distance: Distance = Distance.L2
    classes: tuple[int, ...] | None = None

    def chosen(self, count: int) -> np.ndarray:
        """The classes as an index array, for a network with `count` logits."""
        return np.arange(count) if self.classes is None else np.array(self.classes)


@dataclass(frozen=True, eq=False)
class Inconsistency:
    """ai of every region, as a function of τ.

    curve (R,) says which of Q curves a region has; curve_cell (Q,) its knot cell and curve_pattern (Q,) its pattern.
    constant (Q,): ai where the map is kept. quadratic (Q, K, 3): α, β, γ of each class (L2, moving). For L1 and moving
    maps `start` (Q, 3) holds value and slope where a curve begins, and that τ; places[k] and jumps[k] for
    breaks[q] ≤ k < breaks[q+1] are the breakpoints, ascending. What does not apply is empty.
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

    @property
    def moves(self) -> bool:
        """Whether ai depends on θ_T within a region."""
        return bool(len(self.quadratic) or len(self.start))


def measure(
    compound: Compound, regions: RegionSet, options: AttentionOptions, original: np.ndarray, *, threads: int = 1
) -> Inconsistency:
    """Compute the curves of all regions; `original` (K', C, H, W) are the filtered maps of the unperturbed image."""
    keys = np.stack([regions.cell, regions.pattern], axis=1).astype(np.int64)
    if compound.perturbed.moving_axis is None:
        keys[:, 0] = 0
    curve, first = distinct_rows(np.ascontiguousarray(keys).view(np.uint8).reshape(len(keys), 16))
    cells, patterns = keys[first, 0], keys[first, 1]
    ranges = _ranges(compound, regions, curve, cells)
    chosen = options.chosen(regions.logits.shape[2])
    rows = _rows(compound.chain, chosen)
    parts = []
    for number in np.unique(cells):
        places = np.flatnonzero(cells == number)
        parts.append((places, _CellCurves(compound, int(number), options, original, rows)))
    result = _Tables(len(cells), len(chosen))
    for places, curves in parts:
        packed = np.ascontiguousarray(regions.patterns[patterns[places]])
        blocks = [slice(i, i + BLOCK) for i in range(0, len(places), BLOCK)]
        if threads == 1:
            done = [curves.compute(packed[block], ranges[places[block]]) for block in blocks]
        else:
            with ThreadPoolExecutor(threads) as pool:
                done = list(pool.map(lambda b, c=curves, p=packed, i=places: c.compute(p[b], ranges[i[b]]), blocks))
        for block, outcome in zip(blocks, done, strict=True):
            result.put(places[block], outcome)
    return result.finish(curve, cells, patterns, compound.perturbed.moving_axis is not None, options.distance)


def original_maps(compound: Compound, options: AttentionOptions) -> np.ndarray:
    """The filtered maps (K', C, H, W) of the unperturbed image, under the classifier's pattern there."""
    x0 = compound.perturbed.x0
    bits = pattern_at(compound.chain, x0.reshape(1, -1))
    maps = gradient_maps(compound.chain, bits)[0]
    return options.filter(maps[options.chosen(len(maps))].reshape(-1, *x0.shape))


def expected_maps(compound: Compound, cell: KnotCell, original: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Expected maps at the low end of a cell and their change per unit of θ_T, or None where they are kept."""
    moved = compound.perturbed.transport(original, cell)
    if moved is None:
        return original, None
    offset, slope = moved
    return original + offset + cell.low[compound.perturbed.moving_axis] * slope, slope


def _ranges(compound: Compound, regions: RegionSet, curve: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """The range of τ (Q, 2) over all regions of every curve."""
    axis = compound.perturbed.moving_axis
    count = len(cells)
    if axis is None:
        return np.zeros((count, 2))
    tau = region_taus(compound, regions)
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, curve, tau[:, 0])
    np.maximum.at(high, curve, tau[:, 1])
    return np.stack([low, high], axis=1)


def region_taus(compound: Compound, regions: RegionSet) -> np.ndarray:
    """The range of τ (R, 2) of every region."""
    axis = compound.perturbed.moving_axis
    if axis is None:
        return np.zeros((len(regions), 2))
    ends = np.stack(regions.polygons.extent(axis), axis=1)
    domain = compound.domain
    lows = np.array([cell.low[axis] for cell in compound.cells])[regions.cell]
    return domain.low[axis] + ends * domain.widths[axis] - lows[:, None]


class _CellCurves:
    """The curves of one knot cell."""

    def __init__(
        self, compound: Compound, number: int, options: AttentionOptions, original: np.ndarray, rows: Rows
    ) -> None:
        expected, slope = expected_maps(compound, compound.cells[number], original)
        count = len(original)
        self.rows, self.options, self.shape = rows, options, original.shape[1:]
        self.expected = np.ascontiguousarray(expected.reshape(count, -1))
        self.slope = np.zeros((count, 0)) if slope is None else np.ascontiguousarray(slope.reshape(count, -1))
        self.is_broken = slope is not None and options.distance is Distance.L1

    def compute(self, packed: np.ndarray, ranges: np.ndarray) -> tuple:
        maps = _maps(self.rows)
        scratch = np.zeros((2, self.expected.shape[1]))
        steps = self.options.filter.codes
        if self.is_broken:
            return self._breakpoints(packed, ranges, maps, scratch, steps)
        sums = np.zeros((len(packed), len(self.expected), 2))
        kernels.distances(
            self.rows, maps, packed, 0, len(packed), steps, self.shape, self.options.distance.value,
            self.expected, self.slope, scratch, sums,
        )  # fmt: skip
        return sums, (self.slope**2).sum(axis=1)

    def _breakpoints(
        self, packed: np.ndarray, ranges: np.ndarray, maps: Maps, scratch: np.ndarray, steps: np.ndarray
    ) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
        count = len(packed)
        start, counts = np.zeros((count, 2)), np.zeros(count, dtype=np.int64)
        room = max(BREAKPOINT_ROOM, self.expected.size)
        places, jumps = np.zeros(room), np.zeros(room)
        found_places, found_jumps = [], []
        done = 0
        while done < count:
            end = kernels.breakpoints(
                self.rows, maps, packed, done, count, ranges, steps, self.shape,
                self.expected, self.slope, scratch, start, places, jumps, counts,
            )  # fmt: skip
            used = 0
            for q in range(done, end):
                order = np.argsort(places[used : used + counts[q]], kind="stable") + used
                found_places.append(places[order])
                found_jumps.append(jumps[order])
                used += counts[q]
            done = end
        return np.hstack([start, ranges[:, :1]]), found_places, found_jumps


class _Tables:
    """Collects the curves of all cells in the order of the curves."""

    def __init__(self, count: int, classes: int) -> None:
        self.sums = np.zeros((count, classes, 3))
        self.start = np.zeros((count, 3))
        self.places: list[np.ndarray] = [np.zeros(0)] * count
        self.jumps: list[np.ndarray] = [np.zeros(0)] * count

    def put(self, places: np.ndarray, outcome: tuple) -> None:
        if len(outcome) == 2:
            sums, squares = outcome
            self.sums[places, :, :2] = sums
            self.sums[places, :, 2] = squares
            return
        start, found_places, found_jumps = outcome
        self.start[places] = start
        for place, positions, jumps in zip(places, found_places, found_jumps, strict=True):
            self.places[place], self.jumps[place] = positions, jumps

    def finish(
        self, curve: np.ndarray, cells: np.ndarray, patterns: np.ndarray, moves: bool, distance: Distance
    ) -> Inconsistency:
        none = np.zeros(0)
        constant, quadratic, start = none, np.zeros((0, self.sums.shape[1], 3)), np.zeros((0, 3))
        breaks, places, jumps = np.zeros(1, dtype=np.int64), none, none
        if not moves:
            sums = self.sums[:, :, 0]
            constant = (np.sqrt(sums) if distance is Distance.L2 else sums).sum(axis=1)
        elif distance is Distance.L2:
            quadratic = self.sums
        else:
            start = self.start
            breaks = np.concatenate([[0], np.cumsum([len(part) for part in self.places])])
            places, jumps = np.concatenate([none, *self.places]), np.concatenate([none, *self.jumps])
        return Inconsistency(curve, cells, patterns, constant, quadratic, start, breaks, places, jumps)


def _rows(chain: Chain, classes: np.ndarray) -> Rows:
    """Lay the classifier out by rows, for the chosen classes."""
    hidden = chain.maps[:-1]
    sizes = [chain.maps[0].matrix.shape[1], *(len(affine.bias) for affine in hidden)]
    layers = len(sizes)
    dense_start, row_start = np.full(layers, -1), np.zeros(layers, dtype=np.int64)
    dense, pointers, columns, values = [np.zeros(0)], [np.zeros(1)], [np.zeros(0)], [np.zeros(0)]
    stored, entries, lines = 0, 0, 1
    pull = np.zeros(layers)  # cost of pulling one vector through the matrix into layer l, half of the neurons active
    for layer, affine in enumerate(hidden, start=1):
        if issparse(affine.matrix):
            matrix = csr_array(affine.matrix)
            row_start[layer] = lines
            pointers.append(matrix.indptr + entries)
            columns.append(matrix.indices)
            values.append(matrix.data)
            entries, lines = entries + matrix.nnz, lines + len(matrix.indptr)
            pull[layer] = 0.5 * matrix.nnz
        else:
            dense_start[layer] = stored
            dense.append(affine.matrix.ravel())
            stored += affine.matrix.size
            pull[layer] = 0.5 * affine.matrix.size / 8
    last = chain.maps[-1].matrix
    top = (last if isinstance(last, np.ndarray) else last.toarray())[classes]
    return Rows(
        offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        dense_start=dense_start.astype(np.int64),
        dense=np.concatenate(dense),
        row_start=row_start,
        pointers=np.concatenate(pointers).astype(np.int64),
        columns=np.concatenate(columns).astype(np.int64),
        values=np.concatenate(values),
        logits=np.ascontiguousarray(top),
        flip_cost=_flip_costs(hidden, pull, len(classes)),
        full_cost=float(pull.sum() * len(classes)),
        byte_start=np.concatenate([[0, 0], np.cumsum([-(-size // 8) for size in sizes[1:]])]).astype(np.int64),
    )


def _flip_costs(hidden: tuple, pull: np.ndarray, classes: int) -> np.ndarray:
    """Multiplications for one flip in every layer, the update of the gradients below included."""
    costs = np.zeros(len(hidden) + 1)
    for layer in range(1, len(hidden) + 1):
        reach = 1.0
        for below in range(layer, 0, -1):
            matrix = hidden[below - 1].matrix
            share = min(1.0, reach * 2.0 / matrix.shape[0])
            width = matrix.shape[1]
            reach = width if not issparse(matrix) else min(width, reach * matrix.nnz / matrix.shape[0])
            costs[layer] += share * pull[below] + classes * reach / (8 if reach == width else 1)
    return costs


def _maps(rows: Rows) -> Maps:
    neurons = int(rows.offsets[-1])
    widest = int(np.diff(rows.offsets).max())
    return Maps(
        gradient=np.zeros((len(rows.logits), neurons)),
        active=np.zeros(neurons, dtype=np.uint8),
        packed=np.zeros(rows.byte_start[-1], dtype=np.uint8),
        vector=np.zeros(neurons),
        support=np.zeros((2, widest), dtype=np.int64),
        mark=np.zeros(neurons, dtype=np.int64),
        state=np.array([-1, 0]),
    )
