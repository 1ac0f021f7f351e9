"""Parts boxes by one plane each: proved enclosures on either side, and the share of the box that lies there.

Only the strip along the plane, as wide as the errors of its affine form, stays undecided.

The share of [0, 1]^m with w · x ≤ k, all w_i > 0, is Σ_v (−1)^|v| max(k − w · v, 0)^m / (m! Π w_i) over the corners v.
Rounding makes this sum useless if some w_i are far smaller than others. Leaving out a coordinate moves k by at most its
w_i. So the sum is taken over the m largest coordinates, for every m up to MOST_COORDINATES, and the best bounds are
kept.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product
from math import factorial

import numpy as np

from ...bounds.bounder import Bounder
from ...bounds.parting import MOST_OPEN, find_planes
from ...budget import WALKING, is_over
from ...labels import Kept
from ...tolerances import UNIT
from .boxes import BoundedBoxes, Boxes, BoxQuestion, Frontier, State, attention_codes, label_codes, meet

LEAST_STRIP = 1e-9  # share of a box: narrower strips are accepted, whatever share the run may leave undecided
MOST_COORDINATES = 6  # in the sums that bound the share of a half-space


@dataclass(frozen=True, eq=False)
class Parted:
    """The planes of P boxes with coordinates e ∈ [−1, 1]^d: the side is certain where |slopes · e + offset| > slack.

    slopes (P, d); offset and slack (P,); margin and inconsistency (P, 2, 2): proved enclosures, on the positive side
    first.
    """

    slopes: np.ndarray
    offset: np.ndarray
    slack: np.ndarray
    margin: np.ndarray
    inconsistency: np.ndarray

    def __len__(self) -> int:
        return len(self.offset)

    @classmethod
    def none(cls, dimension: int) -> "Parted":
        """No boxes."""
        return cls(np.zeros((0, dimension)), np.zeros(0), np.zeros(0), np.zeros((0, 2, 2)), np.zeros((0, 2, 2)))

    @classmethod
    def join(cls, parts: list["Parted"]) -> "Parted":
        """Concatenate one or more parts."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def take(self, chosen: np.ndarray) -> "Parted":
        """The chosen boxes, in that order."""
        return Parted(*(getattr(self, field.name)[chosen] for field in fields(self)))

    @cached_property
    def shares(self) -> np.ndarray:
        """Proved lower bounds (P, 2) on the share of each box on its positive and its negative side."""
        return side_shares(self.slopes, self.offset, self.slack)

    def codes(self, delta: float) -> tuple[np.ndarray, np.ndarray]:
        """`Kept` codes (P, 2) of label and attention on either side; δ is absolute."""
        label = label_codes(self.margin.reshape(-1, 2)).reshape(-1, 2)
        return label, attention_codes(self.inconsistency.reshape(-1, 2), delta).reshape(-1, 2)

    def cells(self, volumes: np.ndarray, delta: float) -> np.ndarray:
        """Shares (3, 3) of the domain by `Kept` codes of label and attention, for boxes with volumes (P,)."""
        cells, (label, attention) = np.zeros((3, 3)), self.codes(delta)
        for side in (0, 1):
            np.add.at(cells, (label[:, side], attention[:, side]), self.shares[:, side] * volumes)
        # Along the plane, the labels of either side may hold.
        either = [np.where(codes[:, 0] == codes[:, 1], codes[:, 0], Kept.UNKNOWN) for codes in (label, attention)]
        np.add.at(cells, (either[0], either[1]), self.strips * volumes)
        return cells

    @cached_property
    def strips(self) -> np.ndarray:
        """Upper bounds (P,) on the share of each box along its plane; never zero."""
        return np.clip(1.0 - self.shares.sum(axis=1), UNIT, 1.0)

    def sides(self, points: np.ndarray) -> np.ndarray:
        """The side (P,) on which points (P, d) in e surely lie: 0 positive, 1 negative, −1 along the plane."""
        value = (self.slopes * points).sum(axis=1) + self.offset
        size = np.abs(self.slopes * points).sum(axis=1) + np.abs(self.offset)
        certain = np.abs(value) > self.slack + 16.0 * (points.shape[1] + 2) * UNIT * size
        return np.where(certain, np.where(value > 0.0, 0, 1), -1)

    def distances(self, points: np.ndarray, half: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Lower bounds (P,) on the distances in t from points (P, d) in e to the chosen sides (P, 2) of each box.

        half (P, d): half the widths of the boxes. The strip along the plane belongs to both sides.
        """
        value = (self.slopes * points).sum(axis=1) + self.offset
        size = np.abs(self.slopes * points).sum(axis=1) + np.abs(self.offset)
        slack = self.slack + 16.0 * (points.shape[1] + 2) * UNIT * size
        steepness = np.linalg.norm(self.slopes / half, axis=1) * (1.0 + 1e-12)
        found = np.full(len(self), np.inf)
        for side, sign in enumerate((1.0, -1.0)):
            away = np.maximum(-sign * value - slack, 0.0) / np.maximum(steepness, np.finfo(np.float64).tiny)
            found = np.where(chosen[:, side], np.minimum(found, away), found)
        return found

    def points(self, side: int, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points (P, d) in e, and which (P,) surely lie on a side; close to `near` (P, d) if a few tries succeed."""
        deepest = (1.0 - 2.0 * side) * np.sign(self.slopes)
        points, is_found = deepest, self.sides(deepest) == side
        for share in (0.5, 0.9, 0.99):
            tried = share * near + (1.0 - share) * deepest
            is_better = self.sides(tried) == side
            points, is_found = np.where(is_better[:, None], tried, points), is_found | is_better
        return points, is_found


def side_shares(slopes: np.ndarray, offset: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """Proved lower bounds (P, 2) on the shares where slopes · e + offset is above slack, and below −slack."""
    # A few roundings make the box in e wider than the box of thetas.
    around = 64.0 * (slopes.shape[1] + 1) * UNIT
    slack = np.nextafter(slack, np.inf)
    found = [halfspace_shares(sign * slopes, np.nextafter(sign * offset - slack, -np.inf))[0] for sign in (1.0, -1.0)]
    return np.maximum(np.stack(found, axis=1) - around, 0.0)


def part_boxes(
    bounder: Bounder, question: BoxQuestion, boxes: Boxes, most_strip: float
) -> tuple[np.ndarray, np.ndarray, Parted]:
    """Part open boxes of one knot cell by planes with a decided label on both sides.

    Returns new enclosures (B, 2) of the inconsistency; which boxes (B,) are parted, because both sides of their best
    plane are decided and the strip has at most the share `most_strip` of the box; and their planes.
    """
    d = bounder.perturbed.domain.dimension
    planes = find_planes(
        bounder, int(boxes.cell[0]), boxes.low[:, :d], boxes.high[:, :d], boxes.margin, boxes.inconsistency,
        asks_attention=question.asks_attention,
    )  # fmt: skip
    count = planes.offset.shape[1]
    sides = [part.reshape(-1, 2) for part in (planes.margin, planes.inconsistency)]
    is_decided = question.is_decided(*sides).reshape(-1, count, 2).all(axis=2) & np.isfinite(planes.slack)
    strips = np.ones(is_decided.shape)
    chosen = np.nonzero(is_decided)
    shares = side_shares(planes.slopes[chosen], planes.offset[chosen], planes.slack[chosen])
    # A plane with the whole box on one side decides no more than bounds do.
    strips[chosen] = np.where((shares > 0.0).all(axis=1), 1.0 - shares.sum(axis=1), 1.0)
    best, rows = np.argmin(strips, axis=1), np.arange(len(boxes))
    is_parted = strips[rows, best] <= max(most_strip, LEAST_STRIP)
    rows, best = rows[is_parted], best[is_parted]
    own = (getattr(planes, name)[rows, best] for name in ("slopes", "offset", "slack", "margin", "inconsistency"))
    return planes.inside, is_parted, Parted(*own)


def part_block(frontier: Frontier, bounded: BoundedBoxes, most_strip: float) -> tuple[BoundedBoxes, Parted]:
    """Part those boxes of one knot cell that bounds left open, where planes can; also the planes of PARTED boxes."""
    boxes, question = bounded.boxes, frontier.question
    rows = np.flatnonzero((boxes.state == State.OPEN) & _may_part(bounded, question))
    batch = frontier.bounder.batch
    parts = [rows[first : first + batch] for first in range(0, len(rows), batch)]
    none = Parted.none(frontier.bounder.perturbed.domain.dimension)

    def run(part: np.ndarray) -> tuple[np.ndarray, np.ndarray, Parted]:
        if is_over(frontier.budget, WALKING):
            return boxes.inconsistency[part], np.zeros(len(part), dtype=bool), none
        return part_boxes(frontier.bounder, question, boxes.take(part), most_strip)

    inconsistency, state, found = boxes.inconsistency.copy(), boxes.state.copy(), [none]
    for part, (inside, is_parted, planes) in zip(parts, frontier.run_all(run, parts), strict=True):
        inconsistency[part] = meet(inconsistency[part], inside)
        is_decided = question.is_decided(boxes.margin[part], inconsistency[part])
        state[part] = np.where(is_decided, State.BOUNDED, np.where(is_parted, State.PARTED, State.OPEN))
        found.append(planes.take(~is_decided[is_parted]))
    return replace(bounded, boxes=replace(boxes, inconsistency=inconsistency, state=state)), Parted.join(found)


def _may_part(bounded: BoundedBoxes, question: BoxQuestion) -> np.ndarray:
    """Which boxes (B,) are worth a search for planes."""
    boxes = bounded.boxes
    needs_attention = question.needs_attention(boxes.margin, boxes.inconsistency)
    is_label_open = (label_codes(boxes.margin) == Kept.UNKNOWN) & question.wanted.asks_label
    return np.where(needs_attention, bounded.unstable <= MOST_OPEN, is_label_open)


def halfspace_shares(slopes: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Proved bounds (N,) of the shares of boxes e ∈ [−1, 1]^d where slopes (N, d) · e + offsets (N,) > 0.

    If all slopes are 0, the share is 0 or 1; NaN gives the bounds 0 and 1.

    >>> low, high = halfspace_shares(np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([1.0, 2.0]))
    >>> [round(float(value), 9) for value in (*low, *high)]
    [0.875, 1.0, 0.875, 1.0]
    """
    weights = np.abs(slopes)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.maximum(weights.max(axis=1, initial=0.0), np.abs(offsets))
        known = np.isfinite(scale) & (scale > 0.0)
        weights = -np.sort(-np.where(known[:, None], weights / scale[:, None], 0.0), axis=1)
        middle = np.where(known, offsets / scale, 0.0)
    low, high = np.zeros(len(offsets)), np.ones(len(offsets))
    # By symmetry in the sign of each coordinate, this equals the share where w · e < middle.
    rest = weights.sum(axis=1)
    for count in range(min(weights.shape[1], MOST_COORDINATES) + 1):
        own = weights[:, :count]
        left_out = weights[:, count:].sum(axis=1)
        least, most = (_share_below(own, middle + sign * left_out) for sign in (-1.0, 1.0))
        low, high = np.maximum(low, least[0]), np.minimum(high, most[1])
    # If the whole box lies on one side by far more than rounding, the share is 0 or 1 without any sum.
    clear = 64.0 * (weights.shape[1] + 4) * UNIT
    low = np.where(middle > rest + clear, 1.0, low)
    high = np.where(middle < -rest - clear, 0.0, high)
    return np.where(known, low, 0.0), np.where(known, np.maximum(high, low), 1.0)


def _share_below(weights: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (N,) of the shares of e ∈ [−1, 1]^m with weights (N, m) · e < ends (N,); weights are at most 1.

    `ends` may be off by a few roundings, which covers the rounding of all sums before.
    """
    count = weights.shape[1]
    blur = 64.0 * (count + 16) * UNIT * (1.0 + np.abs(ends))
    if not count:
        return (ends - blur > 0.0).astype(np.float64), (ends + blur >= 0.0).astype(np.float64)
    corners = np.array(list(product((0.0, 1.0), repeat=count)))
    signs = (-1.0) ** corners.sum(axis=1)
    # In x = (e + 1) / 2 the half-space is 2 w · x < end + Σ w.
    reach = weights.sum(axis=1)
    found = []
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        volume = factorial(count) * np.prod(2.0 * weights, axis=1)
        for direction in (-1.0, 1.0):
            top = np.clip(ends + direction * blur + reach, 0.0, 2.0 * reach)
            terms = np.maximum(top[:, None] - 2.0 * (weights @ corners.T), 0.0) ** count
            value = terms @ signs / volume
            # Every term is a power of a rounded difference of numbers up to 2 · reach, and 2^m terms are summed.
            error = (
                16.0 * (count + 4) * (len(corners) + count) * UNIT * np.maximum(2.0 * reach, 1e-300) ** count / volume
            )
            found.append(value + direction * error)
    low, high = found
    is_known = np.isfinite(low) & np.isfinite(high) & (volume > 0.0)
    return np.where(is_known, np.clip(low, 0.0, 1.0), 0.0), np.where(is_known, np.clip(high, 0.0, 1.0), 1.0)
