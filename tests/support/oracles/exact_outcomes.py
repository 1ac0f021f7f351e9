"""The true outcome for a polytope in t, from the exact map inside the polytope.

The hull of a few points comes from all planes through them.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from steadygaze.compound import Compound
from steadygaze.exact import LabelOutcome
from support.oracles.exact_polytopes import Form, Polytope, at, determinant, homogeneous, rank, reduced
from support.oracles.exact_regions import ExactRegion, exact_compound_map


def true_outcome(regions: Sequence[ExactRegion], label: int) -> LabelOutcome:
    """The outcome that settling must give, from all regions' parts within the polytope."""
    ranges = [region.margin(label) for region in regions]
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    if low > 0:
        return LabelOutcome.KEPT
    if high < 0:
        return LabelOutcome.LOST
    return LabelOutcome.MIXED if low < 0 < high else LabelOutcome.TIED


def regions_within(compound: Compound, vertices: np.ndarray, inflation: float = 0.0) -> list[ExactRegion]:
    """The regions' parts with volume inside the hull; vertices (V, d) without a coordinate too many."""
    planes = hull_planes(vertices, inflation)
    found = []
    for region in exact_compound_map(compound).regions:
        part: Polytope | None = region.polytope
        for plane in planes:
            part = part.cut(plane)[1] if part is not None else None
        if part is not None:
            found.append(ExactRegion(region.key, part, region.logits))
    return found


def hull_planes(vertices: np.ndarray, inflation: float) -> list[Form]:
    """Forms that are ≥ 0 exactly on the hull of points with volume."""
    radius, dimension = Fraction(inflation), vertices.shape[1]
    shifts = list(product((-radius, radius), repeat=dimension)) if radius else [(Fraction(0),) * dimension]
    points = list(
        {
            homogeneous([Fraction(float(x)) + step for x, step in zip(vertex, shift, strict=True)])
            for vertex in vertices
            for shift in shifts
        }
    )
    planes = set()
    for chosen in combinations(points, dimension):
        if rank(chosen) < dimension:
            continue
        plane = _plane(chosen)
        values = [at(plane, point) for point in points]
        if min(values) >= 0:
            planes.add(plane)
        elif max(values) <= 0:
            planes.add(tuple(-number for number in plane))
    return sorted(planes)


def _plane(points: Sequence[Sequence[int]]) -> Form:
    size = len(points[0])
    numbers = []
    for left_out in range(size):
        minor = [[number for i, number in enumerate(point) if i != left_out] for point in points]
        numbers.append((-1) ** left_out * determinant(minor))
    return reduced(numbers)
