"""Finds a large box around zero without a suspect: how far all parameters may change at once.

A suspect is a part of the domain where a property is not proved to hold. The box is the domain shrunk towards zero by
one factor for all sides (with one parameter, by one factor for each direction), so larger boxes may exist.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..compound import Compound
from ..labels import Kept, Label
from ..regions.region import RegionSet
from .joint import JointPieces
from .nearest import attention_strips, label_strips

MOST_PROGRAMS = 300
"""The most suspects examined beyond their bounding boxes: about a millisecond each."""

MARGIN = 1e-9
"""Subtracted from a factor: ten times the distance by which the tolerance may have moved the border of a piece."""


@dataclass(frozen=True, eq=False)
class Suspects:
    """Parts of the domain where a property may fail, in t: boxes low and high (N, D) around them.

    parts(n) returns the parts inside box n, each as points (V, D) whose hull is the part; None if only boxes are known.
    """

    low: np.ndarray
    high: np.ndarray
    parts: Callable[[int], Iterable[np.ndarray]] | None = None

    def __len__(self) -> int:
        return len(self.low)


def label_suspects(regions: RegionSet, joint: JointPieces) -> Suspects:
    """Where the label may be lost: pieces won by another class, and strips along the decision boundary."""
    pieces = joint.pieces
    fails = ~pieces.keeps_label
    return _suspects(joint, fails, ~fails & pieces.has_strip, lambda piece: label_strips(regions, joint, piece))


def attention_suspects(joint: JointPieces) -> Suspects:
    """Where the attention may be lost: pieces that are not AR, and strips along ai = δ."""
    fails = joint.attention != Kept.YES
    has_strip = ~fails & (joint.attention_strip > 0.0)
    return _suspects(joint, fails, has_strip, lambda piece: attention_strips(joint, piece))


def nearest_suspects(compound: Compound, joint: JointPieces) -> dict[Label, Suspects]:
    """For CR and AR, the bounding boxes of the suspects that `kept_box` meets first in every direction."""
    zero, d = compound.zero_in_t[: compound.domain.dimension], compound.domain.dimension
    low, high = joint.polytopes.bounding_boxes()
    ends = [(np.zeros(d), np.ones(d))] if d > 1 else [(np.zeros(1), zero), (zero, np.ones(1))]
    all_gauges = []
    for first, last in ends:
        gauges = _box_gauges(zero, zero - first, last - zero, low[:, :d], high[:, :d])
        is_there = (high[:, 0] >= first[0]) & (low[:, 0] <= last[0]) if d == 1 else True
        all_gauges.append(np.where(is_there, gauges, np.inf))
    pieces = joint.pieces
    suspected = {
        Label.CR: ~pieces.keeps_label | pieces.has_strip,
        Label.AR: (joint.attention != Kept.YES) | (joint.attention_strip > 0.0),
    }
    found = {}
    for name, is_suspect in suspected.items():
        suspects = np.flatnonzero(is_suspect)
        nearest = [suspects[np.argmin(gauges[suspects])] for gauges in all_gauges if len(suspects)]
        chosen = [piece for piece, gauges in zip(nearest, all_gauges, strict=False) if np.isfinite(gauges[piece])]
        found[name] = Suspects(low[chosen], high[chosen])
    return found


def kept_factor(compound: Compound, suspects: Suspects) -> float:
    """A factor, at most 1, at which the domain, shrunk towards zero, meets no suspect."""
    d = compound.domain.dimension
    return _factor(compound.zero_in_t[:d], np.zeros(d), np.ones(d), suspects)


def kept_box(zero: np.ndarray, suspects: Sequence[Suspects]) -> tuple[np.ndarray, np.ndarray]:
    """Ends low and high (d,) in t of a box around zero (d,) without a suspect; both are `zero` if there is no box.

    Separating planes prove the ends, up to the rounding of a few operations, which is subtracted.
    """
    d = len(zero)
    if d > 1:
        factor = min([1.0, *(_factor(zero, np.zeros(d), np.ones(d), group) for group in suspects)])
        return zero * (1.0 - factor), zero + factor * (1.0 - zero)
    ends = []
    for low, high in ((np.zeros(1), zero), (zero, np.ones(1))):
        # In each direction, only suspects that touch zero or reach beyond it count.
        chosen = [
            Suspects(group.low[is_there], group.high[is_there], None)
            for group in _in_one_dimension(suspects)
            for is_there in [(group.high[:, 0] >= low[0]) & (group.low[:, 0] <= high[0])]
        ]
        ends.append(min([1.0, *(_factor(zero, low, high, group) for group in chosen)]))
    return zero * (1.0 - ends[0]), zero + ends[1] * (1.0 - zero)


def _in_one_dimension(suspects: Sequence[Suspects]) -> list[Suspects]:
    """Suspects as intervals: the extents of their parts, if known, or else their boxes."""
    found = []
    for group in suspects:
        parts = [part[:, 0] for n in range(len(group)) for part in group.parts(n) if len(part)] if group.parts else []
        if group.parts is None:
            found.append(group)
        else:
            ends = np.array([(part.min(), part.max()) for part in parts]).reshape(-1, 2)
            found.append(Suspects(ends[:, :1], ends[:, 1:]))
    return found


def _suspects(
    joint: JointPieces, fails: np.ndarray, has_strip: np.ndarray, strips_of: Callable[[int], Iterable[np.ndarray]]
) -> Suspects:
    chosen = np.flatnonzero(fails | has_strip)
    low, high = (corners[chosen] for corners in joint.polytopes.bounding_boxes())

    def parts(n: int) -> Iterable[np.ndarray]:
        piece = int(chosen[n])
        return [joint.polytopes[piece]] if fails[piece] else strips_of(piece)

    return Suspects(low, high, parts)


def _factor(zero: np.ndarray, low: np.ndarray, high: np.ndarray, suspects: Suspects) -> float:
    """A factor, at most 1, at which the box from low to high (d,), shrunk towards zero, meets no suspect."""
    d = len(zero)
    below, above = zero - low, high - zero
    bounds = _box_gauges(zero, below, above, suspects.low[:, :d], suspects.high[:, :d])
    best = np.inf
    for count, n in enumerate(np.argsort(bounds, kind="stable")):
        if bounds[n] >= best or count == MOST_PROGRAMS or suspects.parts is None:
            best = min(best, float(bounds[n]))
            break
        for part in suspects.parts(int(n)):
            if len(part):
                best = min(best, max(float(bounds[n]), _gauge(part[:, :d] - zero, below, above)))
    # Suspects lie in the domain, so the factor stays below 1 even if their distance rounds up.
    return float(np.clip(min(best, 1.0) - MARGIN, 0.0, 1.0)) if best < np.inf else 1.0


def _box_gauges(
    zero: np.ndarray, below: np.ndarray, above: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """The smallest factor (N,) at which the shrunk box touches each of the boxes low to high (N, d)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.where(above > 0.0, (low - zero) / above, np.where(low > zero, np.inf, 0.0))
        down = np.where(below > 0.0, (zero - high) / below, np.where(high < zero, np.inf, 0.0))
    return np.maximum(np.maximum(up, down).max(axis=1), 0.0)


def _gauge(points: np.ndarray, below: np.ndarray, above: np.ndarray) -> float:
    """A lower bound on the factor at which the shrunk box touches the hull of points (V, d), given relative to zero.

    For every direction w, the factor is at least min_v w·v / h(w), with h the support function of the box. A linear
    program proposes w; the bound is computed from w alone, so its correctness does not depend on the program.
    """
    count, d = points.shape
    rows = np.vstack(
        [np.column_stack([points.T, -above]), np.column_stack([-points.T, -below])],
    )
    from scipy.optimize import linprog  # noqa: PLC0415 (slow to import)

    found = linprog(
        np.append(np.zeros(count), 1.0), A_ub=rows, b_ub=np.zeros(2 * d), A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0], method="highs",
    )  # fmt: skip
    if found.status != 0:
        return 0.0
    weights = np.maximum(-found.ineqlin.marginals, 0.0)
    direction = weights[:d] - weights[d:]
    size = float(np.maximum(direction * above, -direction * below).sum())
    return max(0.0, float((points @ direction).min()) / size) if size > 0.0 else 0.0
