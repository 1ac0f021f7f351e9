"""Decides the neurons of one layer on convex parts, in exact arithmetic: cuts parts where a sign or a winner changes.

Turns the forms before a layer into the values after it, for every pattern that occurs. The first of the largest entries
of a window wins; entries with the same form tie on the whole part. If constants are only enclosed, cuts follow the
midpoints: |ReLU(a) − ReLU(b)| ≤ |a − b| and |max a − max b| ≤ max |a − b|, so radii hold on both sides of a cut, and no
sign need be certain.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from flint import fmpz

from ..network.layers import Layer
from .network_forms import WholeForms, multiply, to_matrix
from .simplices import ConvexPart, Corner, Form, cut, evaluate


class DecidedParts(NamedTuple):
    """The values after a layer, the parts on which they hold, and the active neurons (n,) there."""

    values: WholeForms
    parts: list[ConvexPart]
    active: np.ndarray


class _Mixed(NamedTuple):
    """Forms whose sign changes on some part, and windows (lists of forms) whose winner does.

    Each form represents all neurons with the same values, and each window all windows with the same values (`firsts`
    are their first neurons): these make the same cuts.
    """

    signs: list[Form]
    neurons: list[list[int]]
    windows: list[list[Form]]
    firsts: list[list[int]]


def decide(
    forms: WholeForms, layer: Layer, parts: list[ConvexPart], counted: Callable[[int], None]
) -> list[DecidedParts]:
    """Cut parts along the kinks of neurons; `counted` receives the number of added parts and may raise to stop."""
    corners = _corners(parts)
    table = _table(forms.rows, corners)
    active, mixed = _classify(forms.rows, table, layer)
    for form in mixed.signs:
        parts = cut(parts, form, counted)
        counted(0)
    for rows in mixed.windows:
        parts = _cut_window(parts, rows, counted)
    groups: dict[tuple[tuple[bool, ...], tuple[int, ...]], list[ConvexPart]] = {}
    for part in parts:
        signs = tuple(_is_positive(form, part) for form in mixed.signs)
        groups.setdefault((signs, tuple(_leader(rows, part) for rows in mixed.windows)), []).append(part)
    results = []
    for (signs, leaders), group in groups.items():
        own = active.copy()
        for is_active, neurons in zip(signs, mixed.neurons, strict=True):
            own[neurons] = is_active
        for leader, firsts in zip(leaders, mixed.firsts, strict=True):
            own[[first + leader for first in firsts]] = True
        if forms.radii is not None and len(layer.entries):
            corners = _corners(group)
            table = _table(forms.rows, corners)
        results.append(DecidedParts(forms.gated(own, _radii(forms, layer, own, table, corners)), group, own))
    return results


def decide_point(forms: WholeForms, layer: Layer) -> tuple[WholeForms, np.ndarray]:
    """The values after a layer and its active neurons (n,), for constant forms."""
    values = forms.rows
    active = layer.carried.copy()
    relus = np.flatnonzero(layer.kind == 0)
    active[relus] = [bool(values[neuron, 0] > 0) for neuron in relus]
    for first, end in windows_of(layer):
        active[first + _first_of_largest(values[first:end, 0].tolist())] = True
    return forms.gated(active, _radii(forms, layer, active, values, [(fmpz(1),)])), active


def is_certain(forms: WholeForms, layer: Layer, active: np.ndarray) -> bool:
    """Whether the active neurons (n,) are the same for all values within the radii, for constant forms."""
    if forms.radii is None:
        return True
    values, radii = forms.rows[:, 0], forms.radii.ravel()
    for neuron in np.flatnonzero(layer.kind == 0):
        low, high = values[neuron] - radii[neuron], values[neuron] + radii[neuron]
        if not (low > 0 or high <= 0):
            return False
    for first, end in windows_of(layer):
        winner = first + int(np.argmax(active[first:end]))
        least = values[winner] - radii[winner]
        highest = [values[entry] + radii[entry] for entry in range(first, end)]
        if any(highest[entry - first] >= least for entry in range(first, winner)):
            return False
        if any(highest[entry - first] > least for entry in range(winner + 1, end)):
            return False
    return True


def windows_of(layer: Layer) -> list[tuple[int, int]]:
    """The range [first, end) of neurons of every window of a layer."""
    starts = layer.entries[layer.starts]
    return [(int(first), int(layer.ends[1][first])) for first in starts]


def _corners(parts: Sequence[ConvexPart]) -> list[Corner]:
    return list({corner: None for part in parts for corner in part.corners})


def _table(rows: np.ndarray, corners: Sequence[Corner]) -> np.ndarray:
    """The forms (n, C) at corners, each times the corner's w: (n, corners)."""
    return multiply(to_matrix(rows), np.array(corners, dtype=object).T)


def _classify(rows: np.ndarray, table: np.ndarray, layer: Layer) -> tuple[np.ndarray, _Mixed]:
    """The neurons that are active on all parts, and the signs and winners that change on some part."""
    active = layer.carried.copy()
    mixed: dict[tuple[fmpz, ...], list[int]] = {}
    relus = range(len(rows)) if layer.is_plain else np.flatnonzero(layer.kind == 0).tolist()
    listed = table.tolist()
    for neuron in relus:
        values = listed[neuron]
        if max(values) > 0:
            active[neuron] = True
            if min(values) < 0:
                mixed.setdefault(tuple(values), []).append(neuron)
    unsettled: dict[tuple[tuple[fmpz, ...], ...], list[int]] = {}
    for first, end in windows_of(layer):
        own = listed[first:end]
        leader = _first_of_largest([sum(values, start=fmpz(0)) for values in own])
        if _challenger(own, leader) is None:
            active[first + leader] = True
        else:
            unsettled.setdefault(tuple(map(tuple, own)), []).append(first)
    forms = [tuple(rows[neurons[0]]) for neurons in mixed.values()]
    windows = [[tuple(rows[first + place]) for place in range(len(own))] for own, (first, *_) in unsettled.items()]
    return active, _Mixed(forms, list(mixed.values()), windows, list(unsettled.values()))


def _cut_window(parts: list[ConvexPart], rows: list[Form], counted: Callable[[int], None]) -> list[ConvexPart]:
    """Cut parts until one entry of the window is the largest on each.

    Entries are compared only with the leader in the middle of a part: the order of the others does not matter.
    """
    waiting, done = parts[::-1], []
    while waiting:
        part = waiting.pop()
        table = [[evaluate(form, corner) for corner in part.corners] for form in rows]
        leader = _first_of_largest([sum(values, start=fmpz(0)) for values in table])
        rival = _challenger(table, leader)
        if rival is None:
            done.append(part)
            continue
        # The leader is at least as large in the middle and smaller at a corner: the difference changes its sign.
        sides = part.cut(tuple(a - b for a, b in zip(rows[leader], rows[rival], strict=True)), {})
        counted(len(sides) - 1)
        waiting += sides
    return done


def _first_of_largest(values: Sequence[fmpz]) -> int:
    return values.index(max(values))


def _challenger(table: Sequence[Sequence[fmpz]], leader: int) -> int | None:
    """The first entry that is larger than the leader at some corner; None if there is none.

    An entry that equals the leader in the middle and never exceeds it has the same form, and a later place.
    """
    own = table[leader]
    for place, values in enumerate(table):
        if any(value > best for value, best in zip(values, own, strict=True)):
            return place
    return None


def _leader(rows: list[Form], part: ConvexPart) -> int:
    """The place of the first of the largest entries in the middle of a part: the sum of homogeneous corners."""
    middle = tuple(sum(column, start=fmpz(0)) for column in zip(*part.corners, strict=True))
    return _first_of_largest([evaluate(form, middle) for form in rows])


def _is_positive(form: Form, part: ConvexPart) -> bool:
    """Whether a form that does not change its sign on the part is positive inside."""
    return any(evaluate(form, corner) > 0 for corner in part.corners)


def _radii(
    forms: WholeForms, layer: Layer, active: np.ndarray, table: np.ndarray, corners: Sequence[Corner]
) -> np.ndarray | None:
    """The radii (n,) after the layer: a window's radius is given to its winner; a ReLU that is nowhere positive has 0.

    The radius of a window is the largest radius of the entries that may exceed the winner's lower end somewhere.
    """
    if forms.radii is None:
        return None
    before = forms.radii.ravel()
    weights = np.array([corner[-1] for corner in corners], dtype=object)
    spread = before[:, None] * weights
    highest = table + spread
    radii = before.copy()
    for neuron in np.flatnonzero(layer.kind == 0):
        if max(highest[neuron]) <= 0:
            radii[neuron] = fmpz(0)
    for first, end in windows_of(layer):
        winner = first + int(np.argmax(active[first:end]))
        lowest = table[winner] - spread[winner]
        rivals = [entry for entry in range(first, end) if (highest[entry] > lowest).any()]
        radii[first:end] = fmpz(0)
        radii[winner] = max((before[entry] for entry in rivals), default=fmpz(0))
    return radii
