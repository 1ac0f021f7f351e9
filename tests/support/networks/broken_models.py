"""The corpus of broken and unsupported models, by name, and the models that its cases are made from."""

from collections.abc import Callable

from onnx import ModelProto, TensorProto

from support.networks.onnx_files import make_proto
from support.networks.operator_models import floats, node

DIMS = [1, 1, 4, 4]
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
MANY = 10_000

MODELS: dict[str, tuple[str, Callable[[], ModelProto]]] = {}
"""By name: words that the refusal contains, and a function that makes the model."""


def case(words: str) -> Callable:
    """Add a function that makes a model to the corpus."""

    def add(make: Callable[[], ModelProto]) -> Callable[[], ModelProto]:
        MODELS[make.__name__] = (words, make)
        return make

    return add


def dense() -> ModelProto:
    """Flatten, Gemm, Relu, Gemm of images (1, 4, 4), with three classes."""
    nodes = [
        node("Flatten", "image", "f"),
        node("Gemm", "f w1 b1", "h"),
        node("Relu", "h", "a"),
        node("Gemm", "a w2 b2", "logits"),
    ]
    return make_proto(nodes, {"w1": floats(16, 6), "b1": floats(6), "w2": floats(6, 3), "b2": floats(3)}, DIMS)


def single(kind: str, inputs: str | list[str] = "image", weights=None, *, opset: int = 17, dims=None, **attributes):
    """A model with one operator, whose result becomes a row of logits."""
    nodes = [node(kind, inputs, "y", **attributes), node("Relu", "y", "r"), node("Flatten", "r", "l", axis=0)]
    return make_proto(nodes, weights or {}, dims or DIMS, opset=opset)


def weight_of(model: ModelProto, name: str) -> TensorProto:
    """An initializer by name."""
    return next(tensor for tensor in model.graph.initializer if tensor.name == name)
