"""Turns a checked ONNX model into a graph: walks its nodes, folds constants, refuses unsupported operators.

`converters` turns one ONNX operator into operators of the graph, or folds it. This module tracks which values are
constants and which depend on the image, and names file and node in errors. The shape of a value that depends on the
image is itself a constant, with a batch of 1.
"""

from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ModelError, OptionError
from .converters import BRANCHES, CHAINS
from .converters.call import MAX_FOLDED, MAX_RESULT, Call, ConversionError, Draft, Tally
from .converters.folding import count_roundings, fold
from .graph import Graph, Node
from .layout import Layout, Order, Preprocessing
from .onnx_file import DataType, OnnxFile, final_activation, float_types, input_dims, one_line, tensor_array
from .operators import Operator, Reshape, ScaleShift, Select, ShapeError, Transpose

if TYPE_CHECKING:
    from onnx import NodeProto

SUPPORTED = (
    "Gemm, Conv and other affine operators with constants, sums and Concat of branches, Relu, LeakyRelu, PRelu, Clip, "
    "HardSigmoid, Abs, Max, Min, pooling, Resize, Pad, operators that move numbers, a final Softmax or Sigmoid"
)

# fmt: off
NOT_PIECEWISE_LINEAR = frozenset({
    "Sigmoid", "Tanh", "Elu", "Selu", "Celu", "Gelu", "Softplus", "Softsign", "Swish", "HardSwish", "Mish", "Exp",
    "Log", "Erf", "Sqrt", "Pow", "Reciprocal", "Sin", "Cos", "Softmax", "LogSoftmax", "LayerNormalization", "LRN",
    "InstanceNormalization", "GroupNormalization", "LpNormalization", "RMSNormalization", "Attention",
    "MeanVarianceNormalization", "LpPool", "GlobalLpPool", "ReduceL2", "ReduceProd", "ReduceLogSumExp", "ReduceLogSum",
    "ReduceSumSquare", "SkipLayerNormalization", "MultiHeadAttention", "FastGelu", "QuickGelu", "BiasGelu",
    "LSTM", "GRU", "RNN",
})

JUMPS = frozenset({
    "ArgMax", "ArgMin", "Ceil", "Floor", "Hardmax", "Mod", "Round", "Sign", "QuantizeLinear", "DynamicQuantizeLinear",
})

CHOICES = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "TopK", "Where"})

CONTROL_FLOW = frozenset({"If", "Loop", "Scan", "SequenceMap"})
# fmt: on

MAX_CLASSES = 4096
"""The most logits: every pair of them takes part in estimates and searches."""

# Operators that multiply or divide their inputs.
PRODUCTS = ("Mul", "Div", "MatMul", "Gemm", "Conv", "ConvTranspose", "BatchNormalization", "PRelu")


def why_refused(kind: str) -> str:
    """The rest of the sentence "node 'x' is <kind>, ...": the reason, the supported operators, and the remedy.

    >>> why_refused("Tanh").split(".")[0]
    'which is not piecewise linear'
    """
    if kind in CONTROL_FLOW:
        return "which is control flow and not supported. Export the model as a fixed graph, with constant folding."
    if kind in CHOICES:
        return (
            "which compares or chooses values; a function made of it may jump. If it does not, write it with Relu, "
            f"Clip, Max or Min. Supported: {SUPPORTED}."
        )
    reason = "piecewise linear" if kind in NOT_PIECEWISE_LINEAR else "continuous" if kind in JUMPS else "supported"
    return f"which is not {reason}. Supported: {SUPPORTED}. Replace it, or verify the part before it."


def build_graph(file: OnnxFile, layout: Layout, preprocessing: Preprocessing) -> Graph:
    """The graph of a model from canonical pixels in [0,1] to logits; a ModelError names file, node and cause."""
    builder = _GraphBuilder(file, layout, preprocessing)
    for node in file.proto.graph.node:
        builder.add(node)
    return builder.finish()


@dataclass
class _GraphBuilder:
    """Values seen so far, by name: arrays of constants, numbers in the graph of values that depend on the image."""

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
        self.room = MAX_FOLDED + 2 * sum(prod(tensor.dims) for tensor in self.file.tensors)
        self.unread: dict[str, str] = {}  # outputs that no converter computes, with the error of a node that reads one
        self.draft = Draft(self.nodes, self.layout.image_shape, Tally())
        self.numbers = {input_dims(self.file)[0]: self._add_preprocessing()}
        activation = final_activation(self.file)
        self.activation_output = activation.output[0] if activation is not None else None
        if float_types(self.file.proto).intersection((DataType.FLOAT16, DataType.BFLOAT16)):
            self.notes.append("computes in half precision: proofs hold for its weights in exact arithmetic")

    def _add_preprocessing(self) -> int:
        """Append the nodes from canonical pixels to the model's own input: preprocessing, then order and shape."""
        number, shape = 0, self.layout.image_shape
        if prod(shape) > MAX_RESULT:
            name = self.file.path.name
            raise ModelError(
                f"{name}: the image has shape {list(shape)}; at most {MAX_RESULT:.3g} pixels are supported"
            )
        if not self.preprocessing.is_identity:
            mean, std = (v[:, None, None] for v in (self.preprocessing.mean, self.preprocessing.std))
            try:
                scale = ScaleShift(multiplier=self.preprocessing.scale, mean=mean, divisor=std)
            except FloatingPointError as error:
                raise OptionError(f"mean, std and scale together leave the range of float64 ({error})") from None
            number = replace(self.draft, name="preprocessing").add(scale, number)
        moves: list[Operator] = [Transpose((1, 2, 0))] if self.layout.order is Order.CHANNELS_LAST else []
        return replace(self.draft, name="layout").follow(number, [*moves, Reshape(self.layout.model_shape)])

    def constant(self, name: str) -> np.ndarray | None:
        """The array of a constant, read from the file on first use; None if the value depends on the image."""
        if name not in self.constants and name in self.tensors:
            self.constants[name] = tensor_array(self.tensors[name], self.file.path.name)
        return self.constants.get(name)

    def add(self, node: "NodeProto") -> None:
        """Fold a node, or append its operators."""
        where = f"{self.file.path.name}: node '{node.name or node.output[0]}'"
        if node.op_type == "Constant" and self._is_infinite(node):
            self.tensors[node.output[0]] = node.attribute[0].t  # refused on first use, unless it is a bound of Clip
            return
        if node.domain not in ("", "ai.onnx"):
            raise ModelError(f"{where} is {node.domain}.{node.op_type}, {why_refused(node.op_type)}")
        if node.op_type in CONTROL_FLOW:
            raise ModelError(f"{where} is {node.op_type}, {why_refused(node.op_type)}")
        try:
            call = self._call(node)
            if not call.variables or node.op_type in ("Shape", "Size"):
                self._fold(call)
            elif node.output[0] == self.activation_output:
                self._drop_activation(call)
            elif node.op_type in CHAINS or node.op_type in BRANCHES:
                self._append(call)
            else:
                raise ModelError(f"{where} is {node.op_type}, {why_refused(node.op_type)}")
        except (ConversionError, ShapeError) as error:
            raise ModelError(f"{where} ({node.op_type}): {one_line(error)}") from None
        except FloatingPointError as error:
            raise ModelError(
                f"{where} ({node.op_type}): its constants leave the range of float64 ({error}); "
                "scale the weights of the model"
            ) from None

    def _call(self, node: "NodeProto") -> Call:
        numbers = [self.numbers.get(name) for name in node.input]
        constants: list[np.ndarray | None] = []
        for name, number in zip(node.input, numbers, strict=True):
            value = self._read_constant(node, name) if name and number is None else None
            if name and number is None and value is None:
                raise ConversionError(self.unread.get(name, f"its input '{name}' does not exist; the file is damaged"))
            constants.append(value)
        shapes = tuple(None if number is None else self.draft.shape_of(number) for number in numbers)
        position = next((place for place, number in enumerate(numbers) if number is not None), None)
        return Call(
            node=node,
            opset=self.file.opset,
            file_name=self.file.path.name,
            constants=tuple(constants),
            numbers=tuple(numbers),
            shapes=shapes,
            position=position,
            shape=() if position is None else shapes[position] or (),
            roundings=sum(self.roundings.get(name, 0) for name in node.input),
            room=self.room,
        )

    def _is_infinite(self, node: "NodeProto") -> bool:
        """Whether a node holds infinity alone."""
        if len(node.attribute) != 1 or not node.attribute[0].HasField("t") or prod(node.attribute[0].t.dims) != 1:
            return False
        return bool(np.isinf(tensor_array(node.attribute[0].t, self.file.path.name, is_bound=True)).all())

    def _read_constant(self, node: "NodeProto", name: str) -> np.ndarray | None:
        """As `constant`; infinity, which means no bound, is allowed for a bound of Clip."""
        if node.op_type == "Clip" and name in self.tensors and name not in self.constants:
            return tensor_array(self.tensors[name], self.file.path.name, is_bound=True)
        return self.constant(name)

    def _append(self, call: Call) -> None:
        node, kind = call.node, call.node.op_type
        draft = replace(self.draft, name=node.name or node.output[0], roundings=call.roundings)
        with np.errstate(over="raise", under="raise"):
            if kind in BRANCHES and (kind not in CHAINS or len(call.variables) > 1):
                results = BRANCHES[kind](call, draft)
            elif len(call.variables) > 1:
                raise ConversionError(_why_single(call))
            else:
                results = [draft.follow(call.variables[0], CHAINS[kind](call))]
        self.numbers.update(zip(node.output, results, strict=False))
        for place, name in enumerate(node.output[len(results) :], start=len(results) + 1):
            self.unread[name] = f"reads output {place} of a {kind} node; only the first output is supported"

    def _fold(self, call: Call) -> None:
        with np.errstate(over="raise", under="raise"):
            results = fold(call)
        for name, value in zip(call.node.output, results, strict=False):
            self.room -= value.size if value.flags.owndata else 0
            if not np.isfinite(value).all():
                raise ConversionError("its result is NaN or infinite")
            self.constants[name] = value
            self.roundings[name] = count_roundings(call, value)

    def _drop_activation(self, call: Call) -> None:
        """Pass the logits through: a sigmoid, and a softmax over all classes, keep the order of the logits."""
        kind, shape = call.node.op_type, call.shape
        if kind != "Sigmoid":
            axis = call.attribute("axis", 1 if call.opset < 13 else -1)
            if not -len(shape) <= axis < len(shape):
                raise ConversionError(f"axis {axis} does not exist in shape {list(shape)}")
            axis %= len(shape)
            covered = prod(shape[axis:]) if call.opset < 13 else shape[axis]
            if covered != prod(shape):
                raise ConversionError(f"runs along axis {axis} of {list(shape)}, not over all classes; use axis=-1")
            if prod(shape) == 1:
                raise ConversionError("has a single class, so its result is constant; export the logits before it")
        self.numbers[call.node.output[0]] = call.variables[0]
        self.notes.append(f"final {kind} dropped: labels and gradients are those of the logits before it")

    def finish(self) -> Graph:
        """The graph of the nodes that the output needs."""
        name, output = self.file.path.name, self.file.output
        if output not in self.numbers:
            raise ModelError(f"{name}: output '{output}' does not depend on the image; export the whole classifier")
        last = self.numbers[output]
        shape = self.draft.shape_of(last)
        if sorted(shape)[:-1] != [1] * (len(shape) - 1):
            raise ModelError(f"{name}: the output has shape {list(shape)}; expected one row of logits, such as [1, 10]")
        if prod(shape) > MAX_CLASSES:
            raise ModelError(
                f"{name}: has {prod(shape)} logits; at most {MAX_CLASSES} are supported: export fewer classes"
            )
        if prod(shape) == 1:
            # The logits (0, z): class 1 where z is positive.
            last = replace(self.draft, name="binary").add(Select(np.array([-1, 0]), (1, 2)), last)
            self.notes.append(
                "single output: class 1 where the logit is above 0 (sigmoid above 0.5), else class 0; the logits are "
                "(0, output)"
            )
        return Graph(self.layout.image_shape, _needed(self.nodes, last), tuple(self.notes))


def _why_single(call: Call) -> str:
    """Why an operator may have only one input that depends on the image."""
    kind = call.node.op_type
    if kind not in PRODUCTS or None in call.numbers[:2]:
        return "only its first input may depend on the image; the others must be constants"
    verb = "divides" if kind == "Div" else "multiplies"
    return (
        f"{verb} values that both depend on the image, which is not piecewise linear; only constants are supported on "
        "one side. Replace it, or verify the part before it"
    )


def _needed(nodes: list[Node], last: int) -> tuple[Node, ...]:
    """The nodes that value number `last` needs, numbered again."""
    is_needed = [False] * (last + 1)
    is_needed[last] = True
    for number in range(last, 0, -1):
        if is_needed[number]:
            for source in nodes[number - 1].inputs:
                is_needed[source] = True
    numbers, kept = {0: 0}, list[Node]()
    for number, node in enumerate(nodes[:last], start=1):
        if is_needed[number]:
            kept.append(replace(node, inputs=tuple(numbers[source] for source in node.inputs)))
            numbers[number] = len(kept)
    return tuple(kept)
