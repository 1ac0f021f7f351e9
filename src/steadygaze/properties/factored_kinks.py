"""Bounds the loss on kinks if the loss of a pattern depends on theta in all directions."""

from math import prod

import numpy as np

from ..attention.enclosed import EnclosedLoss
from ..attention.factored import Corners, reach_between
from ..attention.inconsistency import Inconsistency
from ..attention.map_errors import SingleCurves
from ..attention.measures.distance import DISTANCE
from ..attention.polynomials import ConvexParts
from ..attention.spans import Spans
from ..bounds.bounder import Bounder
from ..budget import Budget, is_over
from ..compound import Compound
from ..regions.region import RegionSet
from .hull_proof import vertex_batches
from .settling import MOST_TOGETHER, PatternCorners, error_together

MOST_PAIRS, PAIRS_AT_ONCE = 20_000, 1_024
"""The most pairs of a region and a pattern on its kinks to measure, and how many to measure at once."""

WIDER = 1e5
"""A neuron counts as uncertain near a vertex if its form there is at most so many times the error from zero."""

MOST_NEURONS = 64
"""More than the number of uncertain neurons at any kink: see MOST_TOGETHER."""


def factored_kink_loss(
    compound: Compound,
    regions: RegionSet,
    errors: list[np.ndarray],
    curves: SingleCurves,
    bounder: Bounder,
    budget: Budget | None = None,
) -> float:
    """An upper bound on the loss over all kinks; infinite if unknown. Maps contain the image, or move along two axes.

    Like `kink_inconsistency`, except that patterns of other regions count too: near a kink, they apply to the pixels of
    this region.

    Let a pattern differ from the region's in neurons K, and let S be the vertices where each F_k is at most WIDER times
    `together`. A point of the region where all F_k are at most `together` is a mean of vertices, with a share of at
    most |K| / WIDER from outside S. So it suffices to bound the pattern's loss on the hull of S and of the points that
    lie this share of the way from S to the other vertices.
    """
    options = curves.options
    if options.measure == DISTANCE and not options.filter.is_linear:
        return np.inf
    together = error_together(compound, regions, errors)
    found: dict[tuple[int, bytes], list[int]] = {}
    corners = PatternCorners(compound)
    for places, vertices in vertex_batches(regions.polytopes, regions.cell, np.arange(len(regions)), bounder.batch):
        if is_over(budget):
            return np.inf
        cell = int(regions.cell[places[0]])
        near = bounder.near_zero(cell, vertices[:, :, : compound.domain.dimension], WIDER * together)
        counts = np.diff(regions.polytopes.starts)[places]
        rows = regions.patterns[regions.pattern[places]]
        for row, vertex in zip(*np.nonzero(near.any(axis=2)), strict=True):
            if vertex >= counts[row]:
                continue
            choices = corners.choices(rows[row], np.flatnonzero(near[row, vertex]))
            if prod(map(len, choices)) > 2**MOST_TOGETHER:
                return np.inf
            own = rows[row].tobytes()
            for pattern in corners.patterns(rows[row], choices):
                if pattern != own:
                    found.setdefault((int(places[row]), pattern), []).append(int(vertex))
        if len(found) > MOST_PAIRS:
            return np.inf
    spans, pairs, largest = Spans.of_regions(compound, regions, has_shapes=True), list(found.items()), 0.0
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        if is_over(budget):
            return np.inf
        part = pairs[start : start + PAIRS_AT_ONCE]
        hulls = [_near_hull(regions.polytopes[region], inside) for (region, _), inside in part]
        own = spans.take(np.array([region for (region, _), _ in part]))
        measured, slack = curves.on_shapes([pattern for (_, pattern), _ in part], own)
        between = Corners(np.concatenate(hulls), np.cumsum([0, *map(len, hulls)]))
        largest = max(largest, float(_reach(measured, between, own, slack)[:, 1].max(initial=0.0)))
    return largest


def _reach(curves: Inconsistency, corners: Corners, spans: Spans, slack: np.ndarray) -> np.ndarray:
    """Bounds (N, 2) of the losses between corners; slack (N,) bounds errors of gradients."""
    if curves.layout is None:
        return reach_between(curves, corners, slack)
    return EnclosedLoss(curves, curves.curve, spans.origins, slack).reach(ConvexParts.of(*corners))


def _near_hull(vertices: np.ndarray, inside: list[int]) -> np.ndarray:
    """The chosen vertices, and the points a small share of the way from them to each of the other vertices."""
    others = np.delete(vertices, inside, axis=0)
    share = MOST_NEURONS / WIDER
    mixed = (1.0 - share) * vertices[inside][:, None] + share * others[None]
    return np.concatenate([vertices[inside], mixed.reshape(-1, vertices.shape[1])])
