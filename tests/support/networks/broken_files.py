"""Makes a corpus of broken and unsupported ONNX files; each comes with words that its refusal must contain."""

import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, helper, numpy_helper

from support.networks.onnx_files import make_proto
from support.networks.operator_models import floats, node

DIMS = [1, 1, 4, 4]
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
MANY = 10_000

MODELS: dict[str, tuple[str, Callable[[], ModelProto]]] = {}
"""By name: words of the refusal, and a function that makes the model."""


def case(words: str) -> Callable:
    """Add a function that makes a model to the corpus."""

    def add(make: Callable[[], ModelProto]) -> Callable[[], ModelProto]:
        MODELS[make.__name__] = (words, make)
        return make

    return add


def dense() -> ModelProto:
    """Flatten, Gemm, Relu, Gemm of images (1, 4, 4), with three classes."""
    nodes = [
        node("Flatten", "image", "f"),
        node("Gemm", "f w1 b1", "h"),
        node("Relu", "h", "a"),
        node("Gemm", "a w2 b2", "logits"),
    ]
    return make_proto(nodes, {"w1": floats(16, 6), "b1": floats(6), "w2": floats(6, 3), "b2": floats(3)}, DIMS)


def single(kind: str, inputs: str | list[str] = "image", weights=None, *, opset: int = 17, dims=None, **attributes):
    """A model with one operator, whose result becomes a row of logits."""
    nodes = [node(kind, inputs, "y", **attributes), node("Relu", "y", "r"), node("Flatten", "r", "l", axis=0)]
    return make_proto(nodes, weights or {}, dims or DIMS, opset=opset)


def weight_of(model: ModelProto, name: str) -> TensorProto:
    """An initializer by name."""
    return next(tensor for tensor in model.graph.initializer if tensor.name == name)


# Structure


@case("not a valid ONNX model")
def cyclic():
    model = dense()
    model.graph.node[1].input[0] = "a"
    return model


@case("not a valid ONNX model")
def node_that_reads_itself():
    model = dense()
    model.graph.node[2].input[0] = "a"
    return model


@case("not a valid ONNX model")
def unsorted():
    model = dense()
    first, second = ModelProto(), ModelProto()
    first.graph.node.append(model.graph.node[1])
    second.graph.node.append(model.graph.node[2])
    model.graph.node[1].CopyFrom(second.graph.node[0])
    model.graph.node[2].CopyFrom(first.graph.node[0])
    return model


@case("not a valid ONNX model")
def missing_initializer():
    model = dense()
    del model.graph.initializer[0]
    return model


@case("not a valid ONNX model")
def name_given_twice():
    model = dense()
    model.graph.node[2].output[0] = "h"
    return model


@case("(Sum): its input 2 is missing; the file is damaged")
def missing_summand():
    return single("Sum", ["image", "", "image"])


@case("(Max): its input 1 is missing; the file is damaged")
def missing_first_input():
    return single("Max", ["", "image"])


@case("w1 initializer name is not unique")
def initializer_given_twice():
    model = dense()
    model.graph.initializer.append(numpy_helper.from_array(floats(16, 6, seed=9), "w1"))
    return model


@case("has 2 inputs ('image', 'more')")
def two_inputs():
    model = dense()
    model.graph.input.append(helper.make_tensor_value_info("more", FLOAT, [1]))
    return model


@case("has 0 inputs (none)")
def no_inputs():
    model = dense()
    del model.graph.input[:]
    model.graph.initializer.append(numpy_helper.from_array(floats(*DIMS), "image"))
    return model


@case("has 0 outputs (none)")
def no_outputs():
    model = dense()
    del model.graph.output[:]
    return model


@case("has 2 outputs ('logits', 'h'); expected one, the logits; choose one by --output NAME")
def two_outputs():
    model = dense()
    model.graph.output.append(helper.make_tensor_value_info("h", FLOAT, None))
    return model


@case("Graph output 'nothing' is not an output of any node")
def output_that_no_node_makes():
    model = dense()
    model.graph.output[0].name = "nothing"
    return model


@case("output 'w2' does not depend on the image")
def output_that_is_a_weight():
    model = dense()
    model.graph.output[0].name = "w2"
    return model


@case("the output has shape [1, 1, 4, 4]")
def output_that_is_an_image():
    return make_proto([node("Relu", "image", "l")], {}, DIMS)


@case("has 5184 logits, at most 4096 are supported")
def output_of_many_classes():
    return make_proto([node("Flatten", "image", "l")], {}, [1, 1, 72, 72])


@case("has no ONNX opset")
def no_opset():
    model = dense()
    del model.opset_import[:]
    return model


@case("has opset 8; supported are 9 to")
def old_opset():
    model = dense()
    model.opset_import[0].version = 8
    return model


@case("has opset 999; supported are 9 to")
def opset_of_the_future():
    model = dense()
    model.opset_import[0].version = 999
    return model


@case("has opset -1; supported are 9 to")
def negative_opset():
    model = dense()
    model.opset_import[0].version = -1
    return model


@case("not an ONNX model (it holds no graph)")
def no_graph():
    return ModelProto(ir_version=8)


@case("is my.own.Magic, which is not supported")
def unknown_domain():
    model = single("Relu")
    model.graph.node[0].domain, model.graph.node[0].op_type = "my.own", "Magic"
    model.opset_import.append(helper.make_opsetid("my.own", 1))
    return model


@case("not a valid ONNX model")
def unknown_operator():
    return single("Magic")


def chain(kind: str, last: str) -> ModelProto:
    """A chain of many nodes, and one of another kind after it."""
    nodes = [node(kind, f"v{i}" if i else "image", f"v{i + 1}") for i in range(MANY)]
    nodes += [node(last, f"v{MANY}", "y"), node("Relu", "y", "r"), node("Flatten", "r", "l")]
    return make_proto(nodes, {}, DIMS)


@case("is Tanh, which is not piecewise linear")
def many_identities():
    return chain("Identity", "Tanh")


@case("is Tanh, which is not piecewise linear")
def many_relus():
    return chain("Relu", "Tanh")


@case("is Tanh, which is not piecewise linear")
def many_absolute_values():
    return chain("Abs", "Tanh")


@case("is Tanh, which is not piecewise linear")
def many_foldings():
    nodes = [node("Add", f"c{i} one", f"c{i + 1}") for i in range(MANY)]
    nodes += [node("Add", f"image c{MANY}", "s"), node("Tanh", "s", "t"), node("Flatten", "t", "l")]
    return make_proto(nodes, {"c0": np.float32(0), "one": np.float32(1)}, DIMS)


# Tensors


def spoiled(name: str, value: float) -> ModelProto:
    """The dense model with one number replaced."""
    model = dense()
    tensor = weight_of(model, name)
    numbers = numpy_helper.to_array(tensor).copy()
    numbers.flat[1] = value
    tensor.CopyFrom(numpy_helper.from_array(numbers, name))
    return model


@case("tensor 'w1' holds NaN or infinity")
def weight_nan():
    return spoiled("w1", np.nan)


@case("tensor 'b2' holds NaN or infinity")
def weight_infinite():
    return spoiled("b2", np.inf)


def replaced(**fields) -> ModelProto:
    """The dense model with other fields in its first weight."""
    model = dense()
    tensor = weight_of(model, "w1")
    for name, value in fields.items():
        if name == "dims":
            del tensor.dims[:]
            tensor.dims.extend(value)
        else:
            setattr(tensor, name, value)
    return model


@case("needs 384 bytes, but holds 8")
def weight_cut():
    return replaced(raw_data=bytes(8))


@case("claims 1.1e+12 elements")
def weight_huge():
    return replaced(dims=[2**20, 2**20])


@case("elements, at most")
def weight_beyond_64_bits():
    return replaced(dims=[2**62, 2**62])


@case("negative dimension -16")
def weight_negative():
    return replaced(dims=[-16, 6])


@case("needs 0 bytes, but holds 384")
def weight_empty():
    return replaced(dims=[0, 6])


@case("has type complex64")
def weight_complex():
    return replaced(data_type=TensorProto.COMPLEX64)


@case("has type number 77")
def weight_of_no_type():
    return replaced(data_type=77)


@case("has type undefined")
def weight_undefined():
    return replaced(data_type=0)


@case("has type string")
def weight_of_strings():
    model = dense()
    weight_of(model, "w1").CopyFrom(helper.make_tensor("w1", TensorProto.STRING, [2], ["a", "b"]))
    return model


@case("has type int4")
def weight_of_half_bytes():
    model = dense()
    weight_of(model, "w1").CopyFrom(TensorProto(name="w1", data_type=TensorProto.INT4, dims=[2], raw_data=b"1"))
    return model


@case("sparse initializers are not supported")
def weight_sparse():
    model = dense()
    values = numpy_helper.from_array(np.ones(1, np.float32), "sparse")
    indices = numpy_helper.from_array(np.zeros(1, np.int64), "where")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))
    return model


@case("contains neither a tensor nor numbers")
def weight_as_text():
    model = single("Add", "image c")
    model.graph.node.insert(0, node("Constant", [], "c", value_string="text"))
    return model


def stored_outside(**entries) -> ModelProto:
    """The dense model with the first weight in another file."""
    model = dense()
    tensor = weight_of(model, "w1")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return model


@case("outside the model's folder")
def external_above():
    return stored_outside(location="../secret.bin")


@case("outside the model's folder")
def external_hidden_above():
    return stored_outside(location="here/../../secret.bin")


@case("outside the model's folder")
def external_absolute():
    return stored_outside(location="/etc/hostname")


@case("outside the model's folder")
def external_on_a_drive():
    return stored_outside(location="C:\\secret.bin")


@case("which is missing from the model's folder")
def external_missing():
    return stored_outside(location="missing.bin")


@case("names no external data file")
def external_nowhere():
    return stored_outside()


@case("is a directory")
def external_folder():
    return stored_outside(location=".")


@case("lies at bytes 60 to 444")
def external_too_short():
    return stored_outside(location="weights.bin", offset="60", length="384")


@case("has a damaged external offset or length")
def external_offset_that_is_no_number():
    return stored_outside(location="weights.bin", offset="1e3")


@case("lies at bytes -5 to")
def external_negative_offset():
    return stored_outside(location="weights.bin", offset="-5")


# Inputs


def fed(dims=None, *, elem: int = FLOAT) -> ModelProto:
    """The dense model with another input."""
    model = dense()
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("image", elem, dims))
    return model


@case("has no float type")
def input_of_bytes():
    return fed(DIMS, elem=TensorProto.UINT8)


@case("has no float type")
def input_of_strings():
    return fed(DIMS, elem=TensorProto.STRING)


@case("has no float type")
def input_sequence():
    model = dense()
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, DIMS))
    model.graph.input[0].CopyFrom(helper.make_value_info("image", kind))
    return model


@case("Field 'shape' of 'type' is required")
def input_without_shape():
    return fed(None)


@case("a fixed batch of 7")
def input_of_seven_images():
    return fed([7, 1, 4, 4])


@case("expected a batch of images")
def input_without_batch():
    return fed([16])


@case("expected [1, C, H, W]")
def input_of_five_axes():
    return fed([1, 1, 1, 4, 4])


@case("open dimensions")
def input_of_open_size():
    return fed([None, 1, "height", "width"])


@case("has the dimension 0")
def input_empty():
    return fed([1, 1, 0, 4])


@case("has the dimension -4")
def input_negative():
    return fed([1, 1, -4, 4])


@case("has the dimension 1099511627776")
def input_huge():
    return fed([1, 1, 2**40, 4])


@case("the image has shape [1, 134217728, 134217728]")
def input_of_many_pixels():
    return fed([1, 1, 2**27, 2**27])


# Operators that are not piecewise linear, or not supported


@case("is Tanh, which is not piecewise linear. Supported: ")
def tanh_inside():
    return single("Tanh")


@case("is Sigmoid, which is not piecewise linear")
def silu():
    nodes = [node("Sigmoid", "image", "s"), node("Mul", "image s", "y"), node("Flatten", "y", "l")]
    return make_proto(nodes, {}, DIMS)


@case("is HardSwish, which is not piecewise linear")
def hard_swish():
    return single("HardSwish")


@case("is Gelu, which is not piecewise linear")
def gelu():
    return single("Gelu", opset=20)


@case("is Softmax, which is not piecewise linear")
def softmax_inside():
    return single("Softmax")


@case("is LayerNormalization, which is not piecewise linear")
def layer_norm():
    return single("LayerNormalization", "image s", {"s": floats(4)})


@case("is InstanceNormalization, which is not piecewise linear")
def instance_norm():
    return single("InstanceNormalization", "image s b", {"s": floats(1), "b": floats(1)})


@case("is GroupNormalization, which is not piecewise linear")
def group_norm():
    return single("GroupNormalization", "image s b", {"s": floats(1), "b": floats(1)}, opset=21, num_groups=1)


@case("is LRN, which is not piecewise linear")
def local_response_norm():
    return single("LRN", size=3)


@case("is LSTM, which is not piecewise linear")
def lstm():
    weights = {"s": np.array([1, 1, 16]), "w": floats(1, 16, 16), "r": floats(1, 16, 4)}
    return make_proto(
        [node("Reshape", "image s", "x"), node("LSTM", "x w r", "y", hidden_size=4), node("Flatten", "y", "l")],
        weights,
        DIMS,
    )


@case("(MatMul): multiplies values that both depend on the image")
def attention():
    nodes = [node("Transpose", "image", "t", perm=[0, 1, 3, 2]), node("MatMul", "image t", "y")]
    return make_proto([*nodes, node("Flatten", "y", "l")], {}, DIMS)


@case("(Mul): multiplies values that both depend on the image")
def square():
    return single("Mul", "image image")


@case("(Div): divides by a value that depends on the image")
def division_by_the_image():
    return single("Div", "c image", {"c": np.float32(1)})


@case("(Div): divides by zero")
def division_by_zero():
    return single("Div", "image c", {"c": np.float32(0)})


@case("(ThresholdedRelu): jumps from 0 to 1")
def jump():
    return single("ThresholdedRelu")


@case("is Round, which is not continuous")
def rounding():
    return single("Round")


@case("is Sign, which is not continuous")
def sign():
    return single("Sign")


@case("is ArgMax, which is not continuous")
def argmax_at_the_end():
    model = dense()
    model.graph.node.append(node("ArgMax", "logits", "label"))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("label", INT64, None))
    return model


@case("is QuantizeLinear, which is not continuous")
def quantized():
    model = single("DequantizeLinear", "q s z", {"s": np.float32(0.1), "z": np.uint8(0)})
    model.graph.node.insert(0, node("QuantizeLinear", "image s z", "q"))
    return model


@case("only casts between float types")
def cast_to_integers():
    return single("Cast", to=INT64)


@case("training mode")
def dropout_in_training():
    return single("Dropout", ["image", "", "t"], {"t": np.array(True)})


@case("training mode")
def batch_norm_in_training():
    model = single("BatchNormalization", "image s b m v", {name: floats(1) for name in "sbmv"}, training_mode=1)
    model.graph.node[0].output.extend(["m2", "v2"])
    return model


def body(kind: str) -> GraphProto:
    """A subgraph that passes a value through."""
    value = helper.make_tensor_value_info("out_of_" + kind, FLOAT, None)
    return helper.make_graph([node("Identity", "image", "out_of_" + kind)], kind, [], [value])


@case("is If, which is control flow")
def condition():
    return single("If", "c", {"c": np.array(True)}, then_branch=body("then"), else_branch=body("else"))


@case("is Loop, which is control flow")
def loop():
    condition = helper.make_tensor_value_info("on", TensorProto.BOOL, [])
    inputs = [helper.make_tensor_value_info("i", INT64, []), condition, helper.make_tensor_value_info("v", FLOAT, None)]
    outputs = [
        helper.make_tensor_value_info("on2", TensorProto.BOOL, []),
        helper.make_tensor_value_info("v2", FLOAT, None),
    ]
    nodes = [node("Identity", "on", "on2"), node("Relu", "v", "v2")]
    graph = helper.make_graph(nodes, "body", inputs, outputs)
    return single("Loop", "n c image", {"n": np.array(3), "c": np.array(True)}, body=graph)


@case("is Scan, which is control flow")
def scan():
    one = helper.make_tensor_value_info("v", FLOAT, None)
    two = helper.make_tensor_value_info("v2", FLOAT, None)
    return single("Scan", num_scan_inputs=1, body=helper.make_graph([node("Relu", "v", "v2")], "body", [one], [two]))


@case("is SequenceConstruct, which is not supported")
def sequences():
    nodes = [node("SequenceConstruct", "image image", "s"), node("ConcatFromSequence", "s", "y", axis=0)]
    return make_proto([*nodes, node("Flatten", "y", "l")], {}, DIMS)


@case("reads output 2 of a MaxPool node")
def indices_of_a_pool():
    nodes = [node("MaxPool", "image", "p i", kernel_shape=[2, 2]), node("Cast", "i", "f", to=FLOAT)]
    return make_proto([*nodes, node("Add", "p f", "y"), node("Flatten", "y", "l")], {}, DIMS)


@case("has storage_order 1")
def pool_by_columns():
    return single("MaxPool", kernel_shape=[2, 2], storage_order=1)


# Attributes and shapes


@case("not a valid ONNX model")
def attribute_of_another_type():
    model = single("Conv", "image w", {"w": floats(2, 1, 2, 2)})
    model.graph.node[0].attribute.append(helper.make_attribute("strides", [1.0, 1.0]))
    return model


@case("not a valid ONNX model")
def attribute_without_a_type():
    model = single("MaxPool")
    attribute = AttributeProto(name="kernel_shape")
    attribute.ints.extend([2, 2])
    model.graph.node[0].attribute.append(attribute)
    return model


@case("not a valid ONNX model")
def attribute_missing():
    return single("MaxPool")


@case("does not fit [1, 1, 4, 4]")
def conv_of_other_channels():
    return single("Conv", "image w", {"w": floats(2, 3, 2, 2)})


@case("supported are 1-D and 2-D")
def conv_in_three_dimensions():
    return single("Conv", "image w", {"w": floats(2, 1, 2, 2, 2)})


@case("does not fit into [4, 4]")
def conv_larger_than_its_image():
    return single("Conv", "image w", {"w": floats(2, 1, 9, 9)})


@case("0 group(s)")
def conv_without_groups():
    return single("Conv", "image w", {"w": floats(2, 1, 2, 2)}, group=0)


@case("does not fit a weight of shape")
def conv_with_a_long_bias():
    return single("Conv", "image w b", {"w": floats(2, 1, 2, 2), "b": floats(3)})


@case("does not fit into [4, 4]")
def pool_larger_than_its_image():
    return single("MaxPool", kernel_shape=[9, 9])


@case("must be positive")
def pool_without_strides():
    return single("MaxPool", kernel_shape=[2, 2], strides=[0, 1])


@case("needs an index of 1.6e+09 entries")
def pool_of_many_positions():
    return single("AveragePool", kernel_shape=[2 * 10**4, 1], pads=[2 * 10**4 - 2, 0, 2 * 10**4 - 2, 0])


@case("has a window of 1.05e+06 places")
def pool_of_many_places():
    return single("AveragePool", kernel_shape=[2**20, 1], auto_pad="SAME_UPPER")


@case("pads exceed")
def pool_with_huge_pads():
    return single("MaxPool", kernel_shape=[2, 1], pads=[2**40, 0, 0, 0])


@case("lies entirely in the padding")
def pool_of_nothing():
    return single("MaxPool", kernel_shape=[2, 2], pads=[2, 2, 2, 2])


@case("its index runs from 7 to 7")
def gather_beyond_the_end():
    return single("Gather", "image i", {"i": np.array(7)})


@case("only its first input may depend on the image")
def gather_by_the_image():
    return single("Gather", "image image")


@case("cannot reshape [1, 1, 4, 4] to [3, -1]")
def reshape_impossible():
    return single("Reshape", "image s", {"s": np.array([3, -1])})


@case("cannot reshape")
def reshape_to_two_open_sizes():
    return single("Reshape", "image s", {"s": np.array([-1, -1])})


@case("do not fit")
def concat_of_other_shapes():
    return single("Concat", "image c", {"c": floats(1, 1, 5, 5)}, axis=1)


@case("do not fit")
def concat_of_other_values():
    nodes = [node("GlobalMaxPool", "image", "p"), node("Concat", "image p", "y", axis=1), node("Flatten", "y", "l")]
    return make_proto(nodes, {}, DIMS)


@case("axis 4 does not exist")
def concat_along_no_axis():
    return single("Concat", "image image", axis=4)


@case("perm [0, 1] does not fit")
def transpose_of_too_few_axes():
    return single("Transpose", perm=[0, 1])


@case("do not fit together")
def slice_without_step():
    return single(
        "Slice",
        "image s e a t",
        {"s": np.zeros(1, int), "e": np.ones(1, int), "a": np.zeros(1, int), "t": np.zeros(1, int)},
    )


@case("is empty")
def slice_of_nothing():
    return single("Slice", "image s e", {"s": np.zeros(4, int), "e": np.zeros(4, int)})


@case("cannot split axis 2 of length 4 into parts of length [1, 1]")
def split_of_a_part():
    model = single("Split", "image s", {"s": np.array([1, 1])}, axis=2)
    model.graph.node[0].output.append("y2")
    return model


@case("entries, at most")
def expand_huge():
    return single("Expand", "image s", {"s": np.array([2**20, 2**20, 4, 4])})


@case("entries, at most")
def tile_huge():
    return single("Tile", "image n", {"n": np.array([2**31, 2**31, 1, 1])})


@case("entries, at most")
def resize_huge():
    return single("Resize", ["image", "", "", "s"], {"s": np.array([1, 1, 2**20, 2**20])})


@case("has mode 'cubic'")
def resize_cubic():
    return single("Resize", ["image", "", "", "s"], {"s": np.array([1, 1, 8, 8])}, mode="cubic")


@case("is too large")
def pad_huge():
    return single("Pad", "image p", {"p": np.full(8, 2**40)})


@case("leave nothing")
def pad_that_crops_everything():
    return single("Pad", "image p", {"p": np.full(8, -9)})


@case("does not fit [1, 1, 4, 4]")
def add_of_another_shape():
    return single("Add", "image c", {"c": floats(5, 5)})


@case("do not fit")
def sum_of_other_shapes():
    return single("Sum", "image c", {"c": floats(5, 5)})


@case("do not fit")
def maximum_of_other_shapes():
    return single("Max", "image c", {"c": floats(5, 5)})


@case("a slope of shape [3, 1, 1] does not fit")
def prelu_of_other_channels():
    return single("PRelu", "image s", {"s": floats(3, 1, 1)})


@case("its min is -3.4e+38, too large to compute with")
def clip_by_a_huge_number():
    return single("Clip", "image c", {"c": np.float32(-3.4e38)})


@case("its min has shape [4]; expected one number")
def clip_by_several_numbers():
    return single("Clip", "image c", {"c": floats(4)})


@case("does not fit [1, 1, 4, 4]")
def transposed_conv_of_other_channels():
    return single("ConvTranspose", "image w", {"w": floats(2, 1, 2, 2)})


@case("entries, at most")
def transposed_conv_huge():
    return single("ConvTranspose", "image w", {"w": floats(1, 1, 2, 2)}, strides=[2**20, 2**20])


@case("axis 9 does not exist")
def squeeze_of_no_axis():
    return single("Squeeze", "image a", {"a": np.array([9])})


@case("only its first input may depend on the image")
def axes_that_depend_on_the_image():
    return single("ReduceSum", "image image")


@case("its first input must be the value that depends on the image")
def conv_of_a_constant():
    return single("Conv", "w image", {"w": floats(1, 1, 9, 9)})


@case("would give 1.1e+12 numbers")
def constant_huge():
    model = single("Add", "image c", {"s": np.array([2**20, 2**20])})
    model.graph.node.insert(0, node("ConstantOfShape", "s", "c"))
    return model


@case("would give 1.1e+12 numbers")
def range_huge():
    model = single("Add", "image c", {"a": np.array(0), "b": np.array(2**40), "s": np.array(1)})
    model.graph.node.insert(0, node("Cast", "q", "c", to=FLOAT))
    model.graph.node.insert(0, node("Range", "a b s", "q"))
    return model


def doubled(first: str) -> ModelProto:
    """A value that is joined to itself again and again."""
    nodes = [node("Concat", [f"{first}{i or ''}"] * 2, f"{first}{i + 1}", axis=0) for i in range(40)]
    nodes += [node("ReduceMean", f"{first}40", "m"), node("Add", "m image", "y"), node("Flatten", "y", "l")]
    return make_proto(nodes, {"c": floats(1, 4)} if first == "c" else {}, DIMS)


@case("numbers, but folded constants may have only")
def constants_that_grow():
    return doubled("c")


@case("entries, at most")
def values_that_grow():
    return doubled("image")


@case("entries in all")
def many_large_rearrangements():
    nodes = [node("Tile", "image r", "v0")]
    nodes += [node("Gather", f"v{i} k", f"v{i + 1}") for i in range(100)]
    weights = {"r": np.array([1, 1, 2**9, 2**9]), "k": np.array([0])}
    return make_proto(
        [*nodes, node("ReduceMax", "v100", "y"), node("Add", "y image", "z"), node("Flatten", "z", "l")], weights, DIMS
    )


@case("entries, at most")
def outer_sum():
    """Two values whose sum is far larger than each."""
    weights = {"a": np.array([2**16, 1]), "b": np.array([1, 2**16]), "r": np.array([1, 1, 2**6, 2**6])}
    nodes = [node("Tile", "image r", "t"), node("Reshape", "t a", "x"), node("Reshape", "t b", "y")]
    return make_proto([*nodes, node("Add", "x y", "z"), node("Flatten", "z", "l")], weights, DIMS)


# Files


def write_corpus(folder: Path) -> Iterator[tuple[Path, str]]:
    """Write all broken files into an empty folder; yields their paths and words of their refusal."""
    (folder.parent / "secret.bin").write_bytes(bytes(1000))
    (folder / "weights.bin").write_bytes(bytes(100))
    for name, (words, make) in MODELS.items():
        yield _write(folder, name, make().SerializeToString()), words
    whole = dense().SerializeToString()
    for length in (1, 2, 10, 40, len(whole) // 3, len(whole) // 2, len(whole) - 100, len(whole) - 1):
        yield _write(folder, f"cut_to_{length}", whole[:length]), ""
    yield _write(folder, "empty", b""), "is empty"
    yield _write(folder, "text", b"this is no model\n" * 20), "not an ONNX model"
    yield _write(folder, "json", json.dumps({"ir_version": 8, "graph": {}}).encode()), "not an ONNX model"
    yield _write(folder, "zeros", bytes(1000)), "not an ONNX model"
    yield _write(folder, "compressed", gzip.compress(whole)), "not an ONNX model"
    yield _write(folder, "archive", b"PK\x03\x04" + whole), "not an ONNX model"
    yield _write(folder, "doubled_bytes", whole + whole), ""
    generator = np.random.default_rng(1)
    for number in range(4):
        yield _write(folder, f"random_{number}", generator.bytes(1000)), "not an ONNX model"
    directory = folder / "folder.onnx"
    directory.mkdir()
    yield directory, "is a directory"
    yield folder / "missing.onnx", "no such file"
    pipe = folder / "pipe.onnx"
    os.mkfifo(pipe)
    yield pipe, "is not a regular file"
    linked = folder / "linked.bin"
    linked.symlink_to("../secret.bin")
    yield (
        _write(folder, "external_link", stored_outside(location="linked.bin").SerializeToString()),
        "outside the model",
    )


def _write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / f"{name}.onnx"
    path.write_bytes(content)
    return path
