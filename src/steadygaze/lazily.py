"""Heavy modules that are imported on first use: commands refuse wrong input without loading them."""

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
        """The attribute of the module itself, cached."""
        value = getattr(import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value


onnx: Any = LazyModule("onnx")
onnxruntime: Any = LazyModule("onnxruntime")
scipy_sparse: Any = LazyModule("scipy.sparse")
torch: Any = LazyModule("torch")  # used only for a torch module of the caller, who has imported torch already


def is_sparse(matrix: Any) -> bool:
    """Whether a matrix is sparse, and not an array."""
    return not isinstance(matrix, np.ndarray)
