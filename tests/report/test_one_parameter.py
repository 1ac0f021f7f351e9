"""Maps of one parameter: curves against the plain definitions, gaps of partial maps, marks."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import Patch
from matplotlib.text import Text

from steadygaze.api import verify
from steadygaze.budget import Budget, Limits
from steadygaze.report.drawing.marks import spread
from steadygaze.report.figures.map import map_figure
from steadygaze.report.figures.strip import line_through, profile, strip_along

SPECS = {"keeps the map": ("brightness", "l2"), "moves it, L2": ("translate:dx=3:-1.5..3", "l2"),
         "moves it, L1": ("translate:dx=2", "l1")}  # fmt: skip


@pytest.mark.parametrize("spec, dist", SPECS.values(), ids=SPECS.keys())
def test_curves_are_margin_and_inconsistency(spec: str, dist: str) -> None:
    result = verify("M-FNN-100", "mnist:69998", spec, dist=dist)
    curves = profile(result.answer, line_through(result.answer, 0, np.zeros(1)))
    domain = result.tiling.answers.compound.domain
    assert (curves.theta[0], curves.theta[-1]) == (domain.low[0], domain.high[0])
    assert (np.diff(curves.theta) >= -1e-12).all()
    assert not len(curves.gaps)
    # Jumps stand at two equal thetas; between two different ones the map can be asked.
    places = np.flatnonzero(np.diff(curves.theta) > 1e-6)
    for place in places[:: len(places) // 25]:
        middle = 0.5 * (curves.theta[place] + curves.theta[place + 1])
        point = result.at([middle])
        ends = curves.inconsistency[place : place + 2]
        assert ends.min() - 0.05 <= point.inconsistency <= ends.max() + 0.05
        assert point.margin == pytest.approx(curves.margin[place : place + 2].mean(), abs=0.01)


def test_figure_has_bands_curves_and_the_threshold() -> None:
    result = verify("M-FNN-100", "mnist:69992", "brightness")
    figure = map_figure(result)
    shown = [text.get_text() for text in figure.findobj(Text)]
    for word in ("Classification", "Attention", "Both together", "margin", "inconsistency", "brightness", "δ"):
        assert word in shown
    level = [line for axes in figure.axes for line in axes.lines if list(line.get_ydata()) == 2 * [result.answer.delta]]
    assert len(level) == 1


def test_a_threshold_far_above_does_not_press_the_curve_flat() -> None:
    result = verify("M-FNN-100", "mnist:69992", "brightness:0..0.1", delta=1e6)
    figure = map_figure(result)
    shown = [text.get_text() for text in figure.findobj(Text)]
    assert "δ ↑" in shown
    assert max(axes.get_ylim()[1] for axes in figure.axes[4:6]) < 1e3


def test_texts_of_pointing_lie_inside_the_figure() -> None:
    options = {"attention": "pointing", "mask": "auto:bright=0.2,grow=1"}
    figure = strip_along(verify("M-FNN-100", "mnist:69992", "brightness:0..0.1", **options))
    canvas = FigureCanvasAgg(figure)
    width = figure.get_figwidth() * figure.dpi
    for text in figure.findobj(Text):
        if text.get_text():
            assert text.get_window_extent(canvas.get_renderer()).x1 <= width, text.get_text()


def test_gaps_of_a_partial_map_are_hatched_between_the_curves() -> None:
    budget = Budget(Limits(max_regions=17))
    result = verify("M-FNN-100", "mnist:69996", "translate:dx=3:-3..3", budget=budget, threads=1)
    curves = profile(result.answer, line_through(result.answer, 0, np.zeros(1)))
    assert not result.is_complete
    assert np.diff(curves.gaps, axis=1).sum() / 6 == pytest.approx(1 - result.answer.joint.polytopes.volumes.sum())
    for low, high in curves.gaps:
        inside = curves.theta[(curves.theta > low + 1e-6) & (curves.theta < high - 1e-6)]
        assert not len(inside)
    figure = map_figure(result)
    hatched = [patch for axes in figure.axes for patch in axes.findobj(Patch) if patch.get_hatch()]
    # Three bands, three tables, and each gap in both plots.
    assert len(hatched) == 3 + 3 + 2 * len(curves.gaps)


def test_numbers_above_the_plots_keep_their_distance() -> None:
    spots = spread([0.0, 0.01, 0.02, 0.9, 7.0], 0.23)
    assert (np.diff(spots) >= 0.23 - 1e-5).all()
    assert spots[-1] == 7.0


def test_legends_are_not_cut() -> None:
    """The longest words and shares side by side: texts become smaller instead."""
    asked = {"attention": "object", "mask": "auto:bright=0.2", "method": "map"}
    result = verify("M-FNN-100", "mnist:69990", "brightness:0..0.01", tau=0.99, **asked)
    texts = [text.get_text() for text in map_figure(result).findobj(Text)]
    assert any(text.startswith("AR  mass on the object ≥ τ = 99") for text in texts)
    assert not [text for text in texts if "…" in text]
