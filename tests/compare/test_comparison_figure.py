"""The figure of a comparison: files of every format, the same bytes, and shares that are those of the comparison."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import AxesImage
from matplotlib.text import Text

from steadygaze.api import verify
from steadygaze.compare.comparison import Comparison, compare_results
from steadygaze.compare.comparison_figure import COLOURS, NAMES, comparison_figure, draw_comparison
from steadygaze.compare.overlay import COMBINATIONS
from steadygaze.report.drawing import raster
from steadygaze.words import share_text
from support.networks.compared_networks import answered


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few pixels, which take no time."""
    monkeypatch.setattr(raster, "PIXELS", 150)


def comparison(kind: str, *seeds: int) -> Comparison:
    results = [answered(seed, kind) for seed in seeds]
    return compare_results(
        [
            replace(one, question=replace(one.question, model_name=f"net {seed}"))
            for seed, one in zip(seeds, results, strict=True)
        ]
    )


def words(found: Comparison) -> list[str]:
    return [text.get_text() for text in comparison_figure(found).findobj(Text)]


@pytest.mark.parametrize(("kind", "panels"), [("kept", 3), ("line", 3), ("solid", 9)])
def test_panels_and_shares(kind, panels):
    found = comparison(kind, 0, 1)
    drawn = comparison_figure(found)
    assert len(drawn.findobj(AxesImage)) == panels
    written = [text.get_text() for text in drawn.findobj(Text)]
    for difference in found.differences:
        for name in ("both", "first", "second", "neither"):
            assert share_text(*difference.shares[name]) in written
    assert "2 networks compared" in written and "net 0 against net 1" in written


def test_names_of_codes():
    """Codes are kept, undecided, lost, first result before second."""
    for name, (first, second) in COMBINATIONS.items():
        assert NAMES[3 * first + second] == name
    assert NAMES.count("undecided") == 5 and len(set(COLOURS.values())) == 5


def test_pixels_are_as_many_as_the_shares_say():
    found = comparison("kept", 0, 3)
    images = comparison_figure(found).findobj(AxesImage)
    for image, difference in zip(images, found.differences, strict=True):
        pixels = np.asarray(image.get_array())[..., :3]
        for name in ("both", "first", "second", "neither"):
            colour = np.array([int(COLOURS[name][i : i + 2], 16) for i in (1, 3, 5)]) / 255
            share = np.mean(np.abs(pixels - colour).max(axis=2) < 0.01)
            low, high = difference.shares[name]
            assert low - 0.01 <= share <= high + 0.01, (difference.property, name)


def test_every_format_and_the_same_bytes(tmp_path):
    found = comparison("line", 0, 1)
    files = draw_comparison(found, tmp_path / "one")
    assert [file.suffix for file in files] == [".png", ".svg", ".pdf"]
    assert draw_comparison(found, tmp_path / "two.svg") == [tmp_path / "two.svg"]
    assert (tmp_path / "two.svg").read_bytes() == files[1].read_bytes()


def test_other_domains_have_bars_and_risks_alone():
    results = [answered(0, "line"), answered(0, "moving")]
    written = words(compare_results(results))
    assert {"MR or IR", "nearest IR", "rank by risk"} <= set(written)
    assert not comparison_figure(compare_results(results)).findobj(AxesImage)


def test_a_whole_domain_is_written_as_such_although_its_pieces_do_not_add_up_to_1():
    specs = ["brightness:0..0.02", "contrast:pivot=mean:-0.5..0.5"]
    results = [verify("M-FNN-100", "mnist:69990", spec) for spec in specs]
    assert results[1].areas["CR&AR"] == (1.0, 1.0) and results[1].answer.shares.cells[0][0] < 1.0
    written = words(compare_results(results))
    assert "100 %" in written and "99.99 %" not in written


def test_more_results_than_fit_are_counted():
    found = comparison("line", *range(7))
    written = words(found)
    assert any(text.startswith("Difference maps not shown: 2;") for text in written)


def test_hostile_and_long_names_stay_inside(tmp_path):
    found = comparison("line", 0, 1)
    found = replace(found, names=("$\\frac{</text><script>alert(1)</script>", "x" * 300))
    (file,) = draw_comparison(found, tmp_path / "a.svg")
    text = file.read_text(encoding="utf-8")
    assert "<script>" not in text
    drawn = comparison_figure(found)
    renderer = drawn.canvas.get_renderer()
    for artist in drawn.findobj(Text):
        assert artist.get_window_extent(renderer).x1 <= drawn.bbox.x1 + 1 or not artist.get_text()


def test_no_colour_of_a_difference_map_has_a_meaning_in_the_bars():
    from steadygaze.compare.comparison_figure import COLOURS
    from steadygaze.report.drawing import colours

    bars = {*colours.JOINT.values(), colours.KEPT, colours.CHANGED, colours.MIXED}
    own = [colour for name, colour in COLOURS.items() if name != "undecided"]
    assert not bars & set(own) and len(set(own)) == 4 and COLOURS["undecided"] == colours.UNKNOWN
