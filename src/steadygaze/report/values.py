"""From an answer to a profile: margin and inconsistency along one parameter. No pass through the network."""

from dataclasses import dataclass

import numpy as np

from ..results.answer import DeltaAnswer
from .lines import Line

SAMPLES_PER_DOMAIN = 1000
GAP = 1e-9
"""Pieces that are less apart than this touch."""


@dataclass(frozen=True, eq=False)
class Profile:
    """A map along theta (N,) of one parameter, with NaN in the gaps (G, 2) of theta that a partial map leaves.

    margin and inconsistency (N,) are the curves, NaN where only bounds are known; margin_bounds and
    inconsistency_bounds (N, 2) are these bounds, NaN where the curve is known and where there are none.
    """

    theta: np.ndarray
    margin: np.ndarray
    inconsistency: np.ndarray
    margin_bounds: np.ndarray
    inconsistency_bounds: np.ndarray
    gaps: np.ndarray


def profile(answer: DeltaAnswer, line: Line) -> Profile:
    """Margin and inconsistency along a line through a map; both ends of every piece that it meets are among the thetas.

    The thetas of the profile are those of the parameter that the line runs along.
    """
    compound = answer.compound
    start, width = compound.domain.low[line.axis], compound.domain.widths[line.axis]
    low, high, none = line.low, line.high, np.zeros((0, 2))
    if not len(low):
        return Profile(none[:, 0], none[:, 0], none[:, 0], none, none, np.array([[start, start + width]]))
    counts = np.ceil((high - low) * SAMPLES_PER_DOMAIN).astype(np.int64) + 2
    ends = np.cumsum(counts)
    step = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
    share = step / np.repeat(counts - 1, counts)
    t = np.repeat(low, counts) + share * np.repeat(high - low, counts)
    points = line.points(t)
    which = np.repeat(answer.joint.pieces.region[line.piece], counts)
    starts_gap = ends[:-1][low[1:] - high[:-1] > GAP]
    gaps = np.stack([np.append(0.0, high), np.append(low, 1.0)], axis=1)
    gaps = gaps[gaps[:, 1] - gaps[:, 0] > GAP]
    margin, margin_bounds = _told_apart(answer.margin_bounds_at(which, points))
    inconsistency, inconsistency_bounds = _told_apart(answer.inconsistency_bounds_at(which, points))
    columns = (start + t * width, margin, inconsistency, margin_bounds, inconsistency_bounds)
    theta, *curves = (np.insert(column, starts_gap, np.nan, axis=0) for column in columns)
    return Profile(theta, curves[0], curves[1], curves[2], curves[3], start + gaps * width)


def _told_apart(bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values (N,) where bounds (N, 2) are equal, and the bounds where they differ; NaN elsewhere."""
    is_known = bounds[:, 0] == bounds[:, 1]
    is_bounded = np.isfinite(bounds).all(axis=1) & ~is_known
    return np.where(is_known, bounds[:, 0], np.nan), np.where(is_bounded[:, None], bounds, np.nan)
