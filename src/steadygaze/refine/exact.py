"""Boxes handed to the exact subdivision: their regions, walked and measured in runs, joined in the end.

What a run has finished stays; boxes that a budget left unfinished are given back.
"""

from dataclasses import replace

import numpy as np

from ..attention.error import MapErrors
from ..attention.inconsistency import Inconsistency, measure
from ..budget import Budget
from ..errors import ModelError
from ..problem import Problem
from ..properties.classification import classify
from ..regions.region import RegionSet
from ..regions.within import join_region_sets, subdivide_boxes
from ..results.answer import Answers
from .boxes import Boxes

Part = tuple[RegionSet, Inconsistency | None]


class ExactPart:
    """The regions of all boxes that were handed over.

    box (R,) counts into the boxes in the order in which they were added. Attention is measured unless only the label is
    asked for.
    """

    def __init__(self, problem: Problem, original: np.ndarray, threads: int, *, measures: bool) -> None:
        self.problem, self.original, self.threads, self.measures = problem, original, threads, measures
        self.parts: list[Part] = []
        self.box: list[np.ndarray] = []
        self.boxes = 0
        self.regions = 0

    def start_from(self, answers: Answers, box: np.ndarray, boxes: int) -> None:
        """Go on from what an earlier run has found."""
        self.parts, self.box, self.boxes = [(answers.regions, answers.curves)], [box], boxes
        self.regions = len(answers.regions)

    def add(self, boxes: Boxes, budget: Budget) -> np.ndarray:
        """Subdivide boxes; tells which of them (B,) were finished. Only those count from now on."""
        compound = self.problem.compound
        found = subdivide_boxes(
            compound, boxes.cell, boxes.low, boxes.high, boxes.sides, boxes.cuts, budget=budget, threads=self.threads
        )
        if not np.isfinite(found.regions.logits).all():
            name = self.problem.model_name
            raise ModelError(f"{name}: the logits overflow float64 in the domain; scale the weights down")
        if found.complete.any():
            regions = replace(found.regions, stopped=None)
            curves = None
            if self.measures:
                curves = measure(compound, regions, self.problem.attention, self.original, threads=self.threads)
            places = self.boxes + np.cumsum(found.complete) - 1
            self.parts.append((regions, curves))
            self.box.append(places[found.box])
            self.boxes += int(found.complete.sum())
            self.regions += len(regions)
        return found.complete

    def last_answers(self, size: float) -> Answers:
        """What is known of the regions that were added last."""
        return self._answers(*self.parts[-1], size)

    def answers(self, cuts: np.ndarray, size: float) -> Answers | None:
        """Everything that is known of the regions, ready to be asked for any δ; None where there are none."""
        if not self.parts:
            return None
        regions = join_region_sets([part for part, _ in self.parts], cuts=cuts)
        return self._answers(regions, join_curves(self.parts, regions) if self.measures else None, size)

    def _answers(self, regions: RegionSet, curves: Inconsistency | None, size: float) -> Answers:
        problem, compound = self.problem, self.problem.compound
        pieces = classify(compound, regions, problem.label)
        errors = None if curves is None else MapErrors(compound, regions.patterns, curves, problem.attention)
        return Answers(compound, regions, pieces, curves, errors, size)


def join_curves(parts: list[Part], regions: RegionSet) -> Inconsistency:
    """The curves of sets of regions that were joined into one, in the same order."""
    found = [curves for _, curves in parts if curves is not None]
    counts = [len(curves.curve_cell) for curves in found]
    starts = np.cumsum([0, *counts])
    curve = np.concatenate([one.curve + start for one, start in zip(found, starts, strict=False)])
    numbers, first = np.unique(curve, return_index=True)
    pattern = np.zeros(int(starts[-1]), dtype=np.int64)
    pattern[numbers] = regions.pattern[first]
    before = np.cumsum([0, *(int(one.breaks[-1]) for one in found)])
    breaks = [np.zeros(1, dtype=np.int64), *(one.breaks[1:] + start for one, start in zip(found, before, strict=False))]
    return Inconsistency(
        curve=curve,
        curve_cell=np.concatenate([one.curve_cell for one in found]),
        curve_pattern=pattern,
        constant=np.concatenate([one.constant for one in found]),
        quadratic=np.concatenate([one.quadratic for one in found]),
        start=np.concatenate([one.start for one in found]),
        breaks=np.concatenate(breaks),
        places=np.concatenate([one.places for one in found]),
        jumps=np.concatenate([one.jumps for one in found]),
        terms=found[0].terms,
    )
