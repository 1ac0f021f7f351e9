"""A graph as layers: which neurons are decided together, which values are carried past them, and the steps between.

Branches are unrolled into one sequence of layers. A layer holds all ReLUs and windows at the same depth, counted in
nonlinear nodes. If a later layer needs a value from before this layer, the layer *carries* it, as neurons that are
always active. A pattern has one bit per neuron, whatever its kind, and the output of a layer is bit times value:

* a ReLU is active where its value is above zero;
* a carried neuron is always active;
* in a window, only the first of the largest entries is active, and the next layer sums the window's entries.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from math import prod
from operator import or_
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import InternalError, ModelError
from ..lazily import scipy_sparse
from .joins import Concat, Sum, Winner
from .operators import Array, Linear, Relu, Reshape, Shape, select
from .steps import ArrangeStep, MatrixStep, OrderStep, PartStep, Step, SumStep, step_of

if TYPE_CHECKING:
    from .graph import Graph

RELU, CARRIED, ENTRY = 0, 1, 2

MAX_CARRIED, MAX_CARRIED_NUMBERS = 2**18, 2**27
"""Most values, and most numbers in them, that all layers of a network may carry: 0.7 GB, listed in half a second."""


@dataclass(frozen=True, eq=False)
class Layer:
    """The neurons of one layer: kind (n,) uint8; window (n,) int32, the window of every entry, −1 for other kinds.

    The entries of a window are adjacent, in the order in which they win ties.
    """

    kind: NDArray[np.uint8]
    window: NDArray[np.int32]

    @classmethod
    def relus(cls, count: int) -> "Layer":
        """A layer of ReLUs alone.

        >>> Layer.relus(2).bits(np.array([[0.5, 0.0]]))
        array([[ True, False]])
        """
        return _relus(count)

    def __len__(self) -> int:
        return len(self.kind)

    @cached_property
    def is_plain(self) -> bool:
        """Whether all neurons are ReLUs."""
        return not self.kind.any()

    @cached_property
    def carried(self) -> NDArray[np.bool_]:
        """The mask (n,) of neurons that are always active."""
        return self.kind == CARRIED

    @cached_property
    def entries(self) -> NDArray[np.int64]:
        """The neurons that are entries of windows, window by window."""
        return np.flatnonzero(self.kind == ENTRY)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The place in `entries` where each window starts."""
        return np.flatnonzero(np.diff(self.window[self.entries], prepend=-1))

    @cached_property
    def ends(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """For every neuron i, the range [first, end) of neurons in its window; [i, i + 1) outside windows."""
        first = np.arange(len(self), dtype=np.int32)
        end = first + np.int32(1)
        counts = np.diff(self.starts, append=len(self.entries))
        first[self.entries] = np.repeat(self.entries[self.starts], counts)
        end[self.entries] = first[self.entries] + np.repeat(counts, counts)
        return first, end

    @property
    def decided(self) -> int:
        """The number of ReLUs and windows, each of which has one kink."""
        return int((self.kind == RELU).sum()) + len(self.starts)

    def bits(self, values: Array) -> NDArray[np.bool_]:
        """The pattern (B, n) of computed values (B, n)."""
        bits = values > 0.0
        if not self.is_plain:
            bits[:, self.carried] = True
            if len(self.entries):
                bits[:, self.entries] = self._winners(values[:, self.entries])
        return bits

    def apply(self, values: Array) -> Array:
        """The output (B, n) of computed values (B, n); NaN stays NaN."""
        if self.is_plain:
            return np.maximum(values, 0.0)
        return np.where(self.bits(values) | np.isnan(values), values, 0.0)

    def _winners(self, values: Array) -> NDArray[np.bool_]:
        """The mask (B, m) of entries that are the first of the largest in their window."""
        counts = np.diff(self.starts, append=values.shape[1])
        is_largest = values == np.repeat(np.maximum.reduceat(values, self.starts, axis=1), counts, axis=1)
        seen = np.cumsum(is_largest, axis=1)
        before = np.repeat(seen[:, self.starts] - is_largest[:, self.starts], counts, axis=1)
        return is_largest & (seen - before == 1)


@lru_cache(maxsize=64)
def _relus(count: int) -> Layer:
    return Layer(np.zeros(count, dtype=np.uint8), np.full(count, -1, dtype=np.int32))


@dataclass(frozen=True)
class Frame:
    """The values of one layer: the nonlinear nodes that it decides, and the earlier values that it carries."""

    nodes: tuple[int, ...]
    carried: tuple[int, ...] = ()


def frames_of(graph: "Graph") -> tuple[Frame, ...]:
    """The layers of a graph, first to last, as values of the graph; ModelError if they carry too much."""
    levels, roots = [0], [1]  # bit i of a root mask stands for value i
    for number, node in enumerate(graph.nodes, start=1):
        level = max(levels[i] for i in node.inputs)
        is_linear = isinstance(node.operator, Linear | Sum | Concat)
        if not is_linear and not isinstance(node.operator, Relu | Winner):
            raise InternalError(f"node '{node.name}': {type(node.operator).__name__} belongs to no layer")
        levels.append(level + (not is_linear))
        roots.append(reduce(or_, (roots[i] for i in node.inputs)) if is_linear else 1 << number)
    count = max(levels[value] for value in graph.outputs)
    decided: list[list[int]] = [[] for _ in range(count + 2)]
    for number in range(1, len(levels)):
        if roots[number] == 1 << number and levels[number] <= count:
            decided[levels[number]].append(number)
    # The last layer that reads each source: through a nonlinear node of that layer, or through an output.
    last, seen = dict[int, int](), 0
    for layer in range(count + 1, 0, -1):
        readers = [i for number in decided[layer] for i in graph.nodes[number - 1].inputs]
        below = reduce(or_, (roots[value] for value in (graph.outputs if layer > count else readers)), 0)
        last.update(dict.fromkeys(_places_of_bits(below & ~seen), layer))
        seen |= below
    _refuse_too_many(graph, [(root, max(0, layer - levels[root] - 1)) for root, layer in last.items()], count)
    carried: list[list[int]] = [[] for _ in range(count + 2)]
    for root in sorted(last):
        for layer in range(levels[root] + 1, last[root]):
            carried[layer].append(root)
    return tuple(Frame(tuple(decided[layer]), tuple(carried[layer])) for layer in range(1, count + 1))


def _refuse_too_many(graph: "Graph", carried: list[tuple[int, int]], layers: int) -> None:
    """Raise ModelError if the layers carry too many values, given how many layers carry each of them."""
    times = sum(number for _, number in carried)
    numbers = sum(prod(graph.shape_of(root)) * number for root, number in carried)
    if times > MAX_CARRIED or numbers > MAX_CARRIED_NUMBERS:
        raise ModelError(
            f"its {layers:,} layers carry the values of branches {times:.3g} times past a layer, {numbers:.3g} numbers "
            f"altogether; at most {MAX_CARRIED:.3g} times and {MAX_CARRIED_NUMBERS:.3g} numbers are supported: use "
            "fewer layers, or branches that end sooner"
        )


def _places_of_bits(mask: int) -> Iterator[int]:
    """The places of the bits of a number that are one, lowest first.

    >>> list(_places_of_bits(0b1010))
    [1, 3]
    """
    digits = bin(mask)[:1:-1]
    place = digits.find("1")
    while place >= 0:
        yield place
        place = digits.find("1", place + 1)


def layer_of(graph: "Graph", frame: Frame) -> Layer:
    """The neurons of a frame: those of its nodes, then the carried values."""
    kinds, windows, count = [], [], 0
    for number in frame.nodes:
        operator = graph.nodes[number - 1].operator
        if isinstance(operator, Winner):
            windows.append(np.repeat(np.arange(count, count + len(operator.counts)), operator.counts))
            kinds.append(np.full(len(windows[-1]), ENTRY))
            count += len(operator.counts)
        else:
            kinds.append(np.full(prod(graph.shape_of(number)), RELU))
            windows.append(np.full(len(kinds[-1]), -1))
    if frame.carried:
        kinds.append(np.full(sum(prod(graph.shape_of(number)) for number in frame.carried), CARRIED))
        windows.append(np.full(len(kinds[-1]), -1))
    return Layer(np.concatenate(kinds).astype(np.uint8), np.concatenate(windows).astype(np.int32))


def inputs_of(graph: "Graph", frame: Frame, values: Sequence[Array]) -> Array:
    """The values (B, n) of a layer's neurons before they are decided, given all values of the graph for B images."""
    parts = []
    for number in frame.nodes:
        node = graph.nodes[number - 1]
        flat = values[node.inputs[0]].reshape(len(values[0]), -1)
        parts.append(flat[:, node.operator.entries] if isinstance(node.operator, Winner) else flat)
    parts += [values[number].reshape(len(values[0]), -1) for number in frame.carried]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def steps_between(
    graph: "Graph", before: Frame | None, after: Frame | None, output: int | None = None
) -> tuple[Step, ...]:
    """The linear steps from the output of a layer (or the pixels) to the inputs of the next layer, or to an output.

    Without a next layer, the steps lead to the value `output`, by default the logits.
    """
    return _Registers(graph, before, after, len(graph.nodes) if output is None else output).run()


def nodes_between(alive: Sequence[int], wanted: Sequence[int], inputs: Callable[[int], Sequence[int]]) -> list[int]:
    """The nodes that compute the wanted values from the values alive, in topological order, given inputs of a node."""
    found: set[int] = set()
    waiting = [value for value in wanted if value not in alive]
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += [value for value in inputs(number) if value not in alive]
    return sorted(found)


class _Registers:
    """The values that are alive between two layers, side by side, while linear nodes are carried out one by one."""

    def __init__(self, graph: "Graph", before: Frame | None, after: Frame | None, output: int) -> None:
        self.graph, self.after = graph, after
        self.steps: list[Step] = []
        self.alive = [0] if before is None else [*before.nodes, *before.carried]
        self.sizes = [self._size(value) for value in self.alive]
        if before is not None:
            self._sum_windows(before)
        wanted = [output] if after is None else [graph.nodes[n - 1].inputs[0] for n in after.nodes]
        self.wanted = [self._same(value) for value in [*wanted, *(() if after is None else after.carried)]]
        self.nodes = nodes_between(self.alive, self.wanted, self._inputs)
        self.uses = Counter(self.wanted)
        for number in self.nodes:
            self.uses.update(self._inputs(number))

    def run(self) -> tuple[Step, ...]:
        for number in self.nodes:
            operator = self.graph.nodes[number - 1].operator
            if isinstance(operator, Linear):
                self._linear(number, operator)
            else:
                self._join(number, operator)
        self._arrange([self.alive.index(value) for value in self.wanted])
        for place, number in enumerate(() if self.after is None else self.after.nodes):
            operator = self.graph.nodes[number - 1].operator
            if isinstance(operator, Winner):
                self._choose(place, operator.entries, number)
        return tuple(self.steps)

    def _size(self, value: int) -> int:
        return prod(self.graph.shape_of(value))

    def _same(self, value: int) -> int:
        """The first value with the same numbers: a Reshape changes none."""
        while value not in self.alive and isinstance(self.graph.nodes[value - 1].operator, Reshape):
            value = self.graph.nodes[value - 1].inputs[0]
        return value

    def _inputs(self, number: int) -> list[int]:
        return [self._same(value) for value in self.graph.nodes[number - 1].inputs]

    def _sum_windows(self, before: Frame) -> None:
        """Turn the entries of every window into one number."""
        places = [self._operator(number) for number in before.nodes]
        self.sizes[: len(places)] = [
            len(one.entries) if isinstance(one, Winner) else size for one, size in zip(places, self.sizes, strict=False)
        ]
        for place, (number, operator) in enumerate(zip(before.nodes, places, strict=True)):
            if isinstance(operator, Winner):
                starts = np.concatenate([[0], np.cumsum(operator.counts)])
                ones = np.ones(starts[-1])
                matrix = scipy_sparse.csr_array(
                    (ones, np.arange(starts[-1]), starts), shape=(len(starts) - 1, starts[-1])
                )
                step = MatrixStep(matrix, np.zeros(len(starts) - 1), is_selection=True)
                self._apply(place, step.named(self.graph.nodes[number - 1].name))

    def _operator(self, number: int) -> object:
        return self.graph.nodes[number - 1].operator

    def _apply(self, place: int, step: Step) -> None:
        """Carry out a step on one of the values."""
        before, after = sum(self.sizes[:place]), sum(self.sizes[place + 1 :])
        self.steps.append(PartStep(step, before, after) if before or after else step)
        self.sizes[place] = step.sizes[1]

    def _choose(self, place: int, index: NDArray[np.int64], number: int) -> None:
        size = self.sizes[place]
        if len(index) == size and (index == np.arange(size)).all():
            return
        is_order = len(index) == size and len(np.unique(index)) == size
        step = (
            OrderStep(index) if is_order else MatrixStep(select(index, size), np.zeros(len(index)), is_selection=True)
        )
        self._apply(place, step.named(self.graph.nodes[number - 1].name))

    def _arrange(self, places: list[int]) -> None:
        """Keep the values at these places, in this order; a place may be named twice."""
        if places != list(range(len(self.alive))):
            self.steps.append(ArrangeStep(self.sizes, places))
            self.alive = [self.alive[place] for place in places]
            self.sizes = [self.sizes[place] for place in places]

    def _linear(self, number: int, operator: Linear) -> None:
        (value,) = self._inputs(number)
        place = self.alive.index(value)
        self.uses[value] -= 1
        if self.uses[value]:
            self._arrange([*range(place + 1), *range(place, len(self.alive))])
            place += 1
        node = self.graph.nodes[number - 1]
        self._apply(place, step_of(operator, self.graph.shape_of(node.inputs[0])).named(node.name))
        self.alive[place] = number

    def _join(self, number: int, operator: object) -> None:
        """Apply a sum or a concatenation, after moving its inputs side by side to the end."""
        node, inputs = self.graph.nodes[number - 1], self._inputs(number)
        self.uses.subtract(inputs)
        kept = [place for place, value in enumerate(self.alive) if self.uses[value] > 0]
        self._arrange([*kept, *(self.alive.index(value) for value in inputs)])
        shapes = [self.graph.shape_of(value) for value in node.inputs]
        if isinstance(operator, Sum):
            for place, shape in enumerate(shapes, start=len(kept)):
                self._choose(place, _places(shape, node.shape), number)
            step: Step = SumStep(prod(node.shape), operator.signs)
        elif isinstance(operator, Concat):
            firsts = np.cumsum([0, *(prod(shape) for shape in shapes)])
            numbers = [np.arange(prod(s)).reshape(s) + first for s, first in zip(shapes, firsts[:-1], strict=True)]
            step = OrderStep(np.concatenate(numbers, axis=operator.axis).ravel())
        else:
            raise InternalError(f"node '{node.name}': {type(operator).__name__} does not join values")
        self.alive[len(kept) :], self.sizes[len(kept) :] = [number], [sum(self.sizes[len(kept) :])]
        self._apply(len(kept), step.named(node.name))


def _places(shape: Shape, target: Shape) -> NDArray[np.int64]:
    """For every number of the target, its place in the value of this shape that is broadcast to it."""
    return np.broadcast_to(np.arange(prod(shape)).reshape(shape), target).ravel()
