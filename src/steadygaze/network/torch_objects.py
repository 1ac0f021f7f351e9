"""Recognises torch modules and tensors without importing torch, and turns a tensor into an array.

An object can only be a torch object if the caller has imported torch already.
"""

import sys
from collections.abc import Iterator
from typing import Any, Protocol, TypeGuard

import numpy as np

from ..errors import ImageError


class TorchModule(Protocol):
    """A `torch.nn.Module`, as far as type checkers need to know it."""

    training: bool

    def eval(self) -> Any: ...  # noqa: D102 (torch's own)

    def modules(self) -> Iterator[Any]: ...  # noqa: D102

    def state_dict(self) -> Any: ...  # noqa: D102


class TorchTensor(Protocol):
    """A `torch.Tensor`, as far as type checkers need to know it."""

    requires_grad: bool

    @property
    def is_leaf(self) -> bool: ...  # noqa: D102

    def element_size(self) -> int: ...  # noqa: D102


def is_module(thing: object) -> TypeGuard[TorchModule]:
    """Whether an object is a `torch.nn.Module`.

    >>> is_module("M-FNN-100")
    False
    """
    torch = _torch()
    return torch is not None and isinstance(thing, torch.nn.Module)


def is_tensor(thing: object) -> TypeGuard[TorchTensor]:
    """Whether an object is a `torch.Tensor`.

    >>> is_tensor(np.zeros(3))
    False
    """
    torch = _torch()
    return torch is not None and isinstance(thing, torch.Tensor)


def tensor_image(tensor: Any) -> np.ndarray:
    """The numbers of an image (C, H, W), (1, C, H, W) or (H, W), in the type of the tensor; raises ImageError."""
    shape = tuple(tensor.shape)
    if len(shape) == 4 and shape[0] != 1:
        raise ImageError(
            f"image: the tensor has shape {shape}, a batch of {shape[0]} images; give one of them, such as images[0]"
        )
    if tensor.is_meta:
        raise ImageError("image: the tensor is on torch's device meta, so it has no numbers; give one with numbers")
    if tensor.is_complex() or tensor.layout is not _torch().strided:
        raise ImageError(f"image: the tensor is {tensor.dtype} {tensor.layout}; give a dense one, uint8 or float")
    if tensor.is_floating_point() and tensor.element_size() < 4:
        tensor = tensor.float()  # numpy has no bfloat16; every half-precision number is a float32
    values = tensor.detach().cpu().numpy()
    return values[0] if len(shape) == 4 else values


def not_a_model(thing: object) -> str:
    """One line about an object that is not a model: the received type, the expected ones, and a remedy.

    >>> not_a_model({"weight": 1})[-71:]
    'in eval mode. Load a state dict into its module, and give module.eval()'
    """
    kind = type(thing)
    whole = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    advice = "Export a network of another library to ONNX"
    if isinstance(thing, type):
        whole, advice = f"class {thing.__name__}", "Make an object of it, load its weights, and give module.eval()"
    elif isinstance(thing, dict):
        advice = "Load a state dict into its module, and give module.eval()"
    elif isinstance(thing, np.ndarray) or is_tensor(thing):
        advice = "The model comes first, then the image"
    elif whole.startswith("torch.export."):
        advice = "Give the module that was exported"
    elif whole.startswith("onnx"):
        advice = "Write the model to an .onnx file, and give its path"
    return (
        f"model: received {whole}; expected an .onnx file, the name of a bundled network, a Model, or a "
        f"torch.nn.Module in eval mode. {advice}"
    )


def _torch() -> Any:
    """The module torch if the caller has imported it; sys.modules may also hold None or a half-imported module."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "nn") and hasattr(torch, "Tensor") else None
