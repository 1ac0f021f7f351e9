"""Evaluates a graph over the real numbers: its constants are floats, everything else is exact.

Operators follow their definitions, on arrays of rationals; a mean divides by a whole number. The operators between two
ReLUs become one matrix of integers over a common denominator, from their images of zero and of the unit vectors.
Slow: for networks of a few dozen neurons.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import lcm, prod

import numpy as np

from steadygaze.network.graph import Graph
from steadygaze.network.operators import LeftMatMul, MatMul, Mean, Operator, Pad, Relu, Reshape, ScaleShift, Transpose
from steadygaze.network.windows import AveragePool, Conv, Window
from support.oracles.exact_numbers import as_fractions


@dataclass(frozen=True, eq=False)
class Whole:
    """Rationals as integers over one positive denominator."""

    numbers: np.ndarray
    denominator: int

    @classmethod
    def of(cls, values: np.ndarray) -> "Whole":
        """An array of rationals."""
        scale = lcm(*(value.denominator for value in values.ravel()))
        numbers = np.empty(values.size, dtype=object)
        numbers[:] = [value.numerator * (scale // value.denominator) for value in values.ravel()]
        return cls(numbers.reshape(values.shape), scale)

    def __matmul__(self, other: "Whole") -> "Whole":
        return Whole(self.numbers @ other.numbers, self.denominator * other.denominator)

    def __add__(self, other: "Whole") -> "Whole":
        scale = lcm(self.denominator, other.denominator)
        ours, theirs = (part.numbers * (scale // part.denominator) for part in (self, other))
        return Whole(ours + theirs, scale)

    def times(self, mask: np.ndarray) -> "Whole":
        """Every number times the 0 or 1 at its place."""
        return Whole(self.numbers * mask.astype(object), self.denominator)

    def rationals(self) -> np.ndarray:
        """The values as an object array of rationals."""
        values = np.empty(self.numbers.size, dtype=object)
        values[:] = [Fraction(int(number), self.denominator) for number in self.numbers.ravel()]
        return values.reshape(self.numbers.shape)


@dataclass(frozen=True, eq=False)
class ExactNetwork:
    """A graph without branches as exact affine maps with ReLUs between: weight (n_out, n_in), bias (n_out, 1)."""

    segments: tuple[tuple[Whole, Whole], ...]

    @classmethod
    def of(cls, graph: Graph) -> "ExactNetwork":
        """The graph's own operators, one after another."""
        segments, operators, start = [], [], graph.input_shape
        for number, node in enumerate(graph.nodes):
            if isinstance(node.operator, Relu):
                segments.append(_joined(operators, start))
                operators, start = [], graph.shape_of(number)
            else:
                operators.append(node.operator)
        return cls((*segments, _joined(operators, start)))

    def trace(self, pixels: Whole) -> list[Whole]:
        """The input of every ReLU layer, and the logits last, at images (pixels, T): each (n, T)."""
        found, values = [], pixels
        for weight, bias in self.segments:
            sums = weight @ values + bias
            found.append(sums)
            values = sums.times(sums.numbers > 0)
        return found

    def gradients(self, bits: Sequence[np.ndarray]) -> np.ndarray:
        """Gradients of the logits with respect to the pixels, rationals (K, pixels), under a pattern: active is > 0."""
        key = b"".join(np.packbits(layer).tobytes() for layer in bits)
        if key not in self._gradients:
            rows = self.segments[-1][0]
            for (weight, _), layer in zip(reversed(self.segments[:-1]), reversed(bits), strict=True):
                rows = rows.times(layer[None]) @ weight
            self._gradients[key] = rows.rationals()
        return self._gradients[key]

    @cached_property
    def _gradients(self) -> dict[bytes, np.ndarray]:
        return {}


def pattern(trace: Sequence[Whole], column: int) -> list[np.ndarray]:
    """Which neurons are above zero at one of the images of a trace."""
    return [(layer.numbers[:, column] > 0).astype(bool) for layer in trace[:-1]]


def _joined(operators: Sequence[Operator], shape: tuple[int, ...]) -> tuple[Whole, Whole]:
    size = prod(shape)
    images = as_fractions(np.vstack([np.zeros((1, size)), np.eye(size)])).reshape(size + 1, *shape)
    for operator in operators:
        images = exactly(operator, images)
    rows = images.reshape(size + 1, -1)
    return Whole.of((rows[1:] - rows[0]).T), Whole.of(rows[0][:, None])


def exactly(operator: Operator, images: np.ndarray) -> np.ndarray:
    """The values of an operator for images (B, …) of rationals."""
    return _RULES[type(operator)](operator, images)


def _scale(operator: ScaleShift, images: np.ndarray) -> np.ndarray:
    batch, *shape = images.shape
    rank = max(len(shape), operator.factor.ndim, operator.shift.ndim)
    aligned = images.reshape(batch, *(1,) * (rank - len(shape)), *shape)
    return aligned * as_fractions(operator.factor) + as_fractions(operator.shift)


def _left(operator: LeftMatMul, images: np.ndarray) -> np.ndarray:
    axis = max(images.ndim - 2, 1)
    return np.moveaxis(np.tensordot(as_fractions(operator.weight), images, axes=(1, axis)), 0, axis)


def _pad(operator: Pad, images: np.ndarray) -> np.ndarray:
    sizes = [n + b + a for n, b, a in zip(images.shape[1:], operator.before, operator.after, strict=True)]
    result = np.full((len(images), *sizes), Fraction(operator.fill), dtype=object)
    for place in product(*map(range, sizes)):
        source = [p - b for p, b in zip(place, operator.before, strict=True)]
        if all(0 <= s < n for s, n in zip(source, images.shape[1:], strict=True)):
            result[(slice(None), *place)] = images[(slice(None), *source)]
    return result


def _mean(operator: Mean, images: np.ndarray) -> np.ndarray:
    axes = tuple(axis + 1 for axis in operator.axes)
    return images.sum(axis=axes, keepdims=True) / Fraction(prod(images.shape[axis] for axis in axes))


def _seen(window: Window, spatial: Sequence[int], at: Sequence[int]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The places of a window at one position, each with the pixel that it sees; pixels outside are left out."""
    found = []
    for place in product(*map(range, window.kernel)):
        pixel = tuple(
            p * s + k * d - b
            for p, k, s, d, b in zip(at, place, window.strides, window.dilations, window.before, strict=True)
        )
        if all(0 <= x < n for x, n in zip(pixel, spatial, strict=True)):
            found.append((place, pixel))
    return found


def _conv(operator: Conv, images: np.ndarray) -> np.ndarray:
    target = operator.output_shape(images.shape[1:])
    weight, bias = as_fractions(operator.weight), as_fractions(operator.bias)
    depth, each = weight.shape[1], len(weight) // operator.groups
    result = np.empty((len(images), *target), dtype=object)
    for n, o in product(range(target[0]), range(target[1])):
        channels = slice(o // each * depth, (o // each + 1) * depth)
        for at in product(*map(range, target[2:])):
            total = np.full(len(images), bias[o], dtype=object)
            for place, pixel in _seen(operator.window, images.shape[3:], at):
                total += images[(slice(None), n, channels, *pixel)] @ weight[(o, slice(None), *place)]
            result[(slice(None), n, o, *at)] = total
    return result


def _pool(operator: AveragePool, images: np.ndarray) -> np.ndarray:
    target, spatial, window = operator.output_shape(images.shape[1:]), images.shape[3:], operator.window
    wide = [n + b + a for n, b, a in zip(spatial, window.before, window.after, strict=True)]
    padded = Window(window.kernel, window.strides, window.dilations, (0,) * len(wide), (0,) * len(wide))
    result = np.empty((len(images), *target), dtype=object)
    for at in product(*map(range, target[2:])):
        seen = _seen(window, spatial, at)
        count = len(_seen(padded, wide, at)) if operator.count_padding else len(seen)
        total = sum(images[(slice(None), slice(None), slice(None), *pixel)] for _, pixel in seen)
        result[(slice(None), slice(None), slice(None), *at)] = total / Fraction(count)
    return result


_RULES: dict[type[Operator], Callable[..., np.ndarray]] = {
    Reshape: lambda operator, images: images.reshape(len(images), *operator.shape),
    Transpose: lambda operator, images: images.transpose(0, *(axis + 1 for axis in operator.order)),
    ScaleShift: _scale,
    MatMul: lambda operator, images: images @ as_fractions(operator.weight) + as_fractions(operator.bias),
    LeftMatMul: _left,
    Pad: _pad,
    Mean: _mean,
    Conv: _conv,
    AveragePool: _pool,
}
