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

from ..attention.map_errors import SingleCurves
from ..bounds.bounder import Bounder
from ..compound import Compound
from ..regions.patterns import unpack
from ..regions.region import RegionSet
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
