"""Figures of three parameters: plane sections of the map that tile the plane and carry the labels of their pieces."""

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch
from matplotlib.text import Text

from steadygaze.api import verify
from steadygaze.budget import Budget, Limits
from steadygaze.polytopes import Polyhedra
from steadygaze.report.drawing import raster
from steadygaze.report.drawing.plane_sections import make_sections
from steadygaze.report.drawing.raster import borders_between
from steadygaze.report.figures.map import make_views, map_figure
from steadygaze.results.result import Result

SPECS = ["translate:dx=2:0.9..1.1", "patch:x=12,y=12,w=4,h=4:-0.3..0.46", "brightness:0..0.2"]


@pytest.fixture(scope="module")
def result() -> Result:
    return verify("M-FNN-100", "mnist:69992", SPECS, delta="70%", threads=1)


@pytest.fixture(scope="module")
def figure(result: Result) -> Figure:
    return map_figure(result)


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("at", [1e-7, 0.25, 0.5, 0.7317, 1.0 - 1e-7])
def test_sections_tile_the_plane(result: Result, axis: int, at: float) -> None:
    joint = result.answer.joint
    polygons, piece = joint.polytopes.section(axis, at)
    assert polygons.volumes.sum() == pytest.approx(1.0, abs=1e-9)
    assert (polygons.volumes > -1e-15).all(), "counter-clockwise"
    assert (polygons.facets[polygons.facet_sizes > 1e-9] != 0).all()
    across = [other for other in range(3) if other != axis]
    points = np.insert(polygons.centres, axis, at, axis=1)
    for place in np.random.default_rng(0).choice(len(piece), 30):
        assert joint.polytopes.distance_to_hull(points[place], joint.polytopes[piece[place]]) < 1e-9
    low, high = (np.array([extent(piece, joint, other, end) for other in across]).T for end in (0, 1))
    assert (polygons.points >= low[polygons.owner] - 1e-9).all()
    assert (polygons.points <= high[polygons.owner] + 1e-9).all()


def extent(piece: np.ndarray, joint: object, axis: int, end: int) -> np.ndarray:
    return joint.polytopes.extent(axis)[end][piece]


def test_a_plane_through_vertices_and_edges() -> None:
    """Two halves of the cube, cut along x = y: the plane z = 1/2 meets two triangles that share a border."""
    cube = Polyhedra.boxes(np.zeros((1, 3)), np.ones((1, 3)), np.arange(1, 7).reshape(1, 3, 2))
    logits = np.zeros((1, 4, 2))
    logits[0, :2, 0] = (1.0, -1.0)
    pieces, *_ = cube.split_by_argmax(logits, 1e-12, 6)
    polygons, piece = pieces.section(2, 0.5)
    assert np.diff(polygons.starts).tolist() == [3, 3] and piece.tolist() == [0, 1]
    segments = borders_between(polygons.touching(), np.array([0, 1]))
    assert len(segments) == 1
    np.testing.assert_allclose(sorted(segments[0].tolist()), [[0.0, 0.0], [1.0, 1.0]], atol=1e-12)
    assert len(borders_between(pieces.section(0, 0.5)[0].touching(), np.array([0, 1]))) == 1
    tip, _ = pieces.split_by_slab(np.array([[0.5, 2.0]] * 2), np.eye(3)[[2, 2]], 7)[0].section(2, 0.5 + 1e-7)
    assert tip.volumes.sum() == pytest.approx(1.0)


def test_the_figure_says_what_is_held(result: Result, figure: Figure) -> None:
    """Zero is outside of the translation's range: there the low end is held."""
    text = words(figure)
    names = result.tiling.answers.compound.domain.names
    for axis, value in enumerate(("0.9", "0", "0")):
        assert any(f"{names[axis]} = {value}: " in line for line in text), names[axis]
    assert any("Shares of the whole domain" in line for line in text)
    named = [axes.get_xlabel() for axes in figure.axes]
    assert [named.count(name) for name in names] == [6, 3, 0]


def test_nine_panels_with_the_labels_of_the_pieces(result: Result, figure: Figure) -> None:
    sections = make_sections(result)
    assert [section.axes for section in sections] == [(0, 1), (0, 2), (1, 2)]
    drawn = [len(c.get_paths()) for c in figure.findobj(PolyCollection) if len(c.get_paths()) > 1]
    pictures = [image for image in figure.findobj(AxesImage) if image.get_array().shape[0] == raster.PIXELS]
    vectors = [len(section.polygons) for section in sections if len(section.polygons) <= raster.MOST_VECTOR_PIECES]
    assert drawn == [size for size in vectors for _ in range(3)]
    assert len(drawn) + len(pictures) == 9
    views = make_views(result, sections)
    for section in sections:
        theta = np.insert(section.polygons.centres, section.held[0], 0.0, axis=1)
        chosen = section.polygons.volumes > 1e-4
        domain = result.tiling.answers.compound.domain
        thetas = domain.low + theta * domain.widths
        thetas[:, section.held[0]] = section.held[1] + 2e-7 * domain.widths[section.held[0]]
        for number in np.flatnonzero(chosen)[:20]:
            point = result.at(thetas[number])
            if abs(point.margin) > 1e-4:
                keeps = result.answer.joint.pieces.keeps_label[section.piece[number]]
                assert keeps == (point.margin > 0)
    assert all(len(view.lines) == 3 for view in views)


def test_exhibits_are_marked_where_they_lie_in_the_plane(result: Result) -> None:
    first, second, third = make_sections(result)
    assert first.shows(np.array([1.0, 0.2, 0.0])) and not first.shows(np.array([1.0, 0.2, 0.1]))
    assert second.shows(np.array([1.0, 0.0, 0.1])) and third.shows(np.array([0.9, 0.3, 0.1]))
    assert not third.shows(np.zeros(3)), "zero is outside of the domain"


def test_the_unreached_part_of_a_partial_map_is_hatched() -> None:
    budget = Budget(Limits(max_regions=1))
    partial = verify("M-FNN-100", "mnist:69992", SPECS, delta="70%", threads=1, budget=budget)
    figure = map_figure(partial)
    assert not partial.is_complete
    hatched = [
        patch for axes in figure.axes for patch in axes.patches if isinstance(patch, Patch) and patch.get_hatch()
    ]
    assert len(hatched) >= 9
