"""A model with several outputs: --output chooses one, is stored, and is part of the question."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

import steadygaze
from steadygaze.errors import ModelError


@pytest.fixture
def two_heads(tmp_path):
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(16, 3)).astype(np.float32), rng.normal(size=(16, 2)).astype(np.float32)]
    nodes = [helper.make_node("Flatten", ["x"], ["f"])]
    nodes += [helper.make_node("MatMul", ["f", f"w{n}"], [f"head {n}"]) for n in range(2)]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4, 4])],
        [helper.make_tensor_value_info(f"head {n}", TensorProto.FLOAT, None) for n in range(2)],
        [numpy_helper.from_array(weight, f"w{n}") for n, weight in enumerate(weights)],
    )
    path = tmp_path / "heads.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.save(tmp_path / "image.npy", rng.random((1, 4, 4)))
    return path


def test_several_outputs_need_the_option(two_heads):
    with pytest.raises(ModelError, match=r"'head 0', 'head 1'.*--output"):
        steadygaze.verify(two_heads, two_heads.parent / "image.npy", "brightness:0..0.1")


def test_the_chosen_output_is_verified_stored_and_reloaded(two_heads, run, place):
    image = two_heads.parent / "image.npy"
    words = ["verify", str(two_heads), "--image", str(image), "--perturb", "brightness:0..0.1", "--out", "found"]
    assert run(*words, "--output", "head 1", "--json").json["model"]["classes"] == 2
    again = steadygaze.load(place / "found")
    assert again.question.model.output == "head 1"
    assert "--output=head 1" in again.question.words(again.question.threshold, "image.npy")
    other = steadygaze.verify(two_heads, image, "brightness:0..0.1", output="head 0")
    assert other.question.model.classes == 3


def test_an_unknown_output_is_named(two_heads):
    with pytest.raises(ModelError, match="'head 0', 'head 1'"):
        steadygaze.verify(two_heads, two_heads.parent / "image.npy", "brightness:0..0.1", output="tail")
