"""Converters of Resize and Upsample: the nearest entry, or linear interpolation along each axis.

For linear interpolation, coordinates are rational numbers, so each weight is rounded once. For the nearest entry,
coordinates are float32 as in onnxruntime, because rounding decides which entry is the nearest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, prod
from typing import Any, TypeAlias

import numpy as np

from ..onnx_file import MAX_ELEMENTS
from ..operators import Array, Operator, ShapeError, WeightedSum
from .call import Call, ConversionError, check_entries, entries_of, normal_axes
from .moves import choose

Number: TypeAlias = Any
"""A fraction or a float32 number."""

TIE = 1e-6
"""onnxruntime sees a tie between two entries within this distance of the middle."""

NEAREST_MODES = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@dataclass(frozen=True)
class Axis:
    """The lengths of one axis before and after, and the scale: after / before, up to rounding."""

    old: int
    new: int
    scale: float

    def numbers(self, kind: Callable[[float], Number]) -> tuple[Number, Number, Number]:
        """Old length, new length and scale as numbers of a kind."""
        return kind(self.old), kind(self.new), kind(self.scale)


def _half_pixel(x: Number, old: Number, new: Number, scale: Number, kind: Callable[[float], Number]) -> Number:
    return (x + kind(0.5)) / scale - kind(0.5)


def _pytorch(x: Number, old: Number, new: Number, scale: Number, kind: Callable[[float], Number]) -> Number:
    return _half_pixel(x, old, new, scale, kind) if new > 1 else kind(0.0)


def _symmetric(x: Number, old: Number, new: Number, scale: Number, kind: Callable[[float], Number]) -> Number:
    offset = old / kind(2.0) * (kind(1.0) - new / (scale * old))
    wide: Callable[[Any], Number] = Fraction if kind is Fraction else float  # onnxruntime computes this line in float64
    return kind(wide(offset) + (wide(x) + wide(0.5)) / wide(scale) - wide(0.5))


def _asymmetric(x: Number, old: Number, new: Number, scale: Number, kind: Callable[[float], Number]) -> Number:
    return x / scale


def _corners(x: Number, old: Number, new: Number, scale: Number, kind: Callable[[float], Number]) -> Number:
    return kind(0.0) if new == 1 else x * (old - kind(1.0)) / (new - kind(1.0))


COORDINATES = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": _pytorch,
    "align_corners": _corners,
    "asymmetric": _asymmetric,
}


def resize(call: Call) -> list[Operator]:
    """Resize in mode nearest or linear, with constant scales or sizes; Upsample."""
    call.require_variable_first()
    call.refuse_rounded()
    mode = call.attribute("mode", "nearest")
    transformation = call.attribute(
        "coordinate_transformation_mode", "half_pixel" if call.opset >= 11 else "asymmetric"
    )
    if mode not in ("nearest", "linear"):
        raise ConversionError(f"has mode '{mode}'; supported: nearest and linear")
    if transformation not in COORDINATES:
        raise ConversionError(
            f"has coordinate_transformation_mode '{transformation}'; supported: {', '.join(COORDINATES)}"
        )
    for name, usual in (("antialias", 0), ("exclude_outside", 0), ("keep_aspect_ratio_policy", "stretch")):
        if call.attribute(name, usual) != usual:
            raise ConversionError(f"has {name} {call.attribute(name, usual)}; supported: {usual}")
    axes = _lengths(call)
    if all(axis.old == axis.new and axis.scale == 1.0 for axis in axes):
        return []
    check_entries(prod(axis.new for axis in axes))
    if mode == "nearest":
        return _nearest(call, axes, transformation)
    return _linear(call, axes, transformation)


def _lengths(call: Call) -> list[Axis]:
    """Old and new length and scale of every axis."""
    rank = len(call.shape)
    is_old = call.opset < 11
    scales = call.constant(1 if is_old else 2)
    sizes = None if is_old else call.constant(3)
    listed = call.attribute("axes", None)
    axes = list(range(rank)) if listed is None else [axis % rank for axis in listed if normal_axes(listed, rank)]
    found = [Axis(size, size, 1.0) for size in call.shape]
    if sizes is not None and sizes.size:
        numbers: Sequence[float] = [int(size) for size in np.ravel(sizes)]
    elif scales is not None and scales.size:
        numbers = [float(np.float32(scale)) for scale in np.ravel(scales)]
    else:
        raise ConversionError("its scales or sizes must be constants")
    if len(numbers) != len(axes) or not all(0.0 < number <= MAX_ELEMENTS for number in numbers):
        raise ShapeError(f"scales or sizes {list(numbers)} do not fit a value of shape {list(call.shape)}")
    for axis, number in zip(axes, numbers, strict=True):
        old = call.shape[axis]
        if isinstance(number, int):
            found[axis] = Axis(old, number, float(np.float32(number) / np.float32(old)))
        else:
            found[axis] = Axis(old, floor(np.float32(number) * np.float32(old)), number)
    if min(axis.new for axis in found) < 1:
        raise ShapeError(f"scales or sizes {list(numbers)} leave nothing of shape {list(call.shape)}")
    return found


def _nearest(call: Call, axes: list[Axis], transformation: str) -> list[Operator]:
    rounding = call.attribute("nearest_mode", "round_prefer_floor" if call.opset >= 11 else "simple")
    if rounding not in NEAREST_MODES and call.opset >= 11:
        raise ConversionError(f"has nearest_mode '{rounding}'; supported: {', '.join(NEAREST_MODES)}")
    index = entries_of(call.shape)
    for number, axis in enumerate(axes):
        if axis.old != axis.new or axis.scale != 1.0:
            index = np.take(index, _nearest_places(axis, transformation, rounding), axis=number)
            check_entries(index.size)
    return choose(index)


def _nearest_places(axis: Axis, transformation: str, rounding: str) -> np.ndarray:
    """For each new place along an axis, the entry that it copies."""
    numbers = axis.numbers(np.float32)
    places = []
    for x in range(axis.new):
        at = float(COORDINATES[transformation](np.float32(x), *numbers, np.float32))
        below, above = floor(at), -floor(-at)
        is_tie = abs(at - below - 0.5) <= TIE
        if rounding == "floor":
            place = below
        elif rounding == "ceil":
            place = above
        elif rounding == "simple":
            place = above if axis.scale < 1.0 else int(at)
        elif is_tie:
            place = below if rounding == "round_prefer_floor" else above
        else:
            place = floor(at + 0.5)
        places.append(min(max(place, 0), axis.old - 1))
    return np.array(places)


def _linear(call: Call, axes: list[Axis], transformation: str) -> list[Operator]:
    index, weights = entries_of(call.shape)[..., None], np.ones((*call.shape, 1))
    rounded = 0
    resized = [number for number, axis in enumerate(axes) if axis.old != axis.new or axis.scale != 1.0]
    check_entries(prod(axis.new for axis in axes) * 2 ** len(resized))
    for number in resized:
        (low, high), shares, is_exact = _interpolation(axes[number], transformation)
        rounded += 0 if is_exact else 1
        along = shares.reshape(2, *(-1 if axis == number else 1 for axis in range(len(axes))), 1)
        ends = [np.take(index, low, axis=number), np.take(index, high, axis=number)]
        parts = [np.take(weights, end, axis=number) * share for end, share in zip((low, high), along, strict=True)]
        index, weights = np.concatenate(ends, axis=-1), np.concatenate(parts, axis=-1)
    rounded += max(len(resized) - 1, 0)  # products of weights
    shape, taps = index.shape[:-1], index.shape[-1]
    return [WeightedSum(index.reshape(-1, taps), weights.reshape(-1, taps), shape, read_roundings=rounded)]


def _interpolation(axis: Axis, transformation: str) -> tuple[tuple[np.ndarray, np.ndarray], Array, bool]:
    """Lower and upper entry of each new place, their weights (2, n), and whether all weights are float64 numbers."""
    scale = Fraction(axis.scale) if not _is_ratio(axis) else Fraction(axis.new, axis.old)
    low, high, shares = [], [], []
    for x in range(axis.new):
        at = COORDINATES[transformation](Fraction(x), Fraction(axis.old), Fraction(axis.new), scale, Fraction)
        inside = min(max(Fraction(at), Fraction(0)), Fraction(axis.old - 1))
        low.append(floor(inside))
        high.append(min(low[-1] + 1, axis.old - 1))
        shares.append((1 - (inside - low[-1]), inside - low[-1]))
    weights = np.array([[float(share) for share in pair] for pair in shares]).T
    is_exact = all(Fraction(float(share)) == share for pair in shares for share in pair)
    return (np.array(low), np.array(high)), weights, is_exact


def _is_ratio(axis: Axis) -> bool:
    """Whether the scale equals the quotient of the lengths in float32: the exact quotient is then used."""
    return axis.scale == float(np.float32(axis.new) / np.float32(axis.old))
