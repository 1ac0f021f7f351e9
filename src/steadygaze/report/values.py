"""From an answer to its profile: margin and inconsistency along a single parameter. No pass through the network."""

from dataclasses import dataclass

import numpy as np

from ..results.answer import DeltaAnswer

SAMPLES_PER_DOMAIN = 1000
GAP = 1e-9
"""Pieces that are less apart than this touch."""


@dataclass(frozen=True, eq=False)
class Profile:
    """A map of one parameter along theta (N,), with NaN in the gaps (G, 2) of theta that a partial map leaves.

    margin and inconsistency (N,) are the curves, NaN where only bounds are known; margin_bounds and
    inconsistency_bounds (N, 2) are these bounds, NaN where the curve is known and where there are none.
    """

    theta: np.ndarray
    margin: np.ndarray
    inconsistency: np.ndarray
    margin_bounds: np.ndarray
    inconsistency_bounds: np.ndarray
    gaps: np.ndarray


def profile(answer: DeltaAnswer) -> Profile:
    """Margin and inconsistency along the one parameter of a map; both ends of every piece are among the thetas."""
    compound, polygons = answer.compound, answer.joint.polytopes
    domain = compound.domain
    (low, high), none = polygons.extent(0), np.zeros((0, 2))
    order = np.argsort(low, kind="stable")
    low, high, region = low[order], high[order], answer.joint.pieces.region[order]
    if not len(low):
        gap = np.array([[domain.low[0], domain.high[0]]])
        return Profile(none[:, 0], none[:, 0], none[:, 0], none, none, gap)
    counts = np.ceil((high - low) * SAMPLES_PER_DOMAIN).astype(np.int64) + 2
    ends = np.cumsum(counts)
    step = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
    share = step / np.repeat(counts - 1, counts)
    t = np.repeat(low, counts) + share * np.repeat(high - low, counts)
    points = np.stack([t, np.full(len(t), 0.5)], axis=1)
    which = np.repeat(region, counts)
    starts_gap = ends[:-1][low[1:] - high[:-1] > GAP]
    gaps = np.stack([np.append(0.0, high), np.append(low, 1.0)], axis=1)
    gaps = gaps[gaps[:, 1] - gaps[:, 0] > GAP]
    margin, margin_bounds = _told_apart(answer.margin_bounds_at(which, points))
    inconsistency, inconsistency_bounds = _told_apart(answer.inconsistency_bounds_at(which, points))
    columns = (compound.to_theta(points)[:, 0], margin, inconsistency, margin_bounds, inconsistency_bounds)
    in_theta = domain.low[0] + gaps * domain.widths[0]
    theta, *curves = (np.insert(column, starts_gap, np.nan, axis=0) for column in columns)
    return Profile(theta, curves[0], curves[1], curves[2], curves[3], in_theta)


def _told_apart(bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values (N,) where bounds (N, 2) are equal, and the bounds where they differ; NaN elsewhere."""
    is_known = bounds[:, 0] == bounds[:, 1]
    is_bounded = np.isfinite(bounds).all(axis=1) & ~is_known
    return np.where(is_known, bounds[:, 0], np.nan), np.where(is_bounded[:, None], bounds, np.nan)
