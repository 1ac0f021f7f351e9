"""The thetas that a figure shows, and the numbers that mark them."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from matplotlib.image import AxesImage
from matplotlib.text import Text

from steadygaze.api import verify
from steadygaze.report.drawing.exhibits import MOST, choose_exhibits
from steadygaze.report.drawing.marks import place_badges
from steadygaze.report.figures.map import map_figure
from steadygaze.results.result import Result
from steadygaze.words import comparison


@pytest.fixture(scope="module")
def result() -> Result:
    return verify("M-FNN-100", "mnist:69995", ["brightness:-0.5..0.5", "patch:x=10,y=10,w=8,h=8"])


def test_exhibits_are_what_their_titles_say(result: Result) -> None:
    exhibits = {exhibit.title: exhibit.point for exhibit in choose_exhibits(result)}
    assert list(exhibits)[:4] == ["unperturbed", "nearest IR", "nearest MR", "other evidence"]
    assert not exhibits["unperturbed"].theta.any()
    assert (exhibits["unperturbed"].image == result.question.perturbed.x0).all()
    delta, label = result.answer.delta, result.label
    for title, name in (("nearest IR", "AR"), ("nearest MR", "CR")):
        nearest = result.answer.nearest[name].theta
        assert nearest is not None
        assert (exhibits[title].theta == nearest).all()
    assert exhibits["nearest IR"].inconsistency > delta
    assert exhibits["nearest MR"].label != label
    assert exhibits["other evidence"].label == label
    assert exhibits["other evidence"].inconsistency > delta
    assert len(choose_exhibits(result)) == MOST


def test_captions_say_prediction_and_inconsistency_of_each(result: Result) -> None:
    shown = [text.get_text() for text in map_figure(result).findobj(Text)]
    for exhibit in choose_exhibits(result):
        assert f"predicts {exhibit.point.label}" in shown
        assert comparison(exhibit.point.inconsistency, result.answer.delta) in shown
    assert shown.count("of class 2") == 2


def test_zero_outside_of_the_domain_is_shown_but_not_marked() -> None:
    result = verify("M-FNN-100", "mnist:69995", ["brightness:0.2..0.3", "patch:x=10,y=10,w=8,h=8:0.1..0.2"])
    exhibits = choose_exhibits(result)
    assert exhibits[0].title == "unperturbed"
    assert (exhibits[0].point.actual == result.question.original).all()
    figure = map_figure(result)
    shown = [text.get_text() for text in figure.findobj(Text)]
    assert "θ = (0, 0), outside" in shown
    marks = [text.get_text() for text in figure.axes[1].texts]
    assert marks == [str(place) for place in range(1, len(exhibits))]


def test_colour_images_are_shown_in_colour_with_the_sum_of_their_maps(tmp_path: Path) -> None:
    model = _colour_model(tmp_path)
    image = np.random.default_rng(5).uniform(0.2, 0.8, (3, 6, 5))
    result = verify(model, image, ["brightness:0..0.1", "patch:x=1,y=1,w=2,h=2"], names=["left", "right"])
    figure = map_figure(result)
    arrays = [np.asarray(shown.get_array()) for shown in figure.findobj(AxesImage)]
    assert any(array.shape == (6, 5, 3) and np.allclose(array, np.moveaxis(image, 0, 2)) for array in arrays)
    expected = result.question.original[result.label].sum(axis=0)
    assert any(array.shape == (6, 5) and np.allclose(array, expected) for array in arrays)
    assert "channels summed" in [text.get_text() for text in figure.findobj(Text)]


def _colour_model(folder: Path) -> str:
    draw = np.random.default_rng(3)
    arrays = {"w": draw.normal(size=(90, 8)), "b": draw.normal(size=8), "v": draw.normal(size=(8, 2))}
    tensors = [onnx.numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()]
    nodes = [
        onnx.helper.make_node("Flatten", ["x"], ["f"]),
        onnx.helper.make_node("Gemm", ["f", "w", "b"], ["h"]),
        onnx.helper.make_node("Relu", ["h"], ["r"]),
        onnx.helper.make_node("MatMul", ["r", "v"], ["y"]),
    ]
    ends = [onnx.helper.make_tensor_value_info(n, 1, s) for n, s in (("x", [1, 3, 6, 5]), ("y", [1, 2]))]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors)
    path = folder / "colour.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), path)
    return str(path)


@pytest.mark.parametrize("seed", range(5))
def test_badges_keep_off_each_other_and_inside(seed: int) -> None:
    draw = np.random.default_rng(seed)
    size = np.array([3.6, 3.6])
    dots = np.vstack([draw.uniform(0, 3.6, (2, 2)), draw.uniform(0, 0.1, (2, 2)), [[0, 0], [3.6, 3.6]]])
    centres = dots + place_badges(dots, size)
    assert ((centres > 0.1) & (centres < size - 0.1)).all()
    apart = np.hypot(*(centres[:, None] - centres[None]).transpose(2, 0, 1)) + 9 * np.eye(len(centres))
    assert apart.min() >= 0.2
