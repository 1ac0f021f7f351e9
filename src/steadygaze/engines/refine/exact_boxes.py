"""Subdivides boxes into their exact regions, measures these run by run, and joins all runs in the end."""

from dataclasses import replace

import numpy as np

from ...attention.inconsistency import Inconsistency, measure
from ...attention.map_errors import MapErrors
from ...budget import Budget, give_back_memory
from ...polytopes.protocol import join_rows
from ...properties.settling import label_pieces
from ...question import Question
from ...regions.forward_error import refuse_overflow
from ...regions.region import RegionSet, join_region_sets
from ...regions.subdivide import subdivide_boxes
from ...results.answer import Answers
from .boxes import Boxes

_JOINED = ("curve_cell", "constant", "quadratic", "start", "places", "jumps")  # of curves, joined row by row


class ExactBoxes:
    """The regions of all boxes that were subdivided; `measures`: whether attention is measured."""

    def __init__(self, question: Question, original: np.ndarray, threads: int, *, measures: bool) -> None:
        self.question, self.original, self.threads, self.measures = question, original, threads, measures
        self.parts: list[RegionSet] = []
        self.curves: list[Inconsistency] = []
        self.box: list[np.ndarray] = []  # of each region, counted in the order in which boxes were added
        self.boxes = 0
        self.regions = 0

    def start_from(self, answers: Answers, box: np.ndarray, boxes: int) -> None:
        """Continue with the regions of an earlier run."""
        self.parts, self.box, self.boxes = [answers.regions], [box], boxes
        self.curves = [] if answers.curves is None else [answers.curves]
        self.regions = len(answers.regions)

    def add(self, boxes: Boxes, budget: Budget) -> np.ndarray:
        """Subdivide boxes; returns which of them (B,) were finished within the budget: only those are added."""
        compound = self.question.compound
        found = subdivide_boxes(
            compound, boxes.cell, boxes.low, boxes.high, boxes.sides, boxes.cuts, budget=budget, threads=self.threads
        )
        refuse_overflow(self.question.model_name, compound, found.regions.logits)
        if found.complete.any():
            regions = replace(found.regions, stopped=None)
            if self.measures:
                curves = measure(compound, regions, self.question.attention, self.original, threads=self.threads)
                self.curves.append(curves)
            places = self.boxes + np.cumsum(found.complete) - 1
            self.parts.append(regions)
            self.box.append(places[found.box])
            self.boxes += int(found.complete.sum())
            self.regions += len(regions)
        give_back_memory()
        return found.complete

    def last_answers(self, size: float) -> Answers:
        """The answers of the regions that were added last; `size` is that of the original maps."""
        return self._answers(self.parts[-1], self.curves[-1] if self.measures else None, size)

    def answers(self, cuts: np.ndarray, size: float) -> Answers | None:
        """The answers of all regions, with `cuts` at the beginning of their table; None if there are no regions."""
        if not self.parts:
            return None
        regions = join_region_sets(self.parts, cuts=cuts)
        curves = join_curves(self.curves, regions) if self.measures else None
        self.parts, self.curves = [regions], [] if curves is None else [curves]
        give_back_memory()
        found = self._answers(regions, curves, size)
        give_back_memory()
        return found

    def _answers(self, regions: RegionSet, curves: Inconsistency | None, size: float) -> Answers:
        question, compound = self.question, self.question.compound
        pieces = label_pieces(compound, regions, question.label)
        errors = None
        if curves is not None:
            errors = MapErrors(compound, regions.patterns, curves, question.attention, question.original_doubt)
        return Answers(compound, regions, pieces, curves, errors, size)


def join_curves(found: list[Inconsistency], regions: RegionSet) -> Inconsistency:
    """The curves of sets of regions that were joined into one, in the same order; empties the list, as that does."""
    starts = np.cumsum([0, *(len(curves.curve_cell) for curves in found)])
    curve = np.concatenate([one.curve + start for one, start in zip(found, starts, strict=False)])
    numbers, first = np.unique(curve, return_index=True)
    pattern = np.zeros(int(starts[-1]), dtype=np.int64)
    pattern[numbers] = regions.pattern[first]
    before = np.cumsum([0, *(int(one.breaks[-1]) for one in found)])
    breaks = [np.zeros(1, dtype=np.int64), *(one.breaks[1:] + start for one, start in zip(found, before, strict=False))]
    terms, columns = found[0].terms, {name: [getattr(one, name) for one in found] for name in _JOINED}
    found.clear()
    joined = {name: join_rows(columns.pop(name)) for name in _JOINED}
    return Inconsistency(curve=curve, curve_pattern=pattern, breaks=np.concatenate(breaks), terms=terms, **joined)
