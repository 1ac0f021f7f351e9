"""The figures of searches: written, valid, the same bytes, and every label in its colour."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from PIL import Image

import steadygaze
from steadygaze import Budget
from steadygaze.report.drawing import raster
from steadygaze.report.drawing.colours import JOINT, KEPT, MIXED
from steadygaze.report.drawing.plane_sections import make_sections
from steadygaze.report.figures import draw_result
from steadygaze.report.figures.visited import common_rows, make_search_views, outlined
from steadygaze.results.result import Result

SQUARE = ["translate:dx=2:0..0.5", "brightness:0..0.05"]


def search(method: str, specs: list[str] = SQUARE, **options: object) -> Result:
    return steadygaze.search("M-FNN-100", "mnist:69992", specs, method=method, **{"delta": 3.0, **options})


@pytest.fixture(scope="module")
def gbs() -> Result:
    return search("gbs", property="both")


def test_png_and_svg_are_valid(gbs: Result, tmp_path: Path):
    files = draw_result(gbs, tmp_path / "new" / "search.png", formats=("png", "svg"))
    assert [path.name for path in files] == ["search.png", "search.svg"]
    with Image.open(files[0]) as picture:
        picture.verify()
    text = files[1].read_text(encoding="utf-8")
    assert ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"


def test_each_label_has_its_colour(gbs: Result):
    _, classification, attention, both = make_search_views(gbs)
    wanted = {"AR": KEPT, "IR": JOINT["CR&IR"], "AB": MIXED}
    for one, colour, joint in zip(gbs.tiling.visited, attention.colours, both.colours, strict=True):
        assert tuple(colour) == to_rgba(wanted[one.attention])
        if one.classification == "CR":
            assert tuple(joint) == tuple(colour)
    assert len(set(map(tuple, attention.colours))) == 3
    assert {tuple(colour) for colour in classification.colours} <= {
        to_rgba(KEPT),
        to_rgba(JOINT["MR&AR"]),
        to_rgba(MIXED),
    }


def test_tables_count_what_was_visited(gbs: Result):
    for view in make_search_views(gbs):
        counts = [int(row.share.partition(" ")[0].replace(",", "")) for row in view.rows]
        assert sum(counts) == gbs.region_count
    texts = [row.text for row in common_rows(gbs)]
    assert texts == ["reached by following", "search line from zero (0)", "not visited"]


def test_polygons_are_the_regions(gbs: Result):
    (section,) = make_sections(gbs)
    assert np.array_equal(section.piece, np.arange(gbs.region_count))
    assert np.allclose(section.polygons.volumes, [one.region.volume for one in gbs.tiling.visited])
    assert np.array_equal(outlined(gbs), [one.is_following for one in gbs.tiling.visited])


def test_a_boundary_outlines_the_regions_along_it():
    result = search("boundary", property="cr", specs=["translate:dx=2:0..1.5", "brightness:0..0.02"])
    assert result.tiling.components
    along = {key for part in result.tiling.components for key in part.inner | part.outer}
    shown = zip(result.tiling.visited, outlined(result), strict=True)
    assert {one.region.key for one, is_shown in shown if is_shown} == along
    assert common_rows(result)[0].share == "1 component"


@pytest.mark.parametrize(
    ("specs", "property", "method"),
    [
        (["brightness:0..0.3"], "both", "gbs"),
        (["translate:dx=2:-0.2..0.3"], "ar", "bfs"),
        (["brightness:-0.1..0.1"], "cr", "boundary"),
        (SQUARE, "cr", "gbs"),
        (SQUARE, "ar", "boundary"),
        (SQUARE, "both", "bfs"),
    ],
)
def test_every_method_and_property_can_be_drawn(specs: list[str], property: str, method: str, tmp_path: Path):
    for path in draw_result(search(method, specs, property=property), tmp_path / "search"):
        assert path.stat().st_size > 1000


def test_many_regions_are_drawn_as_a_picture(gbs: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fine = draw_result(gbs, tmp_path / "fine")[0]
    monkeypatch.setattr(raster, "MOST_VECTOR_PIECES", 10)
    coarse = draw_result(gbs, tmp_path / "coarse")[0]
    with Image.open(fine) as one, Image.open(coarse) as other:
        assert one.size == other.size
        difference = np.abs(np.asarray(one.convert("L"), dtype=float) - np.asarray(other.convert("L"), dtype=float))
    assert 0.0 < difference.mean() < 5.0


def test_a_run_stopped_at_once_can_be_drawn(tmp_path: Path):
    budget = Budget()
    budget.cancelled.set()
    assert len(draw_result(search("bfs", budget=budget), tmp_path / "search")) == 1


def test_three_parameters_are_drawn_as_sections_through_zero(tmp_path: Path):
    specs = ["translate:dx=2:0..0.1", "brightness:0..0.01", "patch:x=10,y=10,w=2,h=2:0..0.1"]
    result = search("bfs", specs)
    sections = make_sections(result)
    assert [section.held for section in sections] == [(2, 0.0), (1, 0.0), (0, 0.0)]
    for section in sections:
        assert section.polygons.volumes.sum() == pytest.approx(1.0, abs=1e-6)
        low, widths = section.domain.low, section.domain.widths
        for polygon, region in zip(range(len(section.polygons)), section.piece, strict=True):
            point = np.full(3, 1e-7)
            point[list(section.axes)] = section.polygons[polygon].mean(axis=0)
            assert result.tiling.visited[region].region.contains(point), (low, widths)
    assert len(draw_result(result, tmp_path / "search")) == 1


def test_four_parameters_have_no_picture(tmp_path: Path):
    budget = Budget()
    budget.cancelled.set()
    specs = ["translate:dx=2:0..0.1", "brightness:0..0.01", "patch:x=1,y=1,w=2,h=2:0..0.1", "darkness:0..0.01"]
    assert draw_result(search("bfs", specs, budget=budget), tmp_path / "search") == []
    assert not list(tmp_path.iterdir())


def test_a_small_visited_part_is_enlarged():
    # The line ends close to zero, so all visited regions lie in a corner.
    found = steadygaze.search(
        "M-FNN-100", "mnist:69990", ["brightness:0..1", "patch:x=12,y=12,w=4,h=4"], method="gbs", property="ar",
        delta=0.05, line=[0.02, 0.02], budget=steadygaze.Budget(steadygaze.Limits(max_regions=3)),
    )  # fmt: skip
    panels = [axes for axes in found.plot().axes if axes.child_axes]
    assert panels and found.coverage < 0.05
    inset = panels[0].child_axes[0]
    (left, right), (low, high) = inset.get_xlim(), inset.get_ylim()
    assert 0.0 <= left < right < 0.5 and 0.0 <= low < high < 0.5
    assert "enlarged" in inset.get_title()
