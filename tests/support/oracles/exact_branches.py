"""From a graph with branches to its exact map in rationals, node by node: positive ReLUs and winners of windows.

Written from the definitions of the operators. Every value of the graph is an array of affine forms in t that hold on a
polytope; a ReLU cuts the polytope where a form vanishes, a window cuts it into the parts on which each entry is the
first of the largest. Nothing is shared with the layers, the affine maps or the walks, except that `graph.frames` says
in which layer a node's bits stand.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

from steadygaze.compound import Compound
from steadygaze.network.graph import Graph
from steadygaze.network.joins import Concat, Sum, Winner
from steadygaze.network.operators import Operator, Relu
from support.oracles.exact_graph import exactly
from support.oracles.exact_numbers import as_fractions
from support.oracles.exact_polytopes import Polytope, box, integer

Key = tuple[int, ...]  # the knot cell, the clip's bits, the bits of all layers


@dataclass(frozen=True, eq=False)
class Piece:
    """A polytope, the forms (d + 1, …) of all values so far on it, the constant last, and the bits of its nodes."""

    polytope: Polytope
    values: tuple[np.ndarray | None, ...]
    bits: dict[int, tuple[int, ...]]


def exact_branching_map(compound: Compound) -> dict[Key, tuple[Polytope, np.ndarray]]:
    """The polytope and the logits' forms (d + 1, K) of every region with volume.

    Pixels, slopes and domain are floats, taken exactly.
    """
    found: dict[Key, tuple[Polytope, np.ndarray]] = {}
    for number, cell in enumerate(compound.cells):
        low, widths = as_fractions(compound.domain.low), as_fractions(compound.domain.high)
        widths = widths - low
        slope = as_fractions(cell.slope).reshape(len(low), -1)
        offset = as_fractions(compound.perturbed.x0).ravel() + as_fractions(cell.offset).ravel()
        ends = [(as_fractions(end) - low) / widths for end in (cell.low, cell.high)]
        pixels = np.vstack([slope * widths[:, None], (offset + low @ slope)[None]])
        for polytope, lower, kept in _rectified(box(*ends), pixels):
            turned = -kept
            turned[-1] += 1
            for part, upper, rest in _rectified(polytope, turned):
                image = -rest
                image[-1] += 1
                values = (image.reshape(len(low) + 1, *compound.graph.input_shape),)
                for piece in _run(compound.graph, Piece(part, values, {})):
                    key = (number, *lower, *upper, *_layered(compound.graph, piece.bits))
                    assert key not in found, "two regions share a pattern"
                    found[key] = piece.polytope, piece.values[-1].reshape(len(low) + 1, -1)
    return found


def _run(graph: Graph, piece: Piece) -> Iterator[Piece]:
    number = len(piece.values)
    if number > len(graph.nodes):
        yield piece
        return
    node = graph.nodes[number - 1]
    inputs = [piece.values[i] for i in node.inputs]
    is_unused = not any(number in frame.nodes for frame in graph.frames)
    if any(value is None for value in inputs) or (isinstance(node.operator, Relu | Winner) and is_unused):
        # No layer holds a node that the logits do not depend on.
        yield from _run(graph, Piece(piece.polytope, (*piece.values, None), piece.bits))
    elif isinstance(node.operator, Relu | Winner):
        flat = inputs[0].reshape(len(inputs[0]), -1)
        parts = _rectified if isinstance(node.operator, Relu) else _won
        for polytope, bits, result in parts(piece.polytope, flat, *_windows(node.operator)):
            value = result.reshape(len(result), *node.shape)
            yield from _run(graph, Piece(polytope, (*piece.values, value), piece.bits | {number: bits}))
    else:
        value = _joined(node.operator, inputs)
        yield from _run(graph, Piece(piece.polytope, (*piece.values, value), piece.bits))


def _windows(operator: Operator) -> list[list[list[int]]]:
    if not isinstance(operator, Winner):
        return []
    return [[[int(i) for i in row if i >= 0] for row in operator.index]]


def _joined(operator: Operator, inputs: list[np.ndarray]) -> np.ndarray:
    """The forms of an affine operator's result."""
    if isinstance(operator, Sum):
        # Broadcasting aligns the shapes of the values, not their rows of coefficients.
        rank = max(value.ndim for value in inputs) - 1
        aligned = [v.reshape(len(v), *(1,) * (rank - v.ndim + 1), *v.shape[1:]) for v in inputs]
        return sum((sign * value for sign, value in zip(operator.signs, aligned, strict=True)), Fraction(0))
    if isinstance(operator, Concat):
        return np.concatenate(inputs, axis=operator.axis + 1)
    (forms,) = inputs
    nothing = exactly(operator, np.zeros_like(forms[:1]) + Fraction(0))
    result = exactly(operator, forms)
    result[:-1] = result[:-1] - nothing
    return result


def _rectified(polytope: Polytope, forms: np.ndarray) -> Iterator[tuple[Polytope, tuple[int, ...], np.ndarray]]:
    """The parts of a polytope on which no form (d + 1, n) changes its sign, the bits and the positive parts there."""
    parts: list[tuple[Polytope, tuple[int, ...]]] = [(polytope, ())]
    for form in forms.T:
        following = []
        for part, bits in parts:
            for bit, side in enumerate(part.cut(integer(form))):
                if side is not None:
                    following.append((side, (*bits, bit)))
        parts = following
    for part, bits in parts:
        yield part, bits, forms * np.array(bits, dtype=object)


def _won(
    polytope: Polytope, forms: np.ndarray, windows: list[list[int]]
) -> Iterator[tuple[Polytope, tuple[int, ...], np.ndarray]]:
    """The parts of a polytope on which one entry wins each window, the bits of all entries, and the winners' forms."""
    parts: list[tuple[Polytope, tuple[int, ...], list[int]]] = [(polytope, (), [])]
    for window in windows:
        following = []
        for part, bits, winners in parts:
            for place, entry in enumerate(window):
                own = _where_first(part, forms, window, place)
                if own is not None:
                    following.append((own, (*bits, *(int(i == place) for i in range(len(window)))), [*winners, entry]))
        parts = following
    for part, bits, winners in parts:
        yield part, bits, forms[:, winners]


def _where_first(polytope: Polytope, forms: np.ndarray, window: list[int], place: int) -> Polytope | None:
    """The part of a polytope on which an entry is the first of the largest; None if it has no volume."""
    part: Polytope | None = polytope
    for other, entry in enumerate(window):
        lead = forms[:, window[place]] - forms[:, entry]
        if part is None or other == place:
            continue
        if any(lead):
            part = part.cut(integer(lead))[1]
        elif other < place:
            part = None
    return part


def _layered(graph: Graph, bits: dict[int, tuple[int, ...]]) -> Iterator[int]:
    for frame in graph.frames:
        for number in frame.nodes:
            yield from bits[number]
        for number in frame.carried:
            yield from (1,) * prod(graph.shape_of(number))
