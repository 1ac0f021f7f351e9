"""Writes a trained network as an ONNX file (opset 13, float32), node by node, without torch's exporter.

The bytes depend on the weights alone, so that the hash in the manifest says whether the weights are the same.
"""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from layouts import CLASSES, KERNEL, SIDE, Layout
from onnx import TensorProto, helper, numpy_helper

OPSET = 13
IR_VERSION = 8  # the oldest format that opset 13 files are commonly read as

Weights = list[tuple[np.ndarray, np.ndarray]]


def build(name: str, layout: Layout, weights: Weights) -> onnx.ModelProto:
    """Return the ONNX model of a layout, weights given as (matrix or kernel, bias) in layer order."""
    nodes, tensors, value = [], [], "image"
    convolutions, dense = len(layout.channels), len(layout.hidden) + 1
    for layer, (matrix, bias) in enumerate(weights):
        is_conv = layer < convolutions
        label = f"conv{layer + 1}" if is_conv else f"fc{layer - convolutions + 1}"
        if layer == convolutions:
            nodes.append(helper.make_node("Flatten", [value], ["flat"], name="flatten", axis=1))
            value = "flat"
        tensors.append(numpy_helper.from_array(np.ascontiguousarray(matrix, np.float32), f"{label}.weight"))
        tensors.append(numpy_helper.from_array(np.ascontiguousarray(bias, np.float32), f"{label}.bias"))
        is_last = layer == convolutions + dense - 1
        out = "logits" if is_last else f"{label}.out"
        inputs = [value, f"{label}.weight", f"{label}.bias"]
        if is_conv:
            nodes.append(helper.make_node("Conv", inputs, [out], name=label, kernel_shape=[KERNEL, KERNEL]))
        else:
            nodes.append(helper.make_node("Gemm", inputs, [out], name=label, transB=1))
        value = out
        if not is_last:
            value = f"relu{layer + 1}.out"
            nodes.append(helper.make_node("Relu", [out], [value], name=f"relu{layer + 1}"))
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, SIDE, SIDE])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", CLASSES])],
        tensors,
    )
    model = helper.make_model(
        graph, producer_name="steadygaze", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )
    onnx.checker.check_model(model)
    return model


def logits(path: Path, images: np.ndarray) -> np.ndarray:
    """Return the logits (N, 10) that onnxruntime gives for images (N, 28, 28) uint8."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    pixels = (images.astype(np.float32) / 255).reshape(-1, 1, SIDE, SIDE)
    parts = [session.run(None, {"image": pixels[i : i + 1000]})[0] for i in range(0, len(pixels), 1000)]
    return np.concatenate(parts)


def accuracy(path: Path, images: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of images (N, 28, 28) uint8 that the file classifies as labelled."""
    return float((logits(path, images).argmax(axis=1) == labels).mean())
