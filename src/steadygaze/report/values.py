"""From an answer to its profile: margin and inconsistency along a single parameter. No pass through the network."""

from dataclasses import dataclass

import numpy as np

from ..results.answer import Answer

SAMPLES_PER_DOMAIN = 1000
GAP = 1e-9
"""Pieces that are less apart than this touch."""


@dataclass(frozen=True, eq=False)
class Profile:
    """A map of one parameter along theta (N,), with NaN in the gaps (G, 2) of theta that a partial map leaves."""

    theta: np.ndarray
    margin: np.ndarray
    inconsistency: np.ndarray
    gaps: np.ndarray


def profile(answer: Answer) -> Profile:
    """Margin and inconsistency along the one parameter of a map; both ends of every piece are among the thetas."""
    answers, polygons = answer.answers, answer.joint.polytopes
    along, starts = polygons.points[:, 0], polygons.starts[:-1]
    low, high = np.minimum.reduceat(along, starts), np.maximum.reduceat(along, starts)
    order = np.argsort(low, kind="stable")
    low, high, region = low[order], high[order], answer.joint.pieces.region[order]
    domain = answers.compound.domain
    if not len(low):
        return Profile(np.zeros(0), np.zeros(0), np.zeros(0), np.array([[domain.low[0], domain.high[0]]]))
    counts = np.ceil((high - low) * SAMPLES_PER_DOMAIN).astype(np.int64) + 2
    ends = np.cumsum(counts)
    step = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
    share = step / np.repeat(counts - 1, counts)
    t = np.repeat(low, counts) + share * np.repeat(high - low, counts)
    points = np.stack([t, np.full(len(t), 0.5)], axis=1)
    which = np.repeat(region, counts)
    theta = answers.compound.to_theta(points)[:, 0]
    columns = [theta, answer.margin_at(which, points), answer.inconsistency_at(which, points)]
    starts_gap = ends[:-1][low[1:] - high[:-1] > GAP]
    gaps = np.stack([np.append(0.0, high), np.append(low, 1.0)], axis=1)
    gaps = gaps[gaps[:, 1] - gaps[:, 0] > GAP]
    in_theta = domain.low[0] + gaps * domain.widths[0]
    theta, margin, inconsistency = (np.insert(column, starts_gap, np.nan) for column in columns)
    return Profile(theta, margin, inconsistency, in_theta)
