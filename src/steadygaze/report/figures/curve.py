"""The figure of a curve: the share of the domain that keeps its attention against every threshold, with bounds."""

from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from ...attention.measures.distance import DISTANCE
from ...errors import OptionError
from ...results.result import Result
from ..drawing.colours import DELTA_LINE, FAINT_INK, INK
from ..thresholds import DeltaCurve, make_delta_curve, make_thresholds
from ..titles import subject_text


def curve_figure(result: Result) -> Figure:
    """The curve of a result with its title; OptionError if attention was not measured or has no threshold."""
    measure = result.question.attention.measure
    curve = make_delta_curve(result, make_thresholds(result)) if measure.option else None
    if curve is None:
        why = "attention was not measured" if measure.option else f"attention {measure.name} has no threshold"
        raise OptionError(f"curve needs a threshold, but {why}; use map")
    figure = delta_figure(result, curve)
    figure.suptitle(f"{subject_text(result.question)}: {measure.noun}", fontsize=10.5, color=INK, weight="bold")
    return figure


def delta_figure(result: Result, curve: DeltaCurve) -> Figure:
    """The picture of a curve, for the settings of all figures."""
    delta, size, measure = result.answer.delta, result.question.map_size, result.question.attention.measure
    figure = Figure(figsize=(7.4, 3.5), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    top = _end_of_axis(result, curve)
    x = np.append(curve.delta[curve.delta <= top], top)
    low, high = (np.append(values[: len(x) - 1], values[len(x) - 2]) for values in (curve.low, curve.high))
    # Steps as narrow as the error of the maps are invisible.
    if float(((high - low)[:-1] * np.diff(x)).sum()) > 1e-5 * top:
        axes.fill_between(x, low, high, step="post", color="#9db4c8", linewidth=0, label="between the proved bounds")
    axes.step(x, low, where="post", color=INK, linewidth=1.4, label="proved to be kept, at least")
    axes.axvline(delta, color=DELTA_LINE, linewidth=1.4, linestyle=(0, (4, 2)), label=f"chosen {measure.symbol_word}")
    axes.set_xlim(0.0, top)
    axes.set_ylim(0.0, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel(measure.threshold_axis, fontsize=9.5)
    axes.set_ylabel("share of the domain", fontsize=9.5)
    axes.tick_params(labelsize=8.5)
    axes.grid(color="#e3e5e8", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if measure != DISTANCE:
        # From lax to strict thresholds, which are 1 − the largest loss.
        axes.set_xlim(top, 0.0)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda loss, _: f"{max(0.0, 1.0 - loss):.4g}"))
    elif size > 0.0:
        other = axes.secondary_xaxis("top", functions=(partial(np.multiply, 1.0 / size), partial(np.multiply, size)))
        other.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0 if top > 0.2 * size else None))
        other.tick_params(labelsize=8, colors=FAINT_INK)
        other.set_xlabel("in percent of the original maps' size", fontsize=8.5, color=FAINT_INK)
    figure.legend(fontsize=8.5, frameon=False, loc="outside lower center", ncols=3)
    return figure


def _end_of_axis(result: Result, curve: DeltaCurve) -> float:
    """The δ at which the curve reaches 1, or well beyond the size of the original maps; 1 for shares and cosines."""
    if result.question.attention.measure != DISTANCE:
        return 1.0
    is_full = np.flatnonzero(curve.low >= 1.0)
    end = float(curve.delta[is_full[0]]) if len(is_full) else float(curve.delta[-1])
    if result.question.map_size > 0.0:
        end = min(end, 3.0 * result.question.map_size)
    return 1.08 * max(end, result.answer.delta) or 1.0
