"""Reads maps and judges them: the region of a point, the bits of a pattern, the truth of a map.

Plain forward passes judge networks of any size; tiny networks are compared with the exact map.
"""

from collections.abc import Sequence

import numpy as np

from steadygaze.compound import Compound
from steadygaze.perturbation import Perturbation
from steadygaze.regions.patterns import unpack
from steadygaze.regions.region import RegionSet
from steadygaze.regions.subdivide import subdivide
from support.networks.layered_networks import FloatLayer, make_compound, on_unit_square, plain_map
from support.oracles.exact_maps import ExactMap, exact_compound_map, exact_plain_map


def pattern_bits(regions: RegionSet, hidden: tuple[int, ...]) -> np.ndarray:
    """The classifier's bits (R, neurons) in layer order."""
    layers = unpack(np.asarray(regions.patterns), hidden)
    return np.hstack([np.zeros((len(regions.patterns), 0), dtype=bool), *layers])[regions.pattern]


def clip_bits(compound: Compound, regions: RegionSet) -> np.ndarray:
    """The bits of the clip by pixel (R, 2·pixels): unclipped value > 0, then 1 − ReLU(value) > 0."""
    pixels = compound.perturbed.x0.size
    bits = np.zeros((len(regions), 2 * pixels), dtype=bool)
    for number, program in enumerate(compound.programs):
        lines = program.root.shape[1]
        own = np.flatnonzero(regions.cell == number)
        lower, upper = (layer[regions.clip[own]] for layer in unpack(regions.clips, (lines, lines)))
        is_moving = program.line_of >= 0
        for start, of_lines, of_constant in ((0, lower, program.constant > 0), (pixels, upper, program.constant < 1)):
            by_pixel = np.broadcast_to(of_constant, (len(own), pixels)).copy()
            by_pixel[:, is_moving] = of_lines[:, program.line_of[is_moving]]
            bits[own, start : start + pixels] = by_pixel
    return bits


def affine_logits(regions: RegionSet, owner: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Logits (B, K) that the regions `owner` (B,) give at points (B, 2)."""
    homogeneous = np.hstack([points, np.ones((len(points), 1))])
    return np.einsum("bi,bik->bk", homogeneous, regions.logits[owner])


def owners(regions: RegionSet, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The region (B,) that contains each point (B, 2) deepest, and how deep (B,): negative outside of all."""
    owner, depth = np.full(len(points), -1), np.full(len(points), -np.inf)
    order = np.argsort(points[:, 0], kind="stable")
    sorted_x = points[order, 0]
    for number in range(len(regions)):
        polygon = regions.polytopes[number]
        low, high = polygon.min(axis=0), polygon.max(axis=0)
        near = order[slice(*np.searchsorted(sorted_x, [low[0] - 1e-9, high[0] + 1e-9]))]
        near = near[(points[near, 1] >= low[1] - 1e-9) & (points[near, 1] <= high[1] + 1e-9)]
        if len(near) == 0:
            continue
        sides = np.roll(polygon, -1, axis=0) - polygon
        offsets = points[near, None] - polygon
        distance = (sides[:, 0] * offsets[..., 1] - sides[:, 1] * offsets[..., 0]) / np.hypot(*sides.T)
        inside = distance.min(axis=1)
        better = inside > depth[near]
        owner[near[better]], depth[near[better]] = number, inside[better]
    return owner, depth


def points_inside(regions: RegionSet, rng: np.random.Generator) -> np.ndarray:
    """One random point (R, 2) in the interior of every region: a positive combination of all its vertices."""
    polygons = regions.polytopes
    weights = 0.05 + rng.random(len(polygons.points))
    total = np.add.reduceat(weights, polygons.starts[:-1])
    return np.add.reduceat(weights[:, None] * polygons.points, polygons.starts[:-1], axis=0) / total[:, None]


def assert_tiles(regions: RegionSet, *, error: float = 1e-9) -> None:
    """Convex counter-clockwise polygons inside the unit square whose areas add up to it."""
    polygons = regions.polytopes
    assert (np.diff(polygons.starts) >= 3).all()
    assert (polygons.volumes > 0).all()
    assert polygons.points.min() >= 0 and polygons.points.max() <= 1
    following = polygons.following
    sides = polygons.points[following] - polygons.points
    turns = sides[:, 0] * sides[following, 1] - sides[:, 1] * sides[following, 0]
    assert turns.min() > -1e-12
    assert abs(polygons.volumes.sum() - 1) <= error


def assert_forward_agrees(
    compound: Compound, regions: RegionSet, owner: np.ndarray, points: np.ndarray, *, tolerance: float = 1e-9
) -> None:
    """At points (B, 2) the regions `owner` have the pattern and the logits of the plain forward pass.

    Neurons and clip kinks closer to zero than the tolerance are left out.
    """
    thetas = compound.to_theta(points)
    images = compound.perturbed.images(thetas)
    assert np.allclose(affine_logits(regions, owner, points), compound.graph.logits(images), rtol=0, atol=tolerance)
    before = np.hstack([np.zeros((len(points), 0)), *compound.graph.trace(images)[0]])
    clear = np.abs(before) > tolerance
    assert ((before > 0) == pattern_bits(regions, compound.hidden)[owner])[clear].all()
    values = np.stack([_unclipped(compound, theta, regions.cell[o]) for theta, o in zip(thetas, owner, strict=True)])
    clear = np.hstack([np.abs(values) > tolerance, np.abs(values - 1) > tolerance])
    assert (np.hstack([values > 0, values < 1]) == clip_bits(compound, regions)[owner])[clear].all()


def _unclipped(compound: Compound, theta: np.ndarray, cell_number: int) -> np.ndarray:
    cell = compound.cells[cell_number]
    return (compound.perturbed.x0 + cell.offset + np.tensordot(theta, cell.slope, axes=1)).ravel()


def assert_true_map(
    compound: Compound, regions: RegionSet, *, samples: int = 200, tolerance: float = 1e-9, seed: int = 0
) -> None:
    """A tiling that agrees with plain forward passes inside every region and at uniformly random thetas."""
    rng = np.random.default_rng(seed)
    assert regions.stopped is None
    assert_tiles(regions)
    everyone = np.arange(len(regions))
    assert_forward_agrees(compound, regions, everyone, regions.polytopes.centres, tolerance=tolerance)
    assert_forward_agrees(compound, regions, everyone, points_inside(regions, rng), tolerance=tolerance)
    points = rng.random((samples, 2))
    owner, depth = owners(regions, points)
    assert (depth > -1e-9).all()
    clear = depth > 1e-9
    assert_forward_agrees(compound, regions, owner[clear], points[clear], tolerance=tolerance)


def assert_plain_map_is_exact(
    layers: Sequence[FloatLayer], low: Sequence[float], high: Sequence[float], **options: object
) -> RegionSet:
    """Subdivide a network from theta to logits on a box and compare everything with the exact map."""
    expected = exact_plain_map(layers, low, high)
    regions = plain_map(on_unit_square(layers, np.array(low), np.array(high)), **options)
    hidden = tuple(len(bias) for _, bias in layers[:-1])
    _assert_equal(regions, np.zeros((len(regions), 0), dtype=bool), pattern_bits(regions, hidden), expected)
    return regions


def assert_compound_map_is_exact(
    layers: Sequence[FloatLayer],
    perturbations: Sequence[Perturbation],
    image: np.ndarray,
    *,
    denominator: int = 2**20,
    **options: object,
) -> RegionSet:
    """Subdivide a compound network and compare everything with the exact map.

    Pixels are multiples of 1/denominator, also where their floats (v/255) are not: exactly coincident lines stay so.
    """
    compound = make_compound(layers, perturbations, image)
    expected = exact_compound_map(compound, layers, denominator=denominator)
    regions = subdivide(compound, **options)
    _assert_equal(regions, clip_bits(compound, regions), pattern_bits(regions, compound.hidden), expected)
    return regions


def _assert_equal(regions: RegionSet, clip: np.ndarray, pattern: np.ndarray, expected: ExactMap) -> None:
    assert regions.stopped is None
    keys = [(int(cell), *map(int, row)) for cell, row in zip(regions.cell, np.hstack([clip, pattern]), strict=True)]
    assert len(set(keys)) == len(keys), "two regions of a cell share a pattern"
    assert set(keys) == set(expected)
    for number, key in enumerate(keys):
        share, forms = expected[key]
        assert abs(regions.polytopes.volumes[number] - float(share)) <= 1e-9
        assert np.allclose(regions.logits[number], forms, rtol=0, atol=1e-9 * max(1.0, np.abs(forms).max()))
