"""Bounds the errors of computed attention maps and of the inconsistency, against the real-valued network.

One bound for all patterns suits shallow networks. A bound for one pattern, computed from scratch, is smaller by orders
of magnitude on deep networks. `SingleCurves` measures one pattern after another, as a search meets them.
"""

from collections import Counter
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..compound import Compound
from ..regions.patterns import PatternTable, unpack
from ..tolerances import LEAST_ROOT, UNIT
from .gradients import (
    AimedChain,
    Bits,
    coarse_error,
    pattern_error,
    underflow_error,
    vanishes,
)
from .inconsistency import (
    WORTH_COMPRESSING,
    CellCurves,
    CurveTable,
    Inconsistency,
    aimed_chain,
    original_maps,
)
from .measures.distance import DISTANCE
from .measuring import measure_again, measure_shapes, most_flips
from .options import AttentionOptions
from .spans import Spans

LARGEST = 1 << 22  # a pattern gets its own bound if no matrix from the first layer to another has more entries


class RecomputedCurves(NamedTuple):
    """Recomputed curves of some regions (N,), with a bound (S,) on the error of each curve."""

    regions: np.ndarray
    curves: Inconsistency
    slack: np.ndarray


class MapErrors:
    """Bounds on the errors of maps behind a loss: one for all curves (`coarse`), and one for each curve from scratch.

    They bound the maps in the norm of the question, and for distances also ai. Filters enlarge errors by at most their
    Lipschitz bound; moving a map does not enlarge its error. The map of the unperturbed image counts as well if the
    loss depends on it; original_doubt bounds its error from neurons of uncertain sign (`Unperturbed.doubt`).
    """

    def __init__(
        self,
        compound: Compound,
        patterns: PatternTable,
        curves: Inconsistency,
        options: AttentionOptions,
        original_doubt: float = 0.0,
    ) -> None:
        self.compound, self.patterns, self.curves, self.options = compound, patterns, curves, options
        self.original_doubt = original_doubt

    def for_curves(self, patterns: PatternTable, curves: Inconsistency) -> "MapErrors":
        """The bounds for other curves of the same compound network; both share the bounds on maps."""
        other = MapErrors(self.compound, patterns, curves, self.options, self.original_doubt)
        own = "scratch_error" if self.is_large else "original_error"
        names = ("original", "chain", "chain_error", "underflow", "known", own)
        other.__dict__ |= {name: getattr(self, name) for name in names}
        return other

    @cached_property
    def original(self) -> np.ndarray:
        """The filtered maps of the unperturbed image."""
        return original_maps(self.compound, self.options)

    @cached_property
    def chain_error(self) -> float:
        """A bound for every map, without the rounding of the sums in its distance from the expected map."""
        return coarse_error(self.chain, self.options, most_flips(self.compound, self.options, self.original))

    @cached_property
    def chain(self) -> AimedChain:
        """The classifier with outputs whose gradients are the maps."""
        return aimed_chain(self.compound, self.options)

    @cached_property
    def coarse(self) -> float:
        """A bound for every curve, however its maps were computed."""
        return self._maps_of_each * (self.chain_error + self.underflow) + self._others

    @property
    def _maps_of_each(self) -> float:
        """How many maps with errors a loss compares."""
        return 2.0 if self.options.measure.uses_expected else 1.0

    @property
    def _others(self) -> float:
        """Errors other than those of the patterns' maps."""
        if self.options.method.factor_baseline is not None and self.curves.has_shapes and self.original_doubt > 0.0:
            # The doubt bounds maps, whereas these errors bound gradients.
            return np.inf
        return self._summing + self.original_doubt

    @cached_property
    def is_large(self) -> bool:
        """Whether bounds for single patterns would need matrices too large to be worthwhile."""
        sizes = self.compound.hidden
        return len(sizes) > 1 and sizes[0] * max(sizes[1:]) > LARGEST

    @property
    def finest(self) -> float:
        """If a strip is narrower than this share of its region, recomputing the map is not worth it."""
        return 1e-3 if self.is_large else 1e-9

    @cached_property
    def scratch_error(self) -> float:
        """A bound for every map computed from scratch."""
        return coarse_error(self.chain, self.options, 0)

    def settle(self, chosen: np.ndarray, spans: Spans) -> RecomputedCurves:
        """The chosen curves (S,), computed from scratch; spans: those of all regions."""
        arguments = (self.patterns, self.curves, spans, self.options, self.original, chosen)
        regions, curves = measure_again(self.compound, *arguments)
        return RecomputedCurves(regions, curves, np.minimum(self.coarse, self.of(chosen)))

    def of(self, chosen: np.ndarray) -> np.ndarray:
        """A bound for each of the chosen curves (S,), if computed from scratch."""
        if self.is_large:
            own = self._maps_of_each * (self.scratch_error + self.underflow)
            return np.full(len(chosen), own + self._others)
        numbers, inverse = np.unique(self.curves.curve_pattern[chosen], return_inverse=True)
        rows = self.patterns[numbers]
        bits, keys = unpack(rows, self.compound.hidden), [row.tobytes() for row in rows]
        for i, key in enumerate(keys):
            if key not in self.known:
                self.known[key] = self._own([layer[i : i + 1] for layer in bits])
        # The map of the unperturbed image counts if the loss depends on it.
        others = (self.original_error if self.options.measure.uses_expected else 0.0) + self._others
        each = np.array([self.known[key] for key in keys])[inverse]
        if self.options.measure != DISTANCE:
            # A map that is surely zero has no attention, whatever the expected map.
            return np.where(each == 0.0, 0.0, each + others)
        return each + others

    @cached_property
    def known(self) -> dict[bytes, float]:
        """The bounds of single patterns so far; they hold for any δ."""
        return {}

    @cached_property
    def original_error(self) -> float:
        """The bound for the map of the unperturbed image."""
        return self._own(self.compound.original_pattern)

    @cached_property
    def _summing(self) -> float:
        """The rounding of the differences and of the sums in the norms, given the largest ai and map.

        Measures other than the distance account for the rounding of their sums themselves.
        """
        curves = self.curves
        if self.options.measure != DISTANCE:
            return 0.0
        largest = float(curves.constant.max(initial=0.0))
        if len(curves.quadratic):
            parts = np.array_split(curves.quadratic, len(curves.quadratic) // 65_536 + 1)  # a few roots at a time
            largest = max(
                float((np.sqrt(part[:, :, 0]) + np.sqrt(part[:, :, 2])).sum(axis=1).max(initial=0.0)) for part in parts
            )
        if len(curves.start):
            largest = float((curves.start[:, 0] + np.abs(curves.start[:, 1])).max()) + float(curves.jumps.sum())
        size = self.options.size(self.original)
        return 4.0 * (self.compound.perturbed.x0.size + len(self.original) + 8) * UNIT * (largest + size)

    @cached_property
    def underflow(self) -> float:
        """The effect of underflow on a map, and on the norm of its difference from another map."""
        return underflow_error(self.chain, self.options) + len(self.original) * LEAST_ROOT

    def _own(self, bits: Bits) -> float:
        """The bound for one pattern; 0 for maps that are zero whatever the rounding."""
        found = pattern_error(self.chain, self.options, bits)
        return found if found == 0.0 and vanishes(self.chain, bits) else found + self.underflow


class SingleCurves:
    """Curves of single patterns with bounds on their errors; each is computed from scratch once, then cached."""

    def __init__(self, compound: Compound, options: AttentionOptions, original_doubt: float = 0.0) -> None:
        self.compound, self.options = compound, options
        nothing = np.zeros(0, dtype=np.int64)
        nobody = PatternTable.of(np.zeros((0, 0), dtype=np.uint8))
        empty = Inconsistency.empty(nothing, nothing, nothing, 0)
        self.errors = MapErrors(compound, nobody, empty, options, original_doubt)
        self._cells: dict[int, CellCurves] = {}
        self._patterns: Counter[int] = Counter()
        self._kept: dict[tuple[int, bytes], tuple[Inconsistency, MapErrors]] = {}

    def of(self, cell: int, pattern: bytes) -> tuple[Inconsistency, MapErrors]:
        """The curve of a pattern (packed bits of the classifier) in a knot cell, and the bounds on its error."""
        number = 0 if self.compound.perturbed.moving_axis is None else cell
        if (number, pattern) not in self._kept:
            self._kept[number, pattern] = self._measure(number, pattern)
        return self._kept[number, pattern]

    def on_shapes(self, patterns: list[bytes], spans: Spans) -> tuple[Inconsistency, np.ndarray]:
        """The curves of N patterns, each on its own shape, and bounds (N,) on their errors."""
        rows = PatternTable.of(np.stack([np.frombuffer(pattern, dtype=np.uint8) for pattern in patterns]))
        numbers = np.arange(len(patterns))
        curves = measure_shapes(self.compound, rows, numbers, spans, self.options, max_flips=0)
        errors = self.errors.for_curves(rows, curves)
        return curves, np.minimum(errors.coarse, errors.of(numbers))

    def _measure(self, cell: int, pattern: bytes) -> tuple[Inconsistency, MapErrors]:
        axis, original = self.compound.perturbed.moving_axis, self.errors.original
        self._patterns[cell] += 1
        if self._patterns[cell] in (1, WORTH_COMPRESSING):
            is_worth = self._patterns[cell] == WORTH_COMPRESSING
            self._cells[cell] = CellCurves(self.compound, cell, self.options, original, 0, is_worth)
        knots = self.compound.cells[cell]
        width = 0.0 if axis is None else float(knots.high[axis] - knots.low[axis])
        packed = np.frombuffer(pattern, dtype=np.uint8)[None]
        first = np.zeros(1, dtype=np.int64)
        table = CurveTable(self.compound, self.options, original, np.array([cell]), first)
        self._cells[cell].compute(packed, np.array([[0.0, width]]), table, first)
        curves = table.finish(first)
        return curves, self.errors.for_curves(PatternTable.of(packed), curves)
