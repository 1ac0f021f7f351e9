"""What the check of a map needs to know about polyhedra: flat facets, and points just on either side of them.

Nothing is compared with the network here; `check` does that.
"""

import numpy as np

from ..errors import InternalError
from ..tolerances import BESIDE, DISTANCE
from .polyhedra import Polyhedra
from .region import Cut, RegionSet

BENT = 100 * DISTANCE
"""How far a vertex may be from the plane of its facet: a vertex is snapped by DISTANCE at most, a few times over."""

THIN = 1e-4
"""Regions and facets thinner than this are not compared at their facets."""

CHUNK = 200


def check_flat(polyhedra: Polyhedra, gap: float) -> None:
    """Raise InternalError unless the vertices of every facet lie in a plane, up to the depth of gaps."""
    places, starts = polyhedra.cycles
    facet = np.repeat(np.arange(len(polyhedra.facets)), np.diff(starts))
    away = polyhedra.points[places] - polyhedra.facet_centres[facet]
    bent = np.abs((away * polyhedra.normals[facet]).sum(axis=1))
    if not bent.max(initial=0.0) <= BENT + 2.0 * gap:
        region = polyhedra.facet_owner[facet[np.argmax(bent)]]
        raise InternalError(f"a facet of region {region} is not flat: please report this model and image")


def two_sided(regions: RegionSet, signed: np.ndarray, *, is_map: bool) -> np.ndarray:
    """Which edges or facets, given their signed cuts (E,), must have a region on their other side.

    None of a partial map; all inner ones of a whole map; those of neurons where the regions are those inside boxes.
    """
    if regions.stopped is not None:
        return np.zeros(len(signed), dtype=bool)
    return is_map | (regions.cuts[np.abs(signed) - 1, 0] == Cut.NEURON)


def beside_facets(
    regions: RegionSet, polyhedra: Polyhedra, most: int, *, is_map: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Points (B, 3) just inside and just outside of at most `most` facets, and the regions that must hold there."""
    is_inner = regions.cuts[np.abs(polyhedra.facets) - 1, 0] != Cut.BORDER
    widths = _widths(polyhedra)
    thickness = polyhedra.volumes[polyhedra.facet_owner] / np.maximum(polyhedra.areas, 1e-300)
    usable = np.flatnonzero(is_inner & (thickness > THIN) & (widths > THIN))
    if len(usable) > most:
        usable = usable[np.linspace(0, len(usable) - 1, most).astype(np.int64)]
    middle, outward = polyhedra.facet_centres[usable], polyhedra.normals[usable]
    own = polyhedra.facet_owner[usable]
    within, beyond = middle - BESIDE * outward, middle + BESIDE * outward
    is_thick = _is_thick(polyhedra)
    is_within = is_thick[own] & (_height(polyhedra, own, within) < -0.1 * BESIDE)
    has_other = two_sided(regions, polyhedra.facets[usable], is_map=is_map)
    across, is_beyond = _across(polyhedra, usable, middle, beyond, widths, has_other)
    is_beyond &= is_thick[across]
    return np.concatenate([within[is_within], beyond[is_beyond]]), np.concatenate([own[is_within], across[is_beyond]])


def _across(
    polyhedra: Polyhedra,
    facets: np.ndarray,
    middle: np.ndarray,
    beyond: np.ndarray,
    widths: np.ndarray,
    has_other: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The region on the other side of the middle of each facet, and whether the point beyond is clearly inside.

    has_other (F,) says which facets must have one.
    """
    order = np.argsort(polyhedra.facets, kind="stable")
    ranked = polyhedra.facets[order]
    low, high = (np.stack(ends, axis=1) for ends in zip(*(polyhedra.extent(axis) for axis in range(3)), strict=True))
    tolerance = 10 * DISTANCE * (1.0 + 2.0 / np.maximum(widths, DISTANCE))
    region, depth = np.full(len(facets), -1), np.full(len(facets), np.inf)
    for start in range(0, len(facets), CHUNK):
        wanted = -polyhedra.facets[facets[start : start + CHUNK]]
        first, last = np.searchsorted(ranked, wanted), np.searchsorted(ranked, wanted, side="right")
        # All pairs of a sampled facet (number) and a facet on the other side of the same cut.
        number = np.repeat(np.arange(len(wanted)), last - first)
        places = np.arange(len(number)) - np.repeat(np.cumsum(last - first) - last, last - first)
        other, number = polyhedra.facet_owner[order[places]], number + start
        margin = 10 * DISTANCE
        near = ((middle[number] >= low[other] - margin) & (middle[number] <= high[other] + margin)).all(axis=1)
        number, other = number[near], other[near]
        touches = _height(polyhedra, other, middle[number], tolerance) <= 0.0
        number, other = number[touches], other[touches]
        height = _height(polyhedra, other, beyond[number])
        # The deepest of several goes last and stays.
        for place in np.lexsort((-height, number)):
            region[number[place]], depth[number[place]] = other[place], height[place]
    is_lost = (region < 0) & has_other
    if is_lost.any():
        lost = polyhedra.facet_owner[facets[np.argmax(is_lost)]]
        raise InternalError(
            f"a facet of region {lost} has no region on its other side: please report this model and image"
        )
    return region, (region >= 0) & (depth < -0.1 * BESIDE)


def _height(
    polyhedra: Polyhedra, owners: np.ndarray, points: np.ndarray, tolerance: np.ndarray | None = None
) -> np.ndarray:
    """How far points (B, 3) are outside of the facet planes of their polyhedra, less the tolerance: below 0 inside."""
    if not len(owners):
        return np.zeros(0)
    sizes = np.diff(polyhedra.facet_starts)[owners]
    starts = np.cumsum(sizes) - sizes
    facet = np.repeat(polyhedra.facet_starts[owners] - starts, sizes) + np.arange(sizes.sum())
    away = np.repeat(points, sizes, axis=0) - polyhedra.facet_centres[facet]
    heights = (away * polyhedra.normals[facet]).sum(axis=1)
    return np.maximum.reduceat(heights if tolerance is None else heights - tolerance[facet], starts)


def _is_thick(polyhedra: Polyhedra) -> np.ndarray:
    """Whether polyhedra (R,) are thicker than points are taken beside their facets; a needle has no normals."""
    largest = np.zeros(len(polyhedra))
    np.maximum.at(largest, polyhedra.facet_owner, polyhedra.areas)
    return polyhedra.volumes > BESIDE * largest


def _widths(polyhedra: Polyhedra) -> np.ndarray:
    """Area over length of every facet (F,)."""
    places, starts = polyhedra.cycles
    facet = np.repeat(np.arange(len(polyhedra.facets)), np.diff(starts))
    radius = np.zeros(len(polyhedra.facets))
    np.maximum.at(radius, facet, np.linalg.norm(polyhedra.points[places] - polyhedra.facet_centres[facet], axis=1))
    return polyhedra.areas / np.maximum(2.0 * radius, 1e-300)
