"""Makes, saves and runs small ONNX models."""

import numpy as np
import onnx
import pytest
from onnx import helper

from support.networks.onnx_files import make_proto, run_file


@pytest.fixture
def proto():
    return make_proto


@pytest.fixture
def save(tmp_path):
    """Write a model made of nodes and weights to a file and return its path."""

    def save(nodes, weights, dims, *, name="small.onnx", **options):
        path = tmp_path / name
        path.write_bytes(make_proto(nodes, weights, dims, **options).SerializeToString())
        return path

    return save


@pytest.fixture
def run():
    return run_file


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
