"""Bounds the shares of the domain by the volumes of visited regions, for up to three parameters.

Let H be the hull of a visited region's vertices, and its *strips* the part of H where a neuron's computed form is at
most 2 e + m: e bounds the error of the form (`forward_errors`), m its largest value on the wrong side of the pattern
(`missed`). The bounds follow from these facts:

* A theta in H outside the strips has the region's pattern, so the labels proved for the region hold there.
* Two hulls overlap only in strips. If their patterns differ in neuron k, one form is ≥ −m and the other ≤ m on the
  overlap, and both are within e of the neuron's true value; so both are at most 2 e + m. A neuron that is mere rounding
  on a whole hull is written as inactive there (`measuring_kernels.finish`); if the patterns differ in it, the other
  hull has the strip.
* The same holds for the entries of a window, with the differences between its winner and the others as forms, and the
  errors of both entries: if entries differ by rounding alone on a whole hull, the first of them is the winner.
* `kink_share` bounds the volume of all strips, counted once for every hull that they lie in.

So the volumes of regions with a label, less the volume of all strips, are a lower bound on the label's share, whatever
gaps or overlaps the tolerances left between hulls, and whether or not the search visited everything.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

import numpy as np

from ...accuracy import Accuracy
from ...budget import Budget
from ...compound import Compound
from ...labels import Kept, Label
from ...polytopes import Polygons
from ...properties.joint import Shares
from ...properties.ties import PatternedPoints, decide_ties
from ...question import Question
from ...regions.forward_error import by_layer, forward_errors, kink_errors, kink_share
from ...regions.patterns import unpack
from ...tolerances import NEAR, UNIT
from .labeller import Labeller
from .solids import BrokenSolidError
from .traversal import Traversal
from .visited import TraversedRegion, Visited, polygon_area

WHOLE = {Label.CR, Label.MR, Label.AR, Label.IR, ""}
"""Labels that hold on a whole region; the empty one was not asked for."""
Rows = np.ndarray | None
"""A convex part of a region: where rows (M, d+1) are ≥ 0; None is empty."""


def unknown_shares() -> Shares:
    """The shares when nothing is proved."""
    return Shares(((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 0.0)), slivers=1.0)


def visited_shares(labeller: Labeller, visited: list[Visited], is_late: Callable[[], bool] = lambda: False) -> Shares:
    """Bounds on all shares by the visited regions; undecided parts and unvisited ones count as unknown.

    A late run does not divide the remaining regions into parts: those with several labels count as unknown.
    """
    traversal, compound = labeller.traversal, labeller.question.compound
    if not visited or not compound.hidden or any(one.region.corners is None for one in visited):
        return unknown_shares()
    accuracy = traversal.accuracy()
    # Twice the errors, of pixels too: |value| ≤ e holds on a share of D e · beside[0] + e² · beside[1].
    accuracy = replace(accuracy, pixels_beside=accuracy.pixels_beside * np.array([2.0, 4.0]))
    errors = [2.0 * error for error in forward_errors(compound, accuracy)]
    kinks = kink_share(compound, accuracy, errors)
    if not (kinks < 1.0 and _is_beside_known(compound, accuracy, errors)):
        return unknown_shares()
    measurer = _PartMeasurer(traversal)
    cells = np.zeros((3, 3))
    for one in visited:
        cells += _whole_cells(one) if is_late() else _cells(labeller, one, measurer)
    # Volumes are sums of a few dozen products of numbers up to 1.
    slack = kinks + traversal.bent + measurer.bent + 256.0 * UNIT * (len(visited) + 16)
    for code in (Kept.YES, Kept.NO):
        total = float(cells[code].sum())
        cells[code] *= max(0.0, 1.0 - slack / total) if total > 0.0 else 1.0
    cells[Kept.UNKNOWN, Kept.UNKNOWN] += max(0.0, 1.0 - float(cells.sum()))
    return Shares(tuple(tuple(row) for row in cells.tolist()), slivers=min(1.0, slack))  # type: ignore[arg-type]


def visited_ties(
    question: Question, visited: list[Visited], slivers: float, budget: Budget | None = None
) -> tuple[float, float]:
    """Proved bounds on the share of the domain whose maps depend on the rule for ties of windows.

    slivers: the share of kinks from `visited_shares`, which bounds the strips. If it is 1 (unknown), the bounds are
    unknown.
    """
    compound, certain = question.compound, [one.region for one in visited if not one.is_doubtful]
    if not (slivers < 1.0 and certain):
        return 0.0, 1.0

    def points(numbers: np.ndarray) -> PatternedPoints:
        chosen = [certain[number] for number in numbers.tolist()]
        patterns, clips = (
            [np.frombuffer(getattr(region, name), dtype=np.uint8) for region in chosen] for name in ("pattern", "clip")
        )
        thetas = compound.domain.to_theta(np.array([region.inside for region in chosen]))
        cells = np.array([region.cell for region in chosen])
        return PatternedPoints(unpack(np.array(patterns), compound.hidden), cells, clips, thetas)

    volumes, sums = np.array([region.volume for region in certain]), {True: 0.0, False: 0.0, None: 0.0}
    for number, matters in decide_ties(compound, question.attention, volumes, points, budget=budget):
        sums[matters] += float(volumes[number])
    return max(0.0, sums[True] - slivers), 1.0 - max(0.0, sums[False] - slivers)


def _is_beside_known(compound: Compound, accuracy: Accuracy, errors: list[np.ndarray]) -> bool:
    """Whether, in every cell, strips are narrower than the distance up to which volumes beside kinks were summed."""
    missed = by_layer(compound, accuracy.missed)
    layers = zip(compound.graph.layers, errors, missed, strict=False)
    widths = np.concatenate([kink_errors(layer, error, left) for layer, error, left in layers])
    ends = [int(cell.program.offsets[-2]) for cell in compound.programs]
    near = [cell.program.near[end - len(widths) : end] for cell, end in zip(compound.programs, ends, strict=True)]
    return bool((widths < np.min(near, axis=0)).all()) and accuracy.pixels_missed < NEAR / 4.0


def _cells(labeller: Labeller, one: Visited, measurer: "_PartMeasurer") -> np.ndarray:
    """The volumes (3, 3) of a region's parts by `Kept` codes of label and attention."""
    region = one.region
    if one.classification in WHOLE and one.attention in WHOLE:
        return _whole_cells(one)
    kept, open_label = _label_parts(labeller, one)
    keeps, open_attention = _attention_parts(labeller, one)

    def size(*parts: Rows) -> float:
        return measurer.volume(region, parts)

    cells, whole, unknown = np.zeros((3, 3)), size(), Kept.UNKNOWN
    try:
        both, neither = size(kept, keeps), whole - size(open_label) - size(open_attention)
        cells[Kept.YES, Kept.YES] = both
        cells[Kept.YES, Kept.NO] = size(kept) - size(kept, open_attention)
        cells[Kept.NO, Kept.YES] = size(keeps) - size(open_label, keeps)
        cells[Kept.NO, Kept.NO] = neither + size(open_label, open_attention)
        cells[Kept.YES, unknown] = size(kept) - cells[Kept.YES].sum()
        cells[Kept.NO, unknown] = whole - size(open_label) - cells[Kept.NO].sum()
        cells[unknown, Kept.YES] = size(keeps) - cells[:, Kept.YES].sum()
        cells[unknown, Kept.NO] = whole - size(open_attention) - cells[:, Kept.NO].sum()
    except BrokenSolidError:
        cells[:] = 0.0
    cells = np.maximum(cells, 0.0)
    cells[unknown, unknown] = max(0.0, whole - float(cells.sum()))
    return cells


def _whole_cells(one: Visited) -> np.ndarray:
    """Like `_cells`, but a region with several labels counts as unknown as a whole."""
    cells = np.zeros((3, 3))
    cells[Kept.of_label(one.classification), Kept.of_label(one.attention)] = one.region.volume
    return cells


def _label_parts(labeller: Labeller, one: Visited) -> tuple[Rows, Rows]:
    """The part of a region where the label is surely kept, and the part where it is not surely lost."""
    region = one.region
    everything = np.zeros((0, region.dimension + 1))
    if one.classification in (Label.CR, Label.MR):
        return (everything, everything) if one.classification == Label.CR else (None, None)
    slack = labeller.label_error(one) if one.classification else np.inf
    forms = labeller.leads(region).T
    if not (np.isfinite(slack) and np.isfinite(forms).all()):
        return None, everything
    shift = np.append(np.zeros(region.dimension), slack)
    return forms - shift, forms + shift


def _attention_parts(labeller: Labeller, one: Visited) -> tuple[Rows, Rows]:
    """The part of a region where the attention is surely kept, and the part where it is not surely lost."""
    region = one.region
    everything = np.zeros((0, region.dimension + 1))
    if one.attention in (Label.AR, Label.IR):
        return (everything, everything) if one.attention == Label.AR else (None, None)
    if not one.attention or labeller.question.perturbed.moving_axis is None:
        return None, everything
    labels = labeller.slabs(region)
    assert labels.along is not None
    along = labels.along[0, : region.dimension]
    parts: list[Rows] = []
    for (low, high), outward in ((labels.inner[0], -1.0), (labels.outer[0], 1.0)):
        if low > high:
            parts.append(None)
            continue
        rows = np.array([np.append(along, -low), np.append(-along, high)])
        # Covers a few roundings of the scaling from τ to t.
        rows[:, -1] += outward * 64.0 * UNIT
        is_end = np.array([low <= labels.ends[0, 0], high >= labels.ends[0, 1]])
        parts.append(rows[~is_end])
    return parts[0], parts[1]


class _PartMeasurer:
    """Measures volumes of convex parts of regions; `bent` sums how much bent faces of polyhedra may change them."""

    def __init__(self, traversal: Traversal) -> None:
        self.traversal, self.bent = traversal, 0.0

    def volume(self, region: TraversedRegion, parts: tuple[Rows, ...]) -> float:
        """The volume of the intersection of parts of a region; raises BrokenSolidError."""
        if any(rows is None for rows in parts):
            return 0.0
        rows = np.concatenate([np.zeros((0, region.dimension + 1)), *(rows for rows in parts if rows is not None)])
        if not len(rows):
            return region.volume
        if region.dimension == 1:
            return self._length(region, rows)
        if region.dimension == 2:
            corners = reduce(Polygons.clip_hull, rows, region.vertices)
            return max(0.0, polygon_area(corners)) if len(corners) > 2 else 0.0
        assert region.corners is not None and region.faces is not None
        found = self.traversal.cutter.part(region.corners, region.faces, rows)
        if found is None:
            return 0.0
        self.bent += found.bent
        return max(0.0, found.volume)

    def _length(self, region: TraversedRegion, rows: np.ndarray) -> float:
        low, high = float(region.vertices[0, 0]), float(region.vertices[1, 0])
        for slope, constant in rows.tolist():
            if slope == 0.0 and constant < 0.0:
                return 0.0
            if slope > 0.0:
                low = max(low, -constant / slope)
            elif slope < 0.0:
                high = min(high, -constant / slope)
        return max(0.0, high - low)
