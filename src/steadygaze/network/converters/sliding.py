"""Converters of operators with sliding windows: convolutions, transposed convolutions, pooling."""

from collections.abc import Sequence
from math import prod

import numpy as np

from ..joins import Winner
from ..onnx_file import MAX_ELEMENTS
from ..operators import Array, Operator, Select, Shape, ShapeError
from ..windows import AveragePool, Conv, Window
from .affine import spatial_axes
from .call import Call, ConversionError, check_entries, entries_of
from .maxima import maximum_over

MAX_PLACES = 2**16
"""The most places of a window: a forward pass visits each."""

AUTO_PADS = ("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")


def window(call: Call, kernel: Sequence[int], *, is_pool: bool) -> Window:
    """The window that the attributes of Conv and of pooling operators describe."""
    rank = len(kernel)
    strides, dilations, pads = _spacing(call, kernel)
    auto = _auto_pad(call)
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        if is_pool and max(dilations) > 1:
            raise ConversionError(
                f"has auto_pad {auto} with dilations {list(dilations)}, for which onnxruntime and the ONNX standard "
                "differ; export it with explicit pads"
            )
        before, after = [], []
        for size, k, s, d in zip(call.shape[2:], kernel, strides, dilations, strict=True):
            missing = max((-(-size // s) - 1) * s + d * (k - 1) + 1 - size, 0)
            before.append(missing // 2 if auto == "SAME_UPPER" else missing - missing // 2)
            after.append(missing - before[-1])
        pads = (*before, *after)
    elif auto == "VALID":
        pads = (0,) * (2 * rank)
    ceil = bool(is_pool and call.attribute("ceil_mode", 0))
    found = Window(tuple(kernel), strides, dilations, pads[:rank], pads[rank:], ceil)
    check_entries(prod(found.positions(call.shape[2:])) * prod(kernel))
    return found


def _spacing(call: Call, kernel: Sequence[int]) -> tuple[Shape, Shape, Shape]:
    """Strides, dilations and pads, checked against the window and the value."""
    rank = len(kernel)
    strides = tuple(call.attribute("strides", [1] * rank))
    dilations = tuple(call.attribute("dilations", [1] * rank))
    pads = tuple(call.attribute("pads", [0] * 2 * rank))
    if rank not in (1, 2) or len(call.shape) != rank + 2:
        raise ConversionError(
            f"has a window of {list(kernel)} over a value of shape {list(call.shape)}; supported: 1-D and 2-D windows"
        )
    if len(strides) != rank or len(dilations) != rank or len(pads) != 2 * rank:
        raise ShapeError(f"strides, dilations or pads do not fit a window of {list(kernel)}")
    if min((*kernel, *strides, *dilations)) < 1 or min(pads) < 0:
        raise ShapeError("kernel, strides and dilations must be positive, pads not negative")
    if max((*strides, *dilations, *pads)) > MAX_ELEMENTS:
        raise ShapeError(f"strides, dilations or pads exceed {MAX_ELEMENTS:.3g}")
    if prod(kernel) > MAX_PLACES:
        raise ShapeError(f"has a window of {prod(kernel):.3g} places; at most {MAX_PLACES:,} are supported")
    return strides, dilations, pads


def _auto_pad(call: Call) -> str:
    auto = call.attribute("auto_pad", "NOTSET")
    if auto not in AUTO_PADS:
        raise ConversionError(f"has auto_pad '{auto}'; supported: NOTSET, SAME_UPPER, SAME_LOWER and VALID")
    return auto


def _weight_and_bias(call: Call, outputs_axis: int) -> tuple[Array, Array, int]:
    """Weight, bias (zero if missing) and groups; outputs_axis is the axis of the weight that counts outputs."""
    call.require_variable_first()
    weight = call.floats(1, "weight")
    if tuple(call.attribute("kernel_shape", weight.shape[2:])) != tuple(weight.shape[2:]):
        raise ShapeError(f"kernel_shape does not fit a weight of shape {list(weight.shape)}")
    groups = call.attribute("group", 1)
    if groups < 1 or weight.ndim < 3 or weight.shape[0] % groups:
        raise ShapeError(f"{groups} group(s) do not fit a weight of shape {list(weight.shape)}")
    outputs = weight.shape[outputs_axis] * (groups if outputs_axis else 1)
    bias = call.floats(2, "bias") if call.is_given(2) else np.zeros(outputs)
    if bias.shape != (outputs,):
        raise ShapeError(f"a bias of shape {list(bias.shape)} does not fit a weight of shape {list(weight.shape)}")
    return weight, bias, groups


def conv(call: Call) -> list[Operator]:
    """Convolution with constant weight and bias."""
    weight, bias, groups = _weight_and_bias(call, 0)
    return [Conv(weight, bias, window(call, weight.shape[2:], is_pool=False), groups)]


def conv_transpose(call: Call) -> list[Operator]:
    """Transposed convolution: zeros between and around the pixels, then a convolution with the mirrored weight."""
    weight, bias, groups = _weight_and_bias(call, 1)
    inputs, outputs, *kernel = weight.shape
    strides, dilations, _ = _spacing(call, kernel)
    if call.shape[1] != inputs:
        raise ShapeError(f"a weight of shape {list(weight.shape)} does not fit {list(call.shape)}")
    before, sizes = _transposed_sizes(call, kernel)
    blocks = weight.reshape(groups, inputs // groups, outputs, *kernel).swapaxes(1, 2)
    mirrored = np.flip(
        blocks.reshape(groups * outputs, inputs // groups, *kernel), axis=tuple(range(2, len(kernel) + 2))
    )
    shape = (*call.shape[:2], *(size + d * (k - 1) for size, d, k in zip(sizes, dilations, kernel, strict=True)))
    check_entries(prod(shape))
    index = entries_of(call.shape)
    for axis, (stride, cut) in enumerate(zip(strides, before, strict=True), start=2):
        index = _spread(index, axis, stride, dilations[axis - 2] * (kernel[axis - 2] - 1) - cut, shape[axis])
    plain = Window(tuple(kernel), (1,) * len(kernel), dilations, (0,) * len(kernel), (0,) * len(kernel))
    check_entries(prod(sizes) * prod(kernel))
    return [Select(index.ravel(), shape), Conv(np.ascontiguousarray(mirrored), bias, plain, groups)]


def _spread(index: np.ndarray, axis: int, stride: int, first: int, length: int) -> np.ndarray:
    """Move the entries of an index along an axis to first, first + stride, …, with −1 elsewhere, cut to a length."""
    places = first + stride * np.arange(index.shape[axis])
    inside = np.flatnonzero((places >= 0) & (places < length))
    spread = np.full((*index.shape[:axis], length, *index.shape[axis + 1 :]), -1, dtype=np.int64)
    np.moveaxis(spread, axis, 0)[places[inside]] = np.moveaxis(index, axis, 0)[inside]
    return spread


def _transposed_sizes(call: Call, kernel: Sequence[int]) -> tuple[list[int], list[int]]:
    """The rows cut before the result along each spatial axis, and the result's sizes."""
    strides, dilations, pads = _spacing(call, kernel)
    rank, auto = len(kernel), _auto_pad(call)
    extra = list(call.attribute("output_padding", [0] * rank))
    wanted = call.attribute("output_shape", None)
    if len(extra) != rank or min(extra) < 0 or max(extra) > MAX_ELEMENTS:
        raise ShapeError(f"output_padding {extra} does not fit a window of {list(kernel)}")
    if wanted is not None and len(wanted) != rank:
        raise ShapeError(f"output_shape {list(wanted)} does not fit a window of {list(kernel)}")
    before, sizes = [], []
    for axis, (size, k, s, d) in enumerate(zip(call.shape[2:], kernel, strides, dilations, strict=True)):
        full = s * (size - 1) + extra[axis] + d * (k - 1) + 1
        cut = (pads[axis], pads[axis + rank]) if auto == "NOTSET" else (0, 0)
        if wanted is not None or auto in ("SAME_UPPER", "SAME_LOWER"):
            target = size * s if wanted is None else wanted[axis]
            total = full - target
            if total < 0:
                raise ConversionError(
                    f"would fill only {full} of {target} rows, for which onnxruntime and the ONNX standard differ; "
                    "export it with explicit pads"
                )
            first = total // 2 if auto == "SAME_UPPER" else total - total // 2
            cut = (first, total - first)
        before.append(cut[0])
        sizes.append(full - sum(cut))
    if min(sizes) < 1:
        raise ShapeError(f"pads or output_shape leave nothing of shape {list(call.shape)}")
    if max(sizes) > MAX_ELEMENTS:
        raise ShapeError(f"its result of sizes {sizes} is too large; at most {MAX_ELEMENTS:.3g} numbers are supported")
    return before, sizes


def average_pool(call: Call) -> list[Operator]:
    """Mean over a window."""
    kernel = call.attribute("kernel_shape", [])
    return [AveragePool(window(call, kernel, is_pool=True), bool(call.attribute("count_include_pad", 0)))]


def max_pool(call: Call) -> list[Operator]:
    """Maximum over a window; the padding never wins."""
    if call.attribute("storage_order", 0):
        raise ConversionError("has storage_order 1; only row-major order (0) is supported")
    kernel = call.attribute("kernel_shape", [])
    geometry = window(call, kernel, is_pool=True)
    blocks, spatial = prod(call.shape[:2]), call.shape[2:]
    counts = geometry.positions(spatial)
    check_entries(blocks * prod(counts) * prod(kernel))
    pixels = geometry.pixels(spatial)
    # Move the pixels of each window to the front, in their order.
    pixels = np.take_along_axis(pixels, np.argsort(pixels < 0, axis=1, kind="stable"), axis=1)
    pixels = pixels[:, : int((pixels >= 0).sum(axis=1).max())]
    if (pixels[:, :1] < 0).any():
        raise ShapeError("a pooling window lies entirely in the padding")
    moved = pixels + np.arange(blocks)[:, None, None] * prod(spatial)
    index = np.where(pixels < 0, -1, moved).reshape(-1, pixels.shape[1])
    return [Winner(index, (*call.shape[:2], *counts))]


def global_max_pool(call: Call) -> list[Operator]:
    """Maximum over all pixels of each channel."""
    return [maximum_over(call.shape, spatial_axes(call))]
