"""From a result to all values of δ: the steps of a slider with the labels of units there, and the δ-curve.

Everything is proved. At the result's own δ, the labels are those of its answer; at another step, those of
`result.with_delta(step)`, except that a share of at most `ENOUGH` may stay undecided (see `results/other_deltas.py`).
The δ-curve encloses the share of AR at every δ between two staircases. They are as tight as errors and kinks allow: at
every δ if expected maps stay, at the steps of the slider if they move. Boxes with wide enclosures widen them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..attention.measures.distance import DISTANCE
from ..engines.refine.merged_answer import undecided_share
from ..labels import Kept, Label, Property
from ..properties.joint import Shares
from ..results.other_deltas import NearDelta, coarse_reach
from ..results.result import Result
from ..threshold import kept_codes
from ..tolerances import UNIT

FINEST = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Steps in percent of the original map's size: the smallest with which a hundred steps reach the largest value."""

FURTHER = (*range(110, 201, 10), *range(250, 501, 50), *range(600, 1001, 100))
"""Steps in percent above the first hundred, if inconsistencies are that large."""

MOST_STEPS = 400
"""Steps of the curve in the picture; between them it is rounded outward."""
ROUNDING = 1e-12
"""A bound of the rounding of sums of volumes."""


@dataclass(frozen=True, eq=False)
class Thresholds:
    """N steps of a slider, ascending, with the labels of U units (regions and boxes) at each.

    deltas (N,) and texts: each as a number and as an argument of `with_delta`; `chosen` is the result's own. areas
    (N, 2) by name. kept_from (U,): AR at all steps from this one on (N: never); lost_until (U,): IR at all steps before
    this one. In between a unit is undecided, except for slabs: slab_unit (E,) and slabs (E, 4 + D), those of step k
    from slab_starts[k] on. The last numbers of a slab are a direction; along it, the unit is AR from the first number
    to the second, and IR outside the third to the fourth.
    """

    deltas: np.ndarray
    texts: tuple[str, ...]
    chosen: int
    areas: dict[str, np.ndarray]
    kept_from: np.ndarray
    lost_until: np.ndarray
    slab_starts: np.ndarray
    slab_unit: np.ndarray
    slabs: np.ndarray


def count_units(result: Result) -> tuple[int, int]:
    """The numbers of boxes and of regions, several for a region that windows cut into several parts."""
    boxes, regions = result.tiling.boxes, result.tiling.exact_regions
    return 0 if boxes is None else len(boxes), result.region_count if regions is None else len(regions)


def make_thresholds(result: Result) -> Thresholds:
    """The steps for a result; only its own δ if attention was not measured."""
    if result.answer.grid is not None:
        return _chunk_thresholds(result)
    answers, (boxes, regions) = result.tiling.answers, count_units(result)
    units, no_slabs = boxes + regions, np.zeros((0, 4 + result.question.compound.coordinates))
    exact = None if answers is None or answers.curves is None else NearDelta(answers)
    if not result.is_measured or (answers is not None and exact is None):
        own, areas = np.array([result.answer.delta]), {name: np.array([area]) for name, area in result.areas.items()}
        never, none = np.ones(units, dtype=np.int64), np.zeros(0, dtype=np.int64)
        return Thresholds(own, (result.stated.text,), 0, areas, never, 0 * never, np.zeros(2), none, no_slabs)
    deltas, texts = _steps(result, _largest(result, exact))
    states = np.ones((len(deltas), units), dtype=np.uint8)
    rows: list[dict[str, tuple[float, float]]] = []
    slab_unit, slabs, counts = [np.zeros(0, dtype=np.int64)], [no_slabs], [0]
    chosen = int(np.argmin(np.abs(deltas - result.answer.delta)))
    for step, delta in enumerate(deltas):
        cells = np.zeros((3, 3))
        if exact is not None:
            cells += exact.ask(delta, is_own=step == chosen)
            states[step, boxes:] = exact.states
            slab_unit.append(boxes + exact.slab_region)
            slabs.append(exact.slabs)
        counts.append(sum(len(part) for part in slabs))
        if result.tiling.boxes is not None:
            cells += _box_cells(result, float(delta), states[step])
        # At the result's own δ bounds may decide the kinks, too; other steps do not use them.
        kinks = result.answer.shares.slivers if step == chosen or exact is None else exact.answers.slivers
        rows.append(_named(result, cells, kinks))
    areas = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    slab_columns = np.array(counts), np.concatenate(slab_unit), np.concatenate(slabs)
    return Thresholds(deltas, texts, chosen, areas, *_runs(states), *slab_columns)


def _chunk_thresholds(result: Result) -> Thresholds:
    """The steps for a map in chunks: shares as bounds for all maps give them, without labels of units."""
    answer: Any = result.answer
    deltas, texts = _steps(result, answer.largest)
    chosen = int(np.argmin(np.abs(deltas - result.answer.delta)))
    found = result.tiling.coarse_shares_at(deltas)
    found[chosen] = result.answer.shares
    rows = [shares.named() for shares in found]
    none = np.zeros(0, dtype=np.int64)
    areas = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return Thresholds(deltas, texts, chosen, areas, none, none, np.zeros(len(deltas) + 1), none, np.zeros((0, 4)))


def _largest(result: Result, exact: NearDelta | None) -> float:
    """The largest inconsistency that may occur."""
    tops = [0.0] if exact is None else [float(exact.reach[np.isfinite(exact.reach[:, 1]), 1].max(initial=0.0))]
    if result.tiling.boxes is not None:
        answer: Any = result.answer
        bounds = result.tiling.boxes.inconsistency[answer.bounded, 1]
        tops.append(float(bounds[np.isfinite(bounds)].max(initial=0.0)))
    return max(tops)


def _steps(result: Result, top: float) -> tuple[np.ndarray, tuple[str, ...]]:
    """The thresholds as losses and as texts, and the result's own among them.

    Those of distances are in percent of the original map's size if that is not 0.
    """
    size, measure, steps = result.question.map_size, result.question.attention.measure, {}
    if measure != DISTANCE:
        for threshold in measure.slider(result.threshold):
            steps[result.question.limit(threshold)] = measure.threshold_text(threshold) or ""
    elif size > 0.0:
        finest = next((step for step in FINEST if step * size >= min(top, size)), FINEST[-1])
        percents = [*(round(finest * k, 2) for k in range(101)), *(number for number in FURTHER if finest == 1.0)]
        reached = [p for p in percents if p * size < 100.0 * top]
        percents = percents[: len(reached) + 1]
        steps = {p / 100.0 * size: f"{p:g}%" for p in percents}
    else:
        steps = {top * k / 100.0: repr(top * k / 100.0) for k in range(101)}
    own = result.answer.delta
    # A step that equals the result's own δ up to rounding is replaced by it.
    same = next((step for step in steps if abs(step - own) <= 1e-12 * own), own)
    steps[own] = steps.pop(same, measure.threshold_text(result.threshold) or "")
    deltas = np.array(sorted(steps))
    return deltas, tuple(steps[float(delta)] for delta in deltas)


def _box_cells(result: Result, delta: float, states: np.ndarray) -> np.ndarray:
    """Shares (3, 3) of the boxes that bounds decide and of unreached parts; writes the states of boxes (B,)."""
    answer: Any = result.answer
    boxes = result.tiling.boxes
    chosen = answer.bounded
    low, high = boxes.inconsistency.T
    codes = kept_codes(low, high, delta)
    states[: len(boxes)] = codes
    cells = np.zeros((3, 3))
    np.add.at(cells, (answer.label_codes[chosen], codes[chosen]), boxes.volumes[chosen])
    cells[Kept.UNKNOWN, Kept.UNKNOWN] += answer.missing.sum()
    return cells


def _named(result: Result, cells: np.ndarray, kinks: float) -> dict[str, tuple[float, float]]:
    """The areas as the result names them; on a share of at most `kinks` the attention is undecided."""
    answers = result.tiling.answers
    if result.tiling.boxes is None and answers is not None and answers.regions.stopped is not None:
        missing = 1.0 - float(answers.pieces.polytopes.volumes.sum())
        cells[Kept.UNKNOWN, Kept.UNKNOWN] += max(missing, UNIT)
    rows = (tuple(float(share) for share in row) for row in cells)
    named = Shares(tuple(rows), kinks).named()  # type: ignore[arg-type]
    if result.tiling.boxes is not None:
        undecided = undecided_share(cells, result.question.property)
        if result.question.property is not Property.CR:
            undecided = min(1.0, undecided + kinks)
        named |= {Label.UNDECIDED: (undecided, undecided)}
    return named


def _runs(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The step from which on each unit (U,) is AR, and the step up to which it is IR, from its states (N, U)."""
    kept, lost = states == Kept.YES, states == Kept.NO
    never = len(states)
    kept_from = never - np.logical_and.accumulate(kept[::-1], axis=0).sum(axis=0)
    return kept_from, np.logical_and.accumulate(lost, axis=0).sum(axis=0)


@dataclass(frozen=True, eq=False)
class DeltaCurve:
    """Bounds of the share of AR: for δ in [delta[k], delta[k+1]) it lies between low[k] and high[k] (K,).

    delta[0] is 0, and the last step has no end.
    """

    delta: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def at(self, delta: float) -> tuple[float, float]:
        """Bounds of the share at one δ."""
        step = max(0, int(np.searchsorted(self.delta, delta, side="right")) - 1)
        return float(self.low[step]), float(self.high[step])


def make_delta_curve(result: Result, known: Thresholds) -> DeltaCurve | None:
    """The curve of a result with its thresholds; None if attention was not measured."""
    if not result.is_measured:
        return None
    if result.answer.grid is not None:
        unknown = DeltaCurve(np.zeros(1), np.zeros(1), np.ones(1))
        return _sharpened(unknown, known)
    low, high, volume = _enclosures(result)
    steps = _thinned(np.unique(np.concatenate([[0.0], low[np.isfinite(low)], high[np.isfinite(high)]])))
    steps = np.unique(np.append(steps[steps >= 0.0], [0.0, result.answer.delta]))
    least, most = _staircases(steps, low, high, volume)
    answers = result.tiling.answers
    kinks = 0.0 if answers is None or answers.curves is None else answers.slivers
    curve = DeltaCurve(steps, np.maximum(least - kinks, 0.0), np.minimum(most + kinks, 1.0))
    # If losses change within regions, the enclosures of whole regions are wide.
    is_constant = result.question.perturbed.moving_axis is None and (answers is None or not answers.changes_in_regions)
    return curve if is_constant else _sharpened(curve, known)


def _enclosures(result: Result) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bounds of ai (N,), (N,) over parts of the domain, and their volumes (N,); unreached parts have no bound."""
    answers, parts = result.tiling.answers, []
    if answers is not None:
        volumes = answers.regions.polytopes.volumes
        reach = coarse_reach(answers)
        parts.append((np.maximum(reach[:, 0], 0.0), reach[:, 1], volumes))
    if result.tiling.boxes is not None:
        answer: Any = result.answer
        boxes = result.tiling.boxes
        parts.append((*boxes.inconsistency[answer.bounded].T, boxes.volumes[answer.bounded]))
        missing = answer.missing[answer.missing > 0.0]
        parts.append((np.zeros(len(missing)), np.full(len(missing), np.inf), missing))
    low, high, volume = (np.concatenate(column) for column in zip(*parts, strict=True))
    # Without a bound everything is possible.
    return np.where(np.isnan(low), 0.0, low), np.where(np.isnan(high), np.inf, high), volume


def _thinned(steps: np.ndarray) -> np.ndarray:
    """At most `MOST_STEPS` of the steps, spread evenly over their number and over their range."""
    if len(steps) <= MOST_STEPS:
        return steps
    places = np.linspace(0, len(steps) - 1, MOST_STEPS // 2).astype(np.int64)
    return np.unique(np.concatenate([steps[places], np.linspace(steps[0], steps[-1], MOST_STEPS // 2)]))


def _staircases(
    steps: np.ndarray, low: np.ndarray, high: np.ndarray, volume: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the share between steps: surely kept at the left end, possibly kept before the right end."""
    by_high, by_low = np.argsort(high, kind="stable"), np.argsort(low, kind="stable")
    kept = np.append(0.0, np.cumsum(volume[by_high]))[np.searchsorted(high[by_high], steps, side="right")]
    total = float(volume.sum())
    ends = np.append(steps[1:], np.inf)
    lost = total - np.append(0.0, np.cumsum(volume[by_low]))[np.searchsorted(low[by_low], ends, side="left")]
    # The whole domain is exactly 1, despite the rounding of the sums.
    is_all = np.searchsorted(high[by_high], steps, side="right") == len(high)
    is_covered = abs(total - 1.0) < 1e-9
    kept = np.where(is_all & is_covered, 1.0, np.minimum(kept, 1.0))
    return kept, np.clip(1.0 - np.where(lost > ROUNDING, lost, 0.0), kept, 1.0)


def _sharpened(curve: DeltaCurve, known: Thresholds) -> DeltaCurve:
    """The curve with the shares at the thresholds: the share grows with δ, so each bounds all others."""
    asked, (low, high) = known.deltas, known.areas[Label.AR].T
    # A little outward for the rounding of the sums; 0 and 1 are exact.
    low = np.where(low < 1.0, np.maximum(low - ROUNDING, 0.0), 1.0)
    high = np.where(high > 0.0, np.minimum(high + ROUNDING, 1.0), 0.0)
    steps = np.unique(np.append(curve.delta, asked))
    old = np.searchsorted(curve.delta, steps, side="right") - 1
    below = np.searchsorted(asked, steps, side="right")
    floor = np.append(0.0, np.maximum.accumulate(low))
    above = np.searchsorted(asked, np.append(steps[1:], np.inf), side="left")
    ceiling = np.append(np.minimum.accumulate(high[::-1])[::-1], 1.0)
    sharper = np.maximum(curve.low[old], floor[below])
    return DeltaCurve(steps, sharper, np.maximum(np.minimum(curve.high[old], ceiling[above]), sharper))
