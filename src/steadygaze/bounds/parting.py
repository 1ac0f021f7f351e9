"""Finds planes that part boxes, a neuron's kink or the crossing of two logits, with proved enclosures on either side.

A box that a kink or a decision boundary crosses stays undecided however often it is halved, and with many parameters
there are very many boxes along it. But an affine form shows where, on either side of the plane, the sign is certain.
There the margin has a known sign, or the neuron a known bit; its derivative is 0 or 1, never in between. So a few
neurons of unknown sign have few patterns, and each pattern has its own enclosure.
"""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from ..tolerances import UNIT, up
from .bounder import Bounder
from .decisions import OPEN
from .forms import Forms
from .passes import Passed, Readout, decide_layers

MOST_OPEN = 3  # the most neurons of unknown sign whose patterns are tried one by one


@dataclass(frozen=True, eq=False)
class PartingPlanes:
    """C candidates for each of B boxes e ∈ [−1, 1]^d: the side is certain where |slopes · e + offset| > slack.

    slopes (B, C, d), offset and slack (B, C); the slack is infinite if there is no candidate. margin and inconsistency
    (B, C, 2, 2): proved enclosures on the positive, then on the negative side. inside (B, 2): an enclosure of the
    inconsistency on the whole box.
    """

    slopes: np.ndarray
    offset: np.ndarray
    slack: np.ndarray
    margin: np.ndarray
    inconsistency: np.ndarray
    inside: np.ndarray


def find_planes(
    bounder: Bounder, cell: int, low: np.ndarray, high: np.ndarray, margin: np.ndarray, inconsistency: np.ndarray,
    *, asks_attention: bool,
) -> PartingPlanes:  # fmt: skip
    """The candidates on boxes with corners low and high (B, d) in t and known enclosures (B, 2), in one knot cell."""
    d = low.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        layers = list(decide_layers(bounder.segments, bounder.layers, bounder.image(cell, low, high), d, bounder.room))
        inputs = [found.inputs for found in layers]
        last = layers[-1].output if layers else bounder.image(cell, low, high)
        passed = Passed(tuple(found.bits for found in layers), last, np.zeros(len(low), dtype=np.int64), 0.0 * low)
        rivals = _rival_planes(bounder.margins, last, d, margin, inconsistency)
        if not asks_attention or not all(layer.is_plain for layer in bounder.layers):
            return rivals
        return _with_neurons(rivals, bounder, passed, inputs, cell, low, high, margin)


def _rival_planes(
    margins: Readout, last: Forms, d: int, margin: np.ndarray, inconsistency: np.ndarray
) -> PartingPlanes:
    """One candidate for each other class: where its logit equals that of the label."""
    slopes, offset, slack = margins.planes(last, d)
    least, _ = margins.bounds(last)
    count = offset.shape[1]
    # Beyond the plane the label is lost. Before the plane it is kept if no other class may win.
    others = np.tile(least[:, None], (1, count, 1))
    others[:, np.arange(count), np.arange(count)] = np.inf
    sure = np.minimum(others.min(axis=2, initial=np.inf), np.finfo(np.float64).tiny)
    before = np.stack([np.maximum(margin[:, None, 0], sure), np.tile(margin[:, 1:], (1, count))], axis=2)
    lost = np.minimum(margin[:, None, 1], -np.finfo(np.float64).tiny)
    beyond = np.stack([np.tile(margin[:, :1], (1, count)), np.tile(lost, (1, count))], axis=2)
    sides = np.stack([before, beyond], axis=2)
    known = np.tile(inconsistency[:, None, None], (1, count, 2, 1))
    is_possible = (sides[..., 0] <= sides[..., 1]).all(axis=2)
    return PartingPlanes(slopes, offset, np.where(is_possible, slack, np.inf), sides, known, inconsistency)


def _with_neurons(
    rivals: PartingPlanes, bounder: Bounder, passed: Passed, inputs: list[Forms], cell: int,
    low: np.ndarray, high: np.ndarray, margin: np.ndarray,
) -> PartingPlanes:  # fmt: skip
    """Add candidates for up to MOST_OPEN neurons of unknown sign, with enclosures that hold for all their patterns."""
    bits = np.concatenate([np.zeros((len(low), 0), dtype=np.uint8), *passed.bits], axis=1)
    is_open = bits == OPEN
    count, d, boxes = is_open.sum(axis=1), low.shape[1], len(low)
    slopes, offset = np.zeros((boxes, MOST_OPEN, d)), np.zeros((boxes, MOST_OPEN))
    slack, inside = np.full((boxes, MOST_OPEN), np.inf), rivals.inside.copy()
    reach = np.tile([0.0, np.inf], (boxes, MOST_OPEN, 2, 1))
    for number in range(1, MOST_OPEN + 1):
        chosen = np.flatnonzero(count == number)
        if not len(chosen):
            continue
        neurons = np.nonzero(is_open[chosen])[1].reshape(-1, number)
        for place in range(number):
            own = _neuron_planes(inputs, chosen, neurons[:, place], d)
            slopes[chosen, place], offset[chosen, place], slack[chosen, place] = own
        signs = np.array(list(product((1, 0), repeat=number)), dtype=np.uint8)
        found = _pattern_enclosures(bounder, passed, chosen, neurons, signs, cell, low, high)
        inside[chosen] = _meet(inside[chosen], _union(found))
        for place in range(number):
            for side, sign in enumerate((1, 0)):
                union = _union(found[:, signs[:, place] == sign])
                reach[chosen, place, side] = _meet(rivals.inside[chosen], union)
    known = np.tile(margin[:, None, None], (1, MOST_OPEN, 2, 1))
    rival_reach = np.tile(inside[:, None, None], (1, rivals.offset.shape[1], 2, 1))
    return PartingPlanes(
        np.concatenate([rivals.slopes, slopes], axis=1), np.concatenate([rivals.offset, offset], axis=1),
        np.concatenate([rivals.slack, slack], axis=1), np.concatenate([rivals.margin, known], axis=1),
        np.concatenate([rival_reach, reach], axis=1), inside,
    )  # fmt: skip


def _neuron_planes(
    inputs: list[Forms], chosen: np.ndarray, neurons: np.ndarray, d: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slopes (N, d), offset and slack (N,) of one neuron of each chosen box, numbered through all layers."""
    slopes, offset, slack = np.zeros((len(chosen), d)), np.zeros(len(chosen)), np.full(len(chosen), np.inf)
    first = 0
    for forms in inputs:
        size = forms.remainder.shape[1]
        here = np.flatnonzero((neurons >= first) & (neurons < first + size))
        box, neuron = chosen[here], neurons[here] - first
        own = forms.forms[box, :, neuron]
        generators = np.abs(own[:, 1 + d :]).sum(axis=1) * up(own.shape[1])
        slopes[here], offset[here] = own[:, 1 : 1 + d], own[:, 0]
        slack[here] = (forms.rest[box, neuron] + generators) * (1.0 + 8.0 * UNIT)
        first += size
    is_known = np.isfinite(slopes).all(axis=1) & np.isfinite(offset) & np.isfinite(slack)
    return slopes, offset, np.where(is_known, slack, np.inf)


def _pattern_enclosures(
    bounder: Bounder, passed: Passed, chosen: np.ndarray, neurons: np.ndarray, signs: np.ndarray, cell: int,
    low: np.ndarray, high: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Enclosures (N, P, 2) of the inconsistency under each of P sign patterns (P, k) of neurons (N, k)."""
    count = len(signs)
    rows, found = np.repeat(chosen, count), []
    values, places = np.tile(signs, (len(chosen), 1)), np.repeat(neurons, count, axis=0)
    sizes = np.cumsum([0, *(part.shape[1] for part in passed.bits)])
    for start in range(0, len(rows), bounder.batch):
        part = slice(start, start + bounder.batch)
        own = passed.take(rows[part])
        together = np.concatenate(own.bits, axis=1)
        np.put_along_axis(together, places[part], values[part], axis=1)
        own = replace(own, bits=tuple(np.split(together, sizes[1:-1], axis=1)))
        own = replace(own, bits=tuple(np.ascontiguousarray(bits) for bits in own.bits))
        found.append(bounder.inconsistency_bounds(own, cell, low[rows[part]], high[rows[part]]))
    return np.concatenate(found).reshape(len(chosen), count, 2)


def _union(enclosures: np.ndarray) -> np.ndarray:
    """The union (N, 2) of enclosures (N, P, 2)."""
    return np.stack([enclosures[:, :, 0].min(axis=1), enclosures[:, :, 1].max(axis=1)], axis=1)


def _meet(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The intersection of proved enclosures (N, 2), or the first if it is empty: then the side contains no theta."""
    both = np.stack([np.maximum(first[:, 0], second[:, 0]), np.minimum(first[:, 1], second[:, 1])], axis=1)
    return np.where((both[:, 0] <= both[:, 1])[:, None], both, first)
