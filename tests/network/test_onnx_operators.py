"""Every supported operator: graph and affine maps against onnxruntime on small random models."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from steadygaze.network.model import read_model

DIMS = [1, 4, 7, 6]


def node(kind, inputs, output="y", **attributes):
    return helper.make_node(kind, inputs, [output], name=f"{kind}_{output}", **attributes)


def floats(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.fixture
def compare(save, run):
    """Graph, chain and replay against onnxruntime for nodes that end in 'y', made a row of logits by Flatten."""

    def compare(nodes, weights, dims=DIMS, *, opset=17, flatten=True, **options):
        if flatten:
            nodes = [*nodes, helper.make_node("Flatten", ["y"], ["logits"], axis=0)]
        path = save(nodes, weights, dims, opset=opset, **options)
        model = read_model(path, image_shape=dims[1:] if len(dims) == 4 else None)
        images = np.random.default_rng(2).random((5, *model.input_shape))
        expected = run(path, images.reshape(5, *dims[1:]))
        ours = model.graph.logits(images)
        scale = np.abs(expected).max() + 1e-3
        np.testing.assert_allclose(ours, expected, rtol=0, atol=3e-6 * scale)
        np.testing.assert_allclose(model.replay.logits(images), expected, rtol=0, atol=1e-6 * scale)
        np.testing.assert_allclose(
            model.chain.preactivations(images.reshape(5, -1))[-1], ours, rtol=0, atol=1e-12 * scale
        )
        return model

    return compare


@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
@pytest.mark.parametrize("dilations", [(1, 1), (2, 1)])
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 2, 1]])
def test_conv(compare, strides, dilations, groups, pads):
    weights = {"w": floats(8, 4 // groups, 3, 2), "b": floats(8)}
    attributes = {"strides": strides, "dilations": dilations, "group": groups, "pads": pads}
    compare([node("Conv", ["image", "w", "b"], **attributes)], weights)


@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_conv_auto_pad(compare, strides, auto_pad):
    weights = {"w": floats(3, 4, 4, 2), "b": floats(3)}
    compare([node("Conv", ["image", "w", "b"], strides=strides, auto_pad=auto_pad)], weights)


@pytest.mark.parametrize("opset", [9, 11, 13, 22])
def test_conv_without_bias_or_attributes(compare, opset):
    compare([node("Conv", ["image", "w"])], {"w": floats(3, 4, 2, 2)}, opset=opset)


def test_conv_in_one_dimension(compare):
    nodes = [
        node("Reshape", ["image", "shape"], "rows"),
        node("Conv", ["rows", "w", "b"], pads=[1, 1], strides=[2], group=2),
    ]
    compare(nodes, {"shape": np.array([1, 4, 42]), "w": floats(6, 2, 3), "b": floats(6)})


def test_conv_on_several_rows(compare):
    """A batch axis longer than one, made by a Reshape, is one more axis of the same image."""
    nodes = [node("Reshape", ["image", "shape"], "halves"), node("Conv", ["halves", "w", "b"])]
    compare(nodes, {"shape": np.array([2, 2, 7, 6]), "w": floats(3, 2, 3, 3), "b": floats(3)})


@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize("count_include_pad", [0, 1])
@pytest.mark.parametrize("kernel,strides", [((2, 2), (2, 2)), ((3, 2), (2, 3)), ((3, 3), (1, 1)), ((2, 3), (3, 2))])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 1, 1], [1, 1, 0, 1]])
def test_average_pool(compare, ceil_mode, count_include_pad, kernel, strides, pads):
    attributes = {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad, "pads": pads}
    compare([node("AveragePool", ["image"], kernel_shape=kernel, strides=strides, **attributes)], {})


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("opset", [9, 11, 19, 22])
def test_average_pool_auto_pad(compare, auto_pad, opset):
    compare([node("AveragePool", ["image"], kernel_shape=[3, 2], strides=[2, 2], auto_pad=auto_pad)], {}, opset=opset)


def test_average_pool_dilated(compare):
    compare([node("AveragePool", ["image"], kernel_shape=[2, 2], dilations=[3, 2])], {}, opset=19)


def test_global_average_pool(compare):
    compare([node("GlobalAveragePool", ["image"])], {})


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[2, 3], [-1], [1]])
def test_reduce_mean(compare, axes, keepdims):
    compare([node("ReduceMean", ["image"], axes=axes, keepdims=keepdims)], {}, opset=13)
    weights = {"axes": np.array(axes)}
    compare([node("ReduceMean", ["image", "axes"], keepdims=keepdims)], weights, opset=18)


def test_reduce_mean_without_axes(compare):
    nodes = [node("ReduceMean", ["image"], "m"), node("Add", ["m", "c"])]
    compare(nodes, {"c": floats(1, 3, 1, 1)}, opset=13)
    compare([node("ReduceMean", ["image"], noop_with_empty_axes=1)], {}, opset=18)


@pytest.mark.parametrize("opset", [9, 14, 15])
@pytest.mark.parametrize("epsilon", [1e-5, 0.3])
def test_batch_normalization(compare, opset, epsilon):
    weights = {"s": floats(4), "b": floats(4, seed=2), "m": floats(4, seed=3), "v": np.abs(floats(4, seed=4))}
    compare([node("BatchNormalization", ["image", "s", "b", "m", "v"], epsilon=epsilon)], weights, opset=opset)


def test_batch_normalization_of_a_row(compare):
    weights = {k: np.abs(floats(168, seed=i)) for i, k in enumerate("sbmv")}
    nodes = [node("Flatten", ["image"], "f"), node("BatchNormalization", ["f", "s", "b", "m", "v"])]
    compare(nodes, weights)


@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("bias", [None, (5,), (1, 5), (1,), (1, 1)])
def test_gemm(compare, trans_b, bias):
    weights = {"w": floats(*((5, 168) if trans_b else (168, 5)))}
    inputs = ["f", "w"]
    if bias is not None:
        weights["b"] = floats(*bias)
        inputs.append("b")
    nodes = [node("Flatten", ["image"], "f"), node("Gemm", inputs, transB=trans_b, alpha=0.5, beta=1.5)]
    compare(nodes, weights)


def test_gemm_of_a_transposed_value(compare):
    nodes = [node("Reshape", ["image", "s"], "f"), node("Gemm", ["f", "w", "b"], transA=1)]
    compare(nodes, {"s": np.array([168, 1]), "w": floats(168, 5), "b": floats(5)})


def test_gemm_with_several_rows_and_a_matrix_as_bias(compare):
    nodes = [node("Reshape", ["image", "s"], "f"), node("Gemm", ["f", "w", "b"])]
    for shape in ((4, 5), (4, 1), (5,)):
        compare(nodes, {"s": np.array([4, 42]), "w": floats(42, 5), "b": floats(*shape)})
    compare(nodes, {"s": np.array([4, 42]), "w": floats(42, 4), "b": floats(4, 1)})


@pytest.mark.parametrize(
    "shape,weight,left",
    [
        ([1, 168], (168, 5), False),
        ([168], (168, 5), False),
        ([2, 4, 21], (21, 5), False),
        ([1, 1, 168], (1, 168, 5), False),
        ([168, 1], (5, 168), True),
        ([168], (5, 168), True),
        ([1, 168, 1], (5, 168), True),
        ([2, 21, 4], (5, 21), True),
    ],
)
def test_matmul(compare, shape, weight, left):
    inputs = ["w", "v"] if left else ["v", "w"]
    nodes = [node("Reshape", ["image", "s"], "v"), node("MatMul", inputs)]
    compare(nodes, {"s": np.array(shape), "w": floats(*weight)})


@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("shape", [(), (1,), (4, 1, 1), (1, 4, 7, 6), (6,), (7, 1)])
def test_arithmetic_with_a_constant(compare, kind, shape):
    weights = {"c": floats(*shape) + np.float32(3)}
    compare([node(kind, ["image", "c"])], weights)
    if kind != "Div":
        compare([node(kind, ["c", "image"])], weights)


def test_arithmetic_that_repeats_the_value(compare):
    nodes = [node("ReduceMean", ["image"], "m", axes=[2, 3]), node("Mul", ["m", "c"])]
    compare(nodes, {"c": floats(2, 1, 1, 3, 2)})


@pytest.mark.parametrize("opset", [10, 11, 13, 18])
@pytest.mark.parametrize("pads", [[0, 0, 1, 2, 0, 1, 0, 3], [0, -1, -2, 0, 0, 1, 1, -1]])
def test_pad(compare, opset, pads):
    if opset < 11:
        compare([node("Pad", ["image"], pads=pads, value=0.5)], {}, opset=opset)
    else:
        weights = {"p": np.array(pads), "v": np.float32(0.5)}
        compare([node("Pad", ["image", "p", "v"])], weights, opset=opset)
        compare([node("Pad", ["image", "p"])], weights, opset=opset)


def test_pad_of_some_axes(compare):
    weights = {"p": np.array([1, 2, 0, 3]), "axes": np.array([3, -2])}
    compare([node("Pad", ["image", "p", "", "axes"])], weights, opset=18)


def test_pad_before_conv_then_bias(compare):
    nodes = [
        node("Sub", ["image", "m"], "c"),
        node("Pad", ["c", "p", "v"], "padded"),
        node("Conv", ["padded", "w", "b"], strides=[2, 2]),
    ]
    weights = {"m": floats(1, 4, 1, 1), "p": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "v": np.float32(0.7)}
    compare(nodes, {**weights, "w": floats(3, 4, 3, 3), "b": floats(3)})


@pytest.mark.parametrize("shape", [[1, -1], [0, -1, 6], [168], [-1, 2, 84], [2, 2, 7, 6]])
def test_reshape(compare, shape):
    nodes = [node("Reshape", ["image", "s"], "r"), node("Mul", ["r", "c"])]
    size = np.zeros(shape[-1] if shape[-1] > 0 else 168, dtype=np.float32)
    compare(nodes, {"s": np.array(shape), "c": size + floats(*size.shape)})


def test_reshape_allowzero_without_zero(compare):
    compare([node("Reshape", ["image", "s"], allowzero=1)], {"s": np.array([1, 168])})


@pytest.mark.parametrize("axis", [0, 1, 2, 4, -1])
def test_flatten(compare, axis):
    compare([node("Transpose", ["image"], "t", perm=[0, 2, 1, 3]), node("Flatten", ["t"], axis=axis)], {})


def test_squeeze_and_unsqueeze(compare):
    weights = {"a": np.array([0, -1]), "b": np.array([2])}
    nodes = [node("Unsqueeze", ["image", "a"], "u"), node("Squeeze", ["u", "a"], "s"), node("Squeeze", ["s"])]
    compare(nodes, weights, opset=13)
    nodes = [node("Unsqueeze", ["image"], "u", axes=[0, 5]), node("Squeeze", ["u"], axes=[0, 5])]
    compare(nodes, {}, opset=11)


@pytest.mark.parametrize("perm", [[0, 2, 3, 1], [3, 2, 1, 0], None])
def test_transpose(compare, perm):
    attributes = {} if perm is None else {"perm": perm}
    compare([node("Transpose", ["image"], **attributes)], {})


def test_identity_cast_dropout_relu(compare):
    nodes = [
        node("Identity", ["image"], "i"),
        node("Cast", ["i"], "d", to=TensorProto.DOUBLE),
        node("Cast", ["d"], "f", to=TensorProto.FLOAT),
        node("Sub", ["f", "half"], "s"),
        node("Relu", ["s"], "r"),
        node("Dropout", ["r"]),
    ]
    compare(nodes, {"half": np.float32(0.5)})


def test_dropout_with_inputs(compare):
    weights = {"ratio": np.float32(0.5), "training": np.array(False)}
    compare([node("Dropout", ["image", "ratio", "training"])], weights)


def test_constant_nodes_and_moved_weights(compare):
    constant = helper.make_node("Constant", [], ["c"], value_floats=[0.25])
    tensor = helper.make_tensor("t", TensorProto.FLOAT, [5, 168], floats(5, 168).ravel())
    nodes = [
        constant,
        helper.make_node("Constant", [], ["w"], value=tensor),
        node("Transpose", ["w"], "wt"),
        node("Mul", ["wt", "c"], "scaled"),
        node("Flatten", ["image"], "f"),
        node("MatMul", ["f", "scaled"]),
    ]
    compare(nodes, {})


def test_shape_arithmetic_of_exporters(compare):
    """view(x.size(0), -1) without constant folding, as exporters write it."""
    nodes = [
        node("Shape", ["image"], "s"),
        node("Gather", ["s", "zero"], "batch", axis=0),
        node("Unsqueeze", ["batch", "zeros"], "b"),
        node("Concat", ["b", "rest"], "target", axis=0),
        node("Reshape", ["image", "target"]),
    ]
    compare(nodes, {"zero": np.array(0), "zeros": np.array([0]), "rest": np.array([-1])})


def test_shape_arithmetic_with_slices_and_division(compare):
    nodes = [
        node("Shape", ["image"], "s"),
        node("Slice", ["s", "two", "four"], "hw"),
        node("Mul", ["hw", "two"], "doubled"),
        node("Div", ["doubled", "two"], "same"),
        node("Cast", ["same"], "cast", to=TensorProto.INT64),
        node("Slice", ["s", "zero", "two"], "nc"),
        node("Concat", ["nc", "cast"], "target", axis=0),
        node("Reshape", ["image", "target"]),
    ]
    compare(nodes, {"zero": np.array([0]), "two": np.array([2]), "four": np.array([4])})


@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("opset", [9, 13])
def test_final_softmax_is_dropped(save, run, dense, kind, opset):
    nodes, weights = dense()
    plain = run(save(nodes, weights, [1, 1, 4, 4], opset=opset, name="plain.onnx"), np.zeros((1, 1, 4, 4)))
    nodes = [*nodes, helper.make_node(kind, ["logits"], ["p"], axis=1), helper.make_node("Identity", ["p"], ["out"])]
    path = save(nodes, weights, [1, 1, 4, 4], opset=opset)
    model = read_model(path)
    assert [note for note in model.notes if f"final {kind} dropped" in note]
    zero = np.zeros((1, 1, 4, 4))
    for logits in (model.graph.logits(zero), model.replay.logits(zero)):
        np.testing.assert_allclose(logits, plain, atol=1e-5)
    image = np.random.default_rng(0).random((1, 1, 4, 4))
    exponentials = np.exp(model.replay.logits(image))
    probabilities = exponentials / exponentials.sum()
    expected = run(path, image)
    np.testing.assert_allclose(np.log(probabilities) if kind == "LogSoftmax" else probabilities, expected, atol=1e-5)


def test_double_precision(compare):
    weights = {"w": floats(5, 168).astype(np.float64), "b": np.arange(5.0)}
    nodes = [node("Flatten", ["image"], "f"), node("Gemm", ["f", "w", "b"], transB=1)]
    compare(nodes, weights, elem=TensorProto.DOUBLE)


def test_half_precision_weights_are_lifted_exactly(save):
    weights = {"w": floats(5, 16).astype(np.float16), "b": floats(5).astype(np.float16)}
    nodes = [node("Flatten", ["image"], "f"), node("Gemm", ["f", "w", "b"], transB=1)]
    model = read_model(save(nodes, weights, [1, 1, 4, 4], elem=TensorProto.FLOAT16))
    np.testing.assert_array_equal(model.chain.maps[0].matrix, weights["w"].astype(np.float64))
    assert any("half precision" in note for note in model.notes)


def test_newest_opset(compare, dense, newest_opset):
    nodes, weights = dense()
    opset = min(newest_opset, 23)
    compare(nodes, weights, [1, 1, 4, 4], opset=opset, flatten=False)
