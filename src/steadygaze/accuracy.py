"""Measures that bound the errors of a set of regions, recorded by the walks."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from .compound import Program

ADDITIONS, CHANGES = 0, 1
"""The rows of a drift: the number of additions to a form, and the rounding that changes of its inputs can cause."""

SUMMED = ("beside", "pixels_beside", "slivers", "skipped", "holes")
"""Measures that are summed over sets of regions; of the other measures, the maximum is taken."""


class WalkMeasures(NamedTuple):
    """Measures of one walk over all N neurons and L + 1 layers of its program, clip and logits included.

    `Accuracy` explains each measure.
    """

    peak: np.ndarray
    missed: np.ndarray
    beside: np.ndarray
    drift: np.ndarray
    depth: int
    slivers: float
    skipped: int
    gap: float = 0.0
    holes: float = 0.0

    def after(self, before: "WalkMeasures", share: float) -> "WalkMeasures":
        """The joint measures with the walk `before`, whose polytopes this walk continued, with a share of its sums."""
        return self._replace(
            missed=np.maximum(self.missed, before.missed),
            beside=self.beside + share * before.beside,
            depth=self.depth + before.depth,
            slivers=self.slivers + share * before.slivers,
            skipped=self.skipped + before.skipped,
            gap=max(self.gap, before.gap),
            holes=self.holes + share * before.holes,
        )


@dataclass(frozen=True, eq=False)
class Accuracy:
    """Bounds on the errors of regions, over the n neurons and the layers of the classifier.

    peaks (n,): the largest sum of |coefficients| of each neuron's form on any region. missed (n,): the neuron's largest
    |value| on a part of a region where the pattern has the wrong sign, because the part was left unsplit or counted as
    rounding; pixels_missed is the same for the clip. drift (2, layers): between two computations of a form from
    scratch, its updates add a rounding error of at most 2⁻⁵³ · (drift[0] · peak + drift[1]). depth: the largest number
    of cuts that led to a region. gap: the largest depth, beyond rounding, of the gaps that one cut leaves between its
    two parts; holes: the volume of the gaps of all cuts. Polygons have no gaps. skipped: the number of polytopes whose
    volume float64 cannot distinguish from zero; they are not among the regions.

    beside (2, n): for every e below a neuron's `near` (see `Program`), |value| ≤ e holds on a share of the domain of at
    most D · e · beside[0] + e² · beside[1], where D is the number of coordinates. pixels_beside (2,) is the same for
    all of the clip's neurons together. slivers bounds the volume of all unsplit parts.
    """

    peaks: np.ndarray
    missed: np.ndarray
    pixels_missed: float
    beside: np.ndarray
    pixels_beside: np.ndarray
    drift: np.ndarray
    depth: int
    slivers: float
    skipped: int
    gap: float
    holes: float

    @classmethod
    def of(cls, program: Program, walks: Sequence[WalkMeasures]) -> "Accuracy":
        """The joint measures of several walks through programs of one network that differ only in the clip."""
        first = 2 if program.clipped else 0
        classes = int(program.offsets[-1] - program.offsets[-2])
        hidden = int(program.offsets[-2] - program.offsets[first])
        # The first layer of a program without a clip is its input: no affine map leads to it.
        layers = len(program.offsets) - 1 - (first or 1)
        if len(walks) == 1 and not first:
            (walk,) = walks
            return cls(
                walk.peak[:hidden], walk.missed[:hidden], 0.0, walk.beside[:, :hidden], np.zeros(2),
                walk.drift[:, walk.drift.shape[1] - layers :], walk.depth, walk.slivers, walk.skipped, walk.gap,
                walk.holes,
            )  # fmt: skip
        each = [(walk, slice(len(walk.peak) - classes - hidden, len(walk.peak) - classes)) for walk in walks]
        pixels, pixels_beside = 0.0, np.zeros(2)
        for walk, own in each:
            if own.start:
                pixels = max(pixels, float(walk.missed[: own.start].max()))
                pixels_beside += walk.beside[:, : own.start].sum(axis=1)
        return cls(
            peaks=_reduced(np.maximum, [walk.peak[own] for walk, own in each], (hidden,)),
            missed=_reduced(np.maximum, [walk.missed[own] for walk, own in each], (hidden,)),
            pixels_missed=pixels,
            beside=_reduced(np.add, [walk.beside[:, own] for walk, own in each], (2, hidden)),
            pixels_beside=pixels_beside,
            drift=_reduced(np.maximum, [walk.drift[:, walk.drift.shape[1] - layers :] for walk in walks], (2, layers)),
            depth=max((walk.depth for walk in walks), default=0),
            slivers=float(sum(walk.slivers for walk in walks)),
            skipped=sum(walk.skipped for walk in walks),
            gap=max((walk.gap for walk in walks), default=0.0),
            holes=float(sum(walk.holes for walk in walks)),
        )

    @classmethod
    def joined(cls, parts: Sequence["Accuracy"]) -> "Accuracy":
        """The measures of the union of several sets of regions, at least one."""
        measures = {field.name: [getattr(part, field.name) for part in parts] for field in fields(cls)}
        return cls(**{name: _join(name, values) for name, values in measures.items()})


def _reduced(function: np.ufunc, parts: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """One measure of several walks: the largest values or the sums; zeros without a walk."""
    if len(parts) == 1:
        return parts[0]
    return function.reduce(parts, axis=0) if parts else np.zeros(shape)


def _join(name: str, values: list[Any]) -> Any:
    if name in SUMMED:
        return sum(values)
    return np.max(values, axis=0) if isinstance(values[0], np.ndarray) else max(values)
