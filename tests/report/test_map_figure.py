"""The figure of a map: its polygons, lines, words and shares."""

import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch, PathPatch
from matplotlib.text import Text

from steadygaze.api import verify
from steadygaze.budget import Budget, Limits
from steadygaze.report.drawing import colours, raster
from steadygaze.report.drawing.plane_sections import make_sections
from steadygaze.report.drawing.sheet import drawing_settings
from steadygaze.report.figures.map import make_views, map_figure
from steadygaze.report.titles import share_not_reached
from steadygaze.results.result import Result
from steadygaze.words import percent_up, rounded, share_text

PATCH = "patch:x=10,y=10,w=8,h=8"


@pytest.fixture(scope="module")
def small() -> Result:
    return verify("M-FNN-100", "mnist:69995", ["brightness:-0.5..0.5", PATCH])


@pytest.fixture(scope="module")
def small_figure(small: Result) -> Figure:
    return map_figure(small)


@pytest.fixture(scope="module")
def large() -> Result:
    return verify("M-FNN-100", "mnist:69998", ["translate:dy=1", "brightness"], delta="50%")


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def pictures(figure: Figure) -> list[AxesImage]:
    """The images that hold a whole view of a map; those of the strip and of swatches are far smaller."""
    return [image for image in figure.findobj(AxesImage) if image.get_array().shape[0] == raster.PIXELS]


def test_every_piece_is_drawn_once_in_each_of_three_panels(small: Result, small_figure: Figure) -> None:
    collections = small_figure.findobj(PolyCollection)
    drawn = [collection for collection in collections if len(collection.get_paths()) > 1]
    joint = small.answer.joint
    assert [len(collection.get_paths()) for collection in drawn] == 3 * [len(joint.pieces)]
    corners = np.vstack([path.vertices for path in drawn[0].get_paths()])
    assert corners.min(axis=0).tolist() == [-0.5, 0.0]
    assert corners.max(axis=0).tolist() == [0.5, 1.0]
    assert not pictures(small_figure)


def test_pieces_of_the_joint_panel_have_the_colour_of_their_labels(small: Result) -> None:
    joint = small.answer.joint
    view = make_views(small, make_sections(small))[2]
    areas = joint.polytopes.volumes
    for name, colour in colours.JOINT.items():
        chosen = np.abs(view.colours[:, :3] - to_rgb(colour)).max(axis=1) < 1e-6
        low, high = small.areas[name]
        assert low - 1e-9 <= areas[chosen].sum() <= high + 1e-9


def test_a_large_map_is_a_picture_with_the_same_shares(large: Result) -> None:
    figure = map_figure(large)
    assert len(large.answer.joint.pieces) > raster.MOST_VECTOR_PIECES
    assert len(pictures(figure)) == 3
    pixels = np.asarray(pictures(figure)[2].get_array())
    assert (pixels[..., 3] == 1.0).all()
    for name, colour in colours.JOINT.items():
        share = (np.abs(pixels[..., :3] - to_rgb(colour)).max(axis=2) < 0.02).mean()
        assert share == pytest.approx(large.areas[name][0], abs=0.005)


def test_title_names_model_image_label_and_verdict(small: Result, small_figure: Figure) -> None:
    title = next(text for text in words(small_figure) if text.startswith("M-FNN-100"))
    assert title == "M-FNN-100 on mnist:69995, label 2: label and attention not robust"
    facts = next(text for text in words(small_figure) if text.startswith("map of"))
    assert f"{len(small.tiling.answers.regions)} regions" in facts
    assert f"δ = {rounded(small.answer.delta, 4)} (25 % of" in facts


def test_tables_hold_all_shares_and_the_axes_are_named(small: Result, small_figure: Figure) -> None:
    shown = words(small_figure)
    for name in ("CR", "AR", "IR", "CR&AR", "CR&IR", "MR&AR", "MR&IR"):
        rows = [text for text in shown if text.startswith(f"{name}  ")]
        assert len(rows) == 1
        assert shown[shown.index(rows[0]) - 1] == share_text(*small.areas[name])
    assert [text for text in shown if text.startswith("MR  ")] == [f"MR  changed to {n}" for n in (8, 7, 4)]
    assert shown.count("brightness") == 3
    assert shown.count("patch 8×8 at (10, 10)") == 1


def test_a_robust_domain_is_said_to_be_proved() -> None:
    result = verify("M-FNN-100", "mnist:69995", ["brightness:0..0.02", f"{PATCH}:0..0.02"])
    figure = map_figure(result)
    shown = words(figure)
    assert shown[0] == "M-FNN-100 on mnist:69995, label 2: label and attention proved robust"
    assert shown[shown.index("CR&AR  label and attention kept") - 1] == "100 %"
    assert "decision boundary" not in shown
    assert "inconsistency = δ" not in shown


@pytest.mark.parametrize(
    "name, shown",
    [
        ("a$b_$", "a$b_$"),
        (r"$\pi$ %", r"$\pi$ %"),
        ("<b>&amp;--", "<b>&amp;--"),
        ("a\tb\x01\udcff", "a b ▯"),
        ("W" * 300, None),
    ],
)
def test_names_from_users_are_shown_literally(name: str, shown: str | None, tmp_path: Path) -> None:
    names = [name if number == 7 else str(number) for number in range(10)]
    result = verify("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], names=names)
    with warnings.catch_warnings(), drawing_settings():
        warnings.simplefilter("error")
        figure = map_figure(replace(result, question=replace(result.question, model_name=name)))
        figure.savefig(tmp_path / "figure.svg")
        texts = figure.findobj(Text)
    ET.parse(tmp_path / "figure.svg")
    assert not any(text.get_parse_math() for text in texts)
    if shown is not None:
        assert {f"CR  label kept: {shown}", f"predicts {shown}", f"of class {shown}"} <= set(words(figure))
        assert words(figure)[0].startswith(f"{shown} on mnist:69990, label {shown}: ")
    right = figure.bbox.x1
    assert all(text.get_window_extent().x1 <= right for text in texts if text.get_text())


def test_the_unreached_part_of_a_partial_map_is_hatched_and_named() -> None:
    budget = Budget(Limits(max_regions=300))
    result = verify("M-FNN-100", "mnist:69996", ["translate:dy=1", "brightness"], budget=budget, threads=1)
    missing = share_not_reached(result)
    assert 0.0 < missing < 1.0
    figure = map_figure(result)
    shown = words(figure)
    assert shown.count("not reached") == 3
    assert shown[shown.index("not reached") - 1] == percent_up(missing)
    assert any(text.startswith("partial map (limit of 300 regions)") for text in shown)
    in_panels = [patch for axes in figure.axes[1:] for patch in axes.findobj(Patch) if patch.get_hatch()]
    assert len(in_panels) == 3
    assert (np.asarray(pictures(figure)[0].get_array())[..., 3] == 0.0).mean() == pytest.approx(missing, abs=0.005)


def test_lines_follow_the_property(small: Result, small_figure: Figure) -> None:
    """The line of the attention panel separates thetas with ai ≤ δ from others, by the plain definitions."""
    panel = small_figure.axes[2]
    assert panel.get_title() == ""
    line = next(patch for patch in panel.findobj(PathPatch) if patch.get_edgecolor()[:3] == to_rgb(colours.DELTA_LINE))
    segments = line.get_path().vertices.reshape(-1, 2, 2)
    assert len(segments) > 10
    for start, end in segments[:: max(1, len(segments) // 12)]:
        along = end - start
        aside = 1e-5 * np.array([-along[1], along[0]]) / np.hypot(*along)
        sides = [small.at(0.5 * (start + end) + sign * aside).inconsistency for sign in (-1, 1)]
        assert min(sides) <= small.answer.delta < max(sides)


def test_grey_print_keeps_the_joint_labels_apart() -> None:
    luminance = [float(np.array(to_rgb(colour)) @ [0.2126, 0.7152, 0.0722]) for colour in colours.JOINT.values()]
    assert luminance == sorted(luminance, reverse=True)
    assert min(-np.diff(luminance)) > 0.12
    kept, lost = colours.AR_SHADES(1.0), colours.IR_SHADES(0.0)
    assert np.array(kept[:3]) @ [0.2126, 0.7152, 0.0722] > np.array(lost[:3]) @ [0.2126, 0.7152, 0.0722]
