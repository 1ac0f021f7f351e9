"""Refused models: the error is one line that names the file, the place and a remedy."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from steadygaze.errors import ModelError
from steadygaze.network.model import read_model

DIMS = [1, 1, 4, 4]


def refusal(path, **options):
    """Message of the ModelError that reading the file raises."""
    with pytest.raises(ModelError) as caught:
        read_model(path, **options)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 700
    assert path.name in message
    return message


def node(kind, inputs, output="y", **attributes):
    return helper.make_node(kind, inputs, [output], name="act3", **attributes)


@pytest.mark.parametrize(
    "kind,words",
    [
        ("Sigmoid", "node 'act3' is Sigmoid, which is not piecewise linear. Supported: Gemm, "),
        ("Softmax", "node 'act3' is Softmax, which is not piecewise linear"),
        ("HardSwish", "node 'act3' is HardSwish, which is not piecewise linear"),
        ("Floor", "node 'act3' is Floor, which is not continuous. Supported: "),
        ("IsNaN", "node 'act3' is IsNaN, which is not supported. Supported: "),
    ],
)
def test_unsupported_operators(save, kind, words):
    nodes = [node(kind, ["image"]), helper.make_node("Relu", ["y"], ["r"]), helper.make_node("Flatten", ["r"], ["l"])]
    message = refusal(save(nodes, {}, DIMS))
    assert message.startswith(f"small.onnx: {words}")
    assert message.endswith("Replace it, or verify the part before it.")


@pytest.mark.parametrize("kind", ["Mul", "MatMul", "Div"])
def test_products_of_two_values_that_depend_on_the_image(save, kind):
    nodes = [helper.make_node("Relu", ["image"], ["r"]), node(kind, ["image", "r"])]
    message = refusal(save([*nodes, helper.make_node("Flatten", ["y"], ["l"])], {}, DIMS))
    verb = "divides" if kind == "Div" else "multiplies"
    assert f"node 'act3' ({kind}): {verb} values that both depend on the image, which is not piecewise" in message


def test_the_second_output_of_a_pool(save):
    pool = helper.make_node("MaxPool", ["image"], ["y", "i"], name="pool", kernel_shape=[2, 2])
    nodes = [pool, helper.make_node("Cast", ["i"], ["f"], name="act3", to=TensorProto.FLOAT)]
    nodes = [*nodes, helper.make_node("Add", ["y", "f"], ["s"]), helper.make_node("Flatten", ["s"], ["l"])]
    assert "node 'act3' (Cast): reads output 2 of a MaxPool node" in refusal(save(nodes, {}, DIMS))


def test_a_node_without_a_name_is_named_by_its_output(save):
    nodes = [helper.make_node("Tanh", ["image"], ["t"]), helper.make_node("Flatten", ["t"], ["l"])]
    assert "node 't' is Tanh" in refusal(save(nodes, {}, DIMS))


def test_other_domains(save, proto, tmp_path):
    model = proto([helper.make_node("Magic", ["image"], ["l"], name="act3", domain="my.own")], {}, DIMS)
    model.opset_import.append(helper.make_opsetid("my.own", 1))
    path = tmp_path / "magic.onnx"
    path.write_bytes(model.SerializeToString())
    assert "node 'act3' is my.own.Magic, which is not supported" in refusal(path)


@pytest.mark.parametrize(
    "nodes,weights,words",
    [
        ([node("Div", ["c", "image"])], {"c": np.float32(1)}, "not piecewise linear"),
        ([node("Div", ["image", "c"])], {"c": np.float32(0)}, "divides by zero"),
        ([node("Reshape", ["image", "s"])], {"s": np.array([3, -1])}, "cannot reshape [1, 1, 4, 4] to [3, -1]"),
        ([node("Reshape", ["image", "s"])], {"s": np.array([-1, -1])}, "cannot reshape"),
        ([node("Reshape", ["image", "s"])], {"s": np.array([4, -4])}, "cannot reshape"),
        ([node("Reshape", ["image", "s"])], {"s": np.array([2**40])}, "cannot reshape"),
        ([node("Reshape", ["image", "s"], allowzero=1)], {"s": np.array([0, 16])}, "cannot reshape"),
        ([node("Reshape", ["image", "s"])], {"s": np.array([1, 1, 4, 4, 0])}, "cannot reshape"),
        ([node("Squeeze", ["image", "s"])], {"s": np.array([2])}, "do not all have length 1"),
        ([node("Squeeze", ["image", "s"])], {"s": np.array([9])}, "axis 9 does not exist"),
        ([node("Unsqueeze", ["image", "s"])], {"s": np.array([0, 0])}, "name one axis twice"),
        ([node("Transpose", ["image"], perm=[0, 1])], {}, "perm [0, 1] does not fit"),
        ([node("Pad", ["image", "p"])], {"p": np.full(8, 2**40)}, "is too large"),
        ([node("Pad", ["image", "p"])], {"p": np.full(8, -9)}, "leave nothing"),
        ([node("Pad", ["image", "p"], mode="reflect")], {"p": np.ones(8, int)}, "in mode 'reflect' exceed shape"),
        ([node("Add", ["image", "c"])], {"c": np.ones((5, 5), np.float32)}, "does not fit [1, 1, 4, 4]"),
        ([node("Conv", ["image", "w"])], {"w": np.ones((2, 3, 2, 2), np.float32)}, "does not fit [1, 1, 4, 4]"),
        ([node("Conv", ["image", "w"])], {"w": np.ones((2, 1, 9, 9), np.float32)}, "does not fit into [4, 4]"),
        ([node("Conv", ["image", "w"], strides=[0, 1])], {"w": np.ones((2, 1, 2, 2), np.float32)}, "must be positive"),
        ([node("Conv", ["image", "w"], pads=[2**40] * 4)], {"w": np.ones((2, 1, 2, 2), np.float32)}, "pads exceed"),
        ([node("Conv", ["image", "w"], group=0)], {"w": np.ones((2, 1, 2, 2), np.float32)}, "0 group(s)"),
        ([node("Conv", ["w", "image"])], {"w": np.ones((2, 1, 2, 2), np.float32)}, "its first input must be"),
        ([node("AveragePool", ["image"], kernel_shape=[9, 9])], {}, "does not fit into"),
        ([node("Cast", ["image"], to=TensorProto.INT64)], {}, "only casts between float types"),
        ([node("Dropout", ["image", "", "t"])], {"t": np.array(True)}, "training mode"),
        ([node("Gather", ["image", "i"])], {"i": np.array(7)}, "its index runs from 7 to 7, but axis 0 has length 1"),
        (
            [node("ConstantOfShape", ["s"], "c"), helper.make_node("Add", ["image", "c"], ["y"])],
            {"s": np.array([2**20, 2**20])},
            "would give 1.1e+12 numbers",
        ),
        (
            [node("Sqrt", ["c"], "root"), helper.make_node("Mul", ["image", "root"], ["y"])],
            {"c": np.float32(4)},
            "is Sqrt of constants",
        ),
    ],
)
def test_nodes_that_ask_for_something_else(save, nodes, weights, words):
    nodes = [*nodes, helper.make_node("Flatten", ["y"], ["l"], axis=0)]
    message = refusal(save(nodes, weights, DIMS))
    assert "node 'act3'" in message or "node 'y'" in message
    assert words in message


def test_batch_normalization_in_training_mode(save):
    weights = {name: np.ones(1, np.float32) for name in "sbmv"}
    nodes = [node("BatchNormalization", ["image", "s", "b", "m", "v"]), helper.make_node("Flatten", ["y"], ["l"])]
    nodes[0].output.extend(["m2", "v2"])
    nodes[0].attribute.append(helper.make_attribute("training_mode", 1))
    assert "training mode" in refusal(save(nodes, weights, DIMS))


def test_softmax_along_the_wrong_axis(save, dense):
    nodes, weights = dense()
    message = refusal(save([*nodes, helper.make_node("Softmax", ["logits"], ["p"], axis=0)], weights, DIMS))
    assert "not over all classes" in message


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_not_numbers(save, dense, bad):
    nodes, weights = dense()
    weights["w2"][1, 1] = bad
    assert "tensor 'w2' holds NaN or infinity" in refusal(save(nodes, weights, DIMS))


def damaged(name, dims, raw, kind=TensorProto.FLOAT):
    tensor = TensorProto(name=name, data_type=kind, raw_data=raw)
    tensor.dims.extend(dims)
    return tensor


@pytest.mark.parametrize(
    "dims,raw,words",
    [
        ([6, 16], bytes(8), "needs 384 bytes, but holds 8"),
        ([2**20, 2**20], bytes(8), "claims 1.1e+12 elements"),
        ([2**62, 2**62], bytes(8), "elements"),
        ([-6, 16], bytes(8), "negative dimension -6"),
    ],
)
def test_absurd_dimensions(save, dense, dims, raw, words):
    nodes, weights = dense()
    weights["w1"] = damaged("w1", dims, raw)
    assert words in refusal(save(nodes, weights, DIMS))


def test_numbers_that_do_not_fill_their_tensor(save, dense):
    nodes, weights = dense()
    tensor = TensorProto(name="w1", data_type=TensorProto.FLOAT, dims=[6, 16], float_data=[1.0, 2.0])
    assert "needs 96 numbers, but holds 2" in refusal(save(nodes, {**weights, "w1": tensor}, DIMS))


def test_weights_of_another_type(save, dense):
    nodes, weights = dense()
    weights["b1"] = damaged("b1", [6], bytes(48), TensorProto.COMPLEX64)
    assert "type complex64" in refusal(save(nodes, weights, DIMS))


def test_shapes_that_do_not_fit_together(save, dense):
    nodes, weights = dense()
    weights["w1"] = np.ones((6, 15), np.float32)
    assert "node 'fc1' (Gemm): a weight of shape [15, 6] does not fit [1, 16]" in refusal(save(nodes, weights, DIMS))


@pytest.mark.parametrize(
    "dims,words",
    [
        ([7, 1, 4, 4], "a fixed batch of 7"),
        ([16], "expected a batch of images"),
        ([1, 17], "neither a grey nor an RGB square"),
        ([1, 1, 1, 4, 4], "expected [1, C, H, W]"),
        ([1, 1, None, 4], "open dimensions"),
        ([0, 1, 4, 4], "has the dimension 0"),
        ([1, 1, -4, 4], "has the dimension -4"),
        ([1, 1, 2**40, 4], "has the dimension"),
    ],
)
def test_inputs_that_are_not_an_image(save, dense, dims, words):
    nodes, weights = dense()
    assert words in refusal(save(nodes, weights, dims))


def test_several_inputs_and_outputs(proto, dense, tmp_path):
    nodes, weights = dense()
    path = tmp_path / "two.onnx"
    model = proto(nodes, weights, DIMS)
    model.graph.input.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, [1]))
    path.write_bytes(model.SerializeToString())
    assert "has 2 inputs ('image', 'more')" in refusal(path)
    model = proto(nodes, weights, DIMS)
    model.graph.output.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, [1, 6]))
    path.write_bytes(model.SerializeToString())
    assert "has 2 outputs ('logits', 'h')" in refusal(path)


def test_an_initializer_that_is_also_an_input_is_no_second_image(proto, dense, tmp_path):
    nodes, weights = dense()
    model = proto(nodes, weights, DIMS)
    model.graph.input.append(helper.make_tensor_value_info("w1", TensorProto.FLOAT, [6, 16]))
    path = tmp_path / "old.onnx"
    path.write_bytes(model.SerializeToString())
    assert read_model(path).classes == 3


def test_outputs_that_are_not_logits(save):
    message = refusal(save([helper.make_node("Relu", ["image"], ["l"])], {}, DIMS))
    assert "the output has shape [1, 1, 4, 4]; expected one row of logits" in message
    constant = [helper.make_node("Identity", ["c"], ["l"])]
    message = refusal(save(constant, {"c": np.ones((1, 3), np.float32)}, DIMS))
    assert "does not depend on the image" in message


def test_integer_inputs(save):
    nodes = [helper.make_node("Cast", ["image"], ["f"], to=1), helper.make_node("Flatten", ["f"], ["l"])]
    assert "is not of a float type" in refusal(save(nodes, {}, DIMS, elem=TensorProto.UINT8))


@pytest.mark.parametrize("opset", [8, 999])
def test_opsets(save, dense, opset):
    nodes, weights = dense()
    assert f"has opset {opset}; supported: 9 to" in refusal(save(nodes, weights, DIMS, opset=opset))


def test_files_that_are_no_models(tmp_path, save, dense):
    empty = tmp_path / "empty.onnx"
    empty.write_bytes(b"")
    assert "is empty" in refusal(empty)
    text = tmp_path / "text.onnx"
    text.write_text("this is no model\n" * 20)
    assert "not an ONNX model" in refusal(text)
    assert "is a directory" in refusal(tmp_path)
    assert "no such file" in refusal(tmp_path / "missing.onnx")
    whole = save(*dense(), DIMS).read_bytes()
    cut = tmp_path / "cut.onnx"
    for length in (1, 10, len(whole) // 2, len(whole) - 1):
        cut.write_bytes(whole[:length])
        refusal(cut)


def test_damaged_bytes_never_give_anything_but_one_line(tmp_path, save, dense):
    """Each damaged file is refused in one line, or is another valid model."""
    whole = bytearray(save(*dense(), DIMS).read_bytes())
    path = tmp_path / "flipped.onnx"
    generator = np.random.default_rng(3)
    refused = 0
    for _ in range(150):
        changed = bytearray(whole)
        for place in generator.integers(0, len(whole), 3):
            changed[place] = generator.integers(256)
        path.write_bytes(changed)
        try:
            read_model(path)
        except ModelError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 30


def test_a_graph_that_is_not_sorted(save, dense):
    nodes, weights = dense()
    nodes[1], nodes[2] = nodes[2], nodes[1]
    assert "not a valid ONNX model" in refusal(save(nodes, weights, DIMS))


def test_sparse_initializers(proto, dense, tmp_path):
    model = proto(*dense(), DIMS)
    values = numpy_helper.from_array(np.ones(1, np.float32), "sparse")
    indices = numpy_helper.from_array(np.zeros(1, np.int64), "where")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))
    path = tmp_path / "sparse.onnx"
    path.write_bytes(model.SerializeToString())
    assert "sparse initializers are not supported" in refusal(path)


def test_a_model_without_a_graph(tmp_path):
    path = tmp_path / "nothing.onnx"
    path.write_bytes(onnx.ModelProto(ir_version=8).SerializeToString())
    assert "not an ONNX model" in refusal(path)


def test_names_that_are_not_plain_text(save, dense, tmp_path):
    nodes, weights = dense()
    nodes[2] = helper.make_node("Sigmoid", ["h"], ["a"], name="two\nlines")
    assert "node 'two lines' is Sigmoid" in refusal(save(nodes, weights, DIMS))
    nodes[2] = helper.make_node("Relu", ["h"], ["a"], name="softmax-name")
    softmax = helper.make_node("Softmax", ["logits"], ["p"], name="PLACEHOLDER")
    content = save([*nodes, softmax], weights, DIMS).read_bytes()
    path = tmp_path / "bytes.onnx"
    path.write_bytes(content.replace(b"PLACEHOLDER", b"PLACE\xc9\xffLDER"))
    assert "not text" in refusal(path)


@pytest.mark.parametrize("is_archive", [True, False])
def test_a_file_of_torch(tmp_path, is_archive):
    torch = pytest.importorskip("torch")
    path = tmp_path / "net.pt"
    torch.save(torch.nn.Linear(4, 2), path, _use_new_zipfile_serialization=is_archive)
    assert "looks like a file written by torch.save" in refusal(path)


@pytest.mark.parametrize("opset", [9, 13])
def test_batch_normalisation_with_outputs_of_training_is_refused_before_opset_14(save, opset):
    weights = {name: np.ones(1, np.float32) for name in ("s", "b", "m", "v")}
    outputs = ["y", "m2", "v2", "m3", "v3"]
    nodes = [helper.make_node("BatchNormalization", ["image", *weights], outputs)]
    nodes += [helper.make_node("Flatten", ["y"], ["logits"])]
    assert "is in training mode" in refusal(save(nodes, weights, DIMS, opset=opset))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("Greater", "compares or chooses values; a function made of it may jump. If it does not, write it with Relu"),
        ("RandomUniform", "draws other numbers in every run"),
        ("Sqrt", "attention layers, for example, are not piecewise linear"),
    ],
)
def test_reasons_name_what_helps(save, kind, words):
    inputs, more = {"Greater": (["image", "c"], {}), "RandomUniform": ([], {"shape": [1]}), "Sqrt": (["c"], {})}[kind]
    nodes = [helper.make_node(kind, inputs, ["v"], **more), helper.make_node("Mul", ["image", "v"], ["x"])]
    nodes += [helper.make_node("Flatten", ["x"], ["logits"])]
    if kind == "Greater":
        nodes.insert(1, helper.make_node("Cast", ["v"], ["v1"], to=1))
        nodes[2].input[1] = "v1"
    assert words in refusal(save(nodes, {"c": np.ones(1, np.float32)}, DIMS))


def test_control_characters_of_names_do_not_reach_the_terminal(save):
    nodes = [helper.make_node("Tanh", ["image"], ["x"], name="evil\n\x1b[31mred")]
    found = refusal(save([*nodes, helper.make_node("Flatten", ["x"], ["logits"])], {}, DIMS))
    assert "red' is Tanh" in found and found.isprintable()
