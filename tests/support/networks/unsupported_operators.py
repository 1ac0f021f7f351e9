"""Models with operators that are not piecewise linear, or not supported."""

import numpy as np
from onnx import GraphProto, TensorProto, helper

from support.networks.broken_models import DIMS, FLOAT, INT64, case, dense, single
from support.networks.onnx_files import make_proto
from support.networks.operator_models import floats, node


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
