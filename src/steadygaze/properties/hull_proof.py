"""Second proofs that do not depend on how the map was made: on the hulls of regions or pieces, and on kinks.

Bounds hold on the hull of the vertices, widened by the coverage of the map, whatever the pattern. On a kink, the signs
of some neurons are uncertain, each with a derivative in [0, 1]: `kink_inconsistency` bounds ai there.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import product

import numpy as np

from ..attention.map_errors import SingleCurves
from ..attention.options import AttentionOptions
from ..bounds.bounder import Bounder
from ..compound import Compound
from ..regions.patterns import unpack
from ..regions.region import RegionSet
from ..tolerances import UNIT
from .settling import pattern_reach
from .shapes import Polytopes


class HullProof:
    """Bounds of margin and inconsistency on polytopes of one compound network.

    `around` is how far the polytopes may be from what they stand for, along every axis of t (see `coverage`).
    """

    def __init__(self, compound: Compound, label: int, attention: AttentionOptions, around: float) -> None:
        self.compound, self.label, self.attention, self.around = compound, label, attention, around

    @cached_property
    def bounder(self) -> Bounder:
        """What bounds them."""
        return Bounder(self.compound.graph, self.compound.perturbed, self.label, self.attention)

    def label_errors(
        self, polytopes: Polytopes, cell: np.ndarray, logits: np.ndarray, chosen: np.ndarray, region: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Proved bounds (S, 2) of the margin on chosen polytopes (S,), and of the error of its computed forms (S,).

        cell (P,) is the knot cell and region (P,) the region of every polytope; logits (R, D+1, K) are the regions'.
        """
        margin, error = np.tile([-np.inf, np.inf], (len(chosen), 1)), np.full(len(chosen), np.inf)
        for part, vertices in vertex_batches(polytopes, cell, chosen, self.bounder.batch):
            numbers = chosen[part]
            found = self.bounder.bound_hulls(
                int(cell[numbers[0]]), self._in_domain(vertices), self.around, asks_attention=False
            )
            forms = logits[region[numbers]]
            leads = forms[:, :, [self.label]] - np.delete(forms, self.label, axis=2)
            claimed = np.einsum("bvi,bir->bvr", vertices, leads[:, :-1]) + leads[:, -1:]
            with np.errstate(invalid="ignore"):
                off = (np.abs(claimed - found.leads).max(axis=1) + found.radius).max(axis=1, initial=0.0)
            margin[part], error[part] = found.margin, np.where(np.isnan(off), np.inf, off)
        return margin, error

    def inconsistencies(self, polytopes: Polytopes, cell: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Proved bounds (S, 2) of the inconsistency on chosen polytopes (S,)."""
        found = np.tile([0.0, np.inf], (len(chosen), 1))
        for part, vertices in vertex_batches(polytopes, cell, chosen, self.bounder.batch):
            number = int(cell[chosen[part[0]]])
            found[part] = self.bounder.bound_hulls(
                number, self._in_domain(vertices), self.around, asks_attention=True
            ).inconsistency
        return found

    def loses_attention(self, cell: int, points: np.ndarray, delta: float) -> bool:
        """Whether ai > δ is proved at one of the points (N, D) in t of a knot cell."""
        around = 16.0 * UNIT
        found = self.bounder.bound_hulls(cell, self._in_domain(points[:, None]), around, asks_attention=True)
        return bool((found.inconsistency[:, 0] > delta).any())

    def _in_domain(self, vertices: np.ndarray) -> np.ndarray:
        """The coordinates that theta has; a single parameter has two in t."""
        return vertices[:, :, : self.compound.domain.dimension]


def vertex_batches(
    polytopes: Polytopes, cell: np.ndarray, chosen: np.ndarray, size: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Places (N,) among the chosen polytopes of one knot cell, and their vertices (N, V, D), the last repeated."""
    for number in np.unique(cell[chosen]):
        places = np.flatnonzero(cell[chosen] == number)
        for start in range(0, len(places), size):
            part = places[start : start + size]
            first = polytopes.starts[chosen[part]]
            counts = polytopes.starts[chosen[part] + 1] - first
            rank = np.minimum(np.arange(counts.max(initial=1)), counts[:, None] - 1)
            yield part, polytopes.points[first[:, None] + rank]


MOST_TOGETHER = 8
"""Neurons that may be uncertain at one vertex."""

MOST_PATTERNS = 2_000
"""Patterns other than those of regions that are looked at."""


def kink_inconsistency(
    compound: Compound, regions: RegionSet, errors: list[np.ndarray], curves: SingleCurves, bounder: Bounder
) -> float:
    """An upper bound of ai on all kinks that lie between patterns of no region; infinite where it is not known.

    `errors` are those of every neuron's form. Where only patterns of regions meet, 0: nothing there exceeds them.
    """
    if not curves.options.filter.is_linear:
        return np.inf
    together = sum(float(layer.sum()) for layer in errors[:-1]) + 2.0 * float(regions.accuracy.missed.sum())
    known = set(zip(*_patterns_of(regions, compound), strict=True))
    found: dict[tuple[int, bytes], None] = {}
    for places, vertices in vertex_batches(regions.polytopes, regions.cell, np.arange(len(regions)), bounder.batch):
        cell = int(regions.cell[places[0]])
        near = bounder.near_zero(cell, vertices[:, :, : compound.domain.dimension], together)
        bits = np.hstack(unpack(regions.patterns[regions.pattern[places]], compound.hidden))
        for row, vertex in zip(*np.nonzero(near.any(axis=2)), strict=True):
            uncertain = np.flatnonzero(near[row, vertex])
            if len(uncertain) > MOST_TOGETHER:
                return np.inf
            for corner in product((False, True), repeat=len(uncertain)):
                bits[row, uncertain] = corner
                key = _place(compound, cell), _packed(bits[row], compound.hidden)
                if key not in known:
                    found[key] = None
            bits[row] = np.hstack(unpack(regions.patterns[regions.pattern[places[row : row + 1]]], compound.hidden))[0]
            if len(found) > MOST_PATTERNS:
                return np.inf
    return max((pattern_reach(compound, curves, cell, pattern)[1] for cell, pattern in found), default=0.0)


def _patterns_of(regions: RegionSet, compound: Compound) -> tuple[list[int], list[bytes]]:
    """The knot cell, where it matters, and the packed pattern of every region."""
    rows = regions.patterns[np.arange(len(regions.patterns))]
    return [_place(compound, int(cell)) for cell in regions.cell], [
        rows[number].tobytes() for number in regions.pattern
    ]


def _place(compound: Compound, cell: int) -> int:
    """The knot cell of a curve: where the expected map is kept, all cells share one."""
    return 0 if compound.perturbed.moving_axis is None else cell


def _packed(bits: np.ndarray, sizes: tuple[int, ...]) -> bytes:
    ends = np.cumsum(sizes)[:-1]
    return b"".join(np.packbits(layer).tobytes() for layer in np.split(bits, ends))
