"""Folds constants: rearranged weights, and the shape arithmetic that exporters leave around Reshape and Resize.

Integers stay int64, floats stay float64, and roundings of floats are counted. The size of every result is checked
before allocation.
"""

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from ..onnx_file import FLOAT_TYPES, INTEGER_TYPES, DataType, tensor_array
from ..operators import ShapeError
from . import CHAINS
from .call import Call, ConversionError, is_exact_product, is_exact_sum, normal_axes
from .moves import split

# Operators that only move numbers: they act on a constant as on a value that depends on the image.
# fmt: off
MOVES = (
    "DepthToSpace", "Expand", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice", "SpaceToDepth", "Squeeze",
    "Tile", "Transpose", "Unsqueeze",
)
# fmt: on

# Functions that jump: their result for a rounded number may be off by any amount.
JUMPS = ("Ceil", "Equal", "Floor", "Greater", "Less", "Range", "Round", "Where")


def fold(call: Call) -> list[np.ndarray]:
    """The outputs of a node whose inputs are constants, or of Shape and Size for any input; raises ConversionError."""
    kind = call.node.op_type
    if kind.startswith("Random") or kind in ("Bernoulli", "Multinomial"):
        raise ConversionError("draws other numbers in every run; remove the noise, or use it in training only")
    if kind not in FOLDS and kind not in MOVES and kind != "Split":
        raise ConversionError(
            f"is {kind} of constants, which is not supported; simplify the model (constant folding) on export, or "
            "replace the layer: attention layers, for example, are not piecewise linear"
        )
    try:
        if kind == "Split":
            return _split(call)
        return [_move(call) if kind in MOVES else np.asarray(FOLDS[kind](call))]
    except (ConversionError, ShapeError):
        raise
    except (IndexError, TypeError, OverflowError, ValueError) as error:
        raise ConversionError(f"its constants do not fit together: {error}") from None


def count_roundings(call: Call, result: np.ndarray) -> int:
    """How often the result of `fold` is rounded, relative to its own size: the roundings of the inputs, plus its own.

    Sums of rounded numbers may cancel, and a cast to integers may jump: both are refused. The node itself counts 1, or
    0 if its result is known to be exact.
    """
    kind, is_float = call.node.op_type, result.dtype.kind == "f"
    if kind in ("Shape", "Size"):
        return 0
    if call.roundings and (kind in ("Add", "Sub", "ReduceSum", *JUMPS) or not is_float):
        raise ConversionError("is computed from rounded constants; simplify the model (constant folding) on export")
    if kind not in ("Add", "Sub", "Mul", "Div") or not is_float:
        return call.roundings
    left, right = call.floats(0, "input"), call.floats(1, "input")
    if kind == "Mul":
        is_exact = is_exact_product(left, right)
    elif kind == "Div":
        is_exact = is_exact_product(result, right) and bool((result * right == left).all())
    else:
        is_exact = is_exact_sum(left, right if kind == "Add" else -right)
    return call.roundings + (0 if is_exact else 1)


def _move(call: Call) -> np.ndarray:
    value = call.needed(0, "input")
    moved = replace(call, shape=value.shape, position=0)
    result = value[None]
    for operator in CHAINS[call.node.op_type](moved):
        call.check_room(prod(operator.output_shape(result.shape[1:])))
        result = operator.apply(result)
    return result[0]


def _split(call: Call) -> list[np.ndarray]:
    value = call.needed(0, "input")
    moved = replace(call, shape=value.shape, position=0)
    return [operators[0].apply(value[None])[0] for operators in split(moved)]


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


def _shape_of(call: Call) -> tuple[int, ...]:
    return call.shape if call.number is not None else call.needed(0, "input").shape


def _shape(call: Call) -> np.ndarray:
    sizes = _shape_of(call)
    return np.asarray(sizes[call.attribute("start", 0) : call.attribute("end", None)], dtype=np.int64)


def _size(call: Call) -> np.ndarray:
    return np.asarray(prod(_shape_of(call)), dtype=np.int64)


def _concat(call: Call) -> np.ndarray:
    parts = [call.needed(i, "parts") for i in range(len(call.constants))]
    call.check_room(sum(part.size for part in parts))
    return np.concatenate(parts, axis=call.attribute("axis", 0))


def _cast(call: Call) -> np.ndarray:
    target = call.attribute("to", 0)
    if target in FLOAT_TYPES:
        return call.needed(0, "input").astype(np.float64, copy=False)
    if target == DataType.BOOL:
        return (call.needed(0, "input") != 0).astype(np.int64)
    if target in INTEGER_TYPES:
        return call.needed(0, "input").astype(np.int64, copy=False)
    raise ConversionError("casts to a type that is neither float nor integer")


def _constant_of_shape(call: Call) -> np.ndarray:
    sizes = [int(size) for size in np.ravel(call.needed(0, "shape"))]
    if min(sizes, default=0) < 0:
        raise ConversionError(f"has the invalid shape {sizes}")
    call.check_room(prod(sizes))
    value = call.attribute("value", None)
    fill = np.zeros(1) if value is None else tensor_array(value, call.file_name)
    return np.full(sizes, np.ravel(fill)[0])


def _range(call: Call) -> np.ndarray:
    start, limit, step = (np.ravel(call.needed(i, what))[0] for i, what in enumerate(("start", "limit", "delta")))
    if not all(float(number).is_integer() for number in (start, limit, step)) or step == 0:
        raise ConversionError("its start, limit and delta must be integers, and delta not 0")
    call.check_room(max(0, int(limit - start) // int(step) + 1))
    return np.arange(start, limit, step)


def _where(call: Call) -> np.ndarray:
    condition, yes, no = (call.needed(i, "input") for i in range(3))
    call.check_room(prod(np.broadcast_shapes(condition.shape, yes.shape, no.shape)))
    return np.where(condition != 0, yes, no)


def _reduced(function: Callable[..., np.ndarray]) -> Callable[[Call], np.ndarray]:
    """A reduction of integers; floats are refused, because their roundings would have to be counted."""

    def compute(call: Call) -> np.ndarray:
        value, axes = call.needed(0, "input"), call.integers("axes", 1)
        if value.dtype.kind != "i":
            raise ConversionError(
                "reduces constants other than integers; simplify the model (constant folding) on export"
            )
        if not axes and call.attribute("noop_with_empty_axes", 0):
            return value
        over = normal_axes(axes, value.ndim) if axes else tuple(range(value.ndim))
        return function(value, axis=over, keepdims=bool(call.attribute("keepdims", 1)))

    return compute


def _arithmetic(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[[Call], np.ndarray]:
    """A function of two constants, applied from left to right if there are more."""

    def compute(call: Call) -> np.ndarray:
        parts = [call.needed(i, "input") for i in range(len(call.constants))]
        call.check_room(prod(np.broadcast_shapes(*(part.shape for part in parts))))
        result = parts[0]
        for part in parts[1:]:
            result = function(result, part)
        return np.asarray(result)

    return compute


def _each(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[Call], np.ndarray]:
    """A function of each number."""
    return lambda call: np.asarray(function(call.needed(0, "input")))


def _divide(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    if not right.all():
        raise ConversionError("divides by zero")
    if left.dtype == np.int64 and right.dtype == np.int64:
        return (np.sign(left) * np.sign(right)) * (np.abs(left) // np.abs(right))  # ONNX rounds towards zero
    return left / right


def _modulo(call: Call) -> np.ndarray:
    left, right = call.needed(0, "input"), call.needed(1, "input")
    if left.dtype.kind != "i" or right.dtype.kind != "i" or not right.all():
        raise ConversionError("needs integers, and a divisor that is not 0")
    call.check_room(prod(np.broadcast_shapes(left.shape, right.shape)))
    return np.fmod(left, right) if call.attribute("fmod", 0) else np.mod(left, right)


def _compare(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[[Call], np.ndarray]:
    return _arithmetic(lambda left, right: function(left, right).astype(np.int64))


FOLDS: dict[str, Callable[[Call], np.ndarray]] = {
    "Abs": _each(np.abs),
    "Add": _arithmetic(np.add),
    "Cast": _cast,
    "Ceil": _each(np.ceil),
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Div": _arithmetic(_divide),
    "Equal": _compare(np.equal),
    "Floor": _each(np.floor),
    "Greater": _compare(np.greater),
    "Less": _compare(np.less),
    "Max": _arithmetic(np.maximum),
    "Min": _arithmetic(np.minimum),
    "Mod": _modulo,
    "Mul": _arithmetic(np.multiply),
    "Neg": _each(np.negative),
    "Range": _range,
    "ReduceMax": _reduced(np.max),
    "ReduceMin": _reduced(np.min),
    "ReduceProd": _reduced(np.prod),
    "ReduceSum": _reduced(np.sum),
    "Shape": _shape,
    "Size": _size,
    "Sub": _arithmetic(np.subtract),
    "Where": _where,
}
