"""Converters from one ONNX operator to equivalent operators of a graph in float64.

A converter gets a `Call`. It raises `ConversionError` if an attribute or a constant asks for anything but inference of
a piecewise linear network.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..lazily import onnx
from .onnx_file import FLOAT_TYPES, MAX_ELEMENTS
from .operators import (
    Array,
    LeftMatMul,
    MatMul,
    Mean,
    Operator,
    Pad,
    Relu,
    Reshape,
    Scale,
    Shape,
    ShapeError,
    Transpose,
)
from .windows import AveragePool, Conv, Window

if TYPE_CHECKING:
    from onnx import NodeProto


class ConversionError(ValueError):
    """A node asks for something unsupported; the reader of the file adds file and node."""


@dataclass(frozen=True, eq=False)
class Call:
    """A node with its inputs: constants by position, and the input that depends on the image, with number and shape.

    roundings: how often all constants together were rounded so far, relative to their own size.
    """

    node: "NodeProto"
    opset: int
    file_name: str
    constants: tuple[np.ndarray | None, ...]
    number: int | None
    position: int | None
    shape: Shape
    roundings: int = 0

    def attribute(self, name: str, default: Any) -> Any:
        """An attribute, or the default."""
        for entry in self.node.attribute:
            if entry.name == name:
                value = onnx.helper.get_attribute_value(entry)
                return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        return default

    def constant(self, position: int) -> np.ndarray | None:
        """The constant input at a position; None if it is missing."""
        return self.constants[position] if position < len(self.constants) else None

    def needed(self, position: int, what: str) -> np.ndarray:
        """The constant input at a position; ConversionError if it is missing."""
        value = self.constant(position)
        if value is None:
            raise ConversionError(f"its {what} must be a constant")
        return value

    def floats(self, position: int, what: str) -> Array:
        """The needed constant input as floats."""
        return np.asarray(self.needed(position, what), dtype=np.float64)

    def other(self, what: str) -> Array:
        """The constant among the two inputs, as floats."""
        return self.floats(1 - (self.position or 0), what)

    def integers(self, name: str, position: int) -> list[int] | None:
        """Integers from an attribute or, in later opsets, from a constant input; None if missing."""
        listed = self.attribute(name, None)
        if listed is not None:
            return [int(entry) for entry in listed]
        if position < len(self.node.input) and self.node.input[position]:
            return [int(entry) for entry in np.ravel(self.needed(position, name))]
        return None

    def on_image(self) -> None:
        """Refuse a node whose first input is a constant and another one depends on the image."""
        if self.position != 0:
            raise ConversionError("its first input must be the value that depends on the image, the others constants")


def _axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    for axis in axes:
        if not -rank <= axis < rank:
            raise ShapeError(f"axis {axis} does not exist in a value with {rank} axes")
    normal = tuple(sorted(axis % rank for axis in axes))
    if len(set(normal)) != len(normal):
        raise ShapeError(f"axes {list(axes)} name one axis twice")
    return normal


def _cast(call: Call) -> list[Operator]:
    if call.attribute("to", 0) not in FLOAT_TYPES:
        raise ConversionError("casts to a type other than float; only casts between float types are supported")
    return []


def _dropout(call: Call) -> list[Operator]:
    call.on_image()
    _refuse_training(call.constant(2))
    return []


def _refuse_training(mode: np.ndarray | int | None) -> None:
    if mode is not None and np.any(mode):
        raise ConversionError("is in training mode; export the model in inference mode (model.eval())")


def _flatten(call: Call) -> list[Operator]:
    rank = len(call.shape)
    axis = call.attribute("axis", 1)
    if not -rank <= axis <= rank:
        raise ShapeError(f"axis {axis} does not exist in shape {list(call.shape)}")
    axis = axis + rank if axis < 0 else axis
    return [Reshape((prod(call.shape[:axis]), prod(call.shape[axis:])))]


def _reshape(call: Call) -> list[Operator]:
    call.on_image()
    wanted = [int(size) for size in np.ravel(call.needed(1, "shape"))]
    old = call.shape
    zeros = [axis for axis, size in enumerate(wanted) if size == 0 and not call.attribute("allowzero", 0)]
    sizes = [old[axis] if axis in zeros and axis < len(old) else size for axis, size in enumerate(wanted)]
    known = prod(size for size in sizes if size != -1)
    if sizes.count(-1) > 1 or min(sizes, default=1) < -1 or known < 1 or prod(old) % known:
        raise ShapeError(f"cannot reshape {list(old)} to {wanted}")
    return [Reshape(tuple(prod(old) // known if size == -1 else size for size in sizes))]


def _squeeze(call: Call) -> list[Operator]:
    call.on_image()
    given = call.integers("axes", 1)
    rank = len(call.shape)
    axes = _axes(given, rank) if given is not None else tuple(i for i, size in enumerate(call.shape) if size == 1)
    if any(call.shape[axis] != 1 for axis in axes):
        raise ShapeError(f"axes {list(axes)} of shape {list(call.shape)} do not all have length 1")
    return [Reshape(tuple(size for axis, size in enumerate(call.shape) if axis not in axes))]


def _unsqueeze(call: Call) -> list[Operator]:
    call.on_image()
    given = call.integers("axes", 1) or []
    rank = len(call.shape) + len(given)
    axes = _axes(given, rank)
    sizes = iter(call.shape)
    return [Reshape(tuple(1 if axis in axes else next(sizes) for axis in range(rank)))]


def _pad(call: Call) -> list[Operator]:
    call.on_image()
    mode = call.attribute("mode", "constant")
    if mode != "constant":
        raise ConversionError(f"has mode '{mode}'; only constant padding is supported")
    pads = call.integers("pads", 1) or []
    fill = call.constant(2)
    value = float(np.ravel(fill)[0]) if fill is not None and fill.size else float(call.attribute("value", 0.0))
    rank = len(call.shape)
    listed = call.constant(3)
    axes = list(range(rank)) if listed is None else [int(axis) for axis in np.ravel(listed)]
    _axes(axes, rank)
    if len(pads) != 2 * len(axes):
        raise ShapeError(f"{len(pads)} pads do not fit a value of shape {list(call.shape)}")
    before, after = [0] * rank, [0] * rank
    for place, axis in enumerate(axes):
        before[axis % rank], after[axis % rank] = pads[place], pads[place + len(axes)]
    return [Pad(tuple(before), tuple(after), value)]


def _sub(call: Call) -> list[Operator]:
    if call.position == 0:
        return [Scale(offset=-call.floats(1, "subtrahend"))]
    return [Scale(gain=-1.0, offset=call.floats(0, "minuend"))]


def _div(call: Call) -> list[Operator]:
    if call.position != 0:
        raise ConversionError("divides by a value that depends on the image, which is not piecewise linear")
    divisor = call.floats(1, "divisor")
    if not divisor.all():
        raise ConversionError("divides by zero")
    return [Scale(divisor=divisor)]


def _matrix(values: Array, rank: int) -> Array:
    """Weight with two axes; drops leading axes of length 1 if the value has them too."""
    if values.ndim > 2 and rank >= values.ndim and set(values.shape[:-2]) == {1}:
        values = values.reshape(values.shape[-2:])
    if values.ndim != 2:
        raise ConversionError(f"its constant has shape {list(values.shape)}; expected a matrix")
    return values


def _matmul(call: Call) -> list[Operator]:
    weight = _matrix(call.other("other factor"), len(call.shape))
    return [MatMul(weight, np.zeros(weight.shape[1])) if call.position == 0 else LeftMatMul(weight)]


def _gemm(call: Call) -> list[Operator]:
    if call.position != 0:
        raise ConversionError("its first input must depend on the image; weight and bias must be constants")
    if len(call.shape) != 2:
        raise ShapeError(f"needs values with two axes, not of shape {list(call.shape)}")
    steps: list[Operator] = [Transpose((1, 0))] if call.attribute("transA", 0) else []
    weight = _matrix(call.floats(1, "weight"), 2)
    if call.attribute("transB", 0):
        weight = weight.T
    alpha, beta = call.attribute("alpha", 1.0), call.attribute("beta", 1.0)
    bias = np.zeros(()) if call.constant(2) is None else call.floats(2, "bias")
    rounded = 0 if is_exact_product(weight, alpha) and is_exact_product(bias, beta) else 1
    weight = weight * alpha if alpha != 1.0 else weight
    added = bias * beta if beta != 1.0 else bias
    if added.size == 1 or (added.size == weight.shape[1] and added.shape[-1:] == weight.shape[1:]):
        bias = np.broadcast_to(added.reshape(-1), (weight.shape[1],))
        return [*steps, MatMul(weight, bias, read_roundings=rounded)]
    plain = MatMul(weight, np.zeros(weight.shape[1]), read_roundings=rounded)
    return [*steps, plain, Scale(offset=added, read_roundings=rounded)]


def is_exact_product(left: Array, right: Array | float) -> bool:
    """Whether products of these numbers are surely exact in float64: both are float32, or one is a power of two.

    >>> is_exact_product(np.array([0.1]), 0.5), is_exact_product(np.array([0.1]), 3.0)
    (True, False)
    """
    if any(((np.abs(np.frexp(part)[0]) == 0.5) | np.equal(part, 0.0)).all() for part in (right, left)):
        return True
    with np.errstate(over="ignore", under="ignore"):
        return all(bool((np.asarray(part).astype(np.float32) == part).all()) for part in (left, right))


def _batch_normalization(call: Call) -> list[Operator]:
    call.on_image()
    _refuse_training(call.attribute("training_mode", 0))
    if call.roundings:
        raise ConversionError("has constants that were rounded; simplify the model (constant folding) on export")
    names = ("scale", "bias", "mean", "variance")
    scale, bias, mean, variance = (call.floats(i + 1, name) for i, name in enumerate(names))
    channels = call.shape[1] if len(call.shape) > 1 else 1
    if any(v.shape != (channels,) for v in (scale, bias, mean, variance)):
        raise ShapeError(f"its constants need one number for each channel of {list(call.shape)}")
    epsilon = float(call.attribute("epsilon", 1e-5))
    if (variance + epsilon <= 0).any():
        raise ConversionError("has a variance that is not positive")
    axes = (channels, *(1,) * (len(call.shape) - 2))
    gain, offset, mean, variance = (v.reshape(axes) for v in (scale, bias, mean, variance))
    return [Scale(mean=mean, gain=gain, variance=variance, epsilon=epsilon, offset=offset)]


def _reduce_mean(call: Call) -> list[Operator]:
    call.on_image()
    given = call.integers("axes", 1)
    if not given and call.attribute("noop_with_empty_axes", 0):
        return []
    axes = _axes(given, len(call.shape)) if given else tuple(range(len(call.shape)))
    steps: list[Operator] = [Mean(axes)]
    if not call.attribute("keepdims", 1):
        steps.append(Reshape(tuple(size for axis, size in enumerate(call.shape) if axis not in axes)))
    return steps


def _window(call: Call, kernel: Sequence[int], *, is_pool: bool) -> Window:
    """The window that the attributes of Conv and AveragePool describe."""
    rank = len(kernel)
    strides = tuple(call.attribute("strides", [1] * rank))
    dilations = tuple(call.attribute("dilations", [1] * rank))
    pads = tuple(call.attribute("pads", [0] * 2 * rank))
    spatial = call.shape[2:]
    if rank not in (1, 2) or len(spatial) != rank:
        raise ConversionError(
            f"has a window of {list(kernel)} over a value of shape {list(call.shape)}; supported are 1-D and 2-D"
        )
    if len(strides) != rank or len(dilations) != rank or len(pads) != 2 * rank:
        raise ShapeError(f"strides, dilations or pads do not fit a window of {list(kernel)}")
    if min((*kernel, *strides, *dilations)) < 1 or min(pads) < 0:
        raise ShapeError("kernel, strides and dilations must be positive, pads not negative")
    if max((*kernel, *strides, *dilations, *pads)) > MAX_ELEMENTS:
        raise ShapeError(f"kernel, strides, dilations or pads exceed {MAX_ELEMENTS:.3g}")
    auto = call.attribute("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        before, after = [], []
        for size, k, s, d in zip(spatial, kernel, strides, dilations, strict=True):
            missing = max((-(-size // s) - 1) * s + d * (k - 1) + 1 - size, 0)
            before.append(missing // 2 if auto == "SAME_UPPER" else missing - missing // 2)
            after.append(missing - before[-1])
        pads = (*before, *after)
    elif auto == "VALID":
        pads = (0,) * (2 * rank)
    elif auto != "NOTSET":
        raise ConversionError(f"has auto_pad '{auto}'; supported are NOTSET, SAME_UPPER, SAME_LOWER and VALID")
    ceil = bool(is_pool and call.attribute("ceil_mode", 0))
    return Window(tuple(kernel), strides, dilations, pads[:rank], pads[rank:], ceil)


def _conv(call: Call) -> list[Operator]:
    call.on_image()
    weight = call.floats(1, "weight")
    bias = call.constant(2)
    kernel = weight.shape[2:]
    if tuple(call.attribute("kernel_shape", kernel)) != tuple(kernel):
        raise ShapeError(f"kernel_shape does not fit a weight of shape {list(weight.shape)}")
    groups = call.attribute("group", 1)
    if groups < 1 or weight.ndim < 3 or weight.shape[0] % groups:
        raise ShapeError(f"{groups} group(s) do not fit a weight of shape {list(weight.shape)}")
    added = np.zeros(weight.shape[0]) if bias is None else np.asarray(bias, dtype=np.float64)
    if added.shape != weight.shape[:1]:
        raise ShapeError(f"a bias of shape {list(added.shape)} does not fit a weight of shape {list(weight.shape)}")
    return [Conv(weight, added, _window(call, kernel, is_pool=False), groups)]


def _average_pool(call: Call) -> list[Operator]:
    kernel = call.attribute("kernel_shape", [])
    return [AveragePool(_window(call, kernel, is_pool=True), bool(call.attribute("count_include_pad", 0)))]


CONVERTERS: dict[str, Callable[[Call], list[Operator]]] = {
    "Add": lambda call: [Scale(offset=call.other("other summand"))],
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_normalization,
    "Cast": _cast,
    "Conv": _conv,
    "Div": _div,
    "Dropout": _dropout,
    "Flatten": _flatten,
    "Gemm": _gemm,
    "GlobalAveragePool": lambda call: [Mean(tuple(range(2, len(call.shape))))],
    "Identity": lambda call: [],
    "MatMul": _matmul,
    "Mul": lambda call: [Scale(gain=call.other("other factor"))],
    "Pad": _pad,
    "ReduceMean": _reduce_mean,
    "Relu": lambda call: [Relu()],
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "Sub": _sub,
    "Transpose": lambda call: [Transpose(tuple(call.attribute("perm", range(len(call.shape))[::-1])))],
    "Unsqueeze": _unsqueeze,
}
