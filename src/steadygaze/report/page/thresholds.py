"""From a result to what a slider of δ needs: the steps, the shares at each of them, and which units are AR or IR there.

Everything is proved, and at the result's own δ as in its answer. At other steps it is what `result.with_delta(step)`
says, but for a share of at most `ENOUGH` that may stay undecided: there the error bound for all maps together serves,
unless it leaves more, and maps need not be computed again. Nothing is drawn here.
"""

from dataclasses import dataclass, replace

import numpy as np

from ...engines.refine.merged_answer import undecided_share
from ...engines.refine.refine_result import RefineResult
from ...properties.attention import AttentionLabels, label_attention, label_coarsely, reaches
from ...properties.classification import Pieces, strip_volumes
from ...properties.joint import Kept, Shares, join, shares
from ...results.answer import Answers
from ...results.domain_result import DomainResult
from ...tolerances import UNIT
from ...verdict import Property
from .tiles import count_units, exact_answers

FINEST = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Steps in percent of the original map's size: the smallest with which a hundred steps reach the largest value."""

FURTHER = (*range(110, 201, 10), *range(250, 501, 50), *range(600, 1001, 100))
"""Steps in percent above the first hundred, where inconsistencies are so large."""

ENOUGH = 1e-6
"""Share of the domain that a step may leave undecided beside what no bound decides."""


@dataclass(frozen=True, eq=False)
class Thresholds:
    """N steps of a slider, ascending, and what holds at each of them for U units (regions and boxes).

    deltas (N,) and texts: each as a number and as `with_delta` takes it; `chosen` is the result's own. areas (N, 2) by
    name. kept_from (U,): AR at all steps from this one on (N: never); lost_until (U,): IR at all steps before this one.
    In between a unit is undecided, but for slabs: slab_unit (E,) and slabs (E, 4), those of step k from slab_starts[k]
    on, say for which t of the moving parameter it is AR (from the first number to the second) and outside of which IR.
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


def make_thresholds(result: DomainResult) -> Thresholds:
    """The steps for a result; a single one, its own δ, where attention was not measured."""
    answers, (boxes, regions) = exact_answers(result), count_units(result)
    units = boxes + regions
    exact = None if answers is None or answers.curves is None else _Exact(answers)
    if not result.is_measured or (answers is not None and exact is None):
        own_areas = {name: np.array([bounds]) for name, bounds in result.areas.items()}
        never, none = np.ones(units, dtype=np.int64), np.zeros(0, dtype=np.int64)
        own = np.array([result.answer.delta])
        zero = np.zeros(units, dtype=np.int64)
        return Thresholds(own, (str(result.delta),), 0, own_areas, never, zero, np.zeros(2), none, np.zeros((0, 4)))
    deltas, texts = _steps(result, _largest(result, exact))
    states = np.ones((len(deltas), units), dtype=np.uint8)
    areas: list[dict[str, tuple[float, float]]] = []
    slab_unit, slabs, counts = [np.zeros(0, dtype=np.int64)], [np.zeros((0, 4))], [0]
    chosen = int(np.argmin(np.abs(deltas - result.answer.delta)))
    for step, delta in enumerate(deltas):
        cells = np.zeros((3, 3))
        if exact is not None:
            cells += exact.ask(delta, is_own=step == chosen)
            states[step, boxes:] = exact.states
            slab_unit.append(boxes + exact.slab_region)
            slabs.append(exact.slabs)
        counts.append(sum(len(part) for part in slabs))
        if isinstance(result, RefineResult):
            cells += _box_cells(result, float(delta), states[step])
        # Bounds may decide the kinks too at the result's own δ; at the others they were not asked.
        kinks = result.sliver_share if step == chosen or exact is None else exact.answers.slivers
        areas.append(_named(result, cells, kinks))
    kept_from, lost_until = _runs(states)
    return Thresholds(
        deltas=deltas,
        texts=texts,
        chosen=chosen,
        areas={name: np.array([row[name] for row in areas]) for name in areas[0]},
        kept_from=kept_from,
        lost_until=lost_until,
        slab_starts=np.array(counts),
        slab_unit=np.concatenate(slab_unit),
        slabs=np.concatenate(slabs),
    )


def _largest(result: DomainResult, exact: "_Exact | None") -> float:
    """The largest inconsistency that is known to be possible."""
    tops = [0.0] if exact is None else [float(exact.reach[np.isfinite(exact.reach[:, 1]), 1].max(initial=0.0))]
    if isinstance(result, RefineResult):
        bounds = result.boxes.inconsistency[result.answer.bounded, 1]
        tops.append(float(bounds[np.isfinite(bounds)].max(initial=0.0)))
    return max(tops)


def _steps(result: DomainResult, top: float) -> tuple[np.ndarray, tuple[str, ...]]:
    """The thresholds, in percent of the original map's size where it has one, and the result's own among them."""
    size = result.map_size
    if size > 0.0:
        finest = next((step for step in FINEST if step * size >= min(top, size)), FINEST[-1])
        percents = [*(round(finest * k, 2) for k in range(101)), *(number for number in FURTHER if finest == 1.0)]
        reached = [p for p in percents if p * size < 100.0 * top]
        percents = percents[: len(reached) + 1]
        steps = {p / 100.0 * size: f"{p:g}%" for p in percents}
    else:
        steps = {top * k / 100.0: repr(top * k / 100.0) for k in range(101)}
    own = result.answer.delta
    # A step that is the same number but for rounding becomes the result's own.
    same = next((step for step in steps if abs(step - own) <= 1e-12 * own), own)
    steps[own] = steps.pop(same, str(result.delta))
    deltas = np.array(sorted(steps))
    return deltas, tuple(steps[float(delta)] for delta in deltas)


def _box_cells(result: RefineResult, delta: float, states: np.ndarray) -> np.ndarray:
    """Shares (3, 3) of what bounds decide, and of what was not reached; writes the states of boxes (B,)."""
    answer, boxes = result.answer, result.boxes
    chosen = answer.bounded
    low, high = boxes.inconsistency.T
    codes = np.where(high <= delta, Kept.YES, np.where(low > delta, Kept.NO, Kept.UNKNOWN))
    states[: len(boxes)] = codes
    cells = np.zeros((3, 3))
    np.add.at(cells, (answer.label_codes[chosen], codes[chosen]), boxes.volumes[chosen])
    cells[Kept.UNKNOWN, Kept.UNKNOWN] += answer.missing.sum()
    return cells


def _named(result: DomainResult, cells: np.ndarray, kinks: float) -> dict[str, tuple[float, float]]:
    """The areas as the result names them; on a share of at most `kinks` the attention is undecided."""
    answers = exact_answers(result)
    if not isinstance(result, RefineResult) and answers is not None and answers.regions.stopped is not None:
        missing = 1.0 - float(answers.pieces.polytopes.volumes.sum())
        cells[Kept.UNKNOWN, Kept.UNKNOWN] += max(missing, UNIT)
    rows = (tuple(float(share) for share in row) for row in cells)
    named = Shares(tuple(rows), kinks).named()  # type: ignore[arg-type]
    if isinstance(result, RefineResult):
        undecided = undecided_share(cells, result.problem.property)
        if result.problem.property is not Property.CR:
            undecided = min(1.0, undecided + kinks)
        named |= {"undecided": (undecided, undecided)}
    return named


def _runs(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From which step on units (U,) are AR, and up to which they are IR, for their states (N, U)."""
    kept, lost = states == Kept.YES, states == Kept.NO
    never = len(states)
    kept_from = never - np.logical_and.accumulate(kept[::-1], axis=0).sum(axis=0)
    return kept_from, np.logical_and.accumulate(lost, axis=0).sum(axis=0)


class _Exact:
    """Asks exact regions for one δ after another; only what a δ comes near is looked at again."""

    def __init__(self, answers: Answers) -> None:
        assert answers.curves is not None and answers.errors is not None
        self.answers, self.curves, self.errors = answers, answers.curves, answers.errors
        pieces = answers.pieces
        self.reach = coarse_reach(answers)
        self.strip = np.minimum(strip_volumes(pieces, answers.regions), pieces.polytopes.volumes)
        self.rest = pieces.polytopes.volumes - self.strip
        self.doubtful = float(answers.regions.polytopes.volumes[answers.doubtful.regions].sum())
        self.states = np.zeros(len(answers.regions), dtype=np.uint8)
        self.slab_region, self.slabs = np.zeros(0, dtype=np.int64), np.zeros((0, 4))

    def ask(self, delta: float, *, is_own: bool) -> np.ndarray:
        """Shares (3, 3) for δ, without what was not reached; sets `states` (R,), `slab_region` and `slabs`.

        `is_own`: as exactly as the answer itself.
        """
        low, high = self.reach.T
        self.states = np.where(high <= delta, Kept.YES, np.where(low > delta, Kept.NO, Kept.UNKNOWN)).astype(np.uint8)
        near = np.flatnonzero(self.states == Kept.UNKNOWN)
        pieces, cells = self.answers.pieces, np.zeros((3, 3))
        state = self.states[pieces.region]
        label = np.where(pieces.keeps_label, Kept.YES, Kept.NO)
        for attention in (Kept.YES, Kept.NO):
            is_such = state == attention
            cells[Kept.UNKNOWN, attention] += self.strip[is_such].sum()
            for code in (Kept.YES, Kept.NO):
                cells[code, attention] += self.rest[is_such & (label == code)].sum()
        self.slab_region, self.slabs = near[:0], np.zeros((0, 4))
        if len(near):
            chosen = np.flatnonzero(state == Kept.UNKNOWN)
            labels = self._label(near, delta, is_coarse=not is_own)
            found = self._near_cells(chosen, labels)
            if not is_own and found[:, Kept.UNKNOWN].sum() - self.doubtful > ENOUGH:
                labels = self._label(near, delta, is_coarse=False)
                found = self._near_cells(chosen, labels)
            cells += found
            self._keep(near, labels)
        return cells

    def _label(self, near: np.ndarray, delta: float, *, is_coarse: bool) -> AttentionLabels:
        """Labels of all regions, of which only those that are near count."""
        answers, curves = self.answers, self.curves
        own = replace(curves, curve=curves.curve[near])
        taus, doubtful = answers.taus[near], answers.doubtful.among(near)
        if is_coarse:
            labels = label_coarsely(own, taus, delta, self.errors, doubtful)
        else:
            errors = self.errors.for_curves(answers.regions.patterns, own)
            labels = label_attention(own, taus, delta, errors, doubtful)
        count = len(answers.regions)
        columns = {}
        for name in ("inner", "outer", "reach"):
            columns[name] = np.zeros((count, 2))
            columns[name][near] = getattr(labels, name)
        return AttentionLabels(delta, taus=answers.taus, **columns)

    def _near_cells(self, chosen: np.ndarray, labels: AttentionLabels) -> np.ndarray:
        answers = self.answers
        joint = join(answers.compound, answers.regions, _chosen_pieces(answers.pieces, chosen), labels)
        return np.array(shares(joint).cells)

    def _keep(self, near: np.ndarray, labels: AttentionLabels) -> None:
        """Write states of the regions that are near, and slabs of those that are neither AR nor IR as a whole."""
        is_kept, is_lost = labels.is_kept[near], labels.is_lost[near]
        self.states[near[is_kept]], self.states[near[is_lost]] = Kept.YES, Kept.NO
        axis = self.answers.compound.perturbed.moving_axis
        if axis is None:
            return
        inner, outer = labels.inner[near], labels.outer[near]
        has_any = (inner[:, 0] <= inner[:, 1]) | (outer != labels.taus[near]).any(axis=1)
        mixed = ~is_kept & ~is_lost & has_any & ~self.answers.regions.doubtful[near].astype(bool)
        compound = self.answers.compound
        lows = np.array([cell.low[axis] for cell in compound.cells])[self.answers.regions.cell[near[mixed]]]
        slabs = np.hstack([inner[mixed], outer[mixed]]) + lows[:, None] - compound.domain.low[axis]
        slabs /= compound.domain.widths[axis]
        is_empty = inner[mixed, 0] > inner[mixed, 1]
        slabs[is_empty, :2] = [2.0, -2.0]
        self.slab_region, self.slabs = near[mixed], slabs


def coarse_reach(answers: Answers) -> np.ndarray:
    """Bounds (R, 2) of ai that hold whatever δ."""
    assert answers.curves is not None and answers.errors is not None
    reach = reaches(answers.curves, answers.taus) + answers.errors.coarse * np.array([-1.0, 1.0])
    reach[answers.doubtful.regions] = answers.doubtful.bounds
    return reach


def _chosen_pieces(pieces: Pieces, chosen: np.ndarray) -> Pieces:
    columns = {name: getattr(pieces, name)[chosen] for name in ("region", "winner", "margin", "slack", "most_strip")}
    return replace(pieces, polytopes=pieces.polytopes.take(chosen), **columns)
