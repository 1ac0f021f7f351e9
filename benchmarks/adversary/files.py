"""Writes dense networks as ONNX files (float32 or float64; Flatten, Gemm, Relu, optional BatchNormalization)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from onnx import checker, helper, numpy_helper, save

Norm = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]
"""Scale, shift, mean, variance and epsilon of a BatchNormalization."""


def write_onnx(
    path: Path,
    layers: Sequence[tuple[np.ndarray, np.ndarray]],
    shape: tuple[int, ...],
    norms: Mapping[int, Norm] | None = None,
    *,
    dtype: type[np.floating] = np.float32,
) -> Path:
    """Write a network for images of shape (C, H, W); norms[k] follows the product of layer k, before its ReLU."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [helper.make_node("Flatten", ["image"], ["flat"], axis=1)]
    tensors, last = [], "flat"
    for number, (weight, bias) in enumerate(layers):
        for name, part in ((f"W{number}", weight), (f"b{number}", bias)):
            tensors.append(numpy_helper.from_array(np.ascontiguousarray(part, dtype=dtype), name))
        is_last = number == len(layers) - 1
        out = "logits" if is_last else f"sum{number}"
        nodes.append(helper.make_node("Gemm", [last, f"W{number}", f"b{number}"], [out], transB=1))
        if norms and number in norms:
            *parts, epsilon = norms[number]
            names = [f"{kind}{number}" for kind in ("scale", "shift", "mean", "var")]
            tensors += [
                numpy_helper.from_array(np.asarray(part, dtype=dtype), name)
                for part, name in zip(parts, names, strict=True)
            ]
            nodes.append(helper.make_node("BatchNormalization", [out, *names], [f"norm{number}"], epsilon=epsilon))
            out = f"norm{number}"
        if not is_last:
            nodes.append(helper.make_node("Relu", [out], [f"relu{number}"]))
            last = f"relu{number}"
    image = helper.make_tensor_value_info("image", kind, [1, *shape])
    logits = helper.make_tensor_value_info("logits", kind, [1, len(layers[-1][1])])
    graph = helper.make_graph(nodes, "planted", [image], [logits], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model)
    save(model, str(path))
    return path
