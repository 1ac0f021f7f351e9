"""Figures and comparisons of a map in chunks take one chunk at a time, and show what the joined map shows."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from steadygaze import compare
from steadygaze.budget import Limits
from steadygaze.compare.comparison_figure import comparison_figure
from steadygaze.compare.overlay import lay_over
from steadygaze.errors import OptionError
from steadygaze.labels import Property
from steadygaze.report.drawing.plane_sections import make_sections
from steadygaze.report.drawing.raster import all_pixel_owners
from steadygaze.report.figures.boundary import _just_inside, boundary_figure
from steadygaze.report.figures.strip import line_through, profile
from steadygaze.report.figures.tiling import tiling_figure
from support.networks.chunked_maps import MOVING, QUESTIONS, Three, make_three, run_in_chunks


@pytest.fixture(params=QUESTIONS, scope="module")
def three(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Three:
    return make_three(request.param, tmp_path_factory)


def test_pieces_are_in_memory_one_block_at_a_time(three: Three):
    answer, whole, numbers = three.loaded.answer, three.joined.answer.joint, list[np.ndarray]()
    with pytest.raises(OptionError, match="one chunk at a time"):
        _ = answer.joint
    for block in answer.blocks():
        own = block.piece + np.arange(len(block.joint.pieces))
        np.testing.assert_array_equal(block.region + block.joint.pieces.region, whole.pieces.region[own])
        np.testing.assert_allclose(block.joint.polytopes.volumes, whole.polytopes.volumes[own], atol=1e-12)
        numbers.append(own)
    assert len(numbers) > 1
    np.testing.assert_array_equal(np.concatenate(numbers), np.arange(len(whole.pieces)))


def test_a_box_gives_the_blocks_that_touch_it(three: Three):
    answer, dimension = three.loaded.answer, three.whole.question.compound.coordinates
    rng = np.random.default_rng(5)
    for width in (0.0, 0.1, 0.5):
        low = rng.uniform(0.0, 1.0 - width, dimension)
        box = np.stack([low, low + width])
        found = {block.piece for block in answer.blocks(box)}
        for block in answer.blocks():
            ends = block.joint.polytopes.bounding_boxes()
            touches = ((ends[0] <= box[1]) & (ends[1] >= box[0])).all(axis=1).any()
            assert block.piece in found or not touches
    few, all_blocks = (len(list(answer.blocks(box))) for box in (np.zeros((2, dimension)), None))
    assert few < all_blocks or all_blocks < 3


def test_curves_along_a_line_are_the_same(three: Three):
    domain = three.whole.question.perturbed.domain
    for axis in range(domain.dimension):
        theta = domain.low + 0.3 * domain.widths
        own, expected = (profile(r.answer, line_through(r.answer, axis, theta)) for r in (three.loaded, three.joined))
        for name in ("theta", "margin", "inconsistency", "margin_bounds", "inconsistency_bounds", "gaps"):
            np.testing.assert_allclose(getattr(own, name), getattr(expected, name), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(own.theta, expected.theta, atol=1e-12)


def test_sections_show_the_same_pieces(three: Three):
    for by_region in (False, True):
        grids = [
            [all_pixel_owners(section) for section in make_sections(result, by_region=by_region)]
            for result in (three.loaded, three.joined)
        ]
        for own, expected in zip(*grids, strict=True):
            # Points on borders may belong to either side.
            assert own.shape == expected.shape and (own != expected).mean() < 1e-5


def test_boundaries_and_tilings_are_drawn_alike(three: Three):
    """The rows of the tables, the borders between parts, and the colours."""
    boundaries = [(result, result.boundary(Property.AR)) for result in (three.loaded, three.joined)]
    own, expected = (_panel(boundary_figure(*pair)) for pair in boundaries)
    assert own[0] == expected[0] and np.abs(own[1] - expected[1]).mean() < 1e-4
    near, same = (_just_inside(*pair, pair[1].farthest) for pair in boundaries if pair[1].farthest is not None)
    np.testing.assert_allclose(near, same, atol=1e-9)
    for by in ("cr", "both", "pattern"):
        own, expected = (_panel(tiling_figure(result, by)) for result in (three.loaded, three.joined))
        count = f"{three.whole.region_count:,}"
        assert own[0] - expected[0] == {"regions, drawn without edges", count}
        assert expected[0] - own[0] == {"edges of regions", f"{count} regions"}


def _panel(figure: Figure) -> tuple[set[str], np.ndarray]:
    """All words of a figure, and its first picture; nothing if it has none."""
    axes = [axes for axes in figure.get_axes() if axes.get_images()]
    picture = np.asarray(axes[0].get_images()[0].get_array()) if axes else np.zeros((1, 1))
    return {text.get_text() for text in figure.findobj(Text)}, picture


@pytest.mark.parametrize("three", [MOVING, "kept, L1", "one parameter"], indirect=True)
def test_overlays_are_the_same_whatever_is_in_chunks(three: Three):
    pairs = [
        [first, second.with_delta("60%")]
        for first in (three.loaded, three.joined)
        for second in (three.loaded, three.joined)
    ]
    for wanted in Property:
        *found, expected = (lay_over(*pair, wanted) for pair in pairs)
        for own in found:
            np.testing.assert_allclose(own.cells, expected.cells, atol=1e-12)
            np.testing.assert_allclose(own.doubt, expected.doubt, atol=1e-6)


@pytest.mark.parametrize("three", [MOVING], indirect=True)
def test_the_larger_map_of_an_overlay_passes_in_blocks(three: Three):
    partial = run_in_chunks(MOVING, limits=Limits(max_regions=600))
    for wanted in (Property.CR, Property.BOTH):
        own, turned = lay_over(partial, three.loaded, wanted), lay_over(three.loaded, partial, wanted)
        np.testing.assert_array_equal(own.cells, turned.cells.T)
        np.testing.assert_array_equal(own.doubt, turned.doubt[::-1].transpose(0, 2, 1))


@pytest.mark.parametrize("three", [MOVING, "three parameters"], indirect=True)
def test_a_comparison_is_drawn(three: Three):
    pairs = [[result, result.with_delta("60%")] for result in (three.loaded, three.joined)]
    own, expected = (_panel(comparison_figure(compare(pair))) for pair in pairs)
    assert np.abs(own[1] - expected[1]).mean() < 1e-4
