"""Figures of refinements: boxes appear as they are, undecided ones look undecided, and no claim is added."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.text import Text

from steadygaze.labels import Kept
from steadygaze.report.drawing.colours import CHANGED, KEPT, UNKNOWN
from steadygaze.report.drawing.plane_sections import make_sections
from steadygaze.report.figures.boundary import boundary_figure
from steadygaze.report.figures.map import make_views, map_figure
from steadygaze.report.figures.strip import line_through, profile
from steadygaze.report.titles import extent_text
from support.stand_ins.made_up_refinements import (
    LINE,
    MOVING,
    MOVING_LINE,
    PLANE,
    blank,
    box_of_theta,
    made,
    with_tiling,
)

SPACE = ("brightness:0..0.3", "patch:x=12,y=12,w=4,h=4:0..0.3", "translate:dx=1:0..0.3")


def words(figure) -> set[str]:
    return {text.get_text() for text in figure.findobj(Text)}


def test_every_box_has_the_colour_of_its_label():
    result = made(PLANE, 8)
    margin = np.array([[1.0, 2.0], [-2.0, -1.0], [-1.0, 1.0]])[np.arange(len(result.tiling.boxes)) % 3]
    result = with_tiling(result, boxes=replace(result.tiling.boxes, margin=margin))
    classification, attention, joint = make_views(result, make_sections(result))
    codes = result.answer.label_codes
    assert {Kept.YES, Kept.NO, Kept.UNKNOWN} == set(codes)
    for code, colour in ((Kept.YES, KEPT), (Kept.NO, CHANGED), (Kept.UNKNOWN, UNKNOWN)):
        assert (classification.colours[codes == code] == to_rgba(colour)).all()
    is_open = result.answer.attention_codes == Kept.UNKNOWN
    assert is_open.any() and (attention.colours[is_open] == to_rgba(UNKNOWN)).all()
    assert (joint.colours[is_open | (codes == Kept.UNKNOWN)] == to_rgba(UNKNOWN)).all()
    rows = {row.text: row.share for row in classification.rows}
    assert "MR  changed, to one class or several" in rows and "undecided" in rows
    assert "decision boundary" not in rows or len(classification.lines[0][-1][0])


def test_no_line_is_drawn_along_what_is_undecided():
    result = made(PLANE, 8)
    for view in make_views(result, make_sections(result)):
        for segments, _, _ in view.lines[0]:
            middles = result.question.compound.to_theta(segments.mean(axis=1))
            boxes = [box_of_theta(result, theta) for theta in middles]
            assert (result.answer.attention_codes[boxes] != Kept.UNKNOWN).all()


@pytest.mark.parametrize("specs, levels, exact", [(PLANE, 6, ()), (MOVING, 4, (1,)), (SPACE, 6, ())])
def test_figures_of_two_and_three_parameters(specs, levels, exact):
    result = made(specs, levels, exact)
    assert any(text.startswith("refinement: ") and "undecided" in text for text in words(map_figure(result)))
    found = result.boundary()
    assert any("undecided" in text for text in words(boundary_figure(result, found))) == (not found.is_certain)


def test_profile_of_one_parameter_holds_curves_and_bounds():
    result = made(MOVING_LINE, 4, (0,))
    curves = profile(result.answer, line_through(result.answer, 0, np.zeros(1)))
    assert not len(curves.gaps) and np.isfinite(curves.theta).all()
    assert (curves.theta[0], curves.theta[-1]) == (-0.2, 1.3)
    is_curve, is_band = np.isfinite(curves.margin), np.isfinite(curves.margin_bounds).all(axis=1)
    assert (is_curve != is_band).all() and is_curve.any() and is_band.any()
    for place in np.flatnonzero(is_band)[:: is_band.sum() // 10]:
        point = result.at([np.clip(curves.theta[place], -0.2, 1.3)])
        low, high = curves.inconsistency_bounds[place]
        assert low - 1e-9 <= point.inconsistency <= high + 1e-9
    assert "inconsistency" in words(map_figure(result))


def test_a_band_without_bounds_stays_empty():
    result = blank(made(LINE, 4))
    curves = profile(result.answer, line_through(result.answer, 0, np.zeros(1)))
    assert np.isnan(curves.margin).all() and np.isnan(curves.margin_bounds).all()
    assert "refinement: 0 boxes decided by bounds, 100 % undecided" in extent_text(result)
    assert "inconsistency" in words(map_figure(result))


def test_attention_that_was_not_measured_is_not_shown():
    result = made(PLANE, 6, property="cr")
    views = make_views(result, make_sections(result))
    assert [view.title for view in views[1:]] == ["Attention: not measured", "Both together: not measured"]
    shown = words(map_figure(result))
    assert "attention was not measured" in shown and not any("δ = 12" in text and "refine" in text for text in shown)


def test_pictures_are_written_for_many_boxes(tmp_path: Path):
    result = made(PLANE, 11)
    files = result.plot(tmp_path / "map.png", formats=("png", "svg"))
    assert [path.name for path in files] == ["map.png", "map.svg"] and all(path.stat().st_size for path in files)
