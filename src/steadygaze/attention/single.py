"""The inconsistency of one pattern after another, as a search meets them; each is computed once."""

from collections import Counter
from dataclasses import replace

import numpy as np

from ..compound import Compound
from ..regions.pattern_table import PatternTable
from .error import MapErrors
from .inconsistency import WORTH_COMPRESSING, CellCurves, Inconsistency, collect_curves
from .options import AttentionOptions


class SingleCurves:
    """Curves of single patterns with the bounds of their errors; computed from scratch, and kept."""

    def __init__(self, compound: Compound, options: AttentionOptions, original_doubt: float = 0.0) -> None:
        self.compound, self.options = compound, options
        nothing = np.zeros(0, dtype=np.int64)
        empty = Inconsistency(
            nothing, nothing, nothing, np.zeros(0), np.zeros((0, 0, 3)), np.zeros((0, 3)), nothing, np.zeros(0),
            np.zeros(0),
        )  # fmt: skip
        nobody = PatternTable.of(np.zeros((0, 0), dtype=np.uint8))
        self.errors = MapErrors(compound, nobody, empty, options, original_doubt)
        self._cells: dict[int, CellCurves] = {}
        self._patterns: Counter[int] = Counter()
        self._kept: dict[tuple[int, bytes], tuple[Inconsistency, MapErrors]] = {}

    def of(self, cell: int, pattern: bytes) -> tuple[Inconsistency, MapErrors]:
        """The curve of a pattern (packed bits of the classifier) in a knot cell, and the bounds of its error."""
        axis = self.compound.perturbed.moving_axis
        number = 0 if axis is None else cell
        if (number, pattern) not in self._kept:
            self._kept[number, pattern] = self._measure(number, pattern)
        return self._kept[number, pattern]

    def _measure(self, cell: int, pattern: bytes) -> tuple[Inconsistency, MapErrors]:
        axis, original = self.compound.perturbed.moving_axis, self.errors.original
        self._patterns[cell] += 1
        if self._patterns[cell] in (1, WORTH_COMPRESSING):
            is_worth = self._patterns[cell] == WORTH_COMPRESSING
            self._cells[cell] = CellCurves(self.compound, cell, self.options, original, 0, is_worth)
        knots = self.compound.cells[cell]
        width = 0.0 if axis is None else float(knots.high[axis] - knots.low[axis])
        packed = np.frombuffer(pattern, dtype=np.uint8)[None]
        outcome = self._cells[cell].compute(packed, np.array([[0.0, width]]))
        first, number = np.zeros(1, dtype=np.int64), np.array([cell])
        curves = collect_curves(outcome, first, number, len(original), axis is not None, self.options.distance)
        curves = replace(curves, terms=self.compound.perturbed.x0.size)
        return curves, self.errors.for_curves(PatternTable.of(packed), curves)
