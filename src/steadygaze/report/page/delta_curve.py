"""The δ-curve: the share of the domain where the attention is kept against δ, as proved bounds and as a picture.

Turns a result into two staircases that enclose the share at every δ: as close as the errors of the maps and the kinks
allow where maps are kept, and where they are moved at every step of the slider; as wide as the enclosures of boxes
where a refinement left them wide. Nothing is mapped.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ...engines.refine.refine_result import RefineResult
from ...results.answer import Answers
from ...results.domain_result import DomainResult
from ..colours import DELTA_LINE, FAINT_INK, INK
from .thresholds import Thresholds, coarse_reach
from .tiles import exact_answers

MOST_STEPS = 400
"""Steps that are told apart in the picture; what lies between is rounded outward."""

ROUNDING = 1e-12
"""What the rounding of sums of volumes may be."""


@dataclass(frozen=True, eq=False)
class DeltaCurve:
    """Bounds of the share of AR: for δ in [delta[k], delta[k+1]) it lies between low[k] and high[k] (K,).

    delta[0] is 0, and the last step goes on for ever.
    """

    delta: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def at(self, delta: float) -> tuple[float, float]:
        """Bounds of the share at one δ."""
        step = max(0, int(np.searchsorted(self.delta, delta, side="right")) - 1)
        return float(self.low[step]), float(self.high[step])


def make_delta_curve(result: DomainResult, known: Thresholds) -> DeltaCurve | None:
    """The curve of a result with its thresholds; None where attention was not measured."""
    if not result.is_measured:
        return None
    low, high, volume = _enclosures(result)
    steps = _thinned(np.unique(np.concatenate([[0.0], low[np.isfinite(low)], high[np.isfinite(high)]])))
    steps = np.unique(np.append(steps[steps >= 0.0], [0.0, result.answer.delta]))
    least, most = _staircases(steps, low, high, volume)
    answers = exact_answers(result)
    kinks = 0.0 if answers is None or answers.curves is None else answers.slivers
    curve = DeltaCurve(steps, np.maximum(least - kinks, 0.0), np.minimum(most + kinks, 1.0))
    # Where the expected map moves, the enclosures of whole regions are wide.
    return curve if result.problem.perturbed.moving_axis is None else _sharpened(curve, known)


def draw_delta_curve(result: DomainResult, curve: DeltaCurve) -> Callable[[], Figure]:
    """The picture of a curve, to be made with the settings of all figures."""
    return lambda: _figure(result, curve)


def _enclosures(result: DomainResult) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bounds of ai (N,), (N,) over parts of the domain, and their volumes (N,); what was not reached is unknown."""
    answers = exact_answers(result)
    parts = [] if answers is None else [_of_regions(answers)]
    if isinstance(result, RefineResult):
        answer, boxes = result.answer, result.boxes
        parts.append((*boxes.inconsistency[answer.bounded].T, boxes.volumes[answer.bounded]))
        missing = answer.missing[answer.missing > 0.0]
        parts.append((np.zeros(len(missing)), np.full(len(missing), np.inf), missing))
    low, high, volume = (np.concatenate(column) for column in zip(*parts, strict=True))
    # What is not known encloses everything.
    return np.where(np.isnan(low), 0.0, low), np.where(np.isnan(high), np.inf, high), volume


def _of_regions(answers: Answers) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    volume = answers.regions.polytopes.volumes
    if answers.curves is None:
        return np.zeros(len(volume)), np.full(len(volume), np.inf), volume
    low, high = coarse_reach(answers).T
    return np.maximum(low, 0.0), high, volume


def _thinned(steps: np.ndarray) -> np.ndarray:
    """At most so many of the steps, spread evenly over their number and over their range."""
    if len(steps) <= MOST_STEPS:
        return steps
    places = np.linspace(0, len(steps) - 1, MOST_STEPS // 2).astype(np.int64)
    return np.unique(np.concatenate([steps[places], np.linspace(steps[0], steps[-1], MOST_STEPS // 2)]))


def _staircases(
    steps: np.ndarray, low: np.ndarray, high: np.ndarray, volume: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the share between steps: what is surely kept at the left end, what may be kept before the right end."""
    by_high, by_low = np.argsort(high, kind="stable"), np.argsort(low, kind="stable")
    kept = np.append(0.0, np.cumsum(volume[by_high]))[np.searchsorted(high[by_high], steps, side="right")]
    total = float(volume.sum())
    ends = np.append(steps[1:], np.inf)
    lost = total - np.append(0.0, np.cumsum(volume[by_low]))[np.searchsorted(low[by_low], ends, side="left")]
    # Everything is said exactly, whatever the rounding of the sums.
    is_all = np.searchsorted(high[by_high], steps, side="right") == len(high)
    is_covered = abs(total - 1.0) < 1e-9
    kept = np.where(is_all & is_covered, 1.0, np.minimum(kept, 1.0))
    return kept, np.clip(1.0 - np.where(lost > ROUNDING, lost, 0.0), kept, 1.0)


def _sharpened(curve: DeltaCurve, known: Thresholds) -> DeltaCurve:
    """The curve with the shares at the thresholds: the share grows with δ, so each tells of all others."""
    asked, (low, high) = known.deltas, known.areas["AR"].T
    # A little outward for the rounding of the sums, but nothing stays nothing, and everything stays everything.
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


def _figure(result: DomainResult, curve: DeltaCurve) -> Figure:
    delta, size = result.answer.delta, result.map_size
    figure = Figure(figsize=(7.4, 3.5), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    top = _end_of_axis(result, curve)
    x = np.append(curve.delta[curve.delta <= top], top)
    low, high = (np.append(values[: len(x) - 1], values[len(x) - 2]) for values in (curve.low, curve.high))
    # Steps as narrow as the error of the maps are not to be seen.
    if float(((high - low)[:-1] * np.diff(x)).sum()) > 1e-5 * top:
        axes.fill_between(x, low, high, step="post", color="#9db4c8", linewidth=0, label="between the proved bounds")
    axes.step(x, low, where="post", color=INK, linewidth=1.4, label="proved to be kept, at least")
    axes.axvline(delta, color=DELTA_LINE, linewidth=1.4, linestyle=(0, (4, 2)), label="δ of this report")
    axes.set_xlim(0.0, top)
    axes.set_ylim(0.0, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("allowed difference δ of the attention maps", fontsize=9.5)
    axes.set_ylabel("share of the space", fontsize=9.5)
    axes.tick_params(labelsize=8.5)
    axes.grid(color="#e3e5e8", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if size > 0.0:
        other = axes.secondary_xaxis("top", functions=(partial(np.multiply, 1.0 / size), partial(np.multiply, size)))
        other.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0 if top > 0.2 * size else None))
        other.tick_params(labelsize=8, colors=FAINT_INK)
        other.set_xlabel("in percent of the original maps' size", fontsize=8.5, color=FAINT_INK)
    figure.legend(fontsize=8.5, frameon=False, loc="outside lower center", ncols=3)
    return figure


def _end_of_axis(result: DomainResult, curve: DeltaCurve) -> float:
    """Where the curve has reached everything, or where the size of the original maps is well passed."""
    is_full = np.flatnonzero(curve.low >= 1.0)
    end = float(curve.delta[is_full[0]]) if len(is_full) else float(curve.delta[-1])
    if result.map_size > 0.0:
        end = min(end, 3.0 * result.map_size)
    return 1.08 * max(end, result.answer.delta) or 1.0
