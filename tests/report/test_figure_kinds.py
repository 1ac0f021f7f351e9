"""The content of every kind of figure, read from its artists and compared with the plain definitions."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.text import Text

import steadygaze
from steadygaze import Budget, Limits, Result
from steadygaze.labels import Property
from steadygaze.report.drawing.colours import ATTENTION, BOTH, CLASSIFICATION, FOLLOWED, SEARCHED
from steadygaze.report.figures import make_figure
from steadygaze.report.figures.boundary import boundaries_figure
from steadygaze.report.figures.path import CHANGED_FRAME
from steadygaze.words import comparison, rounded, share_text

PATCH = "patch:x=10,y=10,w=8,h=8"
PLANE = ("brightness:-0.5..0.5", PATCH)
SPACE = ("brightness:0..0.3", f"{PATCH}:0..0.3", "translate:dx=1:0..0.3")


def verify(model: str, *specs: str, image: str = "mnist:69995", **options: object) -> Result:
    return steadygaze.verify(model, image, list(specs), threads=1, method="map", **options)


@pytest.fixture(scope="module")
def plane() -> Result:
    return verify("M-FNN-100", *PLANE)


@pytest.fixture(scope="module")
def space() -> Result:
    return verify("M-FNN-100", *SPACE)


@pytest.fixture(scope="module")
def gbs() -> Result:
    specs = ["translate:dx=2:0..0.5", "brightness:0..0.05"]
    return steadygaze.search("M-FNN-100", "mnist:69992", specs, method="gbs", delta=3.0)


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def pixels(figure: Figure) -> list[np.ndarray]:
    """The images and maps on the page, in the order in which they were drawn."""
    found = figure.axes[0].findobj(AxesImage)
    return [np.asarray(image.get_array()) for image in found if image.get_array().shape == (28, 28)]


def frames(figure: Figure) -> list[float]:
    """The widths of the frames around images."""
    boxes = [patch for patch in figure.axes[0].findobj(Rectangle) if patch.get_facecolor()[3] == 0.0]
    return [box.get_linewidth() for box in boxes if box.get_width() == pytest.approx(box.get_height())]


# Paths.


def test_a_path_shows_the_images_from_zero_to_the_corner_with_their_labels(plane: Result) -> None:
    figure = make_figure("path", plane, steps=5)
    thetas = np.linspace([0.0, 0.0], [0.5, 1.0], 5)
    images = plane.question.perturbed.images(thetas)
    assert np.allclose(pixels(figure), images[:, 0])
    labels = plane.question.model.graph.logits(images).argmax(axis=1)
    assert [text for text in words(figure) if text.startswith("predicts")] == [f"predicts {label}" for label in labels]
    assert [width == CHANGED_FRAME for width in frames(figure)] == (labels != plane.label).tolist()
    assert 0 < (labels != plane.label).sum() < 5
    assert any("the label changes in 2 of 5 images, to 8" in text for text in words(figure))


def test_a_path_goes_through_the_given_thetas(plane: Result) -> None:
    figure = make_figure("path", plane, at=[[0.5, 0.0], [0.5, 1.0], [-0.5, 1.0]], steps=6)
    shown = [text for text in words(figure) if text.startswith("θ ") and not text.startswith("θ = (b")]
    assert shown == ["θ = (0, 0)", "θ = (0.5, 0)", "θ = (0.5, 0.5)", "θ = (0.5, 1)", "θ = (0, 1)", "θ = (−0.5, 1)"]
    panel = figure.axes[1]
    assert panel.get_lines()[0].get_xydata().tolist()[1::2] == [[0.5, 0.0], [0.5, 1.0], [-0.5, 1.0]]


@pytest.mark.parametrize("which", ["line", "space", "four"])
def test_paths_of_one_three_and_four_parameters(which: str, space: Result) -> None:
    if which == "four":
        specs = ["brightness:0..0.01", "darkness:0..0.01", f"{PATCH}:0..0.01", "translate:dx=1:0..0.01"]
        result = steadygaze.verify("M-FNN-100", "mnist:69995", specs, method="refine", until=0.9, threads=1)
    else:
        result = {"line": verify("M-FNN-100", "brightness:0..0.3"), "space": space}[which]
    domain = result.question.perturbed.domain
    figure = make_figure("path", result, steps=3)
    expected = [result.question.perturbed.image(share * domain.high)[0] for share in (0.0, 0.5, 1.0)]
    assert np.allclose(pixels(figure), expected)


# Strips.


def test_a_strip_shows_images_and_maps_along_one_parameter(plane: Result) -> None:
    figure = make_figure("strip", plane, along="patch", at=[[0.25, 0.0]], steps=3)
    points = [plane.at([0.25, value]) for value in (0.0, 0.5, 1.0)]
    expected = [part for point in points for part in (point.image[0], point.actual[2, 0], point.expected[2, 0])]
    assert np.allclose(pixels(figure), expected)
    shown = words(figure)
    for point in points:
        assert comparison(point.inconsistency, plane.answer.delta) in shown
    assert any(text.endswith("along patch 8×8 at (10, 10), at brightness = 0.25") for text in shown)
    assert shown.index("patch 0.5") > 0


@pytest.mark.parametrize("which", ["plane", "space", "moving"])
def test_the_curves_of_a_strip_are_the_values_along_it(which: str, plane: Result, space: Result) -> None:
    moving = verify("M-FNN-100", "brightness:0..0.1", "translate:dx=2:0..1.5")
    result, axis, held = {
        "plane": (plane, 1, [0.2, 0.0]), "space": (space, 2, [0.13, 0.22, 0.0]), "moving": (moving, 1, [0.07, 0.0]),
    }[which]  # fmt: skip
    figure = make_figure("strip", result, along=axis + 1, at=[held], steps=2)
    margin, inconsistency = (axes.get_lines()[0].get_xydata() for axes in figure.axes[1:3])
    domain = result.question.perturbed.domain
    for value in np.linspace(domain.low[axis] + 0.013, domain.high[axis] - 0.011, 9):
        theta = np.array(held)
        theta[axis] = value
        point = result.at(theta)
        assert np.interp(value, *margin.T) == pytest.approx(point.margin, abs=1e-5)
        assert np.interp(value, *inconsistency.T) == pytest.approx(point.inconsistency, abs=1e-4)


# Boundaries.


def test_boundaries_stand_side_by_side_with_telling_images(plane: Result) -> None:
    figure = make_figure("boundary", plane)
    shown = words(figure)
    assert {"How far the label is kept", "How far the attention is kept"} <= set(shown)
    shares = [text for before, text in pairwise(["", *shown]) if text.endswith(" %") and before != "θ"]
    for wanted in (Property.CR, Property.AR):
        assert share_text(plane.boundary(wanted).reachable_share) in shares
    assert [text for text in shown if text.startswith("farthest")] == ["farthest AR", "farthest CR"]
    places = [shown.index(title) for title in ("farthest AR", "farthest CR")]
    # Just inside of the boundary: the property still holds there.
    after = [shown[place : place + 4] for place in places]
    assert after[0][3].split()[1] == "≤" and after[1][2] == f"predicts {plane.label}"
    assert len(pixels(figure)) == 6


def test_boundaries_show_given_thetas(plane: Result) -> None:
    thetas = [[0.0, 0.0], [0.4, 0.2], [0.4, 0.9]]
    figure = make_figure("boundary", plane, at=thetas)
    assert np.allclose(pixels(figure), plane.question.perturbed.images(np.array(thetas))[:, 0])
    assert {"unperturbed", "other evidence", "neither kept"} <= set(words(figure))


@pytest.mark.parametrize("which", ["line", "space"])
def test_boundaries_of_one_and_three_parameters(which: str, space: Result) -> None:
    result = {"line": verify("M-FNN-100", "brightness:0..0.5"), "space": space}[which]
    figure = boundaries_figure(result, [])
    panels = [axes for axes in figure.axes[1:] if axes.findobj(AxesImage)]
    assert len(panels) == 2 * {"line": 1, "space": 3}[which]


# Columns.


@pytest.fixture(scope="module")
def networks() -> list[Result]:
    few = Budget(Limits(max_regions=200))
    return [
        steadygaze.verify(model, "mnist:69998", list(specs), method="map", threads=1, budget=few)
        for model in ("M-FNN-100", "M-FNN-200")
        for specs in (("brightness:0..0.05", f"{PATCH}:-0.4..0.1"), ("translate:dx=2:0..0.2", "brightness:0..0.05"))
    ]


def test_columns_hold_each_perturbation_at_its_strongest_for_every_network(networks: list[Result]) -> None:
    figure = make_figure("columns", networks)
    shown = words(figure)
    assert [text for text in shown if text.startswith("(")] == ["(O)", "(B)", "(P)", "(T)"]
    assert [text for text in shown if text.startswith("θ = ")] == ["θ = 0.05", "θ = −0.4", "θ = 0.2"]
    assert [text for text in shown if text.startswith("M-FNN")] == ["M-FNN-100", "M-FNN-200"]
    images, maps = pixels(figure)[:4], pixels(figure)[4:]
    assert np.allclose(images[2], networks[0].question.perturbed.image([0.0, -0.4])[0])
    wanted = []
    for bright_patch, moved in (networks[:2], networks[2:]):
        points = [bright_patch.at([0, 0]), bright_patch.at([0.05, 0]), bright_patch.at([0, -0.4]), moved.at([0.2, 0])]
        wanted += [part[bright_patch.label, 0] for point in points for part in (point.actual, point.expected)]
        for point in points:
            assert comparison(point.inconsistency, bright_patch.answer.delta) in shown
    assert np.allclose(maps, wanted)


def test_a_column_that_a_network_does_not_have_says_so(networks: list[Result]) -> None:
    figure = make_figure("columns", [networks[0], networks[3]])
    assert words(figure).count("not in its results") == 1 + 1
    assert len(pixels(figure)) == 4 + 2 * (3 + 3)


def test_columns_at_given_thetas(networks: list[Result]) -> None:
    figure = make_figure("columns", [networks[0], networks[2]], at=[[0.01, 0.1], [0.02, -0.2]])
    assert [text for text in words(figure) if text.startswith("(")] == ["(O)", "(1)", "(2)"]
    assert np.allclose(pixels(figure)[2], networks[0].question.perturbed.image([0.02, -0.2])[0])


# Tilings.


def region_labels(result: Result, by: str) -> list[str]:
    kind = {"cr": "classification", "ar": "attention"}[by]
    return [getattr(region, kind) for region in result.regions]


@pytest.mark.parametrize("by", ["cr", "ar"])
def test_tiles_have_the_colour_of_their_labels(by: str, plane: Result) -> None:
    figure = make_figure("tiling", plane, by=by)
    kind, labels = {"cr": CLASSIFICATION, "ar": ATTENTION}[by], region_labels(plane, by)
    tiles = figure.axes[1].findobj(PolyCollection)[0]
    seen = set()
    for path, colour in zip(tiles.get_paths()[::7], tiles.get_facecolors()[::7], strict=True):
        region = plane.region_at(path.vertices[:-1].mean(axis=0))
        assert region is not None and tuple(colour) == to_rgba(kind.colours[labels[region]])
        seen.add(region)
    assert len(seen) > 80
    shown = words(figure)
    for name in kind.colours:
        if labels.count(name):
            assert shown[shown.index(kind.meanings[name]) - 1].startswith(f"{labels.count(name)} · ")


def test_shades_tell_patterns_apart(plane: Result) -> None:
    tiles = make_figure("tiling", plane, by="pattern").axes[1].findobj(PolyCollection)[0]
    regions = plane.tiling.exact_regions
    shade: dict[int, tuple[float, ...]] = {}
    for path, colour in zip(tiles.get_paths(), tiles.get_facecolors(), strict=True):
        region = plane.region_at(path.vertices[:-1].mean(axis=0))
        assert region is not None
        assert shade.setdefault(int(regions.pattern[region]), tuple(colour)) == tuple(colour)
    assert len(shade) == len(np.unique(regions.pattern)) == len(set(shade.values()))


def edges(figure: Figure, colour: str) -> np.ndarray:
    lines = [patch for patch in figure.axes[1].findobj(PathPatch) if patch.get_edgecolor()[:3] == to_rgb(colour)]
    return np.concatenate([line.get_path().vertices.reshape(-1, 2, 2) for line in lines])


def test_edges_lie_between_different_regions(plane: Result) -> None:
    segments = edges(make_figure("tiling", plane), "#1f2328")
    assert len(segments) > len(plane.regions)
    lengths = np.hypot(*(segments[:, 1] - segments[:, 0]).T)
    for start, end in segments[lengths > 0.02][::9]:
        along = (end - start) / np.hypot(*(end - start))
        aside = 1e-5 * np.array([-along[1], along[0]])
        sides = {plane.region_at(0.5 * (start + end) + sign * aside) for sign in (-1, 1)}
        assert len(sides) == 2


@pytest.mark.parametrize("which", ["line", "space", "partial"])
def test_tilings_of_one_and_three_parameters_and_of_partial_maps(which: str, space: Result) -> None:
    few = Budget(Limits(max_regions=300))
    result = {
        "line": lambda: verify("M-FNN-100", "translate:dx=3:-3..3"),
        "space": lambda: space,
        "partial": lambda: verify("M-FNN-100", "translate:dy=1", "brightness", image="mnist:69996", budget=few),
    }[which]()
    figure = make_figure("tiling", result)
    assert len(figure.axes) == 1 + (3 if which == "space" else 1)
    assert ("not reached" in words(figure)) == (which == "partial")


def test_the_tiling_of_a_search_is_that_of_its_regions(gbs: Result) -> None:
    tiles = make_figure("tiling", gbs).axes[1].findobj(PolyCollection)[0]
    domain = gbs.question.perturbed.domain
    assert len(tiles.get_paths()) == gbs.region_count
    for one, path, colour in zip(gbs.tiling.visited, tiles.get_paths(), tiles.get_facecolors(), strict=True):
        point = (path.vertices[:-1].mean(axis=0) - domain.low) / domain.widths
        assert one.region.contains(point)
        label = "in part" if "AB" in one.attention or one.classification == "CB" else None
        assert tuple(colour) == to_rgba(BOTH.colours[label or f"{one.classification}&{one.attention}"])


# Searches and maps.


def test_visited_regions_are_coloured_by_phase_and_label(gbs: Result) -> None:
    figure = make_figure("visited", gbs)
    phase, attention = (figure.axes[place].findobj(PolyCollection)[0].get_facecolors() for place in (1, 3))
    for one, reached, label in zip(gbs.tiling.visited, phase, attention, strict=True):
        assert tuple(reached) == to_rgba(FOLLOWED if one.is_following else SEARCHED)
        assert tuple(label) == to_rgba(ATTENTION.colours[one.attention])
    assert 0 < sum(one.is_following for one in gbs.tiling.visited) < gbs.region_count


def test_a_map_is_drawn_for_another_delta(plane: Result) -> None:
    shown = words(make_figure("map", plane, delta=3.0))
    other = plane.with_delta(3.0)
    assert "AR  differs by ≤ δ = 3" in shown
    assert shown[shown.index("AR  differs by ≤ δ = 3") - 1] == share_text(other.areas["AR"][0])
    assert rounded(plane.answer.delta, 4) not in " ".join(shown)
