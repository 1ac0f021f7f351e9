"""Regions one by one, in theta, for users of a map. The arrays behind them are in t."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from ..question import Question
from ..regions.patterns import unpack
from .answer import Answer


@dataclass(frozen=True, eq=False)
class Region:
    """One activation region.

    polygon (V, d): vertices in theta: counter-clockwise; with one parameter two ends, with three the corners of a
    polyhedron in no order. area: its share of the domain.
    pattern: which neurons are active, one boolean array per ReLU layer of the classifier; clip: −1, 0, 1 for each pixel
    (C, H, W) held at 0, free, or held at 1. slope (K, d) and constant (K,): logits = slope @ theta + constant.
    classification is CR, MR, CB or undecided, attention AR, IR, AB or undecided; inconsistency encloses
    [ai_min, ai_max].
    """

    index: int
    polygon: np.ndarray
    area: float
    pattern: tuple[np.ndarray, ...]
    clip: np.ndarray
    slope: np.ndarray
    constant: np.ndarray
    classification: str
    attention: str
    inconsistency: tuple[float, float]

    def logits(self, theta: np.ndarray) -> np.ndarray:
        """The logits (K,) at a theta (d,) of this region."""
        return self.slope @ np.asarray(theta, dtype=np.float64) + self.constant


class NumberedRegions(Sequence[Region]):
    """Regions by their numbers, each made on demand."""

    @overload
    def __getitem__(self, index: int) -> Region: ...

    @overload
    def __getitem__(self, index: slice) -> list[Region]: ...

    def __getitem__(self, index: int | slice) -> Region | list[Region]:
        if isinstance(index, slice):
            return [self._region(i) for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"region {index} of {len(self)}")
        return self._region(index % len(self))

    @abstractmethod
    def _region(self, index: int) -> Region:
        """The region of a number from 0 to the last."""


class Regions(NumberedRegions):
    """All activation regions of a map, with the labels of one answer."""

    def __init__(self, question: Question, answer: Answer) -> None:
        self._problem, self._answer = question, answer
        self._map = answer.answers.regions

    def __len__(self) -> int:
        return len(self._map)

    def _region(self, index: int) -> Region:
        answers, labels = self._answer.answers, self._answer.labels
        compound, found = answers.compound, self._map
        domain = compound.domain
        points = found.polytopes[index]
        if domain.dimension == 1:
            points = np.array([[points[:, 0].min(), 0.0], [points[:, 0].max(), 0.0]])
        form = found.logits[index]
        slope = form[: domain.dimension].T / domain.widths
        pattern = unpack(found.patterns[found.pattern[index]][None], compound.hidden)
        low, high = labels.reach[index]
        return Region(
            index=index,
            polygon=compound.to_theta(points),
            area=float(found.polytopes.volumes[index]),
            pattern=tuple(layer[0] for layer in pattern),
            clip=self._clip(index),
            slope=slope,
            constant=form[-1] - slope @ domain.low,
            classification=str(self._answer.classifications[index]),
            attention=str(self._answer.attentions[index]),
            inconsistency=(max(0.0, float(low)), float(high)),
        )

    def _clip(self, index: int) -> np.ndarray:
        found = self._map
        cell = self._answer.answers.compound.programs[found.cell[index]]
        lines = cell.root.shape[1]
        above_zero, below_one = (bits[0] for bits in unpack(found.clips[found.clip[index]][None], (lines, lines)))
        state = np.where(above_zero, np.where(below_one, 0, 1), -1)
        constant = np.where(cell.constant <= 0.0, -1, np.where(cell.constant >= 1.0, 1, 0))
        pixels = np.where(cell.line_of >= 0, state[cell.line_of] if lines else 0, constant)
        return pixels.reshape(self._problem.perturbed.x0.shape)
