"""Encloses the border of a loss that is not straight: pieces of regions are halved until little is left undecided.

On every part of a piece, the border lies in a strip between two parallel planes (`attention/enclosed.py`). Halving a
part shrinks its strip to about an eighth, in two parts. The widest strips come first.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..attention.enclosed import EnclosedLoss, Strips
from ..attention.inconsistency import Inconsistency
from ..attention.map_errors import MapErrors
from ..attention.polynomials import ConvexParts
from ..attention.spans import Spans
from ..budget import OPTIONAL, Budget, is_over
from ..polytopes import Cut, Polytopes, join_polytopes
from ..regions.region import RegionSet
from .attention import AttentionLabels, Doubtful
from .classification import Pieces
from .joint import JointPieces, join, parts_of

ENOUGH = 8e-7
"""The share of all pieces up to which strips may stay undecided; with kinks, less than one millionth."""

MOST_PARTS, MOST_EACH = 40_000, 4
"""The most parts that pieces are divided into: so many in all, or so many for each piece, if that is more."""

SMALLEST = 1e-7
"""Parts narrower than this are not halved."""

DECIDED = 0.2
"""The cost of a half without a strip. Another half with a strip costs log 2."""

OUTSIDE = 4.0
"""No point of the unit square or cube is as far from zero."""


class _Leaves(NamedTuple):
    """Parts of pieces (N): their shapes, the piece of each (N,), and where the loss is kept there."""

    polytopes: Polytopes
    origin: np.ndarray
    strips: Strips

    def take(self, chosen: np.ndarray) -> "_Leaves":
        strips = Strips(*(column[chosen] for column in self.strips))
        return _Leaves(self.polytopes.take(chosen), self.origin[chosen], strips)

    def open_volumes(self) -> np.ndarray:
        """The volumes (N,) between the two planes."""
        inner, outer = self.strips.inner, self.strips.outer
        kept = np.where(inner[:, 0] <= inner[:, 1], inner[:, 1], -OUTSIDE)
        lost = np.where(outer[:, 0] <= outer[:, 1], outer[:, 1], -OUTSIDE)
        chosen = np.flatnonzero(lost > kept)
        volumes = np.zeros(len(self.origin))
        slab = np.stack([kept[chosen], lost[chosen]], axis=1)
        volumes[chosen] = self.polytopes.slab_volumes(chosen, slab, self.strips.along[chosen])
        return volumes


def enclose_attention(
    regions: RegionSet,
    pieces: Pieces,
    curves: Inconsistency,
    spans: Spans,
    delta: float,
    errors: MapErrors,
    doubtful: Doubtful,
    *,
    target: float | None = None,
    budget: Budget | None = None,
) -> tuple[AttentionLabels, JointPieces]:
    """The labels of regions for δ, and pieces with both labels; pieces may be those of some regions only.

    One error bound for all maps comes first; curves whose strips it widens are computed again with their own bounds.
    Doubtful regions have no certain map: only bounds that hold for every possible map decide them. target: the volume
    that strips may have; None for ENOUGH of all pieces.
    """
    slack = np.full(len(regions), errors.coarse)
    loss = EnclosedLoss(curves, curves.curve[pieces.region], spans.origins[pieces.region], slack[pieces.region])
    first = _Leaves(pieces.polytopes, np.arange(len(pieces)), loss.strips(_parts(pieces.polytopes), delta))
    is_sure = np.ones(len(regions), dtype=bool)
    is_sure[doubtful.regions] = False
    widths = np.maximum(first.strips.ends[:, 1] - first.strips.ends[:, 0], 0.0)
    is_open = _is_open(first.strips, delta) & is_sure[pieces.region]
    is_wide = is_open & ~(first.strips.doubt <= errors.finest * widths)
    # Without time for bounds of single maps, strips stay as wide as the common bound makes them.
    if is_wide.any() and not is_over(budget, OPTIONAL):
        settled = errors.settle(np.unique(curves.curve[pieces.region[is_wide]]), spans)
        sums = curves.sums.copy()
        sums[curves.curve[settled.regions]] = settled.curves.sums[settled.curves.curve]
        slack[settled.regions] = settled.slack[settled.curves.curve]
        curves = replace(curves, sums=sums)
        loss = EnclosedLoss(curves, curves.curve[pieces.region], spans.origins[pieces.region], slack[pieces.region])
        first = first._replace(strips=loss.strips(_parts(pieces.polytopes), delta))
    first = first._replace(strips=_bounded(first.strips, pieces.region, delta, doubtful))
    target = ENOUGH * float(pieces.polytopes.volumes.sum()) if target is None else target
    leaves, cuts = _divided(first, loss, delta, target, is_sure[pieces.region], len(pieces.cuts), budget)
    labels = AttentionLabels(
        delta, leaves.strips.inner, leaves.strips.outer, leaves.strips.ends, leaves.strips.reach, leaves.strips.along
    )
    table = np.repeat([[Cut.SLAB, 0, 0]], cuts, axis=0)
    own = parts_of(pieces, leaves.polytopes, leaves.origin, table)
    joint = join(regions, own, labels, np.arange(len(own)))
    return _over_regions(labels, own.region, len(regions)), joint


def _parts(polytopes: Polytopes) -> ConvexParts:
    return ConvexParts.of(polytopes.points, polytopes.starts)


def _is_open(strips: Strips, delta: float) -> np.ndarray:
    """Which parts (N,) are not decided as a whole."""
    return ~(strips.reach[:, 1] <= delta) & ~(strips.reach[:, 0] > delta)


def _bounded(strips: Strips, region: np.ndarray, delta: float, doubtful: Doubtful) -> Strips:
    """The strips, with parts of doubtful regions decided by their bounds alone; region (N,) of each part."""
    if not len(doubtful.regions):
        return strips
    place = np.full(int(max(region.max(initial=-1), doubtful.regions.max())) + 1, -1)
    place[doubtful.regions] = np.arange(len(doubtful.regions))
    chosen = np.flatnonzero(place[region] >= 0)
    bounds, ends, nothing = doubtful.bounds[place[region[chosen]]], strips.ends[chosen], np.array([1.0, 0.0])
    inner, outer, reach = strips.inner.copy(), strips.outer.copy(), strips.reach.copy()
    inner[chosen] = np.where((bounds[:, 1] <= delta)[:, None], ends, nothing)
    outer[chosen] = np.where((bounds[:, 0] > delta)[:, None], nothing, ends)
    reach[chosen] = bounds
    return strips._replace(inner=inner, outer=outer, reach=reach)


def _divided(
    first: _Leaves,
    loss: EnclosedLoss,
    delta: float,
    target: float,
    is_sure: np.ndarray,
    base: int,
    budget: Budget | None,
) -> tuple[_Leaves, int]:
    """Parts of all pieces, in their order, whose strips have at most the target volume, and the number of cuts.

    loss and is_sure: of the pieces (P,). Cuts are numbered from base + 1.
    """
    done: list[_Leaves] = []
    rest, cuts, count = first, 0, len(first.origin)
    limit = max(MOST_PARTS, MOST_EACH * count)
    left = 0.0  # strips that cannot become narrower
    while True:
        volumes = np.where(_is_open(rest.strips, delta) & is_sure[rest.origin], rest.open_volumes(), 0.0)
        # Halving shrinks no strip below errors.
        is_last = (rest.strips.gap <= 1.5 * rest.strips.floor) | (_parts(rest.polytopes).half.max(axis=1) < SMALLEST)
        left += float(volumes[is_last].sum())
        chosen = np.zeros(0, dtype=np.int64)
        if not is_over(budget, OPTIONAL):
            chosen = _worth_halving(np.where(is_last, 0.0, volumes), target - left)[: max(0, limit - count)]
        stays = np.ones(len(volumes), dtype=bool)
        stays[chosen] = False
        # Narrow strips wait: they may still be worth halving.
        waits = stays & ~is_last & (volumes > 0.0) if len(chosen) else np.zeros(len(volumes), dtype=bool)
        done.append(rest.take(np.flatnonzero(stays & ~waits)))
        if not len(chosen):
            break
        halves, made = _halved(rest.take(np.sort(chosen)), loss, delta, base + cuts)
        rest = _joined([rest.take(np.flatnonzero(waits)), halves])
        cuts, count = cuts + made, count + made
        if not made:
            done.append(rest)
            break
    whole = _joined(done)
    return whole.take(np.argsort(whole.origin, kind="stable")), cuts


def _worth_halving(volumes: np.ndarray, target: float) -> np.ndarray:
    """The widest strips, in descending order, such that all volumes (N,) may reach the target once these are halved."""
    order = np.argsort(-volumes, kind="stable")
    found = volumes[order]
    total = float(found.sum())
    if total <= max(target, 0.0):
        return order[:0]
    # Halving a part about halves the volume of its strips.
    needed = int(np.searchsorted(np.cumsum(found), 2.0 * (total - target))) + 1
    return order[: min(needed, int(np.count_nonzero(found)))]


def _joined(leaves: list[_Leaves]) -> _Leaves:
    """All parts of several lists, in order."""
    leaves = [part for part in leaves if len(part.origin)] or leaves[:1]
    columns = zip(*(part.strips for part in leaves), strict=True)
    return _Leaves(
        join_polytopes([part.polytopes for part in leaves]),
        np.concatenate([part.origin for part in leaves]),
        Strips(*(np.concatenate(column) for column in columns)),
    )


def _halved(leaves: _Leaves, loss: EnclosedLoss, delta: float, base: int) -> tuple[_Leaves, int]:
    """The halves of parts, each cut across the axis that is worth most."""
    own, parts = loss.take(leaves.origin), _parts(leaves.polytopes)
    axis = _best_axes(own, parts, leaves.strips.along, delta)
    along = np.eye(parts.middle.shape[1])[axis]
    slab = np.stack([np.full(len(axis), -OUTSIDE), parts.middle[np.arange(len(axis)), axis]], axis=1)
    polytopes, origin, _, made = leaves.polytopes.split_by_slab(slab, along, base)
    found = own.take(origin).strips(_parts(polytopes), delta)
    return _Leaves(polytopes, leaves.origin[origin], found), made


def _best_axes(loss: EnclosedLoss, parts: ConvexParts, along: np.ndarray, delta: float) -> np.ndarray:
    """The axis (N,) to halve each part across: for the fewest parts, its planes come closest together.

    A cut across the strip leaves one half without it; a cut along the strip leaves both halves with a part of it.
    """
    whole = loss.remainder(parts, delta)[:, None]
    rests = np.stack([loss.remainder(parts.narrowed(axis), delta) for axis in range(along.shape[1])], axis=1)
    reach = np.abs(along) * parts.half
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = 1.0 + np.minimum((reach.sum(axis=1, keepdims=True) - reach) / reach, 1.0)
        worth = np.log(whole / rests) / (np.log(np.where(np.isnan(growth), 2.0, growth)) + DECIDED)
    # If nothing is known, the longest.
    worth = np.where(np.isnan(worth) | (parts.half < SMALLEST), -1.0, worth)
    is_best = worth >= worth.max(axis=1, keepdims=True) - 1e-9
    return np.argmax(np.where(is_best, parts.half, -1.0), axis=1)


def _over_regions(labels: AttentionLabels, region: np.ndarray, count: int) -> AttentionLabels:
    """The labels of regions from those of all their parts; region (N,) of each part."""
    reach = np.tile([np.inf, -np.inf], (count, 1))
    np.minimum.at(reach[:, 0], region, labels.reach[:, 0])
    np.maximum.at(reach[:, 1], region, labels.reach[:, 1])
    has_kept = labels.is_kept | (labels.inner[:, 0] <= labels.inner[:, 1])
    has_lost = labels.is_lost | (labels.outer[:, 0] > labels.outer[:, 1]) | (labels.outer[:, 1] < labels.ends[:, 1])
    kept, lost = (np.bincount(region[chosen], minlength=count) > 0 for chosen in (has_kept, has_lost))
    nothing = np.zeros((count, 2))
    return AttentionLabels(labels.delta, nothing, nothing, nothing, reach, has_both=kept & lost)
