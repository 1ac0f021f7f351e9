"""Converters of operators that are affine in one value: arithmetic with constants, products, normalisation, means."""

from math import prod

import numpy as np

from ..operators import Array, LeftMatMul, MatMul, Mean, Operator, Reshape, ScaleShift, ShapeError, Total, Transpose
from .call import Call, ConversionError, is_exact_product, normal_axes
from .moves import refuse_training


def add(call: Call) -> list[Operator]:
    """A value plus a constant."""
    return [ScaleShift(offset=call.other("other summand"))]


def subtract(call: Call) -> list[Operator]:
    """A value minus a constant, or a constant minus a value."""
    if call.position == 0:
        return [ScaleShift(offset=-call.floats(1, "subtrahend"))]
    return [ScaleShift(gain=-1.0, offset=call.floats(0, "minuend"))]


def multiply(call: Call) -> list[Operator]:
    """A value times a constant."""
    return [ScaleShift(gain=call.other("other factor"))]


def divide(call: Call) -> list[Operator]:
    """A value divided by a constant."""
    if call.position != 0:
        raise ConversionError("divides by a value that depends on the image, which is not piecewise linear")
    divisor = call.floats(1, "divisor")
    if not divisor.all():
        raise ConversionError("divides by zero")
    return [ScaleShift(divisor=divisor)]


def negate(call: Call) -> list[Operator]:
    """−x."""
    return [ScaleShift(gain=-1.0)]


def _matrix(values: Array, rank: int) -> Array:
    """Weight with two axes; drops leading axes of length 1 if the value has them too."""
    if values.ndim > 2 and rank >= values.ndim and set(values.shape[:-2]) == {1}:
        values = values.reshape(values.shape[-2:])
    if values.ndim != 2:
        raise ConversionError(f"its constant has shape {list(values.shape)}; expected a matrix")
    return values


def matmul(call: Call) -> list[Operator]:
    """A matrix product with a constant on either side."""
    weight = _matrix(call.other("other factor"), len(call.shape))
    return [MatMul(weight, np.zeros(weight.shape[1])) if call.position == 0 else LeftMatMul(weight)]


def gemm(call: Call) -> list[Operator]:
    """alpha · A · B + beta · C with constants B and C."""
    if call.position != 0:
        raise ConversionError("its first input must depend on the image; weight and bias must be constants")
    if len(call.shape) != 2:
        raise ShapeError(f"its input has shape {list(call.shape)}; expected two axes")
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
    return [*steps, plain, ScaleShift(offset=added, read_roundings=rounded)]


def batch_normalization(call: Call) -> list[Operator]:
    """BatchNormalization in inference, with the stored mean and variance."""
    call.require_variable_first()
    # Before opset 14, further outputs are the statistics that training updates.
    refuse_training(call.attribute("training_mode", 0) or (call.opset < 14 and any(call.node.output[1:])))
    call.refuse_rounded()
    names = ("scale", "bias", "mean", "variance")
    scale, bias, mean, variance = (call.floats(i + 1, name) for i, name in enumerate(names))
    channels = call.shape[1] if len(call.shape) > 1 else 1
    if any(v.shape != (channels,) for v in (scale, bias, mean, variance)):
        raise ShapeError(f"its constants need one number for each channel of {list(call.shape)}")
    epsilon = float(call.attribute("epsilon", 1e-5))
    if (variance + epsilon <= 0).any():
        raise ConversionError("has a variance that is not positive; train or export the model again")
    axes = (channels, *(1,) * (len(call.shape) - 2))
    gain, offset, mean, variance = (v.reshape(axes) for v in (scale, bias, mean, variance))
    return [ScaleShift(mean=mean, gain=gain, variance=variance, epsilon=epsilon, offset=offset)]


def reduced_axes(call: Call) -> tuple[int, ...] | None:
    """The axes over which a reduction runs; None if it changes nothing."""
    call.require_variable_first()
    given = call.integers("axes", 1)
    if not given and call.attribute("noop_with_empty_axes", 0):
        return None
    return normal_axes(given, len(call.shape)) if given else tuple(range(len(call.shape)))


def drop_axes(call: Call, axes: tuple[int, ...]) -> list[Operator]:
    """The operators after a reduction that keeps its axes with length 1: none, or a Reshape that drops these axes."""
    if call.attribute("keepdims", 1):
        return []
    return [Reshape(tuple(size for axis, size in enumerate(call.shape) if axis not in axes))]


def reduce_mean(call: Call) -> list[Operator]:
    """Mean over some axes."""
    axes = reduced_axes(call)
    return [] if axes is None else [Mean(axes), *drop_axes(call, axes)]


def reduce_sum(call: Call) -> list[Operator]:
    """Sum over some axes."""
    axes = reduced_axes(call)
    return [] if axes is None else [Total(axes), *drop_axes(call, axes)]


def global_average_pool(call: Call) -> list[Operator]:
    """Mean over all pixels of each channel."""
    return [Mean(spatial_axes(call))]


def spatial_axes(call: Call) -> tuple[int, ...]:
    """All axes after batch and channels; ShapeError if there are none."""
    if len(call.shape) < 3 or prod(call.shape[2:]) < 1:
        raise ShapeError(f"a value of shape {list(call.shape)} has no pixels; expected [N, C, H, W]")
    return tuple(range(2, len(call.shape)))
