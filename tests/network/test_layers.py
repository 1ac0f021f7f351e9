"""Graphs with branches as layers: the same values, the same gradients, one bit per neuron."""

import numpy as np
import pytest

from steadygaze.errors import InternalError
from steadygaze.network.graph import Node, check_lowered, gradients, lower, patterns, preactivations
from steadygaze.network.joins import Concat, Sum, Winner
from steadygaze.network.layers import CARRIED, ENTRY, RELU, Layer
from steadygaze.network.operators import Operator, Relu
from steadygaze.network.steps import ArrangeStep, MatrixStep, PartStep, SumStep, is_folded
from support.networks.branching import Builder, dense, random_graph

SEEDS = range(40)


def images_of(graph, count=6):
    return np.random.default_rng(1).random((count, *graph.input_shape)) - 0.2


@pytest.mark.parametrize("seed", SEEDS)
def test_layers_compute_what_the_graph_computes(seed):
    graph = random_graph(seed)
    images = images_of(graph)
    layers, logits = graph.trace(images)
    by_steps = preactivations(graph, images.reshape(len(images), -1))
    by_maps = lower(graph).preactivations(images.reshape(len(images), -1))
    for one, two, three in zip([*layers, logits], by_steps, by_maps, strict=True):
        np.testing.assert_allclose(two, one, rtol=0, atol=1e-10)
        np.testing.assert_allclose(three, one, rtol=0, atol=1e-10)
    check_lowered(graph, lower(graph), "random")


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients_under_the_pattern_are_those_of_the_graph(seed):
    graph = random_graph(seed)
    image = images_of(graph, 1) + 0.0137
    *inputs, _ = preactivations(graph, image.reshape(1, -1))
    *_, found = gradients(graph, [bits[0] for bits in patterns(graph, inputs)])
    step = 1e-7
    moved = image.reshape(1, -1) + step * np.vstack([np.eye(4), -np.eye(4)])
    logits = graph.logits(moved.reshape(8, *graph.input_shape))
    np.testing.assert_allclose(found, (logits[:4] - logits[4:]).T / (2 * step), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_output_is_bit_times_value(seed):
    graph = random_graph(seed)
    for layer, values in zip(graph.layers, graph.trace(images_of(graph))[0], strict=True):
        np.testing.assert_array_equal(layer.apply(values), np.where(layer.bits(values), values, 0.0))


def test_the_first_of_the_largest_entries_wins():
    layer = Layer(
        np.array([RELU, ENTRY, ENTRY, ENTRY, ENTRY, CARRIED], np.uint8), np.array([-1, 0, 0, 0, 1, -1], np.int32)
    )
    values = np.array([[0.0, 2.0, 3.0, 3.0, -1.0, -5.0], [1.0, 0.0, 0.0, 0.0, 2.0, 0.0]])
    expected = np.array([[0, 0, 1, 0, 1, 1], [1, 1, 0, 0, 1, 1]], dtype=bool)
    np.testing.assert_array_equal(layer.bits(values), expected)
    assert layer.decided == 3


def test_nan_stays_nan():
    layer = Layer(np.array([ENTRY, ENTRY, CARRIED], np.uint8), np.array([0, 0, -1], np.int32))
    assert np.isnan(layer.apply(np.array([[np.nan, 1.0, 2.0]]))).any()
    assert np.isnan(layer.apply(np.array([[0.0, 1.0, np.nan]]))).any()


def test_a_residual_block_carries_its_input():
    rng, builder = np.random.default_rng(0), Builder()
    first = builder.add(Relu(), dense(rng, builder, 0, 3))
    inner = dense(rng, builder, builder.add(Relu(), dense(rng, builder, first, 5)), 3)
    builder.add(Sum((1, 1)), inner, first)
    graph = builder.graph()
    assert graph.hidden == (3, 8)
    assert graph.neurons == 8
    np.testing.assert_array_equal(graph.layers[1].carried, [False] * 5 + [True] * 3)
    assert not is_folded(graph.steps[2])  # the block's matrix and the carried values meet in no entry


def test_parallel_paths_from_one_value_are_folded():
    rng, builder = np.random.default_rng(0), Builder()
    first = builder.add(Relu(), dense(rng, builder, 0, 3))
    builder.add(Sum((1, -1)), dense(rng, builder, first, 2), dense(rng, builder, first, 2))
    assert is_folded(builder.graph().steps[1])


def test_windows_without_overlap_add_no_step_that_rounds():
    builder = Builder((1, 2, 2))
    builder.add(Winner(np.array([[0, 1], [2, 3]]), (1, 2)), 0)
    graph = builder.graph()
    assert graph.steps[0] == ()
    assert not is_folded(graph.steps[1])


def test_an_unused_node_is_dropped():
    rng, builder = np.random.default_rng(0), Builder()
    builder.add(Relu(), 0)
    used = builder.add(Relu(), 0)
    dense(rng, builder, used, 2)
    graph = builder.graph()
    images = images_of(graph)
    np.testing.assert_allclose(lower(graph).preactivations(images.reshape(len(images), -1))[-1], graph.logits(images))


def test_an_operator_without_a_layer_is_refused():
    class Other(Operator):
        def output_shape(self, *shapes):
            return shapes[0]

        def apply(self, *values):
            return values[0]

    builder = Builder()
    builder.nodes.append(Node(Other(), (0,), (1, 2, 2), "odd"))
    with pytest.raises(InternalError, match="'odd': Other belongs to no layer"):
        _ = builder.graph().layers


@pytest.mark.parametrize(
    "step",
    [
        ArrangeStep([2, 3, 1], [2, 0, 0]),
        SumStep(3, (1, -1, 1)),
        PartStep(MatrixStep(np.array([[1.0, -2.0, 0.5]]), np.array([0.25])), 2, 1),
        PartStep(SumStep(2, (1, 1)), 0, 3),
    ],
)
def test_steps_agree_with_their_matrices(step):
    rng = np.random.default_rng(3)
    matrix, bias = step.affine()
    full = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    values, rows = rng.normal(size=(4, step.sizes[0])), rng.normal(size=(4, step.sizes[1]))
    np.testing.assert_allclose(step.forward(values), values @ full.T)
    np.testing.assert_allclose(step.forward_abs(values), values @ np.abs(full).T)
    np.testing.assert_allclose(step.backward(rows), rows @ full)
    np.testing.assert_allclose(step.backward_abs(rows), rows @ np.abs(full))
    np.testing.assert_array_equal(bias, step.bias)
    assert step.entries >= np.count_nonzero(full)


def test_concatenation_along_an_inner_axis():
    builder = Builder((2, 2, 2))
    joined = builder.add(Concat(2), 0, builder.add(Relu(), 0))
    dense(np.random.default_rng(0), builder, joined, 2)
    graph = builder.graph()
    images = images_of(graph)
    np.testing.assert_allclose(lower(graph).preactivations(images.reshape(len(images), -1))[-1], graph.logits(images))
