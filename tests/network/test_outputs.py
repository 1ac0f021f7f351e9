"""The output of a model: one of several, a final softmax or sigmoid, and a single logit as a binary classifier."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from steadygaze.errors import ModelError
from steadygaze.network.model import check_agreement, read_model
from support.networks.onnx_files import run_file
from support.networks.operator_models import node

DIMS = [1, 1, 4, 4]
IMAGES = np.random.default_rng(8).random((20, 1, 4, 4))


def write(tmp_path, model):
    path = tmp_path / "several.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def two_heads(proto, dense, tmp_path):
    """Outputs 'logits' (three classes) and 'head' (six), and a Softmax after each."""
    nodes, weights = dense()
    nodes += [node("Softmax", "logits", "p"), node("Identity", "a", "head"), node("Softmax", "head", "q")]
    model = proto(nodes, weights, DIMS)
    del model.graph.output[:]
    for name in ("logits", "head", "p", "q"):
        model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    return write(tmp_path, model)


def test_several_outputs_need_a_choice(two_heads):
    message = r"has 4 outputs \('logits', 'head', 'p', 'q'\); expected one, the logits; choose one with --output NAME"
    with pytest.raises(ModelError, match=message):
        read_model(two_heads)
    with pytest.raises(ModelError, match="has no output 'nothing'; its outputs are: 'logits', 'head', 'p', 'q'"):
        read_model(two_heads, output="nothing")


@pytest.mark.parametrize("name,classes,is_dropped", [("logits", 3, 0), ("head", 6, 0), ("p", 3, 1), ("q", 6, 1)])
def test_the_chosen_output_is_read_and_replayed(two_heads, name, classes, is_dropped):
    model = read_model(two_heads, output=name)
    assert model.classes == classes
    assert sum("final Softmax dropped" in note for note in model.notes) == is_dropped
    np.testing.assert_allclose(model.graph.logits(IMAGES), model.replay.logits(IMAGES), atol=1e-5)
    check_agreement(model, IMAGES[0])


def test_models_of_different_outputs_are_different(two_heads):
    assert read_model(two_heads, output="head").classes != read_model(two_heads, output="logits").classes
    assert read_model(two_heads, output="head") is read_model(two_heads, output="head")


def test_a_chosen_output_of_a_file_with_one(save, dense):
    assert read_model(save(*dense(), DIMS), output="logits").classes == 3


def test_a_final_sigmoid_over_several_classes_keeps_their_order(save, dense):
    nodes, weights = dense()
    path = save([*nodes, node("Sigmoid", "logits", "p")], weights, DIMS)
    model = read_model(path)
    assert model.classes == 3
    assert "final Sigmoid dropped: labels and gradients are those of the logits before it" in model.notes
    labels = run_file(path, IMAGES).argmax(axis=1)
    assert (model.graph.logits(IMAGES).argmax(axis=1) == labels).all()
    assert (model.replay.logits(IMAGES).argmax(axis=1) == labels).all()


@pytest.mark.parametrize("has_sigmoid", [False, True])
@pytest.mark.parametrize("shape", [None, [1], [1, 1]])
def test_a_single_logit_is_a_binary_classifier(save, dense, has_sigmoid, shape):
    nodes, weights = dense(classes=1)
    hidden = np.maximum(IMAGES.reshape(-1, 16) @ weights["w1"].T + weights["b1"], 0.0)
    weights["b2"][0] = -np.median(hidden @ weights["w2"].T)
    last = "logits"
    if has_sigmoid:
        nodes, last = [*nodes, node("Sigmoid", last, "p")], "p"
    if shape is not None:
        nodes, weights = [*nodes, node("Reshape", [last, "shape"], "out")], {**weights, "shape": np.array(shape)}
    path = save(nodes, weights, DIMS)
    model = read_model(path)
    theirs = run_file(path, IMAGES)[:, 0]
    expected = theirs > (0.5 if has_sigmoid else 0.0)
    assert 0 < expected.sum() < len(IMAGES), "both classes occur"
    assert model.classes == 2
    for logits in (model.graph.logits(IMAGES), model.replay.logits(IMAGES)):
        assert logits.shape == (len(IMAGES), 2) and not logits[:, 0].any()
        assert (logits.argmax(axis=1) == expected).all()
    assert model.replay.logits(IMAGES[:0]).shape == (0, 2)
    assert any(note.startswith("single output: class 1 where the logit is above 0") for note in model.notes)
    assert any("final Sigmoid dropped" in note for note in model.notes) == has_sigmoid
    check_agreement(model, IMAGES[0])


def test_a_tie_of_a_binary_classifier_is_class_0(save):
    nodes = [node("Flatten", "image", "f"), node("MatMul", "f w", "l")]
    model = read_model(save(nodes, {"w": np.array([[1.0], [-1.0]], np.float32)}, [1, 1, 1, 2]))
    ties = np.array([[[[0.25, 0.25]]]])
    assert model.graph.logits(ties).argmax() == model.replay.logits(ties).argmax() == 0


def test_a_softmax_of_one_class_is_refused(save, dense):
    nodes, weights = dense(classes=1)
    with pytest.raises(ModelError, match="has a single class, so its result is constant"):
        read_model(save([*nodes, node("Softmax", "logits", "p")], weights, DIMS))


def test_nodes_that_only_unused_outputs_need_are_left_out(save, dense):
    """A Split with an unused second part, and a layer whose shape alone is used."""
    nodes, weights = dense()
    nodes = [
        *nodes[:-1],
        node("Split", "a", "first second", axis=1),
        node("Gemm", "first w2", "big"),
        node("Shape", "big", "s"),
        node("Gemm", "first w2 b2", "z"),
        node("Reshape", "z s", "l"),
    ]
    weights["w2"] = np.ones((3, 3), np.float32)
    model = read_model(save(nodes, weights, DIMS))
    names = [entry.name for entry in model.graph.nodes]
    assert "big" not in names and names.count("first") == 1
    np.testing.assert_allclose(model.graph.logits(IMAGES), model.replay.logits(IMAGES), atol=1e-5)


def test_nodes_that_the_output_does_not_need_are_neither_read_nor_run(proto, dense, tmp_path):
    """A node that would crash onnxruntime, a weight that is NaN, an initializer listed as input, a Tanh."""
    nodes, weights = dense()
    last = nodes.pop()
    nodes += [node("Sum", ["h", "", "h"], "crash"), node("Tanh", "h", "t"), node("Add", "t bad", "u")]
    model = proto([*nodes, last], {**weights, "bad": np.array([np.nan], np.float32)}, DIMS)
    model.graph.input.append(helper.make_tensor_value_info("bad", TensorProto.FLOAT, [1]))
    read = read_model(write(tmp_path, model))
    np.testing.assert_allclose(read.graph.logits(IMAGES), read.replay.logits(IMAGES), atol=1e-5)


def test_a_double_model_that_onnxruntime_cannot_run(save):
    """onnxruntime has no kernel for a resize of doubles."""
    nodes = [node("Resize", ["image", "", "s"], "r", mode="nearest"), node("Flatten", "r", "l")]
    path = save(nodes, {"s": np.array([1, 1, 2, 2], np.float32)}, DIMS, elem=TensorProto.DOUBLE)
    with pytest.raises(ModelError, match=r"onnxruntime cannot load it .*; export the model in float32$"):
        read_model(path)
