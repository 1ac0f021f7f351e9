"""Operators that join values or choose among them: sums, concatenations, and maxima over windows.

Together with `Linear` and `Relu` these are all operators of a graph: `converters` expresses every other piecewise
linear function in terms of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from .operators import Array, Operator, Shape, ShapeError


def broadcast_shape(*shapes: Shape) -> Shape:
    """The shape to which values of these shapes are broadcast; raises ShapeError if they do not fit together."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise do_not_fit(shapes) from None


def do_not_fit(shapes: Iterable[Shape]) -> ShapeError:
    """The error for values whose shapes do not fit together."""
    return ShapeError(f"values of shapes {', '.join(str(list(shape)) for shape in shapes)} do not fit together")


@dataclass(frozen=True)
class Sum(Operator):
    """The sum of all inputs, each with its sign (1 or −1), with broadcasting."""

    signs: tuple[int, ...]

    def output_shape(self, *shapes: Shape) -> Shape:
        return broadcast_shape(*shapes)

    def apply(self, *values: Array) -> Array:
        rank = max(value.ndim for value in values)
        aligned = [value.reshape(len(value), *(1,) * (rank - value.ndim), *value.shape[1:]) for value in values]
        total = self.signs[0] * aligned[0]
        for sign, value in zip(self.signs[1:], aligned[1:], strict=True):
            total = total + sign * value
        return total


@dataclass(frozen=True)
class Concat(Operator):
    """All inputs one after the other along an axis."""

    axis: int

    def output_shape(self, *shapes: Shape) -> Shape:
        first = shapes[0]
        if not 0 <= self.axis < len(first):
            raise ShapeError(f"axis {self.axis} does not exist in shape {list(first)}")
        rests = {(*shape[: self.axis], *shape[self.axis + 1 :]) for shape in shapes}
        if len(rests) > 1 or len({len(shape) for shape in shapes}) > 1:
            raise do_not_fit(shapes)
        length = sum(shape[self.axis] for shape in shapes)
        return (*first[: self.axis], length, *first[self.axis + 1 :])

    def apply(self, *values: Array) -> Array:
        return np.concatenate(values, axis=self.axis + 1)


@dataclass(frozen=True, eq=False)
class Winner(Operator):
    """The largest entry of every window of a value (MaxPool, GlobalMaxPool, ReduceMax, Max).

    index (windows, places): the entries of every window, as places in the flattened value. The first of the largest
    entries wins. Windows with fewer entries end with −1; none is empty.
    """

    index: NDArray[np.int64]
    shape: Shape

    def __post_init__(self) -> None:
        if prod(self.shape) != len(self.index):
            raise ShapeError(f"{len(self.index)} windows do not fill the shape {list(self.shape)}")
        if self.index.shape[1:] == (0,) or (self.index[:, :1] < 0).any():
            raise ShapeError("a window has no entries")

    def output_shape(self, *shapes: Shape) -> Shape:
        if self.index.max(initial=-1) >= prod(shapes[0]):
            raise ShapeError(f"its windows do not fit a value of shape {list(shapes[0])}")
        return self.shape

    def apply(self, *values: Array) -> Array:
        flat = values[0].reshape(len(values[0]), -1)
        largest = flat[:, self.index[:, 0]]
        for place in range(1, self.index.shape[1]):
            column = self.index[:, place]
            largest = np.maximum(largest, np.where(column < 0, -np.inf, flat[:, column]))
        return largest.reshape(len(flat), *self.shape)

    @property
    def entries(self) -> NDArray[np.int64]:
        """The entries of all windows, window by window."""
        return self.index[self.index >= 0]

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of entries of each window."""
        return (self.index >= 0).sum(axis=1)
