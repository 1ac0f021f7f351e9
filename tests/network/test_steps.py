"""Linear steps of a graph: against the graph's own operators, against their matrices, and forward against backward."""

from collections.abc import Sequence
from math import prod

import numpy as np
import pytest

from steadygaze import zoo
from steadygaze.network import steps
from steadygaze.network.model import read_model
from steadygaze.network.operators import (
    LeftMatMul,
    Linear,
    MatMul,
    Mean,
    Operator,
    Pad,
    Relu,
    Reshape,
    ScaleShift,
    Transpose,
)
from steadygaze.network.steps import ConvStep, MatrixStep, OrderStep, ScaleStep, Step
from steadygaze.network.windows import AveragePool, Conv, Window
from support.networks.layered_networks import graph_of
from support.oracles.exact_graph import ExactNetwork, exactly
from support.oracles.exact_numbers import as_fractions


def whole(rng: np.random.Generator, *sizes: int) -> np.ndarray:
    """Whole numbers as floats: products and sums of them are exact."""
    return rng.integers(-9, 10, size=sizes).astype(float)


def windows(rng: np.random.Generator) -> list[tuple[Conv, tuple[int, ...]]]:
    """Convolutions with all that a window can be, and the shape of an image for each."""
    cases = []
    for kernel, strides, dilations, before, after, groups, shape in (
        ((3, 3), (1, 1), (1, 1), (0, 0), (0, 0), 1, (1, 1, 6, 5)),
        ((2, 3), (2, 1), (1, 2), (1, 0), (0, 3), 1, (1, 2, 7, 6)),
        ((3, 2), (3, 2), (2, 1), (2, 2), (1, 0), 1, (1, 3, 8, 9)),
        ((1, 1), (2, 3), (1, 1), (0, 0), (0, 0), 1, (1, 2, 5, 7)),
        ((5, 5), (1, 1), (1, 1), (4, 4), (4, 4), 1, (1, 1, 2, 1)),
        ((4, 1), (5, 5), (1, 1), (3, 0), (0, 0), 1, (1, 1, 4, 11)),
        ((2, 2), (1, 1), (3, 3), (3, 0), (3, 0), 1, (1, 1, 1, 4)),
        ((3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 2, (1, 4, 6, 6)),
        ((2, 2), (1, 1), (1, 1), (0, 0), (0, 0), 3, (1, 3, 4, 4)),
        ((2, 2), (1, 1), (1, 1), (0, 1), (1, 0), 1, (2, 2, 4, 3)),
    ):
        outputs = 2 * groups
        weight = whole(rng, outputs, shape[1] // groups, *kernel)
        cases.append(
            (Conv(weight, whole(rng, outputs), Window(kernel, strides, dilations, before, after), groups), shape)
        )
    cases.append((Conv(whole(rng, 3, 2, 3), whole(rng, 3), Window((3,), (2,), (1,), (1,), (0,))), (1, 2, 9)))
    cases.append(
        (Conv(whole(rng, 2, 1, 2, 2, 2), whole(rng, 2), Window((2,) * 3, (1, 2, 1), (1,) * 3, (0, 1, 0), (0,) * 3)),
         (1, 1, 3, 4, 3))
    )  # fmt: skip
    return cases


def others(rng: np.random.Generator) -> list[tuple[Linear, tuple[int, ...]]]:
    """Linear operators other than convolutions."""
    pool = Window((2, 2), (1, 2), (1, 1), (1, 0), (0, 1))
    return [
        (MatMul(whole(rng, 6, 4), whole(rng, 4)), (1, 6)),
        (MatMul(whole(rng, 3, 5), whole(rng, 5)), (1, 4, 3)),
        (LeftMatMul(whole(rng, 5, 4)), (1, 4, 3)),
        (LeftMatMul(whole(rng, 5, 4)), (4,)),
        (ScaleShift(gain=whole(rng, 3, 1, 1), offset=whole(rng, 3, 1, 1)), (1, 3, 2, 4)),
        (ScaleShift(gain=whole(rng, 4), offset=whole(rng)), (1, 3, 2, 4)),
        (ScaleShift(gain=whole(rng), offset=whole(rng, 1, 2, 4)), (1, 3, 2, 4)),
        (ScaleShift(gain=whole(rng, 2, 3, 1), offset=whole(rng, 1)), (3, 4)),
        (ScaleShift(gain=whole(rng, 3), offset=whole(rng, 3)), (1, 1)),
        (Transpose((0, 3, 1, 2)), (1, 2, 3, 4)),
        (Transpose((2, 1, 0)), (3, 1, 5)),
        (Pad((0, 0, 1, 2), (0, 0, 0, 1), 3.0), (1, 2, 3, 2)),
        (Pad((0, 0, -1, 0), (0, 0, 2, -1)), (1, 2, 3, 2)),
        (Mean((2, 3)), (1, 2, 2, 4)),
        (Mean((1,)), (1, 4, 2)),
        (AveragePool(pool), (1, 2, 5, 4)),
        (AveragePool(pool, count_padding=True), (1, 2, 5, 4)),
        (AveragePool(Window((2, 2), (2, 2), (1, 1), (0, 0), (0, 0), ceil=True)), (1, 1, 5, 5)),
    ]


def all_operators() -> list[tuple[Linear, tuple[int, ...]]]:
    rng = np.random.default_rng(0)
    return [*windows(rng), *others(rng)]


def step_of(operator: Operator, shape: tuple[int, ...]) -> Step:
    """The single step of a graph that puts its image into a shape and applies one operator."""
    image = (1, 1, prod(shape))
    ((step,),) = graph_of([Reshape(shape), operator], image).steps
    return step


NAMES = [f"{number} {type(operator).__name__} {shape}" for number, (operator, shape) in enumerate(all_operators())]


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_products_are_those_of_the_operator(number: int) -> None:
    operator, shape = all_operators()[number]
    step, rng = step_of(operator, shape), np.random.default_rng(number)
    # Multiples of what a mean divides by keep everything whole.
    values = 2520.0 * whole(rng, 5, prod(shape))
    expected = operator.apply(values.reshape(5, *shape)).reshape(5, -1)
    assert step.sizes == (prod(shape), expected.shape[1])
    np.testing.assert_allclose(step.forward(values) + step.bias, expected, rtol=1e-15 if _divides(operator) else 0.0)
    exact = exactly(operator, as_fractions(values).reshape(5, *shape)).reshape(5, -1)
    assert (as_fractions(expected) == exact).all(), "the graph's own operator is not the definition"


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_backward_is_the_transpose_and_absolute_products_take_absolute_weights(number: int) -> None:
    operator, shape = all_operators()[number]
    step, rng = step_of(operator, shape), np.random.default_rng(number)
    matrix = dense(operator, shape)
    values, rows = whole(rng, 4, step.sizes[0]), whole(rng, 3, step.sizes[1])
    share = 1e-15 if _divides(operator) else 0.0
    for found, expected in (
        (step.forward(values), values @ matrix.T),
        (step.forward_abs(values), values @ np.abs(matrix).T),
        (step.backward(rows), rows @ matrix),
        (step.backward_abs(rows), rows @ np.abs(matrix)),
    ):
        np.testing.assert_allclose(found, expected, rtol=share, atol=share * 100)
    if not share:
        assert np.array_equal(rows @ step.forward(values).T, step.backward(rows) @ values.T), "not adjoint"


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_terms_count_what_is_summed(number: int) -> None:
    """At least the entries of a row or a column, and one more where the entries themselves are rounded."""
    operator, shape = all_operators()[number]
    step, matrix = step_of(operator, shape), dense(operator, shape)
    more = int(_divides(operator))
    # One product without a sum has one rounding, and none where it is by one.
    needed = [np.count_nonzero(matrix, axis=axis).max() + more for axis in (1, 0)]
    if set(np.unique(np.abs(matrix))) <= {0.0, 1.0} and max(needed) == 1:
        needed = [0, 0]
    assert step.terms >= needed[0]
    assert step.backward_terms >= needed[1]


def dense(operator: Linear, shape: tuple[int, ...]) -> np.ndarray:
    """The matrix of an operator, from its effect on unit vectors."""
    size = prod(shape)
    images = np.vstack([np.zeros((1, size)), np.eye(size)]).reshape(size + 1, *shape)
    rows = operator.apply(images).reshape(size + 1, -1)
    return (rows[1:] - rows[0]).T


def _divides(operator: Operator) -> bool:
    return isinstance(operator, Mean | AveragePool)


def test_convolutions_stay_convolutions_where_they_can() -> None:
    kinds = {
        type(step_of(operator, shape)): operator
        for operator, shape in all_operators()
    }  # fmt: skip
    assert set(kinds) == {ConvStep, MatrixStep, ScaleStep, OrderStep}
    for operator, shape in windows(np.random.default_rng(0)):
        plain = operator.groups == 1 and shape[0] == 1 and len(shape) == 4
        assert isinstance(step_of(operator, shape), ConvStep) == plain


@pytest.mark.parametrize("cached", [1, 40, 1 << 17])
def test_many_images_in_parts_are_those_at_once(cached: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    operator, shape = windows(rng)[1]
    step = step_of(operator, shape)
    values, rows = whole(rng, 7, step.sizes[0]), whole(rng, 7, step.sizes[1])
    expected = step.forward(values), step.backward(rows)
    monkeypatch.setattr(steps, "CACHED", cached)
    assert np.array_equal(step.forward(values), expected[0])
    assert np.array_equal(step.backward(rows), expected[1])
    assert np.array_equal(step.forward(np.asfortranarray(values)), expected[0]), "rows that do not lie side by side"
    assert step.forward(values[:0]).shape == (0, step.sizes[1])
    assert step.backward(rows[:0]).shape == (0, step.sizes[0])


@pytest.mark.parametrize("seed", range(6))
def test_segments_of_a_graph_lead_from_relu_to_relu(seed: int) -> None:
    rng = np.random.default_rng(seed)
    operators = odd_network(rng)
    graph = graph_of(operators, (2, 5, 6))
    segments = graph.steps
    assert len(segments) == 1 + sum(isinstance(operator, Relu) for operator in operators)
    images = rng.integers(0, 5, size=(4, 2, 5, 6)) / 4
    expected, logits = graph.trace(images)
    exact = ExactNetwork.of(graph)
    values = images.reshape(4, -1)
    for number, (segment, preactivations) in enumerate(zip(segments, [*expected, logits], strict=True)):
        start = values
        for step in segment:
            values = step.forward(values) + step.bias
        np.testing.assert_allclose(values, preactivations, rtol=1e-12, atol=1e-12)
        weight, bias = exact.segments[number]
        joined = start @ weight.rationals().astype(float).T + bias.rationals().astype(float)[:, 0]
        np.testing.assert_allclose(values, joined, rtol=1e-12, atol=1e-12)
        values = np.maximum(values, 0.0)


def odd_network(rng: np.random.Generator) -> Sequence[Operator]:
    """Preprocessing, a strided and a dilated convolution, a batch norm, a transpose, pooling, two dense layers."""
    shape: tuple[int, ...] = (1, 2, 5, 6)
    operators: list[Operator] = [
        Reshape(shape),
        ScaleShift(gain=1.0 / whole(rng, 2, 1, 1).clip(1.0), offset=whole(rng, 2, 1, 1)),
    ]
    operators += [
        Conv(rng.normal(size=(3, 2, 2, 2)), rng.normal(size=3), Window((2, 2), (1, 2), (2, 1), (1, 0), (0, 1))),
        ScaleShift(gain=rng.normal(size=(3, 1, 1)), offset=rng.normal(size=(1, 3, 1, 1))),
        Relu(),
        AveragePool(Window((2, 2), (1, 1), (1, 1), (0, 1), (1, 0)), bool(rng.integers(2))),
        Transpose((0, 2, 3, 1)),
        MatMul(rng.normal(size=(3, 4)), rng.normal(size=4)),
        Relu(),
        Pad((0, 1, 0, 0), (0, 0, -1, 0), 0.5),
        Mean((1,)),
    ]
    for operator in operators:
        shape = operator.output_shape(shape if not isinstance(operator, Reshape) else (2, 5, 6))
    operators += [Reshape((1, prod(shape))), MatMul(rng.normal(size=(prod(shape), 3)), rng.normal(size=3)), Relu()]
    return operators


def test_a_graph_that_ends_or_begins_with_a_relu_or_has_two_in_a_row() -> None:
    last = MatMul(np.array([[1.0, -1.0]]), np.zeros(2))
    graph = graph_of([Relu(), Reshape((1, 1)), last, Relu(), Relu()], (1, 1, 1))
    assert [len(segment) for segment in graph.steps] == [0, 1, 0, 0]


@pytest.mark.parametrize("name", ["M-FNN-100", "M-CNN-S"])
def test_bundled_networks(name: str) -> None:
    model = read_model(zoo.model_path(name))
    rng = np.random.default_rng(4)
    images = rng.random((3, *model.input_shape))
    values = images.reshape(3, -1)
    expected, logits = model.graph.trace(images)
    for segment, affine, preactivations in zip(model.graph.steps, model.chain.maps, [*expected, logits], strict=True):
        rows = rng.normal(size=(2, len(affine.bias)))
        back = rows
        for step in reversed(segment):
            back = step.backward(back)
        np.testing.assert_allclose(back, (affine.matrix.T @ rows.T).T, rtol=1e-9, atol=1e-12)
        for step in segment:
            values = step.forward(values) + step.bias
        np.testing.assert_allclose(values, preactivations, rtol=1e-9, atol=1e-12)
        values = np.maximum(values, 0.0)
