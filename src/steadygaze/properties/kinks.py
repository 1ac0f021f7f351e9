"""What the attention can be on kinks, where the signs of some neurons are not certain: an upper bound of ai there.

With derivatives d_k in [0, 1] for the uncertain neurons, the gradient is affine in each d_k, so it is a mean of the
gradients at the corners d_k ∈ {0, 1}. Distances are convex, hence ai is at most its largest value at a corner: a
pattern. (The absolute value of a map is not affine; with filters that are not linear nothing is said here.)

Which neurons are uncertain together: on a region every neuron k has one sign, so its |form| is an affine function
F_k ≥ 0, up to what was missed. Where all neurons of a set K are uncertain, Σ F_k ≤ Σ e_k; an affine function takes its
minimum at a vertex, so at one of them Σ F_k ≤ Σ e_k too, and each F_k of the set is at most the sum of all errors. It
is enough to look at the vertices.
"""

from itertools import product

import numpy as np

from ..attention.inconsistency import region_taus
from ..attention.map_errors import SingleCurves
from ..bounds.bounder import Bounder
from ..compound import Compound
from ..regions.patterns import unpack
from ..regions.region import RegionSet
from ..tolerances import UNIT
from .hull_proof import vertex_batches
from .settling import pattern_reach

MOST_TOGETHER = 8
"""Neurons that may be uncertain at one vertex."""

MOST_PATTERNS = 2_000
"""Patterns other than those of regions that are looked at."""


def kink_inconsistency(
    compound: Compound, regions: RegionSet, errors: list[np.ndarray], curves: SingleCurves, bounder: Bounder
) -> float:
    """An upper bound of ai on all kinks that lie between patterns of no region; infinite where it is not known.

    `errors` are those of every neuron's form. Where only patterns of regions meet, 0: nothing there exceeds them. A
    pattern of regions may exceed them at another τ, where the expected map has moved on: there it counts as well.
    """
    if not curves.options.filter.is_linear:
        return np.inf
    # Forms vanish up to the sum of the errors; the values themselves may be off by one error more.
    together = 2.0 * sum(float(layer.sum()) for layer in errors[:-1]) + 2.0 * float(regions.accuracy.missed.sum())
    moves, taus = compound.perturbed.moving_axis is not None, region_taus(compound, regions)
    known, found = _known_ranges(regions, taus, moves=moves), dict[tuple[int, bytes], np.ndarray]()
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
                key, own = (cell if moves else 0, _packed(bits[row], compound.hidden)), taus[places[row]]
                if key not in known or own[0] < known[key][0] or own[1] > known[key][1]:
                    found[key] = _joined(found.get(key, own), own)
            bits[row] = np.hstack(unpack(regions.patterns[regions.pattern[places[row : row + 1]]], compound.hidden))[0]
            if len(found) > MOST_PATTERNS:
                return np.inf
    around = 16.0 * UNIT * (1.0 + float(compound.domain.widths.max()))
    reaches = (
        pattern_reach(compound, curves, cell, pattern, np.array([low - around, high + around]))
        for (cell, pattern), (low, high) in found.items()
    )
    return max((high for _, high in reaches), default=0.0)


def _known_ranges(regions: RegionSet, taus: np.ndarray, *, moves: bool) -> dict[tuple[int, bytes], np.ndarray]:
    """For the patterns of regions, by knot cell where it matters, a range of τ on which they exceed no region.

    ai is a convex function of τ: between two regions of a pattern it is no larger than in them.
    """
    known: dict[tuple[int, bytes], np.ndarray] = {}
    rows = regions.patterns[np.arange(len(regions.patterns))]
    for cell, number, own in zip(regions.cell.tolist(), regions.pattern.tolist(), taus, strict=True):
        key = (cell if moves else 0, rows[number].tobytes())
        known[key] = _joined(known.get(key, own), own)
    return known


def _joined(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.array([min(one[0], other[0]), max(one[1], other[1])])


def _packed(bits: np.ndarray, sizes: tuple[int, ...]) -> bytes:
    ends = np.cumsum(sizes)[:-1]
    return b"".join(np.packbits(layer).tobytes() for layer in np.split(bits, ends))
