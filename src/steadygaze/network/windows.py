"""Operators with sliding windows: convolution and average pooling, in any number of spatial dimensions.

`apply` loops over the places of the window; `affine` builds the sparse matrix from the indices of the pixels under each
window, in time and memory proportional to its entries. The compiled `gather` and `scatter` turn a convolution into a
matrix product for `steps`.
"""

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..compiling import compiled
from ..lazily import scipy_sparse
from .operators import Array, Linear, Matrix, Shape, ShapeError, repeat

CACHED = 1 << 17
"""The most numbers in the columns of one batch of images: one megabyte, which fits the cache."""


@dataclass(frozen=True)
class Window:
    """Geometry of a sliding window; every tuple has one entry per spatial axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    ceil: bool = False

    def positions(self, spatial: Shape) -> Shape:
        """The number of positions of the window along each axis; ShapeError if it fits nowhere."""
        counts = []
        for size, k, s, d, b, a in zip(
            spatial, self.kernel, self.strides, self.dilations, self.before, self.after, strict=True
        ):
            room = size + b + a - (d * (k - 1) + 1)
            if room < 0:
                raise ShapeError(f"a window of {list(self.kernel)} does not fit into {list(spatial)}")
            count = room // s + 1
            # A rounded-up last position counts only if it starts inside the input or the padding before it.
            if self.ceil and room % s and count * s < size + b:
                count += 1
            counts.append(count)
        return tuple(counts)

    def places(self, axis: int, count: int) -> NDArray[np.int64]:
        """The coordinates of the window's places along one axis at its first positions: (count, kernel)."""
        start = np.arange(count) * self.strides[axis] - self.before[axis]
        return start[:, None] + np.arange(self.kernel[axis]) * self.dilations[axis]

    def pixels(self, spatial: Shape) -> NDArray[np.int64]:
        """Flat index of the pixel under each place of the window at each position, -1 outside: (positions, places)."""
        index = np.zeros((1, 1), dtype=np.int64)
        inside = np.ones((1, 1), dtype=bool)
        counts = self.positions(spatial)
        for axis, size in enumerate(spatial):
            place = self.places(axis, counts[axis])
            valid = (place >= 0) & (place < size)
            shape = (index.shape[0] * place.shape[0], index.shape[1] * place.shape[1])
            index = (index[:, None, :, None] * size + place[None, :, None, :]).reshape(shape)
            inside = (inside[:, None, :, None] & valid[None, :, None, :]).reshape(shape)
        return np.where(inside, index, -1)

    def views(self, values: Array) -> list[Array]:
        """For each place of the window, the pixels of values (..., *spatial) under it at all positions, 0 outside."""
        rank = len(self.kernel)
        spatial = values.shape[-rank:]
        counts = self.positions(spatial)
        reach = [
            (n - 1) * s + d * (k - 1) + 1
            for n, s, d, k in zip(counts, self.strides, self.dilations, self.kernel, strict=True)
        ]
        widths = [(b, max(r - size - b, 0)) for b, r, size in zip(self.before, reach, spatial, strict=True)]
        padded = np.pad(values, [(0, 0)] * (values.ndim - rank) + widths)
        views = []
        for place in product(*map(range, self.kernel)):
            starts = [p * d for p, d in zip(place, self.dilations, strict=True)]
            cut: tuple[Any, ...] = tuple(
                slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(starts, counts, self.strides, strict=True)
            )
            views.append(padded[(slice(None),) * (values.ndim - rank) + cut])
        return views


@dataclass(frozen=True, eq=False)
class Conv(Linear):
    """Convolution of a value (N, C, *spatial) with weight (O, C/groups, *kernel) and bias (O,)."""

    weight: Array
    bias: Array
    window: Window
    groups: int = 1

    def output_shape(self, *shapes: Shape) -> Shape:
        shape = shapes[0]
        rank = len(self.window.kernel)
        if len(shape) != rank + 2 or shape[1] != self.weight.shape[1] * self.groups:
            raise ShapeError(
                f"a weight of shape {list(self.weight.shape)} with {self.groups} group(s) does not fit {list(shape)}"
            )
        return (shape[0], self.weight.shape[0], *self.window.positions(shape[2:]))

    def apply(self, *values: Array) -> Array:
        batch, n, channels, *spatial = values[0].shape
        target = self.output_shape((n, channels, *spatial))
        depth = channels // self.groups
        weights = self.weight.reshape(self.groups, len(self.weight) // self.groups, -1)
        images = values[0].reshape(batch * n, channels, *spatial)
        total = np.empty((batch * n, *weights.shape[:2], prod(target[2:])))
        # One product per image, with all places of the window side by side, for as many images as fit the cache.
        step = max(1, CACHED // (channels * prod(self.window.kernel) * prod(target[2:])))
        for first in range(0, batch * n, step):
            views = self.window.views(images[first : first + step])
            columns = np.empty((len(views[0]), self.groups, depth, len(views), prod(target[2:])))
            for place, view in enumerate(views):
                columns[:, :, :, place] = view.reshape(len(view), self.groups, depth, -1)
            flat = columns.reshape(len(columns), self.groups, depth * len(views), -1)
            np.matmul(weights, flat, out=total[first : first + step])
        return total.reshape(batch, *target) + self.bias.reshape(-1, *(1,) * len(spatial))

    def entries(self, shape: Shape) -> int:
        return prod(self.output_shape(shape)) * prod(self.weight.shape[1:])

    def affine(self, shape: Shape) -> tuple[Matrix, Array]:
        pixels = self.window.pixels(shape[2:])
        positions, places = pixels.shape
        outputs, depth = self.weight.shape[:2]
        per_group = outputs // self.groups
        inside = np.broadcast_to((pixels >= 0)[:, None, :], (positions, depth, places))
        area = prod(shape[2:])
        columns = (np.arange(depth)[:, None] * area + pixels[:, None, :])[inside]
        counts = np.tile(inside.sum(axis=(1, 2)), outputs)
        flat = self.weight.reshape(outputs, 1, depth, places)
        data = [np.broadcast_to(flat[o], inside.shape)[inside] for o in range(outputs)]
        indices = [columns + (o // per_group) * depth * area for o in range(outputs)]
        matrix = scipy_sparse.csr_array(
            (np.concatenate(data), np.concatenate(indices), np.concatenate([[0], np.cumsum(counts)])),
            shape=(outputs * positions, shape[1] * area),
        )
        return repeat(matrix, shape[0]), np.tile(np.repeat(self.bias, positions), shape[0])


@dataclass(frozen=True)
class AveragePool(Linear):
    """Mean over a window of every channel of a value (N, C, *spatial)."""

    own_roundings: ClassVar[int] = 1  # 1/count
    window: Window
    count_padding: bool = False

    def output_shape(self, *shapes: Shape) -> Shape:
        shape = shapes[0]
        if len(shape) != len(self.window.kernel) + 2:
            raise ShapeError(f"a window of {list(self.window.kernel)} does not fit a value of shape {list(shape)}")
        positions = self.window.positions(shape[2:])
        if min(self._divisors(shape[2:])) < 1:
            raise ShapeError("a pooling window lies entirely in the padding")
        return (*shape[:2], *positions)

    def _divisors(self, spatial: Shape) -> NDArray[np.int64]:
        """How many numbers each window averages: pixels, and padding if it counts, but no places beyond the padding."""
        window = self.window
        total = np.ones(1, dtype=np.int64)
        for axis, count in enumerate(window.positions(spatial)):
            place = window.places(axis, count)
            low, high = 0, spatial[axis]
            if self.count_padding:
                low, high = -window.before[axis], spatial[axis] + window.after[axis]
            total = np.outer(total, ((place >= low) & (place < high)).sum(axis=1)).ravel()
        return total

    def apply(self, *values: Array) -> Array:
        spatial = values[0].shape[3:]
        divisors = self._divisors(spatial).reshape(self.window.positions(spatial))
        return sum(self.window.views(values[0]), start=np.zeros(())) / divisors

    def entries(self, shape: Shape) -> int:
        return prod(self.output_shape(shape)) * prod(self.window.kernel)

    def affine(self, shape: Shape) -> tuple[Matrix, Array]:
        pixels = self.window.pixels(shape[2:])
        inside = pixels >= 0
        weights = np.broadcast_to(1.0 / self._divisors(shape[2:])[:, None], pixels.shape)
        pointers = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
        block = scipy_sparse.csr_array(
            (weights[inside], pixels[inside], pointers), shape=(len(pixels), prod(shape[2:]))
        )
        return repeat(block, prod(shape[:2])), np.zeros(prod(self.output_shape(shape)))


@compiled
def gather(images: np.ndarray, window: np.ndarray, columns: np.ndarray) -> None:
    """Write the pixel under every place of the window: images (N, C, H, W) → columns (N, C, kh, kw, ph, pw), 0 outside.

    window: strides, dilations and paddings before, two numbers each.
    """
    count, depth, height, width = images.shape
    kernel_height, kernel_width, rows, across = columns.shape[2:]
    for n in range(count):
        for c in range(depth):
            for i in range(kernel_height):
                for j in range(kernel_width):
                    left = j * window[3] - window[5]
                    for y in range(rows):
                        source = y * window[0] + i * window[2] - window[4]
                        if source < 0 or source >= height:
                            for x in range(across):
                                columns[n, c, i, j, y, x] = 0.0
                        elif window[1] == 1 and left >= 0 and left + across <= width:
                            seen = columns[n, c, i, j, y]
                            row = images[n, c, source, left : left + across]
                            for x in range(across):
                                seen[x] = row[x]
                        else:
                            for x in range(across):
                                place = left + x * window[1]
                                inside = 0 <= place < width
                                columns[n, c, i, j, y, x] = images[n, c, source, place] if inside else 0.0


@compiled
def scatter(columns: np.ndarray, window: np.ndarray, images: np.ndarray) -> None:  # noqa: PLR0912 (one loop)
    """Sum columns into images, which are overwritten: the transpose of `gather`."""
    count, depth, height, width = images.shape
    kernel_height, kernel_width, rows, across = columns.shape[2:]
    for n in range(count):
        for c in range(depth):
            for y in range(height):
                for x in range(width):
                    images[n, c, y, x] = 0.0
            for i in range(kernel_height):
                for j in range(kernel_width):
                    left = j * window[3] - window[5]
                    first, last = 0, across
                    while first < last and left + first * window[1] < 0:
                        first += 1
                    while last > first and left + (last - 1) * window[1] >= width:
                        last -= 1
                    for y in range(rows):
                        target = y * window[0] + i * window[2] - window[4]
                        if target < 0 or target >= height:
                            continue
                        if window[1] == 1:
                            # Slices start at zero: only then are several numbers added at once.
                            into = images[n, c, target, left + first : left + last]
                            seen = columns[n, c, i, j, y, first:last]
                            for x in range(last - first):
                                into[x] += seen[x]
                        else:
                            for x in range(first, last):
                                images[n, c, target, left + x * window[1]] += columns[n, c, i, j, y, x]
