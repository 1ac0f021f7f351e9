"""Turns a checked ONNX model into a graph: walks the nodes that the output needs, folds constants, refuses the rest.

`convert` turns one ONNX operator into operators of the graph. This module knows which values are constants and which
depend on the image, and names file and node in errors. It folds constants: rearranged weights, and the shape arithmetic
that exporters leave around a Reshape. Integers stay int64, floats float64, and roundings of floats are counted. The
shape of a value that depends on the image is a constant too, with a batch of 1. The size of every result is checked
before it is allocated.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ModelError, OptionError
from .convert import CONVERTERS, Call, ConversionError, is_exact_product
from .graph import Graph, Node
from .layout import Layout, Order, Preprocessing
from .onnx_file import (
    FLOAT_TYPES,
    INTEGER_TYPES,
    MAX_ELEMENTS,
    DataType,
    OnnxFile,
    final_softmax,
    float_types,
    input_dims,
    one_line,
    tensor_array,
)
from .operators import Linear, Operator, Reshape, Scale, Shape, ShapeError, Transpose

if TYPE_CHECKING:
    from onnx import NodeProto

SUPPORTED = (
    "Gemm, MatMul, Add, Sub, Mul, Div (with constants), Conv, BatchNormalization, AveragePool, GlobalAveragePool, "
    "ReduceMean, Relu, Flatten, Reshape, Squeeze, Unsqueeze, Transpose, Pad, Constant, Identity, Cast, Dropout, "
    "a final Softmax or LogSoftmax"
)

# fmt: off
NOT_PIECEWISE_LINEAR = frozenset({
    "Sigmoid", "Tanh", "Elu", "Selu", "Celu", "Gelu", "Softplus", "Softsign", "Swish", "HardSwish", "Mish", "Exp",
    "Log", "Erf", "Sqrt", "Pow", "Reciprocal", "Sin", "Cos", "Softmax", "LogSoftmax", "LayerNormalization", "LRN",
    "InstanceNormalization", "GroupNormalization", "LpNormalization", "RMSNormalization", "Attention",
    "LSTM", "GRU", "RNN",
})

# Piecewise linear, so they could be supported.
LATER = frozenset({
    "MaxPool", "GlobalMaxPool", "LeakyRelu", "PRelu", "Clip", "HardSigmoid", "Abs", "Max", "Min", "Sum", "Neg",
    "ReduceSum", "ReduceMax", "ConvTranspose", "Concat", "Slice", "Split", "Gather", "Resize", "Expand", "Tile",
})
# fmt: on


def why_refused(kind: str) -> str:
    """The rest of the sentence "node 'x' is <kind>, ...": the reason, the supported operators, and the remedy.

    >>> why_refused("Tanh").split(".")[0]
    'which is not piecewise linear'
    """
    reason = "piecewise linear" if kind in NOT_PIECEWISE_LINEAR else "supported yet" if kind in LATER else "supported"
    return f"which is not {reason}. Supported: {SUPPORTED}. Replace it, or verify the part before it."


def build_graph(file: OnnxFile, layout: Layout, preprocessing: Preprocessing) -> Graph:
    """The graph of a model from canonical pixels in [0,1] to logits; a ModelError names file, node and cause."""
    outputs = file.proto.graph.output
    if len(outputs) != 1:
        names = ", ".join(f"'{value.name}'" for value in outputs) or "none"
        raise ModelError(f"{file.path.name}: has {len(outputs)} outputs ({names}); expected one, the logits")
    wanted, needed = {outputs[0].name}, list["NodeProto"]()
    for node in reversed(file.proto.graph.node):
        if wanted.intersection(node.output):
            wanted.update(name for name in node.input if name)
            needed.append(node)
    builder = _Builder(file, layout, preprocessing)
    for node in reversed(needed):
        builder.add(node)
    return builder.finish(outputs[0].name)


@dataclass
class _Builder:
    """Values seen so far, by name: constants as arrays, values that depend on the image as their numbers."""

    file: OnnxFile
    layout: Layout
    preprocessing: Preprocessing
    nodes: list[Node] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        graph = self.file.proto.graph
        self.notes.extend(self.layout.notes)
        self.tensors = {tensor.name: tensor for tensor in graph.initializer}
        self.constants: dict[str, np.ndarray] = {}
        self.roundings: dict[str, int] = {}
        self.numbers = {input_dims(self.file)[0]: 0}
        self._enter(input_dims(self.file)[0])
        softmax = final_softmax(self.file.proto)
        self.softmax_output = softmax.output[0] if softmax is not None else None
        if float_types(self.file.proto).intersection((DataType.FLOAT16, DataType.BFLOAT16)):
            self.notes.append("computes in half precision: proofs hold for its weights in exact arithmetic")

    def _enter(self, value: str) -> None:
        """Convert canonical pixels to the model's own input: preprocessing, then order and shape."""
        if not self.preprocessing.is_identity:
            mean, std = (v[:, None, None] for v in (self.preprocessing.mean, self.preprocessing.std))
            try:
                scale = Scale(multiplier=self.preprocessing.scale, mean=mean, divisor=std)
            except FloatingPointError as error:
                raise OptionError(f"mean, std and scale together leave the range of float64 ({error})") from None
            self._follow(value, scale, "preprocessing")
        if self.layout.order is Order.CHANNELS_LAST:
            self._follow(value, Transpose((1, 2, 0)), "layout")
        self._follow(value, Reshape(self.layout.model_shape), "layout")

    def _follow(self, value: str, operator: Operator, name: str) -> None:
        """Append a node that continues from the value's number."""
        number = self.numbers[value]
        self.nodes.append(Node(operator, (number,), operator.output_shape(self.shape_of(number)), name))
        self.numbers[value] = len(self.nodes)

    def shape_of(self, number: int) -> Shape:
        return self.nodes[number - 1].shape if number else self.layout.image_shape

    def constant(self, name: str) -> np.ndarray | None:
        """The array of a constant, read from the file on first use; None if the value depends on the image."""
        if name not in self.constants and name in self.tensors:
            self.constants[name] = tensor_array(self.tensors[name], self.file.path.name)
        return self.constants.get(name)

    def add(self, node: "NodeProto") -> None:
        """Fold a node, or append its operators."""
        where = f"{self.file.path.name}: node '{node.name or node.output[0]}'"
        if node.domain not in ("", "ai.onnx"):
            raise ModelError(f"{where} is {node.domain}.{node.op_type}, {why_refused(node.domain)}")
        call = self._call(node, where)
        try:
            if call.number is None or node.op_type == "Shape":
                self._keep(node, call)
            elif node.output[0] == self.softmax_output:
                self._drop_softmax(call)
            elif node.op_type in CONVERTERS:
                self._append(node, call)
            else:
                raise ModelError(f"{where} is {node.op_type}, {why_refused(node.op_type)}")
        except (ConversionError, ShapeError) as error:
            raise ModelError(f"{where} ({node.op_type}): {one_line(error)}") from None
        except FloatingPointError as error:
            raise ModelError(
                f"{where} ({node.op_type}): its constants leave the range of float64 ({error}); "
                "scale the weights of the model"
            ) from None

    def _call(self, node: "NodeProto", where: str) -> Call:
        constants: list[np.ndarray | None] = []
        numbers: list[int | None] = []
        for name in node.input:
            number = self.numbers.get(name)
            value = self.constant(name) if name and number is None else None
            if name and number is None and value is None:
                raise ModelError(f"{where} ({node.op_type}): its input '{name}' does not exist; the file is damaged")
            constants.append(value)
            numbers.append(number)
        images = [number for number in numbers if number is not None]
        if len(images) > 1:
            if node.op_type not in CONVERTERS:
                raise ModelError(f"{where} is {node.op_type}, {why_refused(node.op_type)}")
            raise ModelError(
                f"{where} is {node.op_type} of two values that depend on the image; residual and branching networks "
                "are not supported yet, only constants on one side. Verify a network without branches."
            )
        number = images[0] if images else None
        return Call(
            node=node,
            opset=self.file.opset,
            file_name=self.file.path.name,
            constants=tuple(constants),
            number=number,
            position=None if number is None else numbers.index(number),
            shape=() if number is None else self.shape_of(number),
            roundings=sum(self.roundings.get(name, 0) for name in node.input),
        )

    def _append(self, node: "NodeProto", call: Call) -> None:
        if call.number is None:
            raise ValueError("a node that does not depend on the image must be folded")
        with np.errstate(over="raise", under="raise"):
            operators = CONVERTERS[node.op_type](call)
        value = node.output[0]
        self.numbers[value] = call.number
        for made in operators:
            operator = made
            if call.roundings and isinstance(made, Linear):
                operator = replace(made, read_roundings=made.read_roundings + call.roundings)
            self._follow(value, operator, node.name or value)
            shape = self.nodes[-1].shape
            if prod(shape) > MAX_ELEMENTS:
                raise ConversionError(
                    f"its result of shape {list(shape)} is too large; at most {MAX_ELEMENTS:.3g} numbers are supported"
                )

    def _keep(self, node: "NodeProto", call: Call) -> None:
        with np.errstate(over="raise", under="raise"):
            value = fold(call)
        _check_size(value.size)
        if not np.isfinite(value).all():
            raise ConversionError("its result is NaN or infinite")
        self.constants[node.output[0]] = value
        self.roundings[node.output[0]] = count_roundings(call, value)

    def _drop_softmax(self, call: Call) -> None:
        """Pass the logits through; a softmax over all classes keeps their order."""
        axis = call.attribute("axis", 1 if call.opset < 13 else -1)
        if not -len(call.shape) <= axis < len(call.shape):
            raise ConversionError(f"axis {axis} does not exist in shape {list(call.shape)}")
        axis %= len(call.shape)
        covered = prod(call.shape[axis:]) if call.opset < 13 else call.shape[axis]
        if covered != prod(call.shape):
            raise ConversionError(f"runs along axis {axis} of {list(call.shape)}, not over all classes; use axis=-1")
        self.numbers[call.node.output[0]] = call.number or 0
        self.notes.append(f"final {call.node.op_type} dropped: labels and gradients are those of the logits before it")

    def finish(self, output: str) -> Graph:
        name = self.file.path.name
        if output not in self.numbers:
            raise ModelError(f"{name}: output '{output}' does not depend on the image; export the whole classifier")
        last = self.numbers[output]
        shape = self.shape_of(last)
        if sorted(shape)[:-1] != [1] * (len(shape) - 1):
            raise ModelError(f"{name}: the output has shape {list(shape)}; expected one row of logits, such as [1, 10]")
        if prod(shape) < 2:
            raise ModelError(f"{name}: has a single output; expected a logit for each of at least two classes")
        return Graph(self.layout.image_shape, tuple(self.nodes[:last]), tuple(self.notes))


# Operators that only move numbers: they act on a constant as on a value that depends on the image.
MOVES = ("Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")


def fold(call: Call) -> np.ndarray:
    """The result of a node whose inputs are constants, or of Shape for any input; raises ConversionError."""
    kind = call.node.op_type
    if kind not in FOLDS and kind not in MOVES:
        raise ConversionError(
            f"is {kind} of constants, which is not supported; simplify the model (constant folding) on export"
        )
    try:
        return _move(call) if kind in MOVES else np.asarray(FOLDS[kind](call))
    except (ConversionError, ShapeError):
        raise
    except (IndexError, TypeError, OverflowError, ValueError) as error:
        raise ConversionError(f"its constants do not fit together: {error}") from None


def count_roundings(call: Call, result: np.ndarray) -> int:
    """How often the result of `fold` is rounded, relative to its own size: the inputs' roundings, and its own.

    Sums of rounded numbers may cancel, and a cast to integers may jump: both are refused. The node itself counts one,
    or 0 if its result is surely exact.
    """
    kind, is_float = call.node.op_type, result.dtype.kind == "f"
    if kind == "Shape":
        return 0
    if call.roundings and (kind in ("Add", "Sub") or not is_float):
        raise ConversionError(
            "is computed from constants that were rounded; simplify the model (constant folding) on export"
        )
    if kind not in ("Add", "Sub", "Mul", "Div") or not is_float:
        return call.roundings
    left, right = call.floats(0, "input"), call.floats(1, "input")
    if kind == "Mul":
        is_exact = is_exact_product(left, right)
    elif kind == "Div":
        is_exact = is_exact_product(result, right) and bool((result * right == left).all())
    else:
        is_exact = _is_exact_sum(left, right if kind == "Add" else -right)
    return call.roundings + (0 if is_exact else 1)


def _is_exact_sum(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether sums are float64 numbers: Knuth's TwoSum computes their rounding errors exactly."""
    total = left + right
    rest = total - left
    return not ((left - (total - rest)) + (right - rest)).any()


def _move(call: Call) -> np.ndarray:
    value = call.needed(0, "input")
    moved = replace(call, shape=value.shape, position=0)
    result = value[None]
    for operator in CONVERTERS[call.node.op_type](moved):
        operator.output_shape(result.shape[1:])
        result = operator.apply(result)
    return result[0]


def _constant(call: Call) -> np.ndarray:
    for entry in call.node.attribute:
        value = call.attribute(entry.name, None)
        if entry.name == "value":
            return tensor_array(value, call.file_name)
        if entry.name in ("value_float", "value_floats"):
            return np.asarray(value, dtype=np.float64)
        if entry.name in ("value_int", "value_ints"):
            return np.asarray(value, dtype=np.int64)
    raise ConversionError("contains neither a tensor nor numbers")


def _shape(call: Call) -> np.ndarray:
    sizes = call.shape if call.number is not None else call.needed(0, "input").shape
    return np.asarray(sizes[call.attribute("start", 0) : call.attribute("end", None)], dtype=np.int64)


def _gather(call: Call) -> np.ndarray:
    values, index = call.needed(0, "data"), call.needed(1, "index")
    axis = call.attribute("axis", 0)
    _check_size(values.size // max(values.shape[axis], 1) * index.size)
    return np.take(values, index, axis=axis)


def _concat(call: Call) -> np.ndarray:
    parts = [call.needed(i, "parts") for i in range(len(call.constants))]
    _check_size(sum(part.size for part in parts))
    return np.concatenate(parts, axis=call.attribute("axis", 0))


def _slice(call: Call) -> np.ndarray:
    values = call.needed(0, "data")
    starts, ends = call.integers("starts", 1) or [], call.integers("ends", 2) or []
    axes = call.integers("axes", 3) or list(range(len(starts)))
    steps = call.integers("steps", 4) or [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise ConversionError("its starts, ends, axes and steps do not fit together")
    cut = [slice(None)] * values.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        # A negative end counts from the back; going down, an end before the first entry means "including the first".
        stop = None if step < 0 and end < -values.shape[axis] else end
        cut[axis] = slice(start, stop, step)
    return values[tuple(cut)]


def _cast(call: Call) -> np.ndarray:
    target = call.attribute("to", 0)
    if target in FLOAT_TYPES:
        return call.needed(0, "input").astype(np.float64)
    if target in INTEGER_TYPES:
        return call.needed(0, "input").astype(np.int64)
    raise ConversionError("casts to a type that is neither float nor integer")


def _constant_of_shape(call: Call) -> np.ndarray:
    sizes = [int(size) for size in np.ravel(call.needed(0, "shape"))]
    if min(sizes, default=0) < 0:
        raise ConversionError(f"has the invalid shape {sizes}")
    _check_size(prod(sizes))
    value = call.attribute("value", None)
    fill = np.zeros(1) if value is None else tensor_array(value, call.file_name)
    return np.full(sizes, np.ravel(fill)[0])


def _arithmetic(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[[Call], np.ndarray]:
    def compute(call: Call) -> np.ndarray:
        left, right = call.needed(0, "input"), call.needed(1, "input")
        _check_size(prod(np.broadcast_shapes(left.shape, right.shape)))
        return function(left, right)

    return compute


def _divide(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    if not right.all():
        raise ConversionError("divides by zero")
    if left.dtype == np.int64 and right.dtype == np.int64:
        return (np.sign(left) * np.sign(right)) * (np.abs(left) // np.abs(right))  # ONNX rounds towards zero
    return left / right


def _check_size(count: int) -> None:
    if count > MAX_ELEMENTS:
        raise ConversionError(f"would give {count:.3g} numbers, at most {MAX_ELEMENTS:.3g} are supported")


FOLDS: dict[str, Callable[[Call], np.ndarray]] = {
    "Add": _arithmetic(np.add),
    "Cast": _cast,
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Div": _arithmetic(_divide),
    "Gather": _gather,
    "Mul": _arithmetic(np.multiply),
    "Shape": _shape,
    "Slice": _slice,
    "Sub": _arithmetic(np.subtract),
}
