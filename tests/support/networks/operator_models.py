"""Compares graphs of small ONNX models with onnxruntime, node by node with their own affine maps."""

from pathlib import Path

import numpy as np
import onnxruntime
from onnx import ModelProto, helper

from steadygaze.network.from_onnx import build_graph
from steadygaze.network.graph import Graph
from steadygaze.network.layout import ReadOptions, choose_layout
from steadygaze.network.onnx_file import OnnxFile, input_dims, keep_needed
from steadygaze.network.operators import Linear
from support.networks.onnx_files import NUMBERS, OPTIONS, make_proto


def node(kind, inputs, outputs="y", **attributes):
    """A node named after its operator and its first output."""
    listed = outputs.split() if isinstance(outputs, str) else list(outputs)
    return helper.make_node(kind, inputs.split() if isinstance(inputs, str) else inputs, listed, **attributes)


def floats(*shape, seed=1):
    """Normal numbers in float32."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def flat_model(nodes, weights, dims, *, opset=17, **options) -> ModelProto:
    """A model whose value 'y' becomes a row of logits."""
    return make_proto([*nodes, node("Flatten", "y", "logits", axis=0)], weights, dims, opset=opset, **options)


def graph_of(proto: ModelProto, *, image_shape=None, output=None) -> Graph:
    """The graph of a model in memory, without the checks of the file."""
    opset = next(entry.version for entry in proto.opset_import if not entry.domain)
    kept = ModelProto()
    kept.CopyFrom(proto)
    file = OnnxFile(Path("model.onnx"), kept, "", opset, output or proto.graph.output[0].name, is_chosen=False)
    keep_needed(kept, file.output)
    layout = choose_layout(input_dims(file)[1], image_shape, "model.onnx")
    return build_graph(file, layout, ReadOptions().preprocessing(layout.image_shape[0]))


def run_proto(proto: ModelProto, inputs: np.ndarray) -> np.ndarray:
    """Outputs (B, n) of a model for inputs (B, *dims), one image at a time, by onnxruntime alone."""
    session = onnxruntime.InferenceSession(proto.SerializeToString(), OPTIONS, providers=["CPUExecutionProvider"])
    first = session.get_inputs()[0]
    images = inputs.astype(NUMBERS[first.type])
    return np.stack([session.run(None, {first.name: one[None]})[0].ravel() for one in images]).astype(float)


def check_model(proto: ModelProto, dims, *, images=3, seed=2, values=None) -> Graph:
    """Compare the graph with onnxruntime, and every linear operator with its matrix; return the graph."""
    graph = graph_of(proto, image_shape=dims[1:])
    pixels = np.random.default_rng(seed).normal(size=(images, *dims[1:])) if values is None else values
    pixels = pixels.astype(np.float32).astype(np.float64)
    expected = run_proto(proto, pixels)
    ours = graph.logits(pixels)
    if expected.shape[1] == 1:
        expected = np.hstack([np.zeros_like(expected), expected])
    np.testing.assert_allclose(ours, expected, rtol=0, atol=3e-6 * (np.abs(expected).max(initial=0.0) + 1e-3))
    check_matrices(graph, pixels)
    return graph


def check_matrices(graph: Graph, pixels: np.ndarray) -> None:
    """Compare `apply` and `affine` of every linear operator on the values of the graph."""
    values = [pixels]
    for entry in graph.nodes:
        inputs = [values[number] for number in entry.inputs]
        values.append(entry.operator.apply(*inputs))
        assert values[-1].shape == (len(pixels), *entry.shape)
        if isinstance(entry.operator, Linear):
            matrix, bias = entry.operator.affine(inputs[0].shape[1:])
            product = (matrix @ inputs[0].reshape(len(pixels), -1).T).T + bias
            flat = values[-1].reshape(len(pixels), -1)
            np.testing.assert_allclose(product, flat, rtol=0, atol=1e-12 * (np.abs(flat).max(initial=0.0) + 1.0))
