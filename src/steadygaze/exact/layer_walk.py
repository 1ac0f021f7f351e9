"""Walks convex parts of the domain through the compound network, layer by layer, in exact arithmetic.

Parts with the same pattern so far share their forms and pass a layer together. The kink of a neuron cuts a part
(`deciding`); the logits cut it once more where the label ties with a rival.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from time import monotonic

import numpy as np
from flint import fmpz

from ..network.layers import Layer
from .deciding import decide
from .exact_network import ExactNetwork
from .network_forms import WholeForms
from .simplices import ConvexPart, Form, cut, evaluate

CLIP_STAGES = 2
MOST_CANDIDATES = 16

Rows = list[Form]


class LimitReachedError(Exception):
    """The time limit or the limit of parts is reached; the message names it."""


@dataclass
class WalkLimits:
    """The limits of a walk: a deadline on the `monotonic` clock, the number of parts that cuts may still add, and
    whether the run as a whole has to end.
    """

    deadline: float
    parts: int
    is_over: Callable[[], bool] = lambda: False

    def count(self, added: int) -> None:
        """Count added parts and check the clock; raises LimitReachedError."""
        self.parts -= added
        if self.parts < 0:
            raise LimitReachedError("max_parts is reached")
        if self.is_late:
            raise LimitReachedError("limit_seconds is reached")

    @property
    def is_late(self) -> bool:
        """Whether no time is left."""
        return monotonic() > self.deadline or self.is_over()


@dataclass
class Signs:
    """The signs of an exact piecewise linear function, and on request the volumes of the parts."""

    positive: bool = False
    negative: bool = False
    zero: bool = False
    positive_volume: Fraction = Fraction(0)
    negative_volume: Fraction = Fraction(0)

    def add(self, other: "Signs") -> None:
        """Merge the signs on other parts."""
        self.positive |= other.positive
        self.negative |= other.negative
        self.zero |= other.zero
        self.positive_volume += other.positive_volume
        self.negative_volume += other.negative_volume


@dataclass
class WalkFindings:
    """The signs of a lower and an upper bound of the margin, and parts where the margin is negative.

    If `is_exact`, both bounds equal the margin. `volume` is the volume of all parts, on request.
    """

    with_volumes: bool
    is_exact: bool = True
    lower: Signs = field(default_factory=Signs)
    upper: Signs = field(default_factory=Signs)
    volume: Fraction = Fraction(0)
    lost: list[ConvexPart] = field(default_factory=list)

    @property
    def is_mixed(self) -> bool:
        """Whether the margin is proved positive somewhere and negative elsewhere."""
        return self.lower.positive and self.upper.negative

    @property
    def is_settled(self) -> bool:
        """Whether the rest of the walk cannot change the outcome."""
        return self.is_mixed and not self.with_volumes


def walk(
    network: ExactNetwork,
    pixels: WholeForms,
    parts: list[ConvexPart],
    label: int,
    limits: WalkLimits,
    findings: WalkFindings,
) -> None:
    """Add the signs on parts of one knot cell to the findings; `pixels` are the unclipped pixels as forms."""
    for forms, group, _ in leaves(network, pixels, parts, limits):
        _add_margin_signs(forms, group, label, limits, findings)
        if findings.is_settled:
            return


def leaves(
    network: ExactNetwork, pixels: WholeForms, parts: list[ConvexPart], limits: WalkLimits
) -> Iterator[tuple[WholeForms, list[ConvexPart], tuple[np.ndarray, ...]]]:
    """Yield the forms of the logits, the parts on which they hold, and the active neurons there; no kink cuts a part.

    Patterns cover the layers of the classifier; if constants are only enclosed, they are the patterns of the midpoints.
    """
    stack: list[tuple[int, WholeForms, list[ConvexPart], tuple[np.ndarray, ...]]] = [(0, pixels, parts, ())]
    last = CLIP_STAGES + network.passages - 1
    while stack:
        limits.count(0)
        stage, values, group, pattern = stack.pop()
        forms = advance(network, stage, values)
        if stage == last:
            yield forms, group, pattern
            continue
        for passed, own, active in decide(forms, layer_at(network, stage, len(forms.rows)), group, limits.count):
            stack.append((stage + 1, passed, own, pattern if stage < CLIP_STAGES else (*pattern, active)))


def layer_at(network: ExactNetwork, stage: int, count: int) -> Layer:
    """The neurons after a stage; each of the two stages of the clip has one ReLU per pixel."""
    return Layer.relus(count) if stage < CLIP_STAGES else network.layers[stage - CLIP_STAGES]


def advance(network: ExactNetwork, stage: int, values: WholeForms) -> WholeForms:
    """Carry values after one layer to the forms before the next; the first two stages are the clip to [0, 1]."""
    if stage == 0:
        return values
    if stage == 1:
        return values.one_minus()
    return network.advance(stage - CLIP_STAGES, values.one_minus() if stage == CLIP_STAGES else values)


def margins(logits: WholeForms, label: int) -> tuple[Rows, Rows]:
    """Forms of f_label − f_j for all other classes j, minus the radius and plus it; the same twice without a radius."""
    rows = logits.rows
    others = [j for j in range(len(rows)) if j != label]
    exact = [tuple(rows[label] - rows[j]) for j in others]
    if logits.radii is None:
        return exact, exact
    radii = logits.radii.ravel()
    sums = [radii[label] + radii[j] for j in others]
    lower = [(*row[:-1], row[-1] - radius) for row, radius in zip(exact, sums, strict=True)]
    upper = [(*row[:-1], row[-1] + radius) for row, radius in zip(exact, sums, strict=True)]
    return lower, upper


def _add_margin_signs(
    forms: WholeForms, parts: list[ConvexPart], label: int, limits: WalkLimits, findings: WalkFindings
) -> None:
    lower, upper = margins(forms, label)
    if findings.with_volumes:
        findings.volume += sum((part.volume for part in parts), start=Fraction(0))
    above = _signs(upper, parts, limits, findings.with_volumes, findings.lost)
    findings.upper.add(above)
    if lower is upper:
        findings.lower.add(above)
    else:
        findings.is_exact = False
        findings.lower.add(_signs(lower, parts, limits, findings.with_volumes, None))


def _signs(
    forms: Rows, parts: list[ConvexPart], limits: WalkLimits, with_volumes: bool, lost: list[ConvexPart] | None
) -> Signs:
    """The signs of the minimum of the forms on the parts; adds some parts where it is negative to `lost`."""
    signs = Signs()
    for part in parts:
        table = [[evaluate(form, corner) for corner in part.corners] for form in forms]
        pieces = [part]
        if not any(max(row) < 0 for row in table):
            for form, row in zip(forms, table, strict=True):
                if min(row) < 0 < max(row):
                    pieces = cut(pieces, form, limits.count)
        for piece in pieces:
            sign = _add_sign(signs, forms, piece)
            if sign < 0 and lost is not None and len(lost) < MOST_CANDIDATES:
                lost.append(piece)
            if with_volumes and sign > 0:
                signs.positive_volume += piece.volume
            elif with_volumes and sign < 0:
                signs.negative_volume += piece.volume
    return signs


def _add_sign(signs: Signs, forms: Rows, part: ConvexPart) -> int:
    """Record the signs on a part where one form is negative or no form changes sign; return the sign inside.

    If no form changes its sign, the minimum vanishes on the part only if it vanishes at a corner, and it has the same
    sign at all inner points.
    """
    table = [[evaluate(form, corner) for corner in part.corners] for form in forms]
    if any(max(row) < 0 for row in table):
        signs.negative = True
        return -1
    lowest = [min(column) for column in zip(*table, strict=True)]
    signs.zero |= any(value == 0 for value in lowest)
    # The sum of homogeneous corners is an inner point.
    inner = min(sum(row, start=fmpz(0)) for row in table)
    signs.positive |= inner > 0
    signs.negative |= inner < 0
    return 1 if inner > 0 else -1 if inner < 0 else 0
