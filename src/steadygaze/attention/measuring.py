"""Measures the loss of attention on sets of regions: patterns → maps → curves, or numbers of single regions."""

from dataclasses import replace
from functools import lru_cache
from math import prod

import numpy as np

from ..compound import Compound
from ..regions.patterns import PatternTable, distinct_rows
from ..regions.region import RegionSet
from .enclosed import EnclosedSums
from .factored import FactoredSums
from .gradients import allowed_flips
from .inconsistency import (
    CurveTable,
    Inconsistency,
    SharedArray,
    aimed_chain,
    curve_ranges,
    original_gradients,
    original_maps,
)
from .options import AttentionOptions
from .spans import Spans


def measure(
    compound: Compound, regions: RegionSet, options: AttentionOptions, original: np.ndarray, *, threads: int = 1
) -> Inconsistency:
    """Compute the curves of all regions; original (K', C, H, W): the filtered maps of the unperturbed image."""
    if needs_shapes(compound, options):
        spans = Spans.of_regions(compound, regions, has_shapes=True)
        return measure_shapes(compound, regions.patterns, regions.pattern, spans, options, threads=threads)
    keys = np.stack([regions.cell, regions.pattern], axis=1).astype(np.int64)
    if compound.perturbed.moving_axis is None:
        keys[:, 0] = 0
    curve, distinct = distinct_rows([np.ascontiguousarray(keys).view(np.uint8).reshape(len(keys), 16)])
    cells, patterns = np.ascontiguousarray(distinct.view(np.int64).T)
    ranges = curve_ranges(curve, Spans.of_regions(compound, regions).taus, len(cells))
    flips = most_flips(compound, options, original)
    table = CurveTable(compound, options, original, cells, patterns)
    table.fill(regions.patterns, ranges, max_flips=flips, threads=threads)
    return table.finish(curve)


def most_flips(compound: Compound, options: AttentionOptions, original: np.ndarray) -> int:
    """The most flips between two computations from scratch; error bounds on curves hold up to this number."""
    if needs_shapes(compound, options):
        original = _behind_maps(compound, options)
    return _flips(compound, options, SharedArray(original))


@lru_cache(maxsize=4)
def _flips(compound: Compound, options: AttentionOptions, original: "SharedArray") -> int:
    return allowed_flips(aimed_chain(compound, options), options, original.values)


def measure_again(
    compound: Compound,
    patterns: PatternTable,
    curves: Inconsistency,
    spans: Spans,
    options: AttentionOptions,
    original: np.ndarray,
    chosen: np.ndarray,
) -> tuple[np.ndarray, Inconsistency]:
    """The regions (N,) with one of the chosen curves (S,), and these curves from scratch; spans: for all regions."""
    if curves.has_shapes:
        # Every region has its own curve.
        regions = np.flatnonzero(np.isin(curves.curve, chosen))
        pattern = curves.curve_pattern[curves.curve[regions]]
        return regions, measure_shapes(compound, patterns, pattern, spans.take(regions), options, max_flips=0)
    ranges = curve_ranges(curves.curve, spans.taus, len(curves.curve_cell))[chosen]
    place = np.full(len(curves.curve_cell), -1)
    place[chosen] = np.arange(len(chosen))
    regions = np.flatnonzero(place[curves.curve] >= 0)
    table = CurveTable(compound, options, original, curves.curve_cell[chosen], curves.curve_pattern[chosen])
    table.fill(patterns, ranges, may_compress=False)
    return regions, table.finish(place[curves.curve[regions]])


def needs_shapes(compound: Compound, options: AttentionOptions) -> bool:
    """Whether losses change within regions in all directions: maps contain the image, or move along two axes."""
    return options.method.factor_baseline is not None or compound.perturbed.has_enclosed_maps


def measure_shapes(
    compound: Compound,
    patterns: PatternTable,
    pattern: np.ndarray,
    spans: Spans,
    options: AttentionOptions,
    *,
    max_flips: int | None = None,
    threads: int = 1,
) -> Inconsistency:
    """The curves of regions whose shapes matter, with patterns numbered in `pattern` (R,)."""
    original = _behind_maps(compound, options)
    distinct, place = np.unique(pattern, return_inverse=True)
    nothing = np.zeros(len(distinct), dtype=np.int64)
    flips = most_flips(compound, options, original) if max_flips is None else max_flips
    is_factored = options.has_straight_borders(moves=compound.perturbed.moving_axis is not None)
    sums: FactoredSums | EnclosedSums
    if is_factored and not compound.perturbed.has_enclosed_maps:
        sums = FactoredSums(compound, options, spans, place)
        layout = None
    else:
        sums = EnclosedSums(compound, options, original, spans, place)
        layout = sums.layout
    table = CurveTable(compound, options, original, nothing, distinct)
    table.take = sums.add
    table.fill(patterns, np.zeros((len(distinct), 2)), max_flips=flips, threads=threads, may_compress=False)
    everyone = np.arange(len(pattern))
    found = Inconsistency.empty(everyone, 0 * everyone, pattern.astype(np.int64), len(original), original.size)
    numbers = sums.numbers.reshape(len(pattern), prod(sums.numbers.shape[1:]))
    return replace(found, sums=numbers, measure=options.measure, is_factored=layout is None, layout=layout)


@lru_cache(maxsize=4)
def _behind_maps(compound: Compound, options: AttentionOptions) -> np.ndarray:
    """The filtered maps of the unperturbed image, or its filtered gradients if the image multiplies them."""
    if options.method.factor_baseline is not None:
        return options.filter(original_gradients(compound, options))
    return original_maps(compound, options)
