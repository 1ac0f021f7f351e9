"""Turns true maps into false ones by one error each, in two or three dimensions."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from steadygaze.regions.region import RegionSet


def without(regions: RegionSet, dropped: int) -> RegionSet:
    return take(regions, np.delete(np.arange(len(regions)), dropped))


def take(regions: RegionSet, kept: np.ndarray) -> RegionSet:
    chosen = {name: getattr(regions, name)[kept] for name in ("cell", "pattern", "clip", "logits")}
    return replace(regions, polytopes=regions.polytopes.take(kept), **chosen)


def largest(regions: RegionSet) -> int:
    return int(np.argmax(regions.polytopes.volumes))


def smallest_plain_one(regions: RegionSet) -> int:
    """A small region whose area still is far above the tolerances."""
    areas = regions.polytopes.volumes
    return int(np.argmin(np.where(areas > 1e-6, areas, np.inf)))


def flip_bit(regions: RegionSet, region: int, name: str, bit: int) -> RegionSet:
    """Flip one bit of the pattern ('pattern') or the clip ('clip') of one region."""
    table, ids = getattr(regions, f"{name}s"), getattr(regions, name).copy()
    row = table[ids[region]].copy()
    row[bit // 8] ^= np.uint8(128 >> (bit % 8))
    ids[region] = len(table)
    return replace(regions, **{f"{name}s": np.vstack([table, row]), name: ids})


def inner_vertex(regions: RegionSet) -> int:
    """The place of a vertex of a large region, away from the border."""
    points = regions.polytopes.points
    inside = ((points > 0.01) & (points < 0.99)).all(axis=1)
    return int(np.argmax(np.where(inside, regions.polytopes.volumes[regions.polytopes.owner], -1)))


def change_logit(size: float, row: int) -> Callable[[RegionSet], RegionSet]:
    def change(regions: RegionSet) -> RegionSet:
        logits = regions.logits.copy()
        logits[smallest_plain_one(regions), row, 3] += size
        return replace(regions, logits=logits)

    return change


def repeat_instead(regions: RegionSet) -> RegionSet:
    """One region twice, and left out another that comes nearest to it in area."""
    areas = regions.polytopes.volumes
    order = np.argsort(areas)
    gaps = np.diff(areas[order])
    gaps[areas[order[1:]] < 1e-6] = np.inf
    nearest = int(np.argmin(gaps))
    kept = np.arange(len(regions))
    kept[order[nearest]] = order[nearest + 1]
    return take(regions, kept)


MISTAKES: dict[str, Callable[[RegionSet], RegionSet]] = {
    "largest region dropped": lambda regions: without(regions, largest(regions)),
    "small region dropped": lambda regions: without(regions, smallest_plain_one(regions)),
    "region delivered twice": lambda regions: take(regions, np.append(np.arange(len(regions)), largest(regions))),
    "region delivered instead of another": repeat_instead,
    "bit of the first layer flipped": lambda regions: flip_bit(regions, smallest_plain_one(regions), "pattern", 4),
    "bit of the second layer flipped": lambda regions: flip_bit(regions, largest(regions), "pattern", 56 + 7),
    "bit of the clip flipped": lambda regions: flip_bit(regions, largest(regions), "clip", 3),
    "logit lost": change_logit(np.nan, 2),
}
"""Mistakes in any dimension, for M-FNN-100."""
