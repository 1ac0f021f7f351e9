"""Modules that are imported when they are first used: commands answer wrong input without the heavy ones."""

from importlib import import_module
from typing import Any

import numpy as np


class LazyModule:
    """A module by name; looking up an attribute imports it.

    >>> LazyModule("math").pi
    3.141592653589793
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        """The attribute of the module itself, kept for later."""
        value = getattr(import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value


onnx: Any = LazyModule("onnx")
onnxruntime: Any = LazyModule("onnxruntime")
scipy_sparse: Any = LazyModule("scipy.sparse")
torch: Any = LazyModule("torch")  # only for a user's torch module: it is imported already


def is_sparse(matrix: Any) -> bool:
    """Whether a matrix is sparse; it is an array otherwise."""
    return not isinstance(matrix, np.ndarray)
