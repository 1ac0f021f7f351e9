"""Finds the violation nearest to zero: proved lower and upper bounds on its distance, and a theta strictly inside it.

Distances are relative to the width of each axis. Zero itself need not belong to the domain.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..budget import OPTIONAL, Budget, is_over
from ..compound import Compound
from ..labels import Kept
from ..polytopes import Polytopes
from ..regions.region import RegionSet
from .hull_proof import HullProof
from .joint import JointPieces

DEPTHS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0)
"""Shares of the way from a piece's border to its centre that are tried; a violated piece is violated at its centre."""

INSIDE = 1e-8
"""The distance (in t) of a theta from its piece's border at which a plain forward pass should agree with the label."""


@dataclass(frozen=True, eq=False)
class Nearest:
    """Every theta closer to zero than `low` satisfies the property; `theta` (d,), at distance `high`, violates it.

    `high` is infinite and `theta` None if no violation is proved. `low` is infinite if no violation is possible, and 0
    for a partial map, whose missing part may hold violations anywhere. `piece` contains theta.
    """

    low: float
    high: float
    theta: np.ndarray | None
    piece: int | None


@dataclass(frozen=True, eq=False)
class Violations:
    """The pieces of a map that matter for the nearest violation of one property.

    violates, possible and strips index pieces: those violated, those that may be violated, and kept pieces with a strip
    that may be. is_proved(piece, point): whether a violation at a point of a piece is proved; strips_of(piece) returns
    strips. Once the budget is over, only the first violated piece is tried.
    """

    compound: Compound
    joint: JointPieces
    violates: np.ndarray
    possible: np.ndarray
    strips: np.ndarray
    is_proved: Callable[[int, np.ndarray], bool]
    strips_of: Callable[[int], Iterator[np.ndarray]]
    budget: Budget | None = None

    def lower_bound(self) -> float:
        """A distance within which the property holds everywhere; strips are examined only in nearer pieces."""
        compound, polytopes = self.compound, self.joint.polytopes
        low = float(np.sqrt(nearest_points(compound, polytopes, self.possible)[:, 0].min(initial=np.inf)))
        squares = nearest_points(compound, polytopes, self.strips)[:, 0]
        for place in np.argsort(squares, kind="stable"):
            if np.sqrt(squares[place]) >= low:
                break
            if is_over(self.budget):
                return 0.0
            for strip in self.strips_of(int(self.strips[place])):
                if len(strip):
                    low = min(low, polytopes.distance_to_hull(compound.zero_in_t, strip))
        return less_rounding(low)

    def nearest(self, low: float) -> Nearest:
        """The nearest proved violation, with a given lower bound."""
        compound, polytopes, zero = self.compound, self.joint.polytopes, self.compound.zero_in_t
        found = nearest_points(compound, polytopes, self.violates)
        for rank, place in enumerate(np.argsort(found[:, 0], kind="stable")):
            if rank and is_over(self.budget, OPTIONAL):
                break
            piece, border = int(self.violates[place]), found[place, 1:]
            centre = polytopes.centres[piece]
            for depth in DEPTHS:
                point = border + depth * (centre - border)
                is_inside = depth == 1.0 or np.abs(point - border).max() >= INSIDE
                if is_inside and self.is_proved(piece, point):
                    # Rounding the distance up by one part in 10¹² covers its own rounding.
                    high = float(np.linalg.norm((point - zero)[: compound.domain.dimension]))
                    return Nearest(low, high * (1 + 1e-12), compound.to_theta(point[None])[0], piece)
        return Nearest(low, np.inf, None, None)


def nearest_violation(found: Violations, *, is_partial: bool) -> Nearest:
    """The nearest violation of a map; a partial map bounds no distance from below."""
    return found.nearest(0.0 if is_partial else found.lower_bound())


def label_violations(compound: Compound, regions: RegionSet, joint: JointPieces) -> Violations:
    """The thetas where the label is lost."""
    pieces = joint.pieces
    violates = np.flatnonzero(~pieces.keeps_label)
    rivals = np.delete(np.arange(regions.logits.shape[2]), pieces.label)

    def is_proved(piece: int, point: np.ndarray) -> bool:
        values = np.array([*point, 1.0]) @ regions.logits[pieces.region[piece]]
        return bool(values[rivals].max() - values[pieces.label] > pieces.slack[piece])

    strips = np.flatnonzero(pieces.keeps_label & pieces.has_strip)
    strips_of = partial(label_strips, regions, joint)
    return Violations(compound, joint, violates, violates, strips, is_proved, strips_of)


def label_strips(regions: RegionSet, joint: JointPieces, piece: int) -> Iterator[np.ndarray]:
    """For a piece that keeps the label: the parts (V, D) in t where another class may win within the error."""
    pieces = joint.pieces
    forms = regions.logits[pieces.region[piece]]
    for rival in np.delete(np.arange(regions.logits.shape[2]), pieces.label):
        form = forms[:, rival] - forms[:, pieces.label]
        form[-1] += pieces.slack[piece]
        yield joint.polytopes.clip_hull(joint.polytopes[piece], form)


def attention_violations(
    compound: Compound, regions: RegionSet, joint: JointPieces, proof: HullProof | None
) -> Violations:
    """The thetas where the inconsistency exceeds δ; the lower bound on their distance holds outside kinks.

    A theta counts only if `proof` confirms it, because it might lie on a kink inside its piece.
    """
    violates, possible = np.flatnonzero(joint.attention == Kept.NO), np.flatnonzero(joint.attention != Kept.YES)
    labels, rows = joint.slabs, joint.rows
    assert labels is not None

    def is_proved(piece: int, point: np.ndarray) -> bool:
        region, row = joint.pieces.region[piece], rows[piece]
        if proof is None or not proof.loses_attention(int(regions.cell[region]), point[None], labels.delta):
            return False
        if labels.along is None:
            return True
        first, last = labels.outer[row]
        return bool(first > last or not first <= point @ labels.along[row] <= last)

    strips = np.flatnonzero((joint.attention == Kept.YES) & (joint.attention_strip > 0.0))
    strips_of = partial(attention_strips, joint)
    budget = None if proof is None else proof.budget
    return Violations(compound, joint, violates, possible, strips, is_proved, strips_of, budget)


def attention_strips(joint: JointPieces, piece: int) -> Iterator[np.ndarray]:
    """For a piece that keeps the attention although its loss changes: the parts (V, D) in t where ai may exceed δ."""
    row, labels = joint.rows[piece], joint.slabs
    assert labels is not None and labels.along is not None
    along, (first, last) = labels.along[row], labels.inner[row]
    if first > labels.ends[row, 0]:
        yield joint.polytopes.clip_hull(joint.polytopes[piece], np.append(-along, first))
    if last < labels.ends[row, 1]:
        yield joint.polytopes.clip_hull(joint.polytopes[piece], np.append(along, -last))


def less_rounding(distance: float) -> float:
    """A distance minus the rounding of its computation; never below 0."""
    return distance if np.isinf(distance) else max(0.0, distance * (1 - 1e-12) - 1e-12)


def nearest_points(compound: Compound, polytopes: Polytopes, chosen: np.ndarray) -> np.ndarray:
    """For each chosen shape (S,), in t: the squared distance to zero and the nearest point, (S, 1 + D)."""
    return polytopes.nearest_points(compound.zero_in_t, chosen)
