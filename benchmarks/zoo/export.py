"""Writes a trained network as an ONNX file (opset 13, float32), node by node, without torch's exporter.

The bytes depend on the weights alone, so equal hashes in the manifest mean equal weights.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from layouts import CLASSES, KERNEL, SIDE, Conv, Layout, MaxPool, Residual, Shape, has_projection
from onnx import TensorProto, helper, numpy_helper

OPSET = 13
IR_VERSION = 8  # the oldest format that opset 13 files are commonly read as

Weights = list[tuple[np.ndarray, np.ndarray]]


class _Writer:
    """Nodes and tensors of a graph; every method adds a node and returns the name of its output."""

    def __init__(self, weights: Weights) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self._weights = iter(weights)
        self._count: Counter[str] = Counter()

    def _name(self, kind: str) -> str:
        self._count[kind] += 1
        return f"{kind}{self._count[kind]}"

    def _add(self, operator: str, name: str, inputs: list[str], out: str | None = None, **attributes: Any) -> str:
        out = out or f"{name}.out"
        self.nodes.append(helper.make_node(operator, inputs, [out], name=name, **attributes))
        return out

    def _parameters(self, name: str) -> list[str]:
        """Names of the next weight and bias, for the layer of this name."""
        names = [f"{name}.weight", f"{name}.bias"]
        for tensor, values in zip(names, next(self._weights), strict=True):
            self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(values, np.float32), tensor))
        return names

    def conv(self, value: str, kernel: int, stride: int = 1, padding: int = 0) -> str:
        name, attributes = self._name("conv"), {"kernel_shape": [kernel, kernel]}
        if stride > 1:
            attributes["strides"] = [stride, stride]
        if padding:
            attributes["pads"] = [padding] * 4
        return self._add("Conv", name, [value, *self._parameters(name)], **attributes)

    def dense(self, value: str, out: str | None = None) -> str:
        name = self._name("fc")
        return self._add("Gemm", name, [value, *self._parameters(name)], out, transB=1)

    def relu(self, value: str) -> str:
        return self._add("Relu", self._name("relu"), [value])

    def pool(self, value: str, size: int) -> str:
        return self._add("MaxPool", self._name("pool"), [value], kernel_shape=[size, size], strides=[size, size])

    def residual(self, value: str, layer: Residual, shape: Shape) -> str:
        middle = self.relu(self.conv(value, KERNEL, layer.stride, 1))
        branch = self.conv(middle, KERNEL, 1, 1)
        shortcut = self.conv(value, 1, layer.stride) if has_projection(layer, shape) else value
        return self.relu(self._add("Add", self._name("add"), [branch, shortcut]))

    def flatten(self, value: str) -> str:
        return self._add("Flatten", "flatten", [value], "flat", axis=1)


def build(name: str, layout: Layout, weights: Weights) -> onnx.ModelProto:
    """Return the ONNX model of a layout; weights are (matrix or kernel, bias) in the order in which layers use them."""
    writer, value = _Writer(weights), "image"
    for layer, shape in zip(layout.spatial, layout.shapes, strict=False):
        if isinstance(layer, Conv):
            value = writer.relu(writer.conv(value, layer.kernel, layer.stride, layer.padding))
        elif isinstance(layer, MaxPool):
            value = writer.pool(value, layer.size)
        else:
            value = writer.residual(value, layer, shape)
    value = writer.flatten(value)
    for _ in layout.hidden:
        value = writer.relu(writer.dense(value))
    writer.dense(value, "logits")
    graph = helper.make_graph(
        writer.nodes,
        name,
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", layout.colours, SIDE, SIDE])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", CLASSES])],
        writer.tensors,
    )
    model = helper.make_model(
        graph, producer_name="steadygaze", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )
    onnx.checker.check_model(model)
    return model


def as_input(images: np.ndarray) -> np.ndarray:
    """Return images (N, 28, 28) or (N, 28, 28, 3) uint8 as input of a network: (N, C, 28, 28) float32 in [0,1]."""
    layers = images[:, None] if images.ndim == 3 else np.moveaxis(images, 3, 1)
    return np.ascontiguousarray(layers, np.float32) / np.float32(255)


def logits(path: Path, images: np.ndarray) -> np.ndarray:
    """Return the logits (N, 10) that onnxruntime gives for images (N, 28, 28) or (N, 28, 28, 3) uint8."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    parts = [session.run(None, {"image": as_input(images[i : i + 1000])})[0] for i in range(0, len(images), 1000)]
    return np.concatenate(parts)


def accuracy(path: Path, images: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of images (N, 28, 28) or (N, 28, 28, 3) uint8 that the file classifies correctly."""
    return float((logits(path, images).argmax(axis=1) == labels).mean())
