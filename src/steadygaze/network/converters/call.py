"""The input of a converter: one ONNX node with its inputs and attributes, and a draft of the graph to add nodes to.

A converter raises `ConversionError` if a node does something else than inference of a piecewise linear network.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...lazily import onnx
from ..graph import Node
from ..operators import Array, Linear, Operator, Shape, ShapeError

if TYPE_CHECKING:
    from onnx import NodeProto

# Limits that keep the reading of any file below a GiB.
MAX_ENTRIES = 2**23
"""The most entries of an index (windows times their places, or numbers of a rearranged value): 64 MB."""

MAX_ALL_ENTRIES = 2**25
"""The most entries of all indices of a graph."""

MAX_RESULT = 2**25
"""The most numbers in a value that depends on the image: ten times the largest value of a ResNet for 224×224 pixels."""

MAX_FOLDED = 2**23
"""The most numbers in all folded constants together, beyond twice the numbers in the file."""


class ConversionError(ValueError):
    """A node is not supported; `from_onnx` adds file and node to the message."""


@dataclass(frozen=True, eq=False)
class Call:
    """A node with its inputs: constants by position, and the numbers and shapes of inputs that depend on the image.

    `number`, `position` and `shape` describe the first input that depends on the image. roundings: how often all
    constants together were rounded so far, relative to their own size. room: how many numbers a folded constant may
    have.
    """

    node: "NodeProto"
    opset: int
    file_name: str
    constants: tuple[np.ndarray | None, ...]
    numbers: tuple[int | None, ...]
    shapes: tuple[Shape | None, ...]
    position: int | None
    shape: Shape
    roundings: int = 0
    room: int = MAX_FOLDED

    @property
    def number(self) -> int | None:
        """The number of the first input that depends on the image, if there is one."""
        return None if self.position is None else self.numbers[self.position]

    @property
    def variables(self) -> list[int]:
        """The numbers of all inputs that depend on the image, in their order, with repetitions."""
        return [number for number in self.numbers if number is not None]

    def attribute(self, name: str, default: Any) -> Any:
        """An attribute, or the default."""
        for entry in self.node.attribute:
            if entry.name == name:
                value = onnx.helper.get_attribute_value(entry)
                return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        return default

    def constant(self, position: int) -> np.ndarray | None:
        """The constant input at a position; None if it is missing."""
        return self.constants[position] if position < len(self.constants) else None

    def is_given(self, position: int) -> bool:
        """Whether the node has an input at this position."""
        return position < len(self.node.input) and bool(self.node.input[position])

    def needed(self, position: int, what: str) -> np.ndarray:
        """The constant input at a position; ConversionError if it is missing."""
        value = self.constant(position)
        if value is None:
            raise ConversionError(f"its {what} must be a constant")
        return value

    def floats(self, position: int, what: str) -> Array:
        """The needed constant input as floats."""
        return np.asarray(self.needed(position, what), dtype=np.float64)

    def other(self, what: str) -> Array:
        """The constant among the two inputs, as floats."""
        return self.floats(1 - (self.position or 0), what)

    def integers(self, name: str, position: int) -> list[int] | None:
        """Integers from an attribute or, in later opsets, from a constant input; None if missing."""
        listed = self.attribute(name, None)
        if listed is not None:
            return [int(entry) for entry in listed]
        if self.is_given(position):
            return [int(entry) for entry in np.ravel(self.needed(position, name))]
        return None

    def check_room(self, count: int) -> None:
        """Refuse a folded constant with too many numbers before it is made."""
        if count > self.room:
            raise ConversionError(
                f"would give {count:.3g} numbers, but folded constants may have only {self.room:.3g} more"
            )

    def refuse_rounded(self) -> None:
        """Refuse rounded constants, for an operator that subtracts them from each other or rounds them to integers."""
        if self.roundings:
            raise ConversionError("has constants that were rounded; simplify the model (constant folding) on export")

    def require_variable_first(self) -> None:
        """Refuse a node whose first input is a constant while another input depends on the image."""
        if self.position != 0:
            raise ConversionError("its first input must be the value that depends on the image, the others constants")


@dataclass(eq=False)
class Tally:
    """The total number of entries in all indices of a graph so far."""

    entries: int = 0


@dataclass(frozen=True, eq=False)
class Draft:
    """The nodes of the graph so far; the name of the node being converted, and how often its constants were rounded."""

    nodes: list[Node]
    image_shape: Shape
    tally: Tally
    name: str = ""
    roundings: int = 0

    def shape_of(self, number: int) -> Shape:
        """Shape of a value for one image."""
        return self.nodes[number - 1].shape if number else self.image_shape

    def add(self, operator: Operator, *inputs: int) -> int:
        """Append an operator that reads these values; return the number of its result."""
        if self.roundings and isinstance(operator, Linear):
            operator = replace(operator, read_roundings=operator.read_roundings + self.roundings)
        shape = operator.output_shape(*(self.shape_of(number) for number in inputs))
        if prod(shape) > MAX_RESULT:
            raise ConversionError(
                f"its result of shape {list(shape)} is too large; at most {MAX_RESULT:.3g} numbers are supported"
            )
        self.tally.entries += getattr(operator, "index", np.zeros(0)).size
        if self.tally.entries > MAX_ALL_ENTRIES:
            raise ConversionError(f"windows and rearranged values need more than {MAX_ALL_ENTRIES:.3g} entries in all")
        if prod(shape) < 1:
            raise ConversionError(f"its result of shape {list(shape)} is empty")
        self.nodes.append(Node(operator, inputs, shape, self.name))
        return len(self.nodes)

    def follow(self, number: int, operators: Sequence[Operator]) -> int:
        """Append operators one after the other, starting from a value; return the number of the last result."""
        for operator in operators:
            number = self.add(operator, number)
        return number


def normal_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from the front, in order; ShapeError if one does not exist or appears twice.

    >>> normal_axes([-1, 0], 3)
    (0, 2)
    """
    normal = tuple(sorted(normal_axis(axis, rank) for axis in axes))
    if len(set(normal)) != len(normal):
        raise ShapeError(f"axes {list(axes)} name one axis twice")
    return normal


def normal_axis(axis: int, rank: int) -> int:
    """An axis counted from the front; ShapeError if it does not exist."""
    if not -rank <= axis < rank:
        raise ShapeError(f"axis {axis} does not exist in a value with {rank} axes")
    return axis % rank


def entries_of(shape: Shape) -> np.ndarray:
    """The index of every entry of a flattened value, in the value's own shape."""
    check_entries(prod(shape))
    return np.arange(prod(shape)).reshape(shape)


def check_entries(count: int) -> None:
    """Refuse an index with too many entries before it is made."""
    if count > MAX_ENTRIES:
        raise ConversionError(f"needs an index of {count:.3g} entries; at most {MAX_ENTRIES:.3g} are supported")


def is_exact_product(left: Array, right: Array | float) -> bool:
    """Whether products of these numbers are known to be exact in float64: both are float32, or one is a power of two.

    >>> is_exact_product(np.array([0.1]), 0.5), is_exact_product(np.array([0.1]), 3.0)
    (True, False)
    """
    if any(((np.abs(np.frexp(part)[0]) == 0.5) | np.equal(part, 0.0)).all() for part in (right, left)):
        return True
    with np.errstate(over="ignore", under="ignore"):
        return all(bool((np.asarray(part).astype(np.float32) == part).all()) for part in (left, right))


def is_exact_sum(left: Array | float, right: Array | float) -> bool:
    """Whether sums are exact in float64: Knuth's TwoSum computes their rounding errors.

    >>> is_exact_sum(1.0, 2.0**-52), is_exact_sum(1.0, 2.0**-54)
    (True, False)
    """
    total = np.add(left, right)
    rest = total - left
    return not np.any((left - (total - rest)) + (right - rest))
