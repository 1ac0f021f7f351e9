"""Figures of refinements: boxes and regions in one tiling, bounds along a strip, and unmeasured attention."""

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import PathPatch
from matplotlib.text import Text

from steadygaze import OptionError
from steadygaze.labels import Kept
from steadygaze.report.drawing.colours import BOX_INK, CLASSIFICATION
from steadygaze.report.figures import make_figure
from support.stand_ins.made_up_refinements import box_of_theta, made

MOVING = ("translate:dx=2:0..1.5", "brightness:0..0.05")
LINE = ("brightness:0..0.3",)


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def test_boxes_and_regions_are_shown_in_one_tiling() -> None:
    result = made(MOVING, 4, (0,))
    figure = make_figure("tiling", result)
    boxes, widths = result.tiling.boxes, result.question.perturbed.domain.widths
    lines = [patch for patch in figure.axes[1].findobj(PathPatch) if patch.get_edgecolor()[:3] == to_rgb(BOX_INK)]
    corners = np.concatenate([line.get_path().vertices for line in lines])
    for axis in (0, 1):
        ends = np.unique(np.round(np.concatenate([boxes.low, boxes.high])[:, axis] * widths[axis], 9))
        assert set(np.round(corners[:, axis], 9)) <= set(ends)
    rows = words(figure)
    assert rows[rows.index("edges of regions") - 1] == f"{result.region_count:,} regions"
    assert rows[rows.index("edges of boxes") - 1] == f"{len(result.answer.bounded)} boxes"
    shares = [row.partition(" · ")[2] for row in rows]
    percents = [float(share[:-2].strip("<> ")) for share in shares if share.endswith(" %")]
    assert sum(percents) == pytest.approx(100.0, abs=0.5)


def test_boxes_have_the_colour_of_what_is_proved_of_them() -> None:
    result = made(MOVING, 4)
    tiles = make_figure("tiling", result, by="cr").axes[1].findobj(PolyCollection)[0]
    names = {Kept.YES: "CR", Kept.NO: "MR", Kept.UNKNOWN: "undecided"}
    for path, colour in zip(tiles.get_paths(), tiles.get_facecolors(), strict=True):
        box = box_of_theta(result, path.vertices[:-1].mean(axis=0))
        assert tuple(colour) == to_rgba(CLASSIFICATION.colours[names[Kept(result.answer.label_codes[box])]])
    assert "boxes: any pattern" in words(make_figure("tiling", result, by="pattern"))


def test_images_along_a_path_and_beside_the_boundaries() -> None:
    result = made(MOVING)
    for kind in ("path", "boundary"):
        figure = make_figure(kind, result, at=[[0.5, 0.01], [1.5, 0.05]])
        images = [image.get_array() for image in figure.axes[0].findobj(AxesImage)]
        shown = [image for image in images if image.shape == (28, 28)][-1]
        assert np.allclose(shown, result.question.perturbed.image([1.5, 0.05])[0])


def test_a_strip_shows_bounds_where_nothing_else_is_known() -> None:
    shown = words(make_figure("strip", made(MOVING, 4), steps=2))
    assert shown.count("thin lines: bounds") == 2


def test_unmeasured_attention_is_reported_or_refused() -> None:
    result = made(LINE, 4, property="cr")
    figure = make_figure("strip", result, steps=2)
    assert "not measured over the domain" in words(figure) and not figure.axes[2].get_lines()
    assert make_figure("tiling", result)
    with pytest.raises(OptionError, match="did not measure the attention of its regions"):
        make_figure("tiling", result, by="ar")
    with pytest.raises(OptionError, match="needs the attention"):
        make_figure("boundary", result)
