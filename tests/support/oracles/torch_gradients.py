"""Torch networks in float64 from model files and chains, and autograd's gradients of their logits."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from steadygaze.network.graph import Chain

torch = pytest.importorskip("torch")


def from_onnx(path: Path) -> "torch.nn.Sequential":
    """A network of Conv, Gemm, Relu and Flatten in a row, straight from the file's tensors."""
    graph = onnx.load(path).graph
    tensors = {
        tensor.name: torch.from_numpy(numpy_helper.to_array(tensor).copy()).double() for tensor in graph.initializer
    }
    layers: list[torch.nn.Module] = []
    for node in graph.node:
        weights = [tensors[name] for name in node.input if name in tensors]
        if node.op_type == "Conv":
            layers.append(_filled(torch.nn.Conv2d(weights[0].shape[1], weights[0].shape[0], 3), *weights))
        elif node.op_type == "Gemm":
            layers.append(_filled(torch.nn.Linear(*weights[0].shape[::-1]), *weights))
        else:
            layers.append({"Relu": torch.nn.ReLU, "Flatten": torch.nn.Flatten}[node.op_type]())
    return torch.nn.Sequential(*layers)


def from_chain(chain: Chain) -> "torch.nn.Sequential":
    """A network that takes images (B, C, H, W), from the chain's matrices."""
    layers: list[torch.nn.Module] = [torch.nn.Flatten()]
    for affine in chain.maps:
        matrix = affine.matrix if isinstance(affine.matrix, np.ndarray) else affine.matrix.toarray()
        weight, bias = torch.from_numpy(matrix.copy()), torch.from_numpy(affine.bias.copy())
        layers += [_filled(torch.nn.Linear(*weight.shape[::-1]), weight, bias), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def autograd(network: "torch.nn.Module") -> Callable[[np.ndarray], np.ndarray]:
    """From an image (C, H, W) to the gradients (K, C, H, W) of the logits, one backward pass for each class."""

    def gradients(image: np.ndarray) -> np.ndarray:
        pixels = torch.from_numpy(image.copy())[None].requires_grad_()
        logits = network(pixels)[0]
        rows = [torch.autograd.grad(logit, pixels, retain_graph=True)[0][0].numpy() for logit in logits]
        return np.stack(rows)

    return gradients


def _filled(module: "torch.nn.Module", weight: "torch.Tensor", bias: "torch.Tensor") -> "torch.nn.Module":
    module = module.double()
    with torch.no_grad():
        module.weight.copy_(weight)
        module.bias.copy_(bias)
    return module
