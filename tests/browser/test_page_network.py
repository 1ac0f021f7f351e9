"""The network in the page against the result object: images, logits, maps and inconsistencies at random thetas."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from steadygaze.api import verify
from steadygaze.results.result import Result
from support.browsing import Browser, random_thetas, running_browser

CLOSE = 1e-4


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("pages")) as started:
        yield started


def compare(browser: Browser, result: Result, count: int = 50, whole: int = 4) -> None:
    """The values that the page computes at random thetas and at two corners: numbers at all of them, arrays at some."""
    domain = result.question.compound.domain
    thetas = [domain.low, domain.high, *random_thetas(result, count)]
    with browser.open(result) as map:
        points = map.ask(
            """
            return given.thetas.map((theta, n) => {
              const { label, margin, inconsistency, logits, image, actual, expected } = map.at(theta);
              const flat = (maps) => maps.flatMap((map) => [...map]);
              const maps = n < given.whole ? { actual: flat(actual), expected: flat(expected) } : {};
              return { label, margin, inconsistency, logits: [...logits], ...maps, image: [...image] };
            });
            """,
            {"thetas": [theta.tolist() for theta in thetas], "whole": whole},
        )
    for number, (theta, found) in enumerate(zip(thetas, points, strict=True)):
        point = result.at(theta)
        names = ("image", "logits", "actual", "expected") if number < whole else ("image", "logits")
        for name in names:
            np.testing.assert_allclose(found[name], getattr(point, name).ravel(), atol=CLOSE)
        assert found["label"] == point.label
        assert found["margin"] == pytest.approx(point.margin, abs=CLOSE)
        assert found["inconsistency"] == pytest.approx(point.inconsistency, abs=CLOSE)


@pytest.mark.parametrize("options", [{}, {"filter": "abs+mean", "dist": "l1", "classes": "predicted"}])
def test_dense_network_with_a_kept_map(browser: Browser, options: dict) -> None:
    compare(browser, verify("M-FNN-100", "mnist:69990", ["brightness:0..0.3", "patch:x=9,y=9,w=6,h=6"], **options))


@pytest.mark.parametrize(
    "specs",
    [["haze:0..0.2", "blur:sigma=1.5"], ["field:kind=radial,mode=times:-0.3..0.3"], ["contrast:pivot=mean:-0.2..0.2"]],
)
def test_families_whose_slopes_are_not_whole_numbers(browser: Browser, specs: list[str]) -> None:
    compare(browser, verify("M-FNN-100", "mnist:69990", specs))


@pytest.mark.parametrize("model", ["M-MAXPOOL", "M-RESNET"])
def test_networks_with_windows_and_joins(browser: Browser, model: str) -> None:
    specs = ["brightness:0.1..0.11", "patch:x=9,y=9,w=6,h=6:0..0.01"]
    result = verify(model, "mnist:69990", specs, method="map")
    assert result.region_count > 1
    compare(browser, result, count=20, whole=22)


def test_translation_moves_the_expected_map(browser: Browser) -> None:
    compare(browser, verify("M-FNN-200", "mnist:69992", ["translate:dx=2:-0.5..1.5", "brightness:0..0.05"]))


@pytest.mark.parametrize(
    "specs",
    [
        ["rotate:-20..20", "brightness:0..0.1"],
        ["scale:0.8..1.2", "shear:-0.2..0.2", "haze:0..0.2"],
        ["rotate:border=edge:-90..90"],
        ["shear:axis=y:-0.5..0.5", "contrast:pivot=mean:-0.5..0.5"],
        ["shift:dx=2,dy=3", "blur:sigma=1"],
        ["shift:dx=2,dy=2,interp=triangle:-1.5..2/-2..0.5", "brightness:0..0.1"],
    ],
)
def test_curved_images_and_maps_that_move_along(browser: Browser, specs: list[str]) -> None:
    compare(browser, verify("M-FNN-100", "mnist:69992", specs, method="refine", until=0.999), count=10)


def test_hues(browser: Browser) -> None:
    specs = ["hue:-90..90", "saturation:-0.5..0.5"]
    compare(browser, verify("C-RESNET", "colour:69990", specs, property="cr", until=0.9), count=3, whole=0)


def test_convolutional_network_with_three_parameters(browser: Browser) -> None:
    specs = ["translate:dy=1:0..0.008", "brightness:0..0.008", "patch:x=3,y=9,w=6,h=6:0..0.008"]
    compare(browser, verify("M-CNN-S", "mnist:69991", specs, method="map", classes=[1, 7]))


def test_refinement_of_a_convolutional_network(browser: Browser) -> None:
    compare(browser, verify("F-CNN-S", "fashion:69993", ["brightness:0..0.2"], method="refine", until=0.3))


def test_colour_image_with_strides_padding_and_pooling(browser: Browser, tmp_path: Path) -> None:
    image = np.random.default_rng(5).uniform(0.1, 0.9, (3, 9, 8))
    model = write_colour_model(tmp_path / "colour.onnx")
    result = verify(
        model, image, ["brightness:-0.05..0.05", "translate:dx=1:0..1"], mean=[0.4, 0.5, 0.6], std=[0.3, 0.2, 0.1]
    )
    kinds = {type(step).__name__ for segment in result.question.model.graph.steps for step in segment}
    assert {"ConvStep", "MatrixStep", "ScaleStep", "OrderStep"} <= kinds
    compare(browser, result)


def write_colour_model(path: Path) -> str:
    """Conv (stride 2, padding 1, dilation), Relu, AveragePool, Transpose, Gemm with three classes."""
    draw = np.random.default_rng(3)
    arrays = {
        "w": draw.normal(size=(4, 3, 3, 2)) / 4,
        "c": draw.normal(size=4) / 4,
        "v": draw.normal(size=(3, 48)) / 2,
        "d": draw.normal(size=3),
    }
    tensors = [onnx.numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()]
    make = onnx.helper.make_node
    nodes = [
        make("Conv", ["x", "w", "c"], ["h"], strides=[2, 1], pads=[1, 1, 1, 1], dilations=[1, 2]),
        make("Relu", ["h"], ["r"]),
        make("AveragePool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 0]),
        make("Transpose", ["p"], ["t"], perm=[0, 2, 3, 1]),
        make("Flatten", ["t"], ["f"]),
        make("Gemm", ["f", "v", "d"], ["y"], transB=1),
    ]
    ends = [onnx.helper.make_tensor_value_info(n, 1, s) for n, s in (("x", [1, 3, 9, 8]), ("y", [1, 3]))]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), path)
    return str(path)


def test_factors_are_shown_and_typed(browser: Browser) -> None:
    result = verify("M-FNN-100", "mnist:69992", ["scale:0.75..1.5", "brightness:0..0.1"], property="cr", until=0.9)
    with browser.open(result) as map:
        map.ask("map.select(given)", [0.25, 0.05])
        assert map.page.eval_on_selector("#sg-theta input", "input => [input.value, input.min, input.max]") == [
            "1.25", "0.75", "1.5",
        ]  # fmt: skip
        ticks = map.ask("return map.figure.below[0].formatter.doFormat([-0.25, 0, 0.5], {})")
        assert [float(tick) for tick in ticks] == [0.75, 1.0, 1.5]
        map.page.fill("#sg-theta input", "1.5")
        map.page.press("#sg-theta input", "Enter")
        assert map.ask("return map.state.theta[0]") == pytest.approx(0.5)
