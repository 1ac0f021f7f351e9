"""Refinements with more than three parameters: which one is split, and how many boxes that takes."""

import numpy as np
import pytest

import steadygaze as sg
from steadygaze.bounds.bounder import Bounder
from steadygaze.budget import Budget, Limits
from steadygaze.engines.refine.falsify import falsify
from steadygaze.errors import SteadygazeError
from steadygaze.question import make_question
from support.networks.dense_files import write_dense


def write_model(path, first, shift, second, constant):
    """ReLU(first · x + shift), then second · h + constant."""
    return write_dense(path, [(first, shift), (second, constant)])


def lights(count):
    return [f"patch:x={n},y=0,w=1,h=1:0..0.5" for n in range(count)]


@pytest.fixture
def one_of_four(tmp_path):
    """f = (0.05 + ReLU(x₂ − 0.3), ReLU(0.6 − x₂)): the other pixels have no effect."""
    return write_model(tmp_path / "one.onnx", [[0, 0, 1, 0], [0, 0, -1, 0]], [-0.3, 0.6], np.eye(2), [0.05, 0.0])


@pytest.mark.parametrize("property", ["cr", "both"])
def test_a_parameter_without_effect_is_never_split(one_of_four, property):
    result = sg.verify(
        one_of_four, np.full((1, 1, 4), 0.2), lights(4), property=property, method="refine", until=0.001, threads=1,
        budget=Budget(Limits(timeout_seconds=30.0)),
    )  # fmt: skip
    boxes = result.tiling.boxes
    assert len(boxes) < 50
    sides = boxes.high - boxes.low
    # Points of two labels beside each other may separate boxes along other axes, once or twice.
    assert sides[:, 2].min() < 1.0 and sides[:, [0, 1, 3]].min() >= 0.25
    assert result.tiling.stopped is None


def test_a_neuron_without_effect_does_not_attract_splits(tmp_path):
    """The third neuron sums the other pixels with large weights, and no logit reads it."""
    model = write_model(
        tmp_path / "deaf.onnx", [[0, 0, 1, 0], [0, 0, -1, 0], [9, 9, 0, -9]], [-0.3, 0.6, -3.0],
        [[1, 0, 0], [0, 1, 0]], [0.05, 0.0],
    )  # fmt: skip
    question = make_question(model, np.full((1, 1, 4), 0.2), lights(4), property="cr")
    bounder = Bounder(question.model.graph, question.perturbed, question.label, question.attention)
    pull = bounder.bound(0, np.zeros((1, 4)), np.ones((1, 4))).pull
    assert pull[0, 2] > 0.0 and not pull[0, [0, 1, 3]].any()


def test_sixteen_parameters_are_proved_robust_or_refuted(tmp_path):
    random = np.random.default_rng(3)
    first = random.normal(size=(6, 16))
    model = write_model(tmp_path / "sixteen.onnx", first, random.normal(size=6), random.normal(size=(2, 6)), [0.0, 0.0])
    image = random.random((1, 1, 16)) * 0.4
    specs = [f"patch:x={n},y=0,w=1,h=1:0..0.001" for n in range(16)]
    small = sg.verify(model, image, specs, property="cr", method="refine", goal="verdict", threads=1)
    assert small.summary()["verdict"] == "robust"
    wide = sg.verify(model, image, lights(16), property="cr", method="auto", goal="verdict", threads=1,
                     budget=Budget(Limits(timeout_seconds=20.0)))  # fmt: skip
    corners = wide.question.perturbed.domain.high * random.integers(0, 2, (500, 16))
    margins = [wide.at(corner).margin for corner in corners]
    if min(margins) < 0.0:
        assert wide.summary()["verdict"] == "not robust"


@pytest.mark.parametrize(("method", "words"), [("map", "the map takes up to 3"), ("bfs", "searches take up to 4")])
def test_seventeen_parameters_are_refused_in_one_line(tmp_path, method, words):
    model = write_model(tmp_path / "wide.onnx", np.ones((1, 17)), [0.0], [[1], [-1]], [0.0, 0.5])
    with pytest.raises(SteadygazeError, match=words) as caught:
        sg.verify(model, np.full((1, 1, 17), 0.2), lights(17), method=method)
    assert caught.value.exit_code == 2 and "\n" not in str(caught.value) and "--method refine" in str(caught.value)


@pytest.mark.parametrize("count", [16, 40])
def test_a_violation_in_one_corner_of_many_is_found_without_visiting_all(tmp_path, count):
    """ReLU(Σ sᵢ (xᵢ − 0.4)) exceeds the constant only where nearly all pixels are at the end that sᵢ asks for."""
    signs = np.random.default_rng(count).choice([-1.0, 1.0], count)
    model = write_model(
        tmp_path / "corner.onnx", [signs], [-0.4 * signs.sum()], [[0.0], [1.0]], [0.9 * 0.2 * count, 0.0]
    )
    specs = [f"patch:x={n},y=0,w=1,h=1:-0.2..0.2" for n in range(count)]
    question = make_question(model, np.full((1, 1, count), 0.4), specs, property="cr")
    found = falsify(question, question.own_limit, wanted=question.property)
    assert len(found.thetas) > 0
    assert found.evaluations < 5_000
    result = sg.verify(
        model, np.full((1, 1, count), 0.4), specs, property="cr", method="refine", goal="verdict", threads=1,
        budget=Budget(Limits(timeout_seconds=20.0)),
    )  # fmt: skip
    assert result.summary()["verdict"] == "not robust"
