"""The classifier in whole numbers, layer by layer: from the values after one layer to the forms before the next.

Operators between two layers are applied one by one, without fusing them, so all constants are the graph's own.
`layer_walk` decides the neurons of a layer, which cuts the domain.
"""

from functools import reduce
from itertools import pairwise

import numpy as np

from ..errors import ModelError
from ..network.graph import Graph, Node
from ..network.joins import Concat, Sum, Winner
from ..network.layers import Frame, nodes_between
from ..network.operators import Linear, Shape
from .network_forms import ExactMap, WholeForms, aligned, exact_map


class ExactNetwork:
    """A graph in exact arithmetic, with the layers of the graph.

    `is_exact`: whether every constant is exact; otherwise more bits narrow the enclosures.
    """

    def __init__(self, graph: Graph, bits: int) -> None:
        self.graph, self.layers = graph, graph.layers
        self.is_exact = True
        self._maps: dict[int, ExactMap] = {}
        for number, node in enumerate(graph.nodes, start=1):
            if isinstance(node.operator, Linear):
                self._maps[number], is_exact = exact_map(node.operator, graph.shape_of(node.inputs[0]), bits)
                self.is_exact &= is_exact
        self._passages = [_Passage(graph, *ends) for ends in pairwise((None, *graph.frames, None))]

    @property
    def passages(self) -> int:
        """The number of layers, plus one for the logits."""
        return len(self._passages)

    def advance(self, passage: int, forms: WholeForms) -> WholeForms:
        """Carry the values after layer number `passage` − 1 (for 0: the pixels) to the forms before the next layer."""
        here = self._passages[passage]
        values = here.split_outputs(forms)
        for number in here.nodes:
            node = self.graph.nodes[number - 1]
            inputs = [values[value] for value in node.inputs]
            values[number] = self._maps[number](inputs[0]) if number in self._maps else _joined(node, inputs)
        return here.join_inputs(values)


class _Passage:
    """The path from one layer to the next: the values of the layer before, the nodes between, the values wanted."""

    def __init__(self, graph: Graph, before: Frame | None, after: Frame | None) -> None:
        self.graph = graph
        self.alive = (0,) if before is None else (*before.nodes, *before.carried)
        self.chosen = () if before is None else before.nodes
        self.deciding = () if after is None else after.nodes
        if after is None:
            self.wanted = [len(graph.nodes)]
        else:
            self.wanted = [*(graph.nodes[number - 1].inputs[0] for number in after.nodes), *after.carried]
        self.nodes = nodes_between(self.alive, self.wanted, lambda number: graph.nodes[number - 1].inputs)

    def _winner(self, number: int) -> Winner | None:
        operator = self.graph.nodes[number - 1].operator if number else None
        return operator if isinstance(operator, Winner) else None

    def split_outputs(self, forms: WholeForms) -> dict[int, WholeForms]:
        """The outputs of the layer before as values of the graph; the entries of a window are summed."""
        values, first = {}, 0
        for number in self.alive:
            shape = self.graph.shape_of(number)
            winner = self._winner(number) if number in self.chosen else None
            size = int(np.prod(shape)) if winner is None else len(winner.entries)
            part = forms if len(self.alive) == 1 else forms.chosen(np.arange(first, first + size))
            values[number] = part.reshaped(shape) if winner is None else _sum_windows(part, winner, shape)
            first += size
        return values

    def join_inputs(self, values: dict[int, WholeForms]) -> WholeForms:
        """The forms before the next layer: the inputs of its nodes, windows as their entries; then carried values."""
        parts = [values[number] for number in self.wanted]
        for place, number in enumerate(self.deciding):
            winner = self._winner(number)
            if winner is not None:
                parts[place] = parts[place].chosen(winner.entries)
        if len(parts) == 1:
            return parts[0]
        same = aligned(parts)
        radii = [part.radii.ravel() for part in same if part.radii is not None]
        numbers = np.concatenate([part.rows for part in same])
        return WholeForms(numbers, np.concatenate(radii) if radii else None, same[0].denominator)


def _sum_windows(forms: WholeForms, winner: Winner, shape: Shape) -> WholeForms:
    """The sum over every window, in which all entries but one are zero."""
    starts = np.concatenate([[0], np.cumsum(winner.counts)[:-1]])
    numbers = np.add.reduceat(forms.rows, starts, axis=0)
    radii = None if forms.radii is None else np.add.reduceat(forms.radii.ravel(), starts)
    return WholeForms(numbers, radii, forms.denominator).reshaped(shape)


def _joined(node: Node, inputs: list[WholeForms]) -> WholeForms:
    """The sum or the concatenation of values."""
    same, operator = aligned(inputs), node.operator
    numbers, radii = [part.numbers for part in same], [part.radii for part in same if part.radii is not None]
    if isinstance(operator, Concat):
        joined = np.concatenate(radii, axis=operator.axis) if radii else None
        return WholeForms(np.concatenate(numbers, axis=operator.axis), joined, same[0].denominator)
    if not isinstance(operator, Sum):
        raise ModelError(f"exact arithmetic does not support {type(operator).__name__}, which this network contains")
    target = (*node.shape, numbers[0].shape[-1])
    signed = [sign * _broadcast(part, target) for sign, part in zip(operator.signs, numbers, strict=True)]
    spread = [_broadcast(part[..., None], (*node.shape, 1))[..., 0] for part in radii]
    return WholeForms(reduce(np.add, signed), reduce(np.add, spread) if spread else None, same[0].denominator)


def _broadcast(numbers: np.ndarray, target: Shape) -> np.ndarray:
    """Broadcast numbers (*S, C) to (*T, C)."""
    return np.broadcast_to(numbers.reshape(*(1,) * (len(target) - numbers.ndim), *numbers.shape), target)
