"""Settles in exact arithmetic whether a small convex part of the domain keeps the label.

Turns a polytope in t into a `Settlement`: the outcome, a witness, bounds on the shares that keep and lose the label.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from itertools import product
from math import inf, nextafter
from time import monotonic
from typing import NamedTuple

import numpy as np

from ..compound import Compound
from ..errors import OptionError
from .deciding import decide_point, is_certain
from .exact_network import ExactNetwork
from .exact_pixels import ExactPixels, parts_by_cell, polytope_parts, unit_corner
from .layer_walk import (
    CLIP_STAGES,
    LimitReachedError,
    WalkFindings,
    WalkLimits,
    advance,
    layer_at,
    leaves,
    margins,
    walk,
)
from .network_forms import WholeForms
from .simplices import ConvexPart


class LabelOutcome(Enum):
    """The proved sign of the margin on a polytope, its border included."""

    KEPT = "the margin is positive everywhere"
    LOST = "the margin is negative everywhere"
    MIXED = "the margin is positive on a part with volume and negative on another"
    TIED = "the margin vanishes somewhere and does not take both signs"
    OPEN = "undecided, for the reason given"


class Bounds(NamedTuple):
    """Exact ends of an interval that contains the true value; equal if the value is known exactly."""

    low: Fraction
    high: Fraction


class LabelShares(NamedTuple):
    """Shares of the unit cube, each (low, high) in floats rounded outward; the rest of the polytope is tied."""

    kept: tuple[float, float]
    lost: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Settlement:
    """The outcome for one polytope, with a witness and shares.

    `witness` is a theta (d,) of the polytope, exact in float64, with a negative margin; None if none was found.
    `has_kept` and `has_lost`: which signs are proved to occur on parts with volume (for TIED at most one of them; for
    OPEN those found so far). `shares` refer to the polytope without its inflation; None unless requested. `reason`
    explains why an outcome is OPEN.
    """

    outcome: LabelOutcome
    witness: np.ndarray | None = None
    has_kept: bool = False
    has_lost: bool = False
    shares: LabelShares | None = None
    reason: str = ""


PRECISIONS = (256, 1024, 4096)
"""Bits of enclosed constants (square roots), tried in turn until they decide the outcome."""


class ExactLabels:
    """Settles polytopes for one compound network and one label; keeps the exact weights between calls.

    Raises ModelError for a network with an unsupported operator, or with constants that were rounded when the file was
    read. A walk ends when it reaches a limit, or as soon as `is_over` returns True.
    """

    def __init__(self, compound: Compound, label: int, is_over: Callable[[], bool] = lambda: False) -> None:
        if not 0 <= label < compound.graph.classes:
            raise OptionError(f"label {label} does not exist; give 0 to {compound.graph.classes - 1}")
        self.compound, self.label, self.is_over = compound, label, is_over
        self._pixels = ExactPixels(compound.perturbed)
        self._networks = {PRECISIONS[0]: ExactNetwork(compound.graph, PRECISIONS[0])}

    def margin_at(self, theta: np.ndarray, *, bits: int = PRECISIONS[0]) -> Bounds:
        """The true margin at one theta (d,) of the domain: exact, or an interval if constants are only enclosed."""
        theta = np.asarray(theta, dtype=np.float64)
        if not self.compound.domain.contains(theta):
            raise OptionError(f"theta {theta.tolist()} lies outside the domain; give one inside")
        *_, forms = self._layers(self._pixels.at(theta), bits)
        lower, upper = (min(row[0] for row in rows) for rows in margins(forms, self.label))
        return Bounds(Fraction(int(lower), int(forms.denominator)), Fraction(int(upper), int(forms.denominator)))

    def winners_at_original(self) -> list[int]:
        """The classes that may have the largest logit at the unperturbed image; several if tied or only enclosed."""
        winners = list[int]()
        for bits in PRECISIONS:
            *_, forms = self._layers(self._pixels.original, bits)
            values = forms.rows[:, 0]
            radii = np.zeros_like(values) if forms.radii is None else forms.radii.ravel()
            least = max(value - radius for value, radius in zip(values, radii, strict=True))
            winners = [j for j, value in enumerate(values) if value + radii[j] >= least]
            if len(winners) == 1 or forms.radii is None:
                break
        return winners

    def pattern_at_original(self) -> list[np.ndarray] | None:
        """The active neurons (n,) of every layer at the unperturbed image; None if enclosures do not decide them."""
        found: list[np.ndarray] = []
        *inputs, _ = self._layers(self._pixels.original, PRECISIONS[-1])
        for forms, layer in zip(inputs[CLIP_STAGES:], self.compound.graph.layers, strict=True):
            active = decide_point(forms, layer)[1]
            if not is_certain(forms, layer, active):
                return None
            found.append(active)
        return found

    def _layers(self, forms: WholeForms, bits: int) -> Iterator[WholeForms]:
        """Given the pixels, the inputs of all layers from the clip on, and then the logits, as constant forms."""
        network = self._network(bits)
        yield forms
        for stage in range(1, CLIP_STAGES + network.passages):
            layer = layer_at(network, stage - 1, len(forms.rows))
            forms = advance(network, stage, decide_point(forms, layer)[0])
            yield forms

    def settle(
        self,
        vertices: np.ndarray,
        inflation: float,
        *,
        limit_seconds: float,
        max_parts: int = 2000,
        with_shares: bool = False,
    ) -> Settlement:
        """Settle the hull of vertices (V, D) in t, enlarged by `inflation` along every axis and cut to the unit cube.

        All numbers are taken as exact: t stands for theta = low + t·(high − low) without rounding, so the inflation
        must cover the rounding of the vertices. `max_parts` limits how many convex parts the cuts may add; the clock is
        read between layers. Raises OptionError if the polytope at most touches the unit cube.
        """
        deadline = monotonic() + limit_seconds
        settlement, bits = Settlement(LabelOutcome.OPEN), PRECISIONS[0]
        for bits in PRECISIONS:
            settlement = self._settle_once(vertices, inflation, WalkLimits(deadline, max_parts, self.is_over), bits)
            if settlement.outcome is not LabelOutcome.OPEN or self._network(bits).is_exact or monotonic() > deadline:
                break
        if with_shares and settlement.outcome is not LabelOutcome.OPEN:
            shares = self._shares(vertices, WalkLimits(deadline, max_parts, self.is_over), bits)
            settlement = replace(settlement, shares=shares)
        return settlement

    def patterns(
        self, vertices: np.ndarray, *, limit_seconds: float, max_parts: int = 2000
    ) -> dict[bytes, Fraction] | None:
        """The classifier's patterns on the hull of vertices (V, D) in t, packed layer by layer, and the volume of each.

        Patterns are those of `network.layers`. None if a limit is reached or constants are only enclosed.
        """
        limits, found = WalkLimits(monotonic() + limit_seconds, max_parts, self.is_over), dict[bytes, Fraction]()
        network = self._network(PRECISIONS[0])
        try:
            parts = polytope_parts(self.compound, vertices, 0.0, limits.count)
            for cell, group in parts_by_cell(self.compound, parts, limits.count):
                for forms, own, pattern in leaves(network, self._pixels.on_cell(cell), group, limits):
                    if forms.radii is not None:
                        return None
                    key = b"".join(np.packbits(layer).tobytes() for layer in pattern)
                    found[key] = found.get(key, Fraction(0)) + sum((part.volume for part in own), Fraction(0))
        except (LimitReachedError, OptionError):
            return None
        return found

    def _settle_once(self, vertices: np.ndarray, inflation: float, limits: WalkLimits, bits: int) -> Settlement:
        findings, whole, reason = WalkFindings(with_volumes=False), list[ConvexPart](), ""
        try:
            whole = polytope_parts(self.compound, vertices, inflation, limits.count)
            self._walk_cells(whole, findings, limits, bits)
        except LimitReachedError as reached:
            reason = str(reached)
        outcome = _conclude(findings, is_complete=not reason)
        if outcome is not LabelOutcome.OPEN:
            reason = ""
        elif not reason:
            reason = "the margin is too close to 0 for constants that are only enclosed"
        witness = self._witness(findings.lost, whole, limits, bits)
        return Settlement(outcome, witness, findings.lower.positive, findings.upper.negative, reason=reason)

    def _shares(self, vertices: np.ndarray, limits: WalkLimits, bits: int) -> LabelShares | None:
        """Shares of the polytope without its inflation; None if a limit is reached."""
        findings = WalkFindings(with_volumes=True)
        try:
            self._walk_cells(polytope_parts(self.compound, vertices, 0.0, limits.count), findings, limits, bits)
        except LimitReachedError:
            return None
        except OptionError:  # only the inflation reaches into the unit cube
            return LabelShares((0.0, 0.0), (0.0, 0.0))
        kept, lost = findings.lower.positive_volume, findings.upper.negative_volume
        rest = Fraction(0) if findings.is_exact else findings.volume - kept - lost
        return LabelShares(_outward(kept, kept + rest), _outward(lost, lost + rest))

    def _walk_cells(self, parts: list[ConvexPart], findings: WalkFindings, limits: WalkLimits, bits: int) -> None:
        for cell, group in parts_by_cell(self.compound, parts, limits.count):
            walk(self._network(bits), self._pixels.on_cell(cell), group, self.label, limits, findings)
            if findings.is_settled:
                return

    def _network(self, bits: int) -> ExactNetwork:
        if bits not in self._networks:
            self._networks[bits] = ExactNetwork(self.compound.graph, bits)
        return self._networks[bits]

    def _witness(
        self, lost: list[ConvexPart], whole: list[ConvexPart], limits: WalkLimits, bits: int
    ) -> np.ndarray | None:
        """A float64 theta of the polytope with a negative margin, chosen of two candidates by the lower margin.

        One is near the middle of the largest lost part that yields one, the other near the middle of the polytope. The
        walk ends as soon as the outcome is known, so the lost parts found may be a small share of all.
        """
        found = []
        for parts in (lost, whole) if lost else ():
            for part in sorted(parts, key=lambda part: part.volume, reverse=True):
                theta = self._near_middle(part, whole, bits)
                if theta is not None:
                    found.append(theta)
                    break
                if limits.is_late:
                    break
        return min(found, key=lambda theta: self.margin_at(theta, bits=bits).high, default=None)

    def _near_middle(self, part: ConvexPart, whole: list[ConvexPart], bits: int) -> np.ndarray | None:
        """A float64 theta of the polytope next to the middle of a part, if its margin is negative; else None."""
        domain = self.compound.domain
        ends = [(Fraction(low), Fraction(high)) for low, high in zip(domain.low, domain.high, strict=True)]
        middle = [
            sum((Fraction(int(corner[axis]), int(corner[-1])) for corner in part.corners), Fraction(0))
            / len(part.corners)
            for axis in range(domain.dimension)
        ]
        exact = [low + t * (high - low) for t, (low, high) in zip(middle, ends, strict=True)]
        for theta in map(np.array, product(*map(_floats_around, exact))):
            is_inside = domain.contains(theta) and any(
                piece.contains(unit_corner(self.compound, theta)) for piece in whole
            )
            if is_inside and self.margin_at(theta, bits=bits).high < 0:
                return theta
        return None


def _conclude(findings: WalkFindings, *, is_complete: bool) -> LabelOutcome:
    lower, upper = findings.lower, findings.upper
    if findings.is_mixed:
        return LabelOutcome.MIXED
    if not is_complete:
        return LabelOutcome.OPEN
    if not lower.negative and not lower.zero:
        return LabelOutcome.KEPT
    if not upper.positive and not upper.zero:
        return LabelOutcome.LOST
    return LabelOutcome.TIED if findings.is_exact else LabelOutcome.OPEN


def _floats_around(number: Fraction) -> list[float]:
    """The nearest float, and the one on the other side of the number."""
    nearest = float(number)
    if Fraction(nearest) == number:
        return [nearest]
    return [nearest, nextafter(nearest, inf if Fraction(nearest) < number else -inf)]


def _outward(low: Fraction, high: Fraction) -> tuple[float, float]:
    down, up = float(low), float(high)
    return (
        down if Fraction(down) <= low else nextafter(down, -inf),
        up if Fraction(up) >= high else nextafter(up, inf),
    )
