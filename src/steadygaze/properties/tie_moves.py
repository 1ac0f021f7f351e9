"""Tries to move a window's winner to an entry that ties with it, on many patterns at once.

A move that changes the maps of one region usually changes those of its neighbours. `TieMove.applies` proves for a batch
of patterns that both entries are equal by construction. It follows both entries down to the pixels, term by term: sums
must have the same weights in the same order, ReLUs the same bit, and windows their winners at the same place. These
conditions suffice, and testing them costs much less than numbering all values (`value_numbers`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..network.joins import Sum, Winner
from ..network.operators import Linear, Relu, Reshape
from .value_numbers import NumberedGraph

MOST_PAIRS = 4096
"""The most pairs of values that a move may compare; moves far above the pixels need more and are left out."""


class _Pairs(NamedTuple):
    """The compared pairs (P, 2) of values of a node, and the pairs of its inputs that make them equal.

    first (P + 1,): where the inputs of each pair start in `inputs`, which holds the node and pair of each input. gates:
    the layer, and the neurons (inputs, 2) of both sides whose bits must be set for an input to count; None for sums.
    """

    first: np.ndarray
    inputs: list[tuple[int, int]]
    gates: tuple[int, np.ndarray] | None
    is_relu: bool


@dataclass(frozen=True, eq=False)
class TieMove:
    """A move of the winner of a window to another entry of the window."""

    layer: int
    winner: int
    entry: int
    nodes: dict[int, _Pairs]
    pixels: np.ndarray
    """The compared pairs (P, 2) of pixels."""
    top: tuple[int, int] | None
    """The node and pair of the two entries; None if they read the same value."""

    @classmethod
    def between(cls, numbered: NumberedGraph, layer: int, winner: int, entry: int) -> "TieMove | None":
        """The move, or None if the two entries are sums of different kinds, or too many values would be compared."""
        return _MoveBuilder(numbered).build(layer, winner, entry)

    def applies(self, bits: Sequence[np.ndarray], is_same_pixel: np.ndarray) -> np.ndarray:
        """Under which patterns (B,) the winner wins and the entry equals it by construction.

        bits: (B, n), layer by layer. is_same_pixel (B, P): which pairs of `pixels` are equal.
        """
        found = bits[self.layer][:, self.winner].copy()
        if self.top is None:
            return found
        equal = {0: is_same_pixel}
        for number in sorted(self.nodes):
            equal[number] = self._compare(self.nodes[number], bits, equal)
        return found & equal[self.top[0]][:, self.top[1]]

    def _compare(self, pairs: _Pairs, bits: Sequence[np.ndarray], equal: dict[int, np.ndarray]) -> np.ndarray:
        """Which pairs (B, P) of a node are equal, given those of its inputs; node −1 means the same value twice."""
        count, sides = len(bits[0]), len(pairs.first) - 1
        inputs = np.ones((count, len(pairs.inputs) + 1), dtype=bool)
        for place, (node, pair) in enumerate(pairs.inputs):
            if node >= 0:
                inputs[:, place] = equal[node][:, pair]
        if pairs.gates is None:
            # The last column, always true, keeps sums without inputs from reading beyond the end.
            found = np.logical_and.reduceat(inputs, pairs.first[:-1], axis=1) if sides else inputs[:, :0]
            return found | (np.diff(pairs.first) == 0)
        layer, places = pairs.gates
        one, two = bits[layer][:, places[:, 0]], bits[layer][:, places[:, 1]]
        own = inputs[:, :-1] & one & two
        if pairs.is_relu:
            return own | ~(one | two)
        return np.logical_or.reduceat(own, pairs.first[:-1], axis=1)


class _MoveBuilder:
    """Collects the pairs of values that two entries of a window depend on."""

    def __init__(self, numbered: NumberedGraph) -> None:
        self.numbered, self.graph = numbered, numbered.graph
        self.wanted: dict[int, dict[tuple[int, int], int]] = {}
        self.total = 0

    def build(self, layer: int, winner: int, entry: int) -> TieMove | None:
        number, first = self.numbered.node_of(layer, winner)
        node = self.graph.nodes[number - 1]
        assert isinstance(node.operator, Winner)
        one, two = (int(node.operator.entries[neuron - first]) for neuron in (winner, entry))
        top = self._want(node.inputs[0], one, two)
        nodes: dict[int, _Pairs] = {}
        for below in range(number - 1, 0, -1):
            if below in self.wanted:
                found = self._pairs(below, list(self.wanted[below]))
                if found is None or self.total > MOST_PAIRS:
                    return None
                nodes[below] = found
        pixels = np.array(list(self.wanted.get(0, {})), dtype=np.int64).reshape(-1, 2)
        return TieMove(layer, winner, entry, nodes, pixels, top if top[0] >= 0 else None)

    def _want(self, node: int, one: int, two: int) -> tuple[int, int]:
        """The node and the index of a pair of its values; node −1 if both are the same value."""
        if one == two:
            return -1, 0
        known = self.wanted.setdefault(node, {})
        self.total += (one, two) not in known
        return node, known.setdefault((one, two), len(known))

    def _pairs(self, number: int, pairs: list[tuple[int, int]]) -> _Pairs | None:
        """The inputs of the pairs of a node; None if two sums differ in kind."""
        node = self.graph.nodes[number - 1]
        operator, below = node.operator, node.inputs[0]
        if isinstance(operator, Reshape):
            inputs = [self._want(below, *pair) for pair in pairs]
            return _Pairs(np.arange(len(pairs) + 1), inputs, None, False)
        if isinstance(operator, Relu):
            layer, first = self.numbered.place_of(number)
            inputs = [self._want(below, *pair) for pair in pairs]
            return _Pairs(np.arange(len(pairs) + 1), inputs, (layer, first + np.array(pairs)), True)
        if isinstance(operator, Winner):
            return self._windows(number, operator, pairs)
        if not isinstance(operator, Linear | Sum) or not self.numbered.is_known(number):
            return None
        return self._sums(number, pairs)

    def _windows(self, number: int, operator: Winner, pairs: list[tuple[int, int]]) -> _Pairs | None:
        layer, first = self.numbered.place_of(number)
        starts = np.concatenate([[0], np.cumsum(operator.counts)])
        inputs, places, sizes = [], [], [0]
        for one, two in pairs:
            entries = [np.arange(starts[window], starts[window + 1]) for window in (one, two)]
            if len(entries[0]) != len(entries[1]):
                return None
            below = self.graph.nodes[number - 1].inputs[0]
            inputs += [
                self._want(below, int(operator.entries[a]), int(operator.entries[b]))
                for a, b in zip(*entries, strict=True)
            ]
            places.append(np.stack(entries, axis=1))
            sizes.append(len(entries[0]))
        return _Pairs(np.cumsum(sizes), inputs, (layer, first + np.concatenate(places)), False)

    def _sums(self, number: int, pairs: list[tuple[int, int]]) -> _Pairs | None:
        """The terms of both sums of each pair, which must have the same weights in the same order and the same bias."""
        index, weights, bias = self.numbered.terms_of(number)
        node = self.graph.nodes[number - 1]
        firsts = np.cumsum([0, *(int(np.prod(self.graph.shape_of(value))) for value in node.inputs)])
        inputs, sizes = [], [0]
        for one, two in pairs:
            terms = [index[side][index[side] >= 0] for side in (one, two)]
            own = [weights[side][index[side] >= 0] for side in (one, two)]
            is_same = len(terms[0]) == len(terms[1]) and bias[one] == bias[two] and (own[0] == own[1]).all()
            if not is_same:
                return None
            for a, b in zip(terms[0].tolist(), terms[1].tolist(), strict=True):
                part = int(np.searchsorted(firsts, a, side="right")) - 1
                if not firsts[part] <= b < firsts[part + 1]:
                    return None
                inputs.append(self._want(node.inputs[part], a - int(firsts[part]), b - int(firsts[part])))
            sizes.append(len(terms[0]))
        return _Pairs(np.cumsum(sizes), inputs, None, False)
