"""From a checked ONNX model to a graph: walks the nodes that the output needs, folds constants, refuses the rest.

`convert` says what one ONNX operator becomes; this module knows which values are constants, which depend on the image,
where something went wrong, and which operators are supported.
"""

from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
import onnx
from onnx import NodeProto

from ..errors import ModelError, OptionError
from .convert import CONVERTERS, Call, ConversionError
from .fold import count_roundings, fold
from .graph import Graph, Node
from .layout import Layout, Order, Preprocessing
from .onnx_file import (
    MAX_ELEMENTS,
    OnnxFile,
    final_softmax,
    float_types,
    input_dims,
    one_line,
    tensor_array,
)
from .operators import Linear, Operator, Reshape, Scale, Shape, ShapeError, Transpose

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

# Piecewise linear, and so possible in principle.
LATER = frozenset({
    "MaxPool", "GlobalMaxPool", "LeakyRelu", "PRelu", "Clip", "HardSigmoid", "Abs", "Max", "Min", "Sum", "Neg",
    "ReduceSum", "ReduceMax", "ConvTranspose", "Concat", "Slice", "Split", "Gather", "Resize", "Expand", "Tile",
})
# fmt: on


def why_refused(kind: str) -> str:
    """Rest of the sentence "node 'x' is <kind>, ...": the reason, what is supported, and what to do.

    >>> why_refused("Tanh").split(".")[0]
    'which is not piecewise linear'
    """
    if kind in NOT_PIECEWISE_LINEAR:
        reason = "which is not piecewise linear"
    elif kind in LATER:
        reason = "which is not supported yet"
    else:
        reason = "which is not supported"
    return f"{reason}. Supported: {SUPPORTED}. Replace it, or verify the part before it."


def build_graph(file: OnnxFile, layout: Layout, preprocessing: Preprocessing) -> Graph:
    """Graph of the model from canonical pixels in [0,1] to logits; a ModelError names file, node and cause."""
    outputs = file.proto.graph.output
    if len(outputs) != 1:
        names = ", ".join(f"'{value.name}'" for value in outputs) or "none"
        raise ModelError(f"{file.path.name}: has {len(outputs)} outputs ({names}); expected one, the logits")
    builder = _Builder(file, layout, preprocessing)
    for node in _needed(file.proto):
        builder.add(node)
    return builder.finish(outputs[0].name)


def _needed(proto: onnx.ModelProto) -> list[NodeProto]:
    """Nodes that the output depends on, in the order of the file."""
    wanted = {proto.graph.output[0].name}
    kept: list[NodeProto] = []
    for node in reversed(proto.graph.node):
        if wanted.intersection(node.output):
            wanted.update(name for name in node.input if name)
            kept.append(node)
    return kept[::-1]


@dataclass
class _Builder:
    """Values seen so far, by name: constants as arrays, what depends on the image as numbers of graph values."""

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
        self.numbers = {input_dims(self.file)[0]: self._enter()}
        softmax = final_softmax(self.file.proto)
        self.softmax_output = softmax.output[0] if softmax is not None else None
        if float_types(self.file.proto).intersection((onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)):
            self.notes.append("computes in half precision: what is proved holds for its weights in exact arithmetic")

    def _enter(self) -> int:
        """From canonical pixels to the model's own input: preprocessing, then order and shape."""
        shape: Shape = self.layout.image_shape
        number = 0
        steps: list[tuple[str, Operator]] = []
        if not self.preprocessing.is_identity:
            mean, std = (v[:, None, None] for v in (self.preprocessing.mean, self.preprocessing.std))
            try:
                scale = Scale(multiplier=self.preprocessing.scale, mean=mean, divisor=std)
            except FloatingPointError as error:
                raise OptionError(f"mean, std and scale together leave the range of float64 ({error})") from None
            steps.append(("preprocessing", scale))
        if self.layout.order is Order.CHANNELS_LAST:
            steps.append(("layout", Transpose((1, 2, 0))))
        steps.append(("layout", Reshape(self.layout.model_shape)))
        for name, operator in steps:
            shape = operator.output_shape(shape)
            self.nodes.append(Node(operator, (number,), shape, name))
            number = len(self.nodes)
        return number

    def shape_of(self, number: int) -> Shape:
        return self.nodes[number - 1].shape if number else self.layout.image_shape

    def constant(self, name: str) -> np.ndarray | None:
        """Array of a constant value, lifted from the file on first use; None for what depends on the image."""
        if name not in self.constants and name in self.tensors:
            self.constants[name] = tensor_array(self.tensors[name], self.file.path.name)
        return self.constants.get(name)

    def add(self, node: NodeProto) -> None:
        """Fold a node, or append what it becomes."""
        where = f"{self.file.path.name}: node '{node.name or node.output[0]}'"
        if node.domain not in ("", "ai.onnx"):
            raise ModelError(
                f"{where} is {node.domain}.{node.op_type}, which is not supported. Supported: {SUPPORTED}."
            )
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

    def _call(self, node: NodeProto, where: str) -> Call:
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

    def _append(self, node: NodeProto, call: Call) -> None:
        number = call.number
        if number is None:
            raise ValueError("a node without an image was to be folded")
        shape = call.shape
        with np.errstate(over="raise", under="raise"):
            operators = CONVERTERS[node.op_type](call)
        for made in operators:
            operator = made
            if call.roundings and isinstance(made, Linear):
                operator = replace(made, read_roundings=made.read_roundings + call.roundings)
            shape = operator.output_shape(shape)
            if prod(shape) > MAX_ELEMENTS:
                raise ConversionError(
                    f"its result of shape {list(shape)} is too large; at most {MAX_ELEMENTS:.3g} numbers"
                )
            self.nodes.append(Node(operator, (number,), shape, node.name or node.output[0]))
            number = len(self.nodes)
        self.numbers[node.output[0]] = number

    def _keep(self, node: NodeProto, call: Call) -> None:
        with np.errstate(over="raise", under="raise"):
            value = fold(call)
        if value.size > MAX_ELEMENTS:
            raise ConversionError(f"its result of shape {list(value.shape)} is too large")
        if not np.isfinite(value).all():
            raise ConversionError("its result is NaN or infinite")
        self.constants[node.output[0]] = value
        self.roundings[node.output[0]] = count_roundings(call, value)

    def _drop_softmax(self, call: Call) -> None:
        """Pass the logits through; the order of the classes is theirs if the softmax runs over all of them."""
        default = 1 if call.opset < 13 else -1
        axis = call.attribute("axis", default)
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
