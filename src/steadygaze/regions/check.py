"""Checks a map before it is returned: the tiling, and patterns and logits against a plain forward pass.

A conserved area does not rule out a missed split. So the check compares every region (or a fixed sample if there are
many) with the graph at a point inside, and at points on either side of sampled facets. Differences within the error
bounds of both computations are expected, and every claim of a map allows for them. A larger difference means that a
proof is false, and raises InternalError.
"""

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import NoReturn

import numpy as np

from ..accuracy import Accuracy
from ..compound import Compound
from ..errors import InternalError
from ..labels import Stop
from ..network.layers import Layer
from ..polytopes import Cut, Polytopes
from ..polytopes.protocol import take_runs
from ..tolerances import AREA, BESIDE, CLIPPED, DISTANCE
from .forward_error import by_layer, forward_errors, plain_errors, refuse_overflow, window_sizes
from .patterns import unpack
from .region import RegionSet

BENT = 100 * DISTANCE
"""The largest distance of a vertex from the plane of its facet: a vertex is snapped a few times, by up to DISTANCE."""

THIN = 1e-4
"""Regions and facets thinner than this are not compared at their facets."""

CHUNK = 200

UNEVEN = 1e-7
"""The largest difference in size between the two sides of a cut."""


def two_sided(regions: RegionSet, signed: np.ndarray, *, is_map: bool) -> np.ndarray:
    """The facets, given by their signed cuts (E,), that must have a region on the other side.

    In a partial map none must, in a full map all inner facets, for regions inside boxes the facets made by neurons.
    """
    if regions.stopped is not None:
        return np.zeros(len(signed), dtype=bool)
    return is_map | (regions.cuts[np.abs(signed) - 1, 0] == Cut.NEURON)


INSIDE, MORE_INSIDE = 1_000, 256
EDGES, MORE_EDGES = 500, 1_024
"""The points to compare inside regions, and the facets to compare on both sides: a fixed number, and one more for every
MORE_INSIDE or MORE_EDGES regions.

If the map is wrong on 0.7 % of its regions, a thousand points all agree with a chance of less than one in a thousand.
"""
BATCH = 128
"""Points compared in one batch: their images stay in the processor's cache."""

BALANCED = 1e-15
"""A smaller difference between the two sides of a cut within a chunk is rounding."""


@dataclass(frozen=True)
class CheckedMap:
    """The error of the sum of volumes, and the numbers of points compared inside regions and beside facets."""

    tiling_error: float
    inside: int
    beside: int


def check_map(
    compound: Compound,
    regions: RegionSet,
    *,
    expected_volume: float | None = None,
    inside: int | None = None,
    edges: int | None = None,
    threads: int = 1,
    is_late: Callable[[], bool] = lambda: False,
) -> CheckedMap:
    """Check a map; raises InternalError if a check fails. A partial map need not cover the domain.

    `expected_volume` is given for regions inside boxes: the share of the domain that they must cover. Only cuts of
    neurons must then have two sides, because there may be no region beyond a box. Compares at most `inside` regions at
    a point inside, and at most `edges` of their facets on either side; if the run is late, one batch of each.
    """
    is_map = expected_volume is None
    error = _check_tiling(regions, 1.0 if expected_volume is None else expected_volume, is_map=is_map)
    count = len(regions)
    inside = INSIDE + count // MORE_INSIDE if inside is None else inside
    edges = EDGES + count // MORE_EDGES if edges is None else edges
    compared = _check_samples(compound, regions, inside, edges, is_map=is_map, threads=threads, is_late=is_late)
    return CheckedMap(error, *compared)


def _check_samples(
    compound: Compound,
    regions: RegionSet,
    inside: int,
    edges: int,
    *,
    is_map: bool,
    threads: int = 1,
    is_late: Callable[[], bool] = lambda: False,
) -> tuple[int, int]:
    """Compare at most this many regions and facets with the graph; returns the number of points inside and beside."""
    if is_late():
        inside, edges = min(inside, BATCH), min(edges, BATCH // 2)
    count = len(regions)
    chosen = np.arange(count) if count <= inside else np.linspace(0, count - 1, inside).astype(np.int64)
    plain = PlainPass(compound, regions.accuracy)
    check = partial(_check_points, plain, regions, threads=threads, is_late=is_late)
    within = check(regions.polytopes.centres[chosen], chosen, "inside")
    return within, check(*beside_facets(regions, edges, is_map=is_map), "beside an edge or facet of")


class ChunkCheck:
    """Checks a map chunk by chunk, and its tiling at the end; chunks may come from any thread, and in any order."""

    def __init__(self, compound: Compound) -> None:
        self.compound = compound
        self.ids: list[np.ndarray] = []
        self.sides: list[np.ndarray] = []
        self.volumes: list[float] = []
        self.inside = self.beside = 0
        self.lock = threading.Lock()

    def add(self, regions: RegionSet, cut_id: np.ndarray, inside: int, edges: int) -> None:
        """Check the shapes of a chunk, and at most this many of its regions and facets against the graph."""
        polytopes = regions.polytopes
        _check_shapes(regions)
        # The region beyond a facet may belong to another chunk.
        is_open = replace(regions, stopped=Stop("part of a map"))
        compared = _check_samples(self.compound, is_open, inside, edges, is_map=True)
        totals = side_totals(polytopes.facets, polytopes.facet_sizes, len(regions.cuts))
        is_border = regions.cuts[:, 0] == Cut.BORDER
        uneven = totals[0] - np.where(is_border, 0.0, totals[1])
        chosen = np.flatnonzero(np.abs(uneven) > BALANCED)
        with self.lock:
            self.ids.append(np.where(is_border, -cut_id, cut_id)[chosen])
            self.sides.append(uneven[chosen])
            self.volumes.append(float(polytopes.volumes.sum()))
            self.inside += compared[0]
            self.beside += compared[1]

    def finish(self, *, is_partial: bool) -> CheckedMap:
        """Check that all chunks together tile the domain, and that every cut has two sides."""
        if is_partial:
            return CheckedMap(0.0, self.inside, self.beside)
        volume = math.fsum(self.volumes)  # exact: the order of the chunks does not matter
        _check_volume(volume, 1.0)
        ids, place = np.unique(np.concatenate(self.ids), return_inverse=True)
        uneven = np.abs(np.bincount(place, np.concatenate(self.sides), len(ids)) - np.where(ids < 0, 1.0, 0.0))
        if uneven.max(initial=0.0) > UNEVEN:
            raise InternalError("part of a cut has a region on one side only: please report this model and image")
        return CheckedMap(abs(volume - 1.0), self.inside, self.beside)


def _check_shapes(regions: RegionSet) -> None:
    """Check that every region has a volume and flat facets."""
    polytopes = regions.polytopes
    smallest = float(polytopes.volumes.min(initial=1.0))
    if not smallest > 0.0:
        raise InternalError(f"the map has a region of size {smallest:.3g}: please report this model and image")
    bends = polytopes.facet_bends()
    # The vertices of a facet lie on a plane, up to the depth of gaps.
    if not bends.max(initial=0.0) <= BENT + 2.0 * regions.accuracy.gap:
        bent = polytopes.facet_owner[np.argmax(bends)]
        raise InternalError(f"a facet of region {bent} is not flat: please report this model and image")


def _check_volume(total: float, expected: float) -> None:
    if not abs(total - expected) <= AREA:
        raise InternalError(
            f"the regions add up to {total!r} of the domain instead of {expected!r}: please report this model and image"
        )


def _check_tiling(regions: RegionSet, expected: float, *, is_map: bool) -> float:
    _check_shapes(regions)
    polytopes = regions.polytopes
    if regions.stopped is not None:
        return 0.0
    total = float(polytopes.volumes.sum())
    _check_volume(total, expected)
    uneven = uneven_sides(polytopes.facets, polytopes.facet_sizes, regions.cuts)
    if not is_map:
        uneven[regions.cuts[:, 0] != Cut.NEURON] = 0.0
    worst = int(np.argmax(uneven))
    if uneven[worst] > UNEVEN:
        raise InternalError(
            f"part of cut {worst + 1} has a region on one side only: please report this model and image"
        )
    return abs(total - expected)


def uneven_sides(sides: np.ndarray, sizes: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """The difference in size between the two sides of every cut (E,); the border has one side of size 1.

    sides: the signed cut of every facet; sizes: the facets' sizes.
    """
    totals = side_totals(sides, sizes, len(cuts))
    return np.abs(totals[0] - np.where(cuts[:, 0] == Cut.BORDER, 1.0, totals[1]))


def side_totals(sides: np.ndarray, sizes: np.ndarray, cuts: int) -> np.ndarray:
    """The size (2, E) of the facets on the positive and on the negative side of every cut."""
    place = np.abs(sides) - 1 + cuts * (sides < 0)
    # Facets that no cut made have the number 0.
    return np.bincount(place.ravel(), np.ravel(sizes), 2 * cuts).reshape(2, cuts)


def wrong_bits(layer: Layer, values: np.ndarray, bits: np.ndarray, error: np.ndarray) -> np.ndarray:
    """The bits (B, n) of a claimed pattern that contradict computed values (B, n) with errors up to `error` (n,).

    NaN contradicts every bit. In every window, exactly one bit must be set, for an entry that may be the largest.

    >>> wrong_bits(Layer.relus(2), np.array([[0.5, 1e-9]]), np.array([[False, False]]), np.full(2, 1e-8))
    array([[ True, False]])
    """
    wrong = ~(np.abs(values) <= error) & ((values > 0.0) != bits)
    if layer.is_plain:
        return wrong
    wrong[:, layer.carried] = ~bits[:, layer.carried]
    if len(layer.entries):
        chosen, value, counts = bits[:, layer.entries], values[:, layer.entries], window_sizes(layer)
        one = np.add.reduceat(chosen, layer.starts, axis=1, dtype=np.int64) == 1
        may_win = value + error[layer.entries] >= np.repeat(
            np.maximum.reduceat(value - error[layer.entries], layer.starts, axis=1), counts, axis=1
        )
        wrong[:, layer.entries] = (chosen & ~may_win) | ~np.repeat(one, counts, axis=1)
    return wrong


class PlainPass:
    """Compares claims about points with the graph's own forward pass, up to the errors of both.

    errors: for the inputs of all layers, (n,) each, and for the logits; a neuron within its error of zero may have
    either sign. If a name is given, values that overflow raise a ModelError with this name.
    """

    def __init__(self, compound: Compound, accuracy: Accuracy, name: str | None = None) -> None:
        both = zip(forward_errors(compound, accuracy), plain_errors(compound, accuracy), strict=True)
        *layers, logits = (first + second for first, second in both)
        missed = by_layer(compound, accuracy.missed)
        self.compound, self.name, self._last = compound, name, threading.local()
        self.errors = [*(error + left for error, left in zip(layers, missed, strict=True)), logits]

    def compare(
        self, images: np.ndarray, points: np.ndarray, packed: np.ndarray, forms: np.ndarray, places: Sequence[str]
    ) -> None:
        """Compare packed patterns (B, bytes) and logits (B, D+1, K) claimed at points (B, D) in t and their images.

        Raises InternalError with the place (one of B texts) of a point where they differ.
        """
        values, logits = self.compound.graph.trace(images)
        self._last.values = values  # kept until the next pass: freed memory would have to be mapped again
        for layer, (value, bits) in enumerate(zip(values, unpack(packed, self.compound.hidden), strict=True)):
            if self.name is not None:
                refuse_overflow(self.name, self.compound, value)
            wrong = wrong_bits(self.compound.graph.layers[layer], value, bits, self.errors[layer])
            if wrong.any():
                neuron = np.argmax(wrong.any(axis=0))
                _fail(places[int(np.argmax(wrong.any(axis=1)))], f"neuron {neuron} of ReLU layer {layer}")
        homogeneous = np.hstack([points, np.ones((len(points), 1))])
        off = np.abs(logits - np.einsum("bi,bik->bk", homogeneous, forms))
        bad = ~(off <= self.errors[-1]).all(axis=1)
        if bad.any():
            _fail(places[int(np.argmax(bad))], f"a logit, by {off.max():.3g}")


def _check_points(
    plain: PlainPass,
    regions: RegionSet,
    points: np.ndarray,
    owners: np.ndarray,
    where: str,
    *,
    threads: int,
    is_late: Callable[[], bool],
) -> int:
    """Compare the pattern and logits of the owning regions with the graph at points (B, D) of the unit square or cube.

    Returns how many points were compared: all of them, or, if the run is late, at least one batch.
    """
    compound = plain.compound

    def check(start: int) -> int:
        if start and is_late():
            return 0
        part = slice(start, start + BATCH)
        owner = owners[part]
        images = compound.perturbed.images(compound.to_theta(points[part]))
        _check_clip(compound, regions, images.reshape(len(owner), -1), owner, where)
        packed = regions.patterns[regions.pattern[owner]]
        places = [f"{where} region {number}" for number in owner]
        plain.compare(images, points[part], packed, regions.logits[owner], places)
        return len(owner)

    starts = range(0, len(points), BATCH)
    if threads == 1:
        return sum(map(check, starts))
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(check, starts))


def _check_clip(compound: Compound, regions: RegionSet, pixels: np.ndarray, owners: np.ndarray, where: str) -> None:
    """Compare the clip's pattern in the owning regions with the pixels (B, pixels) of the images there."""
    for number in np.unique(regions.cell[owners]):
        cell = compound.programs[number]
        chosen = np.flatnonzero(regions.cell[owners] == number)
        lines = cell.root.shape[1]
        above_zero, below_one = unpack(regions.clips[regions.clip[owners[chosen]]], (lines, lines))
        moving = np.flatnonzero(cell.line_of >= 0)
        # Avoid a copy if all rows are chosen.
        here = pixels if len(chosen) == len(pixels) else pixels[chosen]
        line, here = cell.line_of[moving], here if len(moving) == here.shape[1] else here[:, moving]
        # Inside a region, a pixel is 0, 1, or clearly between.
        wrong = np.where(np.take(above_zero, line, axis=1), here == 0.0, here > CLIPPED)
        wrong |= np.where(np.take(below_one, line, axis=1), here == 1.0, here < 1.0 - CLIPPED)
        if wrong.any():
            pixel = moving[np.argmax(wrong.any(axis=0))]
            region = owners[chosen[np.argmax(wrong.any(axis=1))]]
            _fail(f"{where} region {region}", f"the clip of pixel {pixel}")


def _fail(where: str, what: str) -> NoReturn:
    raise InternalError(
        f"self-check failed {where}: {what} differs from a plain forward pass; nothing is delivered, "
        "please report this model and image"
    )


def beside_facets(regions: RegionSet, most: int, *, is_map: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Points (B, D) just inside and just outside at most `most` facets, and the regions that must contain them."""
    polytopes, owner = regions.polytopes, regions.polytopes.facet_owner
    is_inner = regions.cuts[np.abs(polytopes.facets) - 1, 0] != Cut.BORDER
    widths = polytopes.facet_widths
    thickness = polytopes.volumes[owner] / np.maximum(polytopes.facet_sizes, 1e-300)
    usable = np.flatnonzero(is_inner & (thickness > THIN) & (widths > THIN))
    if len(usable) > most:
        usable = usable[np.linspace(0, len(usable) - 1, most).astype(np.int64)]
    middle, outward = polytopes.facet_planes(usable)
    within, beyond = middle - BESIDE * outward, middle + BESIDE * outward
    is_thick = _is_thick(polytopes)
    own = owner[usable]
    is_within = is_thick[own] & (_height(polytopes, own, within) < -0.1 * BESIDE)
    has_other = two_sided(regions, polytopes.facets[usable], is_map=is_map)
    across, is_beyond = _across(polytopes, usable, middle, beyond, widths, has_other)
    is_beyond &= is_thick[across]
    return np.concatenate([within[is_within], beyond[is_beyond]]), np.concatenate([own[is_within], across[is_beyond]])


def _across(
    polytopes: Polytopes,
    facets: np.ndarray,
    middle: np.ndarray,
    beyond: np.ndarray,
    widths: np.ndarray,
    has_other: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The region across the middle of each facet, and whether the point beyond the facet is clearly inside it.

    has_other (F,): which facets must have such a region.
    """
    order = np.argsort(polytopes.facets, kind="stable")
    ranked = polytopes.facets[order]
    low, high = polytopes.bounding_boxes()
    tolerance = 10 * DISTANCE * (1.0 + 2.0 / np.maximum(widths, DISTANCE))
    region, depth = np.full(len(facets), -1), np.full(len(facets), np.inf)
    for start in range(0, len(facets), CHUNK):
        wanted = -polytopes.facets[facets[start : start + CHUNK]]
        first, last = np.searchsorted(ranked, wanted), np.searchsorted(ranked, wanted, side="right")
        # All pairs of a sampled facet (by number) and a facet on the other side of the same cut.
        number = np.repeat(np.arange(len(wanted)), last - first)
        places = np.arange(len(number)) - np.repeat(np.cumsum(last - first) - last, last - first)
        other, number = polytopes.facet_owner[order[places]], number + start
        margin = 10 * DISTANCE
        near = ((middle[number] >= low[other] - margin) & (middle[number] <= high[other] + margin)).all(axis=1)
        number, other = number[near], other[near]
        touches = _height(polytopes, other, middle[number], tolerance) <= 0.0
        number, other = number[touches], other[touches]
        height = _height(polytopes, other, beyond[number])
        # If there are several, the deepest one comes last and overwrites the others.
        for place in np.lexsort((-height, number)):
            region[number[place]], depth[number[place]] = other[place], height[place]
    is_lost = (region < 0) & has_other
    if is_lost.any():
        lost = polytopes.facet_owner[facets[np.argmax(is_lost)]]
        raise InternalError(
            f"a facet of region {lost} has no region on its other side: please report this model and image"
        )
    return region, (region >= 0) & (depth < -0.1 * BESIDE)


def _height(
    polytopes: Polytopes, owners: np.ndarray, points: np.ndarray, tolerance: np.ndarray | None = None
) -> np.ndarray:
    """How far points (B, D) lie beyond the facet planes of their polytopes, minus the tolerance: below 0 inside."""
    if not len(owners):
        return np.zeros(0)
    starts, facet = take_runs(polytopes.facet_starts, owners)
    centres, outward = polytopes.facet_planes(facet)
    heights = ((np.repeat(points, np.diff(starts), axis=0) - centres) * outward).sum(axis=1)
    return np.maximum.reduceat(heights if tolerance is None else heights - tolerance[facet], starts[:-1])


def _is_thick(polytopes: Polytopes) -> np.ndarray:
    """Whether polytopes (R,) are thick enough to place points beside their facets; a needle has no reliable normals."""
    largest = np.zeros(len(polytopes))
    np.maximum.at(largest, polytopes.facet_owner, polytopes.facet_sizes)
    return polytopes.volumes > BESIDE * largest
