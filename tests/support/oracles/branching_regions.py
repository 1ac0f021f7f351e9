"""The exact map of a small graph with branches and windows, node by node, from the definitions alone.

A ReLU splits where its value changes sign, a window where another entry becomes the largest; of equal entries the first
wins. Layers of the package serve only to write the decisions of nodes as one pattern.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from steadygaze.compound import Compound
from steadygaze.network.graph import Graph
from steadygaze.network.joins import Concat, Sum, Winner
from steadygaze.network.operators import Operator, Relu
from steadygaze.perturbation import KnotCell
from support.oracles.exact_graph import exactly
from support.oracles.exact_numbers import on_grid
from support.oracles.exact_polytopes import Polytope, integer
from support.oracles.exact_regions import ExactMap, ExactRegion, cell_polytope

Bits = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Piece:
    """A polytope, the decisions of nodes so far, and the forms (d+1, …) of all values on it, slopes first."""

    polytope: Polytope
    decided: dict[int, Bits]
    values: dict[int, np.ndarray]


def branching_map(compound: Compound, *, denominator: int = 2**20) -> ExactMap:
    """The map of a compound network; pixels are multiples of 1/denominator."""
    regions: list[ExactRegion] = []
    for cell in compound.cells:
        for polytope, clip, pixels in _clipped(compound, cell, denominator):
            start = Piece(polytope, {}, {0: pixels.reshape(len(pixels), *compound.graph.input_shape)})
            for piece in _through(compound.graph, start):
                rows = piece.values[len(compound.graph.nodes)].reshape(len(pixels), -1)
                key = (cell.index, *clip, *pattern_of(compound.graph, piece.decided))
                regions.append(ExactRegion(key, piece.polytope, tuple(map(tuple, rows.T.tolist()))))
    return ExactMap(tuple(regions))


def pattern_of(graph: Graph, decided: dict[int, Bits]) -> Bits:
    """The decisions of all nodes as the pattern of the graph's layers; carried neurons are active."""
    bits: list[int] = []
    for frame in graph.frames:
        for number in frame.nodes:
            bits += decided[number]
        for number in frame.carried:
            bits += [1] * int(np.prod(graph.shape_of(number)))
    return tuple(bits)


def decisions_at(graph: Graph, image: np.ndarray) -> dict[int, Bits]:
    """The decisions of all nodes for one image (C, H, W) of rationals, by a forward pass."""
    values, decided = {0: image[None]}, {}
    for number, node in enumerate(graph.nodes, start=1):
        inputs = [values[i] for i in node.inputs]
        flat = inputs[0].ravel()
        if isinstance(node.operator, Relu):
            decided[number] = tuple(int(value > 0) for value in flat)
            values[number] = np.where(inputs[0] > 0, inputs[0], Fraction(0))
        elif isinstance(node.operator, Winner):
            windows = [[flat[i] for i in row if i >= 0] for row in node.operator.index]
            decided[number] = tuple(int(i == own.index(max(own))) for own in windows for i in range(len(own)))
            values[number] = np.array([max(own) for own in windows], dtype=object).reshape(1, *node.shape)
        else:
            values[number] = _linear(node.operator, inputs)
    return decided


def _clipped(compound: Compound, cell: KnotCell, denominator: int) -> Iterator[tuple[Polytope, Bits, np.ndarray]]:
    """The parts of a knot cell where every pixel is 0, between, or 1: polytope, bits, forms (d+1, pixels)."""
    low, high = ([Fraction(float(v)) for v in end] for end in (compound.domain.low, compound.domain.high))
    d, widths = len(low), [b - a for a, b in zip(low, high, strict=True)]
    slope = [[on_grid(v, denominator) for v in row] for row in cell.slope.reshape(d, -1)]
    offset = [on_grid(v, denominator) for v in (compound.perturbed.x0 + cell.offset).ravel()]
    parts: list[tuple[Polytope, list[tuple[int, int, list[Fraction]]]]] = [(cell_polytope(compound, cell), [])]
    for pixel, constant in enumerate(offset):
        form = [slope[axis][pixel] * widths[axis] for axis in range(d)]
        form.append(constant + sum(slope[axis][pixel] * low[axis] for axis in range(d)))
        above = [-number for number in form]
        above[-1] += 1
        following = []
        for polytope, bits in parts:
            zero, positive = polytope.cut(integer(form))
            if zero is not None:
                following.append((zero, [*bits, (0, 1, [Fraction(0)] * (d + 1))]))
            if positive is not None:
                one, between = positive.cut(integer(above))
                if one is not None:
                    following.append((one, [*bits, (1, 0, [*[Fraction(0)] * d, Fraction(1)])]))
                if between is not None:
                    following.append((between, [*bits, (1, 1, form)]))
        parts = following
    for polytope, pixels in parts:
        clip = (*(one[0] for one in pixels), *(one[1] for one in pixels))
        yield polytope, clip, np.array([one[2] for one in pixels], dtype=object).T


def _through(graph: Graph, start: Piece) -> list[Piece]:
    """The pieces with volume that all nodes leave of one."""
    pieces, in_layers = [start], {number for frame in graph.frames for number in frame.nodes}
    for number, node in enumerate(graph.nodes, start=1):
        if isinstance(node.operator, Relu | Winner) and number not in in_layers:
            continue  # nothing in a layer, nor a logit, depends on it
        if any(i not in pieces[0].values for i in node.inputs):
            continue
        following: list[Piece] = []
        for piece in pieces:
            inputs = [piece.values[i] for i in node.inputs]
            rows = inputs[0].reshape(len(inputs[0]), -1)
            parts: list[tuple[Polytope, Bits, np.ndarray]] = []
            if isinstance(node.operator, Relu):
                parts = list(_signs(piece.polytope, rows))
            elif isinstance(node.operator, Winner):
                parts = list(_winners(piece.polytope, rows, node.operator))
            else:
                forms = _linear(node.operator, inputs)
                following.append(Piece(piece.polytope, piece.decided, {**piece.values, number: forms}))
            for polytope, bits, chosen in parts:
                values = {**piece.values, number: chosen.reshape(len(rows), *node.shape)}
                following.append(Piece(polytope, {**piece.decided, number: bits}, values))
        pieces = following
    return pieces


def _signs(polytope: Polytope, rows: np.ndarray) -> Iterator[tuple[Polytope, Bits, np.ndarray]]:
    """The parts of a polytope by the signs of forms (d+1, n), and the forms where they are positive."""
    parts: list[tuple[Polytope, Bits]] = [(polytope, ())]
    for form in rows.T.tolist():
        sides = [(part.cut(integer(form)), bits) for part, bits in parts]
        parts = [(side, (*bits, bit)) for pair, bits in sides for bit, side in enumerate(pair) if side is not None]
    for part, bits in parts:
        yield part, bits, rows * np.array(bits, dtype=object)


def _winners(polytope: Polytope, rows: np.ndarray, operator: Winner) -> Iterator[tuple[Polytope, Bits, np.ndarray]]:
    """The parts of a polytope by the winners of all windows over forms (d+1, n), and the winners' forms."""
    parts: list[tuple[Polytope, Bits, list[int]]] = [(polytope, (), [])]
    for row in operator.index:
        window, following = [int(i) for i in row if i >= 0], []
        for part, bits, chosen in parts:
            for place, entry in enumerate(window):
                left = _where_first(part, [rows[:, i].tolist() for i in window], place)
                if left is not None:
                    own = tuple(int(i == place) for i in range(len(window)))
                    following.append((left, (*bits, *own), [*chosen, entry]))
        parts = following
    for part, bits, chosen in parts:
        yield part, bits, rows[:, chosen]


def _where_first(polytope: Polytope, forms: Sequence[Sequence[Fraction]], place: int) -> Polytope | None:
    """The part of a polytope where one of the forms is the first of the largest; None without volume."""
    part: Polytope | None = polytope
    for other, rival in enumerate(forms):
        lead = [a - b for a, b in zip(forms[place], rival, strict=True)]
        if part is None or (not any(lead) and other < place):
            return None
        if any(lead):
            part = part.cut(integer(lead))[1]
    return part


def _linear(operator: Operator, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """The forms (d+1, …) that a linear operator makes of forms: its constants belong to the last row alone."""
    if isinstance(operator, Sum | Concat):
        return operator.apply(*inputs)
    (rows,) = inputs
    result, constant = exactly(operator, rows), exactly(operator, rows[:1] * Fraction(0))
    return np.concatenate([result[:-1] - constant, result[-1:]])
