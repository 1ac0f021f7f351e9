"""Small ONNX models made by hand, and the plain onnxruntime that they are compared with."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

OPTIONS = onnxruntime.SessionOptions()
OPTIONS.intra_op_num_threads = 1
OPTIONS.log_severity_level = 4


def _proto(nodes, weights, dims, *, opset=17, classes=None, elem=TensorProto.FLOAT):
    """Model with the input 'image' of these dimensions; its output is that of the last node."""
    ir = {True: 8, False: 10}[opset <= 18]
    last = nodes[-1].output[0]
    return helper.make_model(
        helper.make_graph(
            nodes,
            "small",
            [helper.make_tensor_value_info("image", elem, dims)],
            [helper.make_tensor_value_info(last, elem, classes)],
            [
                w if isinstance(w, TensorProto) else numpy_helper.from_array(np.asarray(w), name)
                for name, w in weights.items()
            ],
        ),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=ir,
    )


@pytest.fixture
def proto():
    return _proto


@pytest.fixture
def save(tmp_path):
    """Write a model made of nodes and weights to a file and return its path."""

    def save(nodes, weights, dims, *, name="small.onnx", **options):
        path = tmp_path / name
        path.write_bytes(_proto(nodes, weights, dims, **options).SerializeToString())
        return path

    return save


@pytest.fixture
def run():
    """Outputs (B, n) of a model file for inputs (B, *dims), one image at a time, by onnxruntime alone."""

    def run(path, inputs):
        session = onnxruntime.InferenceSession(str(path), OPTIONS, providers=["CPUExecutionProvider"])
        name = session.get_inputs()[0].name
        kind = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
        dtype = kind[session.get_inputs()[0].type]
        return np.stack([session.run(None, {name: one[None].astype(dtype)})[0].ravel() for one in inputs]).astype(float)

    return run


@pytest.fixture
def dense():
    """Save a classifier Flatten, Gemm, Relu, Gemm of images (1, 4, 4) with three classes; random weights by seed."""
    generator = np.random.default_rng(5)

    def nodes_and_weights(pixels=16, hidden=6, classes=3):
        nodes = [
            helper.make_node("Flatten", ["image"], ["flat"], name="flatten"),
            helper.make_node("Gemm", ["flat", "w1", "b1"], ["h"], name="fc1", transB=1),
            helper.make_node("Relu", ["h"], ["a"], name="relu1"),
            helper.make_node("Gemm", ["a", "w2", "b2"], ["logits"], name="fc2", transB=1),
        ]
        shapes = {"w1": (hidden, pixels), "b1": (hidden,), "w2": (classes, hidden), "b2": (classes,)}
        return nodes, {n: generator.normal(size=s).astype(np.float32) for n, s in shapes.items()}

    return nodes_and_weights


@pytest.fixture
def newest_opset():
    return onnx.defs.onnx_opset_version()
