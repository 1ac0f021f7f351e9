"""The violation nearest to zero over boxes, exact regions and single thetas: distances and where they are reached.

Distances divide each axis by its width, as for maps.
"""

import numpy as np

from ..compound import Compound
from ..properties.joint import Kept
from ..properties.nearest import DEPTHS, INSIDE, Nearest, rounded_down, zero_in_t
from .merged import MergedAnswer

NONE = Nearest(np.inf, np.inf, None, None)


def nearest_violation(answer: MergedAnswer, name: str, thetas: np.ndarray) -> Nearest:
    """The nearest violation of CR or AR (`name`), given thetas (N, d) where it is known to be violated.

    `low` is proved: every box or piece that is not proved to be kept lies farther from zero.
    """
    codes = answer.label_codes if name == "CR" else answer.attention_codes
    candidates = [_of_boxes(answer, codes), _of_thetas(answer.compound, thetas)]
    if answer.exact is not None:
        found = answer.exact.nearest[name]
        piece = None if found.piece is None else found.piece + len(answer.bounded)
        candidates.append(Nearest(found.low, found.high, found.theta, piece))
    best = min(candidates, key=lambda candidate: candidate.high)
    return Nearest(min(candidate.low for candidate in candidates), best.high, best.theta, best.piece)


def distances(compound: Compound, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances (N,) of zero to boxes low, high (N, D) in t, and the points (N, D) of the boxes nearest to it."""
    zero = zero_in_t(compound)
    points = np.clip(zero, low, high)
    return np.linalg.norm((points - zero)[:, : compound.domain.dimension], axis=1), points


def _of_boxes(answer: MergedAnswer, codes: np.ndarray) -> Nearest:
    boxes, bounded, compound = answer.boxes, answer.bounded, answer.compound
    away, points = distances(compound, boxes.low, boxes.high)
    may_fail = answer.missing > 0.0
    may_fail[bounded] = codes[bounded] != Kept.YES
    low = rounded_down(float(away[may_fail].min(initial=np.inf)))
    fails = bounded[codes[bounded] == Kept.NO]
    if not len(fails):
        return Nearest(low, np.inf, None, None)
    first = int(fails[np.argmin(away[fails])])
    border, centre = points[first], 0.5 * (boxes.low[first] + boxes.high[first])
    for depth in DEPTHS:
        point = border + depth * (centre - border)
        if np.abs(point - border)[: compound.domain.dimension].max() >= INSIDE:
            break
    theta = compound.to_theta(point[None])[0]
    return Nearest(low, _distance(compound, theta), theta, int(np.searchsorted(bounded, first)))


def _of_thetas(compound: Compound, thetas: np.ndarray) -> Nearest:
    if not len(thetas):
        return NONE
    away = [_distance(compound, theta) for theta in thetas]
    best = int(np.argmin(away))
    return Nearest(np.inf, away[best], thetas[best], None)


def _distance(compound: Compound, theta: np.ndarray) -> float:
    """The distance of a theta (d,) to zero, rounded up."""
    d = compound.domain.dimension
    offset = (compound.to_unit(theta[None])[0] - zero_in_t(compound))[:d]
    return float(np.linalg.norm(offset)) * (1 + 1e-12)
