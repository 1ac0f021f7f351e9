"""Proves labels of regions or pieces by bounds that do not depend on how the map was made.

The bounds hold on the hull of the vertices and do not use the region's pattern: a neuron with an uncertain sign there
is relaxed and has a derivative in [0, 1]. So the bounds also hold on kinks and on parts that a walk missed. A proof
costs as much as bounding a box; callers use it when cheaper bounds decide nothing.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from ..attention.options import AttentionOptions
from ..bounds.bounder import Bounder
from ..budget import Budget, is_over
from ..compound import Compound
from ..polytopes import Polytopes
from ..tolerances import LEAST, UNIT, gamma
from .pattern_points import PatternPoints, has_windows


class HullProof:
    """Bounds on margin and inconsistency over polytopes of one compound network.

    `around` bounds, along every axis of t, how far the polytopes may be from the exact regions (see `coverage`). Once
    the budget is over, nothing more is bounded.
    """

    def __init__(
        self, compound: Compound, label: int, attention: AttentionOptions, around: float, budget: Budget | None = None
    ) -> None:
        self.compound, self.label, self.attention, self.around, self.budget = compound, label, attention, around, budget

    @cached_property
    def bounder(self) -> Bounder:
        """The bounds of the compound network over polytopes."""
        compound = self.compound
        return Bounder(
            compound.graph, compound.perturbed, self.label, self.attention, prove_original=compound.prove_original
        )

    def label_errors(
        self, polytopes: Polytopes, cell: np.ndarray, logits: np.ndarray, chosen: np.ndarray, region: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Proved bounds (S, 2) on the margin over chosen polytopes (S,), and bounds (S,) on the error of their forms.

        cell (P,) and region (P,): the knot cell and region of every polytope. logits (R, D+1, K): those of the regions.
        """
        margin, error = np.tile([-np.inf, np.inf], (len(chosen), 1)), np.full(len(chosen), np.inf)
        for part, vertices in vertex_batches(polytopes, cell, chosen, self.bounder.batch):
            if is_over(self.budget):
                break
            numbers = chosen[part]
            found = self.bounder.bound_hulls(
                int(cell[numbers[0]]), self._in_domain(vertices), self.around, asks_attention=False
            )
            forms = logits[region[numbers]]
            leads = forms[:, :, [self.label]] - np.delete(forms, self.label, axis=2)
            claimed = np.einsum("bvi,bir->bvr", vertices, leads[:, :-1]) + leads[:, -1:]
            with np.errstate(invalid="ignore"):
                off = (np.abs(claimed - found.leads).max(axis=1) + found.radius).max(axis=1, initial=0.0)
                # Covers the rounding of the forms' values, here and in the margins; vertices lie in the unit cube.
                off += 2.0 * gamma(forms.shape[1] + 4) * np.abs(forms).sum(axis=1).max(axis=1) + LEAST
            margin[part], error[part] = found.margin, np.where(np.isnan(off), np.inf, off)
        return margin, error

    def inconsistencies(self, polytopes: Polytopes, cell: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Proved bounds (S, 2) on the inconsistency over chosen polytopes (S,)."""
        found = np.tile([0.0, np.inf], (len(chosen), 1))
        for part, vertices in vertex_batches(polytopes, cell, chosen, self.bounder.batch):
            if is_over(self.budget):
                break
            number = int(cell[chosen[part[0]]])
            found[part] = self.bounder.bound_hulls(
                number, self._in_domain(vertices), self.around, asks_attention=True
            ).inconsistency
        return found

    def loses_attention(self, cell: int, points: np.ndarray, delta: float) -> bool:
        """Whether ai > δ is proved at one of the points (N, D) in t of a knot cell."""
        around = 16.0 * UNIT
        found = self.bounder.bound_hulls(cell, self._in_domain(points[:, None]), around, asks_attention=True)
        if (found.inconsistency[:, 0] > delta).any():
            return True
        # Bounds on both sides of δ may be wide only because entries of windows are equal.
        is_open = found.inconsistency[:, 1] > delta
        return any(self._tied.inconsistency(theta)[0] > delta for theta in self.compound.to_theta(points[is_open]))

    @cached_property
    def _tied(self) -> "TiedPoints":
        return TiedPoints(self.compound, self.bounder)

    def _in_domain(self, vertices: np.ndarray) -> np.ndarray:
        """The coordinates that belong to theta: with a single parameter, t has a second one."""
        return vertices[:, :, : self.compound.domain.dimension]


class TiedPoints:
    """Bounds on the inconsistency at single thetas where entries of windows are equal by construction.

    Bounds on boxes leave such windows undecided and give every entry a part of the gradient. Here the first entry wins.
    """

    def __init__(self, compound: Compound, bounder: Bounder) -> None:
        self.compound, self.bounder = compound, bounder
        self.points = PatternPoints(compound) if has_windows(compound.graph) else None
        # A few seconds' worth, but at least one theta if any is affordable.
        affordable = 0 if self.points is None else self.points.affordable
        self.left = max(min(1, affordable), affordable // 8)

    def inconsistency(self, theta: np.ndarray) -> tuple[float, float]:
        """Proved bounds at a theta (d,); (0, ∞) if a bit is not proved, or no more thetas are affordable."""
        bits = None
        if self.points is not None and self.left > 0:
            self.left -= 1
            bits = self.points.at(theta)
        if bits is None:
            return 0.0, np.inf
        cell, place = self.compound.perturbed.cell_of(theta).index, self.compound.domain.to_unit(theta[None])[0]
        low, high = self.bounder.inconsistency_under(cell, place, bits).tolist()
        return (low, high) if low <= high else (0.0, np.inf)


def vertex_batches(
    polytopes: Polytopes, cell: np.ndarray, chosen: np.ndarray, size: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of chosen polytopes in one knot cell: indices (N,), and vertices (N, V, D), padded with the last one."""
    for number in np.unique(cell[chosen]):
        places = np.flatnonzero(cell[chosen] == number)
        for start in range(0, len(places), size):
            part = places[start : start + size]
            first = polytopes.starts[chosen[part]]
            counts = polytopes.starts[chosen[part] + 1] - first
            rank = np.minimum(np.arange(counts.max(initial=1)), counts[:, None] - 1)
            yield part, polytopes.points[first[:, None] + rank]
