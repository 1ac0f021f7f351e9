"""A graph as linear steps between ReLUs, each with its products forward and backward, plain and by absolute weights.

Convolutions stay convolutions: nothing is lowered to a matrix that need not be. Steps are not fused, so that every
weight is one of the graph's own constants. Only graphs without branches have steps.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from math import prod

import numpy as np
from scipy.sparse import csr_array

from ..errors import ModelError
from . import window_kernels
from .graph import Graph
from .operators import Array, Linear, Matrix, Relu, Reshape, Scale, Shape, Transpose
from .windows import CACHED, Conv


class Step(ABC):
    """x → W x + bias on flattened values; batches are rows.

    `terms` and `backward_terms` bound how many numbers one entry of a product with W, and with its transpose, sums up,
    plus how often an entry of W is itself rounded: `roundings` times, relative to its size. The bias is rounded as
    often, relative to `bias_size` (n_out,), which is at least |bias|.
    """

    sizes: tuple[int, int]
    bias: Array
    terms: int
    backward_terms: int
    roundings: int = 0

    @cached_property
    def bias_size(self) -> Array:
        """What rounding errors of the bias are relative to: |bias|, unless it is a difference of rounded numbers."""
        return np.abs(self.bias)

    def count_roundings(self, operator: Linear, shape: Shape) -> "Step":
        """Return this step, made of an operator on a value of this shape, with the roundings of its constants."""
        self.roundings = operator.roundings
        self.terms += self.roundings
        self.backward_terms += self.roundings
        if isinstance(operator, Scale):
            self.bias_size = np.broadcast_to(operator.shift_size, operator.output_shape(shape)).ravel()
        return self

    @abstractmethod
    def forward(self, values: Array) -> Array:
        """W x for rows x: (N, n_in) → (N, n_out), without the bias."""

    @abstractmethod
    def forward_abs(self, values: Array) -> Array:
        """|W| x for rows x."""

    @abstractmethod
    def backward(self, rows: Array) -> Array:
        """r W for rows r: (N, n_out) → (N, n_in)."""

    @abstractmethod
    def backward_abs(self, rows: Array) -> Array:
        """r |W| for rows r."""

    @property
    @abstractmethod
    def work(self) -> int:
        """Multiplications of one product with one vector."""

    @property
    @abstractmethod
    def weights(self) -> Array:
        """All entries of W that are stored, in no order."""

    @property
    def smallest(self) -> float:
        """The smallest |entry| of W other than zero; infinite where there is none."""
        sizes = np.abs(self.weights)
        return float(sizes.min(initial=np.inf, where=sizes > 0.0))


class MatrixStep(Step):
    """A step by a matrix (n_out, n_in), dense or sparse."""

    def __init__(self, matrix: Matrix, bias: Array) -> None:
        self.matrix, self.bias = matrix, bias
        self.sizes = (matrix.shape[1], matrix.shape[0])
        self.absolute = abs(matrix)
        if isinstance(matrix, np.ndarray):
            self.transposed, self.absolute_transposed = matrix.T, self.absolute.T
            self.terms, self.backward_terms = matrix.shape[1] + 1, matrix.shape[0] + 1
        else:
            transposed = csr_array(matrix.T)
            self.transposed, self.absolute_transposed = transposed, csr_array(self.absolute.T)
            self.terms, self.backward_terms = (
                int(np.diff(rows.indptr).max(initial=0)) + 1 for rows in (matrix, transposed)
            )

    def forward(self, values: Array) -> Array:
        """See `Step`."""
        return _product(values, self.matrix, self.transposed)

    def forward_abs(self, values: Array) -> Array:
        """See `Step`."""
        return _product(values, self.absolute, self.absolute_transposed)

    def backward(self, rows: Array) -> Array:
        """See `Step`."""
        return _product(rows, self.transposed, self.matrix)

    def backward_abs(self, rows: Array) -> Array:
        """See `Step`."""
        return _product(rows, self.absolute_transposed, self.absolute)

    @property
    def work(self) -> int:
        """See `Step`."""
        return int(self.matrix.size)

    @property
    def weights(self) -> Array:
        """See `Step`."""
        return self.matrix if isinstance(self.matrix, np.ndarray) else self.matrix.data


def _product(values: Array, matrix: Matrix, transposed: Matrix) -> Array:
    """Rows times the transposed matrix."""
    if isinstance(transposed, np.ndarray):
        return values @ transposed
    return np.ascontiguousarray((matrix @ values.T).T)


class ScaleStep(Step):
    """Every number times its own factor."""

    def __init__(self, factor: Array, bias: Array) -> None:
        self.factor, self.bias = factor, bias
        self.sizes = (len(factor), len(factor))
        self.terms = self.backward_terms = 1

    def forward(self, values: Array) -> Array:
        """See `Step`."""
        return values * self.factor

    def forward_abs(self, values: Array) -> Array:
        """See `Step`."""
        return values * np.abs(self.factor)

    def backward(self, rows: Array) -> Array:
        """See `Step`."""
        return rows * self.factor

    def backward_abs(self, rows: Array) -> Array:
        """See `Step`."""
        return rows * np.abs(self.factor)

    @property
    def work(self) -> int:
        """See `Step`."""
        return len(self.factor)

    @property
    def weights(self) -> Array:
        """See `Step`."""
        return self.factor


class OrderStep(Step):
    """The same numbers in another order: entry i of the result is entry order[i]."""

    def __init__(self, order: np.ndarray) -> None:
        self.order, self.inverse = order, np.argsort(order)
        self.bias = np.zeros(len(order))
        self.sizes = (len(order), len(order))
        self.terms = self.backward_terms = 0

    def forward(self, values: Array) -> Array:
        """See `Step`."""
        return values[:, self.order]

    def backward(self, rows: Array) -> Array:
        """See `Step`."""
        return rows[:, self.inverse]

    forward_abs, backward_abs = forward, backward

    @property
    def work(self) -> int:
        """See `Step`."""
        return len(self.order)

    @property
    def weights(self) -> Array:
        """See `Step`."""
        return np.ones(1)


class ConvStep(Step):
    """A convolution in two spatial dimensions, one image at a time, without groups."""

    def __init__(self, conv: Conv, shape: Shape) -> None:
        self.conv, self.shape = conv, shape[1:]
        target = conv.output_shape(shape)
        self.target = target[1:]
        self.sizes = (prod(shape), prod(target))
        self.weight = conv.weight.reshape(len(conv.weight), -1)
        self.absolute = np.abs(self.weight)
        self.bias = np.repeat(conv.bias, prod(self.target[1:]))
        window, places = conv.window, prod(conv.window.kernel)
        self.window = np.array([*window.strides, *window.dilations, *window.before])
        self.terms, self.backward_terms = self.weight.shape[1] + 1, len(self.weight) * places + 1

    def forward(self, values: Array) -> Array:
        """See `Step`."""
        return self._forward(values, self.weight)

    def forward_abs(self, values: Array) -> Array:
        """See `Step`."""
        return self._forward(values, self.absolute)

    def backward(self, rows: Array) -> Array:
        """See `Step`."""
        return self._backward(rows, self.weight)

    def backward_abs(self, rows: Array) -> Array:
        """See `Step`."""
        return self._backward(rows, self.absolute)

    @property
    def work(self) -> int:
        """See `Step`."""
        return self.weight.size * prod(self.target[1:])

    @property
    def weights(self) -> Array:
        """See `Step`."""
        return self.weight

    def _forward(self, values: Array, weight: Array) -> Array:
        images = np.ascontiguousarray(values).reshape(-1, *self.shape)
        result = np.empty((len(images), len(weight), prod(self.target[1:])))
        for part in self._parts(len(images)):
            columns = self._columns(len(images[part]))
            window_kernels.gather(images[part], self.window, columns)
            np.matmul(weight, columns.reshape(len(columns), weight.shape[1], -1), out=result[part])
        return result.reshape(len(images), self.sizes[1])

    def _backward(self, rows: Array, weight: Array) -> Array:
        above = np.ascontiguousarray(rows).reshape(-1, len(weight), prod(self.target[1:]))
        images = np.empty((len(rows), *self.shape))
        for part in self._parts(len(rows)):
            columns = self._columns(len(images[part]))
            np.matmul(weight.T, above[part], out=columns.reshape(len(columns), weight.shape[1], -1))
            window_kernels.scatter(columns, self.window, images[part])
        return images.reshape(len(rows), self.sizes[0])

    def _columns(self, count: int) -> Array:
        return np.empty((count, self.shape[0], *self.conv.window.kernel, *self.target[1:]))

    def _parts(self, count: int) -> list[slice]:
        """Runs of images whose columns stay in the cache."""
        step = max(1, CACHED // (self.weight.shape[1] * prod(self.target[1:])))
        return [slice(first, first + step) for first in range(0, count, step)]


def steps_of(graph: Graph) -> tuple[tuple[Step, ...], ...]:
    """For every ReLU of a graph without branches, and for the logits: the linear steps that lead to it."""
    segments: list[list[Step]] = [[]]
    previous = 0
    for number, node in enumerate(graph.nodes, start=1):
        if node.inputs != (previous,):
            raise ModelError(f"node '{node.name}' joins or leaves a branch; networks with branches come later")
        if isinstance(node.operator, Relu):
            segments.append([])
        elif isinstance(node.operator, Linear) and not isinstance(node.operator, Reshape):
            shape = graph.shape_of(previous)
            segments[-1].append(_step(node.operator, shape).count_roundings(node.operator, shape))
        previous = number
    return tuple(tuple(segment) for segment in segments)


def is_folded(segment: Sequence[Step]) -> bool:
    """Whether the steps before one ReLU, joined into one matrix, have rounded constants: a zero may not be one."""
    return len(segment) > 1 or any(step.roundings for step in segment)


def _step(operator: Linear, shape: Shape) -> Step:
    if isinstance(operator, Conv) and shape[0] == 1 and operator.groups == 1 and len(shape) == 4:
        return ConvStep(operator, shape)
    if isinstance(operator, Scale) and prod(operator.output_shape(shape)) == prod(shape):
        factor = np.broadcast_to(operator.factor, operator.output_shape(shape)).ravel()
        return ScaleStep(factor, np.broadcast_to(operator.shift, operator.output_shape(shape)).ravel())
    if isinstance(operator, Transpose):
        return OrderStep(np.arange(prod(shape)).reshape(shape).transpose(operator.order).ravel())
    matrix, bias = operator.affine(shape)
    return MatrixStep(matrix, bias)
