"""Models whose nodes, names, inputs, outputs or opsets do not fit together."""

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from support.networks.broken_models import DIMS, FLOAT, MANY, case, dense, single
from support.networks.onnx_files import make_proto
from support.networks.operator_models import floats, node


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


@case("has 2 outputs ('logits', 'h'); expected one, the logits; choose one with --output NAME")
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


@case("has 5184 logits; at most 4096 are supported")
def output_of_many_classes():
    return make_proto([node("Flatten", "image", "l")], {}, [1, 1, 72, 72])


@case("has no ONNX opset")
def no_opset():
    model = dense()
    del model.opset_import[:]
    return model


@case("has opset 8; supported: 9 to")
def old_opset():
    model = dense()
    model.opset_import[0].version = 8
    return model


@case("has opset 999; supported: 9 to")
def opset_of_the_future():
    model = dense()
    model.opset_import[0].version = 999
    return model


@case("has opset -1; supported: 9 to")
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


@case("its 10,001 layers carry the values of branches 5e+07 times past a layer")
def many_branches():
    return chain("Abs", "Flatten")


@case("its 10,001 layers carry the values of branches")
def many_leaks():
    return chain("LeakyRelu", "Flatten")


@case("is Tanh, which is not piecewise linear")
def many_foldings():
    nodes = [node("Add", f"c{i} one", f"c{i + 1}") for i in range(MANY)]
    nodes += [node("Add", f"image c{MANY}", "s"), node("Tanh", "s", "t"), node("Flatten", "t", "l")]
    return make_proto(nodes, {"c0": np.float32(0), "one": np.float32(1)}, DIMS)
