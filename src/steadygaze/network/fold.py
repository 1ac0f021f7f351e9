"""Constants computed from constants: the shape arithmetic that exporters leave around a Reshape, and moved weights.

Integers stay int64, floats float64; roundings of these are counted. The shape of a value that depends on the image is a
constant too: its batch counts as 1. Every result is measured before it is allocated.
"""

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from .convert import CONVERTERS, Call, ConversionError, is_exact_product
from .onnx_file import FLOAT_TYPES, INTEGER_TYPES, MAX_ELEMENTS, tensor_array
from .operators import ShapeError

# Operators that mean the same for a constant as for a value that depends on the image, and only move numbers.
MOVES = ("Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")


def fold(call: Call) -> np.ndarray:
    """Result of a node whose inputs are constants (or of Shape, for any input); raises ConversionError."""
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
    """How often the result of `fold` is rounded, relative to its own size, what its inputs were rounded included.

    Sums of rounded numbers may cancel, and a cast to integers may jump: both are refused. At most one is counted for
    the node itself; 0 if its result is surely exact.
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
    match kind:
        case "Mul":
            is_exact = is_exact_product(left, right)
        case "Div":
            is_exact = is_exact_product(result, right) and bool((result * right == left).all())
        case _:
            is_exact = _is_exact_sum(left, right if kind == "Add" else -right)
    return call.roundings + (0 if is_exact else 1)


def _is_exact_sum(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether sums are float64 numbers: their rounding errors are, and can be computed (Knuth's TwoSum)."""
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
    raise ConversionError("holds neither a tensor nor numbers")


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
        # A negative end counts from the back; one before the first entry, going down, means "to the very first".
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
        raise ConversionError(f"asks for the shape {sizes}")
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
