"""Networks whose values, gradients or their squares leave the range of float64: no wrong answer, no internal error."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adversary.files import write_onnx
from adversary.judge import ENGINES, WHOLE, Answer, ask, complaints
from adversary.oracle import Change, Oracle, Question
from steadygaze import search, verify
from steadygaze.attention import curve_kernels
from steadygaze.attention.distances import Distance
from steadygaze.attention.options import AttentionOptions
from steadygaze.errors import ImageError, ModelError

TINY, HUGE = 2.0**-125, 2.0**120
PATCHES = tuple(Change("patch", 0.0, 1.0, x=x, y=0) for x in range(3))


def layer(weight: object, bias: object) -> tuple[np.ndarray, np.ndarray]:
    return np.array(weight, dtype=np.float32), np.array(bias, dtype=np.float32)


def corner(factors: list[float], top: float, inputs: int = 3) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Logits (5, x₂ + top · ∏ factors · ReLU(x₀ − x₁ − 0.98)): the ReLU is active in a corner of the domain alone.

    The models are compared with onnxruntime on images elsewhere: in float32 the products underflow, or overflow.
    """
    first = np.eye(2, inputs, 1)
    first[0, :2], first[1, :2], first[1, 2] = (1.0, -1.0), 0.0, 1.0
    hidden = [layer(np.diag([factor, 1.0]), [0.0, 0.0]) for factor in factors]
    return (layer(first, [-0.98, 0.0]), *hidden, layer([[0.0, 0.0], [top, 1.0]], [5.0, 0.0]))


def tiny_split(top: float) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """As `corner`, with x₀ − x₁ − 0.98 itself summed up at a scale of 2⁻⁶²⁵, where products of two values vanish."""
    first = layer([[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]], [0, 0, 1, 0])
    down = [layer(np.diag([TINY] * 3 + [1.0]), [0.0] * 4)] * 5
    middle = layer([[1.0, -1.0, -0.98, 0.0], [0.0, 0.0, 0.0, 1.0]], [0.0, 0.0])
    up = [layer(np.diag([1.0 / TINY, 1.0]), [0.0, 0.0])] * 5
    return (first, *down, middle, *up, layer([[0.0, 0.0], [top, 1.0]], [5.0, 0.0]))


IMAGE = np.array([[[0.0, 0.0, 0.5]]])


def answer_of(folder: Path, question: Question, wanted: str, engine: str) -> tuple[Answer, list[str]]:
    path = write_onnx(folder / "network.onnx", question.layers, question.image.shape)
    answer = ask(path, question, wanted, engine, limit_seconds=300.0)  # loops may have to be compiled
    oracle = Oracle(question)
    return answer, complaints(answer, oracle.truth, wanted, oracle)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("top", [4.0, 1000.0])
@pytest.mark.parametrize("dimension", [2, 3])
def test_a_split_by_values_whose_products_underflow(dimension: int, top: float, engine: str, tmp_path: Path) -> None:
    question = Question(tiny_split(top), IMAGE, PATCHES[:dimension])
    answer, wrong = answer_of(tmp_path, question, "cr", engine)
    assert not wrong
    if engine in WHOLE:
        assert answer.verdict == ("robust" if top == 4.0 else "not robust")


def drowned(limit: float) -> Question:
    """Logits (limit, x₁) at x = (3/4, 3/4), but float64 computes x₁ as ReLU((2³⁰ x₀ + 2⁻²⁴ x₁) − 2³⁰ x₀) · 2²⁴ = 0."""
    first = layer([[2.0**30, 0.0], [2.0**30, 2.0**-24]], [0.0, 0.0])
    layers = (first, layer([[-1.0, 1.0]], [0.0]), layer([[0.0], [2.0**24]], [limit, 0.0]))
    return Question(layers, np.array([[[0.75, 0.75]]]), (Change("patch", 0.0, 0.75, x=1, tone=-1),), "l1", 1.0)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_label_to_keep_is_that_of_the_real_valued_network(engine: str, tmp_path: Path) -> None:
    """Class 1 wins by a half at zero and loses beyond θ = 1/2; in float64 class 0 wins everywhere."""
    question = drowned(0.25)
    path = write_onnx(tmp_path / "network.onnx", question.layers, question.image.shape, dtype=np.float64)
    oracle = Oracle(question)
    answer = ask(path, question, "cr", engine, limit_seconds=300.0)
    assert not complaints(answer, oracle.truth, "cr", oracle)
    run = verify if engine in WHOLE else search
    result = run(path, question.image, question.specs, method=engine, property="cr", classes="predicted")
    assert result.label == 1 and result.question.attention.classes == (1,)
    assert any("real numbers predicts 1" in note for note in result.question.notes)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("delta", [1.0, "25%"])
def test_the_expected_map_is_that_of_the_real_valued_network(delta: float | str, engine: str, tmp_path: Path) -> None:
    """Logits (1, 4 ReLU(x₀ + 2⁻⁶⁰ x₁ − x₂)) at (1/2, 1, 1/2): the neuron is active, with the value 2⁻⁶⁰.

    In float64 its value is 0, and its map too. In truth the map never changes: the inconsistency is 0 everywhere.
    """
    layers = (layer([[1.0, 2.0**-60, -1.0], [0.0, 0.0, 0.0]], [0.0, 1.0]), layer([[0.0, 1.0], [4.0, 0.0]], [0.0, 0.0]))
    question = Question(layers, np.array([[[0.5, 1.0, 0.5]]]), (Change("patch", 0.0, 0.125, x=0),), "l2", 1.0)
    oracle = Oracle(question)
    assert oracle.truth.shares["AR"] == (1, 1)
    path = write_onnx(tmp_path / "network.onnx", layers, question.image.shape)
    answer = ask(path, replace(question, delta=delta), "ar", engine, limit_seconds=300.0)
    assert not complaints(answer, oracle.truth, "ar")
    if engine in WHOLE:
        assert answer.shares["AR"][0] > 0.99


def test_a_tie_is_exact_and_refused(tmp_path: Path) -> None:
    question = drowned(0.75)
    path = write_onnx(tmp_path / "network.onnx", question.layers, question.image.shape, dtype=np.float64)
    with pytest.raises(ImageError, match="classes 0, 1 are tied on the unperturbed image"):
        verify(path, question.image, question.specs, method="map")


@pytest.mark.parametrize("engine", WHOLE)
@pytest.mark.parametrize("dist", ["l1", "l2"])
def test_gradients_whose_squares_underflow(dist: str, engine: str, tmp_path: Path) -> None:
    """Gradients of size 2⁻⁶²⁵, compared with a δ of that size: on half of the domain they differ by 10 · 2⁻⁶²⁵."""
    first = layer([[1, 0], [0, 1]], [-0.5, 0])
    last = layer([[0.0, 0.0], [10.0, 1.0]], [1.0, 0.0])
    layers = (first, *[layer(np.eye(2) * TINY, [0.0, 0.0])] * 5, last)
    question = Question(layers, np.array([[[0.0, 0.5]]]), PATCHES[:1], dist, 2.0**-624)
    _, wrong = answer_of(tmp_path, question, "ar", engine)
    assert not wrong


@pytest.mark.parametrize("method", ["map", "refine"])
def test_gradients_whose_squares_overflow_are_stored(method: str, tmp_path: Path) -> None:
    layers = corner([HUGE] * 5, 1.0)
    path = write_onnx(tmp_path / "network.onnx", layers, IMAGE.shape)
    result = verify(path, IMAGE, [change.spec for change in PATCHES[:2]], method=method, delta=1.0)
    assert result.save(tmp_path / "result").is_dir()
    assert result.areas["AR"][0] <= 1.0 - 1e-4


def test_a_forward_pass_that_underflows_has_a_map(tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "network.onnx", corner([2.0**-120] * 9 + [HUGE] * 9, 10.0), IMAGE.shape)
    result = verify(path, IMAGE, [change.spec for change in PATCHES[:2]], method="map", delta=1.0)
    assert result.summary()["ar_at_delta"]["all"] is None


@pytest.mark.parametrize("method", ["map", "bfs"])
def test_an_overflow_is_refused_with_the_layer(method: str, tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "network.onnx", corner([HUGE] * 10, 10.0), IMAGE.shape)
    run = verify if method == "map" else search
    with pytest.raises(ModelError, match="ReLU layer 10 overflows float64"):
        run(path, IMAGE, [change.spec for change in PATCHES[:2]], method=method, property="cr")


def test_a_curve_that_is_no_number_is_kept_nowhere() -> None:
    out, reach = np.zeros((1, 4)), np.zeros((1, 2))
    nothing, ends = np.zeros(0), np.array([[0.0, 1.0]])
    curve = np.array([[[math.inf, math.inf, math.inf]]])
    first = np.zeros(1, dtype=np.int64)
    breaks = np.zeros(2, dtype=np.int64)
    curve_kernels.slabs(
        curve, np.zeros((0, 3)), breaks, nothing, nothing, first, ends, 1.0, np.zeros(1), 1e-15, out, reach
    )
    assert out[0, 0] > out[0, 1] and out[0, 2] <= 0.0 and out[0, 3] >= 1.0
    assert reach[0].tolist() == [0.0, math.inf]


@pytest.mark.parametrize("scale", [1e-170, 1.0, 1e170])
def test_norms_of_maps_neither_underflow_nor_overflow(scale: float) -> None:
    difference = scale * np.array([[[3.0, 4.0]]])
    assert Distance.L2.size(difference) == pytest.approx(5.0 * scale, rel=1e-12)
    assert AttentionOptions().total_size(difference[0]) == pytest.approx(5.0 * scale, rel=1e-6)


def test_maps_that_are_zero_whatever_the_rounding_keep_a_threshold_of_zero(tmp_path: Path) -> None:
    """ReLU(x₀ − 2) is never active: both maps are exactly zero, and so is ai."""
    layers = (layer([[1.0, 0.0]], [-2.0]), layer([[1.0], [-1.0]], [1.0, 0.0]))
    question = Question(layers, np.array([[[0.0, 0.5]]]), PATCHES[:1], "l2", 0.0)
    for engine in WHOLE:
        answer, wrong = answer_of(tmp_path, question, "ar", engine)
        assert not wrong and answer.verdict == "robust"
