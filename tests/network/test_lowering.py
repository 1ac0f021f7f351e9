"""From graphs to affine maps: the same function, stored dense or sparse as it should be."""

import numpy as np
import pytest
from onnx import helper
from scipy.sparse import csr_array

from steadygaze.errors import ModelError
from steadygaze.network.graph import Graph, Node, lower
from steadygaze.network.model import read_model
from steadygaze.network.operators import MatMul, Relu, Reshape, ScaleShift
from steadygaze.network.windows import Conv, Window


def chain_of(input_shape, *operators):
    """Graph of operators one after the other."""
    nodes, shape = [], input_shape
    for number, operator in enumerate(operators):
        shape = operator.output_shape(shape)
        nodes.append(Node(operator, (number,), shape, f"n{number}"))
    return Graph(input_shape, tuple(nodes))


def compare(graph):
    """Logits and preactivations of graph and chain are the same; returns the chain."""
    chain = lower(graph)
    images = np.random.default_rng(0).random((7, *graph.input_shape)) - 0.3
    flat = images.reshape(7, -1)
    layers = [*graph.trace(images)[0], graph.logits(images)]
    assert len(chain.maps) == len(layers)
    for ours, theirs in zip(chain.preactivations(flat), layers, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    for before, after in zip(chain.maps[:-1], chain.maps[1:], strict=True):
        assert after.matrix.shape[1] == before.matrix.shape[0]
    for affine in chain.maps:
        assert affine.bias.shape == affine.matrix.shape[:1]
        assert affine.bias.dtype == affine.matrix.dtype == np.float64
    return chain


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def test_linear_operators_fuse_into_one_map_for_each_relu():
    window = Window((3, 3), (1, 1), (1, 1), (1, 1), (1, 1))
    graph = chain_of(
        (2, 8, 8),
        ScaleShift(gain=random(2, 1, 1), offset=random(2, 1, 1, seed=1)),
        Reshape((1, 2, 8, 8)),
        Conv(random(3, 2, 3, 3), random(3), window),
        ScaleShift(gain=random(3, 1, 1), offset=random(3, 1, 1, seed=1)),
        Relu(),
        Conv(random(2, 3, 3, 3), random(2), window),
        Conv(random(2, 2, 3, 3), random(2), window),
        Relu(),
        Reshape((1, 128)),
        MatMul(random(128, 5), random(5)),
        MatMul(random(5, 4), random(4)),
    )
    chain = compare(graph)
    assert [affine.matrix.shape for affine in chain.maps] == [(192, 128), (128, 192), (4, 128)]
    assert isinstance(chain.maps[0].matrix, csr_array)
    assert isinstance(chain.maps[2].matrix, np.ndarray) and chain.maps[2].matrix.flags.c_contiguous


def test_sparse_maps_have_sorted_indices_and_no_zeros():
    weight = random(3, 2, 3, 3)
    weight[0, 0] = 0.0
    window = Window((3, 3), (2, 2), (1, 1), (1, 1), (1, 1))
    matrix = compare(chain_of((2, 20, 20), Reshape((1, 2, 20, 20)), Conv(weight, random(3), window))).maps[0].matrix
    assert isinstance(matrix, csr_array)
    assert matrix.has_canonical_format and matrix.data.all()
    for row in range(matrix.shape[0]):
        columns = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        assert (np.diff(columns) > 0).all()


def test_density_decides_between_dense_and_sparse():
    quarter = np.kron(np.eye(4), np.ones((3, 3)))
    assert isinstance(compare(chain_of((1, 1, 12), MatMul(quarter, np.zeros(12)))).maps[0].matrix, np.ndarray)
    quarter[0, 0] = 0.0
    assert isinstance(compare(chain_of((1, 1, 12), MatMul(quarter, np.zeros(12)))).maps[0].matrix, csr_array)


@pytest.mark.parametrize(
    "operators,layers",
    [
        ((Relu(),), 2),
        ((Relu(), Relu()), 3),
        ((Relu(), Relu(), MatMul(random(3, 2), random(2))), 3),
        ((MatMul(random(3, 2), random(2)), Relu()), 2),
        ((MatMul(random(3, 2), random(2)),), 1),
        ((Reshape((3,)),), 1),
        ((), 1),
    ],
)
def test_relus_anywhere(operators, layers):
    assert len(compare(chain_of((1, 1, 3), *operators)).maps) == layers


def test_weights_come_through_unchanged():
    """Selections and reshapes multiply by one and add zeros: not a bit of a weight may change."""
    weight = random(2, 1, 3, 3)
    window = Window((3, 3), (1, 1), (1, 1), (0, 0), (0, 0))
    graph = chain_of((1, 9, 9), Reshape((1, 1, 9, 9)), Conv(weight, random(2), window), Reshape((98,)))
    row = lower(graph).maps[0].matrix[[49]].toarray().reshape(9, 9)
    np.testing.assert_array_equal(row[:3, :3], weight[1, 0])
    assert np.count_nonzero(row) == 9


def test_a_matrix_beyond_memory_is_refused_before_it_is_made():
    window = Window((99, 99), (1, 1), (1, 1), (49, 49), (49, 49))
    graph = chain_of((1, 600, 600), Reshape((1, 1, 600, 600)), Conv(np.ones((1, 1, 99, 99)), np.zeros(1), window))
    with pytest.raises(ModelError, match=r"needs a matrix of 3\.53e\+09 entries"):
        lower(graph)


def test_a_fused_product_beyond_memory_is_refused():
    graph = chain_of(
        (1, 1, 20000), MatMul(np.ones((20000, 1)), np.zeros(1)), MatMul(np.ones((1, 20000)), np.zeros(20000))
    )
    with pytest.raises(ModelError, match=r"needs a matrix of 4e\+08 entries"):
        lower(graph)


def test_large_convolutions_stay_sparse():
    """CNN-M's second layer: 9,216 × 5,408 with 72 entries in a row."""
    window = Window((3, 3), (1, 1), (1, 1), (0, 0), (0, 0))
    graph = chain_of((8, 26, 26), Reshape((1, 8, 26, 26)), Conv(random(16, 8, 3, 3), random(16), window))
    matrix = compare(graph).maps[0].matrix
    assert matrix.shape == (9216, 5408)
    assert (np.diff(matrix.indptr) == 72).all()


def test_a_file_in_which_a_node_feeds_nothing(save, dense):
    """Nodes that the output does not need are not read."""
    nodes, weights = dense()
    nodes.insert(3, helper.make_node("Sigmoid", ["a"], ["unused"], name="unused"))
    assert len(read_model(save(nodes, weights, [1, 1, 4, 4])).chain.maps) == 2


def test_the_graph_takes_any_number_of_images():
    graph = chain_of(
        (1, 2, 2), Reshape((1, 4)), MatMul(random(4, 3), random(3)), Relu(), MatMul(random(3, 2), random(2))
    )
    images = random(300, 1, 2, 2)
    np.testing.assert_allclose(graph.logits(images)[299], graph.logits(images[299:])[0], rtol=1e-13)
    assert graph.logits(images[:0]).shape == (0, 2)
    assert [layer.shape for layer in graph.trace(images[:0])[0]] == [(0, 3)]
    with pytest.raises(ValueError, match="expected"):
        graph.logits(images[0])
